// The messages of the store over IPC: between the supervisor and the store-host, and between a worker and the
// supervisor. Messages of workers have the form of live/worker/messages.ts, with the kind `store`.
import type { ChangedRows } from '../../callers/credentials/table/early-rows.ts';
import type { Owner } from '../../callers/credentials/table/row.ts';
import type { Spending } from '../../callers/rates/rate-limiter.ts';

export type Request =
  /** Makes the replica, which is this machine's copy of the credentials table, equal to the store. */
  | { readonly kind: 'look' }
  | { readonly kind: 'register'; readonly row: object; readonly owner: Owner; readonly name: string }
  /** Reads the state of the tasks of a service, or writes it if it has the version. */
  | { readonly kind: 'tasks'; readonly service: string; readonly version?: string; readonly text?: string }
  | { readonly kind: 'spend'; readonly spendings: readonly Spending[] };

export interface Answer {
  readonly error?: string;
  readonly code?: string;
  /** For `spend`: the tokens that each caller has left. */
  readonly tokens?: readonly number[];
  /** For `tasks`: the state after a read, and whether a write was made. */
  readonly tasks?: { readonly version: string; readonly text: string };
  readonly isWritten?: boolean;
}

export interface ToHost {
  /** The number of the call. The answer has the same number. */
  readonly call: number;
  readonly request: Request;
}

export type FromHost =
  | { readonly kind: 'answer'; readonly call: number; readonly answer: Answer }
  | { readonly kind: 'log'; readonly line: string }
  /** The store-host has written the file of the table or of the session key, so workers must read it again. */
  | { readonly kind: 'files-changed' }
  /** The store has other rows. Workers heed them before they have read the file. */
  | { readonly kind: 'rows-changed'; readonly changed: ChangedRows }
  | { readonly kind: 'state'; readonly state: HostState }
  /** The store-host cannot start until somebody changes something. */
  | { readonly kind: 'failed'; readonly reason: string };

export interface HostState {
  /** The reason why the store cannot be used; null when the last look succeeded, and before the first look. */
  readonly awayReason: string | null;
  /** Whether a retry is useless until an operator changes something, such as a password. */
  readonly needsOperator: boolean;
  readonly hasTable: boolean;
  /** Milliseconds since the replica was last proven to be complete; null when it never was. */
  readonly age: number | null;
  /** The seconds by which the clock of the store is ahead of the clock here; 0 until it is known. */
  readonly secondsAhead: number;
  /** The number of machines that have reported within 15 s, including this one. */
  readonly machines: number;
  readonly tableBytes: number;
  /** The bytes beyond which the store takes no new row. */
  readonly tableLimit: number;
  /** How often all rows were read, and not only the changes, since the start of the store-host. */
  readonly fullReads: number;
  /** How often changes came that no notification of the store had announced, since the start of the store-host. */
  readonly missedBells: number;
}

export interface WorkerCall extends ToHost {
  readonly kind: 'store';
}

/** The answer to a call, or changed rows, or a notice to read the files again and whether the table is too old. */
export type ToWorkerStore =
  | { readonly kind: 'store'; readonly call: number; readonly answer: Answer }
  | { readonly kind: 'store'; readonly call?: undefined; readonly changed: ChangedRows }
  | { readonly kind: 'store'; readonly call?: undefined; readonly changed?: undefined; readonly isTooOld: boolean };
