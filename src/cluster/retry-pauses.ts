// The pauses between tries of what may mend itself without a change of the folder, because a database was down and not the
// code wrong: short at first, then ever longer. It knows times, nothing of what is tried.

export const FIRST_PAUSE = 5000;
const LONGEST_PAUSE = 60_000;

/** Milliseconds to the try after the next. */
export function longerPause(pause: number): number {
  return Math.min(LONGEST_PAUSE, pause * 2);
}

export interface RetryPauses {
  /** Milliseconds until these may be tried; names that were not the last ones are in for the first pause. */
  remaining(names: readonly string[]): number;
  /** They were tried just now. */
  tried(): void;
}

export function createRetryPauses(now: () => number = () => performance.now()): RetryPauses {
  let known = '';
  let pause = FIRST_PAUSE;
  let due = 0;
  return {
    remaining(names) {
      const text = JSON.stringify([...names].sort());
      if (text !== known) {
        known = text;
        pause = FIRST_PAUSE;
        due = now() + pause;
      }
      return Math.max(0, due - now());
    },
    tried() {
      pause = longerPause(pause);
      due = now() + pause;
    },
  };
}
