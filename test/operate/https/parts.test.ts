// The parts of HTTPS without a service: DER as openssl reads it, the times of renewals and of repeated orders, the
// files of DATA_DIR/tls, and the lock of orders.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { parseRetryAfter } from '../../../src/base/time.ts';
import { adviceFor } from '../../../src/operate/https/acme/advice.ts';
import {
  createCertificateRequest,
  createChallengeCertificate,
  createKeyPair,
} from '../../../src/operate/https/acme/certificate-writer.ts';
import { integer, oid, readElements, sequence, time } from '../../../src/operate/https/acme/der.ts';
import { createTryLock } from '../../../src/operate/https/acme/order-lock.ts';
import {
  adviceInterval,
  adviceTime,
  renewalTime,
  retryPause,
  warningPeriod,
} from '../../../src/operate/https/acme/renewal-times.ts';
import { AcmeError, readError } from '../../../src/operate/https/acme/request.ts';
import { createTlsFolder } from '../../../src/operate/https/acme/tls-folder.ts';
import { readPair } from '../../../src/operate/https/pair.ts';
import { LOADER, moduleUrl } from '../../support/own-modules.ts';
import { makePair } from '../../support/tls.ts';

const withoutOpenssl = spawnSync('openssl', ['version']).error === undefined ? false : 'openssl is not installed';
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

test('a process that exports its new keys does not hang on Node 20', () => {
  const source = `
    import { createKeyPair } from '${moduleUrl('src/operate/https/acme/certificate-writer')}';
    import { createKeyAuthorization } from '${moduleUrl('src/operate/https/acme/jws')}';
    for (let pair = 0; pair < 30; pair++) {
      const { privateKey } = createKeyPair();
      for (let n = 0; n < 1000; n++) createKeyAuthorization('token', privateKey);
    }
    console.log('ended');`;
  // In this little memory, the garbage collector also runs during an export.
  const argv = [...LOADER, '--max-semi-space-size=1', '--input-type=module', '-e', source];
  assert.equal(spawnSync(process.execPath, argv, { encoding: 'utf8', timeout: 60_000 }).stdout, 'ended\n');
});

describe('DER', () => {
  const rows: [what: string, bytes: Uint8Array, hex: string][] = [
    ['zero', integer(Buffer.of(0, 0)), '020100'],
    ['a number whose first bit is set gets a zero in front', integer(Buffer.of(0x80)), '02020080'],
    ['a number without needless zeros', integer(Buffer.of(0, 0, 1)), '020101'],
    ['an object identifier with long arcs', oid('1.2.840.10045.4.3.2'), '06082a8648ce3d040302'],
    [
      'a time up to 2049',
      time(new Date('2026-11-22T01:02:03.9Z')),
      `170d${Buffer.from('261122010203Z').toString('hex')}`,
    ],
    [
      'a time after 2049',
      time(new Date('2050-01-01T00:00:00Z')),
      `180f${Buffer.from('20500101000000Z').toString('hex')}`,
    ],
  ];
  for (const [what, bytes, hex] of rows) test(what, () => assert.equal(Buffer.from(bytes).toString('hex'), hex));

  test('lengths of one, two and three bytes are read as they are written', () => {
    for (const length of [0, 127, 128, 255, 256, 70_000]) {
      const [element] = readElements(sequence(Buffer.alloc(length)));
      assert.equal(element?.content.length, length);
    }
    assert.equal(readElements(Buffer.from('308400000001ff', 'hex'))[0]?.content.length, 1, 'four bytes are read, too');
  });

  test('bytes that are cut short are refused', () => {
    for (const bytes of ['30', '3005', '3081', '308201', '3080', '30850000000001ff']) {
      assert.throws(() => readElements(Buffer.from(bytes, 'hex')), /the bytes are not DER/, bytes);
    }
  });
});

describe('certificates and requests that are written', { skip: withoutOpenssl }, () => {
  const openssl = (args: string[], input: string | Buffer) =>
    execFileSync('openssl', args, { input, encoding: 'utf8', stdio: ['pipe', 'pipe', 'pipe'] });

  test('a certificate request has its names and a signature', () => {
    const text = openssl(
      ['req', '-inform', 'DER', '-noout', '-text', '-verify'],
      createCertificateRequest(['api.example.com', 'www.example.com'], createKeyPair()),
    );
    assert.match(text, /DNS:api\.example\.com, DNS:www\.example\.com/);
    assert.match(text, /ecdsa-with-SHA256/);
    assert.match(text, /Version: 1 \(0x0\)/);
  });

  test('the certificate of a challenge has one name and a critical extension', () => {
    const { cert } = createChallengeCertificate('api.example.com', 'token.thumbprint');
    const text = openssl(['x509', '-noout', '-text'], cert);
    assert.match(text, /DNS:api\.example\.com\s/);
    assert.match(text, /1\.3\.6\.1\.5\.5\.7\.1\.31: critical/);
  });

  test('serial numbers are unique and positive', () => {
    const serials = Array.from({ length: 20 }, () => new X509Certificate(makePair('a.example.com').cert).serialNumber);
    assert.equal(new Set(serials).size, 20);
    for (const serial of serials) assert.doesNotMatch(serial, /^-/);
  });
});

