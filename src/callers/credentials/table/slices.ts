// Runs long computations, which are generators that yield often. A worker runs a computation in slices of a few
// milliseconds, and serves requests between two slices. A command runs the whole computation without a pause.

export type Sliced<T> = Generator<undefined, T>;

export function runAtOnce<T>(work: Sliced<T>): T {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}

/** The length of a slice in milliseconds. A request that arrives during a slice waits for the end of the slice. */
const SLICE_MS = 4;

export async function runInSlices<T>(work: Sliced<T>, sliceMs = SLICE_MS): Promise<T> {
  for (;;) {
    const sliceEnd = performance.now() + sliceMs;
    do {
      const step = work.next();
      if (step.done) return step.value;
    } while (performance.now() < sliceEnd);
    await new Promise((resume) => setImmediate(resume));
  }
}
