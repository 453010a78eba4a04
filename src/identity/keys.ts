// Imports and validates a provider's public keys (JWK, RFC 7517), and selects the key for a token. jwks.ts fetches the
// keys, jws.ts verifies with them.

import type { JsonWebKeyInput, KeyObject } from 'node:crypto';
import { crypto } from '../base/builtins.ts';
import { type Fields, isObject } from '../base/values.ts';
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

/** A key that cannot be used. Its `kid` is remembered. So a token with this `kid` is refused without a new fetch. */
export interface UnusableKey {
  readonly kid: string | undefined;
  readonly unusable: string;
}

export const MAX_KEYS = 100;
/**
 * The JWK members of private and symmetric keys. When a published key has one of them, anybody can forge signatures. So
 * the key is not used.
 */
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv'];
const PUBLIC_MEMBERS = { RSA: ['n', 'e'], EC: ['x', 'y'], OKP: ['x'] } as const;
const MIN_MODULUS_BITS = 2048;
/** The longest modulus that is accepted, in bits, which is also OpenSSL's limit. Larger keys only cost CPU time. */
const MAX_MODULUS_BITS = 16_384;

/** @param jwk anything @returns the key, or why it cannot be used */
export function parseKey(jwk: unknown): VerificationKey | UnusableKey {
  if (!isObject(jwk)) return { kid: undefined, unusable: 'not an object' };
  const kid = typeof jwk.kid === 'string' ? jwk.kid : undefined;
  const unusable = (reason: string): UnusableKey => ({ kid, unusable: reason });

  if (jwk.kid !== undefined && kid === undefined) return unusable('the kid is not a string');
  if (PRIVATE_MEMBERS.some((name) => Object.hasOwn(jwk, name))) return unusable('it has private members');
  if (jwk.use !== undefined && jwk.use !== 'sig') return unusable('its use is not sig');
  if (jwk.key_ops !== undefined && !(Array.isArray(jwk.key_ops) && jwk.key_ops.includes('verify'))) {
    return unusable('its key_ops do not include verify');
  }
  const fitting = [...ALGORITHMS.values()].filter(
    (row) => row.kty === jwk.kty && row.crv === (row.kty === 'RSA' ? undefined : jwk.crv),
  );
  const [first] = fitting;
  if (first === undefined) return unusable('its kty or crv is not supported');
  const algorithms = new Set(
    fitting.map((row) => row.name).filter((name) => jwk.alg === undefined || jwk.alg === name),
  );
  if (algorithms.size === 0) return unusable('its alg does not fit its kty');

  const key = importKey(jwk, first);
  if (key === undefined) return unusable('its numbers are not a valid key');
  if (first.kty !== 'RSA') return { kid, algorithms, key, modulusBytes: 0 };
  const { modulusLength = 0, publicExponent = 0n } = key.asymmetricKeyDetails ?? {};
  if (modulusLength < MIN_MODULUS_BITS || modulusLength > MAX_MODULUS_BITS)
    return unusable(`its modulus has ${modulusLength} bits`);
  // With e = 1, a signature equals its message. Small odd exponents have made forgeries possible in the past.
  if (publicExponent < 65_537n || publicExponent % 2n === 0n) return unusable('its exponent is even or below 65,537');
  return { kid, algorithms, key, modulusBytes: Math.ceil(modulusLength / 8) };
}

function importKey(jwk: Fields, { kty, crv, coordinateBytes }: Algorithm): KeyObject | undefined {
  // Only these members of the JWK are given to Node, without x5c, x5u or others.
  const members: JsonWebKeyInput['key'] = crv === undefined ? { kty } : { kty, crv };
  for (const name of PUBLIC_MEMBERS[kty]) {
    const bytes = decodeBase64url(jwk[name]);
    if (bytes === undefined || (coordinateBytes !== undefined && bytes.length !== coordinateBytes)) return undefined;
    members[name] = jwk[name] as string;
  }
  try {
    return crypto().createPublicKey({ key: members, format: 'jwk' });
  } catch {
    return undefined; // For example, a point that is not on the curve.
  }
}

/** @throws Error when the value is not a key set (RFC 7517 section 5) of at most 100 keys */
export function parseKeySet(value: unknown): (VerificationKey | UnusableKey)[] {
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
 * Selects the one key for a token. Returns `undefined` when this set lacks the key, because a newer set may have it.
 *
 * @throws InvalidToken `key-unfit` when the key of this kid does not fit; `key-ambiguous` when several keys fit: to try
 *   each of them would let the sender choose
 */
export function selectKey(
  keys: readonly (VerificationKey | UnusableKey)[],
  { alg, kid }: WantedKey,
): VerificationKey | undefined {
  const named = kid === undefined ? keys : keys.filter((key) => key.kid === kid);
  const fitting = named.filter((key): key is VerificationKey => 'key' in key && key.algorithms.has(alg));
  if (fitting.length > 1) throw new InvalidToken('key-ambiguous');
  if (fitting.length === 0 && kid !== undefined && named.length > 0) throw new InvalidToken('key-unfit');
  return fitting[0];
}
