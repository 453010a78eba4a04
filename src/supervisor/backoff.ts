// How long to wait before the next replacement when workers keep dying: nothing at first, then ever longer. It knows
// times and counts, nothing of processes.

export interface Backoff {
  /** A worker died, or went faulty. */
  failed(): void;
  /** Milliseconds until the next try. */
  remaining(): number;
}

export interface BackoffOptions {
  /** That many may fail together, as when the kernel is out of memory, and are replaced at once. */
  readonly free: number;
  readonly now?: () => number;
}

const FIRST_DELAY = 100;
const LONGEST_DELAY = 5000;
/** A service without a failure for as long has recovered. */
const RECOVERED_AFTER = 15_000;

export function createBackoff({ free, now = () => performance.now() }: BackoffOptions): Backoff {
  let failures = 0;
  let last = Number.NEGATIVE_INFINITY;
  return {
    failed() {
      if (now() - last > RECOVERED_AFTER) failures = 0;
      failures++;
      last = now();
    },
    remaining() {
      if (failures <= free) return 0;
      const delay = Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** Math.min(10, failures - free - 1));
      return Math.max(0, last + delay - now());
    },
  };
}
