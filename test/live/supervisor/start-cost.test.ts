// Tests which modules a process does not load at its start. Each worker of each generation would pay for them.
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { ask } from '../../support/cluster-client.ts';
import { startService } from '../../support/cluster-server.ts';
import { controller, createFolder } from '../../support/folder.ts';

test('a service without a secret loads neither the HTTP client of Node nor node:crypto', async (t) => {
  const dir = createFolder(t, { 'TestController.js': controller('test') });
  // The table has no row, as in the repository.
  mkdirSync(join(dirname(dir), 'data'));
  writeFileSync(join(dirname(dir), 'data', 'production.json'), '{ "production": [] }\n');
  const reports = join(dirname(dir), 'reports-');
  const preload = join(dirname(dir), 'preload.cjs');
  // At its end each process writes the list of Node's modules that it has loaded.
  writeFileSync(
    preload,
    `process.on('exit', () => require('node:fs').writeFileSync(${JSON.stringify(reports)} + process.pid, process.moduleLoadList.join('\\n')));`,
  );
  const service = await startService(t, {
    dir,
    env: { WORKERS: '1', OPS_PORT: '0', NODE_OPTIONS: `--require=${preload}` },
  });
  assert.equal((await ask(service.port, '/api/test')).status, 200);
  service.process.kill('SIGTERM');
  await service.exited;
  const names = readdirSync(dirname(dir)).filter((name) => name.startsWith('reports-'));
  assert.equal(names.length, 2, 'the supervisor and the worker each write a report');
  for (const name of names) {
    const loaded = readFileSync(join(dirname(dir), name), 'utf8').split('\n');
    assert.ok(loaded.includes('NativeModule _http_server'), 'the report lists the loaded modules');
    const client = loaded.filter((module) => module.includes('undici'));
    assert.deepEqual(client, []);
    assert.ok(!loaded.includes('NativeModule crypto'), 'node:crypto is not loaded without a secret');
  }
});

test('MCP files are loaded only with MCP on, and a service without tools logs one line', async (t) => {
  for (const MCP of ['off', 'on']) {
    const dir = createFolder(t, { 'TestController.js': controller('test') });
    const list = join(dirname(dir), 'loaded');
    writeFileSync(list, '');
    const hooks = `import { appendFileSync } from 'node:fs';
      export async function load(url, context, next) { appendFileSync(${JSON.stringify(list)}, url + '\\n'); return next(url, context); }`;
    const preload = join(dirname(dir), 'preload.mjs');
    writeFileSync(
      preload,
      `import { register } from 'node:module'; register(${JSON.stringify(`data:text/javascript,${encodeURIComponent(hooks)}`)});`,
    );
    const WORKERS = MCP === 'on' ? '2' : '1';
    const service = await startService(t, { dir, env: { WORKERS, MCP, NODE_OPTIONS: `--import=${preload}` } });
    assert.equal((await ask(service.port, '/api/test')).status, 200);
    service.process.kill('SIGTERM');
    await service.exited;
    const loaded = readFileSync(list, 'utf8').split('\n');
    assert.ok(
      loaded.some((url) => url.endsWith('/worker.js')),
      'the list contains the loaded files',
    );
    // In the bundle the room is one file, with the name of its entry.
    const room = loaded.filter((url) => /\/operate\/tools\/|\/messages-\w+\.js$/.test(url));
    assert.equal(room.length > 0, MCP === 'on', room.join());
    const notices = service.lines.filter(({ event }) => event === 'tools-absent');
    assert.equal(notices.length, MCP === 'on' ? 1 : 0);
  }
});
