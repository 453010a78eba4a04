// Machines that share a rate, on a simulated clock: how many requests pass with a store and without one.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Rate } from '../../src/base/rate.ts';
import { createLedger } from '../../src/limits/ledger.ts';
import { createRateLimiter } from '../../src/limits/rate-limiter.ts';
import { createSharedLedger, type SharedRatesOptions } from '../../src/limits/shared-rates.ts';

const RATE: Rate = { count: 100, seconds: 1, burst: 100 };

interface Run {
  /** How many requests each machine gets in a second. */
  readonly offered: readonly number[];
  readonly seconds: number;
  readonly rate?: Rate;
  /** Whether the store answers at this millisecond. */
  readonly isUp?: (time: number) => boolean;
}

/** @returns how many requests passed on each machine, and how many statements the store got */
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
  const passed = offered.map(() => 0);
  const due = offered.map(() => 0);
  for (; time < seconds * 1000; time++) {
    for (const timer of timers.filter(({ at }) => at <= time)) {
      timers.splice(timers.indexOf(timer), 1);
      timer.callback();
    }
    await Promise.resolve();
    for (const [index, limiter] of machines.entries()) {
      due[index] = (due[index] ?? 0) + (offered[index] ?? 0) / 1000;
      for (; (due[index] ?? 0) >= 1; due[index] = (due[index] ?? 0) - 1) {
        try {
          limiter.check('credential', 'caller', rate);
          passed[index] = (passed[index] ?? 0) + 1;
        } catch {
          // Refused.
        }
      }
    }
    if (time % 10 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  return { passed: passed.reduce((sum, count) => sum + count, 0), statements };
}

describe('machines that share a rate', () => {
  const cases: readonly (readonly [name: string, run: Run, least: number, most: number])[] = [
    ['an even load of twice the rate', { offered: [67, 67, 67], seconds: 60 }, 0.98, 1.02],
    ['a load of 80 : 10 : 10', { offered: [160, 20, 20], seconds: 60 }, 0.98, 1.02],
    ['a load on one machine', { offered: [200, 0, 0], seconds: 60 }, 0.98, 1.02],
    ['a small burst', { offered: [20, 20, 20], seconds: 60, rate: { count: 10, seconds: 1, burst: 5 } }, 0.98, 1.02],
    ['a load below the rate', { offered: [30, 30, 30], seconds: 20 }, 0.99, 1.01],
  ];
  for (const [name, run, least, most] of cases) {
    it(`allow together what one machine would allow: ${name}`, async () => {
      const { count, burst } = run.rate ?? RATE;
      const { passed, statements } = await simulate(run);
      const offered = run.offered.reduce((sum, rate) => sum + rate, 0) * run.seconds;
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
});
