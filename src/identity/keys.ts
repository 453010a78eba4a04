// A provider's public keys: JWK (RFC 7517) -> KeyObject, validated once, and the choice of the key for a token. Where
// the keys come from is jwks.ts; how they verify is jws.ts.
import type { JsonWebKeyInput, KeyObject } from 'node:crypto';
import { crypto } from '../base/builtins.ts';
import { ALGORITHMS, type Algorithm } from './algorithms.ts';
import { decodeBase64url } from './base64url.ts';
import { InvalidToken } from './invalid-token.ts';

export interface VerificationKey {
  readonly kid: string | undefined;
  /** The algorithms that the key fits: one, when it names its own `alg`. */
  readonly algorithms: ReadonlySet<string>;
  readonly key: KeyObject;
  /** RSA alone: the length of every signature. */
  readonly modulusBytes: number;
}

/**
 * A key of the set that cannot be used keeps its `kid`, so that a token naming it is told apart from an unknown one.
 */
export interface UnusableKey {
  readonly kid: string | undefined;
  readonly unusable: string;
}

export const MAX_KEYS = 100;
/** A private or symmetric member in a published key: the key is burnt, and a mistake to be seen. */
const PRIVATE_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv'];
const PUBLIC_MEMBERS = { RSA: ['n', 'e'], EC: ['x', 'y'], OKP: ['x'] } as const;
const MIN_MODULUS_BITS = 2048;
/** OpenSSL's own limit; beyond it verifying is only a way to burn time. */
const MAX_MODULUS_BITS = 16_384;

/** @param value anything; what is not a usable public key comes back with the reason instead of a key */
export function parseKey(value: unknown): VerificationKey | UnusableKey {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { kid: undefined, unusable: 'not an object' };
  const jwk = value as Record<string, unknown>;
  const kid = typeof jwk.kid === 'string' ? jwk.kid : undefined;
  const unusable = (reason: string): UnusableKey => ({ kid, unusable: reason });

  if (jwk.kid !== undefined && kid === undefined) return unusable('the kid is not a string');
  if (PRIVATE_MEMBERS.some((name) => Object.hasOwn(jwk, name))) return unusable('it has private members');
  if (jwk.use !== undefined && jwk.use !== 'sig') return unusable('its use is not sig');
  if (jwk.key_ops !== undefined && !(Array.isArray(jwk.key_ops) && jwk.key_ops.includes('verify'))) {
    return unusable('its key_ops are without verify');
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
  if (key === undefined) return unusable('its numbers make no key');
  if (first.kty !== 'RSA') return { kid, algorithms, key, modulusBytes: 0 };
  const { modulusLength = 0, publicExponent = 0n } = key.asymmetricKeyDetails ?? {};
  if (modulusLength < MIN_MODULUS_BITS || modulusLength > MAX_MODULUS_BITS)
    return unusable(`its modulus has ${modulusLength} bits`);
  // e = 1 makes every signature its own message; small odd ones have a history of forgeries.
  if (publicExponent < 65_537n || publicExponent % 2n === 0n) return unusable('its exponent is even or below 65,537');
  return { kid, algorithms, key, modulusBytes: Math.ceil(modulusLength / 8) };
}

function importKey(jwk: Record<string, unknown>, { kty, crv, coordinateBytes }: Algorithm): KeyObject | undefined {
  // Only the members that make the key: Node never sees an x5c, an x5u or anything else of the JWK.
  const members: JsonWebKeyInput['key'] = crv === undefined ? { kty } : { kty, crv };
  for (const name of PUBLIC_MEMBERS[kty]) {
    const bytes = decodeBase64url(jwk[name]);
    if (bytes === undefined || (coordinateBytes !== undefined && bytes.length !== coordinateBytes)) return undefined;
    members[name] = jwk[name] as string;
  }
  try {
    return crypto().createPublicKey({ key: members, format: 'jwk' });
  } catch {
    return undefined; // A point off the curve, say.
  }
}

/** @throws Error when it is not a key set (RFC 7517 section 5) of at most 100 keys */
export function parseKeySet(value: unknown): (VerificationKey | UnusableKey)[] {
  const keys = typeof value === 'object' && value !== null ? (value as { keys?: unknown }).keys : undefined;
  if (!Array.isArray(keys)) throw new Error('the key set has no list of keys');
  if (keys.length > MAX_KEYS) throw new Error(`the key set has ${keys.length} keys, the limit is ${MAX_KEYS}`);
  return keys.map(parseKey);
}

export interface WantedKey {
  readonly alg: string;
  readonly kid: string | undefined;
}

/**
 * The one key that the token may be verified with; `undefined`: not in this set, a newer one may have it.
 *
 * @throws InvalidToken `key-unfit` when the kid is known but its key is not for this, `key-ambiguous` when several fit:
 *   trying one after the other would let the sender choose
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
