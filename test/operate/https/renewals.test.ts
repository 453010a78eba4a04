// The times of orders, and what follows a refused one. The directory and the clock are simulated, without a network.
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createCertificateRequest, createKeyPair } from '../../../src/operate/https/acme/certificate-writer.ts';
import { AcmeError } from '../../../src/operate/https/acme/request.ts';
import { type Bench, createBench, issue, ONE, START, store } from '../../support/renewals-bench.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

describe('the check of a certificate', () => {
  const rows: [what: string, bench: () => Bench, reason: RegExp | undefined][] = [
    ['orders one if there is none', () => createBench(), /^there is no certificate yet$/],
    ['orders none if the certificate is young', () => createBench({ stored: ONE }), undefined],
    [
      'orders one if the certificate is damaged',
      () => {
        const bench = createBench({ stored: ONE });
        writeFileSync(bench.folder.certificatePath, 'torn');
        return bench;
      },
      /^there is no certificate yet$/,
    ],
    [
      'orders none if the file of the certificate names no directory',
      () => {
        const bench = createBench({ stored: ONE });
        writeFileSync(
          bench.folder.certificatePath,
          readFileSync(bench.folder.certificatePath, 'utf8').replace(/^Directory: .*\n/, ''),
        );
        return bench;
      },
      undefined,
    ],
    [
      'orders one if DOMAINS has more names',
      () => createBench({ domains: ['a.example.com', 'b.example.com'], stored: ONE }),
      /^DOMAINS has changed$/,
    ],
    [
      'orders one if DOMAINS has fewer names',
      () => createBench({ stored: ['a.example.com', 'b.example.com'] }),
      /^DOMAINS has changed$/,
    ],
    [
      'orders one if ACME_DIRECTORY has changed',
      () => createBench({ directory: 'https://other.example.com/dir', stored: ONE }),
      /^ACME_DIRECTORY has changed$/,
    ],
  ];
  for (const [what, make, reason] of rows) {
    test(what, async () => {
      const bench = make();
      let locks = 0;
      bench.onLock = () => void locks++;
      await bench.tick();
      assert.equal(locks, reason === undefined ? 0 : 1);
      assert.equal(bench.orders.length, reason === undefined ? 0 : 1);
      if (reason !== undefined)
        assert.match(String(bench.events.find(({ event }) => event === 'certificate-ordered')?.reason), reason);
    });
  }

  test('orders one at two thirds of the lifetime, and not a day before', async () => {
    const bench = createBench({ stored: ONE });
    await bench.advance(59 * DAY);
    assert.equal(bench.orders.length, 0);
    await bench.advance(DAY);
    assert.equal(bench.orders.length, 1);
  });
});

