// WebSocket handshakes that `upgrade` of a mount takes: which requests are handshakes, the steps before, the life of a
// socket, and its end. The handlers speak no frames, so the bytes of a socket are seen as they are.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { choosesUpgrades } from '../../src/base/node-internals.ts';
import { createTlsServer } from '../../src/operate/https/serve/tls-server.ts';
import { attachConnection, Connection, isTaken, type TrackedSocket } from '../../src/request/connections/connection.ts';
import type { Exchange } from '../../src/request/exchange.ts';
import { createFolder } from '../support/folder.ts';
import { GATEFOLD, onUncaught, type Service, startService } from '../support/service.ts';
import { makePair } from '../support/tls.ts';

const ACCEPT =
  'const accept = "HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n\\r\\n";';

const mounted = (upgrade: string, settings = '') =>
  `import { mount } from '${GATEFOLD}';
  ${ACCEPT}
  const handler = (request, response) => response.end('handler ' + request.method + ' ' + request.url);
  export default mount.node(handler, { upgrade: ${upgrade}, ${settings} });\n`;

/** Answers a handshake with what the handler got, and then sends back what comes. */
const ECHO = `(request, socket, head, params) => {
  socket.write(accept);
  socket.write(JSON.stringify({ url: request.url, original: request.originalUrl, user: params.user, query: params.query, id: params.requestId }) + '|' + head);
  socket.on('data', (piece) => socket.write(piece)).on('end', () => socket.end());
  params.signal.addEventListener('abort', () => socket.writable && socket.write('abort: ' + params.signal.reason.message));
}`;

const ODD = `async (request, socket, head, params) => {
  switch (request.url.split('/').pop()) {
    case 'throws': throw new Error('no');
    case 'never': return;
    case 'late': await new Promise((done) => params.signal.addEventListener('abort', done)); socket.write(accept); return;
    case 'refuses': socket.end('HTTP/1.1 401 Unauthorized\\r\\nContent-Length: 0\\r\\n\\r\\n'); return;
    case 'destroys': socket.destroy(); return;
    case 'assigns': {
      const response = new (await import('node:http')).ServerResponse(request);
      response.assignSocket(socket);
      response.writeHead(426).end('own', () => socket.end());
      return;
    }
    case 'assigns-never': new (await import('node:http')).ServerResponse(request).assignSocket(socket); return;
    case 'throws-after': socket.write(accept); throw new Error('no');
    case 'timer': socket.write(accept); setImmediate(() => { throw new Error('no'); }); return;
    case 'resets': socket.write(accept); setImmediate(() => socket.destroy(new Error('an error of the socket'))); return;
    case 'fills': socket.write(accept); socket.write(Buffer.alloc(50_000_000)); return;
  }
}`;

const FALLBACK = `import { defineService, mount } from '${GATEFOLD}';
  ${ACCEPT}
  export default defineService({ fallback: mount.node((request, response) => response.end(), { upgrade: ${ECHO} }) });\n`;

const handshake = (path: string, ...lines: string[]) =>
  [`GET ${path} HTTP/1.1`, 'Host: a.test', 'Connection: Upgrade', 'Upgrade: websocket', ...lines, '', ''].join('\r\n');

interface Client {
  readonly socket: Socket;
  text(): string;
  /** Waits until the received text matches, or until the connection is closed. */
  until(pattern: RegExp): Promise<string>;
  readonly closed: Promise<string>;
}

function open(
  port: number,
  bytes: string,
  connectTo: (port: number) => Socket = (at) => connect(at, '127.0.0.1'),
): Client {
  const socket = connectTo(port);
  let text = '';
  socket.setEncoding('latin1').on('data', (piece: string) => (text += piece));
  socket.on('error', () => {});
  const closed = new Promise<string>((resolve) => socket.once('close', () => resolve(text)));
  socket.write(bytes);
  return {
    ...{ socket, closed, text: () => text },
    async until(pattern) {
      while (!pattern.test(text) && !socket.closed) await Promise.race([once(socket, 'data'), closed]);
      assert.match(text, pattern);
      return text;
    },
  };
}

