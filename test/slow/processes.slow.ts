// Sections 9.1, 9.2 and 9.4 of the decisions: processes that die, hang or throw, and the signals that end or renew
// them.
import assert from 'node:assert/strict';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { ask, type Failure, json, openConnection, startLoad } from '../support/cluster-client.ts';
import { type Service, startService } from '../support/cluster-server.ts';
import { controller, createFolder, write } from '../support/folder.ts';

/** A misbehaving controller. Each kind of damage is an operation of the group `test`. */
const MISCHIEF = `
import { setTimeout as sleep } from 'node:timers/promises';
export default class {
  index() { return { pid: process.pid }; }
  async slow() { await sleep(700); return { pid: process.pid }; }
  loop() { for (;;); }
  timer() { setTimeout(() => { throw new Error('thrown late'); }, 1); return { pid: process.pid }; }
  burst() { for (let i = 0; i < 50; i++) setTimeout(() => { throw new Error('thrown late'); }, i); return { pid: process.pid }; }
  rejection() { Promise.reject(new Error('nobody cared')); return { pid: process.pid }; }
  late() { return new Promise(() => { setTimeout(() => { throw new Error('thrown late'); }, 1); }); }
  async floating() { Promise.reject(new Error('nobody cared')); await sleep(60_000); }
  exit() { process.exit(5); }
}`;

describe('an application table that is not JSON', () => {
  it('rejects the next generation until the table is repaired', async (test) => {
    const dir = createFolder(test, { 'TestController.js': controller('old') });
    const service = await startService(test, { dir });
    writeFileSync(join(dir, '../data/production.json'), '{"production":[');
    write(dir, 'TestController.js', controller('new'));
    await service.logged('generation-rejected');
    assert.equal(json(await ask(service.port, '/api/test')).value, 'old');
    writeFileSync(join(dir, '../data/production.json'), '{"production":[]}');
    service.process.kill('SIGHUP');
    await service.logged('generation-serving', ({ generation }) => Number(generation) > 1);
    assert.equal(json(await ask(service.port, '/api/test')).value, 'new');
  });
});

