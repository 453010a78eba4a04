// Looks at the table's file on request: for a token that no row has, since its row may have been written a moment ago. At most one
// look each 50 ms, shared by all requests that wait for it, so that made-up tokens cost next to nothing.
import { setTimeout as sleep } from 'node:timers/promises';

/** Twenty looks a second. */
export const LOOK_INTERVAL_MS = 50;
/** While so many requests wait, further ones are answered by the table as it is. To read a large table takes a second. */
export const MOST_WAITING = 100;

export interface LooksOptions {
  /** Reads the file if it has changed. */
  readonly look: () => Promise<void>;
  /** Monotonic milliseconds. */
  readonly clock?: () => number;
  readonly pause?: (ms: number) => Promise<unknown>;
}

/** @returns a function whose promise resolves after a look that began after the call; `undefined` when too many wait */
export function createLooks({ look, clock = () => performance.now(), pause = sleep }: LooksOptions): () => Promise<void> | undefined {
  let lastAt = Number.NEGATIVE_INFINITY;
  let next: Promise<void> | undefined;
  /** For the next look, and for all that are under way. */
  let joined = 0;
  let waiting = 0;

  async function lookWhenDue(): Promise<void> {
    // Also where it is due now: all calls of one turn share the look.
    const early = lastAt + LOOK_INTERVAL_MS - clock();
    await (early > 0 ? pause(early) : undefined);
    lastAt = clock();
    next = undefined;
    const served = joined;
    joined = 0;
    await look();
    waiting -= served;
  }

  return () => {
    if (waiting >= MOST_WAITING) return undefined;
    waiting++;
    joined++;
    next ??= lookWhenDue();
    return next;
  };
}
