// Verifies an ID token: parse -> issuer selects the provider -> algorithm -> key -> signature -> claims. In that order:
// nothing that the token says is believed before its signature holds, except which provider to ask. Key sets and clock
// are arguments.
import { parseJsonObject } from './base64url.ts';
import { checkClaims, type VerifiedIdentity } from './claims.ts';
import { InvalidToken } from './invalid-token.ts';
import { checkSignature, type Jws, parseJws } from './jws.ts';
import type { VerificationKey, WantedKey } from './keys.ts';
import type { Provider } from './provider-rows.ts';

export interface KeySource {
  /** `undefined`: the provider has no such key, asked again if that is due. */
  find(provider: Provider, wanted: WantedKey): Promise<VerificationKey | undefined>;
}

export interface IdTokenExpectation {
  /** The provider whose issuer is spelled exactly so. */
  readonly findProvider: (issuer: string) => Provider | undefined;
  readonly keys: KeySource;
  /** What the client gave its provider, when it did. */
  readonly nonce?: string | undefined;
  /** Unix time in milliseconds. */
  readonly now?: () => number;
}

export interface VerifiedToken {
  readonly provider: Provider;
  readonly identity: VerifiedIdentity;
}

/** Of the claim; RFC 7519 section 5.3 lets the header be repeated among the claims. */
const ID_TOKEN_TYPES: readonly unknown[] = [undefined, 'ID', 'JWT'];

/**
 * Verifies an ID token as OpenID Connect Core 1.0 section 3.1.3.7 and RFC 8725 say.
 *
 * @throws InvalidToken with the reason; @throws KeysUnavailable (jwks.ts) when the provider's keys are unavailable
 */
export async function verifyIdToken(token: unknown, expected: IdTokenExpectation): Promise<VerifiedToken> {
  const { findProvider, keys, nonce, now = Date.now } = expected;
  const jws = parseJws(token);
  const claims = parseIdToken(jws);

  const provider = typeof claims.iss === 'string' ? findProvider(claims.iss) : undefined;
  if (provider === undefined) throw new InvalidToken('issuer-unknown');
  if (!provider.algorithms.includes(jws.alg)) throw new InvalidToken('alg-not-allowed');

  const key = await keys.find(provider, { alg: jws.alg, kid: jws.kid });
  if (key === undefined) throw new InvalidToken('key-unknown');
  checkSignature(jws, key);

  // The clock is read after the wait for keys: a token must not outlive its time in a queue.
  const identity = checkClaims(claims, {
    issuer: provider.issuer,
    clientIds: provider.clientIds,
    nonce,
    now: now() / 1000,
  });
  return { provider, identity };
}

/**
 * What an ID token has over any JWS: a payload, of claims, and no sign of being something else (RFC 8725 section 3.11).
 * The provider signs its other tokens with the same keys, and for the same audience some of them.
 */
function parseIdToken({ header, payload }: Jws): Record<string, unknown> {
  if (header.typ !== undefined && header.typ !== 'JWT') throw new InvalidToken('typ-not-jwt');
  if (payload.length === 0) throw new InvalidToken('not-three-segments');
  const claims = parseJsonObject(payload);
  if (claims === undefined) throw new InvalidToken('payload-not-an-object');
  // A logout token has events (Back-Channel Logout 1.0 section 2.4); Keycloak tells its kinds by a typ among the
  // claims.
  if (claims.events !== undefined || !ID_TOKEN_TYPES.includes(claims.typ)) throw new InvalidToken('not-an-id-token');
  return claims;
}
