// Writes log lines to a file descriptor, many in one write (a batch). Each line is written as a whole or not at all,
// also when several processes write to the same pipe. A reader that stops reading delays neither requests nor the end
// of the process.
import { fstatSync, write, writeSync } from 'node:fs';
import { attempt, errorCode } from './failure.ts';
import { cutLine } from './log-line.ts';
import { reopenWithoutWaiting, stderrUnblocker } from './node-internals.ts';
import { blockThread } from './time.ts';

/** Bytes of the longest write that a pipe does not split (POSIX). Longer lines are cut. */
const PIPE_BUF = 4096;
/** Bytes of the longest write to a socket. Linux does not split a write of up to 32 KiB. */
const MAX_SOCKET_WRITE = 16 * 1024;
/** Bytes of the longest write to a file. Each write passes through another thread, which costs 50 µs of CPU time. */
const MAX_FILE_WRITE = 64 * 1024;
/** Maximum milliseconds that a line waits for other lines to join its batch. */
const MAX_LINGER = 50;
/** Milliseconds before a write to a full pipe is retried. A try writes up to 64 KiB, so 13 MB a second are possible. */
const RETRY_DELAY = 5;
/** Bytes that may wait to be written. Above this limit, further lines are dropped and counted. */
const MAX_WAITING_BYTES = 8 * 1024 * 1024;
/** Milliseconds that `close` waits for a reader that reads nothing. */
const CLOSE_STALL_LIMIT = 200;
const CLOSE_TIME_LIMIT = 1000;

export type LogWriter = ReturnType<typeof createLogWriter>;

export function createLogWriter(fd: number) {
  const target = openTarget(fd);
  const queue: string[] = [];
  let openBatch = '';
  let openBatchBytes = 0;
  /** The bytes of `openBatch` and of `queue`. */
  let waitingBytes = 0;
  let droppedLines = 0;
  /** How many of the dropped lines a line `log-lines-dropped` has counted already. */
  let reportedLines = 0;
  let batch: Uint8Array = Buffer.alloc(0);
  let writtenBytes = 0;
  /** True while another thread writes, or while the pipe is full. */
  let isWaiting = false;
  let lingerTimer: NodeJS.Timeout | undefined;

  function add(lines: string): void {
    if (waitingBytes > MAX_WAITING_BYTES) {
      droppedLines += lines.split('\n').length - 1;
      return;
    }
    const bytes = Buffer.byteLength(lines);
    if (openBatchBytes + bytes > target.maxWriteBytes) flush();
    openBatch += lines;
    openBatchBytes += bytes;
    waitingBytes += bytes;
  }

  function closeBatch(): void {
    clearTimeout(lingerTimer);
    lingerTimer = undefined;
    if (openBatch !== '') queue.push(openBatch);
    openBatch = '';
    openBatchBytes = 0;
  }

  function flush(): void {
    closeBatch();
    writeBatches();
  }

  function takeBatch(): boolean {
    reportDropped();
    const text = queue.shift();
    if (text === undefined) return false;
    batch = Buffer.from(text);
    writtenBytes = 0;
    waitingBytes -= batch.length;
    return true;
  }

  function writeBatches(): void {
    while (!isWaiting && (writtenBytes < batch.length || takeBatch())) {
      if (target.mayBlock) writeInThread();
      else if (!writeNow()) {
        isWaiting = true;
        setTimeout(resume, RETRY_DELAY).unref();
      }
    }
  }

  function resume(): void {
    isWaiting = false;
    writeBatches();
  }

  /** Returns false when the pipe is full. Any other error (the reader is gone, the disk is full) drops this batch. */
  function writeNow(): boolean {
    try {
      target.setNonBlocking?.();
      writtenBytes += writeSync(target.fd, batch, writtenBytes);
    } catch (error) {
      if (errorCode(error) === 'EAGAIN') return false;
      writtenBytes = batch.length;
    }
    return true;
  }

  function writeInThread(): void {
    isWaiting = true;
    const sentBatch = batch;
    write(target.fd, sentBatch, writtenBytes, (error, bytes) => {
      // `close` has left this batch to the thread.
      if (sentBatch !== batch) return;
      writtenBytes = error === null ? writtenBytes + bytes : sentBatch.length;
      resume();
    });
  }

  /** Adds a line about dropped lines to the queue, as soon as the queue has room again. */
  function reportDropped(): void {
    if (droppedLines === reportedLines || waitingBytes > MAX_WAITING_BYTES / 2) return;
    const time = new Date().toISOString();
    const lines = droppedLines - reportedLines;
    const line = `${JSON.stringify({ time, level: 'warn', event: 'log-lines-dropped', pid: process.pid, lines })}\n`;
    reportedLines = droppedLines;
    queue.push(line);
    waitingBytes += line.length;
  }

  /**
   * Writes all waiting lines, and gives up after a second. Called just before the process ends. The lines keep their
   * order, with one exception: in a file, a batch that another thread is still writing may arrive after later lines.
   */
  function close(): void {
    closeBatch();
    // A thread always finishes its batch: a write to a file does not block for long, and Node waits for it at exit.
    if (target.mayBlock && isWaiting) {
      batch = Buffer.alloc(0);
      writtenBytes = 0;
      isWaiting = false;
    }
    const deadline = performance.now() + CLOSE_TIME_LIMIT;
    for (let stallEnd = performance.now() + CLOSE_STALL_LIMIT; writtenBytes < batch.length || takeBatch(); ) {
      if (writeNow()) stallEnd = performance.now() + CLOSE_STALL_LIMIT;
      else if (performance.now() > Math.min(stallEnd, deadline)) return;
      else blockThread(RETRY_DELAY);
    }
  }

  return {
    write(line: string): void {
      add(Buffer.byteLength(line) > PIPE_BUF ? cutLine(line, PIPE_BUF) : line);
      lingerTimer ??= setTimeout(flush, MAX_LINGER).unref();
    },
    /** Writes text of any length at once and uncut: lines of other processes, or lines for people. */
    pass(lines: string): void {
      add(lines);
      flush();
    },
    flush,
    close,
    /** Returns how many lines were dropped since the start, because nobody read the log fast enough. */
    droppedLines: () => droppedLines,
    /** True when a process that inherits the descriptor could make the writes of all others wait (see `openTarget`). */
    isShared: target.setNonBlocking !== undefined,
  };
}

