// verifySignature alone, like the public test vectors: every algorithm of the table with an independent signer, and
// every kind of wrong key or signature. The vectors are made here, not copied.
import assert from 'node:assert/strict';
import { constants } from 'node:crypto';
import { describe, test } from 'node:test';
import { ALGORITHMS } from '../../../src/callers/identity/algorithms.ts';
import { decodeBase64url } from '../../../src/callers/identity/base64url.ts';
import { InvalidToken } from '../../../src/callers/identity/invalid-token.ts';
import { checkSignedBy, type Jws, parseJws } from '../../../src/callers/identity/jws.ts';
import { parseKey, parseKeySet, selectKey, type VerificationKey } from '../../../src/callers/identity/provider-keys.ts';
import {
  encode,
  type Json,
  makeKey,
  signByHand,
  signByJose,
  type TestKey,
  withKid,
} from '../../support/identity-tokens.ts';

const NAMES = [...ALGORITHMS.keys()];
/** By algorithm. The keys of RS256, RS384 and RS512 have the same numbers, and so have those of PS256, PS384 and PS512. */
const keys = new Map<string, TestKey>();
for (const alg of NAMES) {
  const first = /^[RP]S/.test(alg) ? keys.get(`${alg.slice(0, 2)}256`) : undefined;
  keys.set(alg, first === undefined ? makeKey(alg) : withKid(first, alg, alg));
}
const keyOf = (alg: string) => keys.get(alg) as TestKey;
const rsa = keyOf('RS256');
const ec = keyOf('ES256');
const without = (jwk: Json, ...members: string[]) =>
  Object.fromEntries(Object.entries(jwk).filter(([name]) => !members.includes(name)));

/** Returns the same number as base64url of one more byte. */
const withZero = (coordinate: unknown) =>
  Buffer.concat([Buffer.alloc(1), Buffer.from(String(coordinate), 'base64url')]).toString('base64url');

test('the paddings in the table of algorithms equal the constants of node:crypto', () => {
  for (const { name, kty, options } of ALGORITHMS.values()) {
    const padding = name.startsWith('PS') ? constants.RSA_PKCS1_PSS_PADDING : constants.RSA_PKCS1_PADDING;
    assert.equal(options.padding, kty === 'RSA' ? padding : undefined, name);
  }
});

/** Returns the largest number of so many bits. */
const modulusOf = (bits: number) =>
  Buffer.from(((1n << BigInt(bits)) - 1n).toString(16).padStart(2 * Math.ceil(bits / 8), '0'), 'hex').toString(
    'base64url',
  );

test('a key that cannot be used has a reason', () => {
  const reasons: readonly (readonly [jwk: unknown, reason: string])[] = [
    [null, 'not an object'],
    [{ ...rsa.jwk, kid: 1 }, 'the kid is not a string'],
    [{ ...rsa.jwk, d: 'AQAB' }, 'it has private members'],
    [{ ...rsa.jwk, use: 'enc' }, 'its use is not sig'],
    [{ ...rsa.jwk, key_ops: ['sign'] }, 'its key_ops do not include verify'],
    [{ ...ec.jwk, crv: 'secp256k1' }, 'its kty or crv is not supported'],
    [{ ...rsa.jwk, alg: 'ES256' }, 'its alg does not fit its kty'],
    [{ ...rsa.jwk, n: 5 }, 'its numbers are not a valid key'],
    [{ ...rsa.jwk, n: modulusOf(2047) }, 'its modulus has 2047 bits'],
    [{ ...rsa.jwk, n: modulusOf(16_385) }, 'its modulus has 16385 bits'],
    [{ ...rsa.jwk, e: 'Aw' }, 'its exponent is even or below 65,537'],
    [{ ...rsa.jwk, e: '__8' }, 'its exponent is even or below 65,537'],
  ];
  for (const [jwk, whyUnusable] of reasons) {
    const kid = Object(jwk).kid;
    assert.deepEqual(parseKey(jwk), { kid: typeof kid === 'string' ? kid : undefined, whyUnusable });
  }
});

