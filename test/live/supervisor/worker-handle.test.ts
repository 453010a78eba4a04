// One worker as the supervisor sees it, without a process. Each order to it ends, whatever the worker does.
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, it, mock } from 'node:test';
import { describeEnd } from '../../../src/live/supervisor/workers/worker-end.ts';
import type { WorkerEvents } from '../../../src/live/supervisor/workers/worker-events.ts';
import { WorkerProcess } from '../../../src/live/supervisor/workers/worker-handle.ts';
import { type FromWorker, seal, type ToWorker, unseal } from '../../../src/live/worker/messages.ts';

const KILLED = describeEnd({ exitCode: null, signalCode: 'SIGKILL' });
const ORDER = { files: ['AController.js'], skip: new Map<string, string>() };
const SOCKET = { close() {} };

function create() {
  const killed: string[] = [];
  const sent: ToWorker[] = [];
  const log: string[] = [];
  const process = {
    pid: (2 ** 30) as number | undefined,
    exitCode: null,
    signalCode: 'SIGKILL',
    kill: (signal: string) => killed.push(signal),
  };
  const fake = Object.assign(new EventEmitter(), {
    id: 1,
    process,
    isConnected: () => true,
    send: (message: unknown) => sent.push(unseal<ToWorker>(message) as ToWorker),
  });
  const note = (name: string) => () => void log.push(name);
  const events: WorkerEvents = {
    disconnected: note('disconnected'),
    died: (_worker, { reason, lastState, importing }) => void log.push([lastState, reason, ...importing].join(': ')),
    gone: note('gone'),
    faulty: note('faulty'),
    importReported: (_worker, { file }) => void log.push(`imported ${file}`),
    received: (_worker, { kind }) => void log.push(kind),
  };
  const worker = new WorkerProcess(fake as never, events, 1000);
  const say = (message: FromWorker) => fake.emit('message', seal(message));
  const die = () => {
    fake.emit('disconnect');
    fake.emit('exit');
  };
  const serve = async () => {
    say({ kind: 'booted' });
    const loaded = worker.load(1, ORDER);
    say({ kind: 'loaded', groups: [], files: [] });
    await loaded;
    const listening = worker.listen(SOCKET);
    say({ kind: 'listening' });
    await listening;
  };
  return { worker, process, say, die, serve, fake, killed, sent, log };
}

