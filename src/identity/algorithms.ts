// The JWS algorithms (RFC 7518 section 3.1, RFC 8037) as one literal table; what has no row is refused. `none` and the
// HMACs must never be added: with an HMAC, anybody who can read a public key can sign (RFC 8725 section 2.1).

/** What the key must be and what `crypto.verify` is told. */
export interface Algorithm {
  readonly name: string;
  readonly kty: 'RSA' | 'EC' | 'OKP';
  /** EC and OKP alone. */
  readonly crv?: string;
  /** Bytes of one EC coordinate: RFC 7518 section 6.2.1.2 wants them all, leading zeros too. */
  readonly coordinateBytes?: number;
  /** `null`: the algorithm hashes by itself (Ed25519). */
  readonly hash: 'sha256' | 'sha384' | 'sha512' | null;
  /** `undefined`: as long as the RSA modulus. */
  readonly signatureBytes?: number;
  readonly options: { readonly padding?: number; readonly saltLength?: number; readonly dsaEncoding?: 'ieee-p1363' };
}

// The numbers of `crypto.constants`, written out: to read this table must not load node:crypto (builtins.ts).
const RSA_PKCS1_PADDING = 1;
const RSA_PKCS1_PSS_PADDING = 6;

const PKCS1 = { padding: RSA_PKCS1_PADDING };
/** RFC 7518 section 3.5: the salt is as long as the hash, not whatever length the signer liked. */
const pss = (saltLength: number) => ({ padding: RSA_PKCS1_PSS_PADDING, saltLength });
/** R and S side by side (RFC 7518 section 3.4), not the DER that OpenSSL would take by default. */
const P1363 = { dsaEncoding: 'ieee-p1363' } as const;

const TABLE: readonly Algorithm[] = [
  { name: 'RS256', kty: 'RSA', hash: 'sha256', options: PKCS1 },
  { name: 'RS384', kty: 'RSA', hash: 'sha384', options: PKCS1 },
  { name: 'RS512', kty: 'RSA', hash: 'sha512', options: PKCS1 },
  { name: 'PS256', kty: 'RSA', hash: 'sha256', options: pss(32) },
  { name: 'PS384', kty: 'RSA', hash: 'sha384', options: pss(48) },
  { name: 'PS512', kty: 'RSA', hash: 'sha512', options: pss(64) },
  { name: 'ES256', kty: 'EC', crv: 'P-256', coordinateBytes: 32, hash: 'sha256', signatureBytes: 64, options: P1363 },
  { name: 'ES384', kty: 'EC', crv: 'P-384', coordinateBytes: 48, hash: 'sha384', signatureBytes: 96, options: P1363 },
  { name: 'ES512', kty: 'EC', crv: 'P-521', coordinateBytes: 66, hash: 'sha512', signatureBytes: 132, options: P1363 },
  { name: 'EdDSA', kty: 'OKP', crv: 'Ed25519', coordinateBytes: 32, hash: null, signatureBytes: 64, options: {} },
];

/** A Map, because the name comes out of a token: `constructor` must find nothing. */
export const ALGORITHMS: ReadonlyMap<string, Algorithm> = new Map(TABLE.map((row) => [row.name, row]));

/** What a provider row allows that does not say. */
export const DEFAULT_ALGORITHMS: readonly string[] = ['RS256', 'ES256'];
