// Tests the decisions of the supervisor with fake parts: no process is started, and the test controls the clock.
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { describe, it, type TestContext } from 'node:test';
import type { FileSelection } from '../../../src/live/load/group-load.ts';
import type { ListenOutcome, LoadOutcome } from '../../../src/live/supervisor/workers/worker-events.ts';
import type { SecureState } from '../../../src/operate/https/serve/secure-state.ts';
import { createFakeService, type FakeWorker, loaded } from '../../support/fake-workers.ts';
import { write } from '../../support/folder.ts';

type FakeService = ReturnType<typeof createFakeService>;

async function started(test: TestContext, options: Parameters<typeof createFakeService>[1] = {}) {
  const service = createFakeService(test, options);
  await service.supervisor.start();
  service.story.length = 0;
  return service;
}

describe('a generation', () => {
  it('serves before the old generation drains', async (test) => {
    const service = await started(test);
    service.change('AController.js');
    await service.settled();
    assert.deepEqual(service.story, ['drain 1', 'drain 2']);
    assert.deepEqual(
      service.serving().map(({ pid, generation }) => [pid, generation]),
      [
        [3, 2],
        [4, 2],
      ],
    );
    assert.equal(service.supervisor.status().generation, 2);
    assert.equal(service.logged('generation-serving').at(-1)?.cause, 'AController.js');
  });

  it('that loses a group is rejected, logged once, and retried after growing pauses', async (test) => {
    const service = await started(test);
    service.made.load = (order) => loaded(order, { 'AController.js': 'no database' });
    service.change('AController.js');
    await service.settled();
    assert.deepEqual(service.story, ['quit 3', 'quit 4']);
    assert.deepEqual(
      service.supervisor.status().rejected?.failures.map(({ file }) => file),
      ['AController.js'],
    );
    for (const pause of [5000, 10_000, 20_000, 40_000, 60_000, 60_000]) {
      const tries = service.supervisor.status().generationsRejected;
      await service.pass(pause - 1);
      assert.equal(service.supervisor.status().generationsRejected, tries);
      await service.pass(1);
      assert.equal(service.supervisor.status().generationsRejected, tries + 1);
    }
    assert.equal(service.logged('generation-rejected').length, 1, 'a repeated failure is logged only once');
    service.change('AController.js');
    await service.settled();
    assert.equal(service.logged('generation-rejected').length, 2, 'an edit that does not help is logged');
    service.made.load = (order) => loaded(order);
    await service.pass(60_000);
    assert.equal(service.supervisor.status().rejected, undefined);
    assert.equal(service.logged('generation-serving').at(-1)?.cause, 'retry');
    await service.pass(600_000);
    assert.equal(service.logged('generation-serving').length, 2, 'a generation that serves is not retried');
  });

  it('without a worker that starts is rejected, with the error in the log and the status', async (test) => {
    const service = await started(test);
    service.made.load = () => {
      service.made.time += 10_000;
      return { kind: 'ended', file: undefined, reason: 'the system refused to start it (EAGAIN)' };
    };
    service.change('AController.js');
    await service.settled();
    const error = 'Cannot start a worker: the system refused to start it (EAGAIN)';
    assert.equal(service.supervisor.status().rejected?.error, error);
    assert.equal(service.logged('generation-rejected')[0]?.error, error);
    assert.equal(service.serving().length, 2);
    service.made.load = (order) => loaded(order);
    await service.pass(5000);
    assert.equal(service.supervisor.status().generation, 3);
  });

  it('that listed the folder while a serving file was away is loaded again', async (test) => {
    const service = await started(test);
    service.made.load = (order, { pid }) => loaded(pid === 3 || pid === 4 ? { ...order, files: [] } : order);
    service.change('AController.js');
    await service.settled();
    assert.deepEqual(service.story, ['quit 3', 'quit 4', 'drain 1', 'drain 2']);
    assert.equal(service.supervisor.status().generation, 3);
  });

  it('whose files change during the load is loaded again, and rejected when they always change', async (test) => {
    const service = await started(test);
    service.made.load = (order, { pid }) => {
      service.made.change = Number(pid) < 5 ? '/x/rules.js' : undefined;
      return loaded(order);
    };
    service.change('AController.js');
    await service.settled();
    assert.deepEqual(service.story, ['quit 3', 'quit 4', 'drain 1', 'drain 2']);
    service.made.change = '/x/rules.js';
    service.made.load = (order) => loaded(order);
    service.change('AController.js');
    await service.settled();
    const error = '/x/rules.js has changed during each of the last loads of the folder';
    assert.equal(service.supervisor.status().rejected?.error, error);
    assert.equal(service.supervisor.status().generation, 3, 'the last good generation serves on');
  });

  it('whose files always change is rejected, also when a load between hangs and is given up', async (test) => {
    const service = await started(test);
    service.made.change = '/x/rules.js';
    let loads = 0;
    service.made.load = (order, { pid }) => {
      if (Number(pid) % 2 === 1) loads++;
      return loads === 3 ? new Promise(() => {}) : loaded(order);
    };
    service.change('AController.js');
    await service.settled();
    for (const worker of service.workers) worker.stepAge = 701;
    service.change('AController.js');
    await service.settled();
    assert.match(service.supervisor.status().rejected?.error ?? '', /has changed during each/);
    assert.equal(loads, 7, 'five unstable loads and one that hung come before the load that is rejected');
  });

  it('whose files always change serves at a start, and the log says so', async (test) => {
    const service = createFakeService(test);
    service.made.change = '/x/rules.js';
    await service.supervisor.start();
    assert.equal(service.serving().length, 2);
    assert.deepEqual(
      service.logged('folder-unstable').map(({ file, effect }) => [file, effect]),
      [['/x/rules.js', 'a state from before its change serves']],
    );
  });

  it('tells the workers its state, so that they import no new file in the meantime', async (test) => {
    const service = await started(test);
    const [worker] = service.workers as [FakeWorker];
    const states = () => worker.sent.splice(0).map((message) => (message.kind === 'generation' ? message.state : ''));
    assert.deepEqual(states(), ['serving']);
    let during: string[] = [];
    service.made.load = (order, { pid }) => {
      if (pid === 3) {
        during = states();
        service.events().received(worker, { kind: 'requested', group: 'New' });
      }
      return loaded(order, { 'AController.js': 'no database' });
    };
    service.change('AController.js');
    await service.settled();
    assert.deepEqual(during, ['loading']);
    const [answer, ...others] = worker.sent.splice(0);
    assert.deepEqual(answer, { kind: 'withheld', group: 'New', answer: 'changed' });
    assert.ok(others.some((message) => message.kind === 'generation' && message.state === 'rejected'));
    service.events().received(worker, { kind: 'requested', group: 'New' });
    assert.deepEqual(worker.sent, [{ kind: 'withheld', group: 'New', answer: 'changed' }]);
    assert.deepEqual(
      service.logged('new-group-withheld').map(({ worker: pid, reason }) => [pid, reason]),
      [
        [worker.pid, 'a generation is due'],
        [worker.pid, 'the newest generation was rejected'],
      ],
    );
  });

  it('skips a file that hung in the last generation', async (test) => {
    const service = createFakeService(test, { groups: ['A', 'B'] });
    const skipped: string[][] = [];
    const patience: unknown[] = [];
    service.made.load = (order) => {
      skipped.push([...order.skip.keys()]);
      patience.push(order.patience);
      const outcome = loaded(order, { 'BController.js': 'it did not finish' });
      if (outcome.kind !== 'loaded' || order.skip.has('BController.js')) return outcome;
      return { ...outcome, groups: outcome.groups.map((load) => ({ ...load, hung: !load.ok })) };
    };
    await service.supervisor.start();
    service.change('AController.js');
    await service.settled();
    assert.deepEqual(skipped.slice(-2), [['BController.js'], ['BController.js']]);
    assert.deepEqual(patience, [1, 1, 2, 2], 'the next load has twice the time');
    assert.equal(service.supervisor.status().generation, 2);
  });

  it('that hangs too long is given up for the next change', async (test) => {
    const service = await started(test);
    service.made.load = (order, worker) => (worker.pid === 3 ? new Promise(() => {}) : loaded(order));
    service.change('AController.js');
    await service.settled();
    (service.workers[2] as FakeWorker).stepAge = 700;
    service.change('AController.js');
    await service.settled();
    assert.deepEqual(service.story, [], 'a young load is not given up');
    (service.workers[2] as FakeWorker).stepAge = 701;
    service.change('AController.js');
    await service.settled();
    assert.deepEqual(service.story, ['quit 3', 'quit 4', 'drain 1', 'drain 2']);
    assert.equal(service.supervisor.status().generation, 3);
  });

  it('is given up when the folder is removed while it loads', async (test) => {
    const service = await started(test);
    service.made.load = (order, worker) => {
      if (worker.pid === 3) rmSync(service.dir, { recursive: true });
      return loaded({ ...order, files: [] });
    };
    service.change('AController.js');
    await service.settled();
    assert.deepEqual(service.story, ['quit 3', 'quit 4']);
    assert.equal(service.supervisor.status().generation, 1);
    assert.equal(service.logged('generation-rejected').length, 0);
  });

  it('ends all its workers when a worker dies in its second load, and is loaded again', async (test) => {
    const service = await started(test);
    service.made.load = (order, { pid }) =>
      pid === 5
        ? { kind: 'ended', file: undefined, reason: 'it ended' }
        : loaded(order, pid === 4 ? { 'AController.js': 'database is locked' } : {});
    service.change('AController.js');
    await service.settled();
    assert.deepEqual(service.story, ['quit 4', 'quit 3', 'drain 1', 'drain 2']);
    assert.deepEqual(
      service.serving().map(({ pid }) => pid),
      [6, 7],
    );
  });

  it('is rejected when fork throws', async (test) => {
    const service = await started(test);
    service.made.forkError = new Error('spawn ENOMEM');
    service.change('AController.js');
    await service.settled();
    assert.equal(service.supervisor.status().rejected?.error, 'Cannot start a worker: spawn ENOMEM');
    assert.equal(service.serving().length, 2);
  });

  it('that cannot listen is rejected, and the old generation keeps serving', async (test) => {
    const service = await started(test);
    service.made.listen = () => ({ code: 'EADDRINUSE' });
    service.change('AController.js');
    await service.settled();
    assert.deepEqual(service.story, ['quit 3', 'quit 4']);
    assert.equal(service.supervisor.status().generation, 1);
    assert.equal(service.supervisor.status().rejected?.error, 'cannot listen: EADDRINUSE');
  });

  it('is not started while the folder is missing', async (test) => {
    const service = await started(test);
    service.made.isFolderThere = false;
    service.supervisor.requestGeneration('signal');
    await service.settled();
    assert.equal(service.workers.length, 2);
    service.made.isFolderThere = true;
    service.change('folder');
    await service.settled();
    assert.equal(service.supervisor.status().generation, 2);
  });
});

