// The states, the events and the end of a worker, as the supervisor learns of them.
import type { LastRequest } from '../../../base/worker-note.ts';
import type { GroupLoad } from '../../load/group-load.ts';
import type { LoadedFile } from '../../load/module-loader.ts';
import type { FromWorker } from '../../worker/messages.ts';
import type { WorkerHandle } from './worker-handle.ts';

/** docs/LIVE.md shows how one state leads to the next. A faulty worker is `serving` until its replacement serves. */
export type WorkerState = 'booting' | 'standby' | 'loading' | 'loaded' | 'serving' | 'draining' | 'gone';

export type Loaded = Extract<FromWorker, { kind: 'loaded' }>;

export type LoadOutcome =
  | Loaded
  /** The worker ended, or reported that it cannot load. `file` is the controller that the worker was importing. */
  | { readonly kind: 'ended'; readonly file: string | undefined; readonly reason: string };

export type ListenOutcome = 'listening' | { readonly code: string };

export interface Death {
  readonly reason: string;
  /** `serving` also for one that closed its channel while it served, and ended before the call of `disconnected`. */
  readonly lastState: WorkerState;
  /** Controller files that the worker was importing while it served, one for each new group. */
  readonly importing: readonly string[];
  /** The last operation that the worker began; undefined when it began none, or with LAST_REQUEST=off. */
  readonly lastRequest?: LastRequest | undefined;
}

export interface WorkerEvents {
  /** The worker closed its channel without an order. So the worker drains, and another one must replace it. */
  disconnected(worker: WorkerHandle): void;
  /** The worker ended without an order, ended with an error while it drained, or was killed. */
  died(worker: WorkerHandle, death: Death): void;
  /** The worker is gone, for any reason. This event comes last. */
  gone(worker: WorkerHandle): void;
  /** Something was thrown in the worker outside any request. */
  faulty(worker: WorkerHandle): void;
  /** The worker imported a new group while it served, or failed to import it. */
  importReported(worker: WorkerHandle, group: GroupLoad, files: readonly LoadedFile[]): void;
  /** The worker has sent a message that says nothing about its state. */
  received(worker: WorkerHandle, message: FromWorker): void;
}
