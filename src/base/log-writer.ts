// Writes log lines to a file descriptor, many in one write (a batch). Each line is written as a whole or not at all,
// also when several processes write to the same pipe. A reader that stops reading delays neither requests nor the end
// of the process.
import { fstatSync, type Stats, write, writeSync } from 'node:fs';
import type { LineSink } from './log.ts';
import { cutLine } from './log-line.ts';
import { reopenWithoutWaiting, stderrUnblocker } from './node-internals.ts';

/** The longest write that a pipe does not split (POSIX PIPE_BUF). No line is longer. */
const PIPE_BUF = 4096;
/** The longest write to a socket. Linux does not split 32 KiB. */
const SOCKET_BATCH = 16 * 1024;
/** The longest write to a file. Another thread makes it, which costs 50 µs of CPU time for any length. */
const FILE_BATCH = 64 * 1024;
/** The most bytes that one UTF-16 unit takes in UTF-8. */
const MAX_BYTES_PER_UNIT = 3;
/** Milliseconds that a line may wait for others to join its batch. */
const LINGER = 50;
/** Milliseconds before a write to a full pipe is retried. With 64 KiB a try, this writes 13 MB a second. */
const RETRY = 5;
/** The most bytes that wait to be written. Further lines are dropped and counted. */
const MAX_HELD = 8 * 1024 * 1024;
/** Milliseconds that `close` waits for a reader that reads nothing. */
const PATIENCE = 200;
/** Milliseconds that `close` waits in all. */
const MAX_PATIENCE = 1000;

export interface LogWriter extends LineSink {
  /** Writes lines of another process without a change. */
  pass(lines: string): void;
  /** Is true where another process that has the descriptor can make our writes wait. */
  readonly isShared: boolean;
  /**
   * Writes the lines that are held, within a second at most. Called just before the process ends. Lines keep their
   * order, except in a file: a batch that another thread is writing may arrive after them.
   */
  close(): void;
  /** Returns how many lines were dropped since the start, because they were not read fast enough. */
  droppedLines(): number;
}

export function createLogWriter(fd: number): LogWriter {
  const target = openTarget(fd);
  /** Finished batches that wait to be written. */
  const queue: string[] = [];
  /** The batch that still takes lines. */
  let current = '';
  let currentBytes = 0;
  /** Bytes of `current` and of the queue. */
  let held = 0;
  let dropped = 0;
  /** How many of the dropped lines were reported in the log. */
  let reported = 0;
  let buffer = Buffer.alloc(0);
  /** The batch that is being written. */
  let batch = buffer;
  /** How many bytes of `batch` are written. */
  let written = 0;
  /** Is true while another thread writes, or while the pipe is full. */
  let isWaiting = false;
  let timer: NodeJS.Timeout | undefined;

  /** @param maxBytes a longer line is cut */
  function hold(lines: string, maxBytes = Number.POSITIVE_INFINITY): void {
    if (held > MAX_HELD) {
      dropped += lines.split('\n').length - 1;
      return;
    }
    let bytes = Buffer.byteLength(lines);
    if (bytes > maxBytes) {
      lines = cutLine(lines, maxBytes);
      bytes = Buffer.byteLength(lines);
    }
    if (currentBytes + bytes > target.batch) flush();
    current += lines;
    currentBytes += bytes;
    held += bytes;
  }

  function closeBatch(): void {
    clearTimeout(timer);
    timer = undefined;
    if (current !== '') queue.push(current);
    current = '';
    currentBytes = 0;
  }

  function flush(): void {
    closeBatch();
    pump();
  }

  /** Makes the next batch of the queue the one to write. All batches share a buffer, because creating one is slow. */
  function takeBatch(): boolean {
    reportDropped();
    const text = queue.shift();
    if (text === undefined) return false;
    const size = text.length * MAX_BYTES_PER_UNIT;
    if (buffer.length < size) buffer = Buffer.allocUnsafeSlow(size);
    batch = buffer.subarray(0, buffer.write(text));
    written = 0;
    held -= batch.length;
    return true;
  }

  function pump(): void {
    while (!isWaiting && (written < batch.length || takeBatch())) {
      if (target.mayBlock) writeInThread();
      else if (!writeNow()) waitForReader();
    }
  }

  function waitForReader(): void {
    isWaiting = true;
    setTimeout(resume, RETRY).unref();
  }

  function resume(): void {
    isWaiting = false;
    pump();
  }

  /** Returns false when the pipe is full. Any other error (the reader is gone, the disk is full) drops this batch. */
  function writeNow(): boolean {
    try {
      target.unblock?.();
      written += writeSync(target.fd, batch, written);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return false;
      written = batch.length;
    }
    return true;
  }

  function writeInThread(): void {
    isWaiting = true;
    const own = batch;
    write(target.fd, own, written, (error, bytes) => {
      if (own !== batch) return;
      written = error === null ? written + bytes : own.length;
      resume();
    });
  }

  /** The thread finishes its batch, in its own buffer: a file does not block it, and Node waits for threads at exit. */
  function leaveBatchToThread(): void {
    buffer = Buffer.alloc(0);
    batch = buffer;
    written = 0;
    isWaiting = false;
  }

  function reportDropped(): void {
    if (dropped === reported || held > MAX_HELD / 2) return;
    const time = new Date().toISOString();
    const line = { time, level: 'warn', event: 'log-lines-dropped', pid: process.pid, lines: dropped - reported };
    reported = dropped;
    queue.push(`${JSON.stringify(line)}\n`);
    held += queue.at(-1)?.length ?? 0;
  }

  function close(): void {
    closeBatch();
    if (target.mayBlock && isWaiting) leaveBatchToThread();
    const end = Date.now() + MAX_PATIENCE;
    for (let patience = Date.now() + PATIENCE; written < batch.length || takeBatch(); ) {
      if (writeNow()) patience = Date.now() + PATIENCE;
      else if (Date.now() > Math.min(patience, end)) return;
      else pause(RETRY);
    }
  }

  return {
    write(line) {
      hold(line, target.maxLineBytes);
      timer ??= setTimeout(flush, LINGER).unref();
    },
    pass(lines) {
      hold(lines);
      flush();
    },
    flush,
    close,
    droppedLines: () => dropped,
    isShared: target.unblock !== undefined,
  };
}

