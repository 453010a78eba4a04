// A failed start logs one line, and a successful one logs its address. The output is read until the last process ends.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { ask } from '../../support/cluster-client.ts';
import { SERVER, type ServiceOptions, spawnService, startService } from '../../support/cluster-server.ts';
import { controller, createFolder } from '../../support/folder.ts';
import { sendRaw } from '../../support/service.ts';

describe('a start fails with one line and exit code 1 for', () => {
  const other = createServer();
  before(() => new Promise<void>((listening) => other.listen(0, '127.0.0.1', listening)));
  after(() => other.close());
  const busyPort = () => String((other.address() as { port: number }).port);

  const rows: readonly (readonly [name: string, make: (dir: string) => ServiceOptions['env'], line: () => RegExp])[] = [
    ['PM2 in cluster mode', () => ({ NODE_UNIQUE_ID: '1' }), () => /a worker of node:cluster .* `exec_mode: "fork"`/],
    [
      'a busy port',
      () => ({ PORT: busyPort() }),
      () => new RegExp(`127\\.0\\.0\\.1:${busyPort()}: it is in use by another process \\(EADDRINUSE\\)`),
    ],
    [
      'an address of another machine',
      () => ({ HOST: '192.0.2.1' }),
      () => /the address is not one of this machine \(EADDRNOTAVAIL\)/,
    ],
    [
      'a missing folder',
      (dir) => void rmSync(dir, { recursive: true }),
      () =>
        /controllers folder \S+: there is no such folder; npx gatefold new hello makes it, with a controller \(ENOENT\)/,
    ],
    [
      'a file in the place of the folder',
      (dir) => {
        rmSync(dir, { recursive: true });
        writeFileSync(dir, '');
        return {};
      },
      () => /controllers folder \S+: it is not a folder \(ENOTDIR\)/,
    ],
    ['an invalid setting', () => ({ WORKERS: 'many' }), () => /WORKERS: "many" is not/],
    [
      'an application table that is not JSON',
      (dir) => void writeFileSync(join(dirname(dir), 'data/production.json'), '{"production":['),
      () => /production\.json/,
    ],
  ];
  for (const [name, make, line] of rows) {
    it(name, async (test) => {
      const dir = createFolder(test, { 'TestController.js': controller(1) });
      mkdirSync(join(dirname(dir), 'data'));
      const env = { WORKERS: '1', ...make(dir) };
      const service = spawnService(test, { dir, env });
      assert.deepEqual(await service.exited, { code: 1, signal: null });
      await service.closed;
      assert.equal(service.output(), '');
      const lines = service.errors().trimEnd().split('\n');
      const plain = lines.filter((text) => !text.startsWith('{'));
      assert.equal(plain.length, 1, service.errors());
      assert.match(plain[0] ?? '', /^gatefold: /);
      assert.match(plain[0] ?? '', line());
    });
  }

  it('a folder that the user may not read', { skip: process.getuid?.() === 0 }, async (test) => {
    const dir = createFolder(test);
    chmodSync(dir, 0o000);
    const service = spawnService(test, { dir });
    await service.closed;
    assert.match(service.errors(), /^gatefold: [^\n]+this user may not read it \(EACCES\)\n$/);
  });

  it('a worker started by hand', () => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [SERVER.replace(/server(\.\w+)$/, 'worker$1')], {
      encoding: 'utf8',
    });
    const line = 'gatefold: run server.js, which starts the workers\n';
    assert.deepEqual({ status, stdout, stderr }, { status: 1, stdout: '', stderr: line });
  });
});

