// When an order is made and what comes of a refusal, with a directory of our own making: no clock but the test's, no network.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { createPublicKey, X509Certificate } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { createLog } from '../../src/base/log.ts';
import type { AcmeClient, CertificateOrder, RenewalInfo } from '../../src/https/acme-client.ts';
import { AcmeError } from '../../src/https/acme-request.ts';
import { createKeyPair, createSelfSigned } from '../../src/https/certificate-writer.ts';
import { readElements, sequence } from '../../src/https/der.ts';
import { createRenewals } from '../../src/https/renewals.ts';
import { createTlsFolder, type TlsFolder } from '../../src/https/tls-folder.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const START = Math.floor(Date.now() / 1000) * 1000;
const DIRECTORY = 'https://ca.example.com/dir';

const root = mkdtempSync(join(tmpdir(), 'gatefold-renewals-'));
after(() => rmSync(root, { recursive: true, force: true }));
let folders = 0;

interface Bench {
  readonly folder: TlsFolder;
  readonly events: Record<string, unknown>[];
  readonly orders: CertificateOrder[];
  /** Passes time, and has done what is due. */
  advance(ms: number): Promise<void>;
  tick(): Promise<void>;
  readonly renewals: ReturnType<typeof createRenewals>;
  /** What the next orders come to; 'issued': a certificate for the key of the request, good for 90 days from then. */
  outcome: Error | 'issued';
  information: RenewalInfo | undefined;
  skew: number;
  locked: boolean;
  /** What another process does before it lets go of the lock. */
  onLock: () => void;
  /** Locks that are held. */
  held: number;
}

function createBench({
  domains = ['a.example.com'],
  dir = join(root, String(++folders)),
  directory = DIRECTORY,
  stored = false,
} = {}): Bench {
  const folder = createTlsFolder(dir);
  if (stored) store(folder, domains[0] ?? '');
  const events: Record<string, unknown>[] = [];
  const orders: CertificateOrder[] = [];
  const log = createLog({ level: 'debug', sink: { write: (line) => void events.push(JSON.parse(line)), flush: () => {} } });
  let passed = 0;
  const client: AcmeClient = {
    async order(order) {
      orders.push(order);
      if (bench.outcome !== 'issued') throw bench.outcome;
      return issue(order, START + passed);
    },
    renewalInfo: async () => bench.information,
    clockSkew: () => bench.skew,
  };
  const renewals = createRenewals({
    domains,
    directory,
    folder,
    client,
    challenges: { types: ['http-01', 'tls-alpn-01'], present: async () => () => {} },
    async tryLock() {
      if (bench.locked) return undefined;
      bench.onLock();
      bench.held++;
      return async () => void bench.held--;
    },
    onStored: () => {},
    log,
    now: () => START + passed,
    clock: () => passed,
    random: () => 0.5,
  });
  const bench: Bench = {
    folder,
    events,
    orders,
    renewals,
    outcome: new AcmeError('the directory refuses', { type: 'malformed' }),
    information: undefined,
    skew: 0,
    locked: false,
    onLock: () => {},
    held: 0,
    async tick() {
      renewals.tick();
      // Everything that it waits for is resolved.
      for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    },
    advance(ms) {
      passed += ms;
      return bench.tick();
    },
  };
  return bench;
}

/** As a directory does: by its own key, for the key of the request (RFC 2986: the third part of what is signed). */
function issue({ domains: [domain = ''], request }: CertificateOrder, now: number): string {
  const [content] = readElements(readElements(request)[0]?.content ?? Buffer.of());
  const requested = readElements(content?.content ?? Buffer.of())[2]?.content ?? Buffer.of();
  const publicKey = createPublicKey({ key: sequence(requested), format: 'der', type: 'spki' });
  return createSelfSigned({ domain, keys: { publicKey, privateKey: createKeyPair().privateKey }, now, days: 90 }).cert;
}

/** Valid from the day before the start for 91 days. */
function store(folder: TlsFolder, domain: string, directory = DIRECTORY): void {
  const { cert, key } = createSelfSigned({ domain, keys: createKeyPair(), now: START, days: 90 });
  folder.writeCertificate(directory, cert, key);
}