const statusOf = (text: string) => Number(/^HTTP\/1.1 (\d+)/.exec(text)?.[1]);

async function until(isDone: () => boolean): Promise<void> {
  while (!isDone()) await new Promise((done) => setTimeout(done, 10));
}

const SERVICE = `import { defineService, mount } from '${GATEFOLD}';
  ${ACCEPT}
  export default defineService({
    cors: { origins: ['https://page.test'] },
    authenticate: async ({ cookies }) => cookies.user && { id: cookies.user },
    fallback: mount.node((request, response) => response.end('fallback'), { upgrade: ${ECHO} }),
  });`;

const onSuchNode = { skip: choosesUpgrades() ? false : 'this Node does not ask which upgrades a server takes' };

test('where Node takes all upgrades or none, a file with upgrade is refused, and says what to do', {
  skip: choosesUpgrades() && 'this Node asks',
}, async (t) => {
  const running = await startService({
    controllers: { 'ChatController.mjs': mounted(ECHO) },
    expectedErrors: ['group-not-loadable', 'request-failed'],
  });
  t.after(() => running.close());
  assert.equal(statusOf(await running.raw(handshake('/api/chat'))), 500);
  const reasons = running.lines.map(({ error, reason }) => `${error} ${reason}`).join('\n');
  assert.match(reasons, /upgrade needs Node 22\.21 and later, or 24\.9 and later, and this is v20.*: update Node/);
});

test('upgrade must be a function, and a mount of a web handler has none', async (t) => {
  const running = await startService({
    controllers: {
      'AController.mjs': mounted('5'),
      'BController.mjs': `import { mount } from '${GATEFOLD}'; export default mount(() => new Response(), { upgrade() {} });`,
    },
    expectedErrors: ['group-not-loadable', 'request-failed'],
  });
  t.after(() => running.close());
  for (const group of ['a', 'b']) assert.equal((await fetch(`${running.url}/api/${group}`)).status, 500);
  const text = JSON.stringify(running.lines);
  assert.match(text, /mount: upgrade must be a function \(request, socket, head, params\)/);
  assert.match(text, /unknown property upgrade/);
});