describe('verifySignature', () => {
  for (const alg of NAMES) {
    const key = keyOf(alg);
    test(`accepts ${alg} of jose with a JWK and with a key set, and returns header and payload`, async () => {
      const token = await signByJose(key, { hello: alg });
      for (const source of [
        key.jwk,
        without(key.jwk, 'kid', 'alg', 'use'),
        { keys: [...keys.values()].map(({ jwk }) => jwk) },
      ]) {
        const { header, payload } = verifySignature(token, source, [alg]);
        assert.equal(header.alg, alg);
        assert.equal(payload.toString(), JSON.stringify({ hello: alg }));
      }
    });

    test(`refuses ${alg} when one bit of header, payload or signature changes`, async () => {
      const token = await signByJose(key, { hello: alg });
      const segments = token.split('.');
      for (const [index, segment] of segments.entries()) {
        const bytes = Buffer.from(segment, 'base64url');
        for (const at of [0, bytes.length >> 1, bytes.length - 1]) {
          const changed = Buffer.from(bytes);
          changed[at] = (changed[at] as number) ^ 1;
          const forged = segments.with(index, changed.toString('base64url')).join('.');
          assert.throws(() => verifySignature(forged, key.jwk, NAMES), { name: 'InvalidToken' });
        }
      }
    });

    test(`refuses ${alg} when it is not allowed, and with the key of any other algorithm`, async () => {
      const token = await signByJose(key, {}, { kid: 'shared' });
      const others = NAMES.filter((name) => name !== alg);
      assert.throws(() => verifySignature(token, key.jwk, others), { reason: 'alg-not-allowed' });
      for (const other of others) {
        const jwk = { ...keyOf(other).jwk, kid: 'shared' };
        assert.throws(() => verifySignature(token, jwk, NAMES), { reason: 'key-unfit' });
      }
    });
  }

  test('accepts an empty payload, which is valid in a JWS', () => {
    const token = signByHand(rsa, { alg: 'RS256' }, '');
    assert.equal(verifySignature(token, rsa.jwk, ['RS256']).payload.length, 0);
  });

  test('accepts the second valid ECDSA signature, so token bytes must never be a key', async () => {
    const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
    const [header, payload, signature = ''] = (await signByJose(ec, { a: 1 })).split('.');
    const bytes = Buffer.from(signature, 'base64url');
    const s = order - BigInt(`0x${bytes.subarray(32).toString('hex')}`);
    bytes.write(s.toString(16).padStart(64, '0'), 32, 'hex');
    const other = `${header}.${payload}.${bytes.toString('base64url')}`;
    assert.notEqual(bytes.toString('base64url'), signature);
    assert.ok(verifySignature(other, ec.jwk, ['ES256']));
  });

  test('refuses a PS256 salt whose length is not that of the hash', async () => {
    const { constants, sign } = await import('node:crypto');
    const input = `${encode({ alg: 'PS256' })}.${encode({})}`;
    const key = keyOf('PS256');
    const sealed = (saltLength: number) =>
      sign('sha256', Buffer.from(input), {
        key: key.privateKey,
        padding: constants.RSA_PKCS1_PSS_PADDING,
        saltLength,
      }).toString('base64url');
    assert.ok(verifySignature(`${input}.${sealed(32)}`, key.jwk, ['PS256']));
    for (const saltLength of [0, 20, 64]) {
      assert.throws(() => verifySignature(`${input}.${sealed(saltLength)}`, key.jwk, ['PS256']), {
        reason: 'signature-wrong',
      });
    }
  });

  const rsaToken = signByHand(rsa, { alg: 'RS256', kid: 'RS256' }, {});
  const ecToken = signByHand(ec, { alg: 'ES256', kid: 'ES256' }, {});
  const p384 = keyOf('ES384').jwk;
  for (const [name, token, jwk, reason] of [
    ['null', rsaToken, null, 'key-unfit'],
    ['a PEM', rsaToken, rsa.publicKey.export({ type: 'spki', format: 'pem' }), 'key-unfit'],
    ['a list', rsaToken, [rsa.jwk], 'key-unfit'],
    ['a symmetric kty', rsaToken, { kty: 'oct', k: 'AAAA', kid: 'RS256' }, 'key-unfit'],
    ['a kid that is a number', rsaToken, { ...rsa.jwk, kid: 1 }, 'key-unfit'],
    ['another kid', rsaToken, { ...rsa.jwk, kid: 'other' }, 'key-unknown'],
    ['use enc', rsaToken, { ...rsa.jwk, use: 'enc' }, 'key-unfit'],
    ['use in upper case', rsaToken, { ...rsa.jwk, use: 'SIG' }, 'key-unfit'],
    ['use that is null', rsaToken, { ...rsa.jwk, use: null }, 'key-unfit'],
    ['key_ops without verify', rsaToken, { ...rsa.jwk, key_ops: ['sign'] }, 'key-unfit'],
    ['key_ops that is a text', rsaToken, { ...rsa.jwk, key_ops: 'verify' }, 'key-unfit'],
    ['the alg of another kty', rsaToken, { ...rsa.jwk, alg: 'ES256' }, 'key-unfit'],
    ['an unknown alg', rsaToken, { ...rsa.jwk, alg: 'RSA-OAEP' }, 'key-unfit'],
    ...['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv'].map(
      (name) => [`the private member ${name}`, rsaToken, { ...rsa.jwk, [name]: 'AQAB' }, 'key-unfit'] as const,
    ),
    ['no modulus', rsaToken, without(rsa.jwk, 'n'), 'key-unfit'],
    ['a modulus as a number', rsaToken, { ...rsa.jwk, n: 5 }, 'key-unfit'],
    ['a modulus in base64 with padding', rsaToken, { ...rsa.jwk, n: `${rsa.jwk.n}==` }, 'key-unfit'],
    ['an empty modulus', rsaToken, { ...rsa.jwk, n: '' }, 'key-unfit'],
    [
      'a modulus of 20,000 bits',
      rsaToken,
      { ...rsa.jwk, n: Buffer.alloc(2500, 255).toString('base64url') },
      'key-unfit',
    ],
    ['exponent 1', rsaToken, { ...rsa.jwk, e: 'AQ' }, 'key-unfit'],
    ['exponent 3', rsaToken, { ...rsa.jwk, e: 'Aw' }, 'key-unfit'],
    ['exponent 65,538', rsaToken, { ...rsa.jwk, e: 'AQAC' }, 'key-unfit'],
    ['exponent 0', rsaToken, { ...rsa.jwk, e: 'AA' }, 'key-unfit'],
    ['a curve of another name', ecToken, { ...ec.jwk, crv: 'secp256k1' }, 'key-unfit'],
    ['a curve of another alg', ecToken, { ...p384, alg: 'ES256', kid: 'ES256' }, 'key-unfit'],
    ['a coordinate one byte short', ecToken, { ...ec.jwk, x: Buffer.alloc(31, 1).toString('base64url') }, 'key-unfit'],
    ['a coordinate with a zero in front', ecToken, { ...ec.jwk, x: withZero(ec.jwk.x) }, 'key-unfit'],
    ['a point off the curve', ecToken, { ...ec.jwk, x: Buffer.alloc(32, 1).toString('base64url') }, 'key-unfit'],
    ['the point at zero', ecToken, { ...ec.jwk, x: 'A'.repeat(43), y: 'A'.repeat(43) }, 'key-unfit'],
    ['kty __proto__', ecToken, { ...ec.jwk, kty: '__proto__' }, 'key-unfit'],
  ] as const) {
    test(`refuses a key: ${name}`, () => {
      assert.throws(() => verifySignature(token, jwk, NAMES), { name: 'InvalidToken', reason });
    });
  }

  test('refuses a token that is not a text', () => {
    for (const value of [undefined, null, 1, {}, ['a.b.c'], Buffer.from(rsaToken)]) {
      assert.throws(() => verifySignature(value, rsa.jwk, NAMES), { reason: 'not-a-token' });
    }
  });

  test('refuses HS256 even when the caller allows it', () => {
    assert.throws(() => verifySignature(signByHand(rsa, { alg: 'HS256' }, {}), rsa.jwk, ['HS256', 'none']), {
      reason: 'alg-not-allowed',
    });
  });
});

