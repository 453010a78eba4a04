// Where log lines go: gathered, and written to a file descriptor in as few writes as their readers allow. A line is
// written whole or not at all, whatever several processes write to the same pipe at the same time.
import { fstatSync, write, writeSync } from 'node:fs';
import type { DeferringSink } from './log.ts';

/** A write to a pipe is only then one piece when it is no longer than this (POSIX PIPE_BUF). */
const PIPE_BUF = 4096;
/** A write costs a turn through another thread, 50 us of CPU time whatever its length: four times as long, a quarter as many. */
const BATCH = 64 * 1024;
/** Of one UTF-16 unit in UTF-8. */
const MOST_BYTES = 3;
/** Milliseconds a line may wait for company. */
const LINGER = 50;
/** Bytes held while nobody reads; what comes after is counted and dropped, so that a stuck reader stops nothing. */
const MAX_HELD = 8 * 1024 * 1024;

export interface LogWriter extends DeferringSink {
  /** Writes all that is held before it returns: for the end of the process. */
  close(): void;
}

export function createLogWriter(fd: number): LogWriter {
  const batch = isPipe(fd) ? PIPE_BUF : BATCH;
  /** Whole lines, at most a batch each (a longer line stands alone). */
  let queue: string[] = [];
  let current = '';
  let held = 0;
  let dropped = 0;
  let writing = false;
  let buffer = Buffer.alloc(0);
  let timer: NodeJS.Timeout | undefined;
  let deferred: ((write: (line: string) => void) => void) | undefined;

  function write_(line: string): void {
    composeDeferred();
    add(line);
    if (current.length >= batch) flush();
    else timer ??= setTimeout(flush, LINGER).unref();
  }

  function defer(compose: (write: (line: string) => void) => void): void {
    composeDeferred();
    deferred = compose;
    timer ??= setTimeout(flush, LINGER).unref();
  }

  function composeDeferred(): void {
    const compose = deferred;
    deferred = undefined;
    compose?.(add);
  }

  function add(line: string): void {
    if (held > MAX_HELD) {
      dropped++;
      return;
    }
    held += line.length;
    if (current.length + line.length > batch) closeBatch();
    current += line;
  }

  function closeBatch(): void {
    if (current === '') return;
    queue.push(current);
    current = '';
  }

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    composeDeferred();
    closeBatch();
    if (!writing) next();
  }

  /** One write is under way at a time, so one buffer does for all: a new one for each batch costs more than to fill it. */
  function encode(text: string): Buffer {
    const room = text.length * MOST_BYTES;
    if (buffer.length < room) buffer = Buffer.allocUnsafeSlow(room);
    return buffer.subarray(0, buffer.write(text));
  }

  function next(): void {
    const text = queue.shift();
    if (text === undefined) return;
    writing = true;
    const bytes = encode(text);
    const attempt = (from: number): void => {
      write(fd, bytes, from, (error, written) => {
        if (error?.code === 'EAGAIN') {
          setTimeout(attempt, 10, from);
          return;
        }
        if (!error && from + written < bytes.length) return attempt(from + written);
        // Any other error (the reader is gone, the disk is full) costs this batch and nothing else.
        held -= text.length;
        writing = false;
        reportDropped();
        next();
      });
    };
    attempt(0);
  }

  function reportDropped(): void {
    if (dropped === 0 || held > MAX_HELD / 2) return;
    queue.push(`${JSON.stringify({ time: new Date().toISOString(), level: 'warn', event: 'log-lines-dropped', lines: dropped })}\n`);
    dropped = 0;
  }

  function close(): void {
    clearTimeout(timer);
    composeDeferred();
    closeBatch();
    const text = queue.join('');
    queue = [];
    try {
      writeAllSync(fd, Buffer.from(text));
    } catch {
      // Nobody is left to read the log, and nobody to be told.
    }
  }

  return { write: write_, defer, flush, close };
}

function isPipe(fd: number): boolean {
  try {
    const stat = fstatSync(fd);
    return stat.isFIFO() || stat.isSocket();
  } catch {
    return false;
  }
}

/** A full non-blocking pipe is waited for, a second at most. */
function writeAllSync(fd: number, bytes: Buffer): void {
  let from = 0;
  for (const end = Date.now() + 1000; from < bytes.length; ) {
    try {
      from += writeSync(fd, bytes, from);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || Date.now() > end) throw error;
    }
  }
}