describe('a WebSocket handshake', onSuchNode, () => {
  let running: Service;
  before(async () => {
    running = await startService({
      controllers: {
        'service.mjs': SERVICE,
        'ChatController.mjs': mounted(ECHO),
        'StripController.mjs': mounted(ECHO, 'strip: true'),
        'UserController.mjs': mounted(ECHO, "access: 'user'"),
        'OwnController.mjs': mounted(ECHO, "cors: 'own'"),
        'LimitController.mjs': mounted(ECHO, "limit: '1/h'"),
        'OddController.mjs': mounted(ODD, 'timeout: 300'),
        'GreedyController.mjs': `import { mount } from '${GATEFOLD}';
          export default mount.node((request, response) => {
            request.socket.server.on('upgrade', (_, socket) => socket.end('HTTP/1.1 299 taken\\r\\n\\r\\n'));
            response.end();
          });`,
        'PlainController.mjs': `import { mount } from '${GATEFOLD}'; export default mount.node((request, response) => response.end('plain'));`,
        'OrderController.mjs': `export default { index() { return { order: 1 } }, big() { return { text: 'x'.repeat(4_000_000) } } }`,
        'FeedController.mjs': `import { eventStream } from '${GATEFOLD}';
          export default { index: () => eventStream((async function* () { yield 3; })()) }`,
      },
      expectedErrors: ['request-failed', 'stream-failed'],
    });
  });
  after(() => running.close());

  const opened = async (path: string, ...lines: string[]) => {
    const client = open(running.port, handshake(path, ...lines));
    await client.until(/\|/);
    return client;
  };
  const lineOf = (path: string) =>
    running.lines.findLast(({ event, path: logged }) => event === 'request' && logged === path);

  test('is answered by the handler, which then has the socket', async () => {
    const client = open(running.port, handshake('/api/chat/a%2Fb?room=7', 'Cookie: user=ann') + 'early');
    await client.until(/\|early/);
    assert.equal(statusOf(client.text()), 101);
    assert.match(
      client.text(),
      /"url":"\/api\/chat\/a%2Fb\?room=7","user":\{"id":"ann"\},"query":\{"room":"7"\},"id":"\w+-\w+"/,
    );
    client.socket.write('hello');
    await client.until(/hello/);
    assert.equal(running.app.inFlight(), 0);
    assert.equal(lineOf('/api/chat/a%2Fb'), undefined);
    client.socket.end();
    await client.closed;
    await until(() => lineOf('/api/chat/a%2Fb') !== undefined);
    const line = lineOf('/api/chat/a%2Fb');
    assert.deepEqual(
      [line?.status, line?.operation, line?.user, line?.bytes],
      [101, 'ANY {path*}', 'ann', client.text().length],
    );
  });

  test('on a connection that has had answers', async () => {
    const client = open(running.port, 'GET /api/order HTTP/1.1\r\nHost: a\r\n\r\n');
    await client.until(/"order":1/);
    client.socket.write(handshake('/api/chat/second'));
    assert.match(await client.until(/\|/), /HTTP\/1.1 101[\s\S]*"url":"\/api\/chat\/second"/);
    client.socket.end();
    await client.closed;
    assert.ok(Number(lineOf('/api/chat/second')?.bytes) < client.text().length);
  });

  test('strip takes the path of the group off', async () => {
    const client = await opened('/api/strip/x?a=1');
    assert.match(client.text(), /"url":"\/x\?a=1","original":"\/api\/strip\/x\?a=1"/);
    client.socket.destroy();
  });

  test('passes the steps before the handler', async () => {
    for (const [path, status, lines] of [
      ['/api/user', 401, []],
      ['/api/user', 101, ['Cookie: user=ann']],
      ['/api/chat/../x', 400, []],
      ['/api/chat%2Fx', 404, []],
      ['/api/limit', 101, []],
      ['/api/limit', 429, []],
      ['/api/chat', 400, ['Host: b.test']],
    ] as const) {
      const client = open(running.port, handshake(path, ...lines));
      await client.until(/\r\n\r\n/);
      assert.equal(statusOf(client.text()), status, path);
      if (status === 101) client.socket.destroy();
      else assert.match(await client.closed, /connection: close[\s\S]*"error_code"/i);
    }
  });

  test('passes the steps also where a library listens on the server', async () => {
    await (await fetch(`${running.url}/api/greedy`)).text();
    const client = open(running.port, handshake('/api/user'));
    assert.equal(statusOf(await client.closed), 401);
  });

  test('of a page of another origin is refused unless cors lists the origin, with cookies or without', async () => {
    for (const [path, status, ...lines] of [
      ['/api/chat', 101, 'Origin: https://page.test'],
      ['/api/chat', 101, 'Origin: http://a.test'],
      ['/api/chat', 101, 'Origin: https://a.test', 'Sec-Fetch-Site: same-origin'],
      ['/api/chat', 403, 'Origin: https://evil.test'],
      ['/api/chat', 403, 'Origin: https://evil.test', 'Cookie: user=ann'],
      ['/api/chat', 403, 'Origin: null'],
      ['/api/chat', 403, 'Origin: https://page.test', 'Origin: https://page.test'],
      ['/api/chat', 403, 'Origin: http://a.test', 'Sec-Fetch-Site: cross-site'],
      ['/api/chat', 403, 'Sec-Fetch-Site: cross-site'],
      ['/api/own', 101, 'Origin: https://evil.test'],
      ['/elsewhere', 403, 'Origin: https://evil.test'],
      ['/elsewhere', 101, 'Origin: https://page.test'],
      ['/api/order', 200, 'Origin: https://evil.test'],
    ] as const) {
      const client = open(running.port, handshake(path, ...lines));
      await client.until(/\r\n\r\n/);
      assert.equal(statusOf(client.text()), status, `${path} ${lines}`);
      client.socket.destroy();
    }
  });

  test('to what has no upgrade is a usual GET that ends its connection, and no byte behind it is a request', async () => {
    const hidden = 'GET /api/order/hidden HTTP/1.1\r\nHost: a\r\n\r\n';
    for (const [path, pattern] of [
      ['/api/order', /"order":1/],
      ['/api/plain', /plain/],
      ['/api/feed', /data: 3/],
    ] as const) {
      const text = await open(running.port, handshake(path) + hidden).closed;
      assert.equal(text.match(/HTTP\/1\.1 /g)?.length, 1);
      assert.match(text, /^HTTP\/1\.1 200[\s\S]*connection: close/i);
      assert.match(text, pattern);
    }
    assert.ok((await open(running.port, handshake('/api/order/big')).closed).length > 4_000_000);
    await until(() => lineOf('/api/order/big')?.status === 200);
  });

  for (const [title, bytes, answer] of [
    ['Upgrade: h2c', handshake('/api/chat').replace('websocket', 'h2c'), /handler GET/],
    ['two Upgrade lines', handshake('/api/chat', 'Upgrade: websocket'), /handler GET/],
    ['two protocols', handshake('/api/chat').replace('websocket', 'websocket, h2c'), /handler GET/],
    [
      'no Connection: Upgrade',
      handshake('/api/chat').replace('Connection: Upgrade', 'Connection: close'),
      /handler GET/,
    ],
    ['POST', handshake('/api/chat').replace('GET', 'POST'), /handler POST/],
    ['HEAD', handshake('/api/chat').replace('GET', 'HEAD'), /200 OK/],
    ['OPTIONS', handshake('/api/chat').replace('GET', 'OPTIONS'), /200 OK/],
    ['HTTP/1.0', handshake('/api/chat').replace('HTTP/1.1', 'HTTP/1.0'), /handler GET/],
    ['a body', `${handshake('/api/chat', 'Content-Length: 5')}hello`, /handler GET/],
    ['chunks', `${handshake('/api/chat', 'Transfer-Encoding: chunked')}0\r\n\r\n`, /handler GET/],
    ['an endless body', `${handshake('/api/chat', 'Transfer-Encoding: chunked')}5\r\nhello\r\n`, /handler GET/],
    ['Expect', handshake('/api/chat', 'Expect: 100-continue'), /handler GET/],
  ] as const)
    test(`${title}: a usual request that ends its connection`, async () => {
      const text = await open(running.port, bytes + 'GET /api/order HTTP/1.1\r\nHost: a\r\n\r\n').closed;
      assert.match(text, answer);
      assert.doesNotMatch(text, /HTTP\/1.1 101|"order"/);
      assert.match(text, /connection: close/i);
    });

  for (const [title, bytes] of [
    ['both framings', handshake('/api/chat', 'Content-Length: 5', 'Transfer-Encoding: chunked')],
    ['two lengths', handshake('/api/chat', 'Content-Length: 0', 'Content-Length: 5')],
    ['a space before the colon', handshake('/api/chat', 'Content-Length : 5')],
    ['a bare LF', handshake('/api/chat').replaceAll('\r\n', '\n')],
    ['CONNECT', handshake('/api/chat').replace('GET', 'CONNECT')],
  ] as const)
    test(`${title}: refused`, async () => {
      const text = await open(running.port, `${bytes}hello`).closed;
      assert.ok(statusOf(text) >= 400, text);
      assert.equal(text.match(/HTTP\/1\.1 /g)?.length, 1);
    });

  test('behind a request that waits for its answer is a usual request', async () => {
    const bytes = 'GET /api/order/big HTTP/1.1\r\nHost: a\r\n\r\n' + handshake('/api/chat/piped');
    const text = await open(running.port, bytes).closed;
    assert.match(text, /handler GET \/api\/chat\/piped$/);
    assert.doesNotMatch(text, / 101 /);
  });

  for (const [path, status, event] of [
    ['throws', 500, 'request-failed'],
    ['never', 503, 'request-failed'],
    ['late', 503, 'request-failed'],
    ['refuses', 401, undefined],
    ['assigns', 426, undefined],
    ['assigns-never', 503, 'request-failed'],
    ['throws-after', 101, 'stream-failed'],
    ['timer', 101, 'stream-failed'],
    ['resets', 101, undefined],
  ] as const)
    test(`${path}: ${status}, and the connection ends`, async (t) => {
      onUncaught(t, (error) => running.app.failCurrentRequest(error));
      const from = running.lines.length;
      assert.equal(statusOf(await open(running.port, handshake(`/api/odd/${path}`)).closed), status);
      await until(() => lineOf(`/api/odd/${path}`) !== undefined);
      assert.equal(lineOf(`/api/odd/${path}`)?.status, status);
      assert.deepEqual(
        running.lines.slice(from).flatMap(({ event: logged, level }) => (level === 'error' ? [logged] : [])),
        event === undefined ? [] : [event],
      );
    });

  test('destroys: the connection ends without an answer', async () => {
    assert.equal(await open(running.port, handshake('/api/odd/destroys')).closed, '');
    await until(() => lineOf('/api/odd/destroys')?.status === 499);
  });

  test('a client that leaves in each state holds nothing', async () => {
    // A handler that reads nothing does not see that its client has ended the connection.
    for (const leave of ['destroy', 'resetAndDestroy', 'end'] as const) {
      for (const path of ['/api/odd/never', '/api/chat/left', '/api/odd/fills', '/api/user']) {
        if (leave === 'end' && path === '/api/odd/fills') continue;
        const before = running.lines.filter(({ event, path: logged }) => event === 'request' && logged === path).length;
        const client = open(running.port, handshake(path));
        if (path === '/api/chat/left') await client.until(/\|/);
        else if (path === '/api/odd/fills') await client.until(/\r\n\r\n/);
        else await once(client.socket, 'connect');
        client.socket[leave]();
        await client.closed;
        await until(
          () =>
            running.lines.filter(({ event, path: logged }) => event === 'request' && logged === path).length > before,
        );
      }
    }
    assert.equal(running.app.inFlight(), 0);
    const count = () => new Promise<number>((done) => running.app.server.getConnections((_error, open) => done(open)));
    while ((await count()) > 0) await new Promise((done) => setTimeout(done, 10));
  });
});

