// The parts of rate limiting: the form of a rate, the bounded map, and several workers with one supervisor on a
// simulated clock.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createBoundedMap } from '../../../src/base/bounded-map.ts';
import { parseRate, type Rate } from '../../../src/base/rate.ts';
import { callerKey, createCallerMap, fullBucket, refill } from '../../../src/callers/rates/bucket.ts';
import {
  callLater,
  createRateLimiter,
  type RateLimiter,
  type Spending,
} from '../../../src/callers/rates/rate-limiter.ts';
import { createLedger } from '../../../src/callers/rates/supervisor-rates.ts';

describe('parseRate', () => {
  const rows: [text: string, rate: Rate | undefined][] = [
    ['100/s', { count: 100, seconds: 1, burst: 100 }],
    ['5000/h', { count: 5000, seconds: 3600, burst: 5000 }],
    ['60/m burst 10', { count: 60, seconds: 60, burst: 10 }],
    ['1/d burst 3', { count: 1, seconds: 86_400, burst: 3 }],
    ['0/s', undefined],
    ['1/s burst 0', undefined],
    ['100', undefined],
    ['100/w', undefined],
    ['1.5/s', undefined],
    ['-1/s', undefined],
    ['1/s burst', undefined],
    [' 1/s', undefined],
    ['', undefined],
  ];
  for (const [text, rate] of rows)
    test(`${rate === undefined ? 'refuses' : 'parses'} ${JSON.stringify(text)}`, () =>
      assert.deepEqual(parseRate(text), rate));
});

describe('createBoundedMap', () => {
  test('keeps the entry that was read last, and has at most 100 entries', () => {
    const map = createBoundedMap<number>(100);
    map.set('kept', 1);
    for (let i = 0; i < 10_000; i++) {
      map.set(`flood ${i}`, i);
      assert.ok(map.size() <= 100, String(map.size()));
      assert.equal(map.get('kept'), 1);
      assert.ok(map.size() <= 100, String(map.size()));
      assert.equal([...map.entries()].length, map.size());
    }
    assert.equal(map.get('flood 1'), undefined);
    assert.equal(map.get('flood 9999'), 9999);
  });

  for (const [maxEntries, largest] of [
    [2, 2],
    [7, 6],
    [100, 100],
  ] as const) {
    test(`grows to ${largest} entries with a maximum of ${maxEntries}, and always keeps the newest half`, () => {
      const map = createBoundedMap<number>(maxEntries);
      const sizes: number[] = [];
      for (let i = 0; i < 5 * maxEntries; i++) {
        map.set(`key ${i}`, i);
        sizes.push(map.size());
        const kept = new Map(map.entries());
        for (let newer = Math.max(0, i + 1 - largest / 2); newer <= i; newer++)
          assert.equal(kept.get(`key ${newer}`), newer);
      }
      assert.equal(Math.max(...sizes), largest);
      assert.equal(Math.min(...sizes.slice(largest)), largest / 2 + 1);
    });
  }
});

test('a bounded map counts a key once, also when an old key is read or set again', () => {
  const map = createBoundedMap<number>(100);
  for (let i = 0; i < 60; i++) map.set(`key ${i}`, i);
  for (let i = 0; i < 5; i++) map.set(`key ${i}`, -i);
  for (let i = 5; i < 10; i++) assert.equal(map.get(`key ${i}`), i);
  assert.equal(map.size(), 60);
  assert.equal(map.get('key 4'), -4);
  assert.equal(new Map(map.entries()).size, Array.from(map.entries()).length);
});

test('a bucket refills up to its burst, and keeps its tokens when the clock goes back', () => {
  const rate = parseRate('60/m burst 3') as Rate;
  const bucket = fullBucket(rate, 1000);
  refill(bucket, rate, 3_600_000);
  assert.equal(bucket.tokens, 3);
  bucket.tokens = 1;
  refill(bucket, rate, 3_599_000);
  assert.equal(bucket.tokens, 1);
  refill(bucket, rate, 3_600_500);
  assert.equal(bucket.tokens, 2.5);
});

