// The table's file as bytes: read once, or polled for changes. A changed stat makes it read the file; since a stat can miss a
// change, a file is also read for a while after a change, and a small one every 700 ms. It does not know what the bytes mean.
import { type BigIntStats, readFileSync, statSync } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { crypto } from '../../base/builtins.ts';
import { describeFailure, errorCode } from '../../base/failure.ts';
import { sha256 } from '../token.ts';

/** `key` is equal exactly when the content is. */
export type FileContent =
  | { readonly kind: 'bytes'; readonly key: string; readonly bytes: () => Buffer }
  | { readonly kind: 'missing'; readonly key: string }
  | { readonly kind: 'unreadable'; readonly key: string; readonly reason: string };

/** Some 250,000 rows. What is larger is not read, and not written: a worker has to keep it in memory. */
export const MOST_BYTES = 64 * 1024 * 1024;
/** Files up to here are read again and again, whatever their stat: not even a file system that keeps no times can hide a change. */
const SMALL = 64 * 1024;
/** Three polls of 250 ms: seldom enough not to be seen among the costs, often enough for the second that is promised. */
const REREAD_MS = 700;
/**
 * A second write within one tick of the file system's clock leaves the same stat (git calls such a file "racily clean"). No write that
 * comes this long after a stat was first seen can share its tick: 2 s is the coarsest tick in use (FAT). Our own clock measures it, not the file's.
 */
const SETTLE_MS = 2500;

export function readContent(path: string): FileContent {
  try {
    const stats = statSync(path);
    if (!stats.isFile()) return NOT_A_FILE;
    if (stats.size > MOST_BYTES) return TOO_LARGE;
    const bytes = readFileSync(path);
    return { kind: 'bytes', key: keyOf(bytes), bytes: () => bytes };
  } catch (error) {
    return failureOf(error);
  }
}

/** Read and digested at a time, between two turns of the event loop: of a large file neither may stop the requests of others. */
const CHUNK_BYTES = 1024 * 1024;

async function readChunks(path: string, size: number): Promise<FileContent> {
  const chunks: Buffer[] = [];
  const digest = size > CHUNK_BYTES ? crypto().createHash('sha256') : undefined;
  let length = 0;
  const file = await open(path);
  try {
    for (;;) {
      const wanted = Math.min(size + 1, CHUNK_BYTES);
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(wanted), 0, wanted, null);
      if (bytesRead === 0) break;
      const chunk = buffer.subarray(0, bytesRead);
      chunks.push(chunk);
      length += bytesRead;
      if (length > MOST_BYTES) return TOO_LARGE;
      digest?.update(chunk);
    }
  } finally {
    await file.close();
  }
  // Put together only where they are not those of the last time.
  const bytes = () => Buffer.concat(chunks, length);
  return { kind: 'bytes', key: digest === undefined ? keyOf(bytes()) : digest.digest('latin1'), bytes };
}

/** What is no longer than a digest is its own key. */
function keyOf(bytes: Buffer): string {
  return bytes.length <= 32 ? `whole: ${bytes.toString('latin1')}` : sha256(bytes).toString('latin1');
}

// To open a FIFO would wait for its writer for ever.
const NOT_A_FILE: FileContent = { kind: 'unreadable', key: 'not a file', reason: 'it is not a regular file' };

function failureOf(error: unknown): FileContent {
  if (errorCode(error) === 'ENOENT') return { kind: 'missing', key: 'missing' };
  const reason = describeFailure(error);
  return { kind: 'unreadable', key: `unreadable: ${reason}`, reason };
}

const TOO_LARGE: FileContent = { kind: 'unreadable', key: 'too large', reason: `it is larger than ${MOST_BYTES} bytes` };

export interface ContentPoller {
  /** Looks at the file, and resolves when what was found has been dealt with. Whoever asks in the same turn shares the look. */
  look(): Promise<void>;
  close(): void;
}

export interface PollOptions {
  readonly path: string;
  readonly intervalMs: number;
  /** Called with the content whenever it was read, changed or not; the next look waits for it. Must not throw. */
  readonly onContent: (content: FileContent) => void | Promise<void>;
  /** Monotonic milliseconds. */
  readonly clock?: () => number;
}

/** Never keeps the process alive. */
export function pollContent({ path, intervalMs, onContent, clock = () => performance.now() }: PollOptions): ContentPoller {
  let seen = '';
  let seenAt = 0;
  let readAt = 0;
  let closed = false;
  let running = Promise.resolve();
  let next: Promise<void> | undefined;
  let timer = setTimeout(poll, intervalMs).unref();

  async function poll(): Promise<void> {
    await look();
    if (!closed) timer = setTimeout(poll, intervalMs).unref();
  }

  /** One after the other, so that no read that began earlier speaks after a later one. */
  function look(): Promise<void> {
    next ??= running.then(async () => {
      next = undefined;
      const content = await readIfItMayDiffer();
      if (content !== undefined && !closed) await onContent(content);
    });
    running = next;
    return next;
  }

  async function readIfItMayDiffer(): Promise<FileContent | undefined> {
    try {
      const stats = await stat(path, { bigint: true });
      const signature = signatureOf(stats);
      const now = clock();
      if (signature !== seen) {
        seen = signature;
        seenAt = now;
      } else if (!isDue(now, Number(stats.size) <= SMALL)) return undefined;
      readAt = now;
      if (!stats.isFile()) return NOT_A_FILE;
      return stats.size > MOST_BYTES ? TOO_LARGE : await readChunks(path, Number(stats.size));
    } catch (error) {
      seen = '';
      return failureOf(error);
    }
  }

  /** Whether to read although the stat is the same. A large file is read at growing distances, until it has settled. */
  function isDue(now: number, isSmall: boolean): boolean {
    if (isSmall) return now - seenAt <= SETTLE_MS || now - readAt >= REREAD_MS;
    return readAt - seenAt <= SETTLE_MS && now - readAt >= readAt - seenAt;
  }

  return {
    look,
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}

// ctime and inode: an edit that restores size and mtime (`cp -p`, a mounted secret) still differs in one of them.
function signatureOf(stats: BigIntStats): string {
  return `${stats.dev} ${stats.ino} ${stats.size} ${stats.mtimeNs} ${stats.ctimeNs}`;
}