describe('times', () => {
  const of = (days: number) => ({ notBefore: 0, notAfter: days * DAY });

  test('a certificate is renewed at two thirds of its lifetime', () => {
    assert.equal(renewalTime(of(90)), 60 * DAY);
    assert.equal(renewalTime(of(6)), 4 * DAY);
  });

  test('the renewal time lies in the advised window, and the interval between two questions is limited', () => {
    assert.equal(adviceTime({ start: 1000, end: 3000, retryAfter: undefined }, 0.25), 1500);
    assert.deepEqual([undefined, 1, 10 * DAY].map(adviceInterval), [6 * HOUR, MINUTE, DAY]);
  });

  test('a warning comes 14 days before the end, and later for a certificate of six days', () => {
    assert.equal(warningPeriod(of(90)), 14 * DAY);
    assert.equal(warningPeriod(of(6)), 1.8 * DAY);
  });

  test('pauses after failed orders grow up to 12 hours, and follow Retry-After up to 7 days', () => {
    const pauses = Array.from({ length: 8 }, (_, i) => retryPause(i + 1, undefined, 0.5));
    const [minutes, hours] = [
      [2, 10, 40].map((count) => count * MINUTE),
      [2, 6, 12, 12, 12].map((count) => count * HOUR),
    ];
    assert.deepEqual(pauses, [...minutes, ...hours]);
    for (const asked of [3 * HOUR, 6 * DAY]) assert.equal(retryPause(1, asked, 0), asked);
    assert.equal(retryPause(1, 365 * DAY, 0), 7 * DAY);
    // Machines that failed at the same time do not retry at the same time.
    assert.deepEqual(
      [0, 1].map((share) => Math.round(retryPause(2, undefined, share))),
      [8 * MINUTE, 12 * MINUTE],
    );
  });

  test('Retry-After is seconds or a date', () => {
    assert.deepEqual(
      ['120', 'Thu, 01 Jan 1970 00:02:00 GMT', 'soon', undefined].map((header) => parseRetryAfter(header, 0)),
      [120_000, 120_000, undefined, undefined],
    );
    assert.equal(parseRetryAfter('Thu, 01 Jan 1970 00:02:00 GMT', 180_000), 0);
  });
});

test('an ACME error has its type, the time to wait, a message in one line, and advice', () => {
  const error = readError(
    {
      status: 429,
      headers: { 'retry-after': '60' },
      text: JSON.stringify({ type: 'urn:ietf:params:acme:error:rateLimited', detail: 'too many\ncertificates' }),
    },
    'https://ca.example.com/order',
  );
  assert.deepEqual([error.type, error.retryAfter, error.message], ['rateLimited', 60_000, 'too many certificates']);
  assert.match(adviceFor(error), /next attempt waits/);
  assert.match(adviceFor(new AcmeError('Cannot reach it')), /ACME_DIRECTORY/);
  assert.match(adviceFor(new Error('Cannot write')), /DATA_DIR\/tls/);
  const subproblems = [
    { type: 'urn:ietf:params:acme:error:caa', detail: 'the record forbids it' },
    { type: 'urn:ietf:params:acme:error:dns', detail: 'no record' },
  ];
  const compound = { type: 'urn:ietf:params:acme:error:compound', detail: 'two errors', subproblems };
  const many = readError({ status: 400, headers: {}, text: JSON.stringify(compound) }, 'https://ca.example.com/order');
  assert.deepEqual([many.type, many.message], ['caa', 'two errors; the record forbids it; no record']);
  const long = JSON.stringify({ type: 'urn:ietf:params:acme:error:dns', detail: 'x'.repeat(100_000) });
  assert.equal(readError({ status: 400, headers: {}, text: long }, 'https://ca.example.com/order').message.length, 600);
  const page = readError({ status: 502, headers: {}, text: '<html>' }, 'https://ca.example.com/order');
  assert.equal(page.message, 'ca.example.com answers with status 502');
});

