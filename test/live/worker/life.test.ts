// A worker process as its supervisor sees it. The process is real, and the test sends the orders.
import assert from 'node:assert/strict';
import type { SendHandle } from 'node:child_process';
import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { openPort } from '../../../src/live/supervisor/workers/port.ts';
import { type FromWorker, seal, type ToWorker, unseal } from '../../../src/live/worker/messages.ts';
import { controller, createFolder, write } from '../../support/folder.ts';
import { modulePath } from '../../support/own-modules.ts';

function heard<K extends FromWorker['kind']>(worker: Worker, kind: K): Promise<Extract<FromWorker, { kind: K }>> {
  return new Promise((done) => {
    worker.on('message', function listen(message) {
      const said = unseal<FromWorker>(message);
      if (said?.kind !== kind) return;
      worker.off('message', listen);
      done(said as Extract<FromWorker, { kind: K }>);
    });
  });
}

interface Running {
  readonly dir: string;
  readonly url: string;
  readonly worker: Worker;
  /** The worker's log so far. */
  readonly lines: Record<string, unknown>[];
  order(message: ToWorker): void;
}

/** Starts a worker that has loaded these files and listens. */
async function start(
  t: TestContext,
  files: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string>> = {},
): Promise<Running> {
  const dir = createFolder(t, files);
  cluster.setupPrimary({ exec: modulePath('src/bin/worker'), silent: true });
  const worker = cluster.fork({ CONTROLLERS_DIR: dir, DATA_DIR: dir, LOG_LEVEL: 'error', ...env });
  const lines: Record<string, unknown>[] = [];
  for (const stream of [worker.process.stdout, worker.process.stderr])
    if (stream !== null)
      createInterface({ input: stream }).on('line', (line) => line.startsWith('{') && lines.push(JSON.parse(line)));
  const port = await openPort(0, '127.0.0.1');
  const order = (message: ToWorker, socket?: unknown) => void worker.send(seal(message), socket as SendHandle);
  t.after(async () => {
    port.close();
    if (worker.isDead()) return;
    worker.process.kill('SIGKILL');
    await once(worker, 'exit');
  });
  await heard(worker, 'booted');
  const loaded = heard(worker, 'loaded');
  order({ kind: 'load', files: Object.keys(files), skip: [] });
  await loaded;
  const listening = heard(worker, 'listening');
  order({ kind: 'listen' }, port.socket);
  await listening;
  order({ kind: 'generation', state: 'serving' });
  return { dir, url: `http://127.0.0.1:${port.number}/api`, worker, lines, order };
}

test('a new group is imported by order, answers when the supervisor has admitted it, and only its files are reported', async (t) => {
  const { dir, url, worker, order } = await start(t, { 'SteadyController.js': controller('steady') });
  const answered: string[] = [];
  const reported: string[] = [];
  worker.on('message', (envelope: unknown) => {
    const message = unseal<FromWorker>(envelope);
    if (message?.kind === 'imported' || message?.kind === 'imported-on-call')
      reported.push(...message.files.map(({ path }) => path));
  });
  const groups = ['First', 'Second'];
  for (const group of groups) {
    write(dir, `${group}Controller.js`, controller(group));
    const requested = heard(worker, 'requested');
    const imported = heard(worker, 'imported');
    const answer = fetch(`${url}/${group.toLowerCase()}`).then(({ status }) => {
      answered.push(group);
      return status;
    });
    assert.equal((await requested).group, group);
    order({ kind: 'import', group });
    assert.deepEqual((await imported).load, { group, file: `${group}Controller.js`, ok: true });
    // Each of these answers arrives later than an answer of the new group would.
    for (let i = 0; i < 5; i++) assert.equal((await fetch(`${url}/steady`)).status, 200);
    assert.ok(!answered.includes(group));
    order({ kind: 'admitted', group });
    assert.equal(await answer, 200);
  }
  assert.deepEqual(
    reported,
    groups.map((group) => join(dir, `${group}Controller.js`)),
  );
});

test('an exception outside a request is logged with its place, and the worker keeps serving', async (t) => {
  const source = `
    const odd = Object.defineProperty(new Error('odd'), 'stack', { get() { throw new Error('no stack'); } });
    const thrown = {
      within() { new URL('none'); },
      evil() { throw odd; },
      text() { throw 'text'; },
    };
    export default class {
      created({ what }) { setTimeout(thrown[what]); return {}; }
      index() { for (let i = 0; i < 30; i++) setTimeout(thrown.text); return {}; }
    }`;
  const { dir, url, worker, lines } = await start(t, { 'LateController.js': source });
  const [within, evil, text] = ['within', 'evil', 'text'];
  for (const what of [within, evil, text]) {
    const faulty = heard(worker, 'faulty');
    const init = { method: 'POST', body: JSON.stringify({ what }), headers: { 'content-type': 'application/json' } };
    assert.equal((await fetch(`${url}/late`, init)).status, 200);
    await faulty;
  }
  while (lines.length < 3) await new Promise((later) => setTimeout(later, 5));
  for (const { request_id } of lines) assert.match(String(request_id), /^[\w-]{8,}$/);
  assert.deepEqual(
    lines.map(({ event, at, error }) => [event, at, String(error).replace(/: none$/, '')]),
    [
      ['uncaught-exception', `${join(dir, 'LateController.js')}:4`, 'Invalid URL'],
      ['uncaught-exception', undefined, 'odd'],
      ['uncaught-exception', undefined, 'text'],
    ],
  );
  // A worker that throws without end fills no disk.
  let faults = 0;
  const all = new Promise<void>((resolve) =>
    worker.on('message', (message) => {
      if (unseal<FromWorker>(message)?.kind === 'faulty' && ++faults === 30) resolve();
    }),
  );
  assert.equal((await fetch(`${url}/late`)).status, 200);
  await all;
  const stderr = worker.process.stderr ?? assert.fail();
  const ended = once(stderr, 'end');
  worker.process.disconnect();
  await ended;
  assert.equal(lines.length, 20);
});

test('an exception in a microtask is the 500 of its request', async (t) => {
  const source = `export default class {
    index() { return new Promise(() => { queueMicrotask(() => { throw new Error('late'); }); }) }
    created() { queueMicrotask(undefined) }
  }`;
  const { url } = await start(t, { 'LateController.js': source }, { OPERATION_TIMEOUT: '60s' });
  for (const method of ['GET', 'POST'])
    assert.equal((await fetch(`${url}/late`, { method, signal: AbortSignal.timeout(60_000) })).status, 500, method);
});

test('a worker whose supervisor is gone refuses new groups and exits with 0', async (t) => {
  const { dir, url, worker, order } = await start(t, { 'SteadyController.js': controller('steady') });
  write(dir, 'NewController.js', controller('new'));
  const requested = heard(worker, 'requested');
  const imported = heard(worker, 'imported');
  const answer = fetch(`${url}/new`);
  // Without this wait, the worker could be gone before the request arrives.
  await requested;
  order({ kind: 'import', group: 'New' });
  await imported;
  const exited = once(worker, 'exit');
  worker.process.disconnect();
  const { status, headers } = await answer;
  assert.deepEqual([status, headers.get('retry-after')], [503, '1']);
  assert.deepEqual(await exited, [0, null]);
});
