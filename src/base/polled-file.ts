// Reloads files that people or programs change: by writing, by a rename, by a swapped link, or in a mounted secret.
// Files are polled, because file events do not reach mounted volumes. Valid content is live at once. Invalid content or
// a missing file is reported once, after several looks in a row have found it, and the last valid content stays live.
import { type BigIntStats, readFileSync, type Stats, statSync } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { describeFailure, errorCode } from './failure.ts';

export type Content =
  | { readonly files: readonly Buffer[]; readonly path?: undefined; readonly reason?: undefined }
  | {
      readonly files?: undefined;
      readonly path: string;
      readonly reason: string;
      readonly isMissing: boolean;
    };

/** Returns the bytes of the one file; undefined when there is no such file. @throws Error with the reason */
export function bytesOf(content: Content): Buffer | undefined {
  if (content.files !== undefined) return content.files[0];
  if (content.isMissing) return undefined;
  throw new Error(content.reason);
}

export function isSameContent(one: Content, other: Content): boolean {
  const { files, path, reason } = other;
  if (one.files === undefined || files === undefined)
    return one.files === files && one.reason === reason && one.path === path;
  return one.files.length === files.length && one.files.every((bytes, index) => files[index]?.equals(bytes));
}

type AnyStats = Stats | BigIntStats;

/** Refuses large files, and all but regular files, because opening a FIFO may wait for a writer for ever. */
function checkFiles(paths: readonly string[], stats: readonly AnyStats[], maxBytes: number): void {
  for (const [index, stat] of stats.entries()) {
    const path = paths[index];
    if (!stat.isFile()) throw Object.assign(new Error('it is not a regular file'), { path });
    if (stat.size > maxBytes) throw Object.assign(new Error(`it is larger than ${maxBytes} bytes`), { path });
  }
}

async function readFiles(paths: readonly string[], stats: readonly AnyStats[]): Promise<Content> {
  const read = (path: string, index: number) => readWhole(path, Number(stats[index]?.size));
  return { files: await Promise.all(paths.map(read)) };
}

export function readContent(paths: readonly string[], maxBytes: number): Content {
  try {
    checkFiles(
      paths,
      paths.map((path) => statSync(path)),
      maxBytes,
    );
    return { files: paths.map((path) => readFileSync(path)) };
  } catch (error) {
    return failureOf(error, paths);
  }
}

/** Like `readContent`, for a process that serves meanwhile. */
export async function readContentAsync(paths: readonly string[], maxBytes: number): Promise<Content> {
  try {
    const stats = await Promise.all(paths.map((path) => stat(path)));
    checkFiles(paths, stats, maxBytes);
    return await readFiles(paths, stats);
  } catch (error) {
    return failureOf(error, paths);
  }
}

/** Bytes that one read takes. The reads of `fs.readFile` are shorter, and wait for a thread each. */
const READ_BYTES = 4 * 1024 * 1024;

/** Reads a large file in half the time of `fs.readFile`. A file that grows meanwhile is read as far as `size`. */
async function readWhole(path: string, size: number): Promise<Buffer> {
  const file = await open(path);
  try {
    // The file may have grown since its stat, and a part of it, as of a session key, could be valid. Some file systems
    // give each file the size 0.
    if (size <= MAX_SYNC_SIZE) return await file.readFile();
    const bytes = Buffer.allocUnsafeSlow(size);
    let end = 0;
    for (let count = -1; count !== 0 && end < size; end += count)
      ({ bytesRead: count } = await file.read(bytes, end, Math.min(READ_BYTES, size - end), end));
    return bytes.subarray(0, end);
  } finally {
    await file.close();
  }
}

function failureOf(error: unknown, paths: readonly string[]): Content {
  const isMissing = errorCode(error) === 'ENOENT';
  const path = String((error as { path?: unknown }).path ?? paths[0]);
  const reason = isMissing ? 'there is no such file' : describeFailure(error);
  return { path, reason, isMissing };
}

export interface LiveFileOptions<T> {
  readonly paths: readonly string[];
  readonly maxBytes: number;
  readonly pollMs: number;
  /** The number of looks in a row that must find the same invalid content before the content is reported. */
  readonly confirmations: number;
  /** Undefined when no content is live at the start. Then a missing file is not reported. */
  readonly liveContent: Content | undefined;
  /**
   * Parses the content. Also called without `files`, when `confirmations` looks in a row have found that a file is
   * unreadable, or that a live file is missing.
   *
   * @throws Error whose message is one line, when the content is invalid
   */
  readonly parse: (content: Content) => T | Promise<T>;
  readonly onLive: (value: T, reloads: number) => void;
  readonly onFailure: (reason: string) => void;
  /** A clock in milliseconds that never goes back. */
  readonly now?: () => number;
}

export interface LiveFileStatus {
  /** How often new content has become live, without the first content. */
  readonly reloads: number;
  readonly reloadFailures: number;
  readonly lastFailure?: string;
}

/** Bytes of the largest file that is reread even while its stat stays the same: some file systems keep no times. */
const MAX_REREAD_SIZE = 64 * 1024;
/** Milliseconds between two rereads of a file up to MAX_REREAD_SIZE. With polls of 250 ms, a change is live in 1 s. */
const REREAD_INTERVAL = 700;
/**
 * Bytes of the largest file that `lookNow` reads synchronously. A file that was just written is in memory, so the read
 * takes about a millisecond. An asynchronous read makes five calls, and each waits for a thread. These waits take far
 * longer on a busy machine.
 */
