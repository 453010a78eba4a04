// What is known of the newest generation that was refused: told once per change, and tried again after a while, because
// what failed may have been a database and not the folder. It refuses nothing itself; the supervisor does.
import type { Log } from '../base/log.ts';
import type { GroupLoad } from '../worker/messages.ts';
import { createRetryPauses } from './retry-pauses.ts';

/** A generation that was refused: what serves is older than the folder. */
export interface Rejection {
  readonly generation: number;
  readonly at: Date;
  /** Groups that serve and did not load; empty when no controller is to blame. */
  readonly failures: readonly GroupLoad[];
  /** Why, when no controller is to blame. */
  readonly error?: string | undefined;
}

export interface RejectionReport extends Omit<Rejection, 'at'> {
  readonly cause: string;
  /** The generation that goes on. */
  readonly serving: number;
  /** Milliseconds that it took to find out. */
  readonly took: number;
}

export interface Rejections {
  readonly latest: Rejection | undefined;
  /** Since the start. */
  readonly count: number;
  add(report: RejectionReport): void;
  /** A generation went to work. */
  clear(): void;
  /** A new generation is being made, or none ever will. */
  cancelRetry(): void;
}

/** As the cause of a generation. */
export const RETRY = 'retry';

export function createRejections({ log, onRetry }: { readonly log: Log; readonly onRetry: () => void }): Rejections {
  let latest: Rejection | undefined;
  let count = 0;
  const pauses = createRetryPauses();
  let timer: NodeJS.Timeout | undefined;
  return {
    get latest() {
      return latest;
    },
    get count() {
      return count;
    },
    add({ generation, cause, failures, error, serving, took }) {
      const isNews = cause !== RETRY || JSON.stringify(latest?.failures) !== JSON.stringify(failures);
      latest = { generation, at: new Date(), failures, error };
      count++;
      const effect = `generation ${serving} serves on`;
      if (isNews && error !== undefined) log.error('generation-rejected', { generation, cause, error, effect });
      for (const failure of isNews ? failures : []) log.error('generation-rejected', { generation, cause, ...failure, effect });
      clearTimeout(timer);
      timer = setTimeout(onRetry, pauses.next(took));
    },
    clear() {
      clearTimeout(timer);
      latest = undefined;
      pauses.reset();
    },
    cancelRetry: () => clearTimeout(timer),
  };
}
