// The parts of the cluster room that need no process: words, clocks, lists, and the watch over a folder.
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { mkdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { fingerprint } from '../../src/base/fingerprint.ts';
import type { Log, LogFields } from '../../src/base/log.ts';
import { createBackoff } from '../../src/supervisor/backoff.ts';
import { ABSENT, firstDifference, takeSnapshot } from '../../src/supervisor/folder/snapshot.ts';
import { createFolderWatch } from '../../src/supervisor/folder/watch.ts';
import { createNewGroups } from '../../src/supervisor/new-groups.ts';
import { createPoisonList } from '../../src/supervisor/poison-list.ts';
import { describeListenError, findPort, hostAndPort } from '../../src/supervisor/port.ts';
import { createPortKeeper } from '../../src/supervisor/port-keeper.ts';
import { createRejections, RETRY } from '../../src/supervisor/rejections.ts';
import { createRetryPauses } from '../../src/supervisor/retry-pauses.ts';
import { createTrials } from '../../src/supervisor/trials.ts';
import { createWorkerProcess, type ListenOutcome, type WorkerEvents, type WorkerProcess } from '../../src/supervisor/worker-handle.ts';
import { drain } from '../../src/worker/drain.ts';
import { parseFromWorker, parseToWorker } from '../../src/worker/messages.ts';
import { createFolder, write } from '../support/cluster-server.ts';

describe('messages', () => {
  const group = { group: 'Test', file: 'TestController.js', ok: false, error: 'x', at: 'x:1' };
  const files = [{ path: '/a', fingerprint: 'absent' }];
  const rows: readonly (readonly [
    name: string,
    parse: typeof parseToWorker | typeof parseFromWorker,
    message: unknown,
    isKnown: boolean,
  ])[] = [
    ['load', parseToWorker, { kind: 'load', generation: 1, files: ['A.js'], skip: [['A.js', 'why']] }, true],
    ['load with half a pair', parseToWorker, { kind: 'load', generation: 1, files: ['A.js'], skip: [['A.js']] }, false],
    ['listen on all interfaces', parseToWorker, { kind: 'listen', port: 1, host: undefined }, true],
    ['listen without a port', parseToWorker, { kind: 'listen' }, false],
    ['drain for no number', parseToWorker, { kind: 'drain', timeout: Number.NaN, acceptFor: null }, false],
    ['load without names', parseToWorker, { kind: 'load', generation: 1, files: [1], skip: [] }, false],
    ['import', parseToWorker, { kind: 'import', group: 'Test' }, true],
    ['shared', parseToWorker, { kind: 'shared', group: 'Test' }, true],
    ['shared without a group', parseToWorker, { kind: 'shared' }, false],
    ['ping', parseToWorker, { kind: 'ping' }, true],
    ['an inherited name', parseToWorker, { kind: 'toString' }, false],
    ['loaded', parseFromWorker, { kind: 'loaded', groups: [group], files }, true],
    ['loaded with no list', parseFromWorker, { kind: 'loaded', groups: group, files }, false],
    ['imported', parseFromWorker, { kind: 'imported', group, files }, true],
    ['nothing to import', parseFromWorker, { kind: 'nothing-to-import', group: 'Test' }, true],
    ['nothing to import, without a group', parseFromWorker, { kind: 'nothing-to-import' }, false],
    ['imported with a nameless file', parseFromWorker, { kind: 'imported', group, files: [{}] }, false],
    ['a message of a controller', parseFromWorker, { hello: 'parent' }, false],
    ['a text', parseFromWorker, 'pong', false],
    ['null', parseFromWorker, null, false],
    ['pong', parseFromWorker, { kind: 'pong' }, true],
  ];
  for (const [name, parse, message, isKnown] of rows) {
    it(`${parse.name}: ${name}`, () => assert.equal(parse(message), isKnown ? message : undefined));
  }
});

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

describe('createPoisonList', () => {
  it('holds a file for as long as it stays as it was', (test) => {
    const dir = createFolder(test, { 'AController.js': '1', 'lib.js': '1' });
    const look = () => takeSnapshot({ dir, paths: [], wholeTree: true }) ?? new Map();
    const poison = createPoisonList(dir);
    poison.add('AController.js', 'it hangs', look());
    assert.deepEqual([...poison.active()], [['AController.js', 'it hangs']]);
    assert.equal(poison.suspect(look()), undefined);
    write(dir, 'lib.js', '22');
    assert.equal(poison.suspect(look()), 'AController.js');
    write(dir, 'AController.js', '22');
    assert.equal(poison.active().size, 0);
  });
});

describe('takeSnapshot', () => {
  it('is undefined for a folder that is not there', () => {
    assert.equal(takeSnapshot({ dir: '/nowhere/at/all', paths: [], wholeTree: true }), undefined);
  });

  it('sees links by their targets, absent paths, and code files of the tree; neither packages nor data', (test) => {
    const dir = createFolder(test, {
      'AController.js': '',
      'lib/a.js': '',
      'lib/data.db': '',
      'node_modules/p/index.js': '',
      '.git/x.js': '',
    });
    symlinkSync('lib/a.js', join(dir, 'link.js'));
    symlinkSync('nowhere', join(dir, 'dangling.js'));
    const seen = takeSnapshot({ dir, paths: [join(dir, 'missing.js')], wholeTree: true });
    assert.equal(seen?.get('folder'), realpathSync(dir));
    assert.equal(seen?.get('group:A'), 'AController.js');
    assert.equal(seen?.get(`link:${join(dir, 'link.js')}`), join(dir, 'lib/a.js'));
    assert.equal(seen?.get(`link:${join(dir, 'dangling.js')}`), ABSENT);
    assert.equal(seen?.get(`file:${join(dir, 'missing.js')}`), ABSENT);
    const names = [...(seen ?? new Map()).keys()].join('\n');
    assert.match(names, /file:\S+lib\/a\.js/);
    assert.doesNotMatch(names, /data\.db|node_modules|\.git/);
  });

  it('firstDifference names what changed, and what is new only when asked', () => {
    const before = new Map([['file:/a', '1']]);
    assert.equal(firstDifference(before, new Map([['file:/a', '2']]), false), 'file:/a');
    assert.equal(firstDifference(before, new Map(), false), 'file:/a');
    const more = new Map([...before, ['file:/b', '1']]);
    assert.equal(firstDifference(before, more, false), undefined);
    assert.equal(firstDifference(before, more, true), 'file:/b');
  });
});

describe('createFolderWatch', () => {
  const file = (dir: string, name: string) => ({ path: join(dir, name), fingerprint: fingerprint(join(dir, name)) });
  const group = (name: string, ok = true) => ({ group: name, file: `${name}Controller.js`, ok });

  function watched(test: TestContext, files: Record<string, string>) {
    const dir = createFolder(test, files);
    const events = new EventEmitter();
    const { log, lines } = createMemoryLog(() => events.emit('line'));
    const watch = createFolderWatch({ dir, log, onChange: (what) => events.emit('change', what) });
    test.after(() => watch.stop());
    const changed = () => new Promise<string>((resolve) => events.once('change', resolve));
    return { dir, watch, lines, changed, logged: () => new Promise((resolve) => events.once('line', resolve)) };
  }

  it('tells of a change in what was loaded, and of none in what was not', async (test) => {
    const { dir, watch, changed } = watched(test, { 'AController.js': '1', 'lib/a.js': '1', 'lib/other.js': '1' });
    const before = watch.look() ?? new Map();
    watch.tried({
      before,
      begunAt: Date.now(),
      groups: [group('A')],
      files: [file(dir, 'AController.js'), file(dir, 'lib/a.js')],
      broken: false,
    });
    watch.start();
    const change = changed();
    write(dir, 'lib/other.js', '22');
    write(dir, 'BController.js', 'new');
    write(dir, 'lib/a.js', '22');
    assert.equal(await change, join(dir, 'lib/a.js'));
  });

  it('takes a file that changed while it was loaded for changed', async (test) => {
    const { dir, watch, changed } = watched(test, { 'AController.js': '1' });
    const before = watch.look() ?? new Map();
    const read = file(dir, 'AController.js');
    write(dir, 'AController.js', '22');
    watch.tried({ before, begunAt: Date.now(), groups: [group('A')], files: [read, file(dir, 'AController.js')], broken: false });
    assert.equal(watch.agrees([read]), false);
    watch.start();
    assert.equal(await changed(), join(dir, 'AController.js'));
  });

  it('takes a file outside of the look for changed when it is younger than the load', async (test) => {
    const { dir, watch, changed } = watched(test, { 'AController.js': '1' });
    const before = watch.look() ?? new Map();
    const outside = join(dir, '..', 'outside.js');
    writeFileSync(outside, '1');
    const files = [file(dir, 'AController.js'), { path: outside, fingerprint: fingerprint(outside) }];
    watch.tried({ before, begunAt: Date.now() - 1000, groups: [group('A')], files, broken: false });
    watch.start();
    assert.equal(await changed(), outside);
  });

  it('watches a group from its import in place on, and any change of a tree that is broken', async (test) => {
    const { dir, watch, changed } = watched(test, { 'AController.js': '1' });
    const look = () => watch.look() ?? new Map();
    watch.tried({ before: look(), begunAt: Date.now(), groups: [group('A')], files: [file(dir, 'AController.js')], broken: false });
    watch.start();
    write(dir, 'BController.js', '1');
    watch.imported(group('B'), [file(dir, 'BController.js')]);
    let change = changed();
    write(dir, 'BController.js', '22');
    assert.equal(await change, join(dir, 'BController.js'));
    watch.tried({ before: look(), begunAt: Date.now(), groups: [group('A'), group('B', false)], files: [], broken: true });
    change = changed();
    mkdirSync(join(dir, 'lib'));
    write(dir, 'lib/missing.js', '1');
    assert.match(await change, /lib\/missing\.js/);
  });

  it('a file that never settles is told of all the same', async (test) => {
    const { dir, watch, changed } = watched(test, { 'AController.js': '1' });
    watch.tried({
      before: watch.look() ?? new Map(),
      begunAt: Date.now(),
      groups: [group('A')],
      files: [file(dir, 'AController.js')],
      broken: false,
    });
    watch.start();
    const writing = setInterval(() => writeFileSync(join(dir, 'AController.js'), `${performance.now()}`), 5);
    test.after(() => clearInterval(writing));
    assert.equal(await changed(), join(dir, 'AController.js'));
  });

  it('a folder that goes is logged once, and is no change; one that comes back is', async (test) => {
    const { dir, watch, lines, changed, logged } = watched(test, { 'AController.js': '1' });
    watch.tried({
      before: watch.look() ?? new Map(),
      begunAt: Date.now(),
      groups: [group('A')],
      files: [file(dir, 'AController.js')],
      broken: false,
    });
    watch.start();
    const line = logged();
    rmSync(dir, { recursive: true });
    await line;
    const change = changed();
    write(dir, 'AController.js', '22');
    assert.equal(await change, join(dir, 'AController.js'));
    assert.deepEqual(
      lines.map(({ event }) => event),
      ['folder-vanished', 'folder-back'],
    );
  });
});

describe('port', () => {
  it('findPort finds a free one, and says why it cannot', async () => {
    const port = await findPort(0, '127.0.0.1');
    assert.ok(port > 0);
    await assert.rejects(
      findPort(0, '192.0.2.1'),
      /Cannot listen on 192\.0\.2\.1:0: the address is not one of this machine \(EADDRNOTAVAIL\)/,
    );
  });

  it('hostAndPort and describeListenError write addresses as in a URL', () => {
    assert.equal(hostAndPort('::1', 80), '[::1]:80');
    assert.equal(hostAndPort(undefined, 80), 'localhost:80');
    assert.equal(describeListenError(80, undefined, 'EOTHER'), 'Cannot listen on port 80: the system refuses (EOTHER)');
  });
});

describe('createPortKeeper', () => {
  it('says in one line why nobody accepts, and nothing as long as somebody does', async () => {
    const keeper = createPortKeeper({ port: 80, host: undefined, log: createMemoryLog().log, serving: () => [] });
    const worker = (outcome: ListenOutcome) => ({ listen: async () => outcome }) as unknown as WorkerProcess;
    const [accepting, failing] = [worker('listening'), worker({ code: 'EMFILE' })];
    assert.equal(await keeper.open([accepting, failing]), undefined);
    assert.equal(await keeper.open([failing, failing]), describeListenError(80, undefined, 'EMFILE'));
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

describe('createWorkerProcess', () => {
  function create() {
    const killed: string[] = [];
    const sent: unknown[] = [];
    const log: string[] = [];
    const process = { pid: 1, exitCode: null, signalCode: 'SIGKILL', kill: (signal: string) => killed.push(signal) };
    const fake = Object.assign(new EventEmitter(), {
      id: 1,
      process,
      isConnected: () => true,
      send: (message: unknown) => sent.push(message),
    });
    const note = (name: string) => () => void log.push(name);
    const events: WorkerEvents = {
      lost: note('lost'),
      took: note('took'),
      died: (_worker, reason) => void log.push(reason),
      gone: note('gone'),
      faulty: note('faulty'),
      imported: note('imported'),
      read: note('read'),
      nothingToImport: note('nothing to import'),
    };
    return {
      worker: createWorkerProcess(fake as never, events),
      say: (message: unknown) => fake.emit('message', message),
      fake,
      killed,
      sent,
      log,
    };
  }

  it('is killed after five pings without an answer, ten while it loads, and any answer begins the count again', async () => {
    const { worker, say, killed, fake, log } = create();
    say({ kind: 'booted' });
    const loaded = worker.load(1, { files: [], skip: new Map() });
    for (let i = 0; i < 10; i++) worker.ping();
    assert.deepEqual(killed, []);
    say({ kind: 'pong' });
    say({ kind: 'loaded', groups: [], files: [] });
    assert.equal((await loaded).kind, 'loaded');
    const listening = worker.listen(1, undefined);
    say({ kind: 'listening' });
    assert.equal(await listening, 'listening');
    for (let i = 0; i < 5; i++) worker.ping();
    assert.deepEqual(killed, []);
    worker.ping();
    assert.deepEqual(killed, ['SIGKILL']);
    fake.emit('disconnect');
    assert.equal(worker.state, 'lost');
    fake.emit('exit');
    assert.deepEqual(log, ['lost', 'its event loop did not turn for 5 s', 'gone']);
    worker.ping();
  });

  it('load and listen of a worker that is gone end at once, with the file that it was importing', async () => {
    const { worker, say, fake } = create();
    const loading = worker.load(3, { files: ['A.js', 'B.js'], skip: new Map([['B.js', 'why']]) });
    say({ kind: 'booted' });
    say({ kind: 'loading', file: 'AController.js' });
    assert.ok(worker.loadingFor >= 0);
    fake.emit('exit');
    fake.emit('disconnect');
    assert.deepEqual(await loading, { kind: 'ended', file: 'AController.js', reason: 'it was ended by SIGKILL' });
    assert.equal((await worker.load(4, { files: [], skip: new Map() })).kind, 'ended');
    assert.deepEqual(await worker.listen(1, undefined), { code: 'it was ended by SIGKILL' });
    worker.drain(1);
    worker.quit();
    assert.equal(worker.state, 'gone');
  });

  it('what it says out of turn changes nothing', () => {
    const { worker, say, log } = create();
    say({ kind: 'listening' });
    say({ kind: 'loaded', groups: [], files: [] });
    say({ not: 'ours' });
    assert.equal(worker.state, 'booting');
    say({ kind: 'booted' });
    say({ kind: 'booted' });
    say({ kind: 'faulty' });
    say({ kind: 'faulty' });
    assert.equal(worker.state, 'standby');
    assert.deepEqual(log, ['faulty']);
  });

  it('one that does not drain, or does not quit, is killed a little later', (test) => {
    test.mock.timers.enable({ apis: ['setTimeout'] });
    const draining = create();
    draining.worker.drain(1000);
    test.mock.timers.tick(2999);
    assert.deepEqual(draining.killed, []);
    test.mock.timers.tick(1);
    assert.deepEqual(draining.killed, ['SIGKILL']);
    const quitting = create();
    quitting.worker.quit();
    test.mock.timers.tick(2000);
    assert.deepEqual(quitting.killed, ['SIGKILL']);
  });
});

function createMemoryLog(onLine = () => {}): { log: Log; lines: { event: string; error?: unknown }[] } {
  const lines: { event: string; error?: unknown }[] = [];
  const note = (event: string, fields: LogFields = {}) => {
    lines.push({ ...fields, event });
    onLine();
  };
  return { log: { debug: note, info: note, warn: note, error: note }, lines };
}

describe('createNewGroups', () => {
  function create(count: number) {
    const sent: string[] = [];
    const workers = Array.from({ length: count }, (_, id) => {
      const send = (message: { kind: string; group?: string }) => void sent.push(`${id}: ${message.kind} ${message.group}`);
      return { id, send } as unknown as WorkerProcess;
    });
    return { workers, sent, groups: createNewGroups(() => workers) };
  }

  it('has every other worker import, and lets those that have it answer when the last has said how it fared', () => {
    const { workers, sent, groups } = create(3);
    const [first, second, third] = workers as [WorkerProcess, WorkerProcess, WorkerProcess];
    groups.imported(first, 'New');
    assert.deepEqual(sent.splice(0), ['1: import New', '2: import New']);
    groups.imported(second, 'New');
    assert.deepEqual(sent, []);
    assert.ok(groups.isPending('New'));
    groups.done(third, 'New');
    assert.deepEqual(sent.splice(0), ['0: shared New', '1: shared New']);
    assert.ok(!groups.isPending('New'));
    groups.done(third, 'New');
    assert.deepEqual(sent, []);
  });

  it('does not wait for a worker that is gone, and not at all where there is no other', () => {
    const { workers, sent, groups } = create(2);
    groups.imported(workers[0] as WorkerProcess, 'New');
    groups.gone(workers[1] as WorkerProcess);
    assert.deepEqual(sent, ['1: import New', '0: shared New']);
    const alone = create(1);
    alone.groups.imported(alone.workers[0] as WorkerProcess, 'New');
    assert.deepEqual(alone.sent, ['0: shared New']);
  });

  it('lets a worker that is on its way out answer as well', () => {
    const { workers, sent, groups } = create(1);
    const leaving = { send: ({ kind }: { kind: string }) => void sent.push(`leaving: ${kind}`) } as unknown as WorkerProcess;
    groups.imported(leaving, 'New');
    groups.imported(workers[0] as WorkerProcess, 'New');
    assert.deepEqual(sent, ['0: import New', 'leaving: shared', '0: shared New']);
  });
});

describe('drain', () => {
  async function start(test: TestContext) {
    const server = createServer((_request, response) => response.end('served'));
    test.after(() => server.close());
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    const { port } = server.address() as AddressInfo;
    const ask = () =>
      fetch(`http://127.0.0.1:${port}`, { headers: { connection: 'close' } }).then(
        (answer) => answer.text(),
        (error: Error) => (error.cause as NodeJS.ErrnoException).code,
      );
    const begin = (acceptFor: number | null) =>
      new Promise<void>((onDrained) => drain({ server, setDraining() {} }, { timeout: 20_000, acceptFor, takenOver: () => 0, onDrained }));
    return { ask, begin };
  }

  it('where others accept, refuses from its beginning on', async (test) => {
    const { ask, begin } = await start(test);
    const drained = begin(null);
    assert.equal(await ask(), 'ECONNREFUSED');
    await drained;
  });

  it('where nobody else accepts, serves who still comes, and refuses only then', async (test) => {
    const { ask, begin } = await start(test);
    const drained = begin(100);
    // It connects after the order to leave, and the kernel completes that at once.
    assert.equal(await ask(), 'served');
    await drained;
    assert.equal(await ask(), 'ECONNREFUSED');
  });
});
