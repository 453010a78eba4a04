// The operations port with clients that keep connections open: a probe still gets an answer, and no client makes more
// than one answer wait.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { createLog } from '../../../src/base/log.ts';
import { createOperationsServer, limitConnections } from '../../../src/operate/ops/server.ts';
import { ask } from '../../support/cluster-client.ts';

async function openPort(status = () => undefined): Promise<number> {
  let port = 0;
  const write = (line: string) => {
    const { event, port: opened } = JSON.parse(line) as { event: string; port: number };
    if (event === 'operations-port-opened') port = opened;
  };
  const log = createLog({ level: 'info', sink: { write } });
  await createOperationsServer({ port: 0, host: '127.0.0.1', workers: 1, log, droppedLines: () => 0 }).open(status);
  return port;
}

async function open(t: TestContext, port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  t.after(() => socket.destroy());
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

test('the operations port answers probes beside 150 silent connections', async (t) => {
  const port = await openPort();
  const first = await open(t, port);
  const gone = once(first, 'close');
  for (let i = 0; i < 150; i++) await open(t, port);
  await gone;
  for (let i = 0; i < 5; i++) assert.equal((await ask(port, '/livez')).status, 200);
});

test('the operations port closes a connection that pipelines, after at most two answers', async (t) => {
  let made = 0;
  const port = await openPort(() => void made++);
  const socket = await open(t, port);
  socket.pause();
  const closed = once(socket.resume(), 'close');
  socket.write('GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(1500));
  await closed;
  assert.ok(made <= 2, `${made} times`);
  assert.equal((await ask(port, '/livez')).status, 200);
});

test('the operations port answers one request after the other on one connection', async (t) => {
  const port = await openPort();
  const socket = await open(t, port);
  for (let i = 0; i < 10; i++) {
    socket.write('GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n');
    let text = '';
    while (!text.includes('gatefold_identity_fetch_failures_total ')) text += String((await once(socket, 'data'))[0]);
  }
});

test('limitConnections closes a connection that does not read its answer, and keeps a connection that does', async (t) => {
  const server = createServer(({ url }, response) =>
    response.end(url === '/' ? Buffer.alloc(32 * 1024 * 1024) : 'small'),
  );
  t.after(() => server.close());
  limitConnections(server, { maxConnections: 10, answerTimeout: 200 });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as AddressInfo;
  const ended = once(server, 'connection').then(([socket]) => once(socket as Socket, 'close'));
  const deaf = await open(t, port);
  deaf.pause();
  deaf.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  await ended;
  const reader = await open(t, port);
  for (let i = 0; i < 2; i++) {
    reader.write('GET /small HTTP/1.1\r\nHost: a\r\n\r\n');
    let text = '';
    while (!text.endsWith('small')) text += String((await once(reader, 'data'))[0]);
    // This wait is longer than an answer may take.
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  assert.equal(reader.destroyed, false);
});

test('limitConnections closes the connection that was idle for longest, not the oldest connection', async (t) => {
  const server = createServer((_request, response) => response.end('{}'));
  t.after(() => server.close());
  limitConnections(server, { maxConnections: 2, answerTimeout: 10_000 });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as AddressInfo;
  const scraper = await open(t, port);
  const silent = await open(t, port);
  const ended = once(silent, 'close');
  for (let i = 0; i < 12; i++) {
    scraper.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await once(scraper, 'data');
  }
  await open(t, port);
  await ended;
  assert.equal(scraper.destroyed, false);
});