describe('workers', () => {
  it('a killed worker loses at most its running requests, and is replaced', async (test) => {
    const service = await startService(test, { files: { 'TestController.js': MISCHIEF } });
    const load = startLoad(test, { port: service.port, connections: 6, mode: 'one request a connection', pause: 1 });
    const { pid } = json(await load.until(() => true));
    process.kill(Number(pid), 'SIGKILL');
    const died = await service.logged('worker-died');
    assert.equal(died.worker, pid);
    await service.logged('worker-replaced');
    const { failures } = await load.stop();
    assert.ok(failures.length <= 6, `${failures.length} failures, more than connections at that moment`);
    assert.ok(isOneMoment(failures), 'all failures are at the moment of the death');
  });

  it('the only worker is replaced under load, and its replacement drains without loss', async (test) => {
    const service = await startService(test, { files: { 'TestController.js': MISCHIEF }, env: { WORKERS: '1' } });
    const begun = performance.now();
    const load = startLoad(test, { port: service.port, connections: 4, mode: 'one request a connection', pause: 2 });
    await load.until(() => true);
    await assert.rejects(ask(service.port, '/api/test/exit'));
    await untilDead(service, 1);
    await service.logged('generation-serving', ({ cause }) => cause === 'no worker is left');
    const replaced = performance.now() - begun;
    const slow = ask(service.port, '/api/test/slow');
    await load.until(() => true);
    write(service.dir, 'TestController.js', `${MISCHIEF}\n// edited`);
    await service.logged('generation-serving', ({ cause }) => String(cause).endsWith('TestController.js'));
    assert.equal((await slow).status, 200);
    const { failures } = await load.stop();
    assert.deepEqual(
      failures.filter(({ at }) => at > replaced),
      [],
      'no request fails after the replacement',
    );
    assert.ok(isOneMoment(failures), 'requests fail only at the moment of the death');
  });

  it('a worker with a blocked event loop is killed and replaced', async (test) => {
    const service = await startService(test, { files: { 'TestController.js': MISCHIEF } });
    const stuck = openConnection(service.port);
    const lost = stuck.ask('GET /api/test/loop HTTP/1.1\r\nHost: localhost\r\n\r\n');
    const { reason } = await service.logged('worker-died');
    assert.match(String(reason), /event loop did not turn for 5 s/);
    assert.ok('kind' in (await lost));
    await service.logged('worker-replaced');
    assert.equal((await ask(service.port, '/api/test')).status, 200);
  });

  for (const [name, operation, text] of [
    ['a throw in a timer', 'timer', 'thrown late'],
    ['an unhandled rejection', 'rejection', 'nobody cared'],
  ] as const) {
    it(`${name} is logged with its file, loses no other request, and replaces the worker`, async (test) => {
      const service = await startService(test, { files: { 'TestController.js': MISCHIEF } });
      const slow = ask(service.port, '/api/test/slow');
      const load = startLoad(test, { port: service.port, connections: 4, mode: 'kept-alive', pause: 2 });
      await load.until(() => true);
      const { pid } = json(await ask(service.port, `/api/test/${operation}`));
      const line = await service.logged('uncaught-exception');
      assert.equal(line.pid, pid);
      assert.equal(line.error, text);
      assert.match(String(line.at), /TestController\.js:\d+$/);
      await service.logged('worker-replaced');
      await load.until(() => true);
      assert.deepEqual((await load.stop()).failures, []);
      assert.equal((await slow).status, 200);
    });
  }

  for (const operation of ['late', 'floating']) {
    it(`a request whose code throws late gets 500 (${operation}), and a slow request still gets its answer`, async (test) => {
      const service = await startService(test, { files: { 'TestController.js': MISCHIEF }, env: { WORKERS: '1' } });
      const slow = ask(service.port, '/api/test/slow');
      const answer = await ask(service.port, `/api/test/${operation}`);
      assert.equal(answer.status, 500);
      assert.match(answer.body, /INTERNAL_ERROR/);
      assert.equal((await slow).status, 200);
    });
  }

  it('a burst of exceptions causes one replacement and at most 20 log lines', async (test) => {
    const service = await startService(test, { files: { 'TestController.js': MISCHIEF } });
    const { pid } = json(await ask(service.port, '/api/test/burst'));
    await service.logged('worker-replaced');
    assert.equal(service.lines.filter(({ event }) => event === 'worker-faulty').length, 1);
    assert.ok(service.lines.filter((line) => line.event === 'uncaught-exception' && line.pid === pid).length <= 20);
  });

  it('a replacement without a serving group is rejected until the folder loads again', async (test) => {
    const service = await startService(test, { files: { 'TestController.js': MISCHIEF } });
    write(service.dir, 'TestController.js', 'export default class { index( }\n');
    await service.logged('generation-rejected');
    await assert.rejects(ask(service.port, '/api/test/exit'));
    await service.logged('worker-died');
    assert.equal((await ask(service.port, '/api/test')).status, 200);
    await assert.rejects(ask(service.port, '/api/test/exit'));
    await service.logged('generation-degraded');
    assert.equal((await ask(service.port, '/api/test')).status, 500);
    write(service.dir, 'TestController.js', MISCHIEF);
    await service.logged('generation-serving', (line) => String(line.cause).endsWith('TestController.js'));
    assert.equal((await ask(service.port, '/api/test')).status, 200);
  });

  it('a replacement adds no group that the other workers have not loaded', async (test) => {
    const service = await startService(test, { files: { 'TestController.js': MISCHIEF } });
    write(service.dir, 'NewController.js', controller('first'));
    await assert.rejects(ask(service.port, '/api/test/exit'));
    await service.logged('worker-replaced');
    write(service.dir, 'NewController.js', controller('second'));
    for (const answer of await Promise.all(Array.from({ length: 40 }, () => ask(service.port, '/api/new')))) {
      assert.equal(json(answer).value, 'second');
    }
  });

  it('a worker that dies while the folder is missing is replaced when the folder returns', async (test) => {
    const service = await startService(test, { files: { 'TestController.js': MISCHIEF } });
    renameSync(service.dir, `${service.dir}.away`);
    await service.logged('folder-missing');
    await assert.rejects(ask(service.port, '/api/test/exit'));
    await service.logged('replacement-rejected');
    for (let i = 0; i < 20; i++) assert.equal((await ask(service.port, '/api/test')).status, 200);
    renameSync(`${service.dir}.away`, service.dir);
    await service.logged('worker-replaced');
    assert.equal(service.lines.filter(({ event }) => event === 'replacement-rejected').length, 1);
  });

  it('a group that ends the process on import does not stop the other groups', async (test) => {
    const service = await startService(test, {
      files: { 'ExitController.js': 'process.exit(4);\n', 'TestController.js': MISCHIEF },
    });
    assert.equal((await ask(service.port, '/api/test')).status, 200);
    assert.equal(json(await ask(service.port, '/api/exit')).error_code, 'GROUP_NOT_LOADABLE');
    const line = await service.logged('group-not-loadable');
    assert.equal(line.file, 'ExitController.js');
    assert.match(String(line.error), /exit code 4/);
  });

  it('workers answer and end when their supervisor is killed', async (test) => {
    const service = await startService(test, { files: { 'TestController.js': MISCHIEF } });
    const slow = ask(service.port, '/api/test/slow');
    await ask(service.port, '/api/test');
    service.process.kill('SIGKILL');
    assert.equal((await slow).status, 200);
    const { pid } = json(await slow);
    await untilGone(Number(pid));
  });
});