describe('after a failed order', () => {
  test('pauses grow, challenge types alternate, and the advice and the next attempt are logged', async () => {
    const bench = createBench();
    bench.outcome = new AcmeError('a.example.com: connection refused', { type: 'connection' });
    await bench.tick();
    await bench.advance(MINUTE);
    assert.equal(bench.orders.length, 1);
    await bench.advance(MINUTE);
    await bench.advance(10 * MINUTE);
    await bench.advance(40 * MINUTE);
    assert.deepEqual(
      bench.orders.map(({ challengeType }) => challengeType),
      ['http-01', 'tls-alpn-01', 'http-01', 'tls-alpn-01'],
    );
    const [line] = bench.events.filter(({ event }) => event === 'certificate-order-failed');
    assert.match(String(line?.to_do), /firewall/);
    assert.equal(line?.next_attempt, new Date(START + 2 * MINUTE).toISOString());
    assert.deepEqual([bench.renewals.failures, bench.renewals.lastFailure()], [4, 'a.example.com: connection refused']);
  });

  test('the next order uses the other challenge, unless the error has nothing to do with the challenge', async () => {
    const failed = [
      'connection',
      'tls',
      'unauthorized',
      'incorrectResponse',
      'noChallenge',
      'noPort',
      'serverInternal',
    ];
    for (const type of [...failed, 'rateLimited', 'dns', undefined]) {
      const bench = createBench();
      bench.outcome = new AcmeError('no', { type });
      await bench.tick();
      await bench.advance(2 * MINUTE);
      const next = failed.includes(String(type)) ? 'tls-alpn-01' : 'http-01';
      assert.deepEqual(
        bench.orders.map(({ challengeType }) => challengeType),
        ['http-01', next],
        String(type),
      );
      const [line] = bench.events.filter(({ event }) => event === 'certificate-order-failed');
      assert.deepEqual([line?.type, line?.challenge, line?.error], [type, 'http-01', 'no']);
    }
  });

  test('a clock that differs by less than five minutes is not logged', async () => {
    for (const [skew, seconds, to_do] of [
      [299_999, undefined, undefined],
      [300_000, 300, 'set the clock of this machine: it is slow'],
      [-300_000, -300, 'set the clock of this machine: it is fast'],
    ] as const) {
      const bench = createBench();
      bench.skew = skew;
      await bench.tick();
      const line = bench.events.find(({ event }) => event === 'clock-wrong');
      assert.deepEqual([line?.seconds, line?.to_do], [seconds, to_do]);
    }
  });

  test('a success resets the pauses', async () => {
    const bench = createBench();
    const pauses = [2 * MINUTE, 10 * MINUTE, 40 * MINUTE];
    await bench.tick();
    for (const pause of pauses) await bench.advance(pause);
    assert.deepEqual([bench.orders.length, bench.renewals.failures], [4, 4]);
    bench.outcome = issue;
    await bench.advance(2 * HOUR);
    assert.deepEqual([bench.orders.length, bench.renewals.failures, bench.renewals.lastFailure()], [5, 4, undefined]);
    assert.ok(bench.events.some(({ event }) => event === 'certificate-obtained'));
    bench.outcome = new AcmeError('the directory refuses', { type: 'malformed' });
    await bench.advance(61 * DAY);
    const [failed] = bench.events.filter(({ event }) => event === 'certificate-order-failed').slice(-1);
    assert.equal(Date.parse(String(failed?.next_attempt)), START + 2 * HOUR + 52 * MINUTE + 61 * DAY + 2 * MINUTE);
  });

  test('the next attempt waits for the Retry-After of a rate limit, and no longer', async () => {
    const bench = createBench();
    bench.outcome = new AcmeError('too many', { type: 'rateLimited', retryAfter: 5 * HOUR });
    await bench.tick();
    await bench.advance(5 * HOUR - 1);
    assert.equal(bench.orders.length, 1);
    await bench.advance(1);
    assert.equal(bench.orders.length, 2);
    assert.equal(bench.orders[1]?.challengeType, 'http-01');
  });

  test('retryNow orders at once', async () => {
    const bench = createBench();
    await bench.tick();
    bench.renewals.retryNow();
    await bench.tick();
    assert.equal(bench.orders.length, 2);
  });

  test('a wrong clock is logged, after a failed order and after a success', async () => {
    const bench = createBench();
    bench.skew = -2 * HOUR;
    for (const outcome of [bench.outcome, issue]) {
      bench.outcome = outcome;
      bench.renewals.retryNow();
      await bench.tick();
      const line = bench.events.find(({ event }) => event === 'clock-wrong');
      assert.deepEqual([line?.level, line?.seconds], ['error', -7200]);
      assert.match(String(line?.to_do), /it is fast$/);
      bench.events.length = 0;
    }
  });

  test('a folder that cannot be written is logged, and no order is made', async () => {
    const bench = createBench();
    // The path of the probe file is a folder with content, so the folder cannot be written.
    mkdirSync(join(bench.folder.path, '.probe/full'), { recursive: true });
    await bench.tick();
    assert.equal(bench.orders.length, 0);
    assert.match(String(bench.events.at(-1)?.error), /^Cannot write /);
    assert.match(String(bench.events.at(-1)?.to_do), /DATA_DIR\/tls/);
    assert.deepEqual(readdirSync(bench.folder.path), ['.probe']);
  });
});

test('a certificate for another key is not stored, and is reported as the last failure', async () => {
  const bench = createBench({ stored: ONE });
  const { text } = bench.folder.readCertificate() as { text: string };
  bench.outcome = (order, now) => issue({ ...order, request: createCertificateRequest(ONE, createKeyPair()) }, now);
  await bench.advance(60 * DAY);
  assert.deepEqual(
    [bench.orders.length, bench.renewals.lastFailure()],
    [1, 'the key does not belong to the certificate'],
  );
  assert.equal(bench.folder.readCertificate()?.text, text);
});

test('a new certificate that is due at once is a failed order, so the next order waits', async () => {
  const rows: [what: string, outcome: typeof issue, error: RegExp][] = [
    ['a clock that is fast', (order, now) => issue(order, now - 80 * DAY), /two thirds of its lifetime are over$/],
    [
      'a directory that adds a name',
      (order, now) => issue({ ...order, domains: [...ONE, 'www.a.example.com'] }, now),
      /DOMAINS has changed$/,
    ],
    ['a directory whose advice is always in the past', issue, /the directory advises it$/],
  ];
  for (const [what, outcome, error] of rows) {
    const bench = createBench();
    bench.outcome = outcome;
    bench.information = outcome === issue ? { start: START - DAY, end: START, retryAfter: DAY } : undefined;
    await bench.tick();
    for (let check = 0; check < 23; check++) await bench.advance(MINUTE / 2);
    assert.equal(bench.orders.length, 2, what);
    assert.match(String(bench.renewals.lastFailure()), error, what);
    const [line] = bench.events.filter(({ event }) => event === 'certificate-order-failed');
    assert.match(String(line?.to_do), /clock/, what);
    assert.ok(bench.folder.readCertificate() !== undefined, what);
  }
});

