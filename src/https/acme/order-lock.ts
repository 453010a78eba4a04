// One supervisor at a time orders, of all that share a DATA_DIR. The lock itself is handed in; here stands how long a
// holder that cannot be seen, in another container or on another machine, is believed to be alive.
import { errorCode } from '../../base/failure.ts';

export type AcquireLock = (
  path: string,
  options: { readonly waitMs: number; readonly unseenHolderMs: number },
) => Promise<{ release(): Promise<void> }>;

/** What it resolves to lets go of the lock; undefined: another process has it. */
export type TryLock = (path: string) => Promise<(() => Promise<void>) | undefined>;

/** Milliseconds: an order takes seconds. A container that was ended in one and restarted waits this long for itself. */
const LONGEST_ORDER = 5 * 60_000;
const MOMENT = 1000;

export function createTryLock(acquire: AcquireLock, clock: () => number = () => performance.now()): TryLock {
  let refusedSince: number | undefined;

  return async (path) => {
    const isOverdue = refusedSince !== undefined && clock() - refusedSince > LONGEST_ORDER;
    try {
      const lock = await acquire(
        path,
        isOverdue ? { waitMs: 5 * MOMENT, unseenHolderMs: MOMENT } : { waitMs: 0, unseenHolderMs: MOMENT },
      );
      refusedSince = undefined;
      return () => lock.release();
    } catch (error) {
      // That the system refuses, as on a full disk, is another matter than a lock that is held.
      if (errorCode(error) !== undefined) throw error;
      refusedSince ??= clock();
      return undefined;
    }
  };
}
