// Writes into the OpenAPI document who may call an operation: the security schemes, the requirements of each operation,
// and the answers to callers who may not call it.
import { BEARER_SCHEME, KEY_HEADER_SCHEME, rulesOf } from '../callers/access/access.ts';
import type { DocumentedOperation, DocumentedService } from './documented.ts';

type Access = DocumentedOperation['settings']['access'];
/** A Security Requirement Object of OpenAPI: `{ application: ['orders:write'] }` is a scheme and its scopes. */
type Requirement = Readonly<Record<string, readonly string[]>>;

export type AccessWriter = ReturnType<typeof createAccessWriter>;

export function createAccessWriter(service: DocumentedService | undefined) {
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
  const userSchemes = authenticate === undefined ? [] : Object.keys(securitySchemes);
  const userRequirements = userSchemes.map((name): Requirement => ({ [name]: [] }));
  const keyRequirements = (scopes: readonly string[]) =>
    Object.keys(keySchemes).map((name): Requirement => ({ [name]: scopes }));
  return {
    schemes: { ...keySchemes, ...securitySchemes },
    /** For an operation that anyone may call. One of the requirements is empty, so a caller needs no scheme. */
    openRequirements: [{}, ...keyRequirements([]), ...userRequirements],
    requirementsOf(access: Access = 'anyone'): readonly Requirement[] | undefined {
      const rules = rulesOf(access);
      const scopes = rules.flatMap((rule) => (typeof rule === 'object' ? [rule.scope] : []));
      const needsKey = scopes.length > 0 || rules.includes('application');
      const needsUser = rules.includes('user') && userRequirements.length > 0;
      if (needsKey && needsUser)
        return userRequirements.flatMap((user) => keyRequirements(scopes).map((key) => ({ ...user, ...key })));
      if (needsKey) return keyRequirements(scopes);
      if (needsUser) return userRequirements;
      // The rule `caller` accepts a user or an application.
      const needsCaller = rules.includes('caller') && !rules.includes('user');
      return needsCaller ? [...userRequirements, ...keyRequirements([])] : undefined;
    },
  };
}

/** Returns the answers that refuse a caller. Key: the status. Value: the name of the answer in refusals.ts. */
export function refusalsOf(access: Access = 'anyone'): Readonly<Record<string, string>> {
  const rules = rulesOf(access);
  const involvesUser = rules.includes('user') || rules.includes('caller');
  const hasScope = rules.some((rule) => typeof rule === 'object');
  // If two answers have the same status, the later one counts, which is more general.
  return {
    ...((hasScope || rules.includes('application')) && { 401: 'CredentialRequired' }),
    ...(involvesUser && { 401: 'UserRequired' }),
    ...(hasScope && { 403: 'ScopeMissing' }),
    ...(rules.some((rule) => typeof rule === 'function') && { 403: 'AccessDenied' }),
  };
}