/** Workers, a supervisor, and a clock that only this test moves. */
function simulate(workers: number, latency: number) {
  let time = 0;
  const due: { at: number; work: () => void }[] = [];
  const later = (work: () => void, milliseconds: number) => void due.push({ at: time + milliseconds, work });
  const ledger = createLedger({ now: () => time });
  const limiters: RateLimiter[] = Array.from({ length: workers }, () => {
    const limiter: RateLimiter = createRateLimiter({
      workers,
      now: () => time,
      later,
      report: (spendings) =>
        later(() => {
          const balances = ledger.spend(spendings);
          later(() => limiter.applyBalances(balances), latency);
        }, latency),
    });
    return limiter;
  });
  return {
    limiters,
    ledger,
    advance(milliseconds: number) {
      time += milliseconds;
      for (let next = due.findIndex(({ at }) => at <= time); next >= 0; next = due.findIndex(({ at }) => at <= time))
        due.splice(next, 1)[0]?.work();
    },
  };
}

test('callers with long and similar names have a bucket each', () => {
  const limiter = createRateLimiter();
  const rate = parseRate('1/h') as Rate;
  const long = 'x'.repeat(5000);
  for (const who of [long, `${long}y`, `y${long}`, 'x'.repeat(199), 'x'.repeat(200)])
    assert.deepEqual([isAllowed(limiter, rate, who), isAllowed(limiter, rate, who)], [true, false]);
  for (const kind of ['address', 'credential'] as const) assert.equal(callerKey(kind, long).length, 200);
  assert.notEqual(callerKey('address', long), callerKey('credential', long));
});

test('the key of a caller is its name, or has a digest instead of what PostgreSQL cannot store or what is too long', () => {
  const digest = /^[\w-]{43}$/;
  for (const [name, start] of [
    ['x'.repeat(192), 'x'.repeat(192)],
    ['x'.repeat(193), 'x'.repeat(149)],
    ['\u{1f600}', '\u{1f600}'],
    ['a\0b', 'ab'],
    ['a\ud800b', 'ab'],
    [`${'x'.repeat(148)}${'\u{1f600}'.repeat(30)}`, 'x'.repeat(148)],
  ] as const) {
    const key = callerKey('address', name);
    assert.ok(key.startsWith(`address ${start}`), key);
    const end = key.slice(`address ${start}`.length);
    if (name === start) assert.equal(end, '');
    else assert.match(end, digest);
  }
});

test('values that clients choose are kept apart from callers, and are fewer', () => {
  const map = createCallerMap<number>();
  map.set('address a', 1);
  let most = 0;
  for (let i = 0; i < 20_000; i++) {
    map.set(`by ${i}`, i);
    most = Math.max(most, map.size());
  }
  assert.equal(most, 10_001);
  assert.deepEqual([map.get('address a'), map.get('by 19999'), map.get('by 0')], [1, 19_999, undefined]);
  assert.equal([...map.entries()].length, map.size());
});

function isAllowed(limiter: RateLimiter | undefined, rate: Rate, who = 'caller'): boolean {
  try {
    limiter?.check('address', who, rate);
    return true;
  } catch (error) {
    assert.equal((error as { code?: string }).code, 'RATE_LIMITED');
    return false;
  }
}

