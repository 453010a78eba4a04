// Keeps the content of files live while people and programs change them: in place, by rename, by a swapped link, in a
// mounted secret. File events do not reach mounted volumes, so the files are polled. Good content is live at once.
// Anything else must be found several times in a row; then it is reported, once, and the last good content stays. The
// caller knows what the bytes mean.
import { type BigIntStats, readFileSync, type Stats, statSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { hash } from './builtins.ts';
import { describeFailure, errorCode } from './failure.ts';

/** What the files hold, or why they cannot be read. Two keys are equal exactly when two contents are. */
export type Content =
  | { readonly key: string; readonly files: readonly Buffer[] }
  | {
      readonly key: string;
      readonly files?: undefined;
      readonly path: string;
      readonly reason: string;
      readonly isMissing: boolean;
    };

/** Node can wait for ever for a FIFO's writer, so only regular files are opened. */
function check(path: string, stats: Stats | BigIntStats, mostBytes: number): void {
  if (!stats.isFile()) throw Object.assign(new Error('it is not a regular file'), { path });
  if (stats.size > mostBytes) throw Object.assign(new Error(`it is larger than ${mostBytes} bytes`), { path });
}

export function readContent(paths: readonly string[], mostBytes: number): Content {
  try {
    for (const path of paths) check(path, statSync(path), mostBytes);
    return contentOf(paths.map((path) => readFileSync(path)));
  } catch (error) {
    return failureOf(error, paths);
  }
}

/** Short texts are their own keys: a process with empty tables need not load node:crypto. */
function contentOf(files: readonly Buffer[]): Content {
  const keys = files.map((bytes) => (bytes.length < 32 ? bytes.toString('latin1') : hash('sha256', bytes, 'latin1')));
  return { key: JSON.stringify(keys), files };
}

function failureOf(error: unknown, paths: readonly string[]): Content {
  const isMissing = errorCode(error) === 'ENOENT';
  const path = String((error as { path?: unknown }).path ?? paths[0]);
  const reason = isMissing ? 'there is no such file' : describeFailure(error);
  return { key: isMissing ? 'missing' : `${path}: ${reason}`, path, reason, isMissing };
}

export interface LiveFileOptions<T> {
  readonly paths: readonly string[];
  /** Of each file. A larger one is not read. */
  readonly mostBytes: number;
  readonly pollMs: number;
  /** How many looks in a row must find the same content before it counts, unless it is good. */
  readonly confirmations: number;
  /**
   * The key of what is live to begin with. `undefined`: nothing is, and missing files are no failure until there were
   * some.
   */
  readonly liveKey: string | undefined;
  /** @throws Error one line, when the content is bad */
  readonly parse: (content: Content) => T | Promise<T>;
  readonly onLive: (value: T, reloads: number) => void;
  readonly onFailure: (reason: string) => void;
  /** Monotonic milliseconds. */
  readonly clock?: () => number;
}

export interface LiveFileStatus {
  readonly reloads: number;
  readonly reloadFailures: number;
  /** Why the content of the files is not live; absent when it is. */
  readonly lastFailure?: string;
}

export interface LiveFile {
  /**
   * Resolves after a look that began after the call. Callers share a look, and looks keep a distance. Never rejects.
   */
  look(): Promise<void>;
  status(): LiveFileStatus;
  close(): void;
}

/** Files up to here are read again and again, whatever their stat: some file systems keep no times. */
const SMALL = 64 * 1024;
/** Three polls of 250 ms: cheap enough, and often enough for the second that is promised. */
const REREAD_MS = 700;
/**
 * A second write within one tick of the file system's clock leaves the same stat (git calls such a file "racily
 * clean"). A write this long after a stat was first seen is in another tick: FAT's, the coarsest, takes 2 s. The
 * process's own clock measures it.
 */
const SETTLE_MS = 2500;
/** Looks on request keep this distance, so that made-up tokens cost next to nothing. */
const LOOK_MS = 50;

/** Never keeps the process alive. */
export function createLiveFile<T>(options: LiveFileOptions<T>): LiveFile {
  const {
    paths,
    mostBytes,
    pollMs,
    confirmations,
    parse,
    onLive,
    onFailure,
    clock = () => performance.now(),
  } = options;
  let { liveKey } = options;
  let suspectKey: string | undefined;
  let confirmed = 0;
  let status: LiveFileStatus = { reloads: 0, reloadFailures: 0 };
  let signature = '';
  let changedAt = 0;
  let readAt = 0;
  let lookedAt = Number.NEGATIVE_INFINITY;
  let closed = false;
  let running = Promise.resolve();
  let next: Promise<void> | undefined;
  let timer = setTimeout(poll, pollMs).unref();

  async function poll(): Promise<void> {
    await look();
    if (!closed) timer = setTimeout(poll, pollMs).unref();
  }

  /** Looks one after the other, so that no read that began earlier counts after a later one. */
  function look(): Promise<void> {
    next ??= running.then(async () => {
      const early = lookedAt + Math.min(LOOK_MS, pollMs) - clock();
      if (early > 0) await sleep(early);
      next = undefined;
      lookedAt = clock();
      const content = await readIfItMayDiffer();
      if (content !== undefined && !closed) await consider(content);
    });
    running = next;
    return next;
  }

  async function readIfItMayDiffer(): Promise<Content | undefined> {
    try {
      const stats = await Promise.all(paths.map((path) => stat(path, { bigint: true })));
      const now = clock();
      const current = stats.map(signatureOf).join();
      if (current !== signature) changedAt = now;
      else if (!isDue(now, stats)) return undefined;
      signature = current;
      readAt = now;
      for (const [index, path] of paths.entries()) check(path, stats[index] as BigIntStats, mostBytes);
      return contentOf(await Promise.all(paths.map((path) => readFile(path))));
    } catch (error) {
      signature = '';
      return failureOf(error, paths);
    }
  }

  /**
   * Whether to read although the stat is the same. A large file is read at growing distances, until its stat can be
   * trusted.
   */
  function isDue(now: number, stats: readonly BigIntStats[]): boolean {
    if (stats.every(({ size }) => size <= SMALL)) return now - changedAt <= SETTLE_MS || now - readAt >= REREAD_MS;
    return readAt - changedAt <= SETTLE_MS && now - readAt >= readAt - changedAt;
  }

  async function consider(content: Content): Promise<void> {
    const { reloads, reloadFailures } = status;
    confirmed = content.key === suspectKey ? confirmed + 1 : 1;
    suspectKey = content.key;
    if (content.key === liveKey) {
      status = { reloads, reloadFailures };
      return;
    }
    // Bad content stays bad until it changes.
    if (confirmed > confirmations) return;
    if (content.files === undefined && (confirmed < confirmations || (content.isMissing && liveKey === undefined)))
      return;
    let value: T;
    try {
      value = await parse(content);
    } catch (error) {
      if (confirmed < confirmations) return;
      const { message } = error as Error;
      status = { reloads, reloadFailures: reloadFailures + 1, lastFailure: message };
      return onFailure(message);
    }
    status = { reloads: reloads + (liveKey === undefined ? 0 : 1), reloadFailures };
    liveKey = content.key;
    onLive(value, status.reloads);
  }

  return {
    look,
    status: () => status,
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}

// ctime and inode: an edit that restores size and mtime (`cp -p`, a mounted secret) still differs in one of them.
function signatureOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return `${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`;
}
