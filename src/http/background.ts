// Work that goes on after its answer: `params.waitUntil(promise)`. A worker that drains waits for it.
import { describeError, type Log } from '../base/log.ts';
import type { Exchange } from './exchange.ts';

export interface BackgroundWork {
  add(exchange: Exchange, work: PromiseLike<unknown>): void;
  /** Pieces of work under way. */
  pending(): number;
}

export function createBackgroundWork(log: Log): BackgroundWork {
  let pending = 0;
  return {
    add({ requestId: request_id, group, operation }, work) {
      pending++;
      Promise.resolve(work).then(
        () => pending--,
        (error) => {
          pending--;
          log.error('background-work-failed', { request_id, group, operation, ...describeError(error) });
        },
      );
    },
    pending: () => pending,
  };
}
