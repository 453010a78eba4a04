// What the row of a credential lets its calls do: which groups they reach, with which methods, and what an operation
// asks of them. It reads no table and no header; the gateway asks it about a group, the dispatcher about an operation.
import { refusal } from '../base/errors.ts';
import type { Rate } from '../base/rate.ts';
import { methodOf, VERB_OPERATIONS } from '../base/route-name.ts';
import type { AccessRule } from '../controller/operations.ts';
import type { CallingApplication } from '../controller.ts';
import { groupNameOf } from '../groups/naming.ts';

/** What is read of a row of the registered-credentials table. */
export interface CallerRow {
  readonly application: CallingApplication;
  /** The handler group that all its requests go to; where there is none, the URL chooses among `groups`. */
  readonly handler: string | undefined;
  readonly groups?: ReadonlySet<string> | '*' | undefined;
  /** Verbs allowed; undefined: all. */
  readonly methods: ReadonlySet<string> | undefined;
  /** How often it may call; undefined: as often as it likes. */
  readonly limit?: Rate | undefined;
}

/** @throws HttpError `GROUP_NOT_ALLOWED` */
export function checkGroup({ groups }: CallerRow, page: string): void {
  if (groups === undefined || groups === '*' || groups.has(groupNameOf(page) ?? '')) return;
  throw refusal('GROUP_NOT_ALLOWED');
}

/** @throws HttpError `METHOD_NOT_ALLOWED` */
export function checkVerb({ methods }: CallerRow, verb: string): void {
  if (methods === undefined || methods.has(verb) || (verb === 'HEAD' && methods.has('GET'))) return;
  throw refusal('METHOD_NOT_ALLOWED', 'This application may not use the method', {
    headers: { Allow: Array.from(methods).join(', ') },
  });
}

/**
 * Checks the verb that an operation is for, whatever the request's: else a credential that may only GET could delete by
 * `GET /api/orders/deleted/7`.
 *
 * @throws HttpError `METHOD_NOT_ALLOWED`
 */
export function checkOperation(row: CallerRow, operation: string): void {
  const verb = VERB_OPERATIONS.has(operation) ? operation : operation === 'updated' ? 'PUT' : methodOf(operation);
  if (verb !== undefined) checkVerb(row, verb);
}

/**
 * Checks an admitted request against its row as it is now. A scope that the row has lost is a refusal: the operation
 * may have looked for that scope itself.
 *
 * @throws HttpError `METHOD_NOT_ALLOWED`, `GROUP_NOT_ALLOWED`, `SCOPE_MISSING`
 */
export function checkStillAllowed(
  row: CallerRow,
  { application, verb, page, group, operation }: AdmittedRequest,
): void {
  checkVerb(row, verb);
  checkOperation(row, operation);
  if (row.handler === undefined) checkGroup(row, page);
  if (groupNameOf(row.handler ?? page) !== group) throw refusal('GROUP_NOT_ALLOWED');
  for (const scope of application?.scopes ?? []) checkAccess(row.application, { scope });
}

/** The request, with its application as it was when the request came. */
interface AdmittedRequest {
  readonly application: CallingApplication | undefined;
  readonly verb: string;
  readonly page: string;
  readonly group: string;
  readonly operation: string;
}

/** The refusal of a credential. @param reason for the log alone */
export function invalidCredential(reason: string): Error {
  return refusal('INVALID_CREDENTIAL', undefined, {
    headers: { 'WWW-Authenticate': 'Bearer error="invalid_token"' },
    cause: new Error(reason),
  });
}

/** @throws HttpError `CREDENTIAL_REQUIRED`, `SCOPE_MISSING` */
export function checkAccess(
  application: CallingApplication | undefined,
  access: Extract<AccessRule, 'anyone' | 'application' | { scope: string }>,
): void {
  if (access === 'anyone') return;
  if (application === undefined)
    throw refusal('CREDENTIAL_REQUIRED', undefined, { headers: { 'WWW-Authenticate': 'Bearer' } });
  if (access === 'application' || application.scopes?.includes(access.scope)) return;
  throw refusal('SCOPE_MISSING', `The operation asks for the scope ${access.scope}`);
}
