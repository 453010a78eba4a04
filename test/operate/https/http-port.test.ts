// The port of plain HTTP: challenges, redirects, and requests of attackers. The port is in the supervisor, which must
// not be disturbed.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { createHttpPort } from '../../../src/operate/https/http-port.ts';
import { moduleUrl } from '../../support/own-modules.ts';
import { freePorts } from '../../support/ports.ts';

const HOST = 'Host: api.example.com\r\n';
const PATH = '/.well-known/acme-challenge';
const REFUSED = /^HTTP\/1\.1 400 /;
const UNKNOWN = /^HTTP\/1\.1 404 /;
const TOO_LARGE = /^HTTP\/1\.1 431 /;
const NOTHING = /^$/;

/** Matches a redirect to exactly this path. */
const to = (path: string) =>
  new RegExp(
    `^HTTP/1\\.1 308 [^\\r]*\\r\\nLocation: https://api\\.example\\.com${path.replaceAll(/[\\.?+|^${}()[\]]/g, '\\$&')}\\r\\n`,
  );

const isServed = (host: string) => host === 'api.example.com';

/** A client whose bytes are not all read when the connection ends gets a reset. */
const closeOf = (socket: Socket) =>
  new Promise<void>((closed) => socket.on('error', () => {}).once('close', () => closed()));

