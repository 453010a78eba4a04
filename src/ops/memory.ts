// Reads the resident memory of this process. Node reads the number from a file, which fails when the process has no
// free file descriptor. Then the last value is returned, because an exception in the timer of the metrics would mark
// the worker as faulty.

/** @returns a function that returns bytes; 0 when no read has succeeded yet */
export function createMemoryReader(read: () => number = process.memoryUsage.rss): () => number {
  let lastBytes = 0;
  return () => {
    try {
      lastBytes = read();
    } catch {
      // The next call reads the memory again.
    }
    return lastBytes;
  };
}
