// The messages between the supervisor and its workers over the IPC channel: one union for each direction. A controller
// can send its own messages over the same channel, so the messages of this file are in an envelope: `{gatefold: …}`.
// A token pays for one request of a caller with a rate limit.
import type { InspectorAddress } from '../../base/inspector.ts';
import type { Balance, Spending } from '../../callers/rates/rate-limiter.ts';
import type { SecureState } from '../../operate/https/serve/secure-state.ts';
import type { ToWorkerStore, WorkerCall } from '../../operate/store/messages.ts';
import type { FromMachine, ToMachine } from '../channels/machine.ts';
import type { FileSelection, GroupLoad } from '../load/group-load.ts';
import type { LoadedFile } from '../load/module-loader.ts';
import type { TaskEnd, TaskOrder } from '../tasks/task-host.ts';
import type { GenerationState } from './admissions.ts';

export type ToWorker =
  /** Load the folder. Sent once to each worker. All workers of a generation get the same files. */
  | ({ readonly kind: 'load'; readonly skip: readonly (readonly [file: string, reason: string])[] } & Omit<
      FileSelection,
      'skip'
    >)
  /** Import this new group, and wait for `admitted`. All workers must serve the same state of its file. */
  | { readonly kind: 'import'; readonly group: string }
  /** Answer the requests for this new group now. Every worker has imported it, or has failed or taken too long. */
  | { readonly kind: 'admitted'; readonly group: string }
  | { readonly kind: 'withheld'; readonly group: string; readonly answer: 'failed' | 'changed' }
  /** The state of the newest generation has changed. Sent to every worker, after each step of the supervisor. */
  | { readonly kind: 'generation'; readonly state: GenerationState }
  /** Do not import this file until it changes, because another worker ended while importing it. */
  | { readonly kind: 'skip'; readonly file: string; readonly reason: string }
  /** Serve HTTPS with this certificate. The message contains a private key, so it must never be logged. */
  | { readonly kind: 'secure'; readonly state: SecureState }
  /** Listen on the socket that comes with this message. */
  | { readonly kind: 'listen' }
  /**
   * Finish what is under way within `timeout` milliseconds, then end. `acceptFor` is the time in milliseconds to keep
   * accepting connections, because no other worker does; null means to stop accepting at once.
   */
  | { readonly kind: 'drain'; readonly timeout: number; readonly acceptFor: number | null }
  /** End now. Sent to a worker without connections. */
  | { readonly kind: 'quit' }
  /** The reply to `spent`: the tokens that callers have left after the requests of all workers. */
  | { readonly kind: 'balances'; readonly balances: readonly Balance[] }
  /** The state of the store, or the answer to a call (operate/store/worker.ts). */
  | ToWorkerStore
  /** Close the inspector, and open it at this address. The reply is `inspected`. */
  | { readonly kind: 'inspect'; readonly address: InspectorAddress | undefined }
  | TaskOrder
  | FromMachine
  | { readonly kind: 'ping' };

export type FromWorker =
  | { readonly kind: 'booted'; readonly isInspected?: boolean }
  /** The worker begins to import this file. If the process then ends or hangs, the file is to blame. */
  | { readonly kind: 'loading'; readonly file: string }
  /** The worker cannot load, and no controller is to blame: a JSON file in DATA_DIR exists but cannot be read. */
  | { readonly kind: 'load-failed'; readonly reason: string }
  | { readonly kind: 'loaded'; readonly groups: readonly GroupLoad[]; readonly files: readonly LoadedFile[] }
  | { readonly kind: 'listening' }
  | { readonly kind: 'listen-failed'; readonly code: string }
  /** A request names this new group. The reply is `admitted` or `withheld`. */
  | { readonly kind: 'requested'; readonly group: string }
  /** The reply to `import`. `load` is absent without a file of the group. `files` were read since the last report. */
  | {
      readonly kind: 'imported';
      readonly group: string;
      readonly load: GroupLoad | undefined;
      readonly files: readonly LoadedFile[];
    }
  /** Files that an operation imported when it was called, after the load. */
  | { readonly kind: 'imported-on-call'; readonly files: readonly LoadedFile[] }
  /** Something was thrown outside of any request, and has been logged. */
  | { readonly kind: 'faulty' }
  /** The counts since the last report; operate/ops/worker-metrics.ts has the type. */
  | { readonly kind: 'metrics'; readonly metrics: unknown }
  /** The tokens that callers have spent in this worker since the last such message. */
  | { readonly kind: 'spent'; readonly spendings: readonly Spending[] }
  /** A call to the store, which operate/store/link.ts answers. */
  | WorkerCall
  | TaskEnd
  | ToMachine
  | { readonly kind: 'inspected'; readonly url: string | undefined }
  | { readonly kind: 'pong'; readonly isInspected?: boolean };

export function seal<T extends ToWorker | FromWorker>(message: T) {
  return { gatefold: message };
}

/** Takes a message out of its envelope. @returns undefined for a controller's own message */
export function unseal<T extends ToWorker | FromWorker>(message: unknown): T | undefined {
  return (message as { readonly gatefold?: T } | null)?.gatefold;
}
