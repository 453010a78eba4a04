// Reads the resident memory. Node reads it from a file, which fails without a free descriptor. Then the last value is
// returned, because an exception in the timer of the metrics would mark the worker as faulty.
import { attempt } from '../../base/failure.ts';

/** @returns a function that returns bytes; 0 when no read has succeeded yet */
export function createMemoryReader(read: () => number = process.memoryUsage.rss): () => number {
  let lastBytes = 0;
  return () => {
    lastBytes = attempt(read, lastBytes);
    return lastBytes;
  };
}