describe('a worker', () => {
  /**
   * Creates a limiter with an account: the last balance of the supervisor was `tokens`, and `unreported` were spent
   * since.
   */
  function workerWith(tokens: number, unreported: number, workers: number, burst = 100) {
    const rate = parseRate(`1/d burst ${burst}`) as Rate;
    const waits: number[] = [];
    const reports: (readonly Spending[])[] = [];
    const due: (() => void)[] = [];
    const limiter = createRateLimiter({
      workers,
      now: () => 0,
      later: (work, milliseconds) => {
        waits.push(milliseconds);
        due.push(work);
      },
      report: (spendings) => void reports.push(spendings),
    });
    for (let i = 0; i < unreported; i++) assert.ok(isAllowed(limiter, rate));
    limiter.applyBalances([['address caller', tokens, rate.count, rate.seconds, rate.burst]]);
    return { limiter, rate, reports, waits, tell: () => due.splice(0).forEach((work) => void work()) };
  }
  const allowedBy = ({ limiter, rate }: ReturnType<typeof workerWith>) => {
    let allowed = 0;
    while (allowed < 200 && isAllowed(limiter, rate)) allowed++;
    return allowed;
  };

  for (const [name, tokens, unreported, workers, allowed] of [
    ['spends the whole balance when it is the only worker', 10, 0, 1, 10],
    ['subtracts its unreported tokens from the balance', 10, 3, 1, 7],
    ['spends only its share of the last eighth of a burst', 12, 0, 4, 2],
    ['subtracts its unreported tokens from its share', 10, 2, 4, 0],
    ['spends only its share of an exact eighth of a burst', 12.5, 0, 4, 2],
    ['spends only its share of a large balance', 90, 0, 4, 15],
    ['spends only its share of the smallest large balance', 48, 0, 4, 8],
    ['spends the whole balance when its share is small and the balance is not', 20, 0, 4, 20],
    ['spends nothing of a negative balance', -5, 0, 1, 0],
  ] as const) {
    test(name, () => assert.equal(allowedBy(workerWith(tokens, unreported, workers)), allowed));
  }

  test('reports at once, then in intervals, each token once with the current rate', () => {
    const worker = workerWith(100, 0, 1);
    const other = parseRate('7/m burst 50') as Rate;
    isAllowed(worker.limiter, worker.rate);
    isAllowed(worker.limiter, other);
    worker.tell();
    isAllowed(worker.limiter, other);
    worker.tell();
    assert.equal(worker.reports.length, 2, 'a worker sends one report at a time');
    worker.limiter.applyBalances([]);
    worker.tell();
    assert.deepEqual(worker.waits, [0, 4, 4]);
    assert.deepEqual(worker.reports, [[], [['address caller', 2, 7, 60, 50]], [['address caller', 1, 7, 60, 50]]]);
  });

  test('reports a token that it gave back, and may spend it again', () => {
    const worker = workerWith(1, 0, 1);
    const token = worker.limiter.check('address', 'caller', worker.rate);
    worker.tell();
    worker.limiter.applyBalances([['address caller', 0, worker.rate.count, worker.rate.seconds, worker.rate.burst]]);
    assert.equal(isAllowed(worker.limiter, worker.rate), false);
    worker.limiter.giveBack(token);
    assert.deepEqual(worker.waits, [0, 4]);
    worker.tell();
    assert.deepEqual(worker.reports.slice(1), [
      [['address caller', 1, 1, 86_400, 100]],
      [['address caller', -1, 1, 86_400, 100]],
    ]);
    assert.ok(isAllowed(worker.limiter, worker.rate));
  });

  for (const [burst, balance, spent] of [
    [100, 40, 5],
    [16, 16, 2],
  ] as const)
    test(`reports sooner when a quarter of its part of ${balance} tokens is spent, with a burst of ${burst}`, () => {
      const worker = workerWith(burst, 0, 2, burst);
      isAllowed(worker.limiter, worker.rate);
      worker.tell();
      worker.limiter.applyBalances([['address caller', balance, worker.rate.count, worker.rate.seconds, burst]]);
      for (let i = 1; i < spent; i++) isAllowed(worker.limiter, worker.rate);
      assert.deepEqual(worker.waits, [0, 4]);
      isAllowed(worker.limiter, worker.rate);
      assert.deepEqual(worker.waits, [0, 4, 0]);
    });
});

