// Long computations as generators that yield often: run at once where no request waits, or in slices of a few
// milliseconds between which the event loop serves requests.

export type Sliced<T> = Generator<undefined, T>;

export function atOnce<T>(work: Sliced<T>): T {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}

/** How long a request may wait for a slice. */
const SLICE_MS = 8;

export async function inSlices<T>(work: Sliced<T>, sliceMs = SLICE_MS): Promise<T> {
  for (;;) {
    const end = performance.now() + sliceMs;
    do {
      const step = work.next();
      if (step.done) return step.value;
    } while (performance.now() < end);
    await new Promise((resume) => setImmediate(resume));
  }
}