describe('an order is made', () => {
  const rows: [what: string, bench: () => Bench, reason: RegExp | undefined][] = [
    ['where there is no certificate', () => createBench(), /^there is none$/],
    ['not where there is a young one', () => createBench({ stored: true }), undefined],
    [
      'where it is damaged',
      () => {
        const bench = createBench({ stored: true });
        writeFileSync(bench.folder.certificatePath, 'torn');
        return bench;
      },
      /^there is none$/,
    ],
    ['for further names', () => createBench({ domains: ['a.example.com', 'b.example.com'], stored: true }), /^DOMAINS has changed$/],
    [
      'at another directory',
      () => createBench({ directory: 'https://other.example.com/dir', stored: true }),
      /^ACME_DIRECTORY has changed$/,
    ],
  ];
  for (const [what, make, reason] of rows) {
    test(what, async () => {
      const bench = make();
      await bench.tick();
      assert.equal(bench.orders.length, reason === undefined ? 0 : 1);
      if (reason !== undefined) assert.match(String(bench.events.find(({ event }) => event === 'certificate-ordered')?.reason), reason);
    });
  }

  test('at two thirds of the lifetime, and not a day before', async () => {
    const bench = createBench({ stored: true });
    await bench.advance(59 * DAY);
    assert.equal(bench.orders.length, 0);
    await bench.advance(DAY);
    assert.equal(bench.orders.length, 1);
  });
});

describe('after a refusal', () => {
  test('pauses grow, the other kind of challenge has its turn, and each line says what to do and when it goes on', async () => {
    const bench = createBench();
    bench.outcome = new AcmeError('a.example.com: connection refused', { type: 'connection' });
    await bench.tick();
    await bench.advance(MINUTE);
    assert.equal(bench.orders.length, 1);
    await bench.advance(2 * MINUTE);
    await bench.advance(MINUTE);
    assert.deepEqual(
      bench.orders.map(({ challengeType }) => challengeType),
      ['http-01', 'tls-alpn-01'],
    );
    const [line] = bench.events.filter(({ event }) => event === 'certificate-order-failed');
    assert.match(String(line?.to_do), /firewall/);
    assert.equal(line?.next_attempt, new Date(START + 2 * MINUTE).toISOString());
    assert.deepEqual([bench.renewals.failures, bench.renewals.lastFailure()], [2, 'a.example.com: connection refused']);
  });

  test('a success ends the row: the pauses of the next one begin anew', async () => {
    const bench = createBench();
    const pauses = [2 * MINUTE, 10 * MINUTE, 40 * MINUTE];
    await bench.tick();
    for (const pause of pauses) await bench.advance(pause);
    assert.deepEqual([bench.orders.length, bench.renewals.failures], [4, 4]);
    bench.outcome = 'issued';
    await bench.advance(2 * HOUR);
    assert.deepEqual([bench.orders.length, bench.renewals.failures, bench.renewals.lastFailure()], [5, 4, undefined]);
    assert.ok(bench.events.some(({ event }) => event === 'certificate-obtained'));
    bench.outcome = new AcmeError('the directory refuses', { type: 'malformed' });
    await bench.advance(61 * DAY);
    const [failed] = bench.events.filter(({ event }) => event === 'certificate-order-failed').slice(-1);
    assert.equal(Date.parse(String(failed?.next_attempt)), START + 2 * HOUR + 52 * MINUTE + 61 * DAY + 2 * MINUTE);
  });

  test('a rate limit is obeyed to the second', async () => {
    const bench = createBench();
    bench.outcome = new AcmeError('too many', { type: 'rateLimited', retryAfter: 5 * HOUR });
    await bench.tick();
    await bench.advance(5 * HOUR - 1);
    assert.equal(bench.orders.length, 1);
    await bench.advance(1);
    assert.equal(bench.orders.length, 2);
    assert.equal(bench.orders[1]?.challengeType, 'http-01');
  });

  test('hurry does not wait', async () => {
    const bench = createBench();
    await bench.tick();
    bench.renewals.hurry();
    await bench.tick();
    assert.equal(bench.orders.length, 2);
  });

  test('a clock that is wrong is told of', async () => {
    const bench = createBench();
    bench.skew = -2 * HOUR;
    await bench.tick();
    const line = bench.events.find(({ event }) => event === 'clock-wrong');
    assert.deepEqual([line?.level, line?.seconds], ['error', -7200]);
    assert.match(String(line?.to_do), /it is fast$/);
  });

  test('what cannot be written is known before anything is asked of the directory', async () => {
    const bench = createBench();
    // Where the draft of a file goes, a folder stands that cannot be replaced.
    mkdirSync(join(bench.folder.path, '.probe/full'), { recursive: true });
    await bench.tick();
    assert.equal(bench.orders.length, 0);
    assert.match(String(bench.events.at(-1)?.error), /^Cannot write /);
    assert.match(String(bench.events.at(-1)?.to_do), /DATA_DIR\/tls/);
  });
});

