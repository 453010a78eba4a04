// The connection to the collector, with raw sockets that answer byte by byte, and with TLS servers.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import { zlib } from '../../src/base/builtins.ts';
import { parseAnswer } from '../../src/trace/answer.ts';
import { createConnection } from '../../src/trace/connection.ts';
import { readTraceSettings } from '../../src/trace/environment.ts';
import { createBatchSender } from '../../src/trace/post.ts';
import { makePair } from '../support/tls.ts';

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

const sendTo = (endpoint: URL) => createConnection({ endpoint, headers: { 'api-key': 'é' }, tlsOptions: {} });

describe('parseAnswer', () => {
  const whole: readonly (readonly [what: string, text: string, status: number, body: string, isKept: boolean])[] = [
    ['a length', OK, 200, '{}', true],
    ['the length 0', 'HTTP/1.1 200 \r\nContent-Length:0\r\n\r\n', 200, '', true],
    ['a status without a reason', 'HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n', 200, '', true],
    ['a status that allows no body', 'HTTP/1.1 204 No Content\r\n\r\n', 204, '', true],
    [
      'chunks',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n1\r\n{\r\n01;x=y\r\n}\r\n0\r\n\r\n',
      200,
      '{}',
      true,
    ],
    ['a trailer', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx: y\r\n\r\n', 200, '', true],
    [
      'interim answers before it',
      `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nlink: x\r\n\r\n${OK}`,
      200,
      '{}',
      true,
    ],
    ['the version HTTP/1.0', OK.replace('1.1', '1.0'), 200, '{}', false],
    ['Connection: close', OK.replace('\r\n\r\n', '\r\nConnection: Close\r\n\r\n'), 200, '{}', false],
    ['bytes after the body', `${OK}HTTP/1.1 200 OK`, 200, '{}', false],
  ];
  for (const [what, text, status, body, isKept] of whole)
    it(`reads an answer with ${what}, and waits for its last byte`, () => {
      const bytes = Buffer.from(text);
      const answer = parseAnswer(bytes, false);
      assert.deepEqual([answer?.status, answer?.text, answer?.keepsConnection], [status, body, isKept]);
      if (what === 'bytes after the body') return;
      for (let length = 0; length < bytes.length; length++)
        assert.equal(parseAnswer(bytes.subarray(0, length), false), undefined, `after ${length} bytes`);
    });

  it('reads a body up to the end of the connection, even when the body is cut off', () => {
    for (const field of ['', 'content-length: 9\r\n', 'transfer-encoding: gzip\r\n']) {
      const bytes = Buffer.from(`HTTP/1.1 200 OK\r\n${field}\r\n{}`);
      assert.equal(parseAnswer(bytes, false), undefined);
      const { text, keepsConnection } = parseAnswer(bytes, true) ?? {};
      assert.deepEqual([text, keepsConnection], ['{}', false]);
    }
  });

  it('joins fields of the same name, whatever their case', () => {
    const answer = parseAnswer(Buffer.from('HTTP/1.1 503 x\r\nVia: a \r\nvia:b\r\nRetry-After: 3\r\n\r\n'), true);
    assert.equal(answer?.headers.get('via'), 'a, b');
    assert.equal(answer?.headers.get('retry-after'), '3');
  });

  it('reads the first 64 KiB of a long body', () => {
    for (const field of ['', 'content-length: 100000\r\n']) {
      const answer = parseAnswer(Buffer.from(`HTTP/1.1 400 Bad\r\n${field}\r\n${'x'.repeat(65_600)}`), false);
      assert.deepEqual([answer?.status, answer?.text.length, answer?.keepsConnection], [400, 65_536, false]);
    }
  });

  for (const text of [
    'SSH-2.0-OpenSSH_9.2\r\n',
    'HTTX',
    'HTTP/2.0 200 OK\r\n\r\n',
    'HTTP/1.1 99 Low\r\n\r\n',
    'HTTP/1.1 2000 High\r\n\r\n',
    'HTTP/1.1 200 OK\r\nno colon\r\n\r\n',
    'HTTP/1.1 200 OK\r\na b: c\r\n\r\n',
    'HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n',
    'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\n{}',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nx\r\n',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n',
    'x'.repeat(70_000),
  ])
    it(`refuses ${JSON.stringify(text.slice(0, 60))}`, () =>
      assert.throws(() => parseAnswer(Buffer.from(text), false), /did not answer in HTTP\/1\.1/));

  it('refuses a head of more than 64 KiB', () => {
    const text = `HTTP/1.1 200 OK\r\nx: ${'x'.repeat(70_000)}`;
    assert.throws(() => parseAnswer(Buffer.from(text), false), /the head of the answer has more than 65536 bytes/);
  });

  it('reports a connection that was closed before the whole head arrived', () => {
    for (const text of ['', 'HTTP/1.1 200 OK\r\ncontent-'])
      assert.throws(() => parseAnswer(Buffer.from(text), true), /closed the connection/);
  });
});

describe('createConnection', () => {
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
    for (const body of ['{"a":1}', '{"b":"ü"}']) assert.equal((await send(Buffer.from(body), LONG)).text, '{}');
    const head = `POST /v1/traces?x=1 HTTP/1.1\r\nhost: ${endpoint.host}\r\napi-key: é\r\ncontent-length: `;
    const body = Buffer.from('{"b":"ü"}').toString('latin1');
    assert.equal(received, `${head}7\r\n\r\n{"a":1}${head}10\r\n\r\n${body}`);
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
      assert.equal((await send(Buffer.from('{}'), LONG)).status, 200);
      await closed[i];
    }
    assert.equal(closed.length, 3);
  });

  it('closes an idle connection that receives bytes', async (test) => {
    // Simulated timers never fire, so nothing else closes the connection.
    test.mock.timers.enable({ apis: ['setTimeout'] });
    const ends: Promise<unknown>[] = [];
    let sendLate = (): unknown => undefined;
    const endpoint = await listen(test, (socket) => {
      ends.push(new Promise((resolve) => socket.on('close', resolve)));
      socket.once('data', () => {
        sendLate = () => socket.write('HTTP/1.1 408 Late\r\n\r\n');
        socket.write(OK);
      });
    });
    const send = sendTo(endpoint);
    assert.equal((await send(Buffer.from('{}'), LONG)).status, 200);
    sendLate();
    await ends[0];
    assert.equal((await send(Buffer.from('{}'), LONG)).status, 200);
    assert.equal(ends.length, 2);
  });

  it('waits longer for an answer in pieces than for the next request on an idle connection', async (test) => {
    test.mock.timers.enable({ apis: ['setTimeout'] });
    let count = 0;
    const endpoint = await listen(test, (socket) =>
      socket.on('data', async (bytes) => {
        if (!bytes.toString().endsWith('{}') || count++ === 0) return socket.write(OK);
        test.mock.timers.tick(LONG - 1);
        socket.write(OK.slice(0, 20));
        for (let i = 0; i < 10; i++) await new Promise((turn) => setImmediate(turn));
        return socket.write(OK.slice(20));
      }),
    );
    const send = sendTo(endpoint);
    for (let i = 0; i < 2; i++) assert.equal((await send(Buffer.from('{}'), LONG)).text, '{}');
  });

  it('closes an idle connection', async (test) => {
    let closed: Promise<unknown> = Promise.resolve();
    const endpoint = await listen(test, (socket) => {
      closed = new Promise((resolve) => socket.on('close', resolve));
      socket.on('data', () => socket.write(OK));
    });
    assert.equal((await sendTo(endpoint)(Buffer.from('{}'), LONG)).status, 200);
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
    assert.equal((await send(Buffer.alloc(size, 'x'), LONG)).status, 413);
    firstSocket.resume();
    await firstSocket.closed;
    assert.ok(firstSocket.bytes < size, `${firstSocket.bytes} bytes`);
    assert.equal((await send(Buffer.from('{}'), LONG)).status, 200);
    assert.match(second, /content-length: 2\r\n\r\n\{\}$/);
  });

  for (const [what, serve, reason] of [
    ['hangs', () => {}, /did not answer in time/],
    ['closes', (socket: Socket) => socket.end(), /closed the connection/],
    ['resets', (socket: Socket) => socket.resetAndDestroy(), /ECONNRESET|closed the connection/],
    ['is no web server', (socket: Socket) => socket.write('220 mail.example ESMTP\r\n'), /did not answer in HTTP/],
  ] as const)
    it(`rejects when the collector ${what}, and sends the next request`, async (test) => {
      let isBroken = true;
      const endpoint = await listen(test, (socket) =>
        socket.once('data', () => (isBroken ? serve(socket) : socket.write(OK))),
      );
      const send = sendTo(endpoint);
      await assert.rejects(send(Buffer.from('{}'), what === 'hangs' ? 50 : LONG), reason);
      isBroken = false;
      assert.equal((await send(Buffer.from('{}'), LONG)).status, 200);
    });
});

