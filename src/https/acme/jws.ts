// The signed messages of ACME (RFC 8555, section 6.2): flattened JWS by ES256, and what is derived from the account's
// key.
import type { KeyObject } from 'node:crypto';
import { crypto } from '../../base/builtins.ts';

export interface JwsHeader {
  readonly url: string;
  readonly nonce: string;
  /** The account's URL; without one the message carries the public key itself. */
  readonly kid?: string | undefined;
}

/** @param payload '' for a POST-as-GET */
export function signMessage(payload: object | '', { url, nonce, kid }: JwsHeader, accountKey: KeyObject): string {
  const signer = kid === undefined ? { jwk: publicJwk(accountKey) } : { kid };
  const header = encode(JSON.stringify({ alg: 'ES256', ...signer, nonce, url }));
  const body = payload === '' ? '' : encode(JSON.stringify(payload));
  const signature = crypto().sign('sha256', Buffer.from(`${header}.${body}`), {
    key: accountKey,
    dsaEncoding: 'ieee-p1363',
  });
  return JSON.stringify({ protected: header, payload: body, signature: signature.toString('base64url') });
}

/** What a challenge's answer is (RFC 8555, section 8.1). */
export function keyAuthorizationOf(token: string, accountKey: KeyObject): string {
  const { crv, kty, x, y } = publicJwk(accountKey);
  // The members that are required, in this order (RFC 7638, section 3.2).
  const thumbprint = crypto().createHash('sha256').update(JSON.stringify({ crv, kty, x, y })).digest('base64url');
  return `${token}.${thumbprint}`;
}

function publicJwk(key: KeyObject): { crv: unknown; kty: unknown; x: unknown; y: unknown } {
  const { crv, kty, x, y } = crypto().createPublicKey(key).export({ format: 'jwk' });
  return { crv, kty, x, y };
}

function encode(text: string): string {
  return Buffer.from(text).toString('base64url');
}
