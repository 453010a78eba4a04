// When the files that have not loaded are due to be tried again. What a trial is, and what comes of it, the supervisor knows.
import { createRetryPauses } from './retry-pauses.ts';

export interface Trials {
  /** Milliseconds until these may be tried; names that were not the last ones start anew. Infinite when there are none. */
  remaining(files: readonly string[]): number;
  /** They were tried. @param took milliseconds */
  tried(took: number): void;
  /** One of them loaded in a trial, and did not in the generation that was made for it. */
  futile(): void;
}

export function createTrials(now: () => number = () => performance.now()): Trials {
  const pauses = createRetryPauses();
  let known = '';
  let due = 0;
  return {
    remaining(files) {
      const text = [...files].sort().join('\n');
      if (text !== known) {
        known = text;
        pauses.reset();
        due = now() + pauses.next(0);
      }
      return files.length === 0 ? Number.POSITIVE_INFINITY : Math.max(0, due - now());
    },
    tried(took) {
      due = now() + pauses.next(took);
    },
    futile() {
      pauses.rarer();
      due = now() + pauses.next(0);
    },
  };
}
