// Handles /api/idp-signin and /api/register: verifies an ID token, then finds or creates rows of that person.
import { join } from 'node:path';
import type { ControllerParams } from '../../api/controller.ts';
import { refusal } from '../../base/errors.ts';
import { idsOf } from '../../base/log.ts';
import type { Fields } from '../../base/values.ts';
import type { Credentials } from '../credentials/credentials.ts';
import type { CredentialRow, Owner } from '../credentials/table/row.ts';
import type { VerifiedIdentity } from './claims.ts';
import { verifyIdToken } from './id-token.ts';
import { type IdentityRequest, parseRegister, parseSignIn } from './identity-request.ts';
import { InvalidToken } from './invalid-token.ts';
import { createKeySets, type KeySetsOptions, KeysUnavailable } from './jwks.ts';
import { mayRegister } from './provider-rows.ts';
import { createProviders } from './providers.ts';

/** The part of a row of the credentials table that its owner may see. */
export type OwnedRow = Pick<CredentialRow, 'id' | 'application'>;

export interface Accounts extends Pick<Credentials, 'issueSession'> {
  /** Returns the owner's rows that are neither revoked nor expired, the oldest first. */
  findByOwner(owner: Owner): Promise<readonly OwnedRow[]>;
  register(
    ...request: Parameters<Credentials['register']>
  ): Promise<{ readonly row: OwnedRow; readonly token: string }>;
}

export type Identity = ReturnType<typeof createIdentity>;

export interface IdentityOptions extends KeySetsOptions {
  readonly dataDir: string;
  readonly accounts: Accounts;
  /** Returns the current Unix time in milliseconds, for the times in a token. */
  readonly now?: () => number;
}

/** @throws Error of one line, when the file of the providers exists and cannot be read */
export function createIdentity({ dataDir, log, accounts, ...fetchAndClocks }: IdentityOptions) {
  const keys = createKeySets({ log, ...fetchAndClocks });
  const path = join(dataDir, 'identity-providers.json');
  const providers = createProviders({ path, log, onChange: keys.retain });
  return { signin, register, status, close: providers.close };

  // The answers of both functions have a secret, so request/ sends them with `Cache-Control: no-store`.

  async function signin(data: unknown, params: ControllerParams) {
    const request = parseSignIn(data, params);
    const { provider, identity } = await verify(request);
    const rows = await accounts.findByOwner({ issuer: identity.issuer, subject: identity.subject });
    if (rows.length === 0) throw refusal('NOT_REGISTERED');
    const row = chooseRow(rows, request.application);
    if (row === undefined) throw refusal('NOT_REGISTERED', 'This identity has no application with this id or name');
    const { token, expiresAt } = accounts.issueSession(row.id);
    log.info('identity-signed-in', { ...idsOf(params), provider: provider.name, application: row.application.id });
    const applications = { applications: rows.map(describeApplication), application: describeApplication(row) };
    const session = { authorization: token, expires_at: expiresAt };
    return { status: 200, body: { user: describeUser(identity), ...applications, ...session } };
  }

  async function register(data: unknown, params: ControllerParams) {
    const { name, description, ...request } = parseRegister(data, params);
    const { provider, identity } = await verify(request);
    if (!mayRegister(provider, identity)) throw refusal('REGISTRATION_CLOSED');
    const owner = { issuer: identity.issuer, subject: identity.subject };
    const { row, token } = await accounts.register({ owner, name, description });
    log.info('identity-registered', { ...idsOf(params), provider: provider.name, application: row.application.id });
    const application = describeApplication(row);
    return { status: 201, body: { user: describeUser(identity), application, authorization: token } };
  }

  async function verify({ credential, nonce }: IdentityRequest) {
    if (providers.list.length === 0) throw refusal('IDENTITY_NOT_CONFIGURED');
    try {
      return await verifyIdToken(credential, { findProvider: providers.find, keys, nonce, ...fetchAndClocks });
    } catch (error) {
      throw toRefusal(error);
    }
  }

  function status() {
    const { fetches, failures } = keys.counters;
    const names = providers.list.map((provider) => provider.name);
    return { providers: names, refusedRows: providers.refused.length, keyFetches: fetches, keyFailures: failures };
  }
}

/** Converts an error to a refusal. The client gets no details, which request/ logs from the `cause`. */
function toRefusal(cause: unknown): unknown {
  // RFC 6750 section 3.1 defines this header.
  const headers = { 'WWW-Authenticate': 'Bearer error="invalid_token"' };
  if (cause instanceof InvalidToken) return refusal('INVALID_ID_TOKEN', undefined, { headers, cause });
  if (cause instanceof KeysUnavailable)
    return refusal('IDENTITY_UNAVAILABLE', undefined, { headers: { 'Retry-After': '30' }, cause });
  return cause;
}

/**
 * Chooses the row with this id, or else with this name. The id comes first, because a row can have the id of another
 * row as its name. When the request names no row, each sign-in gets the same one, the oldest.
 */
function chooseRow(rows: readonly OwnedRow[], idOrName: string | undefined): OwnedRow | undefined {
  if (idOrName === undefined) return rows[0];
  return rows.find((row) => row.application.id === idOrName) ?? rows.find((row) => row.application.name === idOrName);
}

/** Copies the fields of a row that its owner may see. */
function describeApplication({ application: { id, name } }: OwnedRow): { id: string; name: string } {
  return { id, name };
}

function describeUser({ issuer, subject, email, emailVerified, name, picture }: VerifiedIdentity): Fields {
  // JSON.stringify leaves out claims that the token does not have.
  return { issuer, subject, email, email_verified: emailVerified, name, picture };
}