test('while another process orders nothing is ordered, and it is looked again soon', async () => {
  const bench = createBench();
  bench.locked = true;
  await bench.tick();
  assert.equal(bench.orders.length, 0);
  assert.equal(bench.renewals.failures, 0);
  bench.locked = false;
  await bench.advance(15_000);
  assert.equal(bench.orders.length, 1);
});

test('what another process has ordered in the meantime is not ordered again; the lock is let go of either way', async () => {
  const bench = createBench();
  bench.onLock = () => store(bench.folder, 'a.example.com');
  await bench.tick();
  assert.deepEqual([bench.orders.length, bench.held], [0, 0]);
  rmSync(bench.folder.certificatePath);
  bench.onLock = () => {};
  await bench.tick();
  assert.deepEqual([bench.orders.length, bench.held], [1, 0]);
});

describe('with renewal information', {
  skip: spawnSync('openssl', ['version']).error === undefined ? false : 'openssl is not installed',
}, () => {
  /** It names its issuer's key, as those of a directory do. */
  function storeIssued(folder: TlsFolder): X509Certificate {
    const [cert, key] = ['issued.pem', 'issued.key'].map((name) => join(root, name)) as [string, string];
    const options = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '90', '-subj', '/CN=a.example.com'];
    const names = ['-addext', 'subjectAltName=DNS:a.example.com'];
    execFileSync('openssl', ['req', '-x509', ...options, ...names, '-keyout', key, '-out', cert], { stdio: 'ignore' });
    folder.writeCertificate(DIRECTORY, readFileSync(cert, 'utf8'), readFileSync(key, 'utf8'));
    return new X509Certificate(readFileSync(cert));
  }

  test('the directory is asked by the name that RFC 9773 gives the certificate, and its moment counts', async () => {
    const bench = createBench();
    const certificate = storeIssued(bench.folder);
    bench.information = { start: START + 10 * DAY, end: START + 12 * DAY, retryAfter: 6 * HOUR };
    await bench.advance(10 * DAY);
    assert.equal(bench.orders.length, 0);
    await bench.advance(DAY);
    assert.equal(bench.orders.length, 1);
    const [, serial = ''] = bench.orders[0]?.replaces?.split('.') ?? [];
    assert.equal(BigInt(`0x${Buffer.from(serial, 'base64url').toString('hex')}`), BigInt(`0x${certificate.serialNumber}`));
    assert.match(String(bench.events.find(({ event }) => event === 'certificate-ordered')?.reason), /^the directory advises it$/);
  });

  test('another directory is not told which certificate it replaces', async () => {
    const bench = createBench({ directory: 'https://other.example.com/dir' });
    storeIssued(bench.folder);
    await bench.tick();
    assert.deepEqual(
      bench.orders.map(({ replaces }) => replaces),
      [undefined],
    );
  });

  test('a window in the past, as before a revocation, is now; it is seen when the directory said to ask again', async () => {
    const bench = createBench();
    storeIssued(bench.folder);
    bench.information = { start: START + 50 * DAY, end: START + 60 * DAY, retryAfter: HOUR };
    await bench.tick();
    bench.information = { start: START - DAY, end: START, retryAfter: HOUR };
    await bench.advance(59 * MINUTE);
    assert.equal(bench.orders.length, 0);
    await bench.advance(MINUTE);
    assert.equal(bench.orders.length, 1);
  });

  test('a directory that has none, or is away, leaves it to the lifetime', async () => {
    const bench = createBench();
    storeIssued(bench.folder);
    await bench.advance(59 * DAY);
    assert.equal(bench.orders.length, 0);
    await bench.advance(2 * DAY);
    assert.equal(bench.orders.length, 1);
  });
});