describe('a replacement', () => {
  it('loads only the groups that serve, and skips the files that ended a worker', async (test) => {
    const service = createFakeService(test, { groups: ['A', 'B', 'C'] });
    const orders: (readonly [files: readonly string[], skip: readonly string[]])[] = [];
    service.made.load = (order) => {
      orders.push([order.files, [...order.skip.keys()]]);
      if (order.skip.has('CController.js') || !order.files.includes('CController.js'))
        return loaded(order, { 'BController.js': 'no database' });
      return { kind: 'ended', file: 'CController.js', reason: 'exit code 1' };
    };
    await service.supervisor.start();
    service.die(service.workers.find(({ state }) => state === 'serving') as FakeWorker);
    await service.settled();
    assert.deepEqual(orders.at(-1), [['AController.js', 'CController.js'], ['CController.js']]);
    assert.equal(service.logged('worker-replaced').length, 1);
  });

  it('that cannot load a serving group is rejected and retried later', async (test) => {
    const service = await started(test);
    service.made.load = (order) => loaded(order, { 'AController.js': 'no database' });
    service.die(service.workers[0] as FakeWorker);
    await service.settled();
    assert.equal(service.logged('replacement-rejected').length, 1);
    assert.equal(service.serving().length, 1);
    await service.pass(5000);
    assert.equal(service.logged('replacement-rejected').length, 1, 'the rejection is logged once');
    service.made.load = (order) => loaded(order);
    await service.pass(10_000);
    assert.equal(service.serving().length, 2);
    assert.equal(service.logged('worker-replaced').length, 1);
    service.made.load = (order) => loaded(order, { 'AController.js': 'no database' });
    service.die(service.serving()[0] as FakeWorker);
    await service.settled();
    assert.equal(service.logged('replacement-rejected').length, 2, 'the next rejection is logged again');
  });

  it('that lacks a group which has begun to answer meanwhile is made again at once', async (test) => {
    const service = await started(test);
    const orders: (readonly string[])[] = [];
    service.made.load = async (order) => {
      orders.push(order.files);
      if (orders.length === 1)
        service.events().received(service.serving()[0] as FakeWorker, { kind: 'requested', group: 'New' });
      await service.settled();
      return loaded(order);
    };
    service.die(service.workers[0] as FakeWorker);
    for (let turn = 0; turn < 10; turn++) await service.settled();
    assert.deepEqual(orders, [['AController.js'], ['AController.js', 'NewController.js']]);
    assert.equal(service.serving().length, 2);
    assert.equal(service.logged('replacement-rejected').length, 0);
  });

  const FAILURES: readonly (readonly [name: string, fail: (made: FakeService['made']) => void, error: string])[] = [
    [
      'cannot start',
      (made) => {
        made.load = () => ({ kind: 'ended', file: undefined, reason: 'it ended' });
      },
      'Cannot start a worker: it ended',
    ],
    [
      'cannot listen',
      (made) => {
        made.listen = () => ({ code: 'EADDRINUSE' });
      },
      'cannot listen: EADDRINUSE',
    ],
  ];
  for (const [name, fail, error] of FAILURES)
    it(`that ${name} is rejected`, async (test) => {
      const service = await started(test);
      fail(service.made);
      service.die(service.workers[0] as FakeWorker);
      await service.settled();
      const [line] = service.logged('generation-rejected');
      assert.deepEqual([line?.cause, line?.error], ['replacement', error]);
      assert.deepEqual(
        service.serving().map(({ pid }) => pid),
        [2],
      );
    });

  it('starts after growing pauses when workers die repeatedly', async (test) => {
    const service = await started(test, { workers: 1 });
    const pauses: number[] = [];
    for (let death = 0; death < 6; death++) {
      service.die(service.serving()[0] as FakeWorker);
      await service.settled();
      let pause = 0;
      for (; service.serving().length === 0; pause += 100) await service.pass(100);
      pauses.push(pause);
    }
    assert.deepEqual(pauses, [0, 100, 200, 400, 800, 1600]);
  });
});

