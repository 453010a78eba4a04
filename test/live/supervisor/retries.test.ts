// The pauses between retries, on a simulated clock.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createRetries, type RetryKind } from '../../../src/live/supervisor/retries.ts';

function create(freeDeaths = 1) {
  let time = 0;
  const retries = createRetries(freeDeaths, () => time);
  const pauses = (what: RetryKind, count: number, took = 0) =>
    Array.from({ length: count }, () => {
      retries.recordFailure(what, took);
      return retries.remaining(what);
    });
  return { retries, pauses, pass: (milliseconds: number) => (time += milliseconds) };
}

describe('createRetries', () => {
  for (const what of ['generation', 'replacement', 'probe'] as const) {
    it(`${what}: pauses double up to a minute, and grow with the cost of an attempt`, () => {
      const { retries, pauses } = create();
      assert.equal(retries.remaining(what), 0);
      assert.deepEqual(pauses(what, 6), [5000, 10_000, 20_000, 40_000, 60_000, 60_000]);
      assert.deepEqual(pauses(what, 2, 10_000), [300_000, 300_000]);
      retries.forget(what);
      assert.equal(retries.remaining(what), 0);
      assert.deepEqual(pauses(what, 2), [5000, 10_000]);
    });
  }

  it('lostWorker: free deaths have no pause, then pauses double up to five seconds and later reset', () => {
    const { retries, pauses, pass } = create(2);
    assert.deepEqual(pauses('lostWorker', 10), [0, 0, 100, 200, 400, 800, 1600, 3200, 5000, 5000]);
    pass(4000);
    assert.equal(retries.remaining('lostWorker'), 1000);
    pass(16_000);
    assert.deepEqual(pauses('lostWorker', 3), [0, 0, 100]);
  });

  it('workerStart: pauses start at one second and ignore the cost of an attempt', () => {
    assert.deepEqual(create().pauses('workerStart', 7, 10_000), [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
  });

  it('an attempt that has started is not due again', () => {
    const { retries, pass } = create();
    retries.recordFailure('generation');
    pass(5000);
    assert.equal(retries.remaining('generation'), 0);
    retries.recordStart('generation');
    assert.equal(retries.remaining('generation'), Number.POSITIVE_INFINITY);
    retries.recordFailure('generation');
    assert.equal(retries.remaining('generation'), 10_000);
  });

  it('pauses grow up to an hour after failures in use, and stay long', () => {
    const { retries, pauses } = create();
    retries.recordFailure('probe');
    const deceived = Array.from({ length: 4 }, () => {
      retries.recordFailureInUse('probe');
      return retries.remaining('probe');
    });
    assert.deepEqual(deceived, [240_000, 960_000, 3_600_000, 3_600_000]);
    assert.deepEqual(pauses('probe', 2), [3_600_000, 3_600_000]);
    retries.forget('probe');
    assert.deepEqual(pauses('probe', 1), [5000]);
  });
});
