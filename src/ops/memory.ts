// Reads the resident memory of this process. Node reads it from a file, which fails when the process has no free file
// descriptor. Then this returns the last value, because an exception in the metrics timer would make the worker faulty.

/** @returns a function that returns bytes, or 0 when no read has succeeded yet */
export function createMemoryReader(read: () => number = process.memoryUsage.rss): () => number {
  let last = 0;
  return () => {
    try {
      last = read();
    } catch {
      // The next report reads it again.
    }
    return last;
  };
}
