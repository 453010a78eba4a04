// When what failed is tried again.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createBackoff } from '../../src/supervisor/backoff.ts';
import { createPoisonList } from '../../src/supervisor/poison-list.ts';
import { createRejections, RETRY } from '../../src/supervisor/rejections.ts';
import { createRetryPauses } from '../../src/supervisor/retry-pauses.ts';
import { createTrials } from '../../src/supervisor/trials.ts';
import { createMemoryLog } from '../support/memory-log.ts';

describe('createBackoff', () => {
  it('is free at first, then doubles up to five seconds, and forgets after a good while', () => {
    let now = 0;
    const backoff = createBackoff({ free: 1, now: () => now });
    assert.equal(backoff.remaining(), 0);
    const delays = Array.from({ length: 9 }, () => {
      backoff.failed();
      return backoff.remaining();
    });
    assert.deepEqual(delays, [0, 100, 200, 400, 800, 1600, 3200, 5000, 5000]);
    now += 4000;
    assert.equal(backoff.remaining(), 1000);
    now += 60_000;
    backoff.failed();
    assert.equal(backoff.remaining(), 0);
  });
});

describe('createRetryPauses', () => {
  it('gives ever longer pauses, in proportion to what a try costs, and rarer ones where tries deceive', () => {
    const pauses = createRetryPauses();
    const waits = (count: number, took = 0) => Array.from({ length: count }, () => pauses.next(took));
    assert.deepEqual(waits(6), [5000, 10_000, 20_000, 40_000, 60_000, 60_000]);
    assert.deepEqual(waits(2, 10_000), [300_000, 300_000]);
    const rare = Array.from({ length: 5 }, () => {
      pauses.rarer();
      return pauses.next(0);
    });
    assert.deepEqual(rare, [240_000, 960_000, 3_600_000, 3_600_000, 3_600_000]);
    pauses.reset();
    assert.deepEqual(waits(6), [5000, 10_000, 20_000, 40_000, 60_000, 60_000]);
  });
});

describe('createTrials', () => {
  const loads = (ok: boolean, ...names: string[]) => new Map(names.map((group) => [group, { group, file: `${group}Controller.js`, ok }]));

  it('are due for the same files after ever longer pauses, and for other ones after the first', async () => {
    let time = 0;
    let took = 0;
    const trials = createTrials({
      loader: {
        probe: async () => {
          time += took;
          return { kind: 'loaded', workers: [], groups: [], files: [] };
        },
        abort: () => assert.fail('nothing is to be interrupted'),
      },
      poison: createPoisonList('/nowhere'),
      look: () => undefined,
      now: () => time,
    });
    const both = loads(false, 'A', 'B');
    const run = async (milliseconds: number) => {
      took = milliseconds;
      await trials.run(1, both);
      return trials.remaining(both);
    };
    assert.equal(trials.remaining(loads(true, 'A')), Number.POSITIVE_INFINITY);
    assert.equal(trials.remaining(both), 5000);
    time += 5000;
    assert.equal(trials.remaining(loads(false, 'B', 'A')), 0);
    assert.equal(await run(100), 10_000);
    assert.equal(await run(1000), 30_000);
    trials.futile();
    assert.equal(trials.remaining(both), 240_000);
    assert.equal(trials.remaining(loads(false, 'A')), 5000);
    assert.equal(trials.remaining(loads(true, 'A')), Number.POSITIVE_INFINITY);
    assert.equal(trials.remaining(loads(false, 'A')), 5000, 'what broke again is new');
    trials.interrupt();
  });
});

describe('createRejections', () => {
  it('tells once a change, and tries again after ever longer pauses', (test) => {
    test.mock.timers.enable({ apis: ['setTimeout'] });
    const { log, lines } = createMemoryLog();
    let retries = 0;
    const rejections = createRejections({ log, onRetry: () => retries++ });
    const failures = [{ group: 'A', file: 'AController.js', ok: false, error: 'no database' }];
    const report = { generation: 2, cause: 'AController.js', failures, serving: 1, took: 0 };
    rejections.add(report);
    assert.equal(lines.length, 1);
    for (const delay of [5000, 10_000, 20_000, 40_000, 60_000, 60_000]) {
      const before = retries;
      test.mock.timers.tick(delay - 1);
      assert.equal(retries, before);
      test.mock.timers.tick(1);
      assert.equal(retries, before + 1);
      rejections.add({ ...report, cause: RETRY });
    }
    assert.equal(lines.length, 1, 'a retry that fails in the same way is no news');
    rejections.add({ ...report, failures: [], error: 'out of memory' });
    assert.equal(lines.at(-1)?.error, 'out of memory');
    rejections.clear();
    assert.equal(rejections.latest, undefined);
    test.mock.timers.tick(100_000);
    assert.equal(retries, 6);
    rejections.add({ ...report, took: 10_000 });
    test.mock.timers.tick(299_999);
    assert.equal(retries, 6, 'code that hangs its process is seldom tried again');
    test.mock.timers.tick(1);
    assert.equal(retries, 7);
  });
});