describe('createBatchSender', () => {
  const settings = {
    ...{ headers: {}, compress: false, caFile: undefined, clientCertificateFile: undefined, clientKeyFile: undefined },
  };

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
    assert.ok(received.includes(`authorization: Basic ${Buffer.from('us er:p:ä').toString('base64')}\r\n`), received);
    received = '';
    await send({ OTEL_EXPORTER_OTLP_HEADERS: 'Authorization=Bearer%20x' });
    assert.ok(received.includes('authorization: Bearer x\r\n') && !received.includes('Basic'), received);
  });

  it('sends over TLS only to a collector with a trusted certificate, and presents the client certificate', async (test) => {
    const folder = mkdtempSync(join(tmpdir(), 'gatefold-collector-'));
    test.after(() => rmSync(folder, { recursive: true }));
    const save = (name: string, text: string): string => {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    };
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
    const own = {
      ...{
        clientCertificateFile: save('own.crt', client?.cert ?? ''),
        clientKeyFile: save('own.key', client?.key ?? ''),
      },
      ...{ caFile: save('ca.crt', collector?.cert ?? ''), endpoint },
    };
    const other = save('other.crt', stranger?.cert ?? '');
    const address = new URL(endpoint);
    address.hostname = '127.0.0.1';
    for (const [changed, expected] of [
      [{}, 'sent'],
      [{ caFile: other }, /SELF_SIGNED|UNABLE_TO_VERIFY|SIGNATURE/],
      [{ caFile: undefined }, /SELF_SIGNED/],
      [{ endpoint: address }, 'ERR_TLS_CERT_ALTNAME_INVALID'],
      [{ clientCertificateFile: undefined, clientKeyFile: undefined }, /CERTIFICATE_REQUIRED|ECONNRESET|closed/],
    ] as const) {
      const outcome = await createBatchSender({ ...settings, ...own, ...changed }, 'test')(Buffer.from('{}'), LONG);
      assert.match(outcome.kind === 'sent' ? outcome.kind : outcome.reason, new RegExp(expected));
    }
    assert.deepEqual(clients, ['localhost DNS:service']);
  });
});
