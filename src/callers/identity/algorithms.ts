// The supported algorithms of signatures (RFC 7518 section 3.1, RFC 8037). `none` and HMAC must never be added: with
// HMAC, a forger could use the public key, which everybody can read, as the secret (RFC 8725 section 2.1).

export interface Algorithm {
  readonly name: string;
  readonly kty: 'RSA' | 'EC' | 'OKP';
  readonly crv?: string;
  /** The number of bytes of one coordinate, including leading zeros (RFC 7518 section 6.2.1.2). */
  readonly coordinateBytes?: number;
  /** The hash; `null` for Ed25519, which hashes by itself. */
  readonly hash: 'sha256' | 'sha384' | 'sha512' | null;
  /** The number of bytes of a signature; `undefined` for RSA, whose signatures are as long as the modulus. */
  readonly signatureBytes?: number;
  /** Fields of the key argument of `crypto.verify`. */
  readonly options: { readonly padding?: number; readonly saltLength?: number; readonly dsaEncoding?: 'ieee-p1363' };
}

// The two numbers are copies of `crypto.constants`, because importing node:crypto would slow every start.
const RSA_PKCS1_PADDING = 1;
const RSA_PKCS1_PSS_PADDING = 6;

const PKCS1 = { padding: RSA_PKCS1_PADDING };
/** A salt must have as many bytes as the hash (RFC 7518 section 3.5). By default, OpenSSL accepts any length. */
const pss = (saltLength: number) => ({ padding: RSA_PKCS1_PSS_PADDING, saltLength });
/** A signature is the numbers R and S, one after the other (RFC 7518 section 3.4). OpenSSL's default form is DER. */
const P1363 = { dsaEncoding: 'ieee-p1363' } as const;

const ALGORITHM_ROWS: readonly Algorithm[] = [
  { name: 'RS256', kty: 'RSA', hash: 'sha256', options: PKCS1 },
  { name: 'RS384', kty: 'RSA', hash: 'sha384', options: PKCS1 },
  { name: 'RS512', kty: 'RSA', hash: 'sha512', options: PKCS1 },
  { name: 'PS256', kty: 'RSA', hash: 'sha256', options: pss(32) },
  { name: 'PS384', kty: 'RSA', hash: 'sha384', options: pss(48) },
  { name: 'PS512', kty: 'RSA', hash: 'sha512', options: pss(64) },
  { name: 'ES256', kty: 'EC', crv: 'P-256', coordinateBytes: 32, hash: 'sha256', signatureBytes: 64, options: P1363 },
  { name: 'ES384', kty: 'EC', crv: 'P-384', coordinateBytes: 48, hash: 'sha384', signatureBytes: 96, options: P1363 },
  { name: 'ES512', kty: 'EC', crv: 'P-521', coordinateBytes: 66, hash: 'sha512', signatureBytes: 132, options: P1363 },
  // One algorithm with two names. RFC 9864 replaces the older one, EdDSA.
  { name: 'Ed25519', kty: 'OKP', crv: 'Ed25519', coordinateBytes: 32, hash: null, signatureBytes: 64, options: {} },
  { name: 'EdDSA', kty: 'OKP', crv: 'Ed25519', coordinateBytes: 32, hash: null, signatureBytes: 64, options: {} },
];

/** The algorithms by name. A name comes from a token and can be `constructor`, which only a Map does not have. */
export const ALGORITHMS: ReadonlyMap<string, Algorithm> = new Map(ALGORITHM_ROWS.map((row) => [row.name, row]));

export const DEFAULT_ALGORITHMS: readonly string[] = ['RS256', 'ES256'];