const MAX_SYNC_SIZE = 1024 * 1024;
/**
 * Milliseconds after a change until its stat can be trusted. Two writes within one tick of the file system's clock
 * leave the same stat (git calls such a file "racily clean"). FAT has the coarsest tick, 2 s.
 */
const TRUST_MS = 2500;
/**
 * Minimum milliseconds between two looks, unless `pollMs` is less. A request with an unknown credential makes the
 * server look for a newer credentials table, and anybody can send such requests.
 */
const MIN_LOOK_INTERVAL = 50;

/** Begins to poll. The polling does not keep the process alive. */
export function createLiveFile<T>(options: LiveFileOptions<T>) {
  const { paths, maxBytes, pollMs, confirmations, parse, onLive, onFailure, now = () => performance.now() } = options;
  let { liveContent } = options;
  let lastContent: Content | undefined;
  let timesSeen = 0;
  let status: LiveFileStatus = { reloads: 0, reloadFailures: 0 };
  let lastStats = '';
  let changedAt = 0;
  let readAt = 0;
  let lookedAt = Number.NEGATIVE_INFINITY;
  let isClosed = false;
  let lastLook = Promise.resolve();
  let waitingLook: Promise<void> | undefined;
  /** Whether a caller of the next look knows of a change. */
  let isUrgent = false;
  let pause = new AbortController();
  let timer = setTimeout(poll, pollMs).unref();

  async function poll(): Promise<void> {
    await look();
    if (!isClosed) timer = setTimeout(poll, pollMs).unref();
  }

  /**
   * Looks for a change of the files. All callers that wait for the same look share its promise, which never rejects.
   * Looks run one after the other, so that no earlier read replaces the result of a later one.
   */
  function look(): Promise<void> {
    waitingLook ??= lastLook.then(async () => {
      const delay = isUrgent ? 0 : lookedAt + Math.min(MIN_LOOK_INTERVAL, pollMs) - now();
      pause = new AbortController();
      if (delay > 0) await sleep(delay, undefined, { signal: pause.signal }).catch(() => {});
      waitingLook = undefined;
      lookedAt = now();
      const isSync = isUrgent;
      isUrgent = false;
      const content = await readIfChangePossible(isSync);
      if (content !== undefined && !isClosed) await applyContent(content);
    });
    lastLook = waitingLook;
    return waitingLook;
  }

  /** Looks at once, for a caller that knows that this machine has just written the files. */
  function lookNow(): Promise<void> {
    isUrgent = true;
    const nextLook = look();
    pause.abort();
    return nextLook;
  }

  async function readIfChangePossible(isSync: boolean): Promise<Content | undefined> {
    try {
      const stats = isSync
        ? paths.map((path) => statSync(path, { bigint: true }))
        : await Promise.all(paths.map((path) => stat(path, { bigint: true })));
      const time = now();
      const statsText = stats.map(statTextOf).join();
      if (statsText !== lastStats) changedAt = time;
      else if (!mustReread(time, stats)) return undefined;
      lastStats = statsText;
      readAt = time;
      checkFiles(paths, stats, maxBytes);
      if (isSync && stats.every(({ size }) => size <= MAX_SYNC_SIZE))
        return { files: paths.map((path) => readFileSync(path)) };
      return await readFiles(paths, stats);
    } catch (error) {
      // The next look reads the files again, even if their stats are the same as before the error.
      lastStats = '';
      return failureOf(error, paths);
    }
  }

  /** Large files are reread only until their stats can be trusted, at intervals that double. */
  function mustReread(time: number, stats: readonly BigIntStats[]): boolean {
    if (stats.every(({ size }) => size <= MAX_REREAD_SIZE))
      return time - changedAt <= TRUST_MS || time - readAt >= REREAD_INTERVAL;
    return readAt - changedAt <= TRUST_MS && time - readAt >= readAt - changedAt;
  }

  async function applyContent(content: Content): Promise<void> {
    const { reloads, reloadFailures } = status;
    timesSeen = lastContent !== undefined && isSameContent(content, lastContent) ? timesSeen + 1 : 1;
    lastContent = content;
    if (liveContent !== undefined && isSameContent(content, liveContent)) {
      // The bytes are in memory once.
      lastContent = liveContent;
      status = { reloads, reloadFailures };
      return;
    }
    // The invalid content was reported already, or the missing file was never there.
    if (timesSeen > confirmations) return;
    if (content.files === undefined && (timesSeen < confirmations || (content.isMissing && liveContent === undefined)))
      return;
    let value: T;
    try {
      value = await parse(content);
    } catch (error) {
      if (timesSeen < confirmations) return;
      const { message } = error as Error;
      status = { reloads, reloadFailures: reloadFailures + 1, lastFailure: message };
      return onFailure(message);
    }
    status = { reloads: reloads + (liveContent === undefined ? 0 : 1), reloadFailures };
    liveContent = content;
    onLive(value, status.reloads);
  }

  return {
    look,
    lookNow,
    status: (): LiveFileStatus => status,
    close(): void {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}

/** The text includes ctime and inode. `cp -p` and mounted secrets keep size and mtime, but change one of these two. */
function statTextOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`;
}
