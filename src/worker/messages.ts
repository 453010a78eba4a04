// What the supervisor and its workers say to each other over the IPC channel: one union for each direction. A
// controller may use the same channel for its own ends, so our messages stand in an envelope that tells them from all
// others.

import type { LoadedFile } from '../groups/module-loader.ts';
import type { GroupLoad } from '../groups/registry.ts';
import type { SecureState } from '../https/serve/secure-state.ts';
import type { Balance, Spending } from '../limits/rate-limiter.ts';

export type ToWorker =
  /**
   * `files`: names in the folder, the same for all workers of a generation. `skip`: file name → reason; these ended or
   * hung an earlier worker and must not be touched.
   */
  | {
      readonly kind: 'load';
      readonly files: readonly string[];
      readonly skip: readonly (readonly [file: string, reason: string])[];
    }
  /** Another worker has imported this new group: so that all of them serve the same state of its file. */
  | { readonly kind: 'import'; readonly group: string }
  /** Every worker has said how it fared with this new group: whoever has it may answer from it. */
  | { readonly kind: 'shared'; readonly group: string }
  /** This file ended another worker while that imported it: it must not be touched until it changes. */
  | { readonly kind: 'skip'; readonly file: string; readonly reason: string }
  /** What to serve HTTPS with. A private key is in it: nothing may log this message. */
  | { readonly kind: 'secure'; readonly state: SecureState }
  /** The socket to accept on comes with it. */
  | { readonly kind: 'listen' }
  /**
   * Finish what is under way within `timeout` milliseconds, then end. `acceptFor`: no other worker accepts in its
   * place, so it goes on for as many milliseconds; null: stop accepting at once.
   */
  | { readonly kind: 'drain'; readonly timeout: number; readonly acceptFor: number | null }
  /** End now: for a worker that holds no connection. */
  | { readonly kind: 'quit' }
  /** To `spent`: what callers have left with what all workers have spent. */
  | { readonly kind: 'left'; readonly balances: readonly Balance[] }
  | { readonly kind: 'ping' };

export type FromWorker =
  | { readonly kind: 'booted' }
  /** This file is being imported: if the process ends or hangs, it is to blame. */
  | { readonly kind: 'loading'; readonly file: string }
  /** Not a controller's fault: a table that is there and cannot be read. */
  | { readonly kind: 'unfit'; readonly reason: string }
  | { readonly kind: 'loaded'; readonly groups: readonly GroupLoad[]; readonly files: readonly LoadedFile[] }
  | { readonly kind: 'listening' }
  | { readonly kind: 'listen-failed'; readonly code: string }
  /** A brand-new group was imported in place, or could not be. One that was answers nothing before it is `shared`. */
  | { readonly kind: 'imported'; readonly group: GroupLoad; readonly files: readonly LoadedFile[] }
  /** Files that were imported later than at load, by an operation when it was called. */
  | { readonly kind: 'read'; readonly files: readonly LoadedFile[] }
  /** To `import`, where there was nothing to import: it has that group, or cannot have it. */
  | { readonly kind: 'nothing-to-import'; readonly group: string }
  /** Something was thrown outside any request; it has been logged. */
  | { readonly kind: 'faulty' }
  /** What it has counted; whoever reads the metrics knows the shape. */
  | { readonly kind: 'metrics'; readonly metrics: unknown }
  /** What callers with a rate limit have spent in this worker. */
  | { readonly kind: 'spent'; readonly spendings: readonly Spending[] }
  | { readonly kind: 'pong' };

export interface Envelope<T> {
  readonly gatefold: T;
}

export function seal<T extends ToWorker | FromWorker>(message: T): Envelope<T> {
  return { gatefold: message };
}

/** Undefined for what is not ours. */
export function unseal<T extends ToWorker | FromWorker>(message: unknown): T | undefined {
  return (message as Partial<Envelope<T>> | null)?.gatefold;
}
