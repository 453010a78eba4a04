// Checks the rights of a key: the groups and methods that its row in the credentials table allows, and the rules of the
// setting `access` that ask for a key or a scope.

import type { AccessRule } from '../../api/controller/operations.ts';
import type { CallingApplication } from '../../api/controller.ts';
import { type HttpErrorOptions, refusal } from '../../base/errors.ts';
import { groupNameOf } from '../../base/group-name.ts';
import { methodOf, VERB_OPERATIONS } from '../../base/route-name.ts';
import type { Exchange } from '../../request/exchange.ts';
import type { CredentialRow } from '../credentials/table/row.ts';

/** The fields of a row of the registered-credentials table that a request needs. */
export type CallerRow = Pick<CredentialRow, 'application' | 'handler' | 'methods'> &
  Partial<Pick<CredentialRow, 'groups' | 'limit'>>;

export type Call = Pick<Exchange, 'verb' | 'groupInUrl' | 'group' | 'operation'>;

export function checkGroup({ groups }: CallerRow, groupInUrl: string): void {
  if (groups === '*' || groups?.has(groupNameOf(groupInUrl) ?? '')) return;
  throw refusal('GROUP_NOT_ALLOWED');
}

export function checkVerb({ methods }: CallerRow, verb: string): void {
  if (methods === undefined || methods.has(verb) || (verb === 'HEAD' && methods.has('GET'))) return;
  throw refusal('METHOD_NOT_ALLOWED', 'This application may not use the method', {
    headers: { Allow: Array.from(methods).join(', ') },
  });
}

/**
 * Checks whether the key may use the verb that the operation is meant for, such as DELETE for `deleted`, and PUT for
 * `updated`. Without this check, a key for GET alone could delete an order by `GET /api/orders/deleted/7`.
 *
 * @throws HttpError `METHOD_NOT_ALLOWED`
 */
export function checkOperationVerb(row: CallerRow, operation: string, requestVerb: string): void {
  const verb = VERB_OPERATIONS.has(operation) ? operation : operation === 'updated' ? 'PUT' : methodOf(operation);
  // HEAD calls the operation of GET, and may be the only method of the key.
  if (verb !== undefined && (verb !== 'GET' || requestVerb !== 'HEAD')) checkVerb(row, verb);
}

/** Checks a call of an operation, but not its `access`. @throws HttpError `METHOD_NOT_ALLOWED`, `GROUP_NOT_ALLOWED` */
export function checkCall(row: CallerRow, { verb, groupInUrl, group, operation }: Call): void {
  checkVerb(row, verb);
  checkOperationVerb(row, operation, verb);
  if (row.handler === undefined) checkGroup(row, groupInUrl);
  // The request of a key with a handler would reach the handler, and no other group.
  if (groupNameOf(row.handler ?? groupInUrl) !== group) throw refusal('GROUP_NOT_ALLOWED');
}

/**
 * Checks whether the present row of a key still allows a request that the service is already answering. The row must
 * still have every scope of the request, because the code of the operation can depend on any scope.
 *
 * @param exchange the request, whose caller is as it was when the request came
 * @throws HttpError `METHOD_NOT_ALLOWED`, `GROUP_NOT_ALLOWED`, `SCOPE_MISSING`
 */
export function checkStillAllowed(row: CallerRow, exchange: Call & Pick<Exchange, 'caller'>): void {
  checkCall(row, exchange);
  for (const scope of exchange.caller.application?.scopes ?? []) checkAccess(row, { scope });
}

/** @param reason written to the log, and not sent */
export function invalidCredential(reason: string): Error {
  return refusal('INVALID_CREDENTIAL', undefined, {
    headers: { 'WWW-Authenticate': 'Bearer error="invalid_token"' },
    cause: new Error(reason),
  });
}

/** Refuses a key while this machine's copy of the credentials table is too old to accept any. */
export function storeAway(): Error {
  return refusal('STORE_AWAY', undefined, { headers: { 'Retry-After': '5' } });
}

/**
 * Checks a rule that is no function.
 *
 * @param challenge the header of the refusal of a caller who is no user
 * @throws HttpError `USER_REQUIRED`, `CREDENTIAL_REQUIRED`, `SCOPE_MISSING`
 */
export function checkAccess(
  { application, user }: { readonly application?: CallingApplication | undefined; readonly user?: unknown },
  access: Exclude<AccessRule, (...args: never[]) => unknown>,
  challenge?: HttpErrorOptions,
): undefined {
  if (access === 'anyone') return;
  if (access === 'user' || access === 'caller') {
    if (user !== undefined || (access === 'caller' && application !== undefined)) return;
    throw refusal('USER_REQUIRED', undefined, challenge);
  }
  if (application === undefined)
    throw refusal('CREDENTIAL_REQUIRED', undefined, { headers: { 'WWW-Authenticate': 'Bearer' } });
  if (access === 'application' || application.scopes?.includes(access.scope)) return;
  throw refusal('SCOPE_MISSING', `The operation asks for the scope ${access.scope}`);
}
