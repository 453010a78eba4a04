// Compact JWS (RFC 7515 section 3.1): text -> parts -> signature. It knows keys and algorithms, not claims, issuers or
// HTTP. `verifySignature` is exported so that public test vectors can be run against it.
import type { VerifyKeyObjectInput } from 'node:crypto';
import { crypto } from '../base/builtins.ts';
import { ALGORITHMS } from './algorithms.ts';
import { decodeBase64url, parseJsonObject } from './base64url.ts';
import { InvalidToken } from './invalid-token.ts';
import { parseKey, parseKeySet, selectKey, type VerificationKey } from './keys.ts';

export const MAX_TOKEN_LENGTH = 16_384;
const MAX_KID_LENGTH = 256;

export interface Jws {
  readonly alg: string;
  readonly kid: string | undefined;
  readonly header: Readonly<Record<string, unknown>>;
  readonly payload: Buffer;
  readonly signature: Buffer;
  /** The original bytes that were signed: never rebuilt from what was parsed. */
  readonly signingInput: Buffer;
}

/** @throws InvalidToken when the text is not a compact JWS that could be verified here */
export function parseJws(token: unknown): Jws {
  if (typeof token !== 'string') throw new InvalidToken('not-a-token');
  // Before anything walks over it: a megabyte of dots costs one comparison.
  if (token.length > MAX_TOKEN_LENGTH) throw new InvalidToken('too-long');
  const segments = token.split('.');
  const [headerText, payloadText, signatureText] = segments;
  if (segments.length !== 3 || !headerText || payloadText === undefined || !signatureText)
    throw new InvalidToken('not-three-segments');
  const headerBytes = decodeBase64url(headerText);
  const payload = decodeBase64url(payloadText);
  const signature = decodeBase64url(signatureText);
  if (headerBytes === undefined || payload === undefined || signature === undefined)
    throw new InvalidToken('not-base64url');
  const header = parseJsonObject(headerBytes);
  if (header === undefined) throw new InvalidToken('header-not-an-object');
  return {
    ...checkHeader(header),
    header,
    payload,
    signature,
    signingInput: Buffer.from(`${headerText}.${payloadText}`, 'latin1'),
  };
}

/**
 * `jwk`, `jku`, `x5c` and `x5u` are not looked at: a key that the token brings along proves nothing (RFC 8725 section
 * 3.10).
 */
function checkHeader(header: Record<string, unknown>): { alg: string; kid: string | undefined } {
  const { alg, kid } = header;
  // Case-exact by the Map: nOnE and rs256 are no algorithms.
  if (typeof alg !== 'string' || !ALGORITHMS.has(alg)) throw new InvalidToken('alg-not-allowed');
  if (Object.hasOwn(header, 'crit')) throw new InvalidToken('crit-present');
  if (kid === undefined) return { alg, kid: undefined };
  if (typeof kid !== 'string' || kid.length > MAX_KID_LENGTH) throw new InvalidToken('kid-malformed');
  return { alg, kid };
}

/** @throws InvalidToken when the signature is not the key's over the original bytes */
export function checkSignature(jws: Jws, { key, algorithms, modulusBytes }: VerificationKey): void {
  const algorithm = ALGORITHMS.get(jws.alg);
  if (algorithm === undefined || !algorithms.has(jws.alg)) throw new InvalidToken('key-unfit');
  if (jws.signature.length !== (algorithm.signatureBytes ?? modulusBytes))
    throw new InvalidToken('signature-malformed');
  if (!isSigned(jws, algorithm.hash, { key, ...algorithm.options })) throw new InvalidToken('signature-wrong');
}

function isSigned(jws: Jws, hash: string | null, key: VerifyKeyObjectInput): boolean {
  try {
    return crypto().verify(hash, jws.signingInput, key, jws.signature);
  } catch {
    return false; // OpenSSL would rather throw at some signatures than call them wrong.
  }
}

/**
 * The signature step by itself: the header and payload of a compact JWS, once its signature holds.
 *
 * @param jwkOrKeySet one JWK (one without a `kid` is taken whatever the token names) or `{keys: [JWK, …]}`
 * @param allowedAlgorithms case-exact names; a name without a row in the table allows nothing
 * @throws InvalidToken with the reason; @throws Error when `jwkOrKeySet` is a set that cannot be read
 */
export function verifySignature(
  token: unknown,
  jwkOrKeySet: unknown,
  allowedAlgorithms: readonly string[],
): { header: Readonly<Record<string, unknown>>; payload: Buffer } {
  const jws = parseJws(token);
  if (!allowedAlgorithms.includes(jws.alg)) throw new InvalidToken('alg-not-allowed');
  const key = selectKey(...keysAndWish(jwkOrKeySet, jws));
  if (key === undefined) throw new InvalidToken('key-unknown');
  checkSignature(jws, key);
  return { header: jws.header, payload: jws.payload };
}

function keysAndWish(jwkOrKeySet: unknown, { alg, kid }: Jws): Parameters<typeof selectKey> {
  const isSet = typeof jwkOrKeySet === 'object' && jwkOrKeySet !== null && Object.hasOwn(jwkOrKeySet, 'keys');
  if (isSet) return [parseKeySet(jwkOrKeySet), { alg, kid }];
  const only = parseKey(jwkOrKeySet);
  // The caller has chosen the key already; a key that is unusable reads the same as one that does not fit.
  if (!('key' in only)) throw new InvalidToken('key-unfit');
  return [[only], { alg, kid: only.kid === undefined ? undefined : kid }];
}
