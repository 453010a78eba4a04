// Tests the times of `every` and `at`, also where clocks change.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { latestDue, nextDue, type Plan, planText } from '../../../src/live/tasks/plan.ts';

const at = (text: string): number => Date.parse(text);
const iso = (time: number): string => new Date(time).toISOString();

/** Returns so many times after an instant. */
function times(plan: Plan, after: string, count: number): string[] {
  const list: number[] = [];
  for (let i = 0; i < count; i++) list.push(nextDue(plan, list.at(-1) ?? at(after)));
  return list.map(iso);
}

const berlin = (hour: number, minute = 0): Plan => ({ at: hour * 60 + minute, timeZone: 'Europe/Berlin' });

describe('nextDue', () => {
  it('counts `every` from 1970, so that all machines have the same times', () => {
    assert.deepEqual(times({ every: 300_000 }, '2026-11-24T10:01:07Z', 2), [
      '2026-11-24T10:05:00.000Z',
      '2026-11-24T10:10:00.000Z',
    ]);
    assert.equal(nextDue({ every: 1000 }, 5000), 6000);
  });

  it('has `at` once a day, by the clocks of the zone', () => {
    assert.deepEqual(times(berlin(3), '2026-10-23T12:00:00Z', 4), [
      '2026-10-24T01:00:00.000Z',
      '2026-10-25T02:00:00.000Z',
      '2026-10-26T02:00:00.000Z',
      '2026-10-27T02:00:00.000Z',
    ]);
  });

  it('has a time that the clocks skip as long after midnight as on other days', () => {
    // On 29 March 2026, the clocks of Berlin go from 02:00 to 03:00.
    assert.deepEqual(times(berlin(2, 30), '2026-03-28T00:00:00Z', 3), [
      '2026-03-28T01:30:00.000Z',
      '2026-03-29T01:30:00.000Z',
      '2026-03-30T00:30:00.000Z',
    ]);
  });

  it('has a time that comes twice only once: at its first', () => {
    // On 25 October 2026, the clocks of Berlin go from 03:00 back to 02:00.
    assert.deepEqual(times(berlin(2, 30), '2026-10-24T12:00:00Z', 2), [
      '2026-10-25T00:30:00.000Z',
      '2026-10-26T01:30:00.000Z',
    ]);
  });

  for (const timeZone of [
    'Europe/Berlin',
    'America/New_York',
    'Australia/Lord_Howe',
    'America/Havana',
    'Asia/Kathmandu',
  ])
    it(`has one time in each day of a year in ${timeZone}`, () => {
      for (const minute of [0, 30, 119, 150, 179, 1439]) {
        let time = at('2025-12-31T12:00:00Z');
        for (let day = 0; day < 365; day++) {
          const next = nextDue({ at: minute, timeZone }, time);
          const hours = (next - time) / 3_600_000;
          assert.ok(day === 0 || (hours >= 22.5 && hours <= 25.5), `${minute}: ${iso(time)} ${iso(next)}`);
          time = next;
        }
      }
    });

  it('has no time twice where a zone skips a whole day', () => {
    const list = times({ at: 180, timeZone: 'Pacific/Apia' }, '2011-12-27T00:00:00Z', 5);
    assert.equal(new Set(list).size, 5);
  });
});

describe('latestDue', () => {
  it('returns the last time that has passed, and the number of times', () => {
    assert.equal(latestDue({ every: 60_000 }, 60_000, 119_999), undefined);
    assert.deepEqual(latestDue({ every: 60_000 }, 60_000, 305_000), { dueAt: 300_000, count: 4 });
    assert.deepEqual(latestDue(berlin(3), at('2026-11-20T12:00:00Z'), at('2026-11-24T12:00:00Z')), {
      dueAt: at('2026-11-24T02:00:00Z'),
      count: 4,
    });
  });

  it('does not count the days since 1970 for a clock that began there', () => {
    const now = at('2026-11-24T02:00:00Z');
    assert.deepEqual(latestDue(berlin(3), now - 1, now), { dueAt: now, count: 1 });
    assert.equal(latestDue(berlin(3), now, now), undefined);
    const due = latestDue(berlin(3), 0, at('2026-11-24T12:00:00Z'));
    assert.equal(due?.dueAt, at('2026-11-24T02:00:00Z'));
    assert.ok((due?.count ?? 0) <= 401);
  });
});

it('planText shows a plan', () => {
  assert.equal(planText(berlin(3, 5)), 'at 03:05 Europe/Berlin');
  assert.equal(planText({ every: 300_000 }), 'every 300 s');
  assert.equal(planText(undefined), 'all the time');
});
