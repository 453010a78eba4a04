// Finds the request to which an uncaught exception belongs. The exception may come from a timer that an operation has
// set, or from a promise that nobody awaits. If the operation runs in a context of an AsyncLocalStorage, its timers and
// promises keep this context, which leads to the request. Before Node 24, a context slows down every promise of the
// process, so only functions that work asynchronously run in one.
import { AsyncLocalStorage } from 'node:async_hooks';
import { isThenable } from '../base/values.ts';
import type { Exchange } from './exchange.ts';
import { runFollowed } from './request-event.ts';

/** An operation, `authenticate`, or a function in `access`. */
type Method = (...args: never[]) => unknown;

export interface ExchangeContexts {
  /**
   * Says whether a call of the method must be made through `run`. Two kinds of methods need this:
   * - a method that can still work after it has returned, such as one that sets a timer
   * - when a tracing tool follows the request: any method, until one call has shown that it starts no work for the tool
   */
  needsContext(exchange: Exchange, method: Method): boolean;
  /** Notes that a method has returned a promise, so its next calls need a context. */
  markAsynchronous(method: Method): void;
  /**
   * Runs `callMethod` in a context of the exchange, and in the contexts of the tracing tools that follow the request.
   *
   * @param method the method that `callMethod` calls
   */
  run<T>(exchange: Exchange, method: Method, callMethod: () => T): T;
  /** Runs `work` in no context. If `work` calls code of a tracing tool, an error of this code belongs to no request. */
  leaveContext<T>(work: () => T): T;
  /** Returns, inside of an `uncaughtException` listener, the exchange whose operation led to the throw. */
  current(): Exchange | undefined;
}

/** Matches the source of functions that probably work asynchronously. */
const ASYNCHRONOUS =
  /\basync\b|\bawait\b|\bPromise\b|\.then\b|\bset(?:Timeout|Interval|Immediate)\b|\bnextTick\b|\bqueueMicrotask\b|\.on(?:ce)?\(/;

/** Matches the source of functions that probably start work which a tracing tool follows, such as a request. */
const STARTS_FOLLOWED_WORK = /\bfetch\b|\brequest\b|\bwaitUntil\b|\btrace\b|\bspan\b|\bget\(/;

export function createExchangeContexts(): ExchangeContexts {
  const storage = new AsyncLocalStorage<Exchange | undefined>();
  /** Key: a method. Value: whether the method can still work after it has returned. */
  const asynchrony = new WeakMap<Method, boolean>();
  /** Methods whose source shows no work for a tracing tool, and that returned no promise when a tool followed them. */
  const methodsWithoutWorkForTools = new WeakSet<Method>();

  function isAsynchronous(method: Method): boolean {
    let isAsync = asynchrony.get(method);
    if (isAsync === undefined) {
      isAsync = ASYNCHRONOUS.test(sourceOf(method));
      asynchrony.set(method, isAsync);
    }
    return isAsync;
  }

  return {
    needsContext: ({ event }, method) =>
      isAsynchronous(method) || (event !== undefined && !methodsWithoutWorkForTools.has(method)),
    markAsynchronous: (method) => void asynchrony.set(method, true),
    run(exchange, method, callMethod) {
      const { event } = exchange;
      if (event === undefined) return storage.run(exchange, callMethod);
      // A tracing tool can have a function that makes its context. If this function throws, Node throws the error again
      // as an uncaught exception, which is no error of the request. So this function runs outside of `storage.run`.
      const result = runFollowed(event, () => storage.run(exchange, callMethod));
      if (!isAsynchronous(method) && !isThenable(result) && !STARTS_FOLLOWED_WORK.test(sourceOf(method)))
        methodsWithoutWorkForTools.add(method);
      return result;
    },
    leaveContext: (work) => storage.run(undefined, work),
    current: () => storage.getStore(),
  };
}

function sourceOf(method: Method): string {
  return Function.prototype.toString.call(method);
}
