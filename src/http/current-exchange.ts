// Finds the request to which an uncaught exception belongs. The exception may come from a timer that an operation has
// set, or from a promise that nobody awaits. Node's asynchronous context leads to the request. Before Node 24, a
// context slows down every promise of the process, so only operations that work asynchronously get a context.
import { AsyncLocalStorage } from 'node:async_hooks';
import { isThenable } from '../base/values.ts';
import type { Exchange } from './exchange.ts';
import { runFollowed } from './request-event.ts';

/** An operation, or a function of the service file. */
type Work = (...args: never[]) => unknown;

export interface CurrentExchange {
  /**
   * Says whether a call needs a context, because the method may still work after it has returned. When a tracing tool
   * follows the request, a method also needs a context until one call has shown that it starts no such work. A context
   * for each plain operation would cost too much.
   */
  isNeeded(exchange: Exchange, method: Work): boolean;
  /** Marks a method that has returned a promise. */
  markAsynchronous(method: Work): void;
  /** Calls `work` in the context of the exchange, and of the tools that follow it. */
  run<T>(exchange: Exchange, method: Work, work: () => T): T;
  /** Calls `work` outside of any exchange, so that a throw of a tool fails no request. */
  leave<T>(work: () => T): T;
  /** Returns, inside of an `uncaughtException` listener, the exchange whose operation led to the throw. */
  get(): Exchange | undefined;
}

/** Source text of functions that start work and do not wait for it. */
const ASYNCHRONOUS =
  /\basync\b|\bawait\b|\bPromise\b|\.then\b|\bset(?:Timeout|Interval|Immediate)\b|\bnextTick\b|\bqueueMicrotask\b|\.on(?:ce)?\(/;

/**
 * More source text, which is searched only when a tracing tool follows the request. Such a function starts work that
 * the tool follows, too.
 */
const STARTS_WORK = /\bfetch\b|\brequest\b|\bwaitUntil\b|\btrace\b|\bspan\b|\bget\(/;

export function createCurrentExchange(): CurrentExchange {
  const storage = new AsyncLocalStorage<Exchange | undefined>();
  const asynchronous = new WeakMap<Work, boolean>();
  /** Methods that have returned a value, and whose source starts nothing that a tool would follow. */
  const plain = new WeakSet<Work>();

  /**
   * Says whether a method may still work after it has returned: its source text suggests so, or it has returned a
   * promise before.
   */
  function isAsynchronous(method: Work): boolean {
    let isMarked = asynchronous.get(method);
    if (isMarked === undefined) {
      isMarked = ASYNCHRONOUS.test(sourceOf(method));
      asynchronous.set(method, isMarked);
    }
    return isMarked;
  }

  return {
    isNeeded: ({ event }, method) => isAsynchronous(method) || (event !== undefined && !plain.has(method)),
    markAsynchronous: (method) => void asynchronous.set(method, true),
    run(exchange, method, work) {
      const { event } = exchange;
      if (event === undefined) return storage.run(exchange, work);
      // When the store of a tool throws, the throw happens outside of the exchange. Node reports it later, as uncaught.
      const result = runFollowed(event, () => storage.run(exchange, work));
      const isPlain = !isAsynchronous(method) && !isThenable(result) && !STARTS_WORK.test(sourceOf(method));
      if (isPlain) plain.add(method);
      return result;
    },
    leave: (work) => storage.run(undefined, work),
    get: () => storage.getStore(),
  };
}

function sourceOf(method: Work): string {
  return Function.prototype.toString.call(method);
}
