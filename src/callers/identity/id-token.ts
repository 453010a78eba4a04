// Verifies an ID token in this order: form, provider (by issuer), algorithm, key, signature, claims. Before the
// signature is verified, the token's content is only used to choose the provider and its key.
import { parseJsonObject } from './base64url.ts';
import { checkClaims } from './claims.ts';
import { InvalidToken } from './invalid-token.ts';
import type { KeySets } from './jwks.ts';
import { checkSignedBy, type Jws, parseJws } from './jws.ts';
import type { Provider } from './provider-rows.ts';

export interface IdTokenExpectation {
  /** Finds the provider by the exact text of the token's `iss`. */
  readonly findProvider: (issuer: string) => Provider | undefined;
  readonly keys: Pick<KeySets, 'find'>;
  readonly nonce?: string | undefined;
  /** Returns the Unix time in milliseconds. */
  readonly now?: () => number;
}

/** The accepted values of the claim `typ`, in which Keycloak writes the kind of a token: `ID`, `Bearer`, `Refresh`. */
const ID_TOKEN_TYPES: readonly unknown[] = [undefined, 'ID', 'JWT'];

/** Applies OpenID Connect Core 1.0 section 3.1.3.7 and RFC 8725. @throws InvalidToken, or KeysUnavailable (jwks.ts) */
export async function verifyIdToken(token: unknown, expected: IdTokenExpectation) {
  const { findProvider, keys, nonce, now = Date.now } = expected;
  const jws = parseJws(token);
  const claims = parseIdToken(jws);

  const provider = typeof claims.iss === 'string' ? findProvider(claims.iss) : undefined;
  if (provider === undefined) throw new InvalidToken('issuer-unknown');
  const alg = jws.algorithm.name;
  if (!provider.algorithms.includes(alg)) throw new InvalidToken('alg-not-allowed');

  const key = await keys.find(provider, { alg, kid: jws.kid });
  if (key === undefined) throw new InvalidToken('key-unknown');
  checkSignedBy(jws, key);

  // The clock is read after the wait for keys, because the token may expire during the wait.
  const { issuer, clientIds } = provider;
  const identity = checkClaims(claims, { issuer, clientIds, nonce, now: now() / 1000 });
  return { provider, identity };
}

/**
 * Reads the claims, and refuses tokens of other kinds (RFC 8725 section 3.11). A provider signs access tokens and
 * logout tokens with the same keys, and some have the same audience.
 */
function parseIdToken({ header, payload }: Jws): Record<string, unknown> {
  if (header.typ !== undefined && header.typ !== 'JWT') throw new InvalidToken('typ-not-jwt');
  if (payload.length === 0) throw new InvalidToken('not-three-segments');
  const claims = parseJsonObject(payload);
  if (claims === undefined) throw new InvalidToken('payload-not-an-object');
  // A logout token has the claim `events` (Back-Channel Logout 1.0 section 2.4).
  if (claims.events !== undefined || !ID_TOKEN_TYPES.includes(claims.typ)) throw new InvalidToken('not-an-id-token');
  return claims;
}
