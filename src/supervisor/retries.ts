// Decides when a failed attempt is tried again although the folder has not changed. A retry makes sense because the
// cause may be gone: a database may be back. The pauses grow with each failure and with the duration of the attempt, so
// that attempts never cost much.

export type RetryKind = keyof typeof RULES;

interface Rule {
  /** Milliseconds of the first pause. Each further failure doubles the pause. */
  readonly first: number;
  /** Maximum of the pause, in milliseconds. */
  readonly longest: number;
  /** The pause is at least this many times as long as the attempt, because code that hangs keeps a core busy. */
  readonly pausePerAttempt: number;
  /** Milliseconds without a failure after which earlier failures no longer count. */
  readonly forgetAfter: number;
}

const FOREVER = Number.POSITIVE_INFINITY;

const RULES = {
  /** The retry of a generation (a load of the whole folder by new workers) that failed or lost a group. */
  generation: { first: 5000, longest: 60_000, pausePerAttempt: 30, forgetAfter: FOREVER },
  /** The retry of a generation for which no worker could start. The machine may soon have enough resources again. */
  workerStart: { first: 1000, longest: 30_000, pausePerAttempt: 0, forgetAfter: FOREVER },
  /** The retry of a replacement worker that loaded other groups than the workers which serve. */
  replacement: { first: 5000, longest: 60_000, pausePerAttempt: 30, forgetAfter: FOREVER },
  /** The next probe of the groups that did not load. */
  probe: { first: 5000, longest: 60_000, pausePerAttempt: 30, forgetAfter: FOREVER },
  /** The replacement of a worker that died or became faulty. */
  lostWorker: { first: 100, longest: 5000, pausePerAttempt: 0, forgetAfter: 15_000 },
} satisfies Record<string, Rule>;

/**
 * Factor by which the longest pause grows when an attempt succeeded but its result failed in use. Example: a probe
 * loads a group that the next generation cannot load.
 */
const FAILED_IN_USE_FACTOR = 4;
/** Maximum to which the longest pause can grow, in milliseconds. */
const MAX_PAUSE = 3_600_000;

export interface Retries {
  /** Records that an attempt begins. Until it fails, no further attempt is due: `remaining` returns Infinity. */
  recordStart(kind: RetryKind): void;
  /** Records that an attempt failed. The next attempt is due after a pause. @param took milliseconds of the attempt */
  recordFailure(kind: RetryKind, took?: number): void;
  /** Records that an attempt succeeded but its result failed in use. The pauses then become much longer. */
  recordFailureInUse(kind: RetryKind): void;
  forget(kind: RetryKind): void;
  /**
   * Returns the milliseconds until the next attempt is due. Returns 0 when the attempt is due or nothing was recorded,
   * and Infinity while an attempt runs and after it succeeded.
   */
  remaining(kind: RetryKind): number;
}

interface State {
  failures: number;
  lastFailure: number;
  due: number;
  longest: number;
}

/**
 * @param freeDeaths the number of lost workers that are replaced without a pause: all workers can die together, as
 *   when the kernel is out of memory
 */
export function createRetries(freeDeaths: number, now: () => number = () => performance.now()): Retries {
  const states = new Map<RetryKind, State>();

  return {
    recordStart: (kind) => {
      stateOf(kind).due = FOREVER;
    },
    recordFailure,
    recordFailureInUse(kind) {
      const state = stateOf(kind);
      state.longest = Math.min(MAX_PAUSE, state.longest * FAILED_IN_USE_FACTOR);
      state.due = now() + state.longest;
    },
    forget: (kind) => states.delete(kind),
    remaining: (kind) => Math.max(0, (states.get(kind)?.due ?? 0) - now()),
  };

  function recordFailure(kind: RetryKind, took = 0): void {
    const { first, longest, pausePerAttempt, forgetAfter } = RULES[kind];
    const state = stateOf(kind);
    if (now() - state.lastFailure > forgetAfter) state.failures = 0;
    state.lastFailure = now();
    const doublings = state.failures++ - (kind === 'lostWorker' ? freeDeaths : 0);
    const hasFailedInUse = state.longest > longest;
    const grown = doublings < 0 ? 0 : Math.min(state.longest, first * 2 ** doublings);
    state.due = now() + Math.max(hasFailedInUse ? state.longest : grown, took * pausePerAttempt);
  }

  function stateOf(kind: RetryKind): State {
    const { longest } = RULES[kind];
    const state = states.get(kind) ?? { failures: 0, lastFailure: Number.NEGATIVE_INFINITY, due: 0, longest };
    states.set(kind, state);
    return state;
  }
}
