// A table of attacks: each row has the token that a forger sends, and the reason that the log must name. The library
// jose signs most tokens. Tokens that jose refuses to make are signed by hand.
import { createHmac } from 'node:crypto';
import type { TokenReason } from '../../src/callers/identity/invalid-token.ts';
import { encode, type Json, makeKey, signByHand, signByJose, signText, withKid } from './identity-tokens.ts';

export const NOW = 1_790_000_000;
export const rsa = makeKey('RS256', 'rsa-1');
export const ec = makeKey('ES256', 'ec-1');
const ps = makeKey('PS256', 'ps-1');
export const forger = makeKey('RS256', 'rsa-1');
const forgerEc = makeKey('ES256', 'ec-1');
const weak = makeKey('RS256', 'weak-1024', 1024);
const smallExponent = makeKey('RS256', 'exponent-3', 2048, 3);
const encryption = makeKey('RS256', 'for-encryption');
const wrapping = withKid(encryption, 'for-wrapping');
const leaked = withKid(encryption, 'leaked');
const twin = withKid(encryption, 'twin');
const otherTwin = withKid(forger, 'twin');

export const KEY_SET = [
  rsa.jwk,
  ec.jwk,
  ps.jwk,
  weak.jwk,
  smallExponent.jwk,
  { ...encryption.jwk, use: 'enc' },
  { ...wrapping.jwk, key_ops: ['wrapKey'] },
  { ...leaked.jwk, ...leaked.privateKey.export({ format: 'jwk' }) },
  twin.jwk,
  otherTwin.jwk,
  { kty: 'oct', kid: 'oct-1', k: encode('a symmetric key that was published') },
];

/** The addresses of the provider and the forger. Known once their servers listen. */
export const places = { issuer: '', bait: '' };

export function claims(changes: Json = {}): Json {
  return { iss: places.issuer, sub: 'victim-1', aud: 'client-1', iat: NOW - 10, exp: NOW + 600, ...changes };
}
const rs256 = (more: Json = {}): Json => ({ alg: 'RS256', kid: 'rsa-1', typ: 'JWT', ...more });
const es256 = (more: Json = {}): Json => ({ alg: 'ES256', kid: 'ec-1', typ: 'JWT', ...more });
const es256Input = () => `${encode(es256())}.${encode(claims())}`;
/**
 * Signs by HMAC with the public key as the secret. A verifier that trusts the header's `alg` would accept the token.
 */
const hmacWith = (secret: string | Buffer, alg = 'HS256', kid = 'rsa-1') => {
  const input = `${encode({ alg, kid, typ: 'JWT' })}.${encode(claims())}`;
  return `${input}.${createHmac(alg.replace('HS', 'sha'), secret).update(input).digest('base64url')}`;
};
const p1363 = (r: bigint, s: bigint) =>
  Buffer.from(r.toString(16).padStart(64, '0') + s.toString(16).padStart(64, '0'), 'hex');
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
const zeroSignature = (r: bigint, s: bigint) => `${es256Input()}.${p1363(r, s).toString('base64url')}`;
const rawSegments = async (change: (segments: [string, string, string]) => string) =>
  change((await signByJose(rsa, claims())).split('.') as [string, string, string]);

export interface Attack {
  readonly name: string;
  readonly token: () => string | Promise<string>;
  readonly reason: TokenReason;
}

