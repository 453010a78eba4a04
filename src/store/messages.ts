// The messages of the store, over IPC: between the supervisor and its store-host, and between a worker and the
// supervisor. Worker messages are in the envelope of worker/messages.ts, with the kind `store`.
import type { Spending } from './store.ts';

/** A request to the store-host. The sender numbers its calls, and each call gets one answer with its number. */
export type Request =
  /** Makes the replica, which is this machine's copy of the credentials table, equal to the store. */
  | { readonly kind: 'look' }
  /** Adds the row of an application that a user registers. */
  | { readonly kind: 'register'; readonly row: object; readonly owner: Owner; readonly name: string }
  | { readonly kind: 'spend'; readonly spendings: readonly Spending[] };

interface Owner {
  readonly issuer: string;
  readonly subject: string;
}

export interface Answer {
  /** The reason why the call failed; undefined when it succeeded. */
  readonly error?: string;
  /** The code of the HttpError, when the call failed with one. */
  readonly code?: string;
  /** The tokens that are left, for `spend`. */
  readonly tokens?: readonly number[];
}

export interface ToHost {
  readonly call: number;
  readonly request: Request;
}

export type FromHost =
  | { readonly kind: 'answer'; readonly call: number; readonly answer: Answer }
  /** A line of the log, with its line feed. */
  | { readonly kind: 'log'; readonly line: string }
  /** The file of the table or of the session key has changed, so workers must read it again. */
  | { readonly kind: 'published' }
  | { readonly kind: 'state'; readonly state: HostState }
  /** The store-host cannot start until somebody changes something. */
  | { readonly kind: 'failed'; readonly reason: string };

export interface HostState {
  /** The reason why the store cannot be used, as a text; null when the store can be used. */
  readonly away: string | null;
  /** Whether a retry is useless until somebody changes something. */
  readonly isFinal: boolean;
  /** Whether workers have a table. */
  readonly hasTable: boolean;
  /** Milliseconds since the replica was last proven to be complete; null when it never was. */
  readonly age: number | null;
  readonly rows: number;
  /** The number of machines that have reported within 15 s, including this one. */
  readonly machines: number;
  readonly looks: number;
  readonly fullReads: number;
  readonly missedBells: number;
}

/** A call that a worker sends to the supervisor. */
export interface WorkerCall extends ToHost {
  readonly kind: 'store';
}

/**
 * A message of the supervisor to a worker: either the answer to a call, or a notice to read the files again. The notice
 * also says whether the table is too old.
 */
export type ToWorkerStore =
  | { readonly kind: 'store'; readonly call: number; readonly answer: Answer }
  | { readonly kind: 'store'; readonly call?: undefined; readonly isTooOld: boolean };
