// Two steps of a request. The first finds out whose key the request brings. The second checks whether that key may use
// the method and the group of the URL. A key is sent as `Authorization`, or in another header of the service file.
import { refusal } from '../../base/errors.ts';
import { isPromise } from '../../base/values.ts';
import type { Exchange, Outcome, Step } from '../../request/exchange.ts';
import { type CallerRow, checkGroup, checkVerb, invalidCredential, storeAway } from './credential-rights.ts';

/** The answer of the credentials table to an `Authorization` header. */
export type Caller =
  /** The header holds a valid key. `expiresAt` is in Unix milliseconds; absent when the key never expires. */
  | { readonly kind: 'row'; readonly row: CallerRow; readonly expiresAt?: number }
  /** The header is not a key of this service, so operations may read it themselves. */
  | { readonly kind: 'foreign' }
  /** The header holds a key that is not valid. `id` is the id that the key contains, if it can be read. */
  | { readonly kind: 'refused'; readonly reason: string; readonly id?: string }
  /** This machine's copy of the table is too old to accept any credential. */
  | { readonly kind: 'away' };

export interface CallerTable {
  /** Returns a promise only when the table must be read first. Neither throws nor rejects. */
  identify(authorization: string): Caller | Promise<Caller>;
  /**
   * Returns the present table: another object after each change, and undefined while it is too old to accept any key.
   * This method is absent if the table never changes.
   */
  table?(): unknown;
}

/** @param keyHeader the name, in lower case, of a header that may hold a key in the place of `Authorization` */
export function createIdentifyCaller(credentials: CallerTable, checkRate: Step, keyHeader: string | undefined): Step {
  function useCaller(exchange: Exchange, caller: Caller, authorization: string, header: string): undefined {
    if (caller.kind === 'row') {
      exchange.caller.keyHeader = header;
      exchange.caller.row = caller.row;
      exchange.caller.credentialId = caller.row.application.id;
      exchange.caller.key = authorization;
    } else if (caller.kind === 'refused') {
      exchange.caller.credentialId = caller.id ?? '';
      refuseKey(exchange, caller.reason);
    } else if (caller.kind === 'away') throw storeAway();
    else exchange.caller.foreignAuthorization = authorization;
  }

  /** Refuses a key. First, the request counts as a call of the address, so a client that guesses keys is limited. */
  function refuseKey(exchange: Exchange, reason: string): never {
    checkRate(exchange);
    throw invalidCredential(reason);
  }

  function identifyAuthorization(exchange: Exchange): Outcome {
    const { authorization } = exchange.head;
    if (authorization === undefined) return undefined;
    const caller = credentials.identify(authorization);
    return isPromise(caller)
      ? caller.then((identified) => useCaller(exchange, identified, authorization, 'authorization'))
      : useCaller(exchange, caller, authorization, 'authorization');
  }

  if (keyHeader === undefined) return identifyAuthorization;

  return async function identifyByEitherHeader(exchange): Promise<undefined> {
    await identifyAuthorization(exchange);
    const { rawHeaders } = exchange.request;
    const keyValues = rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === keyHeader);
    if (keyValues.length === 0) return;
    if (keyValues.length > 1 || exchange.caller.row !== undefined)
      throw refusal('DUPLICATE_AUTHORIZATION', 'The request has more than one credential');
    // The row of a key from elsewhere has the value of a header as it is sent, or as `Authorization` would have it.
    for (const key of [keyValues[0] as string, `Bearer ${keyValues[0]}`]) {
      const caller = await credentials.identify(key);
      if (caller.kind !== 'foreign') return useCaller(exchange, caller, key, keyHeader);
    }
    refuseKey(exchange, `the header ${keyHeader} holds no key of this service`);
  };
}

/** Checks the verb and the group of the URL; only the verb for a row with a handler, whose group serves every URL. */
export function checkRights({ caller: { row }, verb, groupInUrl }: Exchange): undefined {
  if (row === undefined) return;
  checkVerb(row, verb);
  if (row.handler === undefined) checkGroup(row, groupInUrl);
}
