// The life of one service: its folder changes, its workers die, and it ends. Each test has its own group, and a group
// that one test breaks must not harm the others. test/slow has more rows.
import assert from 'node:assert/strict';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { type Answer, ask, json, openConnection, startLoad } from '../../support/cluster-client.ts';
import { type Service, startService } from '../../support/cluster-server.ts';
import { controller, createFolder, write } from '../../support/folder.ts';

/** A controller that does harmful things to its process. */
const MISCHIEF = `
import { setTimeout as sleep } from 'node:timers/promises';
export default class {
  index() { return { pid: process.pid }; }
  async slow() { await sleep(300); return { pid: process.pid }; }
  timer() { setTimeout(() => { throw new Error('thrown late'); }, 1); return { pid: process.pid }; }
  say() {
    for (const message of [{ kind: 'load-failed', reason: 'x' }, { kind: 'faulty' }, { kind: 'listen-failed', code: 'x' }, 7, null, 'pong']) process.send(message);
    return { pid: process.pid };
  }
}`;

/** Throws an error that cannot be described. */
const ODD = `const error = new Error('x');\nerror.name = Symbol('name');\nthrow error;\n`;

describe('a service', () => {
  const cleanups: (() => unknown)[] = [];
  const shared = { after: (cleanup: () => unknown) => cleanups.push(cleanup) } as unknown as TestContext;
  let service: Service;
  before(async () => {
    const dir = createFolder(shared, {
      'SteadyController.js': controller('steady'),
      'MischiefController.js': MISCHIEF,
    });
    mkdirSync(join(dirname(dir), 'count'));
    write(dir, 'LockedController.js', failsOnce(join(dirname(dir), 'count')));
    service = await startService(shared, { dir });
  });
  after(async () => {
    for (const cleanup of cleanups.reverse()) await cleanup();
  });

  it('prints its address in one line and nothing else', () => {
    assert.equal(service.output(), `gatefold listening on http://127.0.0.1:${service.port}\n`);
  });

  it('serves a group on every worker after one worker failed to load it once', async () => {
    for (const { status } of await together(20, () => ask(service.port, '/api/locked'))) assert.equal(status, 200);
    assert.ok(
      !service.lines.some(({ event, file }) => event === 'group-not-loadable' && file === 'LockedController.js'),
    );
  });

  it('serves a new group on the next request, on every worker, without a new generation', async () => {
    write(service.dir, 'NewController.js', controller('new'));
    for (const { status } of await together(20, () => ask(service.port, '/api/new'))) assert.equal(status, 200);
    await service.logged('generation-serving');
    assert.equal(service.lines.filter(({ event }) => event === 'generation-serving').length, 1);
  });

  it('loses no request while the edit of a module becomes live', async (test) => {
    write(service.dir, 'lib/shared.js', 'export const value = 0;\n');
    write(
      service.dir,
      'EditedController.js',
      `import { value } from './lib/shared.js';\nexport default class { index() { return { value }; } }\n`,
    );
    const path = '/api/edited';
    await live(service, path, 0);
    const loads = (['kept-alive', 'one request a connection'] as const).map((mode) =>
      startLoad(test, { port: service.port, connections: 2, mode, path, pause: 20 }),
    );
    write(service.dir, 'lib/shared.js', 'export const value = 1;\n');
    await live(service, path, 1);
    for (const load of loads) assert.deepEqual((await load.stop()).failures, []);
  });

  it('keeps serving the old code when an edit does not load, and serves the repaired file', async () => {
    write(service.dir, 'EditedController.js', 'export default class { index( }\n');
    const line = await service.logged('generation-rejected', ({ file }) => file === 'EditedController.js');
    assert.match(`${line.at}`, /EditedController\.js:1$/);
    await live(service, '/api/edited', 1);
    writeFileSync(join(service.dir, 'EditedController.js'), controller(2));
    await live(service, '/api/edited', 2);
  });

  it('ignores messages that a controller sends over the channel', async () => {
    // The worker keeps answering, and the controller's message arrived before the answer. A worker of the last
    // generation may have answered while it drained, so several tries are allowed.
    let isSeen = false;
    for (let tries = 0; !isSeen && tries < 20; tries++) {
      const { pid } = json(await ask(service.port, '/api/mischief/say'));
      isSeen = (await workersSeen(service)).includes(Number(pid));
    }
    assert.ok(isSeen);
    assert.ok(!service.lines.some((line) => line.event === 'worker-faulty'));
  });

  it('replaces a worker after an exception outside a request, and loses no request', async (test) => {
    const load = startLoad(test, {
      port: service.port,
      connections: 2,
      mode: 'kept-alive',
      path: '/api/steady',
      pause: 20,
    });
    const slow = ask(service.port, '/api/mischief/slow');
    const { pid } = json(await ask(service.port, '/api/mischief/timer'));
    const line = await service.logged('uncaught-exception', (candidate) => candidate.pid === pid);
    assert.match(String(line.at), /MischiefController\.js:\d+$/);
    const { effect } = await service.logged('worker-faulty', ({ worker }) => worker === pid);
    assert.equal(effect, 'it drains as soon as its replacement serves');
    await service.logged('worker-replaced');
    assert.equal((await slow).status, 200);
    assert.deepEqual((await load.stop()).failures, []);
  });

  it('starts a new generation on SIGHUP without a change', async () => {
    const pids = await workersSeen(service);
    service.process.kill('SIGHUP');
    await service.logged('generation-serving', ({ cause }) => cause === 'signal');
    await until(service, '/api/steady', (answer) => !pids.includes(Number(json(answer).pid)));
  });

  it('replaces a worker that was killed', async () => {
    const replaced = () => service.lines.filter(({ event }) => event === 'worker-replaced').length;
    const known = replaced();
    const { pid } = json(await ask(service.port, '/api/steady'));
    process.kill(Number(pid), 'SIGKILL');
    await service.logged('worker-died', ({ worker }) => worker === pid);
    await service.logged('worker-replaced', () => replaced() > known);
    await until(service, '/api/steady', (answer) => json(answer).pid !== pid);
  });

  it('keeps the last valid types after a bad edit of a types file, and applies a good one', async () => {
    // Node loads neither file, and the controller reaches the second file only through the first.
    write(service.dir, 'types/index.ts', "export type { NewUser } from './user.ts';\n");
    write(service.dir, 'types/user.ts', 'export interface NewUser { name: string }\n');
    write(
      service.dir,
      'TypedController.ts',
      "import type { NewUser } from './types/index.ts';\nexport default class { created(data: NewUser) { return data; } }\n",
    );
    const send = (body: object) => () => post(service, '/api/typed', body);
    const [ada, full] = [send({ name: 'Ada' }), send({ name: 'Ada', email: 'a@b.c' })];
    for (const { status } of await together(10, ada)) assert.equal(status, 200);
    assert.deepEqual(json(await full()), { name: 'Ada' });

    write(service.dir, 'types/user.ts', 'export interface NewUser {\n  name: bigint;\n}\n');
    const line = await service.logged('generation-rejected', ({ file }) => file === 'TypedController.ts');
    assert.match(
      `${line.at} ${line.error}`,
      /user\.ts:2 .*user\.ts:2: created\(data: NewUser\): bigint has no JSON form/,
    );
    for (const { status } of await together(10, ada)) assert.equal(status, 200);
    for (const { status } of await together(10, send({ name: 7 }))) assert.equal(status, 422);

    write(service.dir, 'types/user.ts', 'export interface NewUser { name: string; email: string }\n');
    await untilAnswer(service, ada, ({ status }) => status === 422);
    assert.deepEqual(json(await full()), { name: 'Ada', email: 'a@b.c' });
  });

  it('loses at most one worker to a new file that ends its process', async () => {
    const serving = await workersSeen(service);
    write(service.dir, 'ExitController.js', 'process.exit(4);\n');
    // The retry of a broken folder may start a generation earlier. Then only workers of that generation die.
    await ask(service.port, '/api/exit').catch(() => undefined);
    await service.logged('worker-died', ({ file }) => file === 'ExitController.js');
    await service.logged('group-not-loadable', ({ file }) => file === 'ExitController.js');
    for (const answer of await together(10, () => ask(service.port, '/api/exit')))
      assert.equal(json(answer).error_code, 'GROUP_NOT_LOADABLE');
    const died = service.lines.filter(
      ({ event, worker }) => event === 'worker-died' && serving.includes(Number(worker)),
    );
    assert.ok(died.length <= 1, JSON.stringify(died));
  });

  it('applies edits and removals next to a file whose error cannot be described', async () => {
    write(service.dir, 'OddController.js', ODD);
    write(service.dir, 'SteadyController.js', controller('steady again'));
    for (const name of ['Exit', 'Edited']) rmSync(join(service.dir, `${name}Controller.js`));
    rmSync(join(service.dir, 'TypedController.ts'));
    await live(service, '/api/steady', 'steady again');
    await until(service, '/api/odd', (answer) => json(answer).error_code === 'GROUP_NOT_LOADABLE');
    await until(service, '/api/edited', ({ status }) => status === 404);
  });

  it('answers running requests on SIGTERM, closes each connection, and exits with 0', async () => {
    const kept = openConnection(service.port);
    const request = 'GET /api/steady HTTP/1.1\r\nHost: localhost\r\n\r\n';
    await kept.ask(request);
    const slow = ask(service.port, '/api/mischief/slow');
    await ask(service.port, '/api/steady');
    service.process.kill('SIGTERM');
    assert.equal((await slow).status, 200);
    // A request on an open connection is answered, and the connection ends with that answer.
    for (let last = ''; !/^connection: close\r?$/im.test(last); ) {
      const answer = await kept.ask(request);
      assert.ok('headers' in answer, 'the last answer on a connection has Connection: close');
      last = answer.headers;
    }
    assert.deepEqual(await service.exited, { code: 0, signal: null });
    await assert.rejects(ask(service.port, '/api/steady'), /refused/);
  });
});

