// The times at which a failed attempt is tried again although nothing has changed: a database may be back. Pauses grow
// after each failure, and with the duration of an attempt, so that attempts never cost much.

export type RetryKind = keyof typeof RULES;

interface Rule {
  /** Milliseconds after the first failure; the pause doubles after each further one. */
  readonly first: number;
  /** Milliseconds that a pause has at most. */
  readonly longest: number;
  /** The pause is at least this many times as long as the attempt: code that hangs its process keeps a core busy. */
  readonly cost: number;
  /** Milliseconds without a failure after which earlier failures no longer count. */
  readonly memory: number;
}

const FOREVER = Number.POSITIVE_INFINITY;

const RULES = {
  /** A generation, after one was rejected. */
  generation: { first: 5000, longest: 60_000, cost: 30, memory: FOREVER },
  /** A generation, after no worker could start: the machine may soon have room again. */
  workerStart: { first: 1000, longest: 30_000, cost: 0, memory: FOREVER },
  /** A replacement, after one did not equal the workers that serve. */
  replacement: { first: 5000, longest: 60_000, cost: 30, memory: FOREVER },
  /** A probe of the groups that did not load. */
  probe: { first: 5000, longest: 60_000, cost: 30, memory: FOREVER },
  /** A replacement, after a worker died or became faulty. */
  lostWorker: { first: 100, longest: 5000, cost: 0, memory: 15_000 },
} satisfies Record<string, Rule>;

/** The longest pause grows by this factor when an attempt that seemed to succeed has failed in use. */
const FAILED_IN_USE_FACTOR = 4;
/** Maximum of the longest pause, in milliseconds. */
const MAX_PAUSE = 3_600_000;

export interface Retries {
  /** An attempt begins: the next one is due only after a failure. */
  recordStart(kind: RetryKind): void;
  /** An attempt failed: the next one is due after a pause. @param took milliseconds of the attempt */
  recordFailure(kind: RetryKind, took?: number): void;
  /** An attempt succeeded, but its result was of no use: pauses become much longer. */
  recordFailureInUse(kind: RetryKind): void;
  forget(kind: RetryKind): void;
  /** Returns the milliseconds until the attempt is due; 0: it is due, or has never failed. */
  remaining(kind: RetryKind): number;
}

interface State {
  failures: number;
  lastFailure: number;
  due: number;
  longest: number;
}

/**
 * @param freeDeaths the number of lost workers that are replaced without a pause: all workers may die together, as
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
    const { first, longest, cost, memory } = RULES[kind];
    const state = stateOf(kind);
    if (now() - state.lastFailure > memory) state.failures = 0;
    state.lastFailure = now();
    const doublings = state.failures++ - (kind === 'lostWorker' ? freeDeaths : 0);
    const hasFailedInUse = state.longest > longest;
    const grown = doublings < 0 ? 0 : Math.min(state.longest, first * 2 ** doublings);
    state.due = now() + Math.max(hasFailedInUse ? state.longest : grown, took * cost);
  }

  function stateOf(kind: RetryKind): State {
    const { longest } = RULES[kind];
    const state = states.get(kind) ?? { failures: 0, lastFailure: Number.NEGATIVE_INFINITY, due: 0, longest };
    states.set(kind, state);
    return state;
  }
}