test('a connection that an earlier request has is taken', () => {
  const sent = { socket: null, shouldKeepAlive: true };
  for (const [response, waitingCount, expected] of [
    [undefined, 0, false],
    [sent, 0, false],
    [sent, 1, true],
    [{ ...sent, socket: {} }, 0, true],
    // Node has given the socket to the response of a request that this service ignores.
    [{ ...sent, shouldKeepAlive: false }, 0, true],
  ] as const) {
    const socket = {} as TrackedSocket;
    const lastExchange = response && ({ response } as unknown as Exchange);
    attachConnection(socket, Object.assign(new Connection(0, 0, 0), { lastExchange, waitingCount }));
    assert.equal(isTaken(socket), expected);
  }
});

test('a new file takes a handshake at its first request', onSuchNode, async (t) => {
  const running = await startService({ controllers: { 'NewController.mjs': mounted(ECHO) } });
  t.after(() => running.close());
  const client = open(running.port, handshake('/api/new'));
  await client.until(/\|/);
  assert.equal(statusOf(client.text()), 101);
});

for (const [title, file, text, BASE_PATH] of [
  ['the fallback', 'service.mjs', FALLBACK, '/api'],
  ['the fallback at the root', 'service.mjs', FALLBACK, '/'],
  ['a mount at the root', 'Controller.mjs', mounted(ECHO), '/'],
] as const)
  test(`${title} takes a handshake to a path that is also a file`, onSuchNode, async (t) => {
    const PUBLIC_DIR = createFolder(t, { 'index.html': 'a page' });
    const running = await startService({ controllers: { [file]: text }, settings: { BASE_PATH, PUBLIC_DIR } });
    t.after(() => running.close());
    assert.equal(await (await fetch(running.url)).text(), 'a page');
    const client = open(running.port, handshake('/'));
    t.after(() => client.socket.destroy());
    assert.match(await client.until(/"url":"\/"|a page/), / 101 /);
  });

