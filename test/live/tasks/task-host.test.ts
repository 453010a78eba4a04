// The part of a worker that runs `start` and tasks. The test is the supervisor.
import assert from 'node:assert/strict';
import { stat } from 'node:fs';
import { describe, it, type TestContext } from 'node:test';
import { readTasks } from '../../../src/live/tasks/task.ts';
import { createTaskHost, pauseAfter, type TaskEnd, type TaskHostOptions } from '../../../src/live/tasks/task-host.ts';
import { createMemoryLog } from '../../support/memory-log.ts';

const turn = () => new Promise((resolve) => setImmediate(resolve));

const TIME = 10_000;

interface Params {
  readonly signal: AbortSignal;
  readonly dueAt?: Date;
}

function createBench(test: TestContext, background: object, start?: TaskHostOptions['start']) {
  test.mock.timers.enable({ apis: ['setTimeout'] });
  const { log, lines } = createMemoryLog();
  const ends: TaskEnd[] = [];
  const reports: (() => void)[] = [];
  const made = { stuck: 0 };
  const host = createTaskHost({
    ...{ start, tasks: readTasks(background), log, onStuck: () => made.stuck++ },
    send(end, onSent) {
      ends.push(end);
      reports.push(onSent);
    },
  });
  const run = (task: string, run: number, dueAt?: number) =>
    host.receive({ kind: 'run-task', task, run, dueAt, time: TIME });
  return { host, lines, ends, reports, made, run };
}

/** Resolves when the signal is aborted. */
const aborted = ({ signal }: Params) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));

describe('a run of a task', () => {
  it('gets its time, and counts until its end is reported', async (test) => {
    const seen: unknown[] = [];
    const task = ({ dueAt }: Params) => void seen.push(dueAt);
    const { host, ends, reports, run } = createBench(test, { task });
    run('task', 1, 5000);
    run('task', 2);
    await turn();
    assert.deepEqual(seen, [new Date(5000), undefined]);
    assert.deepEqual(ends, [
      { kind: 'task-ended', run: 1, aborted: false, failure: undefined },
      { kind: 'task-ended', run: 2, aborted: false, failure: undefined },
    ]);
    assert.equal(host.pending(), 2);
    for (const report of reports) report();
    assert.equal(host.pending(), 0);
  });

  it('fails with what it throws, and with the name of a task that this worker lacks', async (test) => {
    const { ends, run } = createBench(test, { bad: () => Promise.reject(new Error('boom')) });
    run('bad', 1);
    run('other', 2);
    await turn();
    const failures = new Map(ends.map(({ run, aborted, failure }) => [run, [aborted, failure?.error]]));
    assert.deepEqual(failures.get(1), [false, 'boom']);
    assert.deepEqual(failures.get(2), [false, 'this worker has no such task']);
  });

  it('is aborted after its time, alone, says so, and is not stuck then', async (test) => {
    const { host, lines, ends, reports, made, run } = createBench(test, { long: aborted });
    run('long', 1, 5000);
    run('long', 2);
    host.receive({ kind: 'hold-task', run: 1, time: 0 });
    test.mock.timers.tick(1);
    await turn();
    assert.deepEqual(
      ends.map(({ run, aborted }) => [run, aborted]),
      [[1, true]],
    );
    const said = lines.map(({ event, task, due_at, worker }) => [event, task, due_at, worker]);
    assert.deepEqual(said, [['task-lease-lost', 'long', new Date(5000).toISOString(), process.pid]]);
    reports[0]?.();
    test.mock.timers.tick(5000);
    assert.deepEqual([made.stuck, host.pending()], [0, 1]);
    // An order can come after the end of its run.
    host.receive({ kind: 'hold-task', run: 1, time: 0 });
    test.mock.timers.tick(1);
    await turn();
    test.mock.timers.tick(5000);
    assert.equal(made.stuck, 0);
  });

  it('goes on for as long as its supervisor says so', async (test) => {
    const { host, ends, run } = createBench(test, { long: aborted });
    run('long', 1);
    for (let second = 0; second < 30; second += 5) {
      host.receive({ kind: 'hold-task', run: 1, time: TIME });
      test.mock.timers.tick(5000);
    }
    test.mock.timers.tick(TIME - 5001);
    await turn();
    assert.equal(ends.length, 0);
    test.mock.timers.tick(1);
    await turn();
    assert.deepEqual([ends.length, ends[0]?.aborted], [1, true]);
  });

  it('goes on when the order that says so waits behind code that blocks its worker', async (test) => {
    const { host, ends, run } = createBench(test, { long: aborted });
    test.mock.timers.reset();
    run('long', 1);
    host.receive({ kind: 'hold-task', run: 1, time: 1 });
    // Node calls this as it reads an order: after the timers of its turn.
    const read = new Promise<void>((resolve) => {
      stat('.', () => resolve(host.receive({ kind: 'hold-task', run: 1, time: TIME })));
    });
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
    await read;
    await turn();
    await turn();
    assert.equal(ends.length, 0);
  });

  it('makes its worker faulty when it runs on for five seconds after its time', async (test) => {
    const { made, run } = createBench(test, { endless: () => new Promise(() => {}) });
    run('endless', 1);
    test.mock.timers.tick(TIME);
    await turn();
    test.mock.timers.tick(4999);
    assert.equal(made.stuck, 0);
    test.mock.timers.tick(1);
    assert.equal(made.stuck, 1);
  });

  it('is aborted when its worker drains, and does not begin after that', async (test) => {
    const seen: string[] = [];
    const task = (params: Params) => {
      seen.push('began');
      return aborted(params);
    };
    const { host, ends, run } = createBench(test, { task });
    run('task', 1);
    host.drain();
    run('task', 2);
    await turn();
    assert.deepEqual(seen, ['began']);
    assert.deepEqual(ends.map(({ run, aborted }) => [run, aborted]).sort(), [
      [1, true],
      [2, true],
    ]);
  });
});

