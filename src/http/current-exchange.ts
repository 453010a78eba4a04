// Finds the request to which an uncaught exception belongs. The exception may come from a timer that an operation has
// set, or from a promise that nobody awaits. Node's asynchronous context leads to the request. Before Node 24, a
// context slows down every promise of the process, so only functions that work asynchronously run in one.
import { AsyncLocalStorage } from 'node:async_hooks';
import { isThenable } from '../base/values.ts';
import type { Exchange } from './exchange.ts';
import { runFollowed } from './request-event.ts';

/** A function of a controller or of the service file. */
type Work = (...args: never[]) => unknown;

export interface CurrentExchange {
  /**
   * Says whether a call needs a context, because the method can still work after it has returned. When a tracing tool
   * follows the request, each method needs a context, until one of its calls has shown that it starts no work that the
   * tool follows. A context for all calls would cost too much.
   */
  needsContext(exchange: Exchange, method: Work): boolean;
  /** Notes that a method has returned a promise, so its next calls need a context. */
  markAsynchronous(method: Work): void;
  /** Calls `work`, which calls `method`, in the context of the exchange and of the tools that follow it. */
  run<T>(exchange: Exchange, method: Work, work: () => T): T;
  /** Calls `work` outside of any context, so that an error of a tool does not fail the request. */
  leaveContext<T>(work: () => T): T;
  /** Returns, inside of an `uncaughtException` listener, the exchange whose operation led to the throw. */
  get(): Exchange | undefined;
}

/** Matches the source of functions that probably work asynchronously. */
const ASYNCHRONOUS =
  /\basync\b|\bawait\b|\bPromise\b|\.then\b|\bset(?:Timeout|Interval|Immediate)\b|\bnextTick\b|\bqueueMicrotask\b|\.on(?:ce)?\(/;

/**
 * Matches the source of functions that probably start work which a tracing tool follows. Searched only when such a tool
 * follows the request.
 */
const STARTS_FOLLOWED_WORK = /\bfetch\b|\brequest\b|\bwaitUntil\b|\btrace\b|\bspan\b|\bget\(/;

export function createCurrentExchange(): CurrentExchange {
  const storage = new AsyncLocalStorage<Exchange | undefined>();
  const asynchronousMethods = new WeakMap<Work, boolean>();
  /** Methods that returned no promise, and whose source starts nothing that a tool would follow. */
  const plainMethods = new WeakSet<Work>();

  /**
   * Says whether a method can still work after it has returned: its source suggests so, or it has returned a promise
   * before.
   */
  function isAsynchronous(method: Work): boolean {
    let isMarked = asynchronousMethods.get(method);
    if (isMarked === undefined) {
      isMarked = ASYNCHRONOUS.test(sourceOf(method));
      asynchronousMethods.set(method, isMarked);
    }
    return isMarked;
  }

  return {
    needsContext: ({ event }, method) => isAsynchronous(method) || (event !== undefined && !plainMethods.has(method)),
    markAsynchronous: (method) => void asynchronousMethods.set(method, true),
    run(exchange, method, work) {
      const { event } = exchange;
      if (event === undefined) return storage.run(exchange, work);
      // An error in the store of a tool is thrown outside of the exchange. Node reports it later, as uncaught.
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
