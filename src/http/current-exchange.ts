// Finds the request to which an uncaught exception belongs. The exception may come from a timer that an operation has
// set, or from a promise that nobody awaits. If the operation runs in a context of an AsyncLocalStorage, its timers and
// promises keep this context, which leads to the request. Before Node 24, a context slows down every promise of the
// process, so only functions that work asynchronously run in one.
import { AsyncLocalStorage } from 'node:async_hooks';
import { isThenable } from '../base/values.ts';
import type { Exchange } from './exchange.ts';
import { runFollowed } from './request-event.ts';

/** A function of a controller or of the service file. */
type Work = (...args: never[]) => unknown;

export interface CurrentExchange {
  /**
   * Says whether a call of the method needs a context. A method that can still work after it has returned needs one.
   * When a tracing tool follows the request, any other method needs a context, too, until a call has shown that the
   * method starts nothing that the tool follows.
   */
  needsContext(exchange: Exchange, method: Work): boolean;
  /** Notes that a method has returned a promise, so its next calls need a context. */
  markAsynchronous(method: Work): void;
  /** Calls `work`, which calls `method`, in a context of the exchange. Tracing tools bind their own contexts, too. */
  run<T>(exchange: Exchange, method: Work, work: () => T): T;
  /** Calls `work` outside of any context, so that an error of a tracing tool in `work` belongs to no request. */
  leaveContext<T>(work: () => T): T;
  /** Returns, inside of an `uncaughtException` listener, the exchange whose operation led to the throw. */
  get(): Exchange | undefined;
}

/** Matches the source of functions that probably work asynchronously. */
const ASYNCHRONOUS =
  /\basync\b|\bawait\b|\bPromise\b|\.then\b|\bset(?:Timeout|Interval|Immediate)\b|\bnextTick\b|\bqueueMicrotask\b|\.on(?:ce)?\(/;

/** Matches the source of functions that probably start work which a tracing tool follows, such as a request. */
const STARTS_FOLLOWED_WORK = /\bfetch\b|\brequest\b|\bwaitUntil\b|\btrace\b|\bspan\b|\bget\(/;

export function createCurrentExchange(): CurrentExchange {
  const storage = new AsyncLocalStorage<Exchange | undefined>();
  /** Key: a method. Value: whether the method is asynchronous (isAsynchronous). */
  const asynchronousMethods = new WeakMap<Work, boolean>();
  /** Methods whose source and whose last call show neither asynchronous work nor work that a tracing tool follows. */
  const plainMethods = new WeakSet<Work>();

  /** Says whether a method can still work after it has returned: its source suggests so, or it returned a promise. */
  function isAsynchronous(method: Work): boolean {
    let isAsync = asynchronousMethods.get(method);
    if (isAsync === undefined) {
      isAsync = ASYNCHRONOUS.test(sourceOf(method));
      asynchronousMethods.set(method, isAsync);
    }
    return isAsync;
  }

  return {
    needsContext: ({ event }, method) => isAsynchronous(method) || (event !== undefined && !plainMethods.has(method)),
    markAsynchronous: (method) => void asynchronousMethods.set(method, true),
    run(exchange, method, work) {
      const { event } = exchange;
      if (event === undefined) return storage.run(exchange, work);
      // When the context of a tracing tool fails, Node reports the error later, as uncaught. Such an error must not
      // belong to the request, so the contexts of the tools are the outer ones.
      const result = runFollowed(event, () => storage.run(exchange, work));
      const isPlain = !isAsynchronous(method) && !isThenable(result) && !STARTS_FOLLOWED_WORK.test(sourceOf(method));
      if (isPlain) plainMethods.add(method);
      return result;
    },
    leaveContext: (work) => storage.run(undefined, work),
    get: () => storage.getStore(),
  };
}

function sourceOf(method: Work): string {
  return Function.prototype.toString.call(method);
}