describe('createHttpPort', () => {
  let port = 0;
  const challenge = {
    type: 'http-01',
    domain: 'api.example.com',
    token: 'to-ken_1',
    keyAuthorization: 'to-ken_1.thumb',
  } as const;
  let httpPort: ReturnType<typeof createHttpPort>;

  before(async () => {
    [port = 0] = await freePorts(1);
    httpPort = createHttpPort({ port, host: '127.0.0.1', httpsPort: () => 443, isServed, timeoutMs: 60_000 });
    await httpPort.listen();
    httpPort.present(challenge);
  });
  after(() => httpPort.close());

  /** Sends bytes. Returns everything that the server sends until it ends the connection. */
  async function send(bytes: string, at = port): Promise<string> {
    const socket = connect(at, '127.0.0.1').setEncoding('latin1');
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
    });
    const closed = closeOf(socket);
    socket.write(bytes, 'latin1');
    await closed;
    return text;
  }

  const rows: [what: string, request: string, answer: RegExp][] = [
    [
      'serves the answer of a challenge',
      `GET ${PATH}/to-ken_1 HTTP/1.1\r\n${HOST}`,
      /^HTTP\/1\.1 200 [\s\S]*\r\n\r\nto-ken_1\.thumb$/,
    ],
    [
      'serves HEAD for the answer of a challenge',
      `HEAD ${PATH}/to-ken_1 HTTP/1.1\r\n${HOST}`,
      /^HTTP\/1\.1 200 [\s\S]*\r\n\r\n$/,
    ],
    ['refuses an unknown challenge', `GET ${PATH}/other HTTP/1.1\r\n${HOST}`, UNKNOWN],
    [
      'redirects a challenge in another folder',
      `GET ${PATH}/../to-ken_1 HTTP/1.1\r\n${HOST}`,
      to(`${PATH}/../to-ken_1`),
    ],
    [
      'redirects a challenge with an encoded path',
      `GET ${PATH}/%74o-ken_1 HTTP/1.1\r\n${HOST}`,
      to(`${PATH}/%74o-ken_1`),
    ],
    [
      'redirects a path to a file',
      `GET ${PATH}/..%2f..%2f..%2fetc%2fpasswd HTTP/1.1\r\n${HOST}`,
      to(`${PATH}/..%2f..%2f..%2fetc%2fpasswd`),
    ],
    ['refuses a challenge that is a property of each object', `GET ${PATH}/__proto__ HTTP/1.1\r\n${HOST}`, UNKNOWN],
    ['refuses a challenge by POST', `POST ${PATH}/to-ken_1 HTTP/1.1\r\n${HOST}Content-Length: 0\r\n`, UNKNOWN],
    [
      'redirects with the path and the query',
      'GET /api/a?b=%20 HTTP/1.1\r\nHost: API.example.com\r\n',
      to('/api/a?b=%20'),
    ],
    ['redirects without the port of HTTP', 'GET / HTTP/1.1\r\nHost: api.example.com:80\r\n', to('/')],
    [
      'redirects an absolute target to the host of the header',
      `GET http://evil.example/x HTTP/1.1\r\n${HOST}`,
      to('/x'),
    ],
    [
      'redirects an absolute target with a user to the host of the header',
      `GET http://api.example.com@evil.example/x HTTP/1.1\r\n${HOST}`,
      to('/x'),
    ],
    ['refuses an absolute target without a path', `GET http://evil.example?x HTTP/1.1\r\n${HOST}`, REFUSED],
    ['refuses an absolute target of another scheme', `GET ftp://evil.example/x HTTP/1.1\r\n${HOST}`, REFUSED],
    [
      'redirects a path that looks like a host as a path',
      `GET //evil.example/ HTTP/1.1\r\n${HOST}`,
      to('//evil.example/'),
    ],
    ['redirects a path with a backslash as a path', `GET /\\evil.example/ HTTP/1.1\r\n${HOST}`, to('/\\evil.example/')],
    [
      'redirects a path that looks like a host in an absolute target',
      `GET http://x//evil.example/ HTTP/1.1\r\n${HOST}`,
      to('//evil.example/'),
    ],
    [
      'redirects an encoded line break without decoding it',
      `GET /%0d%0aSet-Cookie:%20a=b HTTP/1.1\r\n${HOST}`,
      to('/%0d%0aSet-Cookie:%20a=b'),
    ],
    ['refuses a line break in the target', `GET /a\rSet-Cookie: HTTP/1.1\r\n${HOST}`, REFUSED],
    ['refuses a control character in the target', `GET /a\x01b HTTP/1.1\r\n${HOST}`, REFUSED],
    ['refuses a form feed in the target', `GET /a\fb HTTP/1.1\r\n${HOST}`, REFUSED],
    ['redirects POST', `POST /api/a HTTP/1.1\r\n${HOST}Content-Length: 5\r\n`, to('/api/a')],
    ['redirects an upgrade', `GET /a HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: websocket\r\n`, to('/a')],
    [
      'redirects Expect: 100-continue without 100 Continue',
      `POST /a HTTP/1.1\r\n${HOST}Expect: 100-continue\r\nContent-Length: 5\r\n`,
      to('/a'),
    ],
    ['redirects an unknown expectation', `POST /a HTTP/1.1\r\n${HOST}Expect: more\r\nContent-Length: 5\r\n`, to('/a')],
    ['closes the connection of CONNECT without an answer', `CONNECT evil.example:443 HTTP/1.1\r\n${HOST}`, NOTHING],
    ['refuses OPTIONS *', `OPTIONS * HTTP/1.1\r\n${HOST}`, REFUSED],
    ['refuses HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n', REFUSED],
    ['refuses TLS', '\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03', REFUSED],
    ['refuses a host that is not served', 'GET / HTTP/1.1\r\nHost: evil.example\r\n', UNKNOWN],
    ['refuses a request without a host', 'GET / HTTP/1.1\r\nX: y\r\n', REFUSED],
    ['refuses HTTP/1.0 without a host', 'GET / HTTP/1.0\r\n', REFUSED],
    ['refuses two hosts', `GET / HTTP/1.1\r\n${HOST}Host: evil.example\r\n`, REFUSED],
    ['refuses the same host twice', `GET / HTTP/1.1\r\n${HOST}${HOST}`, REFUSED],
    ['refuses a host with a path', 'GET / HTTP/1.1\r\nHost: api.example.com/@evil\r\n', REFUSED],
    ['refuses a host with a user', 'GET / HTTP/1.1\r\nHost: evil.example@api.example.com\r\n', REFUSED],
    [
      'refuses a host of another with the served host as its user',
      'GET / HTTP/1.1\r\nHost: api.example.com@evil.example\r\n',
      REFUSED,
    ],
    [
      'refuses a host of another with the served host as its user with a password',
      'GET / HTTP/1.1\r\nHost: api.example.com:80@evil.example\r\n',
      REFUSED,
    ],
    ['refuses a host with a line break', 'GET / HTTP/1.1\r\nHost: api.example.com\rX: y\r\n', REFUSED],
    ['refuses a host with two ports', 'GET / HTTP/1.1\r\nHost: api.example.com:80:80\r\n', REFUSED],
    [
      'refuses Content-Length beside Transfer-Encoding',
      `POST / HTTP/1.1\r\n${HOST}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n`,
      REFUSED,
    ],
    ['refuses a head that is too long', `GET / HTTP/1.1\r\n${HOST}X: ${'x'.repeat(20_000)}\r\n`, TOO_LARGE],
    ['refuses a target that is too long', `GET /${'x'.repeat(20_000)} HTTP/1.1\r\n${HOST}`, TOO_LARGE],
  ];
  for (const [what, request, answer] of rows) {
    test(what, async () => {
      const text = await send(`${request}\r\n`);
      assert.match(text, answer);
      assert.equal((text.match(/^Location: /gm) ?? []).length, text.startsWith('HTTP/1.1 308 ') ? 1 : 0);
      if (text === '') return;
      assert.match(text, /\r\nConnection: close\r\n/);
      assert.match(text, /\r\nX-Content-Type-Options: nosniff\r\n/);
    });
  }

  test('sends one answer to a connection with 2,000 requests', async () => {
    const text = await send(`GET /a HTTP/1.1\r\n${HOST}\r\n`.repeat(2000));
    assert.equal(text.match(/HTTP\/1\.1 308 /g)?.length, 1);
  });

  test('limits the wait for a head, for a body, and for a client that sends nothing', async (test) => {
    const [brief = 0] = await freePorts(1);
    // Node looks for late requests once a second, and a silent connection is cut after twice this time.
    const timeoutMs = 1500;
    const hasty = createHttpPort({ port: brief, host: '127.0.0.1', httpsPort: () => 443, isServed, timeoutMs });
    await hasty.listen();
    test.after(() => hasty.close());
    const answers = [
      'GET /a HTTP/1.1\r\nHost: api.exa',
      '',
      `POST /a HTTP/1.1\r\n${HOST}Content-Length: 9\r\n\r\nhalf`,
    ];
    const [half, nothing, body] = await Promise.all(answers.map((bytes) => send(bytes, brief)));
    for (const text of [half, nothing])
      assert.match(String(text), /^HTTP\/1\.1 408 [\s\S]*\r\nX-Content-Type-Options: nosniff\r\n/);
    assert.match(String(body), to('/a'));
  });

  test('closes its open connections when the service ends', async () => {
    const [brief = 0] = await freePorts(1);
    const ending = createHttpPort({
      port: brief,
      host: '127.0.0.1',
      httpsPort: () => 443,
      isServed,
      timeoutMs: 600_000,
    });
    await ending.listen();
    const socket = connect(brief, '127.0.0.1');
    const closed = closeOf(socket);
    socket.resume().write('GET /a HTTP/1.1\r\nHost: api.exa');
    await once(socket, 'connect');
    // The server accepts connections in order, so an answer to a later one shows that this one was accepted.
    await send(`GET /a HTTP/1.1\r\n${HOST}\r\n`, brief);
    ending.close();
    await closed;
  });

  test('refuses a challenge that was withdrawn', async () => {
    const withdraw = httpPort.present({ ...challenge, token: 'second' });
    withdraw();
    assert.match(await send(`GET ${PATH}/second HTTP/1.1\r\n${HOST}\r\n`), UNKNOWN);
  });

  test('ends silent connections beyond its limit, and answers the next one', async () => {
    const most = 100;
    const [crowded = 0] = await freePorts(1);
    const options = { host: '127.0.0.1', httpsPort: () => 443, isServed, timeoutMs: 60_000 };
    const httpPort = createHttpPort({ ...options, port: crowded, maxConnections: most });
    await httpPort.listen();
    httpPort.present(challenge);
    const idle: Socket[] = [];
    let ended = 0;
    let onHalf = () => {};
    const halfEnded = new Promise<void>((resolve) => {
      onHalf = resolve;
    });
    for (let count = 0; count < 2 * most; count++) {
      const socket = connect(crowded, '127.0.0.1').on('error', () => {});
      socket.resume().once('close', () => void (++ended === most + 1 && onHalf()));
      // One connection at a time, so that no queue of the kernel overflows.
      await once(socket, 'connect');
      idle.push(socket);
    }
    assert.match(await send(`GET ${PATH}/to-ken_1 HTTP/1.1\r\n${HOST}\r\n`, crowded), /^HTTP\/1\.1 200 /);
    await halfEnded;
    for (const socket of idle) socket.destroy();
    await httpPort.close();
  });

  test('leaves at least 32 of 128 descriptors free in a flood of connections', {
    skip: process.platform !== 'linux',
  }, async (t) => {
    const limit = 128;
    const [flooded = 0] = await freePorts(1);
    const script = `import { readdirSync } from 'node:fs';
      import { createHttpPort } from ${JSON.stringify(moduleUrl('src/operate/https/http-port'))};
      const options = { port: ${flooded}, host: '127.0.0.1', httpsPort: () => 443, isServed: () => true, timeoutMs: 60_000 };
      await createHttpPort(options).listen();
      process.stdin.on('data', () => console.log(readdirSync('/proc/self/fd').length));
      console.log('listening');`;
    const node = [
      process.execPath,
      ...process.execArgv.filter((arg) => arg !== '--test'),
      '--input-type=module',
      '-e',
      script,
    ];
    const child = spawn('sh', ['-c', `ulimit -n ${limit}; exec "$@"`, 'sh', ...node], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    t.after(() => child.kill('SIGKILL'));
    await once(child.stdout, 'data');
    const idle: Socket[] = [];
    for (let count = 0; count < 2 * limit; count++) {
      const socket = connect(flooded, '127.0.0.1').on('error', () => {});
      await once(socket, 'connect');
      idle.push(socket);
    }
    // The last one is answered, so all before it have been accepted.
    assert.match(await send(`GET ${PATH}/none HTTP/1.1\r\n${HOST}\r\n`, flooded), UNKNOWN);
    child.stdin.write('count\n');
    const [count] = await once(child.stdout.setEncoding('utf8'), 'data');
    assert.ok(Number(count) < limit - 32, `${count} of ${limit} descriptors are in use`);
    for (const socket of idle) socket.destroy();
  });
});