interface Target {
  readonly fd: number;
  readonly maxWriteBytes: number;
  /** True when a write may block, so that another thread must make it. Else such a write fails with EAGAIN. */
  readonly mayBlock: boolean;
  /** Called before each write, so that the write fails with EAGAIN instead of blocking. Absent when not needed. */
  readonly setNonBlocking?: (() => void) | undefined;
}

function openTarget(fd: number): Target {
  const file = { fd, maxWriteBytes: MAX_FILE_WRITE, mayBlock: true };
  const kind = attempt(() => fstatSync(fd), undefined);
  if (kind === undefined || !(kind.isSocket() || kind.isCharacterDevice() || kind.isFIFO())) return file;
  const maxWriteBytes = kind.isSocket() ? MAX_SOCKET_WRITE : PIPE_BUF;
  // A blocking write hangs its thread when nobody reads the pipe or Ctrl-S stops the terminal, and Node waits for its
  // threads at exit. So the target is opened again with O_NONBLOCK. Setting this flag on the descriptor itself would
  // also change the writes of other processes that inherited the descriptor.
  const ownFd = reopenWithoutWaiting(fd);
  if (ownFd !== undefined) return { fd: ownFd, maxWriteBytes, mayBlock: false };
  // A socket cannot be opened again. The flag is set before each write, because libuv clears the flag when it starts a
  // process that inherits the descriptor. Another process can still clear the flag in the microseconds before a write.
  // So workers do not share the descriptor (worker-output.ts). Node restores the flag at the end of the process.
  const setNonBlocking = fd === 2 ? stderrUnblocker() : undefined;
  if (setNonBlocking === undefined) return file;
  // On a system without /proc, libuv has already reopened a terminal for this process.
  return { fd, maxWriteBytes, mayBlock: false, ...(!kind.isCharacterDevice() && { setNonBlocking }) };
}
