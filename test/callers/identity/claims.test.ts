// Each claim by itself, at its limits. Over sockets and with signatures: attacks.test.ts.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { checkClaims } from '../../../src/callers/identity/claims.ts';

const NOW = 1_800_000_000;
const ISSUER = 'https://id.example';
const CLAIMS = { iss: ISSUER, sub: 'u-1', aud: 'web', iat: NOW, exp: NOW + 3600 };

function check(changes: object, expected: object = {}) {
  const all = { issuer: ISSUER, clientIds: ['web', 'app'], nonce: undefined, now: NOW, ...expected };
  return checkClaims({ ...CLAIMS, ...changes }, all);
}

describe('claims are refused', () => {
  const rows: [reason: string, changes: object, expected?: object][] = [
    ['iss-mismatch', { iss: [ISSUER] }],
    ['iss-mismatch', { iss: `${ISSUER}/` }],
    ['iss-mismatch', { iss: 'accounts.google.com' }],
    ['aud-malformed', { aud: undefined }],
    ['aud-malformed', { aud: ['web', 1] }],
    ['aud-mismatch', { aud: [] }],
    ['aud-mismatch', { aud: 'other' }],
    ['aud-mismatch', { aud: ['web', 'other'], azp: 'web' }],
    ['azp-mismatch', { aud: ['web', 'app'] }],
    ['azp-mismatch', { aud: 'web', azp: 'other' }],
    ['azp-mismatch', { aud: 'web', azp: ['web'] }],
    ['exp-malformed', { exp: Number.POSITIVE_INFINITY }],
    ['exp-malformed', { exp: `${NOW + 60}` }],
    ['iat-malformed', { iat: undefined }],
    ['nbf-malformed', { nbf: null }],
    ['expired', { iat: NOW - 100, exp: NOW - 60 }],
    ['not-yet-valid', { iat: NOW + 61 }],
    ['not-yet-valid', { nbf: NOW + 61 }],
    ['lifetime-too-long', { exp: NOW + 86_401 }],
    ['lifetime-too-long', { iat: NOW + 1, exp: NOW }],
    ['nonce-malformed', { nonce: 1 }],
    ['nonce-malformed', { nonce: 1 }, { nonce: '1' }],
    ['nonce-mismatch', {}, { nonce: 'n' }],
    ['nonce-mismatch', { nonce: 'm' }, { nonce: 'n' }],
    ['sub-malformed', { sub: undefined }],
    ['sub-malformed', { sub: '' }],
    ['sub-malformed', { sub: 's'.repeat(256) }],
    ['sub-malformed', { sub: 'a\u0000' }],
    ['sub-malformed', { sub: 'a\ud800' }],
    ['profile-malformed', { email: ['a@b.c'] }],
    ['profile-malformed', { name: 5 }],
    ['profile-malformed', { picture: {} }],
    ['profile-malformed', { hd: true }],
    ['profile-malformed', { email_verified: 'yes' }],
    ['profile-malformed', { email_verified: 1 }],
  ];
  for (const [reason, changes, expected] of rows)
    test(`${reason}: ${JSON.stringify(changes).slice(0, 60)}${expected === undefined ? '' : ', with a nonce sent'}`, () => {
      assert.throws(() => check(changes, expected), { name: 'InvalidToken', reason });
    });
});

describe('claims are accepted', () => {
  const WHO = { issuer: ISSUER, subject: 'u-1' };
  const rows: [changes: object, identity?: object, expected?: object][] = [
    [{}],
    [{ aud: ['web'] }],
    [{ aud: ['web', 'app'], azp: 'app' }],
    [{ aud: 'web', azp: 'app' }],
    [{ iat: NOW - 100, exp: NOW - 59 }],
    [{ iat: NOW, exp: NOW }],
    [{ iat: NOW + 60 }],
    [{ nbf: NOW + 60 }],
    [{ exp: NOW + 86_400 }],
    [{ nonce: 'n' }],
    [{ nonce: 'n' }, {}, { nonce: 'n' }],
    [{ sub: 's'.repeat(255) }, { subject: 's'.repeat(255) }],
    [
      { email: 'a@b.c', email_verified: true, name: 'Ada', picture: 'HTTPS://a.example/p', hd: 'b.c' },
      { email: 'a@b.c', emailVerified: true, name: 'Ada', picture: 'HTTPS://a.example/p', hostedDomain: 'b.c' },
    ],
    [{ email_verified: false }, { emailVerified: false }],
    [{ email_verified: 'true' }],
    [{ email_verified: 'false' }],
    [{ email: null, email_verified: null, name: null, picture: null, hd: null }],
    [{ picture: 'javascript:alert(1)' }],
    [
      { iss: 'accounts.google.com' },
      { issuer: 'https://accounts.google.com' },
      { issuer: 'https://accounts.google.com' },
    ],
  ];
  for (const [changes, identity, expected] of rows)
    test(`${JSON.stringify(changes).slice(0, 60)}${expected === undefined ? '' : `, ${JSON.stringify(expected)}`}`, () => {
      assert.deepEqual(check(changes, expected), { ...WHO, ...identity });
    });
});