test('a report that waits does not keep the process alive, and is sent', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
  const before = timers();
  callLater(() => {}, 60_000);
  assert.equal(timers(), before);
  const alive = setTimeout(() => {}, 60_000);
  for (const milliseconds of [0, 1]) await new Promise<void>((resolve) => callLater(resolve, milliseconds));
  clearTimeout(alive);
});

test('the ledger limits a debt to 100 bursts, and sends only low balances to a new worker', () => {
  const ledger = createLedger({ now: () => 0 });
  assert.deepEqual(ledger.spend([['a', 9999, 1, 3600, 10]]), [['a', -1000, 1, 3600, 10]]);
  ledger.spend([
    ['half', 5, 1, 3600, 10],
    ['more', 6, 1, 3600, 10],
  ]);
  assert.deepEqual(
    ledger.spend([]).map(([caller]) => caller),
    ['a', 'more'],
  );
  // A changed rate applies at once.
  assert.deepEqual(ledger.spend([['more', 0, 1, 3600, 3]]), [['more', 3, 1, 3600, 3]]);
  assert.deepEqual(
    ledger.spend([]).map(([caller]) => caller),
    ['a'],
  );
  ledger.spend(Array.from({ length: 2000 }, (_, i): Spending => [`caller ${i}`, 10, 1, 3600, 10]));
  assert.equal(ledger.spend([]).length, 1000);
});

test('the ledger leaves each caller a token, also where a machine has less than one of the burst', () => {
  const ledger = createLedger({ now: () => 0, machineCount: () => 3 });
  assert.deepEqual(ledger.spend([['a', 0, 1, 3600, 2]]), [['a', 1, 1, 3600, 2]]);
});

describe('several workers', () => {
  const rows: [name: string, text: string, workers: number, perMillisecond: number, seconds: number][] = [
    ['a flood over two workers', '100/s', 2, 4, 10],
    ['a flood over eight workers', '100/s', 8, 8, 10],
    ['a high rate', '2000/s', 4, 10, 5],
    ['a small burst', '100/s burst 5', 4, 4, 10],
    ['a low rate with a burst', '60/m burst 200', 4, 2, 100],
    ['a burst that is spent at once', '200/h', 2, 2, 1],
  ];
  for (const [name, text, workers, perMillisecond, seconds] of rows) {
    test(`allow ${text} within 5 percent: ${name}`, () => {
      const rate = parseRate(text) as Rate;
      const { limiters, advance } = simulate(workers, 2);
      let allowed = 0;
      let turn = 0;
      for (let ms = 0; ms < seconds * 1000; ms++) {
        for (let i = 0; i < perMillisecond; i++) if (isAllowed(limiters[turn++ % workers], rate)) allowed++;
        advance(1);
      }
      const exact = rate.burst + (rate.count * seconds) / rate.seconds;
      assert.ok(Math.abs(allowed - exact) <= exact * 0.05, `${allowed} instead of ${exact}`);
    });
  }

  test('subtract all of a volley that reaches every worker at once', () => {
    const rate = parseRate('5/m') as Rate;
    const workers = 16;
    const minutes = 400;
    const { limiters, advance } = simulate(workers, 2);
    let allowed = 0;
    for (let minute = 0; minute < minutes; minute++) {
      for (let i = 0; i < workers * rate.burst; i++) if (isAllowed(limiters[i % workers], rate)) allowed++;
      for (const milliseconds of [10, 10, 59_980]) advance(milliseconds);
    }
    const exact = rate.burst + rate.count * minutes;
    assert.ok(Math.abs(allowed - exact) <= exact * 0.05, `${allowed} instead of ${exact}`);
  });

  test('leave the whole rate to the only worker that gets requests', () => {
    const rate = parseRate('200/h') as Rate;
    const { limiters, advance } = simulate(2, 1);
    let allowed = 0;
    for (let ms = 0; ms < 500; ms++) {
      for (let i = 0; i < 4; i++)
        if (isAllowed(limiters[0], rate)) allowed++;
        else if (allowed < 160) assert.fail(`refused with ${200 - allowed} left`);
      advance(1);
    }
    assert.ok(allowed <= 210, `${allowed} instead of 200`);
  });

  test('refuse no request of a caller below the rate', () => {
    const rate = parseRate('100/s burst 10') as Rate;
    const { limiters, advance } = simulate(4, 2);
    for (let i = 0; i < 2000; i++) {
      assert.ok(isAllowed(limiters[(i * 7) % 4], rate), `request ${i}`);
      advance(11);
    }
  });

  test('share the remaining balance with a worker of the next generation', () => {
    const rate = parseRate('10/h') as Rate;
    const { limiters, ledger, advance } = simulate(2, 2);
    for (let i = 0; i < 10; i++) assert.ok(isAllowed(limiters[0], rate));
    assert.equal(isAllowed(limiters[0], rate), false);
    for (let ms = 0; ms < 10; ms++) advance(1);
    // This worker did not request the balances when it began.
    assert.ok(isAllowed(limiters[1], rate));
    for (let ms = 0; ms < 10; ms++) advance(1);
    assert.equal(isAllowed(limiters[1], rate), false);
    assert.deepEqual(
      ledger.spend([]).map(([caller]) => caller),
      ['address caller'],
    );
    const informed = createRateLimiter({ now: () => 0, later: () => {}, report: () => {} });
    informed.applyBalances(ledger.spend([]));
    assert.equal(isAllowed(informed, rate), false);
  });
});

