// Machines that share a rate, on a simulated clock: how many requests pass with a store and without one.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Rate } from '../../../src/base/rate.ts';
import { MAX_CALLERS, MAX_VALUES } from '../../../src/callers/rates/bucket.ts';
import { createRateLimiter } from '../../../src/callers/rates/rate-limiter.ts';
import { createSharedLedger, type SharedRatesOptions } from '../../../src/callers/rates/shared-rates.ts';
import { createLedger } from '../../../src/callers/rates/supervisor-rates.ts';

const RATE: Rate = { count: 100, seconds: 1, burst: 100 };

const sumOf = (counts: readonly number[]): number => counts.reduce((sum, count) => sum + count, 0);

interface Run {
  /** How many requests each machine gets in a second. */
  readonly offered: readonly number[];
  readonly seconds: number;
  readonly rate?: Rate;
  /** Whether the store answers at this millisecond. */
  readonly isUp?: (time: number) => boolean;
}

/** @returns how many requests passed in all and in each second, and how many statements the store got */
async function simulate({ offered, seconds, rate = RATE, isUp = () => true }: Run) {
  let time = 0;
  let statements = 0;
  const timers: { at: number; callback: () => void }[] = [];
  const later = (callback: () => void, delay: number) => void timers.push({ at: time + delay, callback });
  const now = () => time;
  const store = createLedger({ now });
  const spend: SharedRatesOptions['spend'] = async (spendings) => {
    if (!isUp(time)) return undefined;
    statements++;
    return store.spend(spendings).map(([, tokens]) => tokens);
  };
  const machines = offered.map(() => {
    const ledger = createSharedLedger({ spend, machineCount: () => offered.length, now, later });
    const limiter = createRateLimiter({
      now,
      later,
      report: (spendings) => later(() => limiter.applyBalances(ledger.spend(spendings)), 1),
    });
    return limiter;
  });
  const passedInSecond = Array.from({ length: seconds }, () => 0);
  const due = offered.map(() => 0);
  for (; time < seconds * 1000; time++) {
    for (const timer of timers.filter(({ at }) => at <= time)) {
      timers.splice(timers.indexOf(timer), 1);
      timer.callback();
    }
    await Promise.resolve();
    const second = Math.floor(time / 1000);
    for (const [index, limiter] of machines.entries()) {
      due[index] = (due[index] ?? 0) + (offered[index] ?? 0) / 1000;
      for (; (due[index] ?? 0) >= 1; due[index] = (due[index] ?? 0) - 1) {
        try {
          limiter.check('credential', 'caller', rate);
          passedInSecond[second] = (passedInSecond[second] ?? 0) + 1;
        } catch {
          // Refused.
        }
      }
    }
    if (time % 10 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  return { passed: sumOf(passedInSecond), passedInSecond, statements };
}

describe('machines that share a rate', () => {
  const cases: readonly (readonly [name: string, run: Run, least: number, most: number])[] = [
    ['an even load of twice the rate', { offered: [67, 67, 67], seconds: 30 }, 0.98, 1.02],
    ['a load of 80 : 10 : 10', { offered: [160, 20, 20], seconds: 30 }, 0.98, 1.02],
    ['a load on one machine', { offered: [200, 0, 0], seconds: 30 }, 0.98, 1.02],
    ['a small burst', { offered: [20, 20, 20], seconds: 30, rate: { count: 10, seconds: 1, burst: 5 } }, 0.98, 1.02],
    ['a load below the rate', { offered: [30, 30, 30], seconds: 20 }, 0.99, 1.01],
  ];
  for (const [name, run, least, most] of cases) {
    it(`allow together what one machine would allow: ${name}`, async () => {
      const { count, burst } = run.rate ?? RATE;
      const { passed, statements } = await simulate(run);
      const offered = sumOf(run.offered) * run.seconds;
      const right = Math.min(offered, count * run.seconds + burst);
      assert.ok(passed >= least * right && passed <= most * right, `${passed} of ${right}`);
      assert.ok(statements <= 40 * run.offered.length * run.seconds, `${statements} statements`);
    });
  }

  it('allow at most the rate and three bursts when the store is unreachable for a time', async () => {
    const isUp = (time: number) => time < 10_000 || time > 50_000;
    const { passed } = await simulate({ offered: [67, 67, 67], seconds: 60, isUp });
    const right = 60 * 100;
    assert.ok(passed > 0.6 * right && passed <= right + 2 * 100 + 100, `${passed} of ${right}`);
  });

  it('allow less than two bursts where a flood spends the burst in a twentieth of a second', async () => {
    const rate = { count: 200, seconds: 3600, burst: 200 };
    const { passed } = await simulate({ offered: [5000, 5000, 5000], seconds: 1, rate });
    assert.ok(passed >= 200 && passed < 400, `${passed} of 200`);
  });

  it('enforce a third of the rate each while the store is unreachable, and share the rate again afterwards', async () => {
    const isUp = (time: number) => time < 20_000 || time >= 60_000;
    const { passedInSecond } = await simulate({ offered: [160, 20, 20], seconds: 100, isUp });
    // The first ten seconds after each change are left out, because tokens of before are spent in them.
    const perSecond = (from: number, to: number) => sumOf(passedInSecond.slice(from, to)) / (to - from);
    const [before, during, after] = [perSecond(10, 20), perSecond(30, 60), perSecond(70, 100)];
    const isNear = (rate: number, expected: number) => Math.abs(rate - expected) <= 0.02 * expected;
    assert.ok(isNear(before, 100), `${before} a second before`);
    // The first machine is limited to its third, and the two others get less than theirs.
    assert.ok(isNear(during, 100 / 3 + 20 + 20), `${during} a second while the store is unreachable`);
    assert.ok(isNear(after, 100), `${after} a second afterwards`);
  });

  it('divide a burst by the machines only from a report without a reply to the next reply', async () => {
    const timers: (() => void)[] = [];
    const replies: (readonly number[] | undefined)[] = [[80], undefined, [50], undefined, [20]];
    const ledger = createSharedLedger({
      spend: async () => replies.shift(),
      machineCount: () => 4,
      now: () => 0,
      later: (callback) => void timers.push(callback),
    });
    /** Spends ten tokens, and waits until the store has replied or not. @returns the tokens left before the reply */
    const spendTen = async () => {
      const [[, tokens] = []] = ledger.spend([['caller', 10, RATE.count, RATE.seconds, RATE.burst]]);
      for (const callback of timers.splice(0)) callback();
      await new Promise((resolve) => setImmediate(resolve));
      return tokens;
    };
    const balances: unknown[] = [];
    for (let i = 0; i < 6; i++) balances.push(await spendTen());
    // A quarter of the burst is 25 tokens. The third and the fifth number come after a report without a reply.
    assert.deepEqual(balances, [90, 70, 15, 40, 15, 10]);
    assert.deepEqual(replies, []);
  });

  it('report what a caller has spent while the report before was under way', async () => {
    const timers: (() => void)[] = [];
    const reported: unknown[] = [];
    const ledger = createSharedLedger({
      spend: async (spendings) => {
        if (reported.length === 0) ledger.spend([['second', 1, RATE.count, RATE.seconds, RATE.burst]]);
        reported.push(spendings.map(([caller]) => caller));
        return spendings.map(() => 50);
      },
      machineCount: () => 2,
      now: () => 0,
      later: (callback) => void timers.push(callback),
    });
    ledger.spend([['first', 1, RATE.count, RATE.seconds, RATE.burst]]);
    for (let report = 0; report < 2; report++) {
      for (const callback of timers.splice(0)) callback();
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.deepEqual(reported, [['first'], ['second']]);
  });

  it('report at once, then after 100 ms or, with a quarter of a burst, 10 ms, and 1000 callers at a time', async () => {
    let time = 0;
    const timers: (() => void)[] = [];
    const delays: number[] = [];
    const sizes: number[] = [];
    let reply = Promise.resolve();
    const ledger = createSharedLedger({
      spend: async (spendings) => {
        sizes.push(spendings.length);
        await reply;
        return spendings.map(() => 50);
      },
      machineCount: () => 2,
      now: () => time,
      later: (callback, delay) => {
        timers.push(callback);
        delays.push(delay);
      },
    });
    const run = async (milliseconds: number) => {
      time += milliseconds;
      for (const callback of timers.splice(0)) callback();
      await new Promise((resolve) => setImmediate(resolve));
    };
    const spend = (caller: string, spent: number) =>
      ledger.spend([[caller, spent, RATE.count, RATE.seconds, RATE.burst]]);
    spend('a', 1);
    await run(0);
    spend('a', 24);
    spend('a', 1);
    await run(10);
    for (let i = 0; i < 1500; i++) spend(`${i}`, 1);
    await run(100);
    await run(100);
    assert.deepEqual(delays, [0, 100, 10, 100, 100]);
    assert.deepEqual(sizes, [1, 1, 1000, 500]);
    let answer = () => {};
    reply = new Promise((resolve) => {
      answer = resolve;
    });
    spend('a', 1);
    await run(100);
    spend('b', 1);
    await run(100);
    assert.equal(sizes.length, 5, 'no report is sent while another one is under way');
    answer();
    await run(0);
    await run(100);
    assert.equal(sizes.length, 6);
  });
});

it('callers that a slow store has not counted yet are bounded, and the oldest are reported first', async () => {
  const reports: string[] = [];
  const timers: (() => void)[] = [];
  const ledger = createSharedLedger({
    now: () => 0,
    later: (callback) => void timers.push(callback),
    machineCount: () => 2,
    spend: async (spendings) => {
      reports.push(...spendings.map(([caller]) => caller));
      return spendings.map(() => 1);
    },
  });
  const spend = (kind: string, count: number) => {
    for (let caller = 0; caller < count; caller++) ledger.spend([[`${kind} ${caller}`, 1, 100, 1, 100]]);
  };
  // A client can choose the value of `by`.
  spend('by', MAX_VALUES + 5000);
  spend('address', MAX_CALLERS);
  for (let timer = timers.shift(); timer !== undefined; timer = timers.shift()) {
    timer();
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal(reports.length, MAX_CALLERS);
  assert.deepEqual([reports[0], reports[MAX_VALUES]], ['by 0', 'address 0']);
});