test('no order is made while another process holds the lock, and the next check follows soon', async () => {
  const bench = createBench();
  bench.locked = true;
  await bench.tick();
  assert.equal(bench.orders.length, 0);
  assert.equal(bench.renewals.failures, 0);
  assert.deepEqual(
    bench.events.map(({ event, domains }) => [event, domains]),
    [['certificate-ordered-elsewhere', ONE]],
  );
  bench.locked = false;
  await bench.advance(15_000);
  assert.equal(bench.orders.length, 1);
});

test('a certificate from another process is not ordered again, and the lock is released in any case', async () => {
  const bench = createBench();
  bench.onLock = () => void store(bench.folder);
  await bench.tick();
  assert.deepEqual([bench.orders.length, bench.held], [0, 0]);
  rmSync(bench.folder.certificatePath);
  bench.onLock = () => {};
  await bench.tick();
  assert.deepEqual([bench.orders.length, bench.held], [1, 0]);
});

describe('with renewal information', () => {
  test('the directory sets the time of the order, which names the old certificate as RFC 9773 does', async () => {
    const bench = createBench();
    const certificate = store(bench.folder);
    bench.information = { start: START + 10 * DAY, end: START + 12 * DAY, retryAfter: 6 * HOUR };
    await bench.advance(10 * DAY);
    assert.equal(bench.orders.length, 0);
    await bench.advance(DAY);
    assert.equal(bench.orders.length, 1);
    const [issuer = '', serial = ''] = (bench.orders[0]?.replaces ?? '')
      .split('.')
      .map((part) => Buffer.from(part, 'base64url'));
    assert.equal(String(issuer), 'issuer');
    assert.equal(BigInt(`0x${serial.toString('hex')}`), BigInt(`0x${certificate.serialNumber}`));
    assert.match(
      String(bench.events.find(({ event }) => event === 'certificate-ordered')?.reason),
      /^the directory advises it$/,
    );
  });

  test('an order at another directory does not name the old certificate', async () => {
    const bench = createBench({ directory: 'https://other.example.com/dir' });
    store(bench.folder);
    await bench.tick();
    assert.deepEqual(
      bench.orders.map(({ replaces }) => replaces),
      [undefined],
    );
  });

  test('a window in the past causes an order as soon as Retry-After has passed', async () => {
    const bench = createBench();
    store(bench.folder);
    bench.information = { start: START + 50 * DAY, end: START + 60 * DAY, retryAfter: HOUR };
    await bench.tick();
    bench.information = { start: START - DAY, end: START, retryAfter: HOUR };
    await bench.advance(59 * MINUTE);
    assert.equal(bench.orders.length, 0);
    await bench.advance(MINUTE);
    assert.equal(bench.orders.length, 1);
  });

  test('the lifetime decides when the directory has no renewal information or cannot be reached', async () => {
    for (const information of [undefined, new AcmeError('it is away')]) {
      const bench = createBench({ stored: ONE });
      bench.information = information;
      await bench.advance(59 * DAY);
      assert.equal(bench.orders.length, 0);
      const failed = bench.events.filter(({ event }) => event === 'renewal-information-failed');
      assert.equal(failed[0]?.error, information?.message);
      await bench.advance(2 * DAY);
      assert.equal(bench.orders.length, 1);
    }
  });

  test('a directory that fails is asked again only after Retry-After, and its last window still counts', async () => {
    const bench = createBench({ stored: ONE });
    bench.information = { start: START + 9 * HOUR, end: START + 9 * HOUR, retryAfter: HOUR };
    await bench.tick();
    bench.information = new AcmeError('it is away', { retryAfter: 3 * HOUR });
    for (let hour = 1; hour < 9; hour++) await bench.advance(HOUR);
    assert.deepEqual([bench.asked, bench.orders.length], [4, 0]);
    await bench.advance(HOUR);
    assert.equal(bench.orders.length, 1);
  });

  test('the window of one certificate does not apply to the next certificate', async () => {
    const bench = createBench({ stored: ONE });
    bench.information = { start: START - DAY, end: START, retryAfter: DAY };
    bench.outcome = (order, now) => {
      bench.information = { start: START + 50 * DAY, end: START + 60 * DAY, retryAfter: DAY };
      return issue(order, now);
    };
    await bench.tick();
    assert.deepEqual([bench.asked, bench.orders.length], [2, 1]);
    await bench.advance(30_000);
    assert.deepEqual([bench.asked, bench.orders.length], [2, 1]);
  });
});
