// Tests connections: which requests the server keeps for them, which connections it ends, and when.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises';
import { connect as connectSecurely } from 'node:tls';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createTlsServer } from '../../src/operate/https/serve/tls-server.ts';
import {
  attachConnection,
  Connection,
  findConnection,
  type TrackedSocket,
} from '../../src/request/connections/connection.ts';
import { createConnections } from '../../src/request/connections/connections.ts';
import { createSlowReaders, unsentBytes } from '../../src/request/connections/slow-readers.ts';
import { Exchange } from '../../src/request/exchange.ts';
import { Request } from '../../src/request/head.ts';
import { startService } from '../support/service.ts';
import { makePair } from '../support/tls.ts';

/** A server without an app, and a client that has connected to it. */
async function startTracked(t: TestContext) {
  const server = createServer({ IncomingMessage: Request, requireHostHeader: false });
  server.on('clientError', (_error, socket) => socket.destroy());
  const connections = createConnections({
    keepAliveTimeout: 1000,
    readTimeout: 1000,
    maxUnread: 1000,
    maxConnections: 10,
  });
  connections.watch(server, 'connection');
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  t.after(() => {
    client.destroy();
    server.close();
    server.closeAllConnections();
  });
  return { server, connections, client };
}

test('the server forgets the exchange of a closed connection', async (t) => {
  const { server, connections, client } = await startTracked(t);
  client.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n1');
  const [request, response] = await once(server, 'request');
  const { socket } = request;
  const exchange = new Exchange(request, response, 0);
  connections.begin(exchange);
  assert.equal(findConnection(socket)?.lastExchange, exchange);

  // The request never gets an answer. If the closed connection kept it, each garbage collection would copy it.
  client.destroy();
  await once(socket, 'close');
  assert.equal(findConnection(socket)?.lastExchange, undefined);
});

test('the server forgets the exchange of an idle connection, which still ends at its time limit', async (t) => {
  const { server, connections, client } = await startTracked(t);
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  const [request, response] = await once(server, 'request');
  const exchange = new Exchange(request, response, 0);
  connections.begin(exchange);
  response.end();
  exchange.answer.isComplete = true;
  connections.end(exchange);
  const connection = findConnection(request.socket);
  assert.ok(connection !== undefined);
  // As if a sweep had found its body incomplete.
  connection.incomplete = exchange;

  while (connection.lastExchange !== undefined) await wait(5);
  assert.equal(connection.incomplete, undefined);
  assert.equal(request.socket.destroyed, false);
  client.resume();
  await once(client, 'close');
});

test('connections one after the other use one slot', async (t) => {
  const { server, client } = await startTracked(t);
  const slots: (number | undefined)[] = [];
  const { port } = server.address() as AddressInfo;
  for (let next = client, i = 0; i < 3; i++) {
    const [socket] = (await once(server, 'connection')) as [Socket];
    slots.push(findConnection(socket)?.slot);
    next.destroy();
    await once(socket, 'close');
    next = connect(port, '127.0.0.1');
    t.after(() => next.destroy());
  }
  assert.deepEqual(slots, [0, 0, 0]);
});

test('an idle connection is open for KEEP_ALIVE_TIMEOUT, and one without a request longer', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const service = await startService({ settings: { KEEP_ALIVE_TIMEOUT: '1s' } });
  t.after(service.close);
  const sockets: Socket[] = [];
  service.app.server.on('connection', (socket) => sockets.push(socket));
  const clients = [1, 2].map(() => connect(service.port, '127.0.0.1'));
  for (const client of clients) t.after(() => client.destroy());
  while (sockets.length < 2) await turn();
  clients[0]?.write('GET /api/test HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(clients[0] as Socket, 'data');
  const closed = once(clients[0] as Socket, 'close');
  const open = [1, 2, 3].map(() => {
    t.mock.timers.tick(500);
    return sockets.filter(({ destroyed }) => !destroyed).length;
  });
  assert.deepEqual(open, [2, 2, 1]);
  await closed;
});

test('a client that is cut after its time limit no longer counts, so other answers are kept', () => {
  const cut = createSlowReaders({ readTimeout: 1000, maxUnread: 50 });
  const sockets: (TrackedSocket & { destroyed: boolean })[] = [];
  for (let sweep = 1; sweep <= 3; sweep++) {
    const socket = {
      writableLength: 20,
      bytesWritten: 30,
      destroyed: false,
      destroy() {
        this.destroyed = true;
      },
    };
    sockets.push(socket as unknown as TrackedSocket);
    attachConnection(socket as unknown as TrackedSocket, new Connection(sweep, sweep, sweep));
    cut(sockets, sweep);
  }
  // At the last sweep, the first client has read nothing for a second. All three answers together exceed the maximum.
  assert.deepEqual(
    sockets.map(({ destroyed }) => destroyed),
    [true, false, false],
  );
});

