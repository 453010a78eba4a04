// Requests to the collector, with raw sockets that answer byte by byte, and with TLS servers.
import assert from 'node:assert/strict';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import { zlib } from '../../../src/base/builtins.ts';
import { readTraceSettings } from '../../../src/operate/trace/environment.ts';
import { createBatchSender } from '../../../src/operate/trace/post.ts';
import { makePair } from '../../support/tls.ts';

const LONG = 60_000;
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}';

/** Starts a server that calls `serve` with each connection and its number, from 1. */
async function listen(test: TestContext, serve: (socket: Socket, number: number) => void): Promise<URL> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket.on('error', () => {}));
    serve(socket, sockets.length);
  });
  return started(test, server, 'http', () => sockets);
}

async function started(test: TestContext, server: Server, scheme: string, sockets: () => Socket[]): Promise<URL> {
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  test.after(() => {
    for (const socket of sockets()) socket.destroy();
    return new Promise((closed) => server.close(closed));
  });
  return new URL(`${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces?x=1`);
}

const SENT = { kind: 'sent', rejected: 0, reason: 'the collector rejected spans' };
const settings = {
  headers: { 'api-key': 'é' },
  compress: false,
  tls: { ca: undefined, cert: undefined, key: undefined },
};
const sendTo = (endpoint: URL) => createBatchSender({ ...settings, endpoint }, 'test');

