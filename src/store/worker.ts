// A worker's side of the store. The worker asks the supervisor, which asks the store-host, the process that talks to
// the store. Every answer comes within a time limit. Callers with the same question share one answer.

import { type ErrorCode, refusal } from '../base/errors.ts';
import type { Registration, SharedTable } from '../credentials/credentials.ts';
import type { Answer, Request, ToWorkerStore } from './messages.ts';

export interface SharedTableOptions {
  /** Whether the session key comes from the store. */
  readonly sharesSessionKey: boolean;
  /** Sends a message to the supervisor. */
  readonly send: (message: object) => void;
  /** Calls back for each message of the supervisor. */
  readonly onMessage: (receive: (message: unknown) => void) => void;
}

/** The time limit of a refresh, in milliseconds. The limit is needed because a blocked supervisor does not answer. */
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
    const ours = (message as { gatefold?: ToWorkerStore } | null)?.gatefold;
    if (ours?.kind !== 'store') return;
    if (ours.call !== undefined) return calls.get(ours.call)?.(ours.answer);
    isTooOld = ours.isTooOld;
    onChange();
  });

  function call(request: Request, timeout: number): Promise<Answer> {
    const number = ++nextCall;
    return new Promise((resolve) => {
      const timer = setTimeout(done, timeout, { error: 'The supervisor does not answer' });
      timer.unref();
      calls.set(number, done);
      send({ gatefold: { kind: 'store', call: number, request } });
      function done(answer: Answer): void {
        clearTimeout(timer);
        calls.delete(number);
        resolve(answer);
      }
    });
  }

  // With the answer to any call, the supervisor also sends whether the table is too old. So the worker makes a first
  // call at once.
  void call({ kind: 'look' }, REFRESH_TIMEOUT);
  return {
    refresh() {
      // All requests in one turn of the event loop share one look (a query for changes). A later request needs another
      // look, which begins after that request.
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
    onChange(look) {
      onChange = look;
    },
  };
}
