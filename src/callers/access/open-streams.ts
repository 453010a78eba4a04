// Ends a streamed answer whose key no longer allows the request. The rights of the key are checked when the request
// comes, but the stream can outlast these rights. So each second, a sweep looks at all streams. A stream is checked
// again in three cases: the credentials table has changed, the table has become too old to accept any key (kind
// `away`), or the key has expired.
import { isPromise } from '../../base/values.ts';
import type { Exchange } from '../../request/exchange.ts';
import { checkStillAllowed, invalidCredential, storeAway } from './credential-rights.ts';
import type { Caller, CallerTable } from './key-check.ts';

/** Watches a stream until its answer ends. Calls `end` when the key no longer allows it, or cannot be checked. */
export type WatchStream = (exchange: Exchange, end: (refusal: unknown) => void) => void;

interface OpenStream {
  readonly exchange: Exchange;
  readonly end: (refusal: unknown) => void;
  /** `credentials.table()` at the last check, or NOT_CHECKED. A table that changes or gets too old is another value. */
  checkedTable: unknown;
  /** When the key expires, in Unix milliseconds; Infinity when never. */
  expiresAt: number;
}

/**
 * Milliseconds between two sweeps. New requests notice a change of the credentials table within one second. Streams
 * that the change forbids end within another second. Because the sweep and the slow parse of a large table can be late,
 * docs/CREDENTIALS.md promises three seconds in all.
 */
const SWEEP_INTERVAL = 1000;
/** Maximum number of checks in one turn of the event loop. Each check hashes a secret, and other work has to wait. */
const CHECKS_A_TURN = 200;
const NOT_CHECKED = Symbol('not checked');

export function createStreamWatch(credentials: CallerTable): WatchStream {
  const streams = new Set<OpenStream>();
  let timer: NodeJS.Timeout | undefined;

  async function sweep(): Promise<void> {
    let checks = 0;
    for (const stream of streams) {
      if (stream.checkedTable === credentials.table?.() && Date.now() < stream.expiresAt) continue;
      if (++checks % CHECKS_A_TURN === 0) await new Promise(setImmediate);
      check(stream);
    }
  }

  function check(stream: OpenStream): void {
    stream.checkedTable = credentials.table?.();
    const caller = credentials.identify(stream.exchange.caller.key ?? '');
    if (isPromise(caller)) void caller.then((identified) => endIfRefused(stream, identified));
    else endIfRefused(stream, caller);
  }

  function endIfRefused(stream: OpenStream, caller: Caller): void {
    try {
      if (caller.kind === 'away') throw storeAway();
      if (caller.kind !== 'row')
        throw invalidCredential(caller.kind === 'refused' ? caller.reason : 'no row has it any more');
      checkStillAllowed(caller.row, stream.exchange);
      stream.expiresAt = caller.expiresAt ?? Number.POSITIVE_INFINITY;
    } catch (error) {
      if (streams.delete(stream)) stream.end(error);
    }
  }

  function forget(stream: OpenStream): void {
    streams.delete(stream);
    if (streams.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }

  return (exchange, end) => {
    if (exchange.caller.row === undefined) return;
    const stream: OpenStream = { exchange, end, checkedTable: NOT_CHECKED, expiresAt: 0 };
    streams.add(stream);
    exchange.response.once('close', () => forget(stream));
    timer ??= setInterval(sweep, SWEEP_INTERVAL).unref();
  };
}