// The first size arrives in one piece, which is not copied. The second arrives in many pieces.
for (const [size, count] of [
  [32 * 1024, 256],
  [1024 * 1024, 16],
] as const) {
  test(`idle connections do not keep the bodies of their requests in memory: ${size} bytes`, async (t) => {
    const controllers = {
      'SizeController.mjs': 'export class SizeController { created(text) { return { length: text.length }; } }',
    };
    const service = await startService({
      controllers,
      settings: { BODY_LIMIT: String(size), KEEP_ALIVE_TIMEOUT: '60s' },
    });
    t.after(() => service.close());
    const body = Buffer.alloc(size, 'a');
    const bufferBytes = collectingBytes();
    const before = await bufferBytes();

    const clients = Array.from({ length: count }, () => connect(service.port, '127.0.0.1'));
    await Promise.all(
      clients.map(async (client) => {
        client.write(
          `POST /api/size HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: ${size}\r\n\r\n`,
        );
        client.write(body);
        let answer = '';
        while (!answer.includes('}')) answer += await once(client, 'data');
        assert.ok(answer.endsWith(`{"length":${size}}`), answer);
      }),
    );

    // A Buffer's memory may be freed one collection later than the Buffer. Buffers that are still used are never freed.
    const limit = (count * size) / 4;
    let held = Number.POSITIVE_INFINITY;
    for (let look = 0; look < 20 && held > limit; look++) held = (await bufferBytes()) - before;
    assert.ok(held <= limit, `${held} bytes for ${count} bodies of ${size}`);
    for (const client of clients) client.destroy();
  });
}

/** Returns a function that collects garbage and returns the bytes of the remaining Buffers. */
function collectingBytes(): () => Promise<number> {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  return async () => {
    collect();
    await turn();
    return process.memoryUsage().arrayBuffers;
  };
}