describe('parseKeySet', () => {
  test('accepts a key set of 100 keys, and keeps unusable keys with the reason', () => {
    const set = parseKeySet({ keys: [rsa.jwk, { kty: 'oct', kid: 'a' }, 'junk', ...Array(97).fill(ec.jwk)] });
    assert.equal(set.length, 100);
    assert.deepEqual(
      set.slice(0, 3).map((key) => [key.kid, 'whyUnusable' in key && key.whyUnusable]),
      [
        ['RS256', false],
        ['a', 'its kty or crv is not supported'],
        [undefined, 'not an object'],
      ],
    );
  });

  for (const bits of [2048, 3072, 16_384])
    test(`accepts a key of ${bits} bits with key_ops for verifying`, () => {
      const jwk = { kty: 'RSA', n: modulusOf(bits), e: 'AQAB', key_ops: ['verify', 'encrypt'] };
      const [key] = parseKeySet({ keys: [jwk] });
      assert.ok(key !== undefined && 'key' in key);
      assert.equal(key.modulusBytes, bits / 8);
      assert.equal(key.algorithms.size, 6);
    });

  test('accepts 100 keys', () => assert.equal(parseKeySet({ keys: Array(100).fill({}) }).length, 100));

  for (const value of [null, 1, 'keys', {}, { keys: {} }, { keys: Array(101).fill(rsa.jwk) }]) {
    test(`throws at ${JSON.stringify(value)?.slice(0, 20)}`, () => {
      assert.throws(() => parseKeySet(value), /^Error: the key set has/);
    });
  }
});

