// A back-off says when a failed attempt is made again although nothing has changed: a database may be back. The pause
// doubles with each failure, and grows with the duration of the attempt, so that attempts never cost much.

export interface BackoffOptions {
  /** Milliseconds of the first pause, and of the longest that comes by doubling. */
  readonly firstPause: number;
  readonly maxPause: number;
  /** Number of failures that have no pause. Default: 0. */
  readonly freeFailures?: number;
  /** Milliseconds without a failure after which earlier failures no longer count. Default: they always count. */
  readonly forgetAfter?: number;
}

/** Minimum ratio of a pause to the duration of the attempt, because code that hangs keeps a core busy. */
const PAUSE_PER_ATTEMPT = 30;

export class Backoff {
  readonly #options: BackoffOptions;
  readonly #now: () => number;
  #failures = 0;
  #lastFailureAt = Number.NEGATIVE_INFINITY;
  #dueAt = 0;

  /** @param now returns milliseconds on a clock that never goes back */
  constructor(options: BackoffOptions, now: () => number) {
    this.#options = options;
    this.#now = now;
  }

  /** @param duration milliseconds of the attempt */
  recordFailure(duration = 0): void {
    const { firstPause, maxPause, freeFailures = 0, forgetAfter = Number.POSITIVE_INFINITY } = this.#options;
    const now = this.#now();
    if (now - this.#lastFailureAt > forgetAfter) this.#failures = 0;
    this.#lastFailureAt = now;
    const doublings = this.#failures++ - freeFailures;
    const pause = doublings < 0 ? 0 : Math.min(maxPause, firstPause * 2 ** doublings);
    this.#dueAt = now + Math.max(pause, duration * PAUSE_PER_ATTEMPT);
  }

  reset(): void {
    this.#failures = 0;
    this.#dueAt = 0;
  }

  /** Milliseconds until the next attempt is due: 0 without a failure. */
  get remaining(): number {
    return Math.max(0, this.#dueAt - this.#now());
  }
}
