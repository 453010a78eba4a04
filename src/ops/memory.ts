// Reads the resident memory of this process. Node reads the number from a file, which fails when the process has no
// free file descriptor. In that case the reader returns the last value. An exception in the metrics timer would make
// the worker faulty.

/** @returns a function that returns bytes, or 0 when no read has succeeded yet */
export function createMemoryReader(read: () => number = process.memoryUsage.rss): () => number {
  let last = 0;
  return () => {
    try {
      last = read();
    } catch {
      // The read has failed, so the last value is returned. The next report reads the memory again.
    }
    return last;
  };
}
