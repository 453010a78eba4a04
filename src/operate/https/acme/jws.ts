// Signs the messages of ACME (RFC 8555, 6.2) as flattened JWS with ES256, and derives the answers to challenges.
import type { KeyObject } from 'node:crypto';
import { crypto } from '../../../base/builtins.ts';

export interface JwsHeader {
  readonly url: string;
  readonly nonce: string;
  /** The account's URL. Without an account, `kid` is undefined, and the message contains the public key instead. */
  readonly kid?: string | undefined;
}

/** @param payload an object, or '' for a request that only reads (POST-as-GET) */
export function signMessage(payload: object | '', { url, nonce, kid }: JwsHeader, accountKey: KeyObject): string {
  const signer = kid === undefined ? { jwk: publicJwk(accountKey) } : { kid };
  const header = encode(JSON.stringify({ alg: 'ES256', ...signer, nonce, url }));
  const body = payload === '' ? '' : encode(JSON.stringify(payload));
  const signature = crypto().sign('sha256', Buffer.from(`${header}.${body}`), {
    key: accountKey,
    // ES256 joins the two numbers of the signature (RFC 7518, section 3.4). Node's default is DER.
    dsaEncoding: 'ieee-p1363',
  });
  return JSON.stringify({ protected: header, payload: body, signature: signature.toString('base64url') });
}

/** Returns the text that answers a challenge: its token, and the thumbprint of the key (RFC 8555, section 8.1). */
export function createKeyAuthorization(token: string, accountKey: KeyObject): string {
  const { crv, kty, x, y } = publicJwk(accountKey);
  // RFC 7638, section 3.2, requires these members in this order.
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
