// Writes who may call an operation:
// - the security schemes of the document
// - the alternatives of each operation
// - the answers to callers who may not call the operation
// http/caller-check.ts refuses such callers when a request comes.
import type { LoadedService } from '../groups/service-file.ts';
import { BEARER_SCHEME, KEY_HEADER_SCHEME, rulesOf } from '../service/access.ts';
import type { DocumentedOperation } from './openapi.ts';

type Access = DocumentedOperation['settings']['access'];
type Requirement = Readonly<Record<string, readonly string[]>>;

export interface AccessWriter {
  /** All schemes, by name. */
  readonly schemes: Readonly<Record<string, object>>;
  /** The alternatives of an operation that anyone may call. */
  readonly open: readonly Requirement[];
  /**
   * Returns the alternatives of an operation. A caller needs only one of them. Returns undefined when the alternatives
   * are those of `open`.
   */
  alternatives(access: Access): readonly Requirement[] | undefined;
}

/** @param service undefined when there is no service file */
export function createAccessWriter(
  service: Pick<LoadedService, 'authenticate' | 'securitySchemes' | 'keyHeader'> | undefined,
): AccessWriter {
  const { authenticate, securitySchemes = {}, keyHeader } = service ?? {};
  const keySchemes = {
    [BEARER_SCHEME]: { type: 'http', scheme: 'bearer', description: 'The credential of a registered application' },
    ...(keyHeader !== undefined && {
      [KEY_HEADER_SCHEME]: {
        type: 'apiKey',
        in: 'header',
        name: keyHeader,
        description: 'The credential of a registered application, in a header of its own',
      },
    }),
  };
  const users = (authenticate === undefined ? [] : Object.keys(securitySchemes)).map(
    (name): Requirement => ({ [name]: [] }),
  );
  const keys = (scopes: readonly string[]) => Object.keys(keySchemes).map((name): Requirement => ({ [name]: scopes }));
  return {
    schemes: { ...keySchemes, ...securitySchemes },
    open: [{}, ...keys([]), ...users],
    alternatives(access = 'anyone') {
      const rules = rulesOf(access);
      const scopes = rules.flatMap((rule) => (typeof rule === 'object' ? [rule.scope] : []));
      const needsKey = scopes.length > 0 || rules.includes('application');
      const needsUser = rules.includes('user') && users.length > 0;
      if (needsKey && needsUser) return users.flatMap((user) => keys(scopes).map((key) => ({ ...user, ...key })));
      if (needsKey) return keys(scopes);
      if (needsUser) return users;
      return rules.includes('caller') && !rules.includes('user') ? [...users, ...keys([])] : undefined;
    },
  };
}

/** Returns the names of the answers that refuse a caller, by status. */
export function refusalsOf(access: Access = 'anyone'): Readonly<Record<string, string>> {
  const rules = rulesOf(access);
  const takesUser = rules.includes('user') || rules.includes('caller');
  const hasScope = rules.some((rule) => typeof rule === 'object');
  return {
    ...((hasScope || rules.includes('application')) && { 401: 'CredentialRequired' }),
    ...(takesUser && { 401: 'UserRequired' }),
    ...(hasScope && { 403: 'ScopeMissing' }),
    ...(rules.some((rule) => typeof rule === 'function') && { 403: 'AccessDenied' }),
  };
}
