// The times of orders, and what follows a refused one. The directory and the clock are simulated, without a network.
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createCertificateRequest, createKeyPair } from '../../src/https/acme/certificate-writer.ts';
import { AcmeError } from '../../src/https/acme/request.ts';
import { type Bench, createBench, issue, ONE, START, store } from '../support/renewals-bench.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

describe('an order is made', () => {
  const rows: [what: string, bench: () => Bench, reason: RegExp | undefined][] = [
    ['where there is no certificate', () => createBench(), /^there is no certificate yet$/],
    ['not where there is a young one', () => createBench({ stored: ONE }), undefined],
    [
      'where it is damaged',
      () => {
        const bench = createBench({ stored: ONE });
        writeFileSync(bench.folder.certificatePath, 'torn');
        return bench;
      },
      /^there is no certificate yet$/,
    ],
    [
      'not where somebody has put one there who names no directory',
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
      'for further names',
      () => createBench({ domains: ['a.example.com', 'b.example.com'], stored: ONE }),
      /^DOMAINS has changed$/,
    ],
    ['for fewer names', () => createBench({ stored: ['a.example.com', 'b.example.com'] }), /^DOMAINS has changed$/],
    [
      'at another directory',
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

  test('at two thirds of the lifetime, and not a day before', async () => {
    const bench = createBench({ stored: ONE });
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

  test('a success ends the row: the pauses of the next one begin anew', async () => {
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
    bench.renewals.retryNow();
    await bench.tick();
    assert.equal(bench.orders.length, 2);
  });

  test('a clock that is wrong is told of, and after a success too', async () => {
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

  test('what cannot be written is known before anything is asked of the directory', async () => {
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

test('a certificate for another key is not stored, and is a failure like any other', async () => {
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
  bench.onLock = () => void store(bench.folder);
  await bench.tick();
  assert.deepEqual([bench.orders.length, bench.held], [0, 0]);
  rmSync(bench.folder.certificatePath);
  bench.onLock = () => {};
  await bench.tick();
  assert.deepEqual([bench.orders.length, bench.held], [1, 0]);
});

describe('with renewal information', () => {
  test('the directory is asked by the name that RFC 9773 gives the certificate, and its moment counts', async () => {
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

  test('another directory is not told which certificate it replaces', async () => {
    const bench = createBench({ directory: 'https://other.example.com/dir' });
    store(bench.folder);
    await bench.tick();
    assert.deepEqual(
      bench.orders.map(({ replaces }) => replaces),
      [undefined],
    );
  });

  test('a window in the past, as before a revocation, is now; it is seen when the directory said to ask again', async () => {
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

  test('a directory that has none, or is away, leaves it to the lifetime', async () => {
    for (const information of [undefined, new AcmeError('it is away')]) {
      const bench = createBench({ stored: ONE });
      bench.information = information;
      await bench.advance(59 * DAY);
      assert.equal(bench.orders.length, 0);
      await bench.advance(2 * DAY);
      assert.equal(bench.orders.length, 1);
    }
  });

  test('a directory that does not answer is asked no more often than one that does, and its last answer counts', async () => {
    const bench = createBench({ stored: ONE });
    bench.information = { start: START + 9 * HOUR, end: START + 9 * HOUR, retryAfter: HOUR };
    await bench.tick();
    bench.information = new AcmeError('it is away', { retryAfter: 3 * HOUR });
    for (let hour = 1; hour < 9; hour++) await bench.advance(HOUR);
    assert.deepEqual([bench.asked, bench.orders.length], [4, 0]);
    await bench.advance(HOUR);
    assert.equal(bench.orders.length, 1);
  });

  test('what was advised for one certificate is not for the next', async () => {
    const bench = createBench({ stored: ONE });
    bench.information = { start: START - DAY, end: START, retryAfter: DAY };
    bench.outcome = issue;
    await bench.tick();
    assert.deepEqual([bench.asked, bench.orders.length], [1, 1]);
    bench.information = { start: START + 50 * DAY, end: START + 60 * DAY, retryAfter: DAY };
    await bench.advance(30_000);
    assert.deepEqual([bench.asked, bench.orders.length], [2, 1]);
  });
});
