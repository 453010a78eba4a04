// The code of docs/SOCKETS.md runs in the built service with two workers: `ws` on both sides, socket.io with its own
// client, tokens, and sockets that reconnect over edits while other requests lose nothing. Needs Node 24.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { io } from 'socket.io-client';
import { WebSocket } from 'ws';

const root = resolve(import.meta.dirname, '..');
/** The code blocks of the page by the comment in their first lines. */
const page = Object.fromEntries(
  Array.from(
    readFileSync(join(root, 'docs/SOCKETS.md'), 'utf8').matchAll(/```ts\n\/\/ ([\w/.]+).*\n([\s\S]*?)```/g),
    ([, name, source]) => [name, source],
  ),
);

let service;
let url;
let work;
const lines = [];

/** Writes a file by a rename, so that no worker reads half of it. */
function put(name, source) {
  writeFileSync(join(work, 'next'), source);
  renameSync(join(work, 'next'), join(work, name));
}

before(async () => {
  work = mkdtempSync(join(import.meta.dirname, 'work-'));
  for (const folder of ['controllers', 'lib', 'node_modules']) mkdirSync(join(work, folder));
  put('package.json', '{ "type": "module" }');
  symlinkSync(root, join(work, 'node_modules/gatefold'));
  put(
    'lib/users.ts',
    `export const userOfToken = (token: string) => (token === 'secret-of-ann' ? { id: 'ann' } : undefined);`,
  );
  for (const [name, source] of Object.entries(page)) if (name.startsWith('controllers/')) put(name, source);
  const env = {
    ...process.env,
    ...{ PORT: '0', HOST: '127.0.0.1', WORKERS: '2', LOG_LEVEL: 'info', NODE_TEST_CONTEXT: undefined },
    ...{ CONTROLLERS_DIR: join(work, 'controllers'), DATA_DIR: join(work, 'data') },
  };
  service = spawn(process.execPath, [join(root, 'dist/server.js')], {
    ...{ env, cwd: work, stdio: ['ignore', 'pipe', 'pipe'] },
  });
  createInterface({ input: service.stderr }).on('line', (line) => {
    if (line.startsWith('{')) lines.push(JSON.parse(line));
  });
  for await (const line of createInterface({ input: service.stdout })) {
    url = /http:\/\/\S+/.exec(line)?.[0];
    if (url !== undefined) break;
  }
  assert.deepEqual(
    lines.filter(({ event }) => /not-loadable/.test(event)),
    [],
  );
});

after(async () => {
  service.kill();
  await once(service, 'exit');
  rmSync(work, { recursive: true, force: true });
});

const socketUrl = (path) => url.replace('http', 'ws') + path;
const until = async (isDone) => {
  while (!(await isDone())) await new Promise((done) => setTimeout(done, 20));
};

/** @returns the open socket, or the status of the refusal */
async function open(path, ...parameters) {
  const socket = new WebSocket(socketUrl(path), ...parameters);
  return new Promise((done, failed) => {
    socket.on('open', () => done(socket));
    socket.on('unexpected-response', (request, response) => {
      request.destroy();
      done(response.statusCode);
    });
    socket.on('error', failed);
  });
}

test('ws talks to ws, and the log has the socket at its end', async () => {
  const socket = await open('/api/chat');
  const big = 'x'.repeat(60_000);
  for (const text of ['hello', big]) {
    socket.send(text);
    const [answer] = await once(socket, 'message');
    assert.equal(String(answer), `you said ${text}`);
  }
  socket.send('y'.repeat(70_000));
  const [code] = await once(socket, 'close');
  assert.equal(code, 1009);
  await until(() =>
    lines.some(({ event, path, status }) => event === 'request' && path === '/api/chat' && status === 101),
  );
  assert.equal((await fetch(`${url}/api/chat`)).status, 404);
  assert.equal((await fetch(`${url}/api/chat`, { method: 'POST', body: '{}' })).status, 404);
});