/** A service whose group B has not loaded. */
async function startedWithoutB(test: TestContext) {
  const service = createFakeService(test, { groups: ['A', 'B'] });
  service.made.load = withoutB;
  await service.supervisor.start();
  return service;
}

const withoutB = (order: FileSelection) => loaded(order, { 'BController.js': 'no database' });

describe('a file that has not loaded', () => {
  it('does not delay the first retry of a generation that is rejected', async (test) => {
    const service = await startedWithoutB(test);
    for (const pause of [5000, 10_000, 20_000]) await service.pass(pause);
    service.made.load = (order) => loaded(order, { 'AController.js': 'no database' });
    service.change('AController.js');
    await service.settled();
    assert.equal(service.supervisor.status().generationsRejected, 1);
    await service.pass(5000);
    assert.equal(service.supervisor.status().generationsRejected, 2);
  });

  it('is tried after growing pauses, and the new workers serve only when the file loads', async (test) => {
    const service = await startedWithoutB(test);
    await service.pass(4999);
    assert.equal(service.workers.length, 2);
    await service.pass(1);
    assert.deepEqual(service.story, ['quit 3', 'quit 4']);
    assert.equal(service.supervisor.status().generation, 1);
    await service.pass(9999);
    assert.equal(service.workers.length, 4);
    service.made.load = (order) => loaded(order);
    await service.pass(1);
    assert.equal(service.logged('generation-serving').at(-1)?.cause, 'retry');
    assert.deepEqual(service.supervisor.status().notLoadable, []);
  });

  const INTERRUPTIONS: readonly (readonly [what: string, interrupt: (service: FakeService) => void])[] = [
    ['a change', (service) => service.change('AController.js')],
    ['the death of a worker', (service) => service.die(service.workers[0] as FakeWorker)],
    [
      'a request for a new group',
      (service) => service.events().received(service.workers[0] as FakeWorker, { kind: 'requested', group: 'New' }),
    ],
  ];
  for (const [what, interrupt] of INTERRUPTIONS)
    it(`has its trial interrupted by ${what}`, async (test) => {
      const service = await startedWithoutB(test);
      const [first] = service.workers as [FakeWorker];
      service.made.load = (order, { pid }) => (pid === 3 ? new Promise(() => {}) : withoutB(order));
      await service.pass(5000);
      first.sent.length = 0;
      interrupt(service);
      await service.settled();
      assert.deepEqual(service.story.slice(0, 2), ['quit 3', 'quit 4']);
      assert.equal(service.serving().length, 2);
      if (what !== 'a request for a new group') return;
      assert.deepEqual(first.sent, [
        { kind: 'withheld', group: 'New', answer: 'changed' },
        { kind: 'generation', state: 'serving' },
      ]);
      await service.pass(9999);
      assert.equal(service.workers.length, 4, 'the next trial has the next pause');
    });

  it('leaves the watch alone until its trial has loaded more groups', async (test) => {
    const service = await startedWithoutB(test);
    service.story.length = 0;
    service.made.isWatchTold = true;
    await service.pass(5000);
    assert.deepEqual(service.story, ['quit 3', 'quit 4']);
    service.made.load = (order) => loaded(order);
    await service.pass(10_000);
    assert.deepEqual(service.story.slice(2), ['endLoad', 'drain 1', 'drain 2']);
  });

  it('does not make its trial serve because of a group that nobody has asked for', async (test) => {
    const service = await startedWithoutB(test);
    write(service.dir, 'IdleController.js', '');
    await service.pass(5000);
    assert.deepEqual(service.story, ['quit 3', 'quit 4']);
    assert.equal(service.supervisor.status().generation, 1);
  });

  it('is named as lost when no worker is left, and the generation after that serves without it', async (test) => {
    const service = await started(test, { groups: ['A', 'B'] });
    service.made.load = withoutB;
    for (const worker of service.workers.slice()) service.die(worker);
    await service.settled();
    assert.deepEqual(
      service.logged('generation-degraded').map(({ generation, groups }) => [generation, groups]),
      [[2, ['B']]],
    );
    assert.equal(service.serving().length, 2);
  });

  it('makes its trial serve a new group where no group serves', async (test) => {
    const service = createFakeService(test, { groups: ['B'] });
    service.made.load = withoutB;
    await service.supervisor.start();
    write(service.dir, 'IdleController.js', '');
    await service.pass(5000);
    assert.deepEqual(
      service.groups().map(({ group, ok }) => [group, ok]),
      [
        ['B', false],
        ['Idle', true],
      ],
    );
  });

  it('and ended its process is skipped until it changes, except in a trial', async (test) => {
    const service = createFakeService(test, { groups: ['A', 'B'] });
    const deadly = 'BController.js';
    const deadLoads: number[] = [];
    service.made.load = (order, worker) => {
      if (order.skip.has(deadly)) return loaded(order);
      deadLoads.push(worker.generation);
      worker.state = 'gone';
      service.events().died(worker, { reason: 'it ended', lastState: 'loading', importing: [] });
      return { kind: 'ended', file: deadly, reason: 'it ended' };
    };
    await service.supervisor.start();
    service.change('AController.js');
    await service.settled();
    assert.deepEqual([...new Set(deadLoads)], [1]);
    assert.equal(service.logged('trial-worker-exited').length, 0);
    const deaths = service.supervisor.status().workersDied;
    await service.pass(5000);
    assert.deepEqual([...new Set(deadLoads)], [1, 3]);
    assert.equal(service.logged('trial-worker-exited').length, 2);
    assert.equal(service.supervisor.status().workersDied, deaths, 'the death of a worker of a trial is not counted');
    write(service.dir, deadly, '// another text, of another length');
    service.change(deadly);
    await service.settled();
    assert.deepEqual([...new Set(deadLoads)], [1, 3, 4]);
  });

  it('and has ended its process is not skipped any more when a trial has loaded it', async (test) => {
    const service = createFakeService(test, { groups: ['A', 'B'] });
    let isDeadly = true;
    const skipped: string[][] = [];
    service.made.load = (order) => {
      skipped.push([...order.skip.keys()]);
      if (!isDeadly || order.skip.has('BController.js')) return loaded(order);
      return { kind: 'ended', file: 'BController.js', reason: 'it ended' };
    };
    await service.supervisor.start();
    isDeadly = false;
    await service.pass(5000);
    assert.deepEqual(service.supervisor.status().notLoadable, []);
    service.change('AController.js');
    await service.settled();
    assert.deepEqual(skipped.slice(2), [['BController.js'], ['BController.js'], [], [], [], []]);
    assert.equal(service.supervisor.status().rejected, undefined);
  });

  it('in one of the workers, also at the second try, does not serve', async (test) => {
    const service = createFakeService(test, { groups: ['A', 'B'] });
    service.made.load = (order, { pid }) => (pid === 2 ? loaded(order) : withoutB(order));
    await service.supervisor.start();
    assert.deepEqual(
      service.supervisor.status().notLoadable.map(({ file }) => file),
      ['BController.js'],
    );
  });

  it('in one more worker, although its new group has answered, changes nothing', async (test) => {
    const service = await started(test);
    const [first, second] = service.serving() as [FakeWorker, FakeWorker];
    service.events().received(first, { kind: 'requested', group: 'New' });
    await service.settled();
    const failure = { group: 'New', file: 'NewController.js', ok: false, error: 'a lock' };
    service.events().importReported(second, failure, []);
    assert.deepEqual(service.supervisor.status().notLoadable, []);
  });

  it('makes a rejected generation when no worker of its trial can start', async (test) => {
    const service = await startedWithoutB(test);
    service.made.load = () => ({ kind: 'ended', file: undefined, reason: 'EAGAIN' });
    await service.pass(5000);
    assert.equal(service.logged('generation-rejected')[0]?.cause, 'retry');
    assert.equal(service.supervisor.status().rejected?.error, 'Cannot start a worker: EAGAIN');
  });

  it('and ended a serving worker is skipped by the other workers and the replacement', async (test) => {
    const service = await started(test);
    write(service.dir, 'ExitController.js', 'process.exit(1);\n');
    service.die(service.workers[0] as FakeWorker, ['ExitController.js']);
    await service.settled();
    assert.deepEqual(
      (service.workers[1] as FakeWorker).sent.filter(({ kind }) => kind === 'skip'),
      [{ kind: 'skip', file: 'ExitController.js', reason: 'it was ended' }],
    );
    assert.deepEqual(
      service.supervisor.status().notLoadable.map(({ file }) => file),
      ['ExitController.js'],
    );
    assert.equal(service.logged('worker-died')[0]?.file, 'ExitController.js');
    assert.equal(service.serving().length, 2);
  });
});