describe('a limiter without a supervisor', () => {
  test('refuses with the headers that say when to retry', () => {
    let time = 0;
    const limiter = createRateLimiter({ now: () => time });
    const rate = parseRate('2/m burst 1') as Rate;
    assert.ok(isAllowed(limiter, rate));
    time += 10_000;
    assert.throws(() => limiter.check('address', 'caller', rate), {
      code: 'RATE_LIMITED',
      status: 429,
      headers: { 'Retry-After': '20', RateLimit: '"address";r=0;t=20', 'RateLimit-Policy': '"address";q=2;w=60' },
    });
    time += 20_000;
    assert.ok(isAllowed(limiter, rate));
    assert.deepEqual(limiter.status(), { refused: { credential: 0, address: 1, operation: 0 }, callers: 1 });
  });

  test('asks for a wait of at least a second', () => {
    const limiter = createRateLimiter({ now: () => 0 });
    const rate = parseRate('1000/s burst 1') as Rate;
    assert.ok(isAllowed(limiter, rate));
    assert.throws(() => limiter.check('address', 'caller', rate), {
      headers: { 'Retry-After': '1', RateLimit: '"address";r=0;t=1', 'RateLimit-Policy': '"address";q=1000;w=1' },
    });
  });

  test('counts callers and kinds separately, and applies a changed rate at once', () => {
    const limiter = createRateLimiter({ now: () => 0 });
    const one = parseRate('1/h') as Rate;
    assert.deepEqual(
      [isAllowed(limiter, one, 'a'), isAllowed(limiter, one, 'a'), isAllowed(limiter, one, 'b')],
      [true, false, true],
    );
    limiter.check('credential', 'a', one);
    limiter.check('operation', 'a', one);
    assert.equal(
      isAllowed(limiter, parseRate('1000/h') as Rate, 'b'),
      false,
      'a raised rate adds tokens only with time',
    );
  });

  test('keeps at most 100,000 callers', () => {
    const limiter = createRateLimiter({ now: () => 0 });
    const rate = parseRate('10/s') as Rate;
    for (let i = 0; i < 150_000; i++) limiter.check('address', `${i}${'x'.repeat(i % 50 === 0 ? 1000 : 0)}`, rate);
    assert.equal(limiter.status().callers, 100_000);
  });
});
