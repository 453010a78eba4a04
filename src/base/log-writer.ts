// Where log lines go: gathered, and written to a file descriptor in as few writes as their readers allow. A line is
// written whole or not at all, whatever several processes write to the same pipe at the same time; and a reader that stands
// still stops nothing, neither requests nor the end of the process.
import { constants, fstatSync, openSync, write, writeSync } from 'node:fs';
import type { LineSink } from './log.ts';
import { cutLine } from './log-line.ts';

/** A write to a pipe is only then one piece when it is no longer than this (POSIX PIPE_BUF). Nor is any line. */
const PIPE_BUF = 4096;
/** To a file: a write costs a turn through another thread, 50 us of CPU time whatever its length. */
const BATCH = 64 * 1024;
/** Of one UTF-16 unit in UTF-8. */
const MOST_BYTES = 3;
/** Milliseconds a line may wait for company. */
const LINGER = 50;
/** Milliseconds until a full pipe is tried again: at 64 KiB a try, 13 MB a second. */
const RETRY = 5;
/** Bytes held while nobody reads; what comes after is counted and dropped. */
const MAX_HELD = 8 * 1024 * 1024;
/** Milliseconds that the end of the process waits for a reader: without any progress, and at all. */
const PATIENCE = 200;
const MOST_PATIENCE = 1000;

export interface LogWriter extends LineSink {
  /** Writes all that is held before it returns, or as much as is read within a second: for the end of the process. */
  close(): void;
  /** Lines that were not written because nobody read fast enough, since the start. */
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
  let told = 0;
  let buffer = Buffer.alloc(0);
  /** The batch under way, and how much of it has been written. */
  let batch = buffer;
  let from = 0;
  /** A write is under way in another thread, or the pipe is full. */
  let isWaiting = false;
  let timer: NodeJS.Timeout | undefined;

  function write_(line: string): void {
    add(line);
    timer ??= setTimeout(flush, LINGER).unref();
  }

  function add(line: string): void {
    if (held > MAX_HELD) {
      dropped++;
      return;
    }
    let bytes = Buffer.byteLength(line);
    if (bytes > target.longest) {
      line = cutLine(line, target.longest);
      bytes = Buffer.byteLength(line);
    }
    held += bytes;
    if (currentBytes + bytes > target.batch) {
      closeBatch();
      pump();
    }
    current += line;
    currentBytes += bytes;
  }

  function closeBatch(): void {
    if (current === '') return;
    queue.push(current);
    current = '';
    currentBytes = 0;
  }

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    closeBatch();
    pump();
  }

  /** One write is under way at a time, so one buffer does for all: a new one for each batch costs more than to fill it. */
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
      if (target.isPatient) return writeElsewhere();
      if (!writeHere()) waitForReader();
    }
  }

  /** False when nothing more fits. Any other error (the reader is gone, the disk is full) costs this batch and nothing else. */
  function writeHere(): boolean {
    try {
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
      isWaiting = false;
      from = error === null ? from + written : batch.length;
      pump();
    });
  }

  function waitForReader(): void {
    isWaiting = true;
    setTimeout(() => {
      isWaiting = false;
      pump();
    }, RETRY).unref();
  }

  function reportDropped(): void {
    if (dropped === told || held > MAX_HELD / 2) return;
    const line = { time: new Date().toISOString(), level: 'warn', event: 'log-lines-dropped', pid: process.pid, lines: dropped - told };
    told = dropped;
    queue.push(`${JSON.stringify(line)}\n`);
    held += queue.at(-1)?.length ?? 0;
  }

  function close(): void {
    clearTimeout(timer);
    timer = undefined;
    closeBatch();
    // What another thread is writing is as good as written: a file does not keep it waiting.
    if (target.isPatient) from = batch.length;
    const end = Date.now() + MOST_PATIENCE;
    for (let patience = Date.now() + PATIENCE; from < batch.length || takeBatch(); ) {
      if (writeHere()) patience = Date.now() + PATIENCE;
      else if (Date.now() > Math.min(patience, end)) return;
      else pause(RETRY);
    }
  }

  return { write: write_, flush, close, droppedLines: () => dropped };
}

interface Target {
  readonly fd: number;
  /** Bytes that a line may have, and a write. */
  readonly longest: number;
  readonly batch: number;
  /** A write takes what it takes, so another thread does it. Else one that cannot be made at once fails with EAGAIN. */
  readonly isPatient: boolean;
}

function openTarget(fd: number): Target {
  const file = { fd, longest: PIPE_BUF, batch: BATCH, isPatient: true };
  try {
    const stat = fstatSync(fd);
    if (stat.isFIFO() || stat.isSocket()) return { ...file, fd: openImpatiently(fd), batch: PIPE_BUF, isPatient: false };
    // A terminal can be stopped, too. Its lines are for people.
    if (stat.isCharacterDevice()) return { ...file, fd: openImpatiently(fd), longest: Number.POSITIVE_INFINITY, isPatient: false };
  } catch {
    // Not open, or no such way to open it.
  }
  return file;
}

/**
 * A write that a reader keeps waiting would block its thread, and Node waits for all its threads when the process ends. The
 * descriptor is shared with every process that inherited it, so it is opened once more, for this process alone. Where that
 * is impossible (a socket, another user's pipe), Node's own stream for it turns waiting off for all; Node turns it on again
 * in the end, but only the process that found it on: the supervisor, since its log is opened before a worker is started.
 *
 * @throws Error when neither is possible
 */
function openImpatiently(fd: number): number {
  try {
    return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch (error) {
    if (fd !== 2 || process.stderr.writableLength !== 0) throw error;
    return fd;
  }
}

function pause(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}