export const ATTACKS: readonly Attack[] = [
  ...['none', 'None', 'NONE', 'nOnE', 'none ', ''].map(
    (alg): Attack => ({
      name: `alg ${JSON.stringify(alg)} with a signature of junk`,
      token: () => `${encode({ alg, typ: 'JWT' })}.${encode(claims())}.AAAA`,
      reason: 'alg-not-allowed',
    }),
  ),
  {
    name: 'alg none with an empty signature',
    token: () => `${encode({ alg: 'none' })}.${encode(claims())}.`,
    reason: 'not-three-segments',
  },
  { name: 'alg missing', token: () => signByHand(rsa, { kid: 'rsa-1' }, claims()), reason: 'alg-not-allowed' },
  {
    name: 'alg as a list',
    token: () => signByHand(rsa, rs256({ alg: ['RS256'] }), claims()),
    reason: 'alg-not-allowed',
  },
  {
    name: 'alg in lower case',
    token: () => signByHand(rsa, rs256({ alg: 'rs256' }), claims()),
    reason: 'alg-not-allowed',
  },
  {
    name: 'alg named like a property of Object',
    token: () => signByHand(rsa, rs256({ alg: 'constructor' }), claims()),
    reason: 'alg-not-allowed',
  },
  {
    name: 'alg that the provider row does not allow',
    token: () => signByJose(ps, claims()),
    reason: 'alg-not-allowed',
  },
  {
    name: 'RS/HS confusion: the public key as PEM',
    token: () => hmacWith(rsa.publicKey.export({ type: 'spki', format: 'pem' })),
    reason: 'alg-not-allowed',
  },
  {
    name: 'RS/HS confusion: the public key as DER',
    token: () => hmacWith(rsa.publicKey.export({ type: 'spki', format: 'der' })),
    reason: 'alg-not-allowed',
  },
  {
    name: 'RS/HS confusion: the JWK as text',
    token: () => hmacWith(JSON.stringify(rsa.jwk)),
    reason: 'alg-not-allowed',
  },
  {
    name: 'RS/HS confusion: HS512',
    token: () => hmacWith(rsa.publicKey.export({ type: 'spki', format: 'pem' }), 'HS512'),
    reason: 'alg-not-allowed',
  },
  {
    name: 'a published symmetric key',
    token: () => hmacWith('a symmetric key that was published', 'HS256', 'oct-1'),
    reason: 'alg-not-allowed',
  },
  {
    name: 'RS256 signature with the kid of the EC key',
    token: () => signByHand(forger, rs256({ kid: 'ec-1' }), claims()),
    reason: 'key-unfit',
  },
  {
    name: 'ES256 signature with the kid of the RSA key',
    token: () => signByHand(forgerEc, es256({ kid: 'rsa-1' }), claims()),
    reason: 'key-unfit',
  },
  {
    name: 'embedded jwk of the forger',
    token: () => signByHand(forger, rs256({ jwk: forger.jwk }), claims()),
    reason: 'signature-wrong',
  },
  {
    name: 'embedded jwk, no kid',
    token: () => signByHand(forgerEc, { alg: 'ES256', jwk: forgerEc.jwk }, claims()),
    reason: 'signature-wrong',
  },
  {
    name: 'jku to the forger',
    token: () => signByHand(forger, rs256({ jku: `${places.bait}/jwks` }), claims()),
    reason: 'signature-wrong',
  },
  {
    name: 'jku to the forger, kid of the forger',
    token: () => signByHand(forger, rs256({ kid: 'forged', jku: `${places.bait}/jwks` }), claims()),
    reason: 'key-unknown',
  },
  {
    name: 'x5u to the forger',
    token: () => signByHand(forger, rs256({ x5u: `${places.bait}/cert` }), claims()),
    reason: 'signature-wrong',
  },
  {
    name: 'x5c of the forger',
    token: () => signByHand(forger, rs256({ x5c: ['MIIB'] }), claims()),
    reason: 'signature-wrong',
  },
  {
    name: 'kid as a URL',
    token: () => signByHand(forger, rs256({ kid: `${places.bait}/key` }), claims()),
    reason: 'key-unknown',
  },
  {
    name: 'crit of an extension',
    token: () => signByHand(rsa, rs256({ crit: ['exp'], exp: 1 }), claims()),
    reason: 'crit-present',
  },
  {
    name: 'crit b64, the payload not encoded',
    token: () => signByHand(rsa, rs256({ crit: ['b64'], b64: false }), claims()),
    reason: 'crit-present',
  },
  { name: 'crit empty', token: () => signByHand(rsa, rs256({ crit: [] }), claims()), reason: 'crit-present' },
  { name: 'crit null', token: () => signByHand(rsa, rs256({ crit: null }), claims()), reason: 'crit-present' },
  {
    name: 'typ of a logout token',
    token: () => signByJose(rsa, claims(), { typ: 'logout+jwt' }),
    reason: 'typ-not-jwt',
  },
  { name: 'typ of an access token', token: () => signByJose(rsa, claims(), { typ: 'at+jwt' }), reason: 'typ-not-jwt' },
  {
    name: 'a logout token that has no typ',
    token: () => signByHand(rsa, { alg: 'RS256', kid: 'rsa-1' }, claims({ events: {} })),
    reason: 'not-an-id-token',
  },
  {
    name: 'an access token of Keycloak',
    token: () => signByJose(rsa, claims({ typ: 'Bearer' })),
    reason: 'not-an-id-token',
  },
  {
    name: 'typ among the claims as a list',
    token: () => signByJose(rsa, claims({ typ: ['ID'] })),
    reason: 'not-an-id-token',
  },
  {
    name: 'kid as a path',
    token: () => signByHand(forger, rs256({ kid: '../../../../dev/null' }), claims()),
    reason: 'key-unknown',
  },
  {
    name: 'kid as SQL',
    token: () => signByHand(forger, rs256({ kid: "x' UNION SELECT 'key'--" }), claims()),
    reason: 'key-unknown',
  },
  {
    name: 'kid __proto__',
    token: () => signByHand(forger, `{"alg":"RS256","kid":"__proto__"}`, claims()),
    reason: 'key-unknown',
  },
  { name: 'kid empty', token: () => signByHand(forger, rs256({ kid: '' }), claims()), reason: 'key-unknown' },
  { name: 'kid as a number', token: () => signByHand(rsa, rs256({ kid: 0 }), claims()), reason: 'kid-malformed' },
  {
    name: 'kid as an object',
    token: () => signByHand(rsa, rs256({ kid: { toString: 'rsa-1' } }), claims()),
    reason: 'kid-malformed',
  },
  { name: 'kid null', token: () => signByHand(rsa, rs256({ kid: null }), claims()), reason: 'kid-malformed' },
  {
    name: 'kid of 257 characters',
    token: () => signByHand(rsa, rs256({ kid: 'k'.repeat(257) }), claims()),
    reason: 'kid-malformed',
  },
  {
    name: 'kid of 256 characters',
    token: () => signByHand(rsa, rs256({ kid: 'k'.repeat(256) }), claims()),
    reason: 'key-unknown',
  },
  {
    name: 'kid missing where several keys fit',
    token: () => signByHand(rsa, { alg: 'RS256' }, claims()),
    reason: 'key-ambiguous',
  },
  { name: 'kid that two keys have', token: () => signByJose(twin, claims()), reason: 'key-ambiguous' },
  {
    name: 'kid of another key of the provider',
    token: () => signByHand(twin, rs256(), claims()),
    reason: 'signature-wrong',
  },
  { name: 'ECDSA signature r = s = 0', token: () => zeroSignature(0n, 0n), reason: 'signature-wrong' },
  { name: 'ECDSA signature r = 0, s = 1', token: () => zeroSignature(0n, 1n), reason: 'signature-wrong' },
  { name: 'ECDSA signature r = s = n', token: () => zeroSignature(ORDER, ORDER), reason: 'signature-wrong' },
  { name: 'ECDSA signature r = s = 1', token: () => zeroSignature(1n, 1n), reason: 'signature-wrong' },
  {
    name: 'ECDSA signature r = s = 2^256 - 1',
    token: () => zeroSignature(2n ** 256n - 1n, 2n ** 256n - 1n),
    reason: 'signature-wrong',
  },
  {
    name: 'ECDSA signature in DER',
    token: () => `${es256Input()}.${signDer(es256Input())}`,
    reason: 'signature-malformed',
  },
  {
    name: 'ECDSA signature of 65 bytes',
    token: () => `${es256Input()}.${pad(signText(ec, es256Input()))}`,
    reason: 'signature-malformed',
  },
  {
    name: 'ECDSA signature of 63 bytes',
    token: () => `${es256Input()}.${cut(signText(ec, es256Input()))}`,
    reason: 'signature-malformed',
  },
  {
    name: 'RSA signature one byte short',
    token: () => rawSegments(([h, p, s]) => `${h}.${p}.${cut(s)}`),
    reason: 'signature-malformed',
  },
  {
    name: 'RSA signature of zeros',
    token: () => rawSegments(([h, p]) => `${h}.${p}.${Buffer.alloc(256).toString('base64url')}`),
    reason: 'signature-wrong',
  },
  {
    name: 'RSA signature of ones',
    token: () => rawSegments(([h, p]) => `${h}.${p}.${Buffer.alloc(256, 255).toString('base64url')}`),
    reason: 'signature-wrong',
  },
  {
    name: 'PS256 signature under alg RS256',
    token: () => signByJose(ps, claims()).then((t) => `${encode(rs256())}.${t.split('.').slice(1).join('.')}`),
    reason: 'signature-wrong',
  },
  {
    name: 'payload of another subject',
    token: () => rawSegments(([h, , s]) => `${h}.${encode(claims({ sub: 'admin' }))}.${s}`),
    reason: 'signature-wrong',
  },
  {
    name: 'header without the signed typ',
    token: () => rawSegments(([, p, s]) => `${encode({ alg: 'RS256', kid: 'rsa-1' })}.${p}.${s}`),
    reason: 'signature-wrong',
  },
  {
    name: 'payload with the same claims and another spelling',
    token: () => rawSegments(([h, p, s]) => `${h}.${encode(` ${Buffer.from(p, 'base64url')}`)}.${s}`),
    reason: 'signature-wrong',
  },
  {
    name: 'signature of the forger with the kid of the provider',
    token: () => signByJose(forger, claims()),
    reason: 'signature-wrong',
  },
  {
    name: 'RSA key of 1,024 bits',
    token: () => signByHand(weak, rs256({ kid: 'weak-1024' }), claims()),
    reason: 'key-unfit',
  },
  { name: 'RSA key with exponent 3', token: () => signByJose(smallExponent, claims()), reason: 'key-unfit' },
  { name: 'key for encryption', token: () => signByJose(encryption, claims()), reason: 'key-unfit' },
  { name: 'key_ops without verify', token: () => signByJose(wrapping, claims()), reason: 'key-unfit' },
  { name: 'key whose private half is published', token: () => signByJose(leaked, claims()), reason: 'key-unfit' },
  {
    name: 'foreign issuer, with its own keys',
    token: () => signByJose(forger, claims({ iss: places.bait })),
    reason: 'issuer-unknown',
  },
  {
    name: 'issuer with an additional slash',
    token: () => signByJose(rsa, claims({ iss: `${places.issuer}/` })),
    reason: 'issuer-unknown',
  },
  {
    name: 'issuer in upper case',
    token: () => signByJose(rsa, claims({ iss: places.issuer.toUpperCase() })),
    reason: 'issuer-unknown',
  },
  {
    name: 'issuer as a list',
    token: () => signByJose(rsa, claims({ iss: [places.issuer] })),
    reason: 'issuer-unknown',
  },
  { name: 'issuer missing', token: () => signByJose(rsa, claims({ iss: undefined })), reason: 'issuer-unknown' },
  {
    name: 'audience of another client',
    token: () => signByJose(rsa, claims({ aud: 'client-of-somebody' })),
    reason: 'aud-mismatch',
  },
  {
    name: 'audience with an additional client',
    token: () => signByJose(rsa, claims({ aud: ['client-1', 'somebody'], azp: 'client-1' })),
    reason: 'aud-mismatch',
  },
  {
    name: 'audience that begins with the client id',
    token: () => signByJose(rsa, claims({ aud: 'client-1.evil' })),
    reason: 'aud-mismatch',
  },
  { name: 'audience that is an empty list', token: () => signByJose(rsa, claims({ aud: [] })), reason: 'aud-mismatch' },
  { name: 'audience missing', token: () => signByJose(rsa, claims({ aud: undefined })), reason: 'aud-malformed' },
  {
    name: 'audience that is an object',
    token: () => signByJose(rsa, claims({ aud: { 0: 'client-1', length: 1 } })),
    reason: 'aud-malformed',
  },
  {
    name: 'audience that is a list in a list',
    token: () => signByJose(rsa, claims({ aud: [['client-1']] })),
    reason: 'aud-malformed',
  },
  { name: 'azp of another client', token: () => signByJose(rsa, claims({ azp: 'somebody' })), reason: 'azp-mismatch' },
  { name: 'azp as a list', token: () => signByJose(rsa, claims({ azp: ['client-1'] })), reason: 'azp-mismatch' },
  { name: 'azp null', token: () => signByJose(rsa, claims({ azp: null })), reason: 'azp-mismatch' },
  {
    name: 'azp missing with two allowed audiences',
    token: () => signByJose(rsa, claims({ aud: ['client-1', 'client-2'] })),
    reason: 'azp-mismatch',
  },
  {
    name: 'expired for as long as the clock skew',
    token: () => signByJose(rsa, claims({ exp: NOW - 60, iat: NOW - 600 })),
    reason: 'expired',
  },
  { name: 'exp missing', token: () => signByJose(rsa, claims({ exp: undefined })), reason: 'exp-malformed' },
  { name: 'exp as text', token: () => signByJose(rsa, claims({ exp: `${NOW + 600}` })), reason: 'exp-malformed' },
  { name: 'exp null', token: () => signByJose(rsa, claims({ exp: null })), reason: 'exp-malformed' },
  { name: 'exp true', token: () => signByJose(rsa, claims({ exp: true })), reason: 'exp-malformed' },
  {
    name: 'exp 1e999',
    token: () => signByHand(rsa, rs256(), JSON.stringify(claims()).replace(/"exp":\d+/, '"exp":1e999')),
    reason: 'exp-malformed',
  },
  {
    name: 'exp in a thousand years',
    token: () => signByJose(rsa, claims({ exp: NOW + 1000 * 365 * 86_400 })),
    reason: 'lifetime-too-long',
  },
  {
    name: 'exp in milliseconds',
    token: () => signByJose(rsa, claims({ exp: NOW * 1000 })),
    reason: 'lifetime-too-long',
  },
  {
    name: 'exp before iat',
    token: () => signByJose(rsa, claims({ iat: NOW + 30, exp: NOW + 20 })),
    reason: 'lifetime-too-long',
  },
  { name: 'iat missing', token: () => signByJose(rsa, claims({ iat: undefined })), reason: 'iat-malformed' },
  { name: 'iat as text', token: () => signByJose(rsa, claims({ iat: `${NOW}` })), reason: 'iat-malformed' },
  { name: 'iat in the future', token: () => signByJose(rsa, claims({ iat: NOW + 61 })), reason: 'not-yet-valid' },
  { name: 'nbf in the future', token: () => signByJose(rsa, claims({ nbf: NOW + 61 })), reason: 'not-yet-valid' },
  { name: 'nbf as text', token: () => signByJose(rsa, claims({ nbf: '0' })), reason: 'nbf-malformed' },
  { name: 'nbf null', token: () => signByJose(rsa, claims({ nbf: null })), reason: 'nbf-malformed' },
  { name: 'nonce as a number', token: () => signByJose(rsa, claims({ nonce: 7 })), reason: 'nonce-malformed' },
  { name: 'sub missing', token: () => signByJose(rsa, claims({ sub: undefined })), reason: 'sub-malformed' },
  { name: 'sub empty', token: () => signByJose(rsa, claims({ sub: '' })), reason: 'sub-malformed' },
  { name: 'sub as a number', token: () => signByJose(rsa, claims({ sub: 1 })), reason: 'sub-malformed' },
  { name: 'sub as a list', token: () => signByJose(rsa, claims({ sub: ['victim-1'] })), reason: 'sub-malformed' },
  {
    name: 'sub of 256 characters',
    token: () => signByJose(rsa, claims({ sub: 's'.repeat(256) })),
    reason: 'sub-malformed',
  },
  { name: 'sub with NUL', token: () => signByJose(rsa, claims({ sub: 'victim-1\0' })), reason: 'sub-malformed' },
  {
    name: 'sub with half a surrogate pair',
    token: () => signByHand(rsa, rs256(), JSON.stringify(claims()).replace('victim-1', '\\ud800')),
    reason: 'sub-malformed',
  },
  {
    name: 'email as an object',
    token: () => signByJose(rsa, claims({ email: { $ne: '' } })),
    reason: 'profile-malformed',
  },
  {
    name: 'email_verified as a number',
    token: () => signByJose(rsa, claims({ email_verified: 1 })),
    reason: 'profile-malformed',
  },
  { name: 'name as a list', token: () => signByJose(rsa, claims({ name: ['Ada'] })), reason: 'profile-malformed' },
  { name: 'picture as a number', token: () => signByJose(rsa, claims({ picture: 1 })), reason: 'profile-malformed' },
  { name: 'hd as a list', token: () => signByJose(rsa, claims({ hd: ['example.com'] })), reason: 'profile-malformed' },
  {
    name: 'padding on the signature',
    token: () => rawSegments(([h, p, s]) => `${h}.${p}.${s}==`),
    reason: 'not-base64url',
  },
  {
    name: 'padding on the payload',
    token: () => rawSegments(([h, p, s]) => `${h}.${p}=.${s}`),
    reason: 'not-base64url',
  },
  {
    name: 'base64 instead of base64url',
    token: () => rawSegments(([h, p]) => `${h}.${p}.+/+/`),
    reason: 'not-base64url',
  },
  {
    name: 'a space inside',
    token: () => rawSegments(([h, p, s]) => `${h}.${p}.${s.slice(0, 8)} ${s.slice(8)}`),
    reason: 'not-base64url',
  },
  {
    name: 'a line feed at the end',
    token: () => rawSegments(([h, p, s]) => `${h}.${p}.${s}\n`),
    reason: 'not-base64url',
  },
  {
    name: 'a Cyrillic letter in the signature',
    token: () => rawSegments(([h, p, s]) => `${h}.${p}.${s.slice(0, -1)}\u0410`),
    reason: 'not-base64url',
  },
  {
    name: 'stray low bits in the last letter',
    token: () => rawSegments(([h, p, s]) => `${h}.${p}.${strayBits(s)}`),
    reason: 'not-base64url',
  },
  { name: 'two segments', token: () => rawSegments(([h, p]) => `${h}.${p}`), reason: 'not-three-segments' },
  {
    name: 'four segments',
    token: () => rawSegments(([h, p, s]) => `${h}.${p}.${s}.${s}`),
    reason: 'not-three-segments',
  },
  { name: 'five segments, an encrypted token', token: () => 'e30.AA.AA.AA.AA', reason: 'not-three-segments' },
  { name: 'an empty header', token: () => rawSegments(([, p, s]) => `.${p}.${s}`), reason: 'not-three-segments' },
  { name: 'an empty payload, well signed', token: () => signByHand(rsa, rs256(), ''), reason: 'not-three-segments' },
  { name: 'two dots', token: () => '..', reason: 'not-three-segments' },
  { name: 'a megabyte of dots', token: () => '.'.repeat(1_000_000), reason: 'too-long' },
  {
    name: 'a token of 16,385 characters',
    token: () => rawSegments((s) => s.join('.').padEnd(16_385, 'A')),
    reason: 'too-long',
  },
  {
    name: 'header that is a list',
    token: () => signByHand(rsa, '["RS256"]', claims()),
    reason: 'header-not-an-object',
  },
  { name: 'header null', token: () => signByHand(rsa, 'null', claims()), reason: 'header-not-an-object' },
  {
    name: 'header that is not UTF-8',
    token: () => `${Buffer.from([0x7b, 0xff, 0x7d]).toString('base64url')}.e30.AA`,
    reason: 'header-not-an-object',
  },
  {
    name: 'header with a byte order mark',
    token: () => signByHand(rsa, `\uFEFF${JSON.stringify(rs256())}`, claims()),
    reason: 'header-not-an-object',
  },
  {
    name: 'payload that is a text',
    token: () => signByHand(rsa, rs256(), '"claims"'),
    reason: 'payload-not-an-object',
  },
  { name: 'payload that is a list', token: () => signByHand(rsa, rs256(), '[]'), reason: 'payload-not-an-object' },
  {
    name: 'payload that is not JSON',
    token: () => signByHand(rsa, rs256(), "{'iss':1}"),
    reason: 'payload-not-an-object',
  },
];

function signDer(input: string): string {
  const [r, s] = [1, 2].map((half) =>
    Buffer.from(signText(ec, input), 'base64url').subarray((half - 1) * 32, half * 32),
  );
  const integer = (bytes: Buffer) => Buffer.concat([Buffer.from([2, bytes.length + 1, 0]), bytes]);
  const body = Buffer.concat([integer(r as Buffer), integer(s as Buffer)]);
  return Buffer.concat([Buffer.from([0x30, body.length]), body]).toString('base64url');
}
function pad(text: string): string {
  return Buffer.concat([Buffer.from([0]), Buffer.from(text, 'base64url')]).toString('base64url');
}
function cut(text: string): string {
  return Buffer.from(text, 'base64url').subarray(1).toString('base64url');
}
/** The base64url text of 256 bytes ends in a letter with four unused bits. */
function strayBits(text: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  return text.slice(0, -1) + alphabet[alphabet.indexOf(text.slice(-1)) + 1];
}
