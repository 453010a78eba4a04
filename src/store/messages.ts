// The messages of the store, over IPC: between the supervisor and its store-host, and between a worker and the
// supervisor. Worker messages are in the envelope of worker/messages.ts, with the kind `store`.
import type { Spending } from './store.ts';

/** A call has a number, and one answer. */
export type Request =
  /** Makes the replica equal to the store. */
  | { readonly kind: 'look' }
  /** Adds a row for an identity. */
  | { readonly kind: 'register'; readonly row: object; readonly owner: Owner; readonly name: string }
  | { readonly kind: 'spend'; readonly spendings: readonly Spending[] };

interface Owner {
  readonly issuer: string;
  readonly subject: string;
}

export interface Answer {
  /** Why the call failed; undefined: it is done. */
  readonly error?: string;
  /** The code of an HttpError. */
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
  /** Workers must read the files of the table and of the session key again. */
  | { readonly kind: 'published' }
  | { readonly kind: 'state'; readonly state: HostState }
  /** The store can never work like this. */
  | { readonly kind: 'failed'; readonly reason: string };

export interface HostState {
  /** Why the store is away; null: it is not. */
  readonly away: string | null;
  /** To retry is useless until somebody changes something. */
  readonly isFinal: boolean;
  /** Whether workers have a table. */
  readonly hasTable: boolean;
  /** Milliseconds since the replica was proven to be complete; null: never. */
  readonly age: number | null;
  readonly rows: number;
  /** Machines that have reported lately, this one included. */
  readonly machines: number;
  readonly looks: number;
  readonly fullReads: number;
  readonly missedBells: number;
}

/** From a worker. */
export interface WorkerCall extends ToHost {
  readonly kind: 'store';
}

/** To a worker. */
export type ToWorkerStore =
  | { readonly kind: 'store'; readonly call: number; readonly answer: Answer }
  | { readonly kind: 'store'; readonly call?: undefined; readonly isTooOld: boolean };
