// Reads how much of its heap this process uses, and the limit at which V8 aborts it. The limit in the statistics also
// counts the room of young objects, which a full heap does not use: 48 to 192 MiB, by the version of Node.
import { getHeapStatistics } from 'node:v8';
import type { Heap } from './worker-note.ts';

const OLD_SPACE_SIZE = /--max[-_]old[-_]space[-_]size=(\d+)/g;
const MEGABYTE = 1024 * 1024;
let optionLimit: number | undefined;

export function readHeap(): Heap {
  optionLimit ??= readOption();
  const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
  return { used, limit: optionLimit === 0 ? limit : Math.min(limit, optionLimit) };
}

/** @returns bytes; 0 without the option. The last option counts, and the command line comes after NODE_OPTIONS. */
function readOption(): number {
  const options = [process.env.NODE_OPTIONS, ...process.execArgv].join(' ');
  return Number(Array.from(options.matchAll(OLD_SPACE_SIZE)).at(-1)?.[1] ?? 0) * MEGABYTE;
}
