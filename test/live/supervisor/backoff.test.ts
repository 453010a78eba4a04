// The pauses between retries, on a simulated clock.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Backoff, type BackoffOptions } from '../../../src/live/supervisor/backoff.ts';

function create(options: Partial<BackoffOptions> = {}) {
  let time = 0;
  const backoff = new Backoff({ firstPause: 100, maxPause: 1000, ...options }, () => time);
  const pauses = (count: number, duration = 0) =>
    Array.from({ length: count }, () => {
      backoff.recordFailure(duration);
      return backoff.remaining;
    });
  return { backoff, pauses, pass: (milliseconds: number) => (time += milliseconds) };
}

describe('Backoff', () => {
  it('doubles the pauses up to a maximum, and makes them longer than the attempt', () => {
    const { backoff, pauses, pass } = create();
    assert.equal(backoff.remaining, 0);
    assert.deepEqual(pauses(6), [100, 200, 400, 800, 1000, 1000]);
    assert.deepEqual(pauses(2, 50), [1500, 1500]);
    pass(1400);
    assert.equal(backoff.remaining, 100);
    pass(200);
    assert.equal(backoff.remaining, 0);
  });

  it('begins again with a short pause after a reset', () => {
    const { backoff, pauses } = create();
    pauses(6);
    backoff.reset();
    assert.equal(backoff.remaining, 0);
    assert.deepEqual(pauses(2), [100, 200]);
  });

  it('has no pause after the free failures, and forgets failures after a time', () => {
    const { pauses, pass } = create({ freeFailures: 2, forgetAfter: 5000 });
    assert.deepEqual(pauses(4), [0, 0, 100, 200]);
    pass(5000);
    assert.deepEqual(pauses(1), [400]);
    pass(5001);
    assert.deepEqual(pauses(3), [0, 0, 100]);
  });
});