describe('a worker process', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => mock.timers.reset());

  it('goes through booting, standby, loading, loaded, serving, draining and gone', async () => {
    const { worker, say, die } = create();
    const states: string[] = [worker.state];
    const note = () => states.push(worker.state);
    say({ kind: 'booted' });
    note();
    void worker.load(1, ORDER);
    note();
    say({ kind: 'loaded', groups: [], files: [] });
    note();
    void worker.listen(SOCKET);
    say({ kind: 'listening' });
    note();
    worker.drain(1);
    note();
    die();
    note();
    assert.deepEqual(states, ['booting', 'standby', 'loading', 'loaded', 'serving', 'draining', 'gone']);
  });

  it('is killed after five unanswered pings, and not during a load that has time left', async () => {
    const { worker, say, killed, die, log } = create();
    say({ kind: 'booted' });
    const loaded = worker.load(1, ORDER);
    for (let i = 0; i < 10; i++) worker.ping();
    assert.deepEqual(killed, []);
    say({ kind: 'pong' });
    say({ kind: 'loaded', groups: [], files: [] });
    assert.equal((await loaded).kind, 'loaded');
    const listening = worker.listen(SOCKET);
    say({ kind: 'listening' });
    assert.equal(await listening, 'listening');
    for (let i = 0; i < 5; i++) worker.ping();
    assert.deepEqual(killed, []);
    worker.ping();
    assert.deepEqual(killed, ['SIGKILL']);
    die();
    assert.deepEqual(log, ['serving: its event loop did not turn for 5 s', 'gone']);
    worker.ping();
  });

  it('that has the order to quit has its time limit alone, and its end is no death', () => {
    const { worker, killed, die, log } = create();
    // The worker boots slowly, and has not answered yet.
    for (let i = 0; i < 5; i++) worker.ping();
    worker.quit();
    worker.ping();
    assert.deepEqual(killed, []);
    mock.timers.tick(2000);
    die();
    assert.deepEqual([killed, log], [['SIGKILL'], ['gone']]);
  });

  it('has no time limit while a debugger holds it, unless it has the order to end', async () => {
    const held = create();
    held.say({ kind: 'booted', isInspected: true });
    void held.worker.load(1, ORDER);
    held.say({ kind: 'loaded', groups: [], files: [] });
    void held.worker.listen(SOCKET);
    for (let i = 0; i < 10; i++) held.worker.ping();
    for (let i = 0; i < 3; i++) mock.timers.tick(10_000);
    assert.deepEqual(held.killed, []);
    held.say({ kind: 'pong', isInspected: false });
    mock.timers.tick(10_000);
    assert.deepEqual(held.killed, ['SIGKILL']);
    held.die();
    assert.deepEqual(held.log, ['loaded: it did not listen within 10 s', 'gone']);

    const drained = create();
    await drained.serve();
    drained.say({ kind: 'pong', isInspected: true });
    drained.worker.drain(1000);
    mock.timers.tick(12_999);
    assert.deepEqual(drained.killed, []);
    mock.timers.tick(1);
    assert.deepEqual(drained.killed, ['SIGKILL']);
  });

  for (const patience of [undefined, 2])
    it(`is killed when it stays at one file, but not while it reports new files: patience ${patience}`, (test) => {
      let now = 0;
      test.mock.method(performance, 'now', () => now);
      const { worker, say, sent, killed } = create();
      say({ kind: 'booted' });
      void worker.load(1, { ...ORDER, ...(patience && { patience }) });
      assert.deepEqual(sent, [{ kind: 'load', files: ORDER.files, skip: [], ...(patience && { patience }) }]);
      for (let file = 0; file < 30; file++) {
        say({ kind: 'loading', file: `G${file}Controller.ts` });
        worker.ping();
        now += 10_000;
      }
      // The process of this test has no CPU time, so six times LOAD_TIMEOUT by the clock count.
      now += 50_000 * (patience ?? 1) - 10_000;
      for (let i = 0; i < 6; i++) worker.ping();
      assert.deepEqual(killed, []);
      now += 10_000 * (patience ?? 1);
      worker.ping();
      assert.deepEqual(killed, ['SIGKILL']);
    });

  it('that dies ends load and listen at once, with the file of its import', async () => {
    const { worker, say, die } = create();
    const loading = worker.load(3, ORDER);
    say({ kind: 'booted' });
    say({ kind: 'loading', file: 'AController.js' });
    assert.ok(worker.stepAge >= 0);
    die();
    assert.deepEqual(await loading, { kind: 'ended', file: 'AController.js', reason: KILLED });
    assert.equal((await worker.load(4, ORDER)).kind, 'ended');
    assert.deepEqual(await worker.listen(SOCKET), { code: KILLED });
    await worker.importGroup('New');
    worker.drain(1);
    worker.quit();
    assert.equal(worker.state, 'gone');
  });

  it('is gone when the system refuses to start it and Node emits only an error', async () => {
    const { worker, process, fake, log } = create();
    const loading = worker.load(1, ORDER);
    process.pid = undefined;
    fake.emit('error', Object.assign(new Error('spawn'), { code: 'EAGAIN' }));
    const reason = 'the system refused to start it (EAGAIN)';
    assert.deepEqual(await loading, { kind: 'ended', file: undefined, reason });
    assert.equal(worker.state, 'gone');
    assert.deepEqual(log, [`booting: ${reason}`, 'gone']);
    assert.deepEqual(await worker.load(2, ORDER), { kind: 'ended', file: undefined, reason });
  });

  it('stays alive after an error of its channel', () => {
    const { worker, fake } = create();
    fake.emit('error', Object.assign(new Error('write'), { code: 'EPIPE' }));
    assert.equal(worker.state, 'booting');
  });

  /** The awaited step, a function that begins it, and the milliseconds after which the worker is killed. */
  const ENDS: readonly (readonly [name: string, begin: (made: ReturnType<typeof create>) => unknown, limit: number])[] =
    [
      ['it does not boot', () => {}, 80_000],
      ['it does not load', ({ worker, say }) => [say({ kind: 'booted' }), void worker.load(1, ORDER)], 80_000],
      [
        'it does not finish with one of its files',
        ({ worker, say }) => [
          say({ kind: 'booted' }),
          void worker.load(1, ORDER),
          say({ kind: 'loading', file: 'A.js' }),
        ],
        80_000,
      ],
      ['it does not listen', async ({ worker, serve }) => [serve(), void worker.listen(SOCKET)], 10_000],
      ['it does not drain', ({ worker }) => worker.drain(1000), 13_000],
      ['it does not quit', ({ worker }) => worker.quit(), 2000],
      [
        'it does not quit in the middle of a load',
        ({ worker, say }) => [say({ kind: 'booted' }), void worker.load(1, ORDER), worker.quit()],
        200,
      ],
      ['it has closed its channel before it serves and does not exit', ({ fake }) => fake.emit('disconnect'), 2000],
    ];
  for (const [name, begin, limit] of ENDS) {
    it(`is killed when ${name} in time`, () => {
      const made = create();
      begin(made);
      mock.timers.tick(limit - 1);
      assert.deepEqual(made.killed, []);
      mock.timers.tick(1);
      assert.deepEqual(made.killed, ['SIGKILL']);
    });
  }

  it('gets the full load timeout again with each file', () => {
    const { worker, say, killed } = create();
    say({ kind: 'booted' });
    void worker.load(1, ORDER);
    for (const file of ['A.js', 'B.js', 'C.js']) {
      say({ kind: 'loading', file });
      mock.timers.tick(29_000);
    }
    assert.deepEqual(killed, []);
  });

  it('counts as draining when it closes its channel while it serves', async () => {
    const { worker, serve, fake, killed, log } = create();
    await serve();
    fake.emit('disconnect');
    assert.equal(worker.state, 'draining');
    mock.timers.tick(200);
    assert.deepEqual(log, ['disconnected']);
    mock.timers.tick(12_800);
    assert.deepEqual(killed, ['SIGKILL']);
  });

  it('waits 200 ms after the exit for last messages', async () => {
    const { worker, say, fake } = create();
    const loading = worker.load(1, ORDER);
    say({ kind: 'booted' });
    fake.emit('exit');
    say({ kind: 'loading', file: 'AController.js' });
    assert.equal(worker.state, 'loading');
    mock.timers.tick(200);
    assert.equal((await loading).kind === 'ended' && worker.state, 'gone');
  });

  it('reports the file of a new group whose import ended it', async () => {
    const { serve, say, die, log } = create();
    await serve();
    for (const file of ['AController.js', 'BController.js']) say({ kind: 'loading', file });
    say({ kind: 'imported', group: 'A', load: { group: 'A', file: 'AController.js', ok: true }, files: [] });
    die();
    assert.deepEqual(log, ['imported AController.js', `serving: ${KILLED}: BController.js`, 'gone']);
  });

  it('blames no file that had vanished before its import', async () => {
    const { serve, say, die, log } = create();
    await serve();
    say({ kind: 'loading', file: 'GoneController.js' });
    say({ kind: 'imported', group: 'Gone', load: undefined, files: [] });
    die();
    assert.deepEqual(log, [`serving: ${KILLED}`, 'gone']);
  });

  it('blames no file that it began after the order to quit', async () => {
    const { worker, say, die, log } = create();
    say({ kind: 'booted' });
    void worker.load(1, ORDER);
    worker.quit();
    say({ kind: 'loading', file: 'AController.js' });
    worker.kill('the supervisor ends at once');
    die();
    assert.deepEqual(log, ['draining: the supervisor ends at once', 'gone']);
  });

  it('that drains still blames the file of a new group', async () => {
    const { worker, serve, say, die, log } = create();
    await serve();
    worker.drain(1000);
    say({ kind: 'loading', file: 'AController.js' });
    die();
    assert.deepEqual(log, [`draining: ${KILLED}: AController.js`, 'gone']);
  });

  it('returns the error when it cannot listen, and is not killed', async () => {
    const { worker, say, killed } = create();
    say({ kind: 'booted' });
    void worker.load(1, ORDER);
    say({ kind: 'loaded', groups: [], files: [] });
    const listening = worker.listen(SOCKET);
    say({ kind: 'listen-failed', code: 'EADDRINUSE' });
    assert.deepEqual(await listening, { code: 'EADDRINUSE' });
    mock.timers.tick(10_000);
    assert.deepEqual(killed, []);
  });

  it('reports its end once, even if its channel ends after its exit', async () => {
    const { fake, log } = create();
    fake.emit('exit');
    mock.timers.tick(200);
    fake.emit('disconnect');
    assert.deepEqual(log, [`booting: ${KILLED}`, 'gone']);
  });

  it('ends importGroup with its answer, with its death, or after two seconds', async () => {
    const dying = create();
    await dying.serve();
    const interrupted = dying.worker.importGroup('A');
    dying.die();
    await interrupted;
    const { worker, serve, say } = create();
    await serve();
    const imported = worker.importGroup('A');
    say({ kind: 'imported', group: 'A', load: { group: 'A', file: 'AController.js', ok: false }, files: [] });
    await imported;
    const absent = worker.importGroup('B');
    say({ kind: 'imported', group: 'B', load: undefined, files: [] });
    await absent;
    const hanging = worker.importGroup('C');
    mock.timers.tick(2000);
    await hanging;
  });

  it('ignores messages out of order and messages of a controller', () => {
    const { worker, say, fake, log } = create();
    say({ kind: 'listening' });
    say({ kind: 'loaded', groups: [], files: [] });
    fake.emit('message', { kind: 'load-failed', reason: 'x' });
    fake.emit('message', { kind: 'faulty' });
    assert.equal(worker.state, 'booting');
    say({ kind: 'booted' });
    say({ kind: 'booted' });
    say({ kind: 'faulty' });
    say({ kind: 'faulty' });
    assert.equal(worker.state, 'standby');
    assert.deepEqual(log, ['faulty']);
  });
});
