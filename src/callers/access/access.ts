// The rules of the property `access`, such as `'user'` and `{ scope: 'notes:write' }`. They decide who may call an
// operation. This file checks the form of the rules. callers/access/user-check.ts applies the rules to requests.
import { isProxy } from 'node:util/types';
import type { Access, AccessRule } from '../../api/controller/operations.ts';
import { isObject, isPlainFunction, isScope } from '../../base/values.ts';

/** The values that `isAccess` accepts, for error messages. */
export const ACCESS_FORM =
  "'anyone', 'application', 'user', 'caller', { scope: '…' }, a function (params) => boolean, or a list of these";

/** The name of the OpenAPI security scheme for a credential in the header `Authorization`. */
export const BEARER_SCHEME = 'application';
/** The name of the OpenAPI security scheme for a credential in the header that the property `keyHeader` names. */
export const KEY_HEADER_SCHEME = 'applicationKey';

const NAMED_RULES: ReadonlySet<unknown> = new Set(['anyone', 'application', 'user', 'caller']);

export function isAccess(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 && value.every(isRule) : isRule(value);
}

function isRule(value: unknown): boolean {
  if (NAMED_RULES.has(value) || isPlainFunction(value)) return true;
  // A proxy could show one scope to this check and another one to requests.
  return isObject(value) && !isProxy(value) && Object.keys(value).join() === 'scope' && isScope(value.scope);
}

/** Returns the rules, which must all hold. */
export function rulesOf(access: Access): readonly AccessRule[] {
  return Array.isArray(access) ? access : [access as AccessRule];
}

/** Returns whether an operation with this access runs only for a user who has signed in. */
export function requiresUser(access: Access): boolean {
  return rulesOf(access).includes('user');
}

/** Describes an access for people: `user and scope notes:write`. Returns undefined when anyone may call. */
export function outlineAccess(access: Access | undefined): string | undefined {
  const rules = rulesOf(access ?? 'anyone').filter((rule) => rule !== 'anyone');
  const words = rules.map((rule) => {
    if (typeof rule === 'function') return 'a function';
    return typeof rule === 'object' ? `scope ${rule.scope}` : rule;
  });
  return words.length === 0 ? undefined : words.join(' and ');
}