describe('the agenda', () => {
  it('retries a generation after one second when its step threw', async (test) => {
    const service = await started(test);
    service.made.snapshotError = new Error('a mistake of ours');
    service.change('AController.js');
    await service.settled();
    assert.equal(service.logged('supervisor-step-failed')[0]?.error, 'Error: a mistake of ours');
    service.made.snapshotError = undefined;
    await service.pass(999);
    assert.equal(service.supervisor.status().generation, 1);
    await service.pass(1);
    assert.equal(service.supervisor.status().generation, 2);
    assert.equal(service.logged('generation-serving').at(-1)?.cause, 'AController.js');
  });

  it('starts no retry while the folder is missing', { timeout: 60_000 }, async (test) => {
    const service = await started(test);
    service.made.load = (order) => loaded(order, { 'AController.js': 'no database' });
    service.change('AController.js');
    await service.settled();
    const { length } = service.workers;
    service.made.isFolderThere = false;
    await service.pass(60_000);
    assert.equal(service.workers.length, length);
  });
});

describe('a file that wants types of TypeScript', () => {
  const wanted = {} as never;
  /** The load of A finds its types only when they have been made. */
  const createMaker = (test: TestContext, outcome: boolean) => {
    const made = { calls: 0 };
    const service = createFakeService(test, {
      makeTypes: async () => {
        made.calls++;
        return outcome;
      },
    });
    const load = (selection: FileSelection): LoadOutcome => {
      const groups = selection.files.map((file) => ({ group: 'A', file, ok: false, error: 'no types', wanted }));
      return made.calls > 0 && outcome ? loaded(selection) : { kind: 'loaded', groups, files: [] };
    };
    return { made, service, load };
  };

  it('loads again when its types are made', async (test) => {
    const { made, service, load } = createMaker(test, true);
    service.made.load = load;
    await service.supervisor.start();
    assert.deepEqual([made.calls, service.groups().map(({ ok }) => ok)], [1, [true]]);
  });

  it('is not loaded again when no types could be made', async (test) => {
    const { made, service, load } = createMaker(test, false);
    service.made.load = load;
    await service.supervisor.start();
    assert.deepEqual([made.calls, service.workers.length, service.groups().map(({ ok }) => ok)], [1, 2, [false]]);
  });

  it('begins a generation when it is new, and only where types are made', async (test) => {
    for (const makeTypes of [undefined, async () => false]) {
      const service = await started(test, { ...(makeTypes && { makeTypes }) });
      const [worker] = service.workers as [FakeWorker];
      const load = { group: 'New', file: 'NewController.js', ok: false, error: 'no types' };
      service.events().importReported(worker, load, []);
      await service.settled();
      assert.equal(service.supervisor.status().generation, 1, 'another failure begins none');
      service.events().importReported(worker, { ...load, wanted }, []);
      await service.settled();
      assert.equal(service.supervisor.status().generation, makeTypes === undefined ? 1 : 2);
    }
  });
});

