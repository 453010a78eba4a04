// The app over TLS in this process: versions and protocols, changes of the certificate, handshakes that fail, and the
// limits of connections, which apply to TLS as to plain HTTP.
import assert from 'node:assert/strict';
import { randomBytes, X509Certificate } from 'node:crypto';
import { type EventEmitter, once } from 'node:events';
import { type AddressInfo, connect as connectPlainly, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import tls, { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import type { SecureState } from '../../../src/operate/https/serve/secure-state.ts';
import { createTlsServer, type TlsServer } from '../../../src/operate/https/serve/tls-server.ts';
import { type Service, sendRaw, startService } from '../../support/service.ts';
import { makePair, type TestPair } from '../../support/tls.ts';

const CONTROLLERS = {
  'TestController.mjs': `import { once } from 'node:events'; import { Readable } from 'node:stream'; export default class {
    broken() { return Readable.from((async function* () { yield 'half'; await once(process, 'test:break'); throw new Error('disk') })()); }
    index() { return { value: 1 }; }
    big() { return { text: 'x'.repeat(4_000_000) }; }
    created(data) { return { received: data }; }
  }`,
};
const REFUSAL = 'HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n';

describe('an app over TLS', () => {
  const first = makePair('first.example.com');
  const second = makePair('second.example.com');
  const ticketKey = randomBytes(48).toString('base64');
  const stateOf = (pair: TestPair): SecureState => ({ ...pair, ticketKeys: [ticketKey], challenge: undefined });
  let transport: TlsServer;
  let service: Service;
  /** The same service with short timeouts. Those of the other service are long enough for a busy machine. */
  let brief: Service;

  before(async () => {
    transport = createTlsServer({ handshakeTimeout: 60_000, maxConnections: 100, plainRefusal: () => REFUSAL });
    transport.use(stateOf(first));
    service = await startService({ controllers: CONTROLLERS, parts: { transport }, expectedErrors: ['stream-failed'] });
    const hasty = createTlsServer({ handshakeTimeout: 2000, maxConnections: 100, plainRefusal: () => REFUSAL });
    hasty.use(stateOf(first));
    const settings = { HEADERS_TIMEOUT: '2s', KEEP_ALIVE_TIMEOUT: '1s' };
    brief = await startService({ controllers: CONTROLLERS, settings, parts: { transport: hasty } });
  });
  after(() => Promise.all([service.close(), brief.close()]));

  function open(options: ConnectionOptions = {}): Promise<TLSSocket> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port: service.port, host: '127.0.0.1', rejectUnauthorized: false, ...options }, () =>
        resolve(socket),
      );
      socket.once('error', reject);
    });
  }

  async function ask(socket: TLSSocket, request: string): Promise<string> {
    let text = '';
    const collect = (chunk: string) => {
      text += chunk;
    };
    socket.setEncoding('utf8').on('data', collect);
    socket.write(request);
    while (!/\r\n\r\n\{.*\}$/s.test(text)) await once(socket, 'data');
    socket.off('data', collect);
    return text;
  }

  const GET = 'GET /api/test HTTP/1.1\r\nHost: first.example.com\r\n\r\n';

  const rows: [what: string, options: ConnectionOptions, outcome: string][] = [
    ['accepts TLS 1.3', { minVersion: 'TLSv1.3' }, 'TLSv1.3'],
    ['accepts TLS 1.2', { maxVersion: 'TLSv1.2' }, 'TLSv1.2'],
    [
      'refuses TLS 1.1',
      { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' },
      'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION',
    ],
    ['selects http/1.1 by ALPN', { ALPNProtocols: ['h2', 'http/1.1'] }, 'TLSv1.3 http/1.1'],
    ['refuses a client that offers only h2', { ALPNProtocols: ['h2'] }, 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL'],
    [
      'refuses acme-tls/1 while no challenge is pending',
      { ALPNProtocols: ['acme-tls/1'] },
      'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL',
    ],
  ];
  for (const [what, options, outcome] of rows) {
    test(what, async () => {
      const socket = await open(options).catch((error: NodeJS.ErrnoException) => error);
      if (socket instanceof Error) return assert.equal(socket.code, outcome);
      assert.equal([socket.getProtocol(), socket.alpnProtocol].filter(Boolean).join(' '), outcome);
      socket.destroy();
    });
  }

  const REFUSED = 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION';
  for (const [flag, version, outcome] of [
    ['--tls-min-v1.3', 'TLSv1.3', REFUSED],
    ['--tls-min-v1.0', 'TLSv1', 'TLSv1.2'],
  ] as const) {
    test(`with ${flag} of Node, TLS 1.2 is ${outcome === REFUSED ? 'refused' : 'the oldest version'}`, async () => {
      const { DEFAULT_MIN_VERSION: usual } = tls;
      tls.DEFAULT_MIN_VERSION = version;
      transport.use(stateOf(second));
      tls.DEFAULT_MIN_VERSION = usual;
      const versionOf = async (options: ConnectionOptions) => {
        const socket = await open(options).catch((error: NodeJS.ErrnoException) => error);
        if (socket instanceof Error) return socket.code;
        const protocol = socket.getProtocol();
        socket.destroy();
        return protocol;
      };
      const ciphers = 'DEFAULT@SECLEVEL=0';
      const versions = [await versionOf({ maxVersion: 'TLSv1.2' })];
      versions.push(await versionOf({ minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers }));
      transport.use(stateOf(first));
      assert.deepEqual(versions, [outcome, REFUSED]);
    });
  }

  test('refuses a second handshake on a connection', async () => {
    const socket = await open({ maxVersion: 'TLSv1.2' });
    const outcome = await new Promise((resolve) => {
      socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code));
      socket.renegotiate({}, (error) => resolve(error === null ? 'the connection had a second handshake' : error));
    });
    assert.equal(outcome, 'ERR_SSL_NO_RENEGOTIATION');
    socket.destroy();
  });

  test('uses a new certificate for new connections, keeps open connections, and resumes sessions', async () => {
    const before = await open();
    let session: Buffer | undefined;
    before.on('session', (ticket) => {
      session = ticket;
    });
    assert.match(await ask(before, GET), /"value":1/);
    transport.use(stateOf(second));
    const anew = await open();
    assert.equal(anew.getPeerCertificate().subjectaltname, 'DNS:second.example.com');
    assert.match(await ask(before, GET), /"value":1/);
    assert.ok(session !== undefined);
    const resumed = await open({ session });
    assert.equal(resumed.isSessionReused(), true);
    transport.use(stateOf(first));
    for (const socket of [before, anew, resumed]) socket.destroy();
  });

  test('presents the certificate of a challenge only for the protocol and the name of the challenge', async () => {
    const { cert, key } = makePair('first.example.com');
    transport.use({ ...stateOf(first), challenge: { domain: 'first.example.com', cert, key } });
    const seen = async (servername: string, protocol: string) => {
      const socket = await open({ servername, ALPNProtocols: [protocol] }).catch(
        (error: NodeJS.ErrnoException) => error,
      );
      if (socket instanceof Error) return socket.code;
      const { raw } = socket.getPeerCertificate();
      socket.destroy();
      return raw.equals(new X509Certificate(cert).raw)
        ? 'the challenge'
        : raw.equals(new X509Certificate(first.cert).raw)
          ? 'ours'
          : 'odd';
    };
    const refused = 'ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL';
    assert.equal(await seen('FIRST.example.com', 'acme-tls/1'), 'the challenge');
    assert.equal(await seen('other.example.com', 'acme-tls/1'), refused);
    assert.equal(await seen('first.example.com', 'http/1.1'), 'ours');
    assert.equal(await seen('first.example.com', 'h2'), refused);
    transport.use(stateOf(first));
    assert.equal(await seen('first.example.com', 'acme-tls/1'), refused);
  });

  test('answers a request without TLS with a refusal in plain HTTP', async () => {
    assert.equal(await sendRaw(service.port, GET), REFUSAL);
  });

  test('closes a connection that is not TLS, sends nothing, or stops within its handshake', async () => {
    const sent = [randomBytes(64), Buffer.alloc(0), Buffer.from('160301020001', 'hex')];
    const ends = sent.map((bytes) => {
      const socket: Socket = connectPlainly(brief.port, '127.0.0.1');
      socket.on('error', () => {});
      socket.resume();
      if (bytes.length > 0) socket.write(bytes);
      return new Promise((resolve) => socket.once('close', resolve));
    });
    await Promise.all(ends);
    assert.match(await ask(await open({ port: brief.port }), GET), /"value":1/);
  });

  test('ends the oldest stalled handshake for a new connection at the limit, and keeps established connections', async () => {
    const patient = createTlsServer({ handshakeTimeout: 60_000, maxConnections: 100, plainRefusal: () => REFUSAL });
    patient.use(stateOf(first));
    const server = patient.createServer({}, (_request, response) => response.end('{}'));
    // A failed handshake is no malformed request.
    server.on('clientError', assert.ifError);
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    const { port } = server.address() as AddressInfo;
    const standing = await open({ port });
    assert.match(await ask(standing, GET), /\{\}$/);
    const stuck: Socket[] = [];
    for (let i = 0; i < 100; i++) {
      stuck.push(connectPlainly(port, '127.0.0.1').on('error', () => {}));
      await once(server, 'connection');
    }
    const ended = once((stuck[0] as Socket).resume(), 'close');
    const newest = await open({ port });
    await ended;
    for (const socket of [standing, newest]) assert.match(await ask(socket, GET), /\{\}$/);
    // 99 handshakes and two connections are open.
    assert.equal(await new Promise((counted) => server.getConnections((_error, count) => counted(count))), 101);
    for (const each of [...stuck, standing, newest]) each.destroy();
    server.close();
  });

  test('ends the connection that has idled longest, beyond MAX_CONNECTIONS', async (test) => {
    const narrow = createTlsServer({ handshakeTimeout: 60_000, maxConnections: 2, plainRefusal: () => REFUSAL });
    narrow.use(stateOf(first));
    const { port, close } = await startService({
      controllers: CONTROLLERS,
      settings: { MAX_CONNECTIONS: '2' },
      parts: { transport: narrow },
    });
    test.after(close);
    const sockets: TLSSocket[] = [];
    for (let count = 0; count < 2; count++) {
      const socket = await open({ port });
      assert.match(await ask(socket, GET), /"value":1/);
      sockets.push(socket);
    }
    const [oldest, other] = sockets as [TLSSocket, TLSSocket];
    const ended = once(oldest, 'close');
    const third = await open({ port });
    await ended;
    for (const socket of [other, third]) assert.match(await ask(socket, GET), /"value":1/);
  });

  test('sends complete answers to HEAD, to OPTIONS and to Connection: close', async () => {
    const socket = await open();
    let text = '';
    socket.setEncoding('utf8').on('data', (chunk) => {
      text += chunk;
    });
    socket.on('error', () => {});
    const closed = once(socket, 'close');
    const rest = '/api/test HTTP/1.1\r\nHost: x\r\n';
    socket.write(`HEAD ${rest}\r\nOPTIONS ${rest}\r\nGET ${rest}Connection: close\r\n\r\n`);
    await closed;
    assert.deepEqual(text.match(/HTTP\/1\.1 \d+|^Content-Length: \d+/gm), [
      ...[
        'HTTP/1.1 200',
        'Content-Length: 11',
        'HTTP/1.1 200',
        'Content-Length: 0',
        'HTTP/1.1 200',
        'Content-Length: 11',
      ],
    ]);
    assert.ok(text.endsWith('\r\n\r\n{"value":1}'));
  });

  test('serves pipelined requests, a body, a large answer and a malformed request as without TLS', async () => {
    const socket = await open();
    const text = await ask(socket, `POST /api/test HTTP/1.1\r\nHost: x\r\nContent-Length: 7\r\n\r\n{"a":1}`);
    assert.match(text, /"received":\{"a":1\}|"data":\{"a":1\}/);
    let received = '';
    socket.on('data', (chunk) => {
      received += chunk;
    });
    // The end of this connection may reach a closed socket, which answers with a reset. By then everything has arrived.
    socket.on('error', () => {});
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.write(
      `${GET}GET /api/test/big HTTP/1.1\r\nHost: x\r\n\r\n${GET.replace('Host', 'Connection: close\r\nHost')}`,
    );
    await closed;
    assert.equal(received.match(/HTTP\/1\.1 200 /g)?.length, 3);
    assert.ok(received.includes('x'.repeat(4_000_000)));
    const malformed = await open();
    assert.match(await ask(malformed, 'NOT HTTP\r\n\r\n'), /^HTTP\/1\.1 400 [\s\S]*MALFORMED_REQUEST/);
  });

  for (const version of ['1.0', '1.1']) {
    test(`cuts the connection when a stream fails, and resets it if the body has no chunks (HTTP/${version})`, async () => {
      const socket = await open();
      let text = '';
      let error: NodeJS.ErrnoException | undefined;
      socket.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      socket.on('error', (thrown) => {
        error = thrown;
      });
      socket.write(`GET /api/test/broken HTTP/${version}\r\nHost: x\r\n\r\n`);
      while (!text.includes('half')) await once(socket, 'data');
      const closed = new Promise((resolve) => socket.once('close', resolve));
      (process as EventEmitter).emit('test:break');
      await closed;
      assert.ok(!text.includes('\r\n0\r\n'));
      if (version === '1.0') assert.equal(error?.code, 'ECONNRESET');
    });
  }

  test('closes an idle connection after KEEP_ALIVE_TIMEOUT, and one without a request after HEADERS_TIMEOUT', async () => {
    const used = await open({ port: brief.port });
    assert.match(await ask(used, GET), /"value":1/);
    const unused = await open({ port: brief.port });
    unused.resume();
    await Promise.all([once(used, 'close'), once(unused, 'close')]);
  });
});
