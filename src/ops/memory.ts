// The resident memory of this process. Node reads it from a file, which fails when the process is out of descriptors;
// then the last value is reported again, since a throw in the timer of the metrics would make the worker faulty.

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
