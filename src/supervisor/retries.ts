// When what has failed is tried again, although nothing has changed: a database may be back. Pauses grow, and are never
// so short that the tries cost much. It knows times and counts; what a try is, and who makes it, the supervisor knows.

export type Retried = keyof typeof ROWS;

interface Row {
  /** Milliseconds after the first failure; doubled after each further one, up to the longest. */
  readonly first: number;
  readonly longest: number;
  /** A pause is at least as many times as long as the try was: code that hangs its process burns a core meanwhile. */
  readonly cost: number;
  /** Milliseconds without a failure after which all of them are forgotten. */
  readonly memory: number;
}

const FOREVER = Number.POSITIVE_INFINITY;

const ROWS = {
  /** A generation was refused. */
  generation: { first: 5000, longest: 60_000, cost: 30, memory: FOREVER },
  /** No worker could be started at all: the machine may have room again in a moment. */
  start: { first: 1000, longest: 30_000, cost: 0, memory: FOREVER },
  /** Replacements did not equal those that serve. */
  replacement: { first: 5000, longest: 60_000, cost: 30, memory: FOREVER },
  /** One worker tries what has not loaded. */
  probe: { first: 5000, longest: 60_000, cost: 30, memory: FOREVER },
  /** A worker died, or went faulty. As many as serve may do so together, as when the kernel is out of memory. */
  death: { first: 100, longest: 5000, cost: 0, memory: 15_000 },
} satisfies Record<string, Row>;

/** Tries that looked well and came to nothing are rarer from then on. */
const RARER = 4;
const RAREST = 3_600_000;

export interface Retries {
  /** It is being tried: it is not due before it has failed again. */
  begin(what: Retried): void;
  /** It is due after a pause. @param took milliseconds of the try */
  failed(what: Retried, took?: number): void;
  /** It has failed although it looked well. */
  deceived(what: Retried): void;
  forget(what: Retried): void;
  /** Milliseconds until it is due; 0: now, or it has never failed. */
  remaining(what: Retried): number;
}

interface State {
  failures: number;
  last: number;
  due: number;
  longest: number;
}

/** @param freeDeaths so many are replaced at once */
export function createRetries(freeDeaths: number, now: () => number = () => performance.now()): Retries {
  const states = new Map<Retried, State>();

  return {
    begin: (what) => {
      stateOf(what).due = FOREVER;
    },
    failed,
    deceived(what) {
      const state = stateOf(what);
      state.longest = Math.min(RAREST, state.longest * RARER);
      state.due = now() + state.longest;
    },
    forget: (what) => states.delete(what),
    remaining: (what) => Math.max(0, (states.get(what)?.due ?? 0) - now()),
  };

  function failed(what: Retried, took = 0): void {
    const { first, cost, memory } = ROWS[what];
    const state = stateOf(what);
    if (now() - state.last > memory) state.failures = 0;
    state.last = now();
    const doubled = state.failures++ - (what === 'death' ? freeDeaths : 0);
    const pause =
      doubled < 0
        ? 0
        : state.longest > ROWS[what].longest
          ? state.longest
          : Math.min(state.longest, first * 2 ** doubled);
    state.due = now() + Math.max(pause, took * cost);
  }

  function stateOf(what: Retried): State {
    const state = states.get(what) ?? {
      failures: 0,
      last: Number.NEGATIVE_INFINITY,
      due: 0,
      longest: ROWS[what].longest,
    };
    states.set(what, state);
    return state;
  }
}
