// A certificate with its key: which facts are read, for which hosts clients accept it, and which pairs are refused.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createKeyPair, createSelfSigned } from '../../../src/operate/https/acme/certificate-writer.ts';
import { type CertificateFacts, readFacts, readPair } from '../../../src/operate/https/pair.ts';
import { makePair } from '../../support/tls.ts';

const DAY = 86_400_000;
const withoutOpenssl = spawnSync('openssl', ['version']).error === undefined ? false : 'openssl is not installed';
const RFC_9773 = `-----BEGIN CERTIFICATE-----
MIIBQzCB66ADAgECAgUAh2VDITAKBggqhkjOPQQDAjAVMRMwEQYDVQQDEwpFeGFt
cGxlIENBMCIYDzAwMDEwMTAxMDAwMDAwWhgPMDAwMTAxMDEwMDAwMDBaMBYxFDAS
BgNVBAMTC2V4YW1wbGUuY29tMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEeBZu
7cbpAYNXZLbbh8rNIzuOoqOOtmxA1v7cRm//AwyMwWxyHz4zfwmBhcSrf47NUAFf
qzLQ2PPQxdTXREYEnKMjMCEwHwYDVR0jBBgwFoAUaYhba4dGQEHhs3uEe6CuLN4B
yNQwCgYIKoZIzj0EAwIDRwAwRAIge09+S5TZAlw5tgtiVvuERV6cT4mfutXIlwTb
+FYN/8oCIClDsqBklhB9KAelFiYt9+6FDj3z4KGVelYM5MdsO3pK
-----END CERTIFICATE-----
`;

describe('readPair', () => {
  const pair = makePair('api.example.com');
  const [encrypted = '', encryptedOnce = ''] = (['pkcs8', 'sec1'] as const).map((type) =>
    String(createKeyPair().privateKey.export({ type, format: 'pem', cipher: 'aes-128-cbc', passphrase: 'secret' })),
  );

  test('returns the names, the lifetime and the issuer of a certificate', () => {
    const { facts } = readPair(pair.cert, pair.key);
    assert.deepEqual(facts.names, ['api.example.com']);
    assert.equal(facts.notAfter - facts.notBefore, 91 * DAY);
    assert.match(facts.issuer, /^CN=gatefold /);
    assert.equal(facts.renewalId, undefined);
    const { cert, key } = makePair('API.Example.com');
    assert.deepEqual(readPair(cert, key).facts.names, ['api.example.com']);
  });

  test('returns the renewal id of the example in RFC 9773, appendix A', () => {
    assert.equal(readFacts(new X509Certificate(RFC_9773)).renewalId, 'aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE');
  });

  const odd = createSelfSigned({
    domains: ['api.example.com'],
    keys: generateKeyPairSync('ec', { namedCurve: 'secp256k1' }),
    now: Date.now(),
    days: 90,
  });

  const rows: [what: string, cert: string, key: string, reason: RegExp][] = [
    [
      'a curve that no client accepts',
      odd.cert,
      odd.key,
      /^clients refuse keys of the curve secp256k1: order one with prime256v1 \(P-256\)$/,
    ],
    ['an empty file', '', '', /^the file has no certificate in PEM form$/],
    ['a torn certificate', pair.cert.slice(0, 300), pair.key, /^the certificate is damaged or incomplete$/],
    ['no key', pair.cert, pair.cert, /^the file has no private key in PEM form$/],
    ['a torn key', pair.cert, pair.key.slice(0, 100), /^the private key is damaged or incomplete$/],
    [
      'a key with a passphrase in the old format of OpenSSL',
      pair.cert,
      encryptedOnce,
      /^the private key has a passphrase$/,
    ],
    ['a key with a passphrase', pair.cert, encrypted, /^the private key has a passphrase$/],
    [
      'the key of another certificate',
      pair.cert,
      makePair('api.example.com').key,
      /^the key does not belong to the certificate$/,
    ],
    [
      'a torn certificate behind the first',
      `${pair.cert}${pair.cert.slice(0, 200)}`,
      pair.key,
      /^OpenSSL refuses the certificate or its key \(\w+\)$/,
    ],
  ];
  for (const [what, cert, key, reason] of rows) {
    test(`refuses ${what}, in one line without the key`, () => {
      assert.throws(
        () => readPair(cert, key),
        (error: Error) => reason.test(error.message) && !error.message.includes('\n'),
      );
    });
  }
});

describe('the hosts of a certificate', { skip: withoutOpenssl }, () => {
  const dir = mkdtempSync(join(tmpdir(), 'gatefold-names-'));
  after(() => rmSync(dir, { recursive: true, force: true }));
  let isFor = (_host: string) => false;
  let facts: CertificateFacts;
  before(() => {
    const names = 'DNS:api.example.com,DNS:*.wild.example.com,IP:192.0.2.1,IP:2001:db8::1';
    const files = ['-keyout', join(dir, 'key.pem'), '-out', join(dir, 'cert.pem')];
    const options = [
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-subj',
      '/C=DE/O=Example/CN=common.example.com',
    ];
    execFileSync('openssl', ['req', '-x509', ...options, '-addext', `subjectAltName=${names}`, ...files], {
      stdio: 'ignore',
    });
    const [cert = '', key = ''] = ['cert.pem', 'key.pem'].map((name) => readFileSync(join(dir, name), 'utf8'));
    ({ isFor, facts } = readPair(cert, key));
  });

  const rows: [host: string, expected: boolean][] = [
    ['api.example.com', true],
    ['API.Example.com', true],
    ['a.wild.example.com', true],
    ['a.b.wild.example.com', false],
    ['wild.example.com', false],
    ['x.api.example.com', false],
    ['example.com', false],
    // OpenSSL would match this name with any subdomain.
    ['.example.com', false],
    ['.wild.example.com', false],
    ['common.example.com', false],
    ['192.0.2.1', true],
    ['192.0.2.2', false],
    ['[2001:db8::1]', true],
    ['[2001:DB8:0:0::1]', true],
    ['[2001:db8::2]', false],
    ['[:::]', false],
    ['999.0.2.1', false],
    ['', false],
  ];
  test('the subject of the certificate is one line', () =>
    assert.equal(facts.subject, 'C=DE, O=Example, CN=common.example.com'));
  for (const [host, expected] of rows)
    test(`${host}: ${expected ? 'yes' : 'no'}`, () => assert.equal(isFor(host), expected));
});
