// The resident memory of this process. Node reads it from a file, which fails where no descriptor is left; then the last value is
// told again, for a worker that throws in the timer of its metrics would be replaced.

/** Bytes; 0 when it could never be read. */
export function createMemoryReader(read: () => number = process.memoryUsage.rss): () => number {
  let last = 0;
  return () => {
    try {
      last = read();
    } catch {
      // The same again in a second.
    }
    return last;
  };
}