describe('a start', () => {
  it('prints localhost for all interfaces, logs the docs page, and warns about world-writable files', async (test) => {
    const names = ['TestController.js', 'DocsController.js', 'RegisterController.js', 'McpController.js'];
    const dir = createFolder(test, Object.fromEntries(names.map((name) => [name, controller(1)])));
    chmodSync(dir, 0o777);
    chmodSync(join(dir, 'TestController.js'), 0o666);
    const service = await startService(test, { dir, env: { HOST: '', WORKERS: '1', RATELIMIT: '1/s' } });
    await service.logged(
      'variable-ignored',
      ({ level, variable, setting }) => level === 'warn' && variable === 'RATELIMIT' && setting === 'RATE_LIMIT',
    );
    assert.equal(service.output(), `gatefold listening on http://localhost:${service.port}\n`);
    await service.logged('docs-served', ({ access, page }) => access === 'anyone' && page === '/api/docs');
    await service.logged('group-shadowed', ({ group }) => group === 'Docs');
    await service.logged('group-shadowed', ({ path }) => path === '/api/register');
    assert.doesNotMatch(service.errors(), /"group":"Mcp"/, 'MCP is off');
    await service.logged('writable-by-everyone', ({ path }) => path === dir);
    await service.logged('writable-by-everyone', ({ path }) => path === join(dir, 'TestController.js'));
  });

  const hasIpv6 = Object.values(networkInterfaces()).some((addresses) =>
    addresses?.some(({ address }) => address === '::1'),
  );
  const skip = !hasIpv6 && 'this machine has no IPv6';
  it('prints an IPv6 address in brackets, and logs no docs page with DOCS=off', { skip }, async (test) => {
    const service = await startService(test, { files: {}, env: { HOST: '::1', WORKERS: '1', DOCS: 'off' } });
    assert.equal(service.output(), `gatefold listening on http://[::1]:${service.port}\n`);
    assert.doesNotMatch(service.errors(), /docs-served|group-shadowed/);
  });

  it('parses requests strictly also with --insecure-http-parser, which may be meant for what controllers call', async (test) => {
    const env = { WORKERS: '1', NODE_OPTIONS: '--insecure-http-parser' };
    const service = await startService(test, { files: { 'TestController.js': controller(1) }, env });
    const hidden = 'GET /api/test HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';
    const headers = 'Host: a\r\nContent-Length: 60\r\nTransfer-Encoding: chunked\r\n';
    const text = await sendRaw(service.port, `GET /api/test HTTP/1.1\r\n${headers}\r\n0\r\n\r\n${hidden}`, 2);
    assert.deepEqual(text.match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 400']);
  });

  for (const [env, flags, seen] of [
    [{}, [], 'production'],
    [{ NODE_ENV: '' }, [], 'production'],
    [{ NODE_ENV: 'staging' }, [], 'staging'],
    [{}, ['--node-env', 'development'], 'development'],
    [{ NODE_ENV: 'development' }, ['--node-env', 'production'], 'production'],
  ] as const) {
    it(`gives packages of controllers NODE_ENV=${seen}, with ${JSON.stringify(env)} ${flags.join(' ')}`, async (test) => {
      const files = { 'TestController.js': 'export default class { index() { return process.env.NODE_ENV; } }' };
      const without = 'NODE_ENV' in env ? [] : ['NODE_ENV'];
      const service = await startService(test, { files, env: { WORKERS: '1', ...env }, flags, without });
      assert.equal((await ask(service.port, '/api/test')).body, JSON.stringify({ data: seen }));
    });
  }

  it('exits with 0 on a signal during the start, and leaves no process', async (test) => {
    const text = `console.error('{"event":"importing"}');\nawait new Promise(() => {});\n`;
    const service = spawnService(test, { files: { 'TestController.js': text }, env: { WORKERS: '1' } });
    await service.logged('importing');
    service.process.kill('SIGTERM');
    assert.deepEqual(await service.exited, { code: 0, signal: null });
    await service.closed;
    assert.equal(service.output(), '');
  });

  it('keeps serving when its folder is removed right after the start', async (test) => {
    const dir = createFolder(test, { 'TestController.js': controller(1) });
    const service = await startService(test, { dir, env: { WORKERS: '1' } });
    renameSync(dir, `${dir}.away`);
    await service.logged('folder-missing');
    assert.equal((await ask(service.port, '/api/test')).status, 200);
    assert.ok(!service.lines.some(({ event }) => event === 'worker-died'));
  });

  it('refuses no connection while its only worker is replaced', async (test) => {
    const text = 'export default class { index() { return { pid: process.pid }; } exit() { process.exit(5); } }';
    const service = await startService(test, { files: { 'TestController.js': text }, env: { WORKERS: '1' } });
    await assert.rejects(ask(service.port, '/api/test/exit'));
    for (const answer of await Promise.all(Array.from({ length: 5 }, () => ask(service.port, '/api/test'))))
      assert.equal(answer.status, 200);
    assert.equal((await service.logged('worker-died')).reason, 'it ended the process with exit code 5');
  });
});