describe('signals', () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    it(`${signal} drains the service, which exits with 0`, async (test) => {
      const service = await startService(test, { files: { 'TestController.js': MISCHIEF } });
      const kept = openConnection(service.port);
      const request = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
      await kept.ask(request('/api/test'));
      const slow = ask(service.port, '/api/test/slow');
      await ask(service.port, '/api/test');
      service.process.kill(signal);
      // A request that arrives on an open connection during the drain is answered, and the connection is then closed.
      assert.equal((await slow).status, 200);
      let last = '';
      while (!/^connection: close\r?$/im.test(last)) {
        const answer = await kept.ask(request('/api/test'));
        assert.ok('headers' in answer, 'the last answer on a connection has Connection: close');
        last = answer.headers;
      }
      assert.deepEqual(await service.exited, { code: 0, signal: null });
      await assert.rejects(ask(service.port, '/api/test'), /refused/);
    });
  }

  it('a second signal ends the service and its workers at once', async (test) => {
    const service = await startService(test, { files: { 'TestController.js': MISCHIEF } });
    const { pid } = json(await ask(service.port, '/api/test'));
    const stuck = openConnection(service.port);
    void stuck.ask('GET /api/test/loop HTTP/1.1\r\nHost: localhost\r\n\r\n');
    service.process.kill('SIGTERM');
    await service.logged('stopping');
    // Two signals within some milliseconds count as one, so the test repeats the signal until the service exits.
    const saying = setInterval(() => service.process.kill('SIGTERM'), 40);
    test.after(() => clearInterval(saying));
    assert.deepEqual(await service.exited, { code: 1, signal: null });
    await untilGone(Number(pid));
  });

  it('DRAIN_TIMEOUT bounds the drain', async (test) => {
    const text = 'export default class { index() { return {}; } never() { return new Promise(() => {}); } }';
    const service = await startService(test, { files: { 'TestController.js': text }, env: { DRAIN_TIMEOUT: '300ms' } });
    const hanging = openConnection(service.port);
    const lost = hanging.ask('GET /api/test/never HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await ask(service.port, '/api/test');
    service.process.kill('SIGTERM');
    assert.deepEqual(await service.exited, { code: 0, signal: null });
    assert.ok('kind' in (await lost));
  });
});

function isOneMoment(failures: readonly Failure[]): boolean {
  const times = failures.map(({ at }) => at);
  return times.length === 0 || Math.max(...times) - Math.min(...times) < 1000;
}

/** Resolves when the supervisor has noticed the deaths. */
async function untilDead(service: Service, deaths: number): Promise<void> {
  await service.logged(
    'worker-died',
    () => service.lines.filter(({ event }) => event === 'worker-died').length >= deaths,
  );
}

/** Waits for the end of a process that is no child of this process. No event reports it. */
async function untilGone(pid: number): Promise<void> {
  for (;;) {
    try {
      process.kill(pid, 0);
    } catch {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
