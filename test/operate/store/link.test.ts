// The supervisor's connection to the store, with a script in place of the store-host. Needs no database.
import assert from 'node:assert/strict';
import cluster, { type Worker } from 'node:cluster';
import { EventEmitter, once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { createSharedStore, type SharedStore } from '../../../src/operate/store/link.ts';
import type { Answer, FromHost, HostState, Request, ToWorkerStore } from '../../../src/operate/store/messages.ts';
import { createMemoryLog, type MemoryLine } from '../../support/memory-log.ts';

/** Run number N of the script does step N. Further runs repeat the last step. */
interface Step {
  readonly messages?: readonly FromHost[];
  readonly stderr?: string;
  /** The exit code; without one, the script runs until its channel is closed. */
  readonly exit?: number;
  /** The answer to each call; without one, the first call ends the script. */
  readonly answer?: Answer;
  /** The answers to the first calls. */
  readonly answers?: readonly Answer[];
}

const SCRIPT = `
import { appendFileSync, readFileSync, writeSync } from 'node:fs';
const [path] = process.argv.slice(2);
appendFileSync(path + '.runs', 'x');
const steps = JSON.parse(readFileSync(path, 'utf8'));
const { messages = [], stderr = '', exit, answer: last, answers = [] } = steps[Math.min(steps.length, readFileSync(path + '.runs').length) - 1];
process.on('disconnect', () => process.exit());
process.on('message', ({ call, request }) => {
  appendFileSync(path + '.requests', JSON.stringify(request) + '\\n');
  const answer = answers.shift() ?? last;
  if (answer === undefined) process.exit(1);
  process.send({ kind: 'answer', call, answer });
});
for (const message of messages) await new Promise((resolve) => process.send(message, resolve));
writeSync(2, stderr);
if (exit !== undefined) process.exit(exit);
`;
const STATE: HostState = {
  ...{ awayReason: null, needsOperator: false, hasTable: true, age: 100_000 },
  ...{ machines: 1, tableBytes: 0, tableLimit: 1, secondsAhead: 0, fullReads: 0, missedBells: 0 },
};

interface Bench {
  readonly store: SharedStore;
  /** Resolves with the first line of this event. */
  logged(event: string): Promise<MemoryLine>;
  /** How often the script has run. */
  runs(): number;
  /** The requests of the calls. */
  requests(): unknown[];
}

function openStore(
  test: TestContext,
  steps: readonly Step[],
  extraArguments: readonly string[] = [],
  maxAge = Number.POSITIVE_INFINITY,
): Bench {
  const folder = mkdtempSync(join(tmpdir(), 'gatefold-link-'));
  test.after(() => rmSync(folder, { recursive: true, force: true }));
  const scriptPath = join(folder, 'store-host.mjs');
  writeFileSync(scriptPath, SCRIPT);
  const path = join(folder, 'steps.json');
  writeFileSync(path, JSON.stringify(steps));
  let check = () => {};
  const { log, lines } = createMemoryLog(() => check());
  const store = createSharedStore({
    ...{ scriptPath, scriptArguments: [path, ...extraArguments], maxAge, log },
    writeLine() {},
  });
  test.after(() => store.close());
  return {
    store,
    logged: (event) =>
      new Promise((resolve) => {
        check = () => {
          const line = lines.find((each) => each.event === event);
          if (line !== undefined) resolve(line);
        };
        check();
      }),
    runs: () => readFileSync(`${path}.runs`).length,
    requests: () =>
      readFileSync(`${path}.requests`, 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
  };
}

/** A worker of this process's cluster that keeps the messages that it gets. */
function addWorker(test: TestContext) {
  const notices: boolean[] = [];
  const changes: object[] = [];
  const answers = new EventEmitter();
  let calls = 0;
  const worker = {
    isConnected: () => true,
    send({ gatefold: message }: { gatefold: ToWorkerStore }) {
      if (message.call === undefined && message.changed !== undefined) changes.push(message.changed);
      else if (message.call === undefined) notices.push(message.isTooOld);
      else answers.emit(String(message.call), message.answer);
    },
  } as unknown as Worker;
  const workers = cluster.workers as NodeJS.Dict<Worker>;
  workers[1] = worker;
  test.after(() => {
    delete workers[1];
    cluster.removeAllListeners('message');
  });
  const say = (message: unknown) => cluster.emit('message', worker, message);
  /** Makes the call of a worker. @returns its answer */
  async function call(request: Request): Promise<Answer> {
    const number = ++calls;
    const answered = once(answers, String(number));
    say({ gatefold: { kind: 'store', call: number, request } });
    return (await answered)[0];
  }
  return { call, say, notices, changes };
}

describe('the store-host of a supervisor', () => {
  for (const [maxAge, isTooOld] of [
    [1_000_000, false],
    [50_000, true],
  ] as const)
    it(`corrects isTooOld to ${isTooOld} in a worker that called before the store-host knew the age of the table`, async (test) => {
      const { store, logged } = openStore(test, [{ messages: [{ kind: 'state', state: STATE }] }], [], maxAge);
      const { call, notices } = addWorker(test);
      const started = store.start();
      // The worker calls before the store-host can have said how old the table is.
      assert.deepEqual(await call({ kind: 'look' }), { error: 'The store is away: the store-host starts' });
      await started;
      assert.deepEqual([store.status().isTooOld, notices.at(-1)], [isTooOld, isTooOld]);
      if (isTooOld) await logged('store-too-old');
    });

  it('logs a table that is too old, although the first start of the store-host failed', async (test) => {
    const steps = [{ exit: 1 }, { messages: [{ kind: 'state', state: STATE }] }] as const;
    const { store, logged } = openStore(test, steps, [], 50_000);
    await store.start();
    await logged('store-too-old');
  });

  it('returns its answers to the supervisor and to workers', async (test) => {
    const answer = { tokens: [3] };
    const { store, requests } = openStore(test, [{ messages: [{ kind: 'state', state: STATE }], answer }]);
    const { call } = addWorker(test);
    await store.start();
    assert.deepEqual(await store.spend([]), [3]);
    // All three share one look, which had not begun.
    assert.deepEqual(await Promise.all([1, 2, 3].map(() => call({ kind: 'look' }))), [answer, answer, answer]);
    assert.deepEqual(await call({ kind: 'look' }), answer);
    const looks = requests().slice(1);
    assert.deepEqual(looks, Array(2).fill({ kind: 'look' }), 'a look that was shared answers no later call');
  });

  it('gives a worker its notice for a call alone, and for no other message', async (test) => {
    const { store } = openStore(test, [{ messages: [{ kind: 'state', state: STATE }], answer: {} }], [], 1e9);
    const { call, say, notices } = addWorker(test);
    await store.start();
    notices.length = 0;
    for (const other of [null, undefined, {}, { gatefold: { kind: 'booted', call: 1, request: { kind: 'look' } } }])
      say(other);
    assert.deepEqual(notices, []);
    assert.deepEqual(await call({ kind: 'look' }), {});
    assert.deepEqual(notices, [false]);
  });

  it('keeps the state of tasks by the name of the service, and its errors are thrown', async (test) => {
    const tasks = { version: '4', text: 'state' };
    const { store, requests } = openStore(test, [
      {
        messages: [{ kind: 'state', state: STATE }],
        answers: [{}, { tasks }, { isWritten: true }, { isWritten: false }, { error: 'it is read-only' }],
      },
    ]);
    await store.start();
    const cell = store.taskCell('shop');
    assert.deepEqual([await cell.read(), await cell.read()], [{ version: '', text: '' }, tasks]);
    assert.deepEqual([await cell.write('4', 'next'), await cell.write('4', 'other')], [true, false]);
    await assert.rejects(cell.read(), { message: 'STORE: it is read-only' });
    const request = { kind: 'tasks', service: 'shop' };
    assert.deepEqual(requests(), [
      request,
      request,
      { ...request, version: '4', text: 'next' },
      { ...request, version: '4', text: 'other' },
      request,
    ]);
  });

  it('has a table without an age when the copy of this machine was never complete', async (test) => {
    const steps = [{ messages: [{ kind: 'state', state: { ...STATE, age: null } }] }] as const;
    const { store } = openStore(test, steps, [], 1e12);
    await store.start();
    assert.deepEqual([store.status().ageSeconds, store.status().isTooOld], [null, true]);
  });

  it('waits longer with its restart while an operator must change something first', async (test) => {
    const pauses: number[] = [];
    for (const reason of [undefined, 'the password is wrong']) {
      const { store, logged } = openStore(test, [
        { messages: [reason === undefined ? { kind: 'state', state: STATE } : { kind: 'failed', reason }], exit: 1 },
      ]);
      const starting = store.start().catch(() => {});
      const { setTimeout } = globalThis;
      const mocked = test.mock.method(globalThis, 'setTimeout', (callback: () => void, pause = 0) => {
        pauses.push(pause);
        return setTimeout(callback, 1e9).unref();
      });
      await starting;
      await logged('store-host-exited');
      mocked.mock.restore();
      store.close();
    }
    const [short = 0, long = 0] = pauses;
    assert.ok(pauses.length === 2 && long > short, String(pauses));
  });

  it('counts as away after five seconds without a message, and knows the age of the table', async (test) => {
    let now = 1000;
    test.mock.method(performance, 'now', () => now);
    const { store } = openStore(test, [{ messages: [{ kind: 'state', state: STATE }], answer: { tokens: [3] } }]);
    assert.deepEqual([store.status().ageSeconds, store.status().isTooOld], [null, false]);
    await store.start();
    const seen = () => [store.status().state.awayReason, store.status().ageSeconds];
    assert.deepEqual(seen(), [null, 100]);
    now = 6000;
    assert.deepEqual(seen(), [null, 105]);
    now = 6001;
    assert.deepEqual(seen(), ['the store-host does not answer', 105]);
    assert.equal(await store.spend([]), undefined);
  });

  for (const [maxAge, isTooOld] of [
    [100_000, false],
    [99_999, true],
  ] as const)
    it(`${isTooOld ? 'refuses' : 'takes'} a table of 100 s with a maximum age of ${maxAge} ms`, async (test) => {
      test.mock.method(performance, 'now', () => 1000);
      const { store } = openStore(test, [{ messages: [{ kind: 'state', state: STATE }] }], [], maxAge);
      await store.start();
      assert.equal(store.status().isTooOld, isTooOld);
    });

  it('announces changed rows to workers', async (test) => {
    const changed = { revoked: ['one', 'two'], added: ['{}'] };
    const messages = [
      { kind: 'rows-changed', changed },
      { kind: 'state', state: STATE },
    ] as const;
    const { store } = openStore(test, [{ messages }]);
    const { changes } = addWorker(test);
    await store.start();
    assert.deepEqual(changes, [changed]);
  });

  for (const [copy, state, expected] of [
    ['cannot be written', { awayReason: 'ENOSPC', age: 0 }, [{ revoked: ['one', 'two'], added: [] }]],
    ['is older, after a restart of the store-host', {}, [{ revoked: ['one', 'two'], added: [] }]],
    ['has them', { age: 0 }, []],
  ] as const)
    it(`announces revoked rows to a new worker ${expected.length} times where the copy ${copy}`, async (test) => {
      const changed = [
        { revoked: ['one'], added: ['{}'] },
        { revoked: ['two'], added: [] },
      ];
      const messages = [
        ...changed.map((rows) => ({ kind: 'rows-changed', changed: rows }) as const),
        { kind: 'state', state: { ...STATE, ...state } },
      ] as const;
      const { store } = openStore(test, [{ messages, answer: {} }]);
      await store.start();
      const { call, changes } = addWorker(test);
      await call({ kind: 'look' });
      await call({ kind: 'look' });
      assert.deepEqual(changes, expected, 'at its first call');
    });

  it('announces no row to a new worker that was removed and came again', async (test) => {
    const changed = [
      { revoked: ['one', 'two'], added: [] },
      { revoked: [], added: ['{"id":"one"}', '{'] },
    ];
    const messages = [
      ...changed.map((rows) => ({ kind: 'rows-changed', changed: rows }) as const),
      { kind: 'state', state: { ...STATE, awayReason: 'ENOSPC', age: 0 } },
    ] as const;
    const { store } = openStore(test, [{ messages, answer: {} }]);
    await store.start();
    const { call, changes } = addWorker(test);
    await call({ kind: 'look' });
    assert.deepEqual(changes, [{ revoked: ['two'], added: [] }]);
  });

  it('fails pending calls when it exits', async (test) => {
    const { store } = openStore(test, [{ messages: [{ kind: 'state', state: STATE }] }]);
    const { call } = addWorker(test);
    await store.start();
    assert.deepEqual(await call({ kind: 'look' }), { error: 'the store-host has ended' });
  });

  it('adds the time of failed restarts to the age of the table', async (test) => {
    const { store, logged } = openStore(test, [
      { messages: [{ kind: 'state', state: STATE }], exit: 1 },
      { messages: [{ kind: 'failed', reason: 'a file is damaged' }] },
    ]);
    await store.start();
    const startedAt = performance.now();
    await logged('store-unusable');
    const seconds = (performance.now() - startedAt) / 1000;
    // The status is rounded to tenths of a second.
    await new Promise((resolve) => setImmediate(resolve));
    const { ageSeconds, state } = store.status();
    assert.equal(state.awayReason, 'a file is damaged');
    assert.ok((ageSeconds ?? 0) >= 100 + seconds - 0.1, `${ageSeconds} s, of which ${seconds} s passed here`);
  });

  it('fails the start of the supervisor with its reason when there is no table', async (test) => {
    const { store } = openStore(test, [{ messages: [{ kind: 'failed', reason: 'a file is damaged' }], exit: 1 }]);
    await assert.rejects(store.start(), { message: 'a file is damaged' });
  });

  it('is restarted after it exits, and the log has the end of its standard error', async (test) => {
    const { store, logged, runs } = openStore(test, [
      { stderr: `${'x'.repeat(60_000)} the end\n`, exit: 3 },
      { messages: [{ kind: 'state', state: STATE }] },
    ]);
    await store.start();
    const { code, error } = await logged('store-host-exited');
    assert.equal(code, 3);
    assert.match(String(error), /^x{1900,} the end$/);
    assert.equal(runs(), 2);
  });

  it('is restarted after the system did not find its executable', async (test) => {
    const { store, logged } = openStore(test, [{ messages: [{ kind: 'state', state: STATE }] }]);
    const { execPath } = process;
    test.after(() => {
      process.execPath = execPath;
    });
    process.execPath = join(tmpdir(), 'no', 'such', 'node');
    const start = store.start();
    const { error } = await logged('store-host-exited');
    assert.equal(error, 'it does not exist');
    process.execPath = execPath;
    await start;
  });

  it('logs store-host-exited when the system refuses to start its process', async (test) => {
    const { store, logged } = openStore(test, [{}], ['x'.repeat(4_000_000)]);
    store.start().catch(() => {});
    const { code, error } = await logged('store-host-exited');
    assert.equal(code, null);
    assert.match(String(error), /E2BIG/);
  });

  it('is not restarted after the supervisor has closed the store', async (test) => {
    const { store, logged, runs } = openStore(test, [
      { messages: [{ kind: 'state', state: STATE }], exit: 1 },
      { messages: [{ kind: 'state', state: STATE }] },
    ]);
    test.mock.timers.enable({ apis: ['setTimeout'] });
    await store.start();
    await logged('store-host-exited');
    store.close();
    test.mock.timers.tick(60_000);
    test.mock.timers.reset();
    // A store-host that was started wrongly has begun before this one.
    const other = openStore(test, [{ messages: [{ kind: 'state', state: STATE }] }]);
    await other.store.start();
    assert.equal(runs(), 1);
  });
});
