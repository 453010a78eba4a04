// Gathers log lines and writes them to a file descriptor in few writes. A line is written whole or not at all, also
// when several processes write to the same pipe. A reader that stops reading delays neither requests nor the end of the
// process.
import { fstatSync, type Stats, write, writeSync } from 'node:fs';
import type { LineSink } from './log.ts';
import { cutLine } from './log-line.ts';
import { reopenWithoutWaiting, stderrUnblocker } from './node-internals.ts';

/** The longest write that a pipe keeps in one piece (POSIX PIPE_BUF). No line is longer. */
const PIPE_BUF = 4096;
/** The longest write to a socket. Linux keeps 32 KiB in one piece. */
const SOCKET_BATCH = 16 * 1024;
/** The longest write to a file. Each goes through another thread, which costs 50 us of CPU time whatever its length. */
const BATCH = 64 * 1024;
/** Bytes that one UTF-16 unit takes in UTF-8. */
const MOST_BYTES = 3;
/** Milliseconds that a line may wait for others. */
const LINGER = 50;
/** Milliseconds until a full pipe is tried again: at 64 KiB a try, 13 MB a second. */
const RETRY = 5;
/** Bytes that are held while nobody reads. Lines beyond that are counted and dropped. */
const MAX_HELD = 8 * 1024 * 1024;
/** Milliseconds that `close` waits for a reader: without any progress, and altogether. */
const PATIENCE = 200;
const MOST_PATIENCE = 1000;

export interface LogWriter extends LineSink {
  /** Writes whole lines of another process as they are. */
  pass(lines: string): void;
  /** True where a process that inherits the descriptor can make a write to it wait. */
  readonly isShared: boolean;
  /**
   * Writes all held lines before it returns, or as many as are read within a second; the process ends next. Lines keep
   * their order, except in a file: a batch that another thread is writing may land behind them.
   */
  close(): void;
  /** Lines that were dropped since the start because nobody read fast enough. */
  droppedLines(): number;
}

export function createLogWriter(fd: number): LogWriter {
  const target = openTarget(fd);
  /** Whole lines, at most a batch each. */
  const queue: string[] = [];
  let current = '';
  let currentBytes = 0;
  let held = 0;
  let dropped = 0;
  let reported = 0;
  let buffer = Buffer.alloc(0);
  /** The batch that is being written, and how many of its bytes are. */
  let batch = buffer;
  let from = 0;
  /** Another thread is writing, or the pipe is full. */
  let isWaiting = false;
  let timer: NodeJS.Timeout | undefined;

  /** @param most bytes; a longer line is cut */
  function hold(lines: string, most = Number.POSITIVE_INFINITY): void {
    if (held > MAX_HELD) {
      dropped += lines.split('\n').length - 1;
      return;
    }
    let bytes = Buffer.byteLength(lines);
    if (bytes > most) {
      lines = cutLine(lines, most);
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

  /** One batch is written at a time, so they share a buffer: a new one for each costs more than to fill it. */
  function takeBatch(): boolean {
    reportDropped();
    const text = queue.shift();
    if (text === undefined) return false;
    const room = text.length * MOST_BYTES;
    if (buffer.length < room) buffer = Buffer.allocUnsafeSlow(room);
    batch = buffer.subarray(0, buffer.write(text));
    from = 0;
    held -= batch.length;
    return true;
  }

  function pump(): void {
    while (!isWaiting && (from < batch.length || takeBatch())) {
      if (target.isPatient) writeElsewhere();
      else if (!writeHere()) waitForReader();
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

  /**
   * Returns false when nothing more fits. Any other error (the reader is gone, the disk is full) drops this batch
   * alone.
   */
  function writeHere(): boolean {
    try {
      target.forbidWaiting?.();
      from += writeSync(target.fd, batch, from);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return false;
      from = batch.length;
    }
    return true;
  }

  function writeElsewhere(): void {
    isWaiting = true;
    write(target.fd, batch, from, (error, written) => {
      from = error === null ? from + written : batch.length;
      resume();
    });
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
    // Another thread finishes its batch: a file does not keep it waiting, and Node ends no process before its threads.
    if (target.isPatient) from = batch.length;
    const end = Date.now() + MOST_PATIENCE;
    for (let patience = Date.now() + PATIENCE; from < batch.length || takeBatch(); ) {
      if (writeHere()) patience = Date.now() + PATIENCE;
      else if (Date.now() > Math.min(patience, end)) return;
      else pause(RETRY);
    }
  }

  return {
    write(line) {
      hold(line, target.longest);
      timer ??= setTimeout(flush, LINGER).unref();
    },
    pass(lines) {
      hold(lines);
      flush();
    },
    flush,
    close,
    droppedLines: () => dropped,
    isShared: target.forbidWaiting !== undefined,
  };
}

interface Target {
  readonly fd: number;
  /** Bytes that a line may have, and a write. */
  readonly longest: number;
  readonly batch: number;
  /** A write may wait, so another thread makes it. Otherwise a write that would wait fails with EAGAIN. */
  readonly isPatient: boolean;
  /** Makes the next write fail where it would wait; absent where writes to `fd` never wait. */
  readonly forbidWaiting?: (() => void) | undefined;
}

function openTarget(fd: number): Target {
  const file = { fd, longest: PIPE_BUF, batch: BATCH, isPatient: true };
  const kind = statOf(fd);
  if (kind === undefined || !(kind.isSocket() || kind.isCharacterDevice() || kind.isFIFO())) return file;
  const impatient = reopen(fd) ?? shareImpatiently(fd);
  if (impatient === undefined) return file;
  // A terminal can be stopped, too. Where /proc is missing, libuv has opened it again for this process. Its lines are
  // for people, so they are never cut.
  if (kind.isCharacterDevice())
    return { ...file, fd: impatient.fd, longest: Number.POSITIVE_INFINITY, isPatient: false };
  return { ...file, ...impatient, batch: kind.isSocket() ? SOCKET_BATCH : PIPE_BUF, isPatient: false };
}

function statOf(fd: number): Stats | undefined {
  try {
    return fstatSync(fd);
  } catch {
    // The descriptor is closed.
    return undefined;
  }
}

type Impatient = Pick<Target, 'fd' | 'forbidWaiting'>;

/**
 * A blocking write to a pipe that nobody reads would hang its thread, and Node waits for all its threads when the
 * process ends. So O_NONBLOCK is needed. That flag belongs to the open file description, which every process shares
 * that inherited the descriptor. So the file is opened again, which gives this process a description of its own.
 */
function reopen(fd: number): Impatient | undefined {
  const ownFd = reopenWithoutWaiting(fd);
  return ownFd === undefined ? undefined : { fd: ownFd };
}

/**
 * Sets O_NONBLOCK for all who share the descriptor, and again before each write: libuv clears the flag when it starts a
 * process that inherits the descriptor, and Node clears it when a process ends that found it clear. So the log may be
 * opened before or after workers are started, and the end of the supervisor leaves the flag as it was. A process can
 * still clear it in the microseconds before a write. That is why nobody shares the descriptor with the supervisor
 * (worker-output.ts).
 */
function shareImpatiently(fd: number): Impatient | undefined {
  const forbidWaiting = fd === 2 ? stderrUnblocker() : undefined;
  return forbidWaiting && { fd, forbidWaiting };
}

function pause(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}
