// Parses a signed token, `header.payload.signature` (compact JWS, RFC 7515 section 3.1), and verifies its signature
// with a given key. id-token.ts chooses the key, and claims.ts checks the payload.
import { crypto } from '../../base/builtins.ts';
import { attempt } from '../../base/failure.ts';
import { ALGORITHMS } from './algorithms.ts';
import { decodeBase64url, parseJsonObject } from './base64url.ts';
import { InvalidToken } from './invalid-token.ts';
import type { VerificationKey } from './provider-keys.ts';

export const MAX_TOKEN_LENGTH = 16_384;
const MAX_KID_LENGTH = 256;

export type Jws = Readonly<ReturnType<typeof parseJws>>;

/** @throws InvalidToken when the text is not a compact JWS with a supported algorithm */
export function parseJws(token: unknown) {
  if (typeof token !== 'string') throw new InvalidToken('not-a-token');
  // Splitting a megabyte of dots would take much memory.
  if (token.length > MAX_TOKEN_LENGTH) throw new InvalidToken('too-long');
  const segments = token.split('.');
  const [headerText, payloadText, signatureText] = segments;
  // An empty payload is refused by id-token.ts.
  if (segments.length !== 3 || !headerText || payloadText === undefined || !signatureText)
    throw new InvalidToken('not-three-segments');
  const headerBytes = decodeBase64url(headerText);
  const payload = decodeBase64url(payloadText);
  const signature = decodeBase64url(signatureText);
  if (headerBytes === undefined || payload === undefined || signature === undefined)
    throw new InvalidToken('not-base64url');
  const header = parseJsonObject(headerBytes);
  if (header === undefined) throw new InvalidToken('header-not-an-object');
  const signingInput = Buffer.from(`${headerText}.${payloadText}`, 'latin1');
  return { ...checkHeader(header), header, payload, signature, signingInput };
}

/** Ignores `jwk`, `jku`, `x5c` and `x5u`: a key that comes with the token proves nothing (RFC 8725 section 3.10). */
function checkHeader(header: Record<string, unknown>) {
  const { alg, kid } = header;
  // The names are case-sensitive: rs256 is not supported.
  const algorithm = typeof alg === 'string' ? ALGORITHMS.get(alg) : undefined;
  if (algorithm === undefined) throw new InvalidToken('alg-not-allowed');
  if (Object.hasOwn(header, 'crit')) throw new InvalidToken('crit-present');
  if (kid !== undefined && (typeof kid !== 'string' || kid.length > MAX_KID_LENGTH))
    throw new InvalidToken('kid-malformed');
  return { algorithm, kid };
}

/** @throws InvalidToken when the key has not signed the token, or is not for the token's algorithm */
export function checkSignedBy(jws: Jws, { key, algorithms, modulusBytes }: VerificationKey): void {
  const { name, hash, options, signatureBytes = modulusBytes } = jws.algorithm;
  if (!algorithms.has(name)) throw new InvalidToken('key-unfit');
  if (jws.signature.length !== signatureBytes) throw new InvalidToken('signature-malformed');
  const verify = () => crypto().verify(hash, jws.signingInput, { key, ...options }, jws.signature);
  // OpenSSL throws at some malformed signatures.
  if (!attempt(verify, false)) throw new InvalidToken('signature-wrong');
}