test('at a drain, signal is aborted, and the socket has until its end', onSuchNode, async (t) => {
  const running = await startService({ controllers: { 'ChatController.mjs': mounted(ECHO) } });
  t.after(() => running.close());
  const client = open(running.port, handshake('/api/chat'));
  await client.until(/\|/);
  running.app.setDraining();
  await client.until(/abort: the worker is draining/);
  client.socket.write('still here');
  await client.until(/still here/);
  // A handshake that comes meanwhile gets the signal, too.
  const late = open(running.port, handshake('/api/chat'));
  await late.until(/abort: the worker is draining/);
  for (let looks = 0; looks < 40; looks++) running.app.server.closeIdleConnections();
  client.socket.write('and here');
  await client.until(/and here/);
  running.app.server.closeAllConnections();
  await Promise.all([client.closed, late.closed]);
});

test(
  'an open socket counts for MAX_CONNECTIONS, is never idle, and does not count as in flight',
  onSuchNode,
  async (t) => {
    const settings = { MAX_CONNECTIONS: '3', KEEP_ALIVE_TIMEOUT: '1s', MAX_IN_FLIGHT: '1' };
    const running = await startService({ controllers: { 'ChatController.mjs': mounted(ECHO) }, settings });
    t.after(() => running.close());
    const clients = [open(running.port, handshake('/api/chat')), open(running.port, handshake('/api/chat'))];
    for (const client of clients) await client.until(/\|/);
    const idle = open(running.port, 'GET /api/chat HTTP/1.1\r\nHost: a\r\n\r\n');
    await idle.until(/handler GET/);
    await idle.closed;
    assert.equal(running.app.refusedConnections(), 0);
    const third = open(running.port, handshake('/api/chat'));
    await third.until(/\|/);
    assert.equal(await open(running.port, handshake('/api/chat')).closed, '');
    assert.equal(running.app.refusedConnections(), 1);
    for (const [i, client] of clients.entries()) {
      client.socket.write(`still here ${i}`);
      await client.until(/still here/);
    }
  },
);

