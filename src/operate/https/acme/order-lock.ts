// Lets only one supervisor at a time order a certificate in a shared DATA_DIR. The holder may be in another container
// or on another machine, where this process cannot see whether it is alive.
import { errorCode } from '../../../base/failure.ts';
import { acquireLock, type Lock, type LockOptions } from '../../../base/folder-lock.ts';

/** Resolves to a function that releases the lock, or to undefined when another process holds the lock. */
export type TryLock = (path: string) => Promise<(() => Promise<void>) | undefined>;

/**
 * Milliseconds after which an unseen holder is treated as dead, because an order takes only seconds. A container that
 * was killed during an order finds its own old lock after its restart, and also waits for this time.
 */
const MAX_ORDER_TIME = 5 * 60_000;
/** Milliseconds to wait for the lock of a holder that is treated as dead. */
const OVERDUE_WAIT_MS = 5000;
/** Milliseconds of such a wait after which the lock of an unseen holder is broken. */
const UNSEEN_HOLDER_MS = 1000;

export function createTryLock(
  acquire: (path: string, options: Required<LockOptions>) => Promise<Pick<Lock, 'release'>> = acquireLock,
  clock: () => number = () => performance.now(),
): TryLock {
  /** The time of `clock` since which every attempt has been refused; undefined after a success. */
  let refusedSince: number | undefined;
  let lastAttempt = Number.NEGATIVE_INFINITY;

  return async (path) => {
    const now = clock();
    // The caller repeats a refused attempt within seconds. After a long pause, this is an attempt for another order.
    if (now - lastAttempt > MAX_ORDER_TIME) refusedSince = undefined;
    lastAttempt = now;
    const isOverdue = refusedSince !== undefined && now - refusedSince > MAX_ORDER_TIME;
    try {
      // An attempt that does not wait never breaks the lock of an unseen holder.
      const waitMs = isOverdue ? OVERDUE_WAIT_MS : 0;
      const lock = await acquire(path, { waitMs, unseenHolderMs: UNSEEN_HOLDER_MS });
      refusedSince = undefined;
      return () => lock.release();
    } catch (error) {
      // An error of the system, such as a full disk, does not mean that the lock is held.
      if (errorCode(error) !== undefined) throw error;
      refusedSince ??= now;
      return undefined;
    }
  };
}
