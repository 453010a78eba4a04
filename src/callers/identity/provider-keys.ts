// Reads and checks a provider's public keys (JWK, RFC 7517), and selects the key for a token. jwks.ts fetches the keys,
// and jws.ts verifies signatures with them.

import type { JsonWebKeyInput, KeyObject } from 'node:crypto';
import { crypto } from '../../base/builtins.ts';
import { attempt } from '../../base/failure.ts';
import { type Fields, isObject } from '../../base/values.ts';
import { ALGORITHMS, type Algorithm } from './algorithms.ts';
import { decodeBase64url } from './base64url.ts';
import { InvalidToken } from './invalid-token.ts';

export interface VerificationKey {
  readonly kid: string | undefined;
  /** The algorithms for which the key may be used. When the JWK has an `alg`, only that one is allowed. */
  readonly algorithms: ReadonlySet<string>;
  readonly key: KeyObject;
  /** The number of bytes of every signature of an RSA key; 0 for other keys. */
  readonly modulusBytes: number;
}

/** A key that cannot be used. A token with its `kid` is refused without a new fetch. */
export interface UnusableKey {
  readonly kid: string | undefined;
  readonly whyUnusable: string;
}

export type ProviderKey = VerificationKey | UnusableKey;

export const MAX_KEYS = 100;
/** The JWK members of private and symmetric keys. If a key is published with one of them, anybody can sign with it. */
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv'];
const PUBLIC_MEMBERS = { RSA: ['n', 'e'], EC: ['x', 'y'], OKP: ['x'] } as const;
const MIN_MODULUS_BITS = 2048;
/** The same limit as in OpenSSL. Larger keys only cost CPU time. */
const MAX_MODULUS_BITS = 16_384;

export function parseKey(jwk: unknown): ProviderKey {
  if (!isObject(jwk)) return { kid: undefined, whyUnusable: 'not an object' };
  const kid = typeof jwk.kid === 'string' ? jwk.kid : undefined;
  const refuse = (reason: string): UnusableKey => ({ kid, whyUnusable: reason });

  if (jwk.kid !== undefined && kid === undefined) return refuse('the kid is not a string');
  if (PRIVATE_MEMBERS.some((name) => Object.hasOwn(jwk, name))) return refuse('it has private members');
  if (jwk.use !== undefined && jwk.use !== 'sig') return refuse('its use is not sig');
  if (jwk.key_ops !== undefined && !(Array.isArray(jwk.key_ops) && jwk.key_ops.includes('verify')))
    return refuse('its key_ops do not include verify');
  const curve = jwk.kty === 'RSA' ? undefined : jwk.crv;
  const candidates = [...ALGORITHMS.values()].filter(({ kty, crv }) => kty === jwk.kty && crv === curve);
  // All candidates have the same kind of key, which the first one can describe.
  const [algorithm] = candidates;
  if (algorithm === undefined) return refuse('its kty or crv is not supported');
  const names = candidates.map(({ name }) => name);
  const algorithms = new Set(jwk.alg === undefined ? names : names.filter((name) => name === jwk.alg));
  if (algorithms.size === 0) return refuse('its alg does not fit its kty');

  const key = importKey(jwk, algorithm);
  if (key === undefined) return refuse('its numbers are not a valid key');
  if (algorithm.kty !== 'RSA') return { kid, algorithms, key, modulusBytes: 0 };
  // A key without these details would have no size that is allowed.
  const { modulusLength = 0, publicExponent = 0n } = key.asymmetricKeyDetails ?? {};
  if (modulusLength < MIN_MODULUS_BITS || modulusLength > MAX_MODULUS_BITS)
    return refuse(`its modulus has ${modulusLength} bits`);
  // With the exponent 1, a signature equals its message. With other small exponents, signatures have been forged.
  if (publicExponent < 65_537n || publicExponent % 2n === 0n) return refuse('its exponent is even or below 65,537');
  return { kid, algorithms, key, modulusBytes: Math.ceil(modulusLength / 8) };
}

function importKey(jwk: Fields, { kty, crv, coordinateBytes }: Algorithm): KeyObject | undefined {
  // Node gets only the members that a public key needs, and not x5c or x5u.
  const members: JsonWebKeyInput['key'] = crv === undefined ? { kty } : { kty, crv };
  for (const name of PUBLIC_MEMBERS[kty]) {
    const bytes = decodeBase64url(jwk[name]);
    if (bytes === undefined || (coordinateBytes !== undefined && bytes.length !== coordinateBytes)) return undefined;
    members[name] = jwk[name] as string;
  }
  // The creation throws for a point that is not on the curve, for example.
  return attempt(() => crypto().createPublicKey({ key: members, format: 'jwk' }), undefined);
}

/** @throws Error when the value is not a key set (RFC 7517 section 5) of at most 100 keys */
export function parseKeySet(value: unknown): ProviderKey[] {
  const keys = isObject(value) ? value.keys : undefined;
  if (!Array.isArray(keys)) throw new Error('the key set has no list of keys');
  if (keys.length > MAX_KEYS) throw new Error(`the key set has ${keys.length} keys, the limit is ${MAX_KEYS}`);
  return keys.map(parseKey);
}

export interface WantedKey {
  readonly alg: string;
  readonly kid: string | undefined;
}

/**
 * Selects the one key for a token.
 *
 * @returns undefined when the set lacks the key, which a newer set may have
 * @throws InvalidToken `key-unfit` when the key with the kid is not for the algorithm; `key-ambiguous` when several
 *   keys fit, because a sender could otherwise try several keys with one token
 */
export function selectKey(keys: readonly ProviderKey[], { alg, kid }: WantedKey): VerificationKey | undefined {
  const candidates = kid === undefined ? keys : keys.filter((key) => key.kid === kid);
  const fittingKeys = candidates.filter((key): key is VerificationKey => 'key' in key && key.algorithms.has(alg));
  if (fittingKeys.length > 1) throw new InvalidToken('key-ambiguous');
  if (fittingKeys.length === 0 && kid !== undefined && candidates.length > 0) throw new InvalidToken('key-unfit');
  return fittingKeys[0];
}
