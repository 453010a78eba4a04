// Lets only one supervisor at a time order a certificate, when several supervisors share a DATA_DIR. The caller passes
// the function that takes the lock. This file decides when to break the lock of an unseen holder: a process in another
// container or on another machine, which this process cannot check.
import { errorCode } from '../../base/failure.ts';

export type AcquireLock = (
  path: string,
  options: { readonly waitMs: number; readonly unseenHolderMs: number },
) => Promise<{ release(): Promise<void> }>;

/** Resolves to a function that releases the lock, or to undefined when another process holds it. */
export type TryLock = (path: string) => Promise<(() => Promise<void>) | undefined>;

/**
 * Milliseconds after which an unseen holder is treated as dead, because an order takes only seconds. A container that
 * was killed during an order finds its own old lock after its restart, and also waits for this time.
 */
const MAX_ORDER_TIME = 5 * 60_000;
const SECOND = 1000;

export function createTryLock(acquire: AcquireLock, clock: () => number = () => performance.now()): TryLock {
  let refusedSince: number | undefined;

  return async (path) => {
    const isOverdue = refusedSince !== undefined && clock() - refusedSince > MAX_ORDER_TIME;
    try {
      const lock = await acquire(path, { waitMs: isOverdue ? 5 * SECOND : 0, unseenHolderMs: SECOND });
      refusedSince = undefined;
      return () => lock.release();
    } catch (error) {
      // An error of the system, such as a full disk, does not mean that the lock is held.
      if (errorCode(error) !== undefined) throw error;
      refusedSince ??= clock();
      return undefined;
    }
  };
}
