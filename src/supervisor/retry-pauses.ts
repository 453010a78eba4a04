// How long to wait between tries of what may mend itself without a change of the folder, because a database was down and
// the code is sound: short at first, then ever longer, and never so often that the tries cost much. It knows no clock.

export interface RetryPauses {
  /** Milliseconds to wait now. @param took milliseconds of the try that was just made; 0: none was */
  next(took: number): number;
  /** Tries have come to nothing although they looked well: from now on they are rarer. */
  rarer(): void;
  reset(): void;
}

const FIRST = 5000;
const LONGEST = 60_000;
/** Code that hangs its process burns a core for as long as a try lasts. */
const COST_FACTOR = 30;
const RARER_FACTOR = 4;
const RAREST = 3_600_000;

export function createRetryPauses(): RetryPauses {
  let pause = FIRST;
  let longest = LONGEST;
  return {
    next(took) {
      const wait = Math.max(pause, took * COST_FACTOR);
      pause = Math.min(longest, pause * 2);
      return wait;
    },
    rarer() {
      longest = Math.min(RAREST, longest * RARER_FACTOR);
      pause = longest;
    },
    reset() {
      pause = FIRST;
      longest = LONGEST;
    },
  };
}
