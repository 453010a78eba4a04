// Two steps of a request: whose key it brings, and whether that key may use the method and the group of the URL. A key
// is the credential of a registered application, sent as `Authorization`. This file reads no table; `CallerTable` does.
import { type CallerRow, checkGroup, checkVerb, invalidCredential } from './credential-rights.ts';
import type { Exchange, Outcome, Step } from './exchange.ts';

/** The answer of the credentials table to an `Authorization` header. */
export type Caller =
  /** `expiresAt` is in Unix milliseconds. Undefined: the credential never expires. */
  | { readonly kind: 'row'; readonly row: CallerRow; readonly expiresAt?: number }
  /** The header is no key of this service: operations may read it themselves. */
  | { readonly kind: 'foreign' }
  /** `id` names the row, if the token has a readable one. */
  | { readonly kind: 'refused'; readonly reason: string; readonly id?: string };

export interface CallerTable {
  /** Returns a promise only when the table must be read first. Neither throws nor rejects. */
  identify(authorization: string): Caller | Promise<Caller>;
  /** Returns the current table, another object after each change. Undefined: the table never changes. */
  table?(): unknown;
}

export function createIdentifyCaller(credentials: CallerTable, checkRate: Step): Step {
  function accept(exchange: Exchange, caller: Caller): undefined {
    if (caller.kind === 'row') {
      exchange.caller = caller.row;
      exchange.credential = caller.row.application.id;
    } else if (caller.kind === 'refused') {
      exchange.credential = caller.id ?? '';
      // A client that guesses keys is limited by its address.
      checkRate(exchange);
      throw invalidCredential(caller.reason);
    }
  }

  return function identifyCaller(exchange): Outcome {
    const { authorization } = exchange.head;
    if (authorization === undefined) return undefined;
    const caller = credentials.identify(authorization);
    return caller instanceof Promise ? caller.then((row) => accept(exchange, row)) : accept(exchange, caller);
  };
}

/** A row with a handler serves every group of the URL, so its groups are not asked. */
export function checkRights({ caller, verb, page }: Exchange): undefined {
  if (caller === undefined) return;
  checkVerb(caller, verb);
  if (caller.handler === undefined) checkGroup(caller, page);
}
