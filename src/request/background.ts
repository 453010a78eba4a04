// Follows work that outlasts its answer: `params.waitUntil(promise)`. A worker waits for this work before it exits.
import type { OperationFacts } from '../base/events.ts';
import { describeError, idsOf, type Log } from '../base/log.ts';
import type { Exchange } from './exchange.ts';
import { followBackground } from './request-event.ts';

export type BackgroundWork = ReturnType<typeof createBackgroundWork>;

/** @param leaveContext calls a function outside of the AsyncLocalStorage context of the request */
export function createBackgroundWork(log: Log, leaveContext: (work: () => void) => void) {
  const pendingWork = new Set<OperationFacts>();
  return {
    add(exchange: Exchange, work: PromiseLike<unknown>): void {
      // Such work would never run, and nothing would say so.
      if (typeof work === 'function' && !('then' in work))
        throw new TypeError('waitUntil needs a promise, and got a function: call it, waitUntil(work())');
      const facts = { ...idsOf(exchange), group: exchange.group, operation: exchange.operation };
      // Each call of `then` can run a query of a library again, so only this line calls it.
      const promise = Promise.resolve(work);
      leaveContext(() => followBackground(exchange, promise));
      pendingWork.add(facts);
      promise.then(
        () => pendingWork.delete(facts),
        (error) => {
          pendingWork.delete(facts);
          log.error('background-work-failed', { ...facts, ...describeError(error) });
        },
      );
    },
    pending: () => pendingWork.size,
    /** Stops waiting, and logs each piece of work whose promise is pending. */
    giveUp(): void {
      for (const facts of pendingWork) log.warn('background-work-given-up', facts);
      pendingWork.clear();
    },
  };
}