/** The source of a controller whose second load fails, as when the first process holds a lock for a moment. */
function failsOnce(folder: string): string {
  return `import { writeFileSync } from 'node:fs';
let turn = 1;
for (;; turn++) {
  try {
    writeFileSync(${JSON.stringify(folder)} + '/' + turn, '', { flag: 'wx' });
    break;
  } catch {}
}
if (turn === 2) throw new Error('database is locked');
${controller('locked')}`;
}

function together<T>(count: number, what: () => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: count }, what));
}

async function workersSeen(service: Service): Promise<number[]> {
  const answers = await together(30, () => ask(service.port, '/api/steady'));
  return [...new Set(answers.map((answer) => Number(json(answer).pid)))].sort();
}

async function post(service: Service, path: string, body: object): Promise<Answer> {
  const text = JSON.stringify(body);
  const connection = openConnection(service.port);
  const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ${text.length}`;
  const outcome = await connection.ask(`${head}\r\n\r\n${text}`);
  connection.close();
  if ('kind' in outcome) throw new Error(`${outcome.kind}: ${outcome.detail}`);
  return outcome;
}

/**
 * Asks until several answers in a row, each on a connection of its own, satisfy the test: so more than one worker does.
 * An old worker that the machine has not let run can still accept a connection afterwards, before it reads the order to
 * drain. So one answer alone proves nothing about the generation that serves.
 */
function until(service: Service, path: string, isMeant: (answer: Answer) => boolean): Promise<void> {
  return untilAnswer(service, () => ask(service.port, path), isMeant);
}

async function untilAnswer(
  service: Service,
  send: () => Promise<Answer>,
  isMeant: (answer: Answer) => boolean,
): Promise<void> {
  const begun = performance.now();
  for (let run = 0; run < 12; ) {
    const answer = await send();
    run = isMeant(answer) ? run + 1 : 0;
    if (performance.now() - begun > service.patience())
      assert.fail(`the answer is still ${answer.status} ${answer.body}`);
    if (run === 0) await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function live(service: Service, path: string, value: unknown): Promise<void> {
  return until(service, path, (answer) => answer.status === 200 && json(answer).value === value);
}
