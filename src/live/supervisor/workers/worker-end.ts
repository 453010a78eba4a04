// The reason why a worker ended, for the log. A process that ends by a signal cannot give a reason itself.
import type { ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { attempt } from '../../../base/failure.ts';
import type { Heap } from '../../../base/worker-note.ts';

type ProcessEnd = Pick<ChildProcess, 'exitCode' | 'signalCode'>;

/** @param heap the heap of the worker at its last note, which is a quarter of a second old if its event loop turned */
export function describeEnd({ exitCode, signalCode }: ProcessEnd, heap?: Heap): string {
  if (signalCode === null) return `it ended the process with exit code ${exitCode}${describeFolder()}`;
  const cause = SIGNAL_CAUSES[signalCode];
  const text = `it was ended by ${signalCode}${cause === undefined ? '' : `, ${cause}`}`;
  return signalCode === 'SIGABRT' && heap !== undefined ? `${text}; ${describeHeap(heap)}` : text;
}

/** No worker can start in a folder that is gone, such as that of an old release. */
function describeFolder(): string {
  // Node keeps the path since the settings were read.
  const folder = process.cwd();
  // The permission model may refuse the look.
  return attempt(() => existsSync(folder), true)
    ? ''
    : `; its working folder ${folder} is gone: start the service in a folder that stays`;
}

/** Describes a worker whose event loop did not turn. Near the limit of the heap, V8 only collects garbage. */
export function describeBlock(seconds: number, heap?: Heap): string {
  const text = `its event loop did not turn for ${seconds} s`;
  const isNearlyFull = heap !== undefined && heap.used > NEARLY_FULL * heap.limit;
  return isNearlyFull ? `${text}, because its heap was full; ${describeHeap(heap)}` : text;
}

/** The part of the limit from which V8 spends most of its time on collecting garbage. */
const NEARLY_FULL = 0.85;
const MEGABYTE = 1024 * 1024;

function describeHeap({ used, limit }: Heap): string {
  const [usedMegabytes, limitMegabytes] = [used, limit].map((bytes) => Math.round(bytes / MEGABYTE));
  return `at its last note, ${usedMegabytes} of ${limitMegabytes} MiB of heap were used (--max-old-space-size)`;
}

const SIGNAL_CAUSES: Readonly<Record<string, string>> = {
  SIGKILL: 'which the service did not send: mostly the kernel sends it, for want of memory',
  SIGABRT: 'as V8 does when the heap is full, and native code when it finds a mistake',
  SIGSEGV: 'a crash of native code',
  SIGBUS: 'a crash of native code',
  SIGILL: 'a crash of native code',
  SIGFPE: 'a crash of native code',
};
