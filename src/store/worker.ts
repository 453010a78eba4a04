// A worker's side of the store. The worker asks the supervisor, which asks the store-host, the process that talks to
// the store. Every call has a time limit. Requests that ask for changes at the same time share one call.

import { type ErrorCode, refusal } from '../base/errors.ts';
import type { Registration, SharedTable } from '../credentials/credentials.ts';
import type { Answer, Request, ToWorkerStore } from './messages.ts';

export interface SharedTableOptions {
  /** Whether the session key comes from the store. */
  readonly sharesSessionKey: boolean;
  /** Sends a message to the supervisor. */
  readonly send: (message: object) => void;
  /** Passes each message of the supervisor to `receive`. */
  readonly onMessage: (receive: (message: unknown) => void) => void;
}

/** The time limit of a refresh, in milliseconds. Without it, requests would wait for a supervisor that is blocked. */
const REFRESH_TIMEOUT = 1500;
/** The time limit of a registration, in milliseconds. */
const REGISTER_TIMEOUT = 15_000;

export function createSharedTable({ sharesSessionKey, send, onMessage }: SharedTableOptions): SharedTable {
  const calls = new Map<number, (answer: Answer) => void>();
  let nextCall = 0;
  let isTooOld = false;
  let refreshing: Promise<void> | undefined;
  let onChange = () => {};

  onMessage((message) => {
    const storeMessage = (message as { gatefold?: ToWorkerStore } | null)?.gatefold;
    if (storeMessage?.kind !== 'store') return;
    if (storeMessage.call !== undefined) return calls.get(storeMessage.call)?.(storeMessage.answer);
    isTooOld = storeMessage.isTooOld;
    onChange();
  });

  function call(request: Request, timeout: number): Promise<Answer> {
    const callNumber = ++nextCall;
    return new Promise((resolve) => {
      const timer = setTimeout(finish, timeout, { error: 'The supervisor does not answer' });
      timer.unref();
      calls.set(callNumber, finish);
      send({ gatefold: { kind: 'store', call: callNumber, request } });
      function finish(answer: Answer): void {
        clearTimeout(timer);
        calls.delete(callNumber);
        resolve(answer);
      }
    });
  }

  // For every call, the supervisor also sends whether the table is too old. So the worker makes a first call at once.
  void call({ kind: 'look' }, REFRESH_TIMEOUT);
  return {
    refresh() {
      // All requests in one turn of the event loop share one look, which is a query for changes. A later request needs
      // a look of its own, because it asks for changes up to its own time.
      refreshing ??= Promise.resolve().then(() => {
        refreshing = undefined;
        return call({ kind: 'look' }, REFRESH_TIMEOUT).then(() => {});
      });
      return refreshing;
    },
    async register(row, { owner, name }: Registration) {
      const { error, code } = await call({ kind: 'register', row, owner, name }, REGISTER_TIMEOUT);
      if (code !== undefined) throw refusal(code as ErrorCode);
      if (error !== undefined) throw new Error(error);
    },
    isTooOld: () => isTooOld,
    sharesSessionKey,
    onChange(listener) {
      onChange = listener;
    },
  };
}