describe('the connection of createBatchSender', () => {
  it('sends two requests on the same connection', async (test) => {
    let received = '';
    let connections = 0;
    const endpoint = await listen(test, (socket, number) => {
      connections = number;
      socket.on('data', (bytes) => {
        received += bytes.toString('latin1');
        if (received.endsWith('}')) socket.write(OK);
      });
    });
    const send = sendTo(endpoint);
    for (const body of ['{"a":1}', '{"b":"ü"}']) assert.deepEqual(await send(Buffer.from(body), LONG), SENT);
    assert.match(
      received,
      /^POST \/v1\/traces\?x=1 HTTP\/1\.1\r\napi-key: é\r\n.*content-length: 7\r\n.*\{"a":1\}POST /s,
    );
    assert.ok(received.endsWith(Buffer.from('\r\n\r\n{"b":"ü"}').toString('latin1')), received);
    assert.equal(connections, 1);
  });

  it('opens a new connection after the collector has closed the old connection', async (test) => {
    const closed: Promise<unknown>[] = [];
    const endpoint = await listen(test, (socket) => {
      closed.push(new Promise((resolve) => socket.on('close', resolve)));
      socket.once('data', () => socket.end(OK));
    });
    const send = sendTo(endpoint);
    for (let i = 0; i < 3; i++) {
      assert.equal((await send(Buffer.from('{}'), LONG)).kind, 'sent');
      await closed[i];
    }
    assert.equal(closed.length, 3);
  });

  it('closes an idle connection', async (test) => {
    let closed: Promise<unknown> = Promise.resolve();
    const endpoint = await listen(test, (socket) => {
      closed = new Promise((resolve) => socket.on('close', resolve));
      socket.on('data', () => socket.write(OK));
    });
    assert.equal((await sendTo(endpoint)(Buffer.from('{}'), LONG)).kind, 'sent');
    await closed;
  });

  it('stops sending a body that the collector answers early, and sends the next body whole', async (test) => {
    const firstSocket = { bytes: 0, resume: (): void => {}, closed: Promise.resolve<unknown>(undefined) };
    let second = '';
    const endpoint = await listen(test, (socket, number) => {
      if (number > 1) {
        socket.on('data', (bytes) => {
          second += bytes;
          if (second.endsWith('}')) socket.write(OK);
        });
        return;
      }
      firstSocket.closed = new Promise((resolve) => socket.on('close', resolve));
      firstSocket.resume = () => socket.resume();
      socket.once('data', () => socket.pause().write('HTTP/1.1 413 Too large\r\ncontent-length: 0\r\n\r\n'));
      socket.on('data', ({ length }) => {
        firstSocket.bytes += length;
      });
    });
    const send = sendTo(endpoint);
    const size = 64 * 1024 * 1024;
    const outcome = await send(Buffer.alloc(size, 'x'), LONG);
    assert.deepEqual(outcome, { kind: 'lost', reason: 'the collector answered 413' });
    firstSocket.resume();
    await firstSocket.closed;
    assert.ok(firstSocket.bytes < size, `${firstSocket.bytes} bytes`);
    assert.equal((await send(Buffer.from('{}'), LONG)).kind, 'sent');
    assert.match(second, /content-length: 2\r\n.*\r\n\r\n\{\}$/s);
  });

  const reject = '{"partialSuccess":{"rejectedSpans":1}}';
  for (const [what, answer, rejected] of [
    ['no length', `HTTP/1.1 200 OK\r\n\r\n${reject}`, 1],
    ['a length that is never reached', `HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n${reject}`, 1],
    ['a chunk that ends early', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n9\r\n{', 0],
    ['the version HTTP/1.0', `HTTP/1.0 200 OK\r\n\r\n${reject}`, 1],
    ['an interim answer before it', `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n${reject}`, 1],
  ] as const)
    it(`reads an answer with ${what}, up to the end of the connection`, async (test) => {
      const endpoint = await listen(test, (socket) => socket.once('data', () => socket.end(answer)));
      assert.deepEqual(await sendTo(endpoint)(Buffer.from('{}'), LONG), { ...SENT, rejected });
    });

  it('reads only the beginning of an endless answer', async (test) => {
    const endpoint = await listen(test, (socket) =>
      socket.once('data', () => {
        socket.write('HTTP/1.1 400 Bad\r\n\r\n');
        const write = (): void => void (socket.writable && socket.write('x'.repeat(16_384), write));
        write();
      }),
    );
    const outcome = await sendTo(endpoint)(Buffer.from('{}'), LONG);
    assert.deepEqual(outcome, { kind: 'lost', reason: 'the collector answered 400' });
  });

  for (const [what, serve, reason] of [
    ['hangs', () => {}, /did not answer in time/],
    ['closes', (socket: Socket) => socket.end(), /ECONNRESET/],
    ['resets', (socket: Socket) => socket.resetAndDestroy(), /ECONNRESET/],
    ['is no web server', (socket: Socket) => socket.write('220 mail.example ESMTP\r\n'), /HPE_/],
  ] as const)
    it(`keeps the batch when the collector ${what}, and sends the next request`, async (test) => {
      let isBroken = true;
      const endpoint = await listen(test, (socket) =>
        socket.once('data', () => (isBroken ? serve(socket) : socket.write(OK))),
      );
      const send = sendTo(endpoint);
      const outcome = await send(Buffer.from('{}'), what === 'hangs' ? 50 : LONG);
      assert.equal(outcome.kind, 'retryable');
      assert.match(outcome.reason, reason);
      isBroken = false;
      assert.equal((await send(Buffer.from('{}'), LONG)).kind, 'sent');
    });
});

describe('createBatchSender', () => {
  it('returns a retryable outcome when a batch cannot be compressed', async (test) => {
    test.mock.method(zlib(), 'gzip', (_body: Buffer, done: (error: Error) => void) => done(new Error('no memory')));
    const endpoint = new URL('http://127.0.0.1:9');
    const outcome = await createBatchSender({ ...settings, endpoint, compress: true }, 'test')(Buffer.from('{}'), LONG);
    assert.deepEqual(outcome, { kind: 'retryable', reason: 'no memory', retryAfter: 0 });
  });

  it('sends the user and the password of the URL, unless the header Authorization is configured', async (test) => {
    let received = '';
    const endpoint = await listen(test, (socket) => {
      socket.on('data', (bytes) => {
        received += bytes;
        if (received.endsWith('{}')) socket.write(OK);
      });
    });
    endpoint.username = 'us er';
    endpoint.password = 'p:ä';
    const send = (env: Record<string, string>) => {
      const reading = readTraceSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint.href, ...env });
      assert.equal(reading.kind, 'on');
      return createBatchSender(reading.settings, 'test')(Buffer.from('{}'), LONG);
    };
    assert.equal((await send({})).kind, 'sent');
    assert.ok(received.includes(`Authorization: Basic ${Buffer.from('us er:p:ä').toString('base64')}\r\n`), received);
    received = '';
    await send({ OTEL_EXPORTER_OTLP_HEADERS: 'Authorization=Bearer%20x' });
    assert.ok(received.includes('authorization: Bearer x\r\n') && !received.includes('Basic'), received);
  });

  it('sends over TLS only to a collector with a trusted certificate, and presents the client certificate', async (test) => {
    const [collector, client, stranger] = ['localhost', 'service', 'localhost'].map((name) => makePair(name));
    const clients: string[] = [];
    const sockets: Socket[] = [];
    const options = { ...collector, ca: client?.cert ?? '', requestCert: true, rejectUnauthorized: true };
    const server = createTlsServer(options, (socket: TLSSocket) => {
      clients.push(
        `${(socket as TLSSocket & { servername: unknown }).servername} ${socket.getPeerX509Certificate()?.subjectAltName}`,
      );
      socket.once('data', () => socket.end(OK));
    });
    server.on('connection', (socket) => sockets.push(socket.on('error', () => {})));
    const endpoint = await started(test, server, 'https', () => sockets);
    endpoint.hostname = 'localhost';
    const pem = (text = '') => Buffer.from(text);
    const tls = { ca: pem(collector?.cert), cert: pem(client?.cert), key: pem(client?.key) };
    const address = new URL(endpoint);
    address.hostname = '127.0.0.1';
    for (const [url, changed, expected] of [
      [endpoint, {}, 'sent'],
      [endpoint, { ca: pem(stranger?.cert) }, /SELF_SIGNED|UNABLE_TO_VERIFY|SIGNATURE/],
      [endpoint, { ca: undefined }, /SELF_SIGNED/],
      [address, {}, 'ERR_TLS_CERT_ALTNAME_INVALID'],
      [endpoint, { cert: undefined, key: undefined }, /CERTIFICATE_REQUIRED|ECONNRESET/],
    ] as const) {
      const send = createBatchSender({ ...settings, endpoint: url, tls: { ...tls, ...changed } }, 'test');
      const outcome = await send(Buffer.from('{}'), LONG);
      assert.match(outcome.kind === 'sent' ? outcome.kind : outcome.reason, new RegExp(expected));
    }
    assert.deepEqual(clients, ['localhost DNS:service']);
  });
});