test('the advice about a failed order names what the operator can correct', () => {
  const rows: readonly [type: string, advice: RegExp][] = [
    ['dns', /an A or AAAA record that leads to this machine/],
    ['connection', /port 80 \(http-01\) or 443 \(tls-alpn-01\)/],
    ['tls', /answers on port 443/],
    ['unauthorized', /any proxy in front/],
    ['incorrectResponse', /any proxy in front/],
    ['noChallenge', /HTTP_PORT to 80 for http-01, or to off for tls-alpn-01/],
    ['noPort', /needs PORT.*free it, or set HTTP_PORT to 80/],
    ['caa', /CAA record .* ACME_DIRECTORY/],
    ['rejectedIdentifier', /correct DOMAINS/],
    ['unsupportedIdentifier', /correct DOMAINS/],
    ['invalidContact', /correct ACME_CONTACT/],
    ['unsupportedContact', /correct ACME_CONTACT/],
    ['externalAccountRequired', /choose another ACME_DIRECTORY/],
    ['userActionRequired', /read the terms/],
    ['malformed', /read the error of the directory; docs\/OPERATING\.md/],
  ];
  for (const [type, advice] of rows) assert.match(adviceFor(new AcmeError('no', { type })), advice, type);
  assert.match(adviceFor(new AcmeError('no')), /reaches ACME_DIRECTORY .*NODE_EXTRA_CA_CERTS/);
  const silent = readError({ status: 400, headers: {}, text: '{"type":"a:b:dns"}' }, 'https://ca.example.com/order');
  assert.deepEqual([silent.type, silent.message], ['dns', 'the directory reports dns']);
});

describe('the files of DATA_DIR/tls', () => {
  const dir = mkdtempSync(join(tmpdir(), 'gatefold-tls-'));
  after(() => rmSync(dir, { recursive: true, force: true }));

  test('have mode 0600 in a folder of mode 0700, and no other file is left there', () => {
    const folder = createTlsFolder(dir);
    assert.equal(folder.readCertificate(), undefined);
    folder.checkWritable();
    const account = folder.accountKey(false);
    assert.ok(account.equals(folder.accountKey(false)));
    assert.ok(!account.equals(folder.accountKey(true)));
    const pair = makePair('api.example.com');
    folder.writeCertificate('https://ca.example.com/dir', pair.cert, pair.key);
    const stored = folder.readCertificate();
    assert.equal(stored?.directoryUrl, 'https://ca.example.com/dir');
    assert.deepEqual(readPair(stored?.text ?? '', stored?.text ?? '').facts.names, ['api.example.com']);
    assert.deepEqual(readdirSync(folder.path).sort(), ['account.key', 'certificate.pem']);
    for (const name of readdirSync(folder.path)) assert.equal(statSync(join(folder.path, name)).mode & 0o777, 0o600);
    assert.equal(statSync(folder.path).mode & 0o777, 0o700);
  });

  test('include an account key that is refused with advice when it is damaged', () => {
    const folder = createTlsFolder(dir);
    writeFileSync(join(folder.path, 'account.key'), 'torn');
    assert.throws(() => folder.accountKey(false), /account\.key: it is not a private key in PEM form\. Remove it/);
    assert.equal(readFileSync(join(folder.path, 'account.key'), 'utf8'), 'torn');
  });

  test('are not taken for missing when they cannot be read', () => {
    // No order may make a new account or certificate then.
    const folder = createTlsFolder(join(dir, 'unreadable'));
    mkdirSync(folder.certificatePath, { recursive: true });
    assert.throws(() => folder.readCertificate(), /^Error: Cannot read .*certificate\.pem: /);
  });

  test('include a lock with one holder at a time, which may be broken after five minutes', async () => {
    let clock = 0;
    const path = join(dir, 'order.lock');
    const [first, second] = [createTryLock(), createTryLock()];
    const release = await first(path);
    assert.ok(release !== undefined);
    assert.equal(await second(path), undefined);
    await release();
    const again = await second(path);
    assert.ok(again !== undefined);
    await again();

    const waits: number[] = [];
    const patient = createTryLock(
      async (_path, { waitMs, unseenHolderMs }) => {
        waits.push(waitMs);
        assert.equal(unseenHolderMs, 1000);
        throw new Error('held');
      },
      () => clock,
    );
    for (clock of [0, 5 * MINUTE, 5 * MINUTE + 1]) assert.equal(await patient('x'), undefined);
    assert.deepEqual(waits, [0, 0, 5000]);
    // Two months later, another process has just begun the next order.
    for (clock of [86_400 * MINUTE, 86_401 * MINUTE]) assert.equal(await patient('x'), undefined);
    assert.deepEqual(waits.slice(3), [0, 0]);

    // Several holders in a row, with five minutes in all, do not count as one holder of five minutes.
    let isHeld = true;
    const asked: number[] = [];
    const often = createTryLock(
      async (_path, { waitMs }) => {
        asked.push(waitMs);
        if (isHeld) throw new Error('held');
        return { release: async () => {} };
      },
      () => clock,
    );
    for (clock of [0, 4 * MINUTE, 8 * MINUTE, 12 * MINUTE]) {
      isHeld = clock !== 4 * MINUTE;
      await often('x');
    }
    assert.deepEqual(asked, [0, 0, 0, 0]);
    const full = createTryLock(async () => {
      throw Object.assign(new Error('full'), { code: 'ENOSPC' });
    });
    await assert.rejects(full('x'), /full/);
  });
});

test('two self-signed certificates for one name have different subjects, so that a client can trust both', () => {
  const subjects = [1, 2].map(() => new X509Certificate(makePair('a.example.com').cert).subject);
  assert.notEqual(subjects[0], subjects[1]);
});
