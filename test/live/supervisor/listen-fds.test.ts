// Sockets that systemd has opened. The test process plays systemd: it holds the socket, and passes its descriptor.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { takeListenFds } from '../../../src/base/listen-fds.ts';
import { adoptSocket, bindSocket } from '../../../src/base/node-internals.ts';
import { createFolder, SERVER } from '../../support/cluster-server.ts';
import { reap } from '../../support/reaper.ts';

describe('takeListenFds', () => {
  const take = (env: Record<string, string>) => {
    const all = { LISTEN_PID: '7', ...env };
    const fds = takeListenFds(all, 7);
    assert.deepEqual(all, {}, 'the variables are removed');
    return fds;
  };
  test('names the sockets by LISTEN_FDNAMES', () => {
    assert.deepEqual(take({ LISTEN_FDS: '2', LISTEN_FDNAMES: 'http-port:http' }), { httpPort: 3, http: 4 });
    assert.deepEqual(take({ LISTEN_FDS: '1', LISTEN_FDNAMES: 'http-port' }), { httpPort: 3 });
    assert.deepEqual(take({ LISTEN_FDS: '1', LISTEN_FDNAMES: 'shop.socket' }), { http: 3 });
    assert.deepEqual(take({ LISTEN_FDS: '1' }), { http: 3 });
  });
  test('ignores the variables of another process, and no number', () => {
    assert.deepEqual(take({ LISTEN_PID: '8', LISTEN_FDS: '1' }), {});
    for (const LISTEN_FDS of ['', '0', '-1', 'x']) assert.deepEqual(take({ LISTEN_FDS }), {});
  });
  test('refuses names that nothing serves, and two sockets of one name', () => {
    for (const LISTEN_FDNAMES of ['http:ops', 'http:http', ''])
      assert.throws(() => take({ LISTEN_FDS: '2', LISTEN_FDNAMES }), /FileDescriptorName=/);
  });
});

test('adoptSocket accepts nothing in this process, and refuses what is no socket', () => {
  assert.equal(adoptSocket(2)?.port, undefined);
  const { fd, port, close } = holdSocket();
  const adopted = adoptSocket(fd);
  assert.deepEqual([adopted?.port, adopted?.address], [port, '127.0.0.1']);
  close();
});

/** Binds a socket, as systemd does, and keeps it. */
function holdSocket() {
  const bound = bindSocket('127.0.0.1', 0, 4);
  assert.ok(typeof bound === 'object');
  const { fd } = bound.socket as unknown as { fd: number };
  return { fd, port: Number(bound.port), close: () => bound.socket.close() };
}

const CONTROLLER = `export default class { index() {
  return { pid: process.ppid, variables: Object.keys(process.env).filter((name) => name.startsWith('LISTEN_')) }; } }`;

/** Starts the service by a shell that ends in `exec`, as `DIR/run` does, with a descriptor. */
function start(t: TestContext, fd: number, env: Record<string, string>, dir: string) {
  const script = 'LISTEN_PID=$$ exec "$0" "$1"';
  const settings = {
    HOST: '127.0.0.1',
    WORKERS: '1',
    LOG_LEVEL: 'warn',
    CONTROLLERS_DIR: dir,
    DATA_DIR: join(dir, '..'),
  };
  const service = spawn('sh', ['-c', script, process.execPath, SERVER], {
    env: { ...process.env, ...settings, LISTEN_FDS: '1', LISTEN_FDNAMES: 'http', ...env },
    stdio: ['ignore', 'pipe', 'pipe', fd],
    detached: true,
  });
  reap(service);
  let errors = '';
  service.stderr?.on('data', (text) => {
    errors += text;
  });
  const exited = once(service, 'exit');
  t.after(async () => {
    if (service.exitCode === null && service.signalCode === null) service.kill('SIGTERM');
    await exited;
  });
  const listening = new Promise<string>((resolve, reject) => {
    service.stdout?.once('data', (text) => resolve(String(text)));
    exited.then(() => reject(new Error(errors)));
  });
  listening.catch(() => {});
  return { service, exited, listening, errors: () => errors };
}

/** Sends one request on a new connection. Resolves with the process id of the supervisor that answered. */
async function ask(port: number): Promise<number> {
  const socket = connect(port, '127.0.0.1');
  let text = '';
  socket.setEncoding('latin1').on('data', (part) => {
    text += part;
  });
  socket.write('GET /api/hello HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  await once(socket, 'close');
  assert.match(text, /^HTTP\/1\.1 200 /);
  assert.match(text, /"variables":\[\]/);
  return Number(/"pid":(\d+)/.exec(text)?.[1]);
}

describe('a service with a socket of systemd', () => {
  test('loses no request while it is replaced: connections wait', async (t) => {
    const held = holdSocket();
    t.after(held.close);
    const dir = createFolder(t, { 'HelloController.mjs': CONTROLLER });
    const env = { PORT: String(held.port) };
    let current = start(t, held.fd, env, dir);
    await current.listening;
    const seen = new Set<number>();
    const failures: unknown[] = [];
    let sent = 0;
    let pending: Promise<unknown>[] = [];
    const timer = setInterval(() => {
      sent++;
      pending.push(
        ask(held.port).then(
          (pid) => seen.add(pid),
          (error) => failures.push(error),
        ),
      );
    }, 20);
    while (sent < 20) await new Promise((turn) => setTimeout(turn, 20));
    current.service.kill('SIGTERM');
    await current.exited;
    current = start(t, held.fd, env, dir);
    await current.listening;
    const wanted = Number(process.env.GATEFOLD_TEST_REQUESTS ?? 0);
    while (sent < wanted || seen.size < 2) await new Promise((turn) => setTimeout(turn, 20));
    clearInterval(timer);
    await Promise.all(pending);
    pending = [];
    t.diagnostic(`${sent} requests over a restart, ${failures.length} lost`);
    assert.deepEqual(failures, []);
  });

  test('does not start where PORT or HOST is another one, or HTTP_PORT is off', async (t) => {
    const held = holdSocket();
    t.after(held.close);
    const dir = createFolder(t, { 'HelloController.mjs': CONTROLLER });
    const other = /gatefold: LISTEN_FDS: the socket listens on 127\.0\.0\.1:\d+, .*ListenStream=/;
    for (const [env, message] of [
      [{ PORT: '1' }, other],
      [{ PORT: String(held.port), HOST: '127.0.0.2' }, other],
      [{ PORT: '0', LISTEN_FDNAMES: 'http-port' }, /gatefold: LISTEN_FDS: .* http-port.*HTTP_PORT is off/],
    ] as const) {
      const { service, exited, errors } = start(t, held.fd, env, dir);
      service.stdout?.once('data', () => service.kill('SIGTERM'));
      assert.deepEqual(await exited, [1, null]);
      assert.match(errors(), message);
    }
  });
});
