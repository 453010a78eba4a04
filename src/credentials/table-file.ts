// The file of the table as bytes: read at once, or polled for changes of its content. It does not know what the bytes mean.
// A stat is a hint only: a file is read when its stat differs, for a while after, and, if it is small, regularly all the same.
import { type BigIntStats, readFileSync, statSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { describeFailure, errorCode } from '../base/failure.ts';
import { sha256 } from './token.ts';

/** `key` is equal exactly when the content is. */
export type FileContent =
  | { readonly kind: 'bytes'; readonly key: string; readonly bytes: Buffer }
  | { readonly kind: 'missing'; readonly key: string }
  | { readonly kind: 'unreadable'; readonly key: string; readonly reason: string };

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
    return statSync(path).isFile() ? contentOf(readFileSync(path)) : NOT_A_FILE;
  } catch (error) {
    return failureOf(error);
  }
}

/** @throws Error when the bytes are not UTF-8: decoded loosely, what is written back would not be what was read */
export function decodeContent(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Error('it is not UTF-8');
  }
}

function contentOf(bytes: Buffer): FileContent {
  // What is no longer than a digest is its own key. It holds no row, and whoever has none has no use for node:crypto either.
  const key = bytes.length <= 32 ? `whole: ${bytes.toString('latin1')}` : sha256(bytes).toString('latin1');
  return { kind: 'bytes', key, bytes };
}

// To open a FIFO would wait for its writer for ever.
const NOT_A_FILE: FileContent = { kind: 'unreadable', key: 'not a file', reason: 'it is not a regular file' };

function failureOf(error: unknown): FileContent {
  if (errorCode(error) === 'ENOENT') return { kind: 'missing', key: 'missing' };
  const reason = describeFailure(error);
  return { kind: 'unreadable', key: `unreadable: ${reason}`, reason };
}

export interface ContentPoller {
  /** Reads at once, and lets no read that began earlier speak afterwards. */
  readNow(): void;
  close(): void;
}

export interface PollOptions {
  readonly path: string;
  readonly intervalMs: number;
  /** Called with the content whenever it was read, changed or not. Must not throw. */
  readonly onContent: (content: FileContent) => void;
  /** Monotonic milliseconds. */
  readonly clock?: () => number;
}

/** Never keeps the process alive. */
export function pollContent({ path, intervalMs, onContent, clock = () => performance.now() }: PollOptions): ContentPoller {
  let seen = '';
  let seenAt = 0;
  let readAt = 0;
  let closed = false;
  let readsNow = 0;
  let timer = setTimeout(poll, intervalMs).unref();

  async function poll(): Promise<void> {
    const began = readsNow;
    const content = await readIfItMayDiffer();
    if (closed) return;
    if (content !== undefined && began === readsNow) onContent(content);
    timer = setTimeout(poll, intervalMs).unref();
  }

  async function readIfItMayDiffer(): Promise<FileContent | undefined> {
    try {
      const stats = await stat(path, { bigint: true });
      const signature = signatureOf(stats);
      if (signature !== seen) {
        seen = signature;
        seenAt = clock();
      } else if (clock() - seenAt > SETTLE_MS && (stats.size > SMALL || clock() - readAt < REREAD_MS)) {
        return undefined;
      }
      readAt = clock();
      return stats.isFile() ? contentOf(await readFile(path)) : NOT_A_FILE;
    } catch (error) {
      seen = '';
      return failureOf(error);
    }
  }

  return {
    readNow() {
      readsNow++;
      onContent(readContent(path));
    },
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