describe('decodeBase64url', () => {
  for (const text of ['A', 'AB', 'AAA=', 'AA==', 'A A', 'A+', 'A/', 'AA\n', 'Aé', undefined, 1]) {
    test(`refuses ${JSON.stringify(text)}`, () => assert.equal(decodeBase64url(text), undefined));
  }

  test('accepts the canonical spelling of any bytes', () => {
    for (const bytes of [[], [0], [255, 254], [1, 2, 3], [251, 239, 190, 0]]) {
      assert.deepEqual(decodeBase64url(Buffer.from(bytes).toString('base64url')), Buffer.from(bytes));
    }
  });
});

/**
 * Verifies the signature of a compact JWS alone, without its claims.
 *
 * @param jwkOrKeySet `{keys: [JWK, …]}`, or one JWK; if that JWK has no `kid`, the token's `kid` does not matter
 * @param allowedAlgorithms case-sensitive names; an unsupported name has no effect
 * @throws InvalidToken with the reason; @throws Error when `jwkOrKeySet` is a set that cannot be read
 */
function verifySignature(
  token: unknown,
  jwkOrKeySet: unknown,
  allowedAlgorithms: readonly string[],
): { header: Readonly<Record<string, unknown>>; payload: Buffer } {
  const jws = parseJws(token);
  if (!allowedAlgorithms.includes(jws.algorithm.name)) throw new InvalidToken('alg-not-allowed');
  const key = chooseKey(jwkOrKeySet, jws);
  if (key === undefined) throw new InvalidToken('key-unknown');
  checkSignedBy(jws, key);
  return { header: jws.header, payload: jws.payload };
}

function chooseKey(jwkOrKeySet: unknown, { algorithm: { name: alg }, kid }: Jws): VerificationKey | undefined {
  const isSet = typeof jwkOrKeySet === 'object' && jwkOrKeySet !== null && Object.hasOwn(jwkOrKeySet, 'keys');
  if (isSet) return selectKey(parseKeySet(jwkOrKeySet), { alg, kid });
  const key = parseKey(jwkOrKeySet);
  if (!('key' in key)) throw new InvalidToken('key-unfit');
  return selectKey([key], { alg, kid: key.kid === undefined ? undefined : kid });
}

test('checkSignedBy refuses a key that is for another algorithm', () => {
  const jws = parseJws(signByHand(rsa, { alg: rsa.alg }, {}));
  const key = parseKey(without(rsa.jwk, 'alg'));
  assert.ok('algorithms' in key);
  checkSignedBy(jws, key);
  const other = { ...key, algorithms: new Set(['PS256']) };
  assert.throws(() => checkSignedBy(jws, other), new InvalidToken('key-unfit'));
});
