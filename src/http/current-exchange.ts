// Which request a throw outside of any request belongs to: a timer that an operation set, a promise that nobody awaits.
// Following the asynchronous context costs every promise of the process on Node before 24, so only operations that work
// asynchronously are followed, and a service of synchronous ones never pays.
import { AsyncLocalStorage } from 'node:async_hooks';
import type { OperationMethod } from '../groups/operations.ts';
import type { Exchange } from './exchange.ts';

export interface RequestAtHand {
  /**
   * Whether work of this operation can outlive its call: by its source, or because it has returned a promise before.
   */
  follows(operation: OperationMethod): boolean;
  /** It has returned a promise: it is followed from now on. */
  follow(operation: OperationMethod): void;
  run<T>(exchange: Exchange, work: () => T): T;
  /** Inside of an `uncaughtException` listener: the exchange whose operation led to the throw. */
  current(): Exchange | undefined;
}

const ASYNCHRONOUS =
  /\basync\b|\bawait\b|\bPromise\b|\.then\b|\bset(?:Timeout|Interval|Immediate)\b|\bnextTick\b|\bqueueMicrotask\b|\.on(?:ce)?\(/;

export function createRequestAtHand(): RequestAtHand {
  const storage = new AsyncLocalStorage<Exchange>();
  const followed = new WeakMap<OperationMethod, boolean>();
  return {
    follows(operation) {
      const known = followed.get(operation);
      if (known !== undefined) return known;
      const follows = ASYNCHRONOUS.test(Function.prototype.toString.call(operation));
      followed.set(operation, follows);
      return follows;
    },
    follow: (operation) => void followed.set(operation, true),
    run: (exchange, work) => storage.run(exchange, work),
    current: () => storage.getStore(),
  };
}
