// Calls every function that uses a private part of Node. .ci/run runs this test on each supported release of Node. A
// failure on a new release names the function to mend.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, constants, fstatSync, openSync, writeSync } from 'node:fs';
import { createServer as createHttpServer, IncomingMessage, type Server, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import { type AddressInfo, connect, createServer, type Server as NetServer, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { type ConnectionOptions, createServer as createTlsServer, connect as tlsConnect } from 'node:tls';
import * as internals from '../../src/base/node-internals.ts';
import { createFolder } from '../support/folder.ts';
import { moduleUrl } from '../support/own-modules.ts';
import { makePair } from '../support/tls.ts';

const TLS = { ...makePair('localhost'), sessionIdContext: 'test' };
const REQUEST = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n';

describe(`node-internals on Node ${process.version}`, { timeout: 60_000 }, () => {
  it('bindSocket binds a port that this process does not accept on', async (test) => {
    const bound = internals.bindSocket('127.0.0.1', 0, 4);
    assert.ok(typeof bound === 'object' && bound.port !== undefined);
    const { socket, port } = bound;
    await assert.rejects(once(connect(port, '127.0.0.1'), 'connect'), { code: 'ECONNREFUSED' });
    const server = createServer((connection) => connection.end('accepted')).listen(socket);
    test.after(() => server.close());
    assert.equal(String(await once(connect(port, '127.0.0.1'), 'data')), 'accepted');
    // 192.0.2.1 is for documentation (RFC 5737), so no machine has it.
    assert.equal(typeof internals.bindSocket('192.0.2.1', 0, 4), 'number');
  });

  it('descriptorOf returns the descriptor of an open socket', async (test) => {
    const { socket } = await pair(test, createServer(), (port) => connect(port, '127.0.0.1'));
    assert.ok(fstatSync(internals.descriptorOf(socket)).isSocket());
    socket.destroy();
    assert.equal(internals.descriptorOf(socket), 0);
  });

  it('lendSocket lets another response be assigned, until the socket is taken back', async (test) => {
    const { socket } = await pair(test, createServer(), (port) => connect(port, '127.0.0.1'));
    const request = new IncomingMessage(socket);
    const [own, other] = [new ServerResponse(request), new ServerResponse(request)];
    own.assignSocket(socket);
    const takeBack = internals.lendSocket(socket);
    other.assignSocket(socket);
    const isClosed = once(other, 'close');
    takeBack();
    await isClosed;
    assert.throws(() => other.assignSocket(socket), { code: 'ERR_HTTP_SOCKET_ASSIGNED' });
    assert.doesNotThrow(() => own.detachSocket(socket));
  });

  it('reviveRequest lets a request without a body emit end', async (test) => {
    const { port } = await listen(
      test,
      createHttpServer({ optimizeEmptyRequests: true } as object, (request, response) => {
        internals.reviveRequest(request, response);
        request.resume().on('end', () => response.end('ended'));
      }),
    );
    const client = connect(port, '127.0.0.1');
    client.write(REQUEST);
    assert.match(String(await once(client, 'data')), /ended/);
    client.destroy();
  });

  it('choosesUpgrades says whether a server asks which upgrades it takes', async (test) => {
    const asked: unknown[] = [];
    const shouldUpgradeCallback = ({ headers }: IncomingMessage) => asked.push(headers.upgrade) > 1;
    const server = createHttpServer({ shouldUpgradeCallback } as object, (_request, response) => response.end('usual'));
    const { port } = await listen(test, server);
    const client = connect(port, '127.0.0.1');
    client.write(REQUEST.replace('\r\n\r\n', '\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'));
    assert.match(String(await once(client, 'data')), /usual/);
    assert.deepEqual(asked, internals.choosesUpgrades() ? ['x'] : []);
    client.destroy();
  });

  it('watchBody tells when a body is wanted, and how much of it has come', async (test) => {
    const calls: unknown[] = [];
    const { port } = await listen(
      test,
      createHttpServer((request, response) => {
        internals.watchBody(request, { wait: () => calls.push('wait'), receive: (length) => calls.push(length) });
        request.resume().on('end', () => response.end(JSON.stringify(calls)));
      }),
    );
    const client = connect(port, '127.0.0.1');
    client.write('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nabc');
    while (!calls.includes('wait')) await wait(10);
    client.write('de');
    const answer = String(await once(client, 'data'));
    const [, list = ''] = /\r\n\r\n(.*)$/s.exec(answer) ?? [];
    const lengths = (JSON.parse(list) as unknown[]).filter((call) => call !== 'wait');
    assert.deepEqual(lengths, [3, 2, null]);
    client.destroy();
  });

  it('stopListening refuses new connections and leaves idle ones open', async (test) => {
    const { server, port } = await listen(
      test,
      createHttpServer((_request, response) => response.end('{}')),
    );
    const client = connect(port, '127.0.0.1');
    client.write(REQUEST);
    assert.match(String(await once(client, 'data')), / 200 OK/);
    internals.stopListening(server);
    client.write(REQUEST);
    assert.match(String(await once(client, 'data')), / 200 OK/);
    await assert.rejects(once(connect(port, '127.0.0.1'), 'connect'), { code: 'ECONNREFUSED' });
    client.destroy();
  });

  for (const [kind, start, dial] of [
    ['TCP', () => createServer({}), (port: number) => connect(port, '127.0.0.1')],
    ['TLS', () => createTlsServer(TLS), dialTls],
  ] as const) {
    it(`tcpCounters counts the bytes that the kernel took of one write (${kind})`, async (test) => {
      const { client, socket } = await pair(test, start(), dial);
      client.pause();
      socket.write(Buffer.alloc(64 << 20));
      let before = -1;
      // The kernel's buffers grow until they are full.
      for (let taken = takenBytes(socket); taken !== before; taken = takenBytes(socket)) {
        before = taken;
        await wait(50);
      }
      const { writeQueueSize = 0 } = internals.tcpCounters(socket);
      assert.ok(writeQueueSize > 0, 'the kernel cannot have taken the whole write');
      const tcp = internals.tcpCounters(internals.tcpSocketOf(socket));
      assert.deepEqual([takenBytes(socket), writeQueueSize], [before, tcp.writeQueueSize]);
      assert.equal(internals.tcpCounters(socket).bytesWritten, tcp.bytesWritten);
      assert.ok(socket.writableLength > 0);
      client.resume();
      while (takenBytes(socket) <= before) await wait(10);
      socket.destroy();
      assert.deepEqual(internals.tcpCounters(socket), {});
    });
  }

  it('tcpSocketOf returns the socket that was accepted', async (test) => {
    const server = createTlsServer(TLS);
    const accepted = once(server, 'connection');
    const { socket } = await pair(test, server, dialTls);
    const [tcp] = await accepted;
    assert.notEqual(tcp, socket);
    assert.equal(internals.tcpSocketOf(socket), tcp);
    assert.equal(internals.tcpSocketOf(tcp), tcp);
  });

  it('resetOnClose resets a connection that has nothing left to write', async (test) => {
    const { client, socket } = await pair(test, createServer(), (port) => connect(port, '127.0.0.1'));
    const failure = once(client, 'error');
    internals.resetOnClose(socket);
    socket.destroy();
    const [error] = await failure;
    assert.equal(error.code, 'ECONNRESET');
  });

  it('onTurn calls back when the answer to the pipelined request before is sent', async (test) => {
    const responses: ServerResponse[] = [];
    const { server, port } = await listen(
      test,
      createHttpServer((_request, response) => responses.push(response)),
    );
    const client = connect(port, '127.0.0.1');
    client.write(REQUEST + REQUEST);
    while (responses.length < 2) await once(server, 'request');
    const [first, second] = responses as [ServerResponse, ServerResponse];
    assert.equal(second.socket, null);
    let isCalled = false;
    const turn = new Promise<void>((resolve) =>
      internals.onTurn(second, () => {
        isCalled = true;
        resolve();
      }),
    );
    await wait(20);
    assert.equal(isCalled, false);
    first.end('first');
    await turn;
    assert.notEqual(second.socket, null);
    second.end('second');
    client.destroy();
  });

  it('stopParsingAfter drops the requests that follow in the same read', async (test) => {
    class Request extends IncomingMessage {
      constructor(socket: Socket) {
        super(socket);
        socket.destroy();
        internals.stopParsingAfter(this);
      }
    }
    let requests = 0;
    const server = createHttpServer({ IncomingMessage: Request }, () => requests++);
    const { port } = await listen(test, server);
    const client = connect(port, '127.0.0.1').on('error', () => {});
    client.write(REQUEST.repeat(5));
    await once(client, 'close');
    assert.ok(requests <= 1, `${requests} requests`);
  });

  it('overrideHeaders replaces headers only where Node itself reads them', async (test) => {
    class Request extends IncomingMessage {
      isReceived = false;
    }
    let reads = 0;
    internals.overrideHeaders(Request.prototype, (request) => {
      reads++;
      return request.isReceived ? undefined : { host: 'localhost', expect: '100-continue' };
    });
    const server = createHttpServer({ IncomingMessage: Request });
    const { port } = await listen(test, server);
    const client = connect(port, '127.0.0.1');
    client.write(REQUEST);
    // Node emits `checkContinue` for a request with `Expect: 100-continue`. This request has none, so the override emits
    // it, unless this Node reads no headers itself (from 26.12 on).
    const received = (event: string) =>
      once(server, event).then(([request, response]) => ({ event, reads, request, response }));
    const { event, request, response, ...atEvent } = (await Promise.race([
      received('checkContinue'),
      received('request'),
    ])) as { event: string; reads: number; request: Request; response: ServerResponse };
    assert.equal(event, atEvent.reads > 0 ? 'checkContinue' : 'request');
    request.isReceived = true;
    assert.equal(request.headers.host, 'localhost');
    assert.equal(request.headers.expect, undefined);
    response.end();
    client.destroy();
  });

  it('setTicketCallback chooses the key of a ticket', async (test) => {
    const server = createTlsServer(TLS, (socket) => socket.end('hello'));
    const name = randomBytes(16);
    const secrets = [randomBytes(16), randomBytes(16)] as const;
    const calls: string[] = [];
    internals.setTicketCallback(server, (ticketName, _iv, isNew) => {
      calls.push(isNew ? 'new' : 'open');
      if (isNew) return [1, ...secrets, name, randomBytes(16)];
      return [ticketName.equals(name) ? 2 : 0, ...secrets];
    });
    const { port } = await listen(test, server);
    const visit = async (options: ConnectionOptions) => {
      const client = dialTls(port, { ...options, minVersion: 'TLSv1.3' });
      let ticket: Buffer | undefined;
      client.on('session', (session) => {
        ticket = session;
      });
      await once(client, 'secureConnect');
      const isResumed = client.isSessionReused();
      client.resume();
      await once(client, 'close');
      return { ticket, isResumed };
    };
    const { ticket } = await visit({});
    assert.ok(ticket !== undefined && calls.includes('new') && !calls.includes('open'));
    assert.equal((await visit({ session: ticket })).isResumed, true);
    assert.ok(calls.includes('open'));
  });

  it('setProtocol changes the protocol of new connections', async (test) => {
    const server = createTlsServer({ ...TLS, ALPNProtocols: ['first'] });
    const { port } = await listen(test, server);
    const agree = async () => {
      const client = dialTls(port, { ALPNProtocols: ['third', 'second', 'first'] });
      await once(client, 'secureConnect');
      client.destroy();
      return client.alpnProtocol;
    };
    assert.equal(await agree(), 'first');
    internals.setProtocol(server, ({ servername, protocols }) => {
      assert.equal(servername, 'localhost');
      return protocols[1];
    });
    assert.equal(await agree(), 'second');
    internals.setProtocol(server, 'third');
    assert.equal(await agree(), 'third');
  });

  it('unescapeBytes decodes valid escapes and keeps malformed ones', () => {
    assert.equal(internals.unescapeBytes('a%20b+c%zz%E2%82%AC%').toString(), 'a b c%zz€%');
  });

  it('reopenWithoutWaiting opens a pipe again in non-blocking mode', { skip: process.platform !== 'linux' }, (test) => {
    const file = join(dirname(createFolder(test, {})), 'pipe');
    execFileSync('mkfifo', [file]);
    // A pipe that is opened for reading and writing opens without a second process.
    const fd = openSync(file, constants.O_RDWR);
    const reopened = internals.reopenWithoutWaiting(fd) as number;
    test.after(() => [fd, reopened].forEach(closeSync));
    assert.throws(() => writeUntilFull(reopened), { code: 'EAGAIN' });
    assert.equal(internals.reopenWithoutWaiting(9999), undefined);
  });

  it('stderrUnblocker makes a write to a full socket fail instead of block', async () => {
    // For each pipe of a child process, Node makes a pair of sockets.
    const child = runScript('stderrUnblocker()(); for (;;) writeSync(2, Buffer.alloc(4096));');
    assert.match(String(await once(child.stdout, 'data')), /EAGAIN/);
    child.stderr.resume();
    const [code] = await once(child, 'exit');
    assert.equal(code, 0);
  });

  it('onMissingRequire resolves a require that finds no file', () => {
    const require = createRequire(import.meta.url);
    internals.onMissingRequire((request) => (request === 'gatefold-missing' ? import.meta.filename : undefined));
    assert.equal(require.resolve('gatefold-missing'), import.meta.filename);
    assert.throws(() => require.resolve('gatefold-missing-too'), { code: 'MODULE_NOT_FOUND' });
  });

  it('keepTickShape keeps the object that is queued for a tick', async () => {
    internals.keepTickShape();
    await wait(1);
    assert.ok(typeof internals.queuedTick === 'object');
    // Only an object that is queued for a tick has a field `callback`.
    if (Number.parseInt(process.versions.node, 10) < 24) assert.ok('callback' in internals.queuedTick);
  });
});

function takenBytes(socket: Socket): number {
  const { bytesWritten, writeQueueSize } = internals.tcpCounters(socket);
  return (bytesWritten as number) - (writeQueueSize as number);
}

function writeUntilFull(fd: number): void {
  for (let bytes = 0; bytes < 16 << 20; ) bytes += writeSync(fd, Buffer.alloc(4096));
}

/** Runs a script that prints the code of the error that it throws. Its standard error is not read. */
function runScript(code: string) {
  const module = moduleUrl('src/base/node-internals');
  const script = `import { writeSync } from 'node:fs'; import { stderrUnblocker } from '${module}';
    try { ${code} } catch (error) { console.log(error.code); }`;
  const child = spawn(
    process.execPath,
    [...process.execArgv.filter((word) => !/test/.test(word)), '--input-type=module', '-e', script],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  child.stderr.pause();
  return child;
}

function dialTls(port: number, options: ConnectionOptions = {}) {
  return tlsConnect({ port, host: '127.0.0.1', servername: 'localhost', rejectUnauthorized: false, ...options });
}

async function listen<S extends NetServer | Server>(test: TestContext, server: S) {
  server.listen(0, '127.0.0.1');
  test.after(() => server.close());
  await once(server, 'listening');
  return { server, port: (server.address() as AddressInfo).port };
}

/** Connects a client to a server, and returns both ends. */
async function pair(test: TestContext, server: NetServer, dial: (port: number) => Socket) {
  const { port } = await listen(test, server);
  const isTls = 'setSecureContext' in server;
  const accepted = once(server, isTls ? 'secureConnection' : 'connection');
  const client = dial(port);
  test.after(() => client.destroy());
  const [[socket]] = (await Promise.all([accepted, once(client, isTls ? 'secureConnect' : 'connect')])) as [
    [Socket],
    unknown,
  ];
  for (const end of [client, socket]) end.on('error', () => {});
  return { client, socket };
}