describe('the state for HTTPS', () => {
  it('is with each worker before it listens, and with all workers when it has changed', async (test) => {
    let state = { cert: 'one' } as SecureState;
    const service = createFakeService(test, { secureState: () => state });
    const states = () =>
      service.workers.map(({ sent }) => sent.flatMap((message) => (message.kind === 'secure' ? [message.state] : [])));
    const before: unknown[] = [];
    service.made.listen = () => {
      before.push(states());
      return 'listening';
    };
    await service.supervisor.start();
    const [one, two] = [state, { cert: 'two' } as SecureState];
    assert.deepEqual(before[0], [[one], [one]]);
    state = two;
    service.supervisor.sendSecureState();
    assert.deepEqual(states(), [
      [one, two],
      [one, two],
    ]);
  });

  it('is no message of a service without HTTPS', async (test) => {
    const service = await started(test);
    service.supervisor.sendSecureState();
    assert.ok(service.workers.every(({ sent }) => sent.every(({ kind }) => kind !== 'secure')));
  });
});

describe('a draining worker', () => {
  it('adds none of its imports to the watch', async (test) => {
    const service = await started(test);
    service.change('AController.js');
    await service.settled();
    service.story.length = 0;
    const [old, , current] = service.workers as [FakeWorker, FakeWorker, FakeWorker];
    const load = { group: 'New', file: 'NewController.js', ok: true };
    service.events().importReported(old, load, []);
    service.events().received(old, { kind: 'imported-on-call', files: [{ path: '/old.js', fingerprint: '1' }] });
    assert.deepEqual(service.story, []);
    service.events().importReported(current, load, []);
    service.events().received(current, { kind: 'imported-on-call', files: [] });
    assert.deepEqual(service.story, ['watch "NewController.js"', 'watch []']);
  });
});