test('closeIdleConnections closes an idle connection, and keeps one whose answer is being sent', async (t) => {
  const controllers = { 'BigController.mjs': `export default class { index() { return 'x'.repeat(20_000_000); } }` };
  const service = await startService({ controllers });
  t.after(service.close);
  const client = connect(service.port, '127.0.0.1');
  const idle = connect(service.port, '127.0.0.1');
  for (const socket of [client, idle]) socket.on('error', () => {});
  idle.write('GET /api/absent HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(idle, 'data');
  client.write('GET /api/big HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(client, 'readable');
  // A draining worker calls this function repeatedly, too.
  const gone = once(idle, 'close');
  const timer = setInterval(() => service.app.server.closeIdleConnections(), 5);
  await gone;
  let length = 0;
  for await (const chunk of client) {
    length += chunk.length;
    if (length > 20_000_000) break;
  }
  clearInterval(timer);
  assert.ok(length > 20_000_000, `${length} bytes`);
});

test('closeIdleConnections leaves a connection time for its next request after the end of a long answer', async (t) => {
  const service = await startService();
  t.after(service.close);
  const client = connect(service.port, '127.0.0.1').setEncoding('latin1');
  t.after(() => client.destroy());
  for (let requests = 0; requests < 3; requests++) {
    client.write('GET /api/test HTTP/1.1\r\nHost: x\r\n\r\n');
    const [answer] = await once(client, 'data', { signal: AbortSignal.timeout(60_000) });
    assert.match(String(answer), /^HTTP\/1\.1 200 /);
    look(service.app.server, 25);
  }
});

/** A draining worker calls this function every 50 ms. */
function look(server: Server, times: number): void {
  for (let i = 0; i < times; i++) server.closeIdleConnections();
}

test('closeIdleConnections keeps a connection that has received a part of its next request', async (t) => {
  const service = await startService();
  t.after(service.close);
  const { server } = service.app;
  const accepted = once(server, 'connection');
  const client = connect(service.port, '127.0.0.1').setEncoding('latin1');
  t.after(() => client.destroy());
  const [socket] = (await accepted) as [Socket];
  const request = 'GET /api/test HTTP/1.1\r\nHost: x\r\n\r\n';
  client.write(request);
  await once(client, 'data');
  look(server, 30);
  client.write(request.slice(0, 20));
  while (socket.bytesRead < request.length + 20 && !socket.destroyed) await turn();
  look(server, 30);
  client.write(request.slice(20));
  const [answer] = await once(client, 'data', { signal: AbortSignal.timeout(60_000) });
  assert.match(String(answer), /^HTTP\/1\.1 200 /);
  const closed = once(client, 'close');
  look(server, 31);
  await closed;
});

test('beyond MAX_CONNECTIONS the server first ends connections whose first request is late, then the one that has idled longest', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const service = await startService({ settings: { MAX_CONNECTIONS: '4' } });
  t.after(() => service.close());
  const closed: string[] = [];
  const open = async (name: string, bytes: string) => {
    const accepted = once(service.app.server, 'connection');
    const client = connect(service.port, '127.0.0.1');
    t.after(() => client.destroy());
    client.on('error', () => {});
    client.on('data', () => {});
    client.on('close', () => closed.push(name));
    client.write(bytes);
    const [socket] = (await accepted) as [Socket];
    while (socket.bytesRead < bytes.length) await turn();
    return client;
  };
  const whole = 'GET /api/test HTTP/1.1\r\nHost: x\r\n\r\n';
  const half = 'GET /api/test HTTP/1.1\r\nHost:';
  const ends = async (name: string) => {
    while (!closed.includes(name)) await turn();
  };
  const first = await open('first', whole);
  await once(first, 'data');
  t.mock.timers.tick(500);
  const second = await open('second', whole);
  await once(second, 'data');
  await open('half', half);
  t.mock.timers.tick(500);
  await open('later half', half);
  await open('new half', half);
  await ends('half');
  t.mock.timers.tick(500);
  for (const name of ['later half', 'new half']) {
    await open(`instead of ${name}`, half);
    await ends(name);
  }
  // The other connections have just opened, and the first one has just received another answer.
  first.write(whole);
  await once(first, 'data');
  await open('last', half);
  await ends('second');
  await open('one more', half);
  await ends('instead of later half');
  assert.deepEqual(closed, ['half', 'later half', 'new half', 'second', 'instead of later half']);
  assert.equal(service.app.refusedConnections(), 4, 'the second one had its answer');
});

// After an answer that ends its connection, Node keeps reading until the connection is closed.
test('a pipelined request is not begun behind an answer that ends the connection', async (t) => {
  const { server, connections, client } = await startTracked(t);
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  const [request, response] = await once(server, 'request');
  assert.equal(connections.begin(new Exchange(request, response, 0)), true);
  assert.equal(connections.begin(new Exchange(request, response, 0)), true);
  response.shouldKeepAlive = false;
  assert.equal(connections.begin(new Exchange(request, response, 0)), false);
});

for (const scheme of ['http', 'https'] as const) {
  test(`an answer is cut when its client reads nothing for REQUEST_TIMEOUT, and not while the client reads slowly: ${scheme}`, async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const controllers = {
      'BigController.mjs': "export class BigController { index() { return 'x'.repeat(30_000_000); } }",
    };
    const transport = createTlsServer({ handshakeTimeout: 60_000, maxConnections: 10, plainRefusal: () => '' });
    transport.use({ ...makePair('localhost'), ticketKeys: [randomBytes(48).toString('base64')], challenge: undefined });
    const settings = { REQUEST_TIMEOUT: '1s', HEADERS_TIMEOUT: '1s' };
    const service = await startService({ controllers, settings, parts: scheme === 'http' ? {} : { transport } });
    t.after(() => service.close());
    const [socket, client] = await new Promise<[Socket, Socket]>((connected) => {
      const at = { port: service.port, host: '127.0.0.1', rejectUnauthorized: false };
      const client = scheme === 'http' ? connect(at) : connectSecurely(at);
      service.app.server.on(scheme === 'http' ? 'connection' : 'secureConnection', (socket) =>
        connected([socket, client]),
      );
    });
    t.after(() => client.destroy());
    client.on('error', () => {});
    client.write('GET /api/big HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(client, 'readable');
    // Three seconds in all. The kernel buffers little compared with the bytes that are read in a second.
    for (let read = 0, sweep = 1; sweep <= 6; sweep++) {
      for (; read < sweep * 3_000_000; await turn()) read += (client.read() as Buffer | null)?.length ?? 0;
      t.mock.timers.tick(500);
      assert.equal(socket.destroyed, false, `after ${sweep} sweeps`);
    }
    assert.ok(socket.writableLength > 0);
    const closed = once(socket, 'close');
    const outcome = [1, 2].map(() => {
      t.mock.timers.tick(500);
      return socket.destroyed;
    });
    assert.deepEqual(outcome, [false, true]);
    // The test waits while it still controls the timers, because the sweeps end with the last connection.
    await closed;
  });
}

test('clients that do not read are cut while unsent answers exceed BODY_BUDGET, and a client that reads is kept', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const controllers = {
    'BigController.mjs': "export class BigController { index() { return 'x'.repeat(20_000_000); } }",
  };
  const service = await startService({ controllers, settings: { BODY_BUDGET: '50MB' } });
  t.after(() => service.close());
  const sockets: Socket[] = [];
  service.app.server.on('connection', (socket) => sockets.push(socket));
  const ask = async () => {
    const client = connect(service.port, '127.0.0.1');
    t.after(() => client.destroy());
    client.on('error', () => {});
    client.write('GET /api/big HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(client, 'readable');
    return client;
  };
  const reader = await ask();
  for (let i = 0; i < 3; i++) await ask();
  assert.ok(sockets.every((socket) => socket.writableLength > 0));
  t.mock.timers.tick(500);
  assert.ok(sockets.every((socket) => !socket.destroyed));
  const [first] = sockets as [Socket];
  const before = unsentBytes(first);
  while (unsentBytes(first) === before) {
    reader.read();
    await turn();
  }
  t.mock.timers.tick(500);
  assert.deepEqual(
    sockets.map((socket) => socket.destroyed),
    [false, true, true, false],
  );
  t.mock.timers.tick(500);
  assert.equal(sockets.filter((socket) => socket.destroyed).length, 2);
});
