// Finds the request to which an uncaught exception belongs. The exception may come from a timer that an operation has
// set, or from a promise that nobody awaits. Each call of an operation, a guard, `authenticate` or a function in
// `access` runs in a context of an AsyncLocalStorage. Its timers and promises keep this context.
import { AsyncLocalStorage } from 'node:async_hooks';
import { isThenable } from '../base/values.ts';
import type { Exchange } from './exchange.ts';
import { runFollowed } from './request-event.ts';

export type ExchangeContexts = ReturnType<typeof createExchangeContexts>;

/** One for all services of a process: Node 20 never forgets a storage, and visits each for every promise and timer. */
const storage = new AsyncLocalStorage<Exchange | undefined>();

/** @param begin called before the first code of an author that an exchange runs */
export function createExchangeContexts(begin?: (exchange: Exchange) => void) {
  return {
    /**
     * Calls code of the author in a context of the exchange, and in the contexts of the tracing tools that follow the
     * request. A thenable is returned as a promise, because a query builder starts its work only in its method `then`.
     */
    run(exchange: Exchange, work: () => unknown): unknown {
      if (begin !== undefined && !exchange.hasBegun) {
        exchange.hasBegun = true;
        begin(exchange);
      }
      const { event } = exchange;
      if (event === undefined) return storage.run(exchange, callAndFollow, work);
      // A tracing tool can have a function that makes its context. If this function throws, Node throws the error again
      // as an uncaught exception, which is no error of the request. So this function runs outside of `storage.run`.
      return runFollowed(event, () => storage.run(exchange, callAndFollow, work));
    },
    /** Calls `work` in no context. Then an error of a tracing tool that `work` calls belongs to no request. */
    leaveContext: <T>(work: () => T): T => storage.run(undefined, work),
    /** Returns, inside of an `uncaughtException` listener, the exchange whose operation led to the throw. */
    current: (): Exchange | undefined => storage.getStore(),
  };
}

/** Calls the method `then` of a thenable in the present context. */
function callAndFollow(work: () => unknown): unknown {
  const result = work();
  return isThenable(result) ? Promise.resolve(result) : result;
}

/** Below Node 24, an uncaught exception of `queueMicrotask` has no context. So it is thrown in the next tick. */
export function keepContextOfMicrotasks(): void {
  const { queueMicrotask } = globalThis;
  if (Number.parseInt(process.versions.node, 10) >= 24) return;
  globalThis.queueMicrotask = (callback) => {
    // Node refuses what is no function.
    if (typeof callback !== 'function') return queueMicrotask(callback);
    queueMicrotask(() => {
      try {
        callback();
      } catch (error) {
        process.nextTick(() => {
          throw error;
        });
      }
    });
  };
}
