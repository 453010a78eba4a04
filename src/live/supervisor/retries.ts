// Decides when a failed attempt is made again although the folder has not changed. A retry makes sense because the
// cause may be gone: a database may be back. The pauses grow with each failure and with the duration of the attempt, so
// that attempts never cost much.

export type RetryKind = keyof typeof RULES;

interface Rule {
  /** Milliseconds of the first pause. Each further failure doubles the pause. */
  readonly firstPause: number;
  /** Maximum milliseconds of a pause that grows by doubling. */
  readonly maxPause: number;
  /** Minimum ratio of the pause to the duration of the attempt, because code that hangs keeps a core busy. */
  readonly pausePerAttempt: number;
  /** Milliseconds without a failure after which earlier failures no longer count. */
  readonly forgetAfter: number;
}

const FOREVER = Number.POSITIVE_INFINITY;

const RULES = {
  /** The retry of a generation (a load of the whole folder by new workers) in which groups that serve did not load. */
  generation: { firstPause: 5000, maxPause: 60_000, pausePerAttempt: 30, forgetAfter: FOREVER },
  /** The retry of a generation for which no worker could start. The machine may soon have enough resources again. */
  workerStart: { firstPause: 1000, maxPause: 30_000, pausePerAttempt: 0, forgetAfter: FOREVER },
  /** The retry of a replacement that lost a group, or loaded other code than the workers that serve. */
  replacement: { firstPause: 5000, maxPause: 60_000, pausePerAttempt: 30, forgetAfter: FOREVER },
  /** The next probe: one worker that serves nothing tries to load the groups that did not load. */
  probe: { firstPause: 5000, maxPause: 60_000, pausePerAttempt: 30, forgetAfter: FOREVER },
  /** The replacement of a worker that died or became faulty. */
  lostWorker: { firstPause: 100, maxPause: 5000, pausePerAttempt: 0, forgetAfter: 15_000 },
} satisfies Record<string, Rule>;

/**
 * Factor by which `maxPause` grows when an attempt succeeded but its result failed in use. Example: a probe loads a
 * group that the next generation cannot load.
 */
const FAILED_IN_USE_FACTOR = 4;
/** Maximum to which `maxPause` can grow, in milliseconds. */
const LONGEST_PAUSE = 3_600_000;

export interface Retries {
  /** Records that an attempt begins. `remaining` then returns Infinity until a failure is recorded. */
  recordStart(kind: RetryKind): void;
  /** Records that an attempt failed. The next one is due after a pause. @param duration milliseconds of the attempt */
  recordFailure(kind: RetryKind, duration?: number): void;
  /** Records that an attempt succeeded but its result failed in use. */
  recordFailureInUse(kind: RetryKind): void;
  /** Forgets all failures, so that an attempt is due at once and the next pause is short. */
  forget(kind: RetryKind): void;
  /** Milliseconds until an attempt is due: 0 before the first, Infinity while one runs and after a success. */
  remaining(kind: RetryKind): number;
}

/** Times are those of `now`. */
interface State {
  failures: number;
  lastFailureAt: number;
  dueAt: number;
  maxPause: number;
}

/**
 * @param freeDeaths the number of lost workers that are replaced without a pause: all workers can die together, as
 *   when the kernel is out of memory
 */
export function createRetries(freeDeaths: number, now: () => number = () => performance.now()): Retries {
  const states = new Map<RetryKind, State>();

  return {
    recordStart: (kind) => {
      stateOf(kind).dueAt = FOREVER;
    },
    recordFailure,
    recordFailureInUse(kind) {
      const state = stateOf(kind);
      state.maxPause = Math.min(LONGEST_PAUSE, state.maxPause * FAILED_IN_USE_FACTOR);
      state.dueAt = now() + state.maxPause;
    },
    forget: (kind) => states.delete(kind),
    remaining: (kind) => Math.max(0, (states.get(kind)?.dueAt ?? 0) - now()),
  };

  function recordFailure(kind: RetryKind, duration = 0): void {
    const { firstPause, maxPause, pausePerAttempt, forgetAfter } = RULES[kind];
    const state = stateOf(kind);
    if (now() - state.lastFailureAt > forgetAfter) state.failures = 0;
    state.lastFailureAt = now();
    // For the first `freeDeaths` lost workers, this number is negative, and there is no pause.
    const doublings = state.failures++ - (kind === 'lostWorker' ? freeDeaths : 0);
    const hasFailedInUse = state.maxPause > maxPause;
    const grownPause = doublings < 0 ? 0 : Math.min(state.maxPause, firstPause * 2 ** doublings);
    state.dueAt = now() + Math.max(hasFailedInUse ? state.maxPause : grownPause, duration * pausePerAttempt);
  }

  function stateOf(kind: RetryKind): State {
    const { maxPause } = RULES[kind];
    const state = states.get(kind) ?? { failures: 0, lastFailureAt: Number.NEGATIVE_INFINITY, dueAt: 0, maxPause };
    states.set(kind, state);
    return state;
  }
}
