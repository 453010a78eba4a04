// The request to which an uncaught exception belongs: a timer that an operation set may throw, or a promise that nobody
// awaits. Node finds it by the asynchronous context. Before Node 24 a context slows down every promise of the process,
// so only operations that work asynchronously get one.
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Exchange } from './exchange.ts';

/** An operation, or a function of the service file. */
type Work = (...args: never[]) => unknown;

export interface CurrentExchange {
  /** Whether the operation may work after its call: its source looks so, or it has returned a promise before. */
  isAsynchronous(operation: Work): boolean;
  /** Marks an operation that has returned a promise. */
  markAsynchronous(operation: Work): void;
  /** Calls `work` in the context of the exchange. */
  run<T>(exchange: Exchange, work: () => T): T;
  /** Returns, inside of an `uncaughtException` listener, the exchange whose operation led to the throw. */
  get(): Exchange | undefined;
}

/** Source text of functions that start work and do not wait for it. */
const ASYNCHRONOUS =
  /\basync\b|\bawait\b|\bPromise\b|\.then\b|\bset(?:Timeout|Interval|Immediate)\b|\bnextTick\b|\bqueueMicrotask\b|\.on(?:ce)?\(/;

export function createCurrentExchange(): CurrentExchange {
  const storage = new AsyncLocalStorage<Exchange>();
  const asynchronous = new WeakMap<Work, boolean>();
  return {
    isAsynchronous(operation) {
      let isMarked = asynchronous.get(operation);
      if (isMarked === undefined) {
        isMarked = ASYNCHRONOUS.test(Function.prototype.toString.call(operation));
        asynchronous.set(operation, isMarked);
      }
      return isMarked;
    },
    markAsynchronous: (operation) => void asynchronous.set(operation, true),
    run: (exchange, work) => storage.run(exchange, work),
    get: () => storage.getStore(),
  };
}