test('a socket whose key is revoked ends, with its signal first', onSuchNode, async (t) => {
  let isRevoked = false;
  const row = {
    application: { id: 'a', name: 'a' },
    handler: undefined,
    groups: new Set(['Chat']),
    methods: undefined,
  };
  const running = await startService({
    controllers: { 'ChatController.mjs': mounted(ECHO) },
    parts: {
      credentials: {
        identify: () => (isRevoked ? { kind: 'refused', reason: 'its row is revoked' } : { kind: 'row', row }),
        table: () => isRevoked,
      },
    },
  });
  t.after(() => running.close());
  const client = open(running.port, handshake('/api/chat', 'Authorization: Bearer gfk_x'));
  await client.until(/\|/);
  isRevoked = true;
  const text = await client.closed;
  assert.match(text, /abort: the socket was ended/);
  assert.equal(running.lines.filter(({ event }) => event === 'stream-ended-early').length, 1);
});

test('through TLS, and while a second handshake is refused', onSuchNode, async (t) => {
  const transport = createTlsServer({ handshakeTimeout: 60_000, maxConnections: 100, plainRefusal: () => '' });
  transport.use({ ...makePair('a.test'), ticketKeys: [], challenge: undefined });
  const running = await startService({ controllers: { 'ChatController.mjs': mounted(ECHO) }, parts: { transport } });
  t.after(() => running.close());
  const secure = (port: number) => connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
  const client = open(running.port, `${handshake('/api/chat', 'Origin: https://a.test')}early`, secure);
  await client.until(/\|early/);
  const refused = await open(running.port, handshake('/api/chat', 'Origin: http://a.test'), secure).closed;
  assert.equal(statusOf(refused), 403);
  client.socket.write('hello');
  await client.until(/hello/);
  client.socket.end();
  await client.closed;
});