describe('start of the service file', () => {
  it('runs once, and the function that it returned runs when the worker ends', async (test) => {
    const seen: string[] = [];
    const { host, lines } = createBench(test, {}, ({ log }) => {
      log.info('warm');
      seen.push('start');
      return () => void seen.push('stop');
    });
    for (let order = 0; order < 2; order++) host.receive({ kind: 'start' });
    await turn();
    assert.deepEqual(seen, ['start']);
    await host.finish();
    assert.deepEqual([seen, lines], [['start', 'stop'], [{ event: 'task-info', message: 'warm', task: 'start' }]]);
  });

  it('runs again after a pause when it has failed, until it succeeds', async (test) => {
    let runs = 0;
    const { host, lines } = createBench(test, {}, () => {
      if (++runs < 3) throw new Error(`failure ${runs}`);
    });
    host.receive({ kind: 'start' });
    for (const [pause, before, after] of [
      [1000, 1, 2],
      [2000, 2, 3],
      [4000, 3, 3],
    ] as const) {
      await turn();
      test.mock.timers.tick(pause - 1);
      await turn();
      assert.equal(runs, before);
      test.mock.timers.tick(1);
      await turn();
      assert.equal(runs, after);
    }
    assert.deepEqual(
      lines.map(({ event, retry_in_ms, error }) => [event, retry_in_ms, error]),
      [
        ['start-failed', 1000, 'failure 1'],
        ['start-failed', 2000, 'failure 2'],
      ],
    );
    assert.deepEqual([pauseAfter(6), pauseAfter(7), pauseAfter(2000)], [32_000, 60_000, 60_000]);
  });

  it('does not run again when its worker drains in the pause, and the worker ends at once', async (test) => {
    let runs = 0;
    const { host, lines } = createBench(test, {}, () => {
      runs++;
      throw new Error('no');
    });
    host.receive({ kind: 'start' });
    await turn();
    host.drain();
    await host.finish();
    test.mock.timers.tick(60_000);
    await turn();
    assert.deepEqual([runs, lines.map(({ event }) => event)], [1, ['start-failed']]);
  });

  it('may reject when its worker drains, and does not begin in a worker that drains', async (test) => {
    let runs = 0;
    const start = async (params: Params) => {
      runs++;
      await aborted(params);
      throw params.signal.reason;
    };
    const first = createBench(test, {}, start);
    first.host.receive({ kind: 'start' });
    first.host.drain();
    await first.host.finish();
    assert.deepEqual([runs, first.lines], [1, []]);
    test.mock.timers.reset();
    const second = createBench(test, {}, start);
    second.host.drain();
    second.host.receive({ kind: 'start' });
    await second.host.finish();
    assert.deepEqual([runs, second.lines], [1, []]);
  });

  it('is logged when what it returned fails, or takes longer than five seconds', async (test) => {
    const failing = createBench(test, {}, () => () => Promise.reject(new Error('no way')));
    failing.host.receive({ kind: 'start' });
    await failing.host.finish();
    test.mock.timers.reset();
    const endless = createBench(test, {}, () => () => new Promise(() => {}));
    endless.host.receive({ kind: 'start' });
    const finished = endless.host.finish();
    await turn();
    test.mock.timers.tick(5000);
    await finished;
    assert.deepEqual(
      [failing, endless].map(({ lines }) => lines.map(({ event, error }) => [event, error])),
      [[['service-not-stopped', 'no way']], [['service-not-stopped', 'it took longer than 5000 ms']]],
    );
  });
});
