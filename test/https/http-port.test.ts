// The port of plain HTTP: challenges, redirects, and requests of attackers. The port is in the supervisor, which must
// not be disturbed.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { createHttpPort } from '../../src/https/serve/http-port.ts';
import { moduleUrl } from '../support/own-modules.ts';
import { freePorts } from '../support/ports.ts';

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
    // A client that is still sending when the connection ends gets a reset.
    socket.on('error', () => {});
    socket.write(bytes, 'latin1');
    await once(socket, 'close');
    return text;
  }

  const rows: [what: string, request: string, answer: RegExp][] = [
    [
      'the answer of a challenge',
      `GET ${PATH}/to-ken_1 HTTP/1.1\r\n${HOST}`,
      /^HTTP\/1\.1 200 [\s\S]*\r\n\r\nto-ken_1\.thumb$/,
    ],
    ['its head', `HEAD ${PATH}/to-ken_1 HTTP/1.1\r\n${HOST}`, /^HTTP\/1\.1 200 [\s\S]*\r\n\r\n$/],
    ['no other challenge', `GET ${PATH}/other HTTP/1.1\r\n${HOST}`, UNKNOWN],
    ['no challenge of another folder', `GET ${PATH}/../to-ken_1 HTTP/1.1\r\n${HOST}`, to(`${PATH}/../to-ken_1`)],
    ['no challenge by an encoded path', `GET ${PATH}/%74o-ken_1 HTTP/1.1\r\n${HOST}`, to(`${PATH}/%74o-ken_1`)],
    [
      'no file',
      `GET ${PATH}/..%2f..%2f..%2fetc%2fpasswd HTTP/1.1\r\n${HOST}`,
      to(`${PATH}/..%2f..%2f..%2fetc%2fpasswd`),
    ],
    ['no property of an object', `GET ${PATH}/__proto__ HTTP/1.1\r\n${HOST}`, UNKNOWN],
    ['no challenge by POST', `POST ${PATH}/to-ken_1 HTTP/1.1\r\n${HOST}Content-Length: 0\r\n`, UNKNOWN],
    ['HTTPS, path and query kept', 'GET /api/a?b=%20 HTTP/1.1\r\nHost: API.example.com\r\n', to('/api/a?b=%20')],
    ['HTTPS without the port of HTTP', 'GET / HTTP/1.1\r\nHost: api.example.com:80\r\n', to('/')],
    ['HTTPS for an absolute target', `GET http://evil.example/x HTTP/1.1\r\n${HOST}`, to('/x')],
    ['nor for one with a user', `GET http://api.example.com@evil.example/x HTTP/1.1\r\n${HOST}`, to('/x')],
    ['nothing for one without a path', `GET http://evil.example?x HTTP/1.1\r\n${HOST}`, REFUSED],
    ['nothing for one of another scheme', `GET ftp://evil.example/x HTTP/1.1\r\n${HOST}`, REFUSED],
    ['a path that looks like a host stays a path', `GET //evil.example/ HTTP/1.1\r\n${HOST}`, to('//evil.example/')],
    ['by backslashes too', `GET /\\evil.example/ HTTP/1.1\r\n${HOST}`, to('/\\evil.example/')],
    ['and behind an absolute one', `GET http://x//evil.example/ HTTP/1.1\r\n${HOST}`, to('//evil.example/')],
    [
      'an encoded line break stays encoded',
      `GET /%0d%0aSet-Cookie:%20a=b HTTP/1.1\r\n${HOST}`,
      to('/%0d%0aSet-Cookie:%20a=b'),
    ],
    ['nothing for a line break', `GET /a\rSet-Cookie: HTTP/1.1\r\n${HOST}`, REFUSED],
    ['nothing for a control character', `GET /a\x01b HTTP/1.1\r\n${HOST}`, REFUSED],
    ['nothing for a form feed', `GET /a\fb HTTP/1.1\r\n${HOST}`, REFUSED],
    ['HTTPS for any method', `POST /api/a HTTP/1.1\r\n${HOST}Content-Length: 5\r\n`, to('/api/a')],
    ['HTTPS and no upgrade', `GET /a HTTP/1.1\r\n${HOST}Connection: Upgrade\r\nUpgrade: websocket\r\n`, to('/a')],
    [
      'HTTPS and nothing to go on with',
      `POST /a HTTP/1.1\r\n${HOST}Expect: 100-continue\r\nContent-Length: 5\r\n`,
      to('/a'),
    ],
    ['HTTPS whatever is expected', `POST /a HTTP/1.1\r\n${HOST}Expect: more\r\nContent-Length: 5\r\n`, to('/a')],
    ['nothing for a tunnel', `CONNECT evil.example:443 HTTP/1.1\r\n${HOST}`, NOTHING],
    ['nothing for the server as such', `OPTIONS * HTTP/1.1\r\n${HOST}`, REFUSED],
    ['nothing for HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n', REFUSED],
    ['nothing for TLS', '\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03', REFUSED],
    ['nothing for the name of another', 'GET / HTTP/1.1\r\nHost: evil.example\r\n', UNKNOWN],
    ['nothing without a name', 'GET / HTTP/1.1\r\nX: y\r\n', REFUSED],
    ['nothing in HTTP/1.0 without one', 'GET / HTTP/1.0\r\n', REFUSED],
    ['nothing for two names', `GET / HTTP/1.1\r\n${HOST}Host: evil.example\r\n`, REFUSED],
    ['nothing for the same one twice', `GET / HTTP/1.1\r\n${HOST}${HOST}`, REFUSED],
    ['nothing for what is no name', 'GET / HTTP/1.1\r\nHost: api.example.com/@evil\r\n', REFUSED],
    ['nothing for a user before it', 'GET / HTTP/1.1\r\nHost: evil.example@api.example.com\r\n', REFUSED],
    ['nothing for it as a user', 'GET / HTTP/1.1\r\nHost: api.example.com@evil.example\r\n', REFUSED],
    ['nothing for it as a password', 'GET / HTTP/1.1\r\nHost: api.example.com:80@evil.example\r\n', REFUSED],
    ['nothing for a line break in it', 'GET / HTTP/1.1\r\nHost: api.example.com\rX: y\r\n', REFUSED],
    ['nothing for a port that is none', 'GET / HTTP/1.1\r\nHost: api.example.com:80:80\r\n', REFUSED],
    [
      'nothing for two lengths',
      `POST / HTTP/1.1\r\n${HOST}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n`,
      REFUSED,
    ],
    ['nothing for a head without measure', `GET / HTTP/1.1\r\n${HOST}X: ${'x'.repeat(20_000)}\r\n`, TOO_LARGE],
    ['nothing for a target without measure', `GET /${'x'.repeat(20_000)} HTTP/1.1\r\n${HOST}`, TOO_LARGE],
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

  test('one answer a connection, whatever else it has sent', async () => {
    const text = await send(`GET /a HTTP/1.1\r\n${HOST}\r\n`.repeat(2000));
    assert.equal(text.match(/HTTP\/1\.1 308 /g)?.length, 1);
  });

  test('half a head and half a body are not waited for without end, nor is a client that says nothing', async (test) => {
    const [brief = 0] = await freePorts(1);
    const hasty = createHttpPort({ port: brief, host: '127.0.0.1', httpsPort: () => 443, isServed, timeoutMs: 500 });
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

  test('a connection that is open when the service ends is no reason to go on', async () => {
    const [brief = 0] = await freePorts(1);
    const ending = createHttpPort({
      port: brief,
      host: '127.0.0.1',
      httpsPort: () => 443,
      isServed,
      timeoutMs: 600_000,
    });
    await ending.listen();
    const socket = connect(brief, '127.0.0.1').on('error', () => {});
    socket.resume().write('GET /a HTTP/1.1\r\nHost: api.exa');
    await once(socket, 'connect');
    // The server accepts connections in order, so an answer to a later one shows that this one was accepted.
    await send(`GET /a HTTP/1.1\r\n${HOST}\r\n`, brief);
    const closed = once(socket, 'close');
    ending.close();
    await closed;
  });

  test('a challenge that is withdrawn is gone', async () => {
    const withdraw = httpPort.present({ ...challenge, token: 'second' });
    withdraw();
    assert.match(await send(`GET ${PATH}/second HTTP/1.1\r\n${HOST}\r\n`), UNKNOWN);
  });

  test('of connections that say nothing only the latest are kept, and the next one is answered', async () => {
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

  test('a flood leaves the process most of its descriptors', { skip: process.platform !== 'linux' }, async (t) => {
    const limit = 128;
    const [flooded = 0] = await freePorts(1);
    const script = `import { readdirSync } from 'node:fs';
      import { createHttpPort } from ${JSON.stringify(moduleUrl('src/https/serve/http-port'))};
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
