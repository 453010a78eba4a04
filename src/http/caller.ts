// Two steps of a request. The first finds out whose key the request brings. The second checks whether that key may use
// the method and the group of the URL. A key is the credential of a registered application, sent as `Authorization`.
// This file reads no table; `CallerTable` does.
import { refusal } from '../base/errors.ts';
import { type CallerRow, checkGroup, checkVerb, invalidCredential } from './credential-rights.ts';
import type { Exchange, Outcome, Step } from './exchange.ts';

/** The answer of the credentials table to an `Authorization` header. */
export type Caller =
  /** `expiresAt` is in Unix milliseconds. `expiresAt` is undefined when the credential never expires. */
  | { readonly kind: 'row'; readonly row: CallerRow; readonly expiresAt?: number }
  /** The header is not a key of this service, so operations may read it themselves. */
  | { readonly kind: 'foreign' }
  /** `id` is the id of the credential's row, if the token has a readable id. */
  | { readonly kind: 'refused'; readonly reason: string; readonly id?: string }
  /** The table is too old to accept any credential. */
  | { readonly kind: 'away' };

export interface CallerTable {
  /** Returns a promise only when the table must be read first. Neither throws nor rejects. */
  identify(authorization: string): Caller | Promise<Caller>;
  /**
   * Returns the current table, which is another object after each change. `table` is undefined when the table never
   * changes.
   */
  table?(): unknown;
}

/** @param keyHeader a header, in lower case, that may hold a key in the place of `Authorization` */
export function createIdentifyCaller(
  credentials: CallerTable,
  checkRate: Step,
  keyHeader: string | undefined = undefined,
): Step {
  function accept(exchange: Exchange, caller: Caller, text: string): undefined {
    if (caller.kind === 'row') {
      exchange.caller = caller.row;
      exchange.credential = caller.row.application.id;
      exchange.key = text;
    } else if (caller.kind === 'refused') {
      exchange.credential = caller.id ?? '';
      refuseKey(exchange, caller.reason);
    } else if (caller.kind === 'away') throw refusal('STORE_AWAY', undefined, { headers: { 'Retry-After': '5' } });
    else exchange.foreignAuthorization = text;
  }

  /**
   * Refuses a key. Each refusal first counts against the rate of the address, so a client that guesses keys is limited.
   */
  function refuseKey(exchange: Exchange, reason: string): never {
    checkRate(exchange);
    throw invalidCredential(reason);
  }

  function identify(exchange: Exchange, text: string): Outcome {
    const caller = credentials.identify(text);
    return caller instanceof Promise
      ? caller.then((row) => accept(exchange, row, text))
      : accept(exchange, caller, text);
  }

  function identifyAuthorization(exchange: Exchange): Outcome {
    const { authorization } = exchange.head;
    return authorization === undefined ? undefined : identify(exchange, authorization);
  }

  if (keyHeader === undefined) return identifyAuthorization;

  return async function identifyEither(exchange): Promise<undefined> {
    await identifyAuthorization(exchange);
    const { rawHeaders } = exchange.request;
    const keys = rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === keyHeader);
    if (keys.length === 0) return;
    if (keys.length > 1 || exchange.caller !== undefined)
      throw refusal('DUPLICATE_AUTHORIZATION', 'The request has more than one credential');
    const text = `Bearer ${keys[0]}`;
    const caller = await credentials.identify(text);
    if (caller.kind === 'foreign') refuseKey(exchange, `the header ${keyHeader} holds no key of this service`);
    accept(exchange, caller, text);
  };
}

/**
 * Checks whether the key may use the verb and the group of the URL. If the row of the key has a handler, that one group
 * serves every URL. So the group of the URL is then not checked.
 */
export function checkRights({ caller, verb, page }: Exchange): undefined {
  if (caller === undefined) return;
  checkVerb(caller, verb);
  if (caller.handler === undefined) checkGroup(caller, page);
}