describe('stop', () => {
  it('closes the port before the workers drain', async (test) => {
    const service = await started(test);
    await service.supervisor.stop();
    assert.deepEqual(service.story, ['close port', 'drain 1', 'drain 2']);
    service.change('AController.js');
    service.die(service.workers[0] as FakeWorker);
    await service.pass(60_000);
    assert.equal(service.workers.length, 2, 'the supervisor starts no worker after stop');
  });

  it('counts no new generation whose workers listen after it', async (test) => {
    const service = await started(test, { workers: 1 });
    let answer = (_: ListenOutcome) => {};
    service.made.listen = () => new Promise((resolve) => (answer = resolve));
    service.change('AController.js');
    await service.settled();
    await service.supervisor.stop();
    answer('listening');
    await service.settled();
    assert.deepEqual(service.story.slice(1), ['drain 1', 'drain 2'], 'the new worker may hold connections already');
    assert.equal(service.logged('generation-serving').length, 1);
    assert.equal(service.logged('generation-rejected').length, 0);
  });

  it('logs the workers that do not end', async (test) => {
    const service = await started(test);
    service.made.survivors = [service.workers[1] as FakeWorker];
    await service.supervisor.stop();
    assert.deepEqual(service.logged('workers-still-running')[0]?.workers, [2]);
  });

  it('ends the workers of a running load', async (test) => {
    const service = await started(test);
    service.made.load = () => new Promise(() => {});
    service.change('AController.js');
    await service.settled();
    await service.supervisor.stop();
    assert.deepEqual(service.story.slice(1).sort(), ['drain 1', 'drain 2', 'quit 3', 'quit 4']);
  });
});

it('logs at the first use of a channel that a store does not share it', async (test) => {
  const store = { taskCell: () => assert.fail('there is no task') };
  for (const options of [{}, { store }]) {
    const service = await started(test, options);
    const [worker] = service.workers as [FakeWorker];
    for (const name of ['news', 'chat'])
      service.events().received(worker, { kind: 'channel-open', channel: name, keep: 100 });
    const channels = service.logged('channels-of-one-machine').map(({ channel }) => channel);
    assert.deepEqual(channels, options.store === undefined ? [] : ['news']);
  }
});
