// A worker's side of the store: the worker calls the supervisor, which calls the store-host.
import { type ErrorCode, refusal } from '../../base/errors.ts';
import type { Registration, SharedTable } from '../../callers/credentials/credentials.ts';
import type { ChangedRows } from '../../callers/credentials/table/early-rows.ts';
import { createCalls } from './calls.ts';
import type { ToWorkerStore } from './messages.ts';

export interface SharedTableOptions {
  readonly sharesSessionKey: boolean;
  readonly send: (message: object) => void;
  /** Registers a function that gets each message of the supervisor, also messages for other parts of the worker. */
  readonly onMessage: (listener: (message: unknown) => void) => void;
}

/** The time limit of a refresh, in milliseconds. Without the limit, requests would wait for a blocked supervisor. */
const REFRESH_TIMEOUT = 1500;
const REGISTER_TIMEOUT_MS = 15_000;

export function createSharedTable({ sharesSessionKey, send, onMessage }: SharedTableOptions): SharedTable {
  const calls = createCalls(
    (message) => send({ gatefold: { kind: 'store', ...message } }),
    'The supervisor does not answer',
  );
  /** Whether the table is older than the setting STORE_MAX_AGE. */
  let isTooOld = false;
  let refreshing: Promise<void> | undefined;
  let onChange = () => {};
  /** The changes that come while the worker still reads the table. */
  const waiting: ChangedRows[] = [];
  let onRowsChanged = (changed: ChangedRows): void => void waiting.push(changed);

  onMessage((message) => {
    const storeMessage = (message as { gatefold?: ToWorkerStore } | null)?.gatefold;
    if (storeMessage?.kind !== 'store') return;
    if (storeMessage.call !== undefined) return calls.answer(storeMessage.call, storeMessage.answer);
    if (storeMessage.changed !== undefined) return onRowsChanged(storeMessage.changed);
    isTooOld = storeMessage.isTooOld;
    onChange();
  });

  // Before its answer to a call, the supervisor sends `isTooOld`. This first call asks for it at the start.
  void calls.call({ kind: 'look' }, REFRESH_TIMEOUT);
  return {
    refresh() {
      // All requests in one turn of the event loop share one look, which is a query for changes. A later request may
      // need a change that this look does not find, so the request makes another look.
      refreshing ??= Promise.resolve().then(async () => {
        refreshing = undefined;
        // After a failed look, the table in memory decides: a credential that it does not have is refused.
        await calls.call({ kind: 'look' }, REFRESH_TIMEOUT);
      });
      return refreshing;
    },
    async register(row, { owner, name }: Registration) {
      const { error, code } = await calls.call({ kind: 'register', row, owner, name }, REGISTER_TIMEOUT_MS);
      if (code !== undefined) throw refusal(code as ErrorCode);
      if (error !== undefined) throw new Error(error);
    },
    isTooOld: () => isTooOld,
    sharesSessionKey,
    onChange(listener) {
      onChange = listener;
    },
    onRowsChanged(listener) {
      onRowsChanged = listener;
      waiting.splice(0).forEach(listener);
    },
  };
}