interface Target {
  readonly fd: number;
  /** The most bytes of a line. */
  readonly maxLineBytes: number;
  /** The most bytes of a write. */
  readonly batch: number;
  /** A write may block, so another thread makes it. Otherwise a write that would block fails with EAGAIN. */
  readonly mayBlock: boolean;
  /** Makes the next write fail where it would block; absent where writes to `fd` never block. */
  readonly unblock?: (() => void) | undefined;
}

function openTarget(fd: number): Target {
  const file = { fd, maxLineBytes: PIPE_BUF, batch: FILE_BATCH, mayBlock: true };
  const kind = statOf(fd);
  if (kind === undefined || !(kind.isSocket() || kind.isCharacterDevice() || kind.isFIFO())) return file;
  const nonBlocking = reopen(fd) ?? unblockShared(fd);
  if (nonBlocking === undefined) return file;
  // A terminal can be stopped, too. Without /proc, libuv has reopened it for this process. Its lines are for people, so
  // none is cut.
  if (kind.isCharacterDevice())
    return { ...file, fd: nonBlocking.fd, maxLineBytes: Number.POSITIVE_INFINITY, mayBlock: false };
  return { ...file, ...nonBlocking, batch: kind.isSocket() ? SOCKET_BATCH : PIPE_BUF, mayBlock: false };
}

function statOf(fd: number): Stats | undefined {
  try {
    return fstatSync(fd);
  } catch {
    // The descriptor is closed.
    return undefined;
  }
}

type NonBlocking = Pick<Target, 'fd' | 'unblock'>;

/**
 * Opens the descriptor's file again with O_NONBLOCK. A blocking write to a pipe that is not read would hang its thread,
 * and Node waits for its threads at exit. The flag belongs to the open file description, which all processes that
 * inherited the descriptor share. Opening the file again gives this process a description of its own.
 */
function reopen(fd: number): NonBlocking | undefined {
  const ownFd = reopenWithoutWaiting(fd);
  return ownFd === undefined ? undefined : { fd: ownFd };
}

/**
 * Sets O_NONBLOCK for all processes that share the descriptor, before each write. libuv clears the flag when it starts
 * a process that inherits the descriptor. Node clears it at the end of a process that found it clear. So the log may be
 * opened before or after workers start, and the flag is as before when the supervisor has ended. Another process can
 * still clear the flag in the microseconds before a write, so workers do not share the descriptor (worker-output.ts).
 */
function unblockShared(fd: number): NonBlocking | undefined {
  const unblock = fd === 2 ? stderrUnblocker() : undefined;
  return unblock && { fd, unblock };
}

function pause(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}