test('a page of another origin is refused', async () => {
  assert.equal(await open('/api/chat', { origin: 'https://evil.test' }), 403);
  const own = await open('/api/chat', { origin: url });
  own.terminate();
});

test('a token as a protocol says who calls', async () => {
  assert.equal(await open('/api/room?name=tea'), 401);
  assert.equal(await open('/api/room?name=tea', ['chat', 'secret-of-nobody']), 401);
  const socket = await open('/api/room?name=tea', ['chat', 'secret-of-ann']);
  assert.equal(socket.protocol, 'chat');
  socket.terminate();
});

test('a message of a room reaches its clients in both workers', async () => {
  const protocols = ['chat', 'secret-of-ann'];
  const clients = await Promise.all(Array.from({ length: 12 }, () => open('/api/room?name=tea', protocols)));
  const other = await open('/api/room?name=coffee', protocols);
  let received = 0;
  for (const client of clients)
    client.on('message', (text) => {
      assert.deepEqual(JSON.parse(text), { room: 'tea', text: 'hello', by: 'ann' });
      received++;
    });
  other.on('message', () => assert.fail('a message of another room'));
  clients[0].send('hello');
  await until(() => received === clients.length);
  for (const client of [...clients, other]) client.terminate();
});

test("socket.io's own client gets an answer, and reconnects over an edit", async () => {
  const client = io(url.replace('http', 'ws'), { path: '/api/live', transports: ['websocket'] });
  await new Promise((done, failed) => client.on('connect', done).on('connect_error', failed));
  assert.equal(await client.emitWithAck('hello', 'ann'), 'hello ann');
  const back = new Promise((done) => client.io.once('reconnect', done));
  put('controllers/LiveController.ts', `${page['controllers/LiveController.ts']}\n// edited`);
  await back;
  assert.equal(await client.emitWithAck('hello', 'bob'), 'hello bob');
  client.close();
});

test('sockets reconnect over edits under load, and usual requests lose nothing', async () => {
  // The client of the page, with the sockets of `ws`, which are made here to count their ends.
  const made = [];
  const codes = new Map();
  class CountingSocket extends WebSocket {
    constructor(...parameters) {
      super(...parameters);
      made.push(this);
      this.addEventListener('error', () => {});
      this.addEventListener('close', ({ code }) => codes.set(code, (codes.get(code) ?? 0) + 1));
    }
  }
  const source = stripTypeScriptTypes(page.client).replace('export function', 'return function');
  const openOf = new Function('WebSocket', source)(CountingSocket);
  const COUNT = 40;
  const heard = new Set();
  for (let i = 0; i < COUNT; i++) openOf(socketUrl('/api/chat'), [], (text) => heard.add(text));
  const living = () => made.filter(({ readyState }) => readyState === WebSocket.OPEN);
  await until(() => living().length === COUNT);
  let isOver = false;
  const statuses = new Set();
  const load = Array.from({ length: 4 }, async () => {
    while (!isOver) statuses.add((await fetch(`${url}/api/chat`).catch((error) => error)).status);
  });
  for (let edit = 1; edit <= 2; edit++) {
    const before = made.length;
    put('controllers/ChatController.ts', page['controllers/ChatController.ts'].replace('you said', `edit ${edit}:`));
    await until(() => made.length >= before + COUNT && living().length === COUNT);
    for (const [i, socket] of living().entries()) socket.send(`from ${i}`);
    await until(() =>
      Array.from({ length: COUNT }, (_, i) => `edit ${edit}: from ${i}`).every((text) => heard.has(text)),
    );
  }
  isOver = true;
  await Promise.all(load);
  assert.deepEqual([...statuses], [404]);
  assert.deepEqual([...codes.keys()], [1012]);
  assert.equal(codes.get(1012), 2 * COUNT);
  assert.deepEqual(
    lines.filter(({ level }) => level === 'error'),
    [],
  );
  for (const socket of made) {
    // The page has no way to stop its client, so nothing reconnects from here on.
    socket.onclose = null;
    socket.terminate();
  }
});
