// Mounts of handlers of Node's own types: what they get, what happens to their answers, and handlers that misbehave.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { GATEFOLD, onUncaught, parseRaw, type Service, startService } from '../support/service.ts';

const mounted = (handler: string, settings = '{}') =>
  `import { mount, HttpError } from '${GATEFOLD}';\nexport default mount.node(${handler}, ${settings});\n`;

const ECHO = `(request, response) => {
  const pieces = [];
  request.on('data', (piece) => pieces.push(piece)).on('end', () => {
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify({ url: request.url, original: request.originalUrl, method: request.method, headers: request.headers, body: Buffer.concat(pieces).toString() }));
  });
}`;

/** Each way in which a handler can go wrong, by the last segment of the path. */
const ODD = `(request, response, next) => {
  switch (request.url.split('/').pop()) {
    case 'throws': throw new Error('no');
    case 'rejects': return Promise.reject(new Error('no'));
    case 'later': setImmediate(() => { throw new Error('no'); }); return;
    case 'next': return next();
    case 'error': response.setHeader('Set-Cookie', 'a=b').setHeader('X-Own', '1'); return next(new Error('no'));
    case 'refuses': return next(new HttpError(418, 'TEAPOT', 'no'));
    case 'never': response.setHeader('X-Own', '1'); return;
    case 'late': setTimeout(() => { response.setHeader('X', '1'); response.writeHead(200); response.write('late'); response.end('x'); globalThis.wasLate = true; }, 900); return;
    case 'twice': response.end('one'); response.end('two'); return;
    case 'json-twice': response.setHeader('A', '1'); response.end('one'); response.setHeader('A', '2'); return;
    case 'after-end': response.end('one'); response.write('two'); return;
    case 'after-head': response.writeHead(200, { 'Content-Length': '10' }); response.write('12345'); setImmediate(() => next(new Error('no'))); return;
    case 'throw-after-head': response.write('12345'); throw new Error('no');
    case 'bad-header': response.writeHead(200, { 'X-Bad': 'a\\nb' }); return;
    case 'method': request.method = '"evil'; request.url = '/evil'; response.end('x'); return;
    case 'prototypes':
      Object.setPrototypeOf(request, Object.create(Object.getPrototypeOf(Object.getPrototypeOf(request))));
      Object.setPrototypeOf(response, Object.create(Object.getPrototypeOf(response)));
      response.end('x'); return;
    case 'breaks': return (async () => { for await (const piece of request) break; response.end('broke'); })();
    case 'pipeline': return import('node:stream').then(({ pipeline, Writable }) => {
      const full = new Writable({ write: (_piece, _encoding, done) => done(new Error('full')) });
      pipeline(request, full, (error) => response.end(error.message));
    });
    case 'waits': {
      const learn = (name) => () => (globalThis.learned ??= []).push(name);
      return request.on('aborted', learn('aborted')).on('error', learn('error')).on('close', learn('close')).resume();
    }
    case 'bytes': response.write(Buffer.from('abc')); response.end(new Uint8Array(4)); return;
    case 'empty': response.writeHead(204).end(); return;
    case 'slow': response.write('a'); setTimeout(() => response.end('b'), 600); return;
    case 'unread': request.on('close', () => (globalThis.wasClosed = true)); response.end('x'); return;
    case 'timeout': request.setTimeout(100); response.end('x'); return;
    case 'connection': response.setHeader('Connection', 'close'); response.end('x'); return;
    case 'cookie': response.setHeader('Set-Cookie', 'own=1').setHeader('x-service', 'own'); response.end('x'); return;
    case 'cookies': response.writeHead(200, 'Fine', { 'set-cookie': ['own=1', 'own=2; Path=/'], 'Cache-Control': 'private' }).end('x'); return;
    case 'lines': response.writeHead(200, ['X-Seen', '2', 'X-Two', '1', 'X-Two', '2']).end('x'); return;
  }
}`;

function openUpload(port: number, text: string): Promise<Socket> {
  return new Promise((done) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(text, () => done(socket)));
  });
}

async function until(isDone: () => boolean): Promise<void> {
  for (const end = performance.now() + 60_000; !isDone(); await new Promise((done) => setTimeout(done, 20)))
    assert.ok(performance.now() < end, 'it did not happen within 60 s');
}

/** Sends a raw request, and returns its last answer with all that was received. */
async function ask(running: Service, head: string, body = '') {
  const [line = '', ...headers] = head.split('\n');
  const lines = [`${line} HTTP/1.1`, 'Host: a.test', 'Connection: close', ...headers];
  const text = await running.raw(`${lines.join('\r\n')}\r\n\r\n${body}`, 9);
  const answer = parseRaw(text);
  const content =
    answer.headers.get('transfer-encoding') === 'chunked'
      ? answer.body.replace(/^.*?\r\n(.*)\r\n0\r\n\r\n$/s, '$1')
      : answer.body;
  const isJson = answer.headers.get('content-type')?.includes('json') === true && content !== '';
  return { ...answer, text, json: (isJson ? JSON.parse(content) : {}) as Record<string, unknown> };
}

describe('a mount of a Node handler', () => {
  let running: Service;
  before(async () => {
    running = await startService({
      controllers: {
        'service.mjs': `import { defineService } from '${GATEFOLD}';
          export default defineService({ headers: { 'X-Service': 'yes' }, authenticate: async ({ cookies, setCookie, setHeader }) => {
            if (cookies.seen) {
              setHeader('X-Seen', '1');
              setHeader('X-Service', 'seen');
              setCookie('seen', '2');
              setCookie('own', '0');
            }
            return cookies.user && { id: cookies.user };
          } });`,
        'OldController.mjs': mounted(ECHO),
        'StripController.mjs': mounted(ECHO, '{ strip: true, bodyLimit: 10 }'),
        'UserController.mjs': mounted(ECHO, `{ access: 'user' }`),
        'OwnController.mjs': mounted(
          `(request, response) => { response.setHeader('Access-Control-Allow-Origin', 'https://own.test'); response.end(request.method); }`,
          `{ cors: 'own' }`,
        ),
        'OddController.mjs': mounted(ODD, '{ timeout: 300 }'),
      },
      expectedErrors: ['request-failed', 'stream-failed'],
    });
  });
  after(() => running.close());

  test('gets every request as it was sent', async () => {
    const { json, headers } = await ask(running, 'POST /api/old/a%2Fb//c?d=1\nX-Own: 1\nContent-Length: 3', 'abc');
    assert.deepEqual([json.method, json.url, json.body], ['POST', '/api/old/a%2Fb//c?d=1', 'abc']);
    assert.equal((json.headers as Record<string, string>)['x-own'], '1');
    assert.equal(headers.get('x-service'), 'yes');
    assert.equal(headers.get('access-control-allow-origin'), '*');
    assert.equal(headers.get('x-content-type-options'), 'nosniff');
    assert.match(String(headers.get('x-request-id')), /\w+-\w+/);
    assert.equal((await ask(running, 'GET http://x.test/api/old')).json.url, '/api/old');
  });

  test('a GET without a body emits end, also where authenticate waits', async () => {
    for (const method of ['GET', 'DELETE', 'PROPFIND'])
      assert.equal((await ask(running, `${method} /api/old`)).json.method, method);
    assert.equal((await ask(running, 'GET /api/user/x\nCookie: user=ann')).json.url, '/api/user/x');
    await ask(running, 'GET /api/odd/unread');
    await until(() => (globalThis as { wasClosed?: boolean }).wasClosed === true);
  });

  test('passes the steps before it', async () => {
    assert.equal((await ask(running, 'GET /api/user/x')).json.error_code, 'USER_REQUIRED');
    assert.equal((await ask(running, 'GET /api/old/../x')).json.error_code, 'MALFORMED_PATH');
    assert.equal((await ask(running, 'GET /api/old%2Fx')).json.error_code, 'ROUTE_NOT_FOUND');
    assert.equal(
      (await ask(running, 'POST /api/old\nCookie: a=b\nOrigin: https://evil.test')).json.error_code,
      'ORIGIN_NOT_ALLOWED',
    );
  });

  test('its answer has the headers that authenticate has set, if it has none of the name, and the cookies of both', async () => {
    const sent = async (path: string) => {
      const { headers, text } = await ask(running, `GET /api/odd/${path}\nCookie: seen=1`);
      const cookies = [...text.matchAll(/^set-cookie: (\w+=\w+)/gim)].map(([, cookie]) => cookie);
      return [cookies.sort(), ...['x-seen', 'x-service', 'cache-control'].map((name) => headers.get(name))];
    };
    for (const path of ['bytes', 'empty', 'slow', 'prototypes'])
      assert.deepEqual(await sent(path), [['own=0', 'seen=2'], '1', 'seen', 'no-store'], path);
    assert.deepEqual(await sent('cookie'), [['own=0', 'own=1', 'seen=2'], '1', 'own', 'no-store']);
    assert.deepEqual(await sent('cookies'), [['own=1', 'own=2', 'seen=2'], '1', 'seen', 'private']);
    assert.deepEqual(await sent('lines'), [['own=0', 'seen=2'], '2', 'seen', 'no-store']);
    assert.deepEqual(await sent('next'), [['own=0', 'seen=2'], '1', 'seen', 'no-store']);
    assert.match((await ask(running, 'GET /api/odd/cookies\nCookie: seen=1')).text, /^HTTP\/1.1 200 Fine\r\n/);
    for (const cookie of ['', '\nCookie: seen=1'])
      assert.match((await ask(running, `GET /api/odd/lines${cookie}`)).text, /X-Two: 1\r\nX-Two: 2\r\n/);
  });

  test('strip takes the path of the group off', async () => {
    for (const [path, url] of [
      ['/api/strip', '/'],
      ['/api/strip/', '/'],
      ['/api/strip?a=1', '/?a=1'],
      ['//api//strip//x/y?a=/b', '//x/y?a=/b'],
    ] as const) {
      const { json } = await ask(running, `GET ${path}`);
      assert.deepEqual([json.url, json.original], [url, path]);
    }
  });

  test('a body over the limit is 413, with a length and in chunks', async () => {
    for (const size of [10, 11]) {
      const bytes = 'x'.repeat(size);
      for (const { json } of [
        await ask(running, `POST /api/strip\nContent-Length: ${size}`, bytes),
        await ask(
          running,
          'POST /api/strip\nTransfer-Encoding: chunked',
          `${size.toString(16)}\r\n${bytes}\r\n0\r\n\r\n`,
        ),
      ])
        assert.deepEqual(
          [json.body, json.error_code],
          size === 10 ? [bytes, undefined] : [undefined, 'BODY_TOO_LARGE'],
        );
    }
  });

  test('Expect is answered before the handler', async () => {
    const { text, json } = await ask(running, 'POST /api/old\nExpect: 100-continue\nContent-Length: 3', 'abc');
    assert.match(text, /^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 OK/);
    assert.equal(json.body, 'abc');
  });

  test("cors: 'own' leaves OPTIONS and the headers to the handler", async () => {
    const { headers, body } = await ask(
      running,
      'OPTIONS /api/own\nOrigin: https://x.test\nAccess-Control-Request-Method: PUT',
    );
    assert.equal(headers.get('access-control-allow-origin'), 'https://own.test');
    assert.match(body, /OPTIONS/);
  });

  for (const [path, status, code] of [
    ['throws', 500, 'INTERNAL_ERROR'],
    ['rejects', 500, 'INTERNAL_ERROR'],
    ['error', 500, 'INTERNAL_ERROR'],
    ['bad-header', 500, 'INTERNAL_ERROR'],
    ['next', 404, 'ROUTE_NOT_FOUND'],
    ['refuses', 418, 'TEAPOT'],
    ['never', 503, 'OPERATION_TIMEOUT'],
  ] as const)
    test(`${path}: ${status} in the form of the service`, async () => {
      const { status: sent, json, headers, text } = await ask(running, `GET /api/odd/${path}`);
      assert.deepEqual([sent, json.error_code], [status, code]);
      assert.deepEqual([headers.get('set-cookie'), headers.get('x-own')], [undefined, undefined]);
      assert.equal(text.match(/x-request-id/gi)?.length, 1);
      assert.equal(headers.get('access-control-allow-origin'), '*');
    });

  test('a throw in a timer is a 500', async (t) => {
    onUncaught(t, (error) => running.app.failCurrentRequest(error));
    assert.equal((await ask(running, 'GET /api/odd/later')).status, 500);
  });

  test('an answer after the time limit has no effect, and throws nothing', async (t) => {
    onUncaught(t, (error) => assert.fail(error));
    const { status, text } = await ask(running, 'GET /api/odd/late');
    assert.equal(status, 503);
    await until(() => (globalThis as { wasLate?: boolean }).wasLate === true);
    assert.ok(!text.includes('late'));
  });

  for (const path of ['twice', 'json-twice', 'after-end'])
    test(`${path}: the first answer is sent whole`, async (t) => {
      onUncaught(t, (error) => assert.fail(error));
      const { status, text } = await ask(running, `GET /api/odd/${path}`);
      assert.deepEqual([status, text.includes('one'), text.includes('two')], [200, true, false]);
    });

  test('a handler may destroy the request before it answers', async () => {
    for (const [path, body] of [
      ['breaks', 'broke'],
      ['pipeline', 'full'],
    ] as const)
      assert.equal((await ask(running, `POST /api/odd/${path}\nContent-Length: 5`, 'hello')).body, body);
  });

  test('where the service answers within a body, the handler learns that no more of the body comes', async () => {
    const learned: string[] = Object.assign(globalThis, { learned: [] }).learned;
    const head = 'POST /api/odd/waits HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n';
    const socket = (await openUpload(running.port, `${head}abc`)).end();
    socket.once('data', () => socket.resetAndDestroy()); // the 400
    await until(() => learned.length === 3);
    assert.deepEqual(learned, ['aborted', 'error', 'close']);
  });

  test('a time limit that a handler sets for its connection ends with its answer', async () => {
    const of = (path: string, line = '') => `GET /api/odd/${path} HTTP/1.1\r\nHost: a\r\n${line}\r\n`;
    const text = await running.raw(of('timeout') + of('slow', 'Connection: close\r\n'), 9);
    assert.ok(text.endsWith('a\r\n1\r\nb\r\n0\r\n\r\n'), text);
  });

  test('throw-after-head: the connection is cut', async () => {
    const text = await running.raw('GET /api/odd/throw-after-head HTTP/1.1\r\nHost: a\r\n\r\n');
    assert.ok(!text.includes('\r\n0\r\n'));
  });

  for (const path of ['after-head'])
    test(`${path}: the connection is cut, and the log says why`, async () => {
      const { status, text } = await ask(running, `GET /api/odd/${path}`);
      assert.deepEqual([status, text.includes('\r\n0\r\n')], [200, false]);
      assert.ok(running.lines.some(({ event }) => event === 'stream-failed'));
    });

  test('the log has the request as it came, the status and the bytes', async () => {
    for (const [path, status, bytes] of [
      ['method', 200, 1],
      ['prototypes', 200, 1],
      ['empty', 204, 0],
      ['bytes', 200, 7],
      ['slow', 200, 2],
      ['connection', 200, 1],
    ] as const) {
      assert.equal((await ask(running, `GET /api/odd/${path}`)).status, status);
      const line = running.lines.findLast(
        ({ event, path: logged }) => event === 'request' && logged === `/api/odd/${path}`,
      );
      assert.deepEqual(
        [line?.method, line?.page, line?.operation, line?.status, line?.bytes],
        ['GET', 'odd', 'ANY {path*}', status, bytes],
      );
    }
    assert.equal((await ask(running, 'HEAD /api/odd/twice')).status, 200);
    assert.equal(running.lines.findLast(({ path }) => path === '/api/odd/twice')?.bytes, 0);
  });

  test('the time limit ends with the head', async () => {
    assert.match((await ask(running, 'GET /api/odd/slow')).text, /a\r\n1\r\nb/);
  });

  test('no upgrade is taken from the handler of a mount, and none hides a request', async () => {
    const hidden = 'GET /api/old/hidden HTTP/1.1\r\nHost: a\r\n\r\n';
    for (const [protocol, framing, body] of [
      ['h2c', '', hidden],
      ['websocket', '', hidden],
      ['h2c', `Content-Length: ${hidden.length}\r\n`, hidden],
      ['websocket', 'Transfer-Encoding: chunked\r\n', `0\r\n\r\n${hidden}`],
    ] as const) {
      const head = `GET /api/old/up HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n${framing}\r\n`;
      const text = await running.raw(head + body, 9);
      assert.match(text, /^HTTP\/1.1 200 OK/);
      assert.ok(!text.includes('"url":"/api/old/hidden"'), `${protocol} ${framing}`);
      assert.match(text, /connection: close/i);
    }
  });

  test('the handler sees the key and the Host of the client', async () => {
    const { json } = await ask(running, 'GET /api/old\nAuthorization: Bearer anything');
    const { host, authorization } = json.headers as Record<string, string>;
    assert.deepEqual([host, authorization], ['a.test', 'Bearer anything']);
  });

  test('pipelined requests are answered in order, one after another', async () => {
    const request = (path: string, close = '') => `GET /api/${path} HTTP/1.1\r\nHost: a\r\n${close}\r\n`;
    const text = await running.raw(
      request('odd/slow') + request('old/x') + request('odd/empty', 'Connection: close\r\n'),
      9,
    );
    assert.deepEqual(text.match(/HTTP\/1.1 \d+|"url":"[^"]+"/g), [
      'HTTP/1.1 200',
      'HTTP/1.1 200',
      '"url":"/api/old/x"',
      'HTTP/1.1 204',
    ]);
  });

  test('a client that leaves in each state is 499 (or 400, within its body) in the log, and holds nothing', async () => {
    for (const [path, head] of [
      ['never', ''],
      ['slow', ''],
      ['x', 'Content-Length: 10\r\n'],
    ] as const) {
      const target = path === 'x' ? '/api/old/leaver' : `/api/odd/${path}?leaver`;
      const counted = () =>
        running.lines.filter(
          ({ event, status, path: logged }) =>
            event === 'request' && [400, 499].includes(Number(status)) && logged === target.replace(/\?.*/, ''),
        ).length;
      const before = counted();
      const socket = connect(running.port, '127.0.0.1');
      const arrived = once(running.app.server, 'request');
      socket.write(`POST ${target.replace('?leaver', '')} HTTP/1.1\r\nHost: a\r\n${head}\r\n`);
      await arrived;
      socket.destroy();
      await until(() => counted() > before);
    }
    assert.equal(running.app.inFlight(), 0);
  });
});

test('a fallback of a Node handler gets every other path', async (t) => {
  const running = await startService({
    controllers: {
      'service.mjs': `import { defineService, mount } from '${GATEFOLD}'; export default defineService({ fallback: mount.node(${ECHO}, { strip: true }) });`,
      'OrderController.mjs': 'export default { index() { return {} } }',
    },
  });
  t.after(() => running.close());
  for (const path of ['/', '/api', '/api/x?y', '/robots.txt'])
    assert.equal((await ask(running, `GET ${path}`)).json.url, path);
  assert.equal((await ask(running, 'OPTIONS /x')).json.method, 'OPTIONS');
  assert.equal((await ask(running, 'GET /api/order')).json.url, undefined);
});

test('uploads that wait for their clients are limited by network, and hold up nobody else', async (t) => {
  const running = await startService({
    controllers: { 'OldController.mjs': mounted(ECHO) },
    settings: { MAX_IN_FLIGHT: '4' },
  });
  t.after(() => running.close());
  const head = 'POST /api/old HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc';
  const first = await openUpload(running.port, head);
  await until(() => running.app.inFlight() === 1);
  const refused = parseRaw(await running.raw(head, 1));
  assert.deepEqual([refused.status, JSON.parse(refused.body).error_code], [503, 'OVERLOADED']);
  assert.equal((await ask(running, 'GET /api/old')).status, 200);
  const ended = new Promise<string>((done) => first.once('data', (text) => done(String(text))));
  first.write('defghij');
  assert.match(await ended, /200 OK/);
  first.destroy();
  assert.equal((await ask(running, 'POST /api/old\nContent-Length: 3', 'abc')).json.body, 'abc');
});

test('bodyTimeout ends an upload whose handler answers before it reads', async (t) => {
  const running = await startService({
    controllers: {
      'OldController.mjs': mounted(
        `(request, response) => request.url.endsWith('whole') ? response.end('whole') : response.write('begun')`,
        '{ bodyTimeout: 600 }',
      ),
    },
  });
  t.after(() => running.close());
  const upload = (path: string) =>
    running.raw(`POST /api/old/${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc`, 2);
  const [whole, begun] = await Promise.all([upload('whole'), upload('begun')]);
  assert.match(whole, /^HTTP\/1.1 200 OK[\s\S]*whole/);
  assert.match(begun, /^HTTP\/1.1 200 OK[\s\S]*begun/);
  await until(() => running.lines.filter(({ event }) => event === 'request').length === 2);
  assert.equal(running.lines.filter(({ event }) => event === 'stream-ended-early').length, 1);
  assert.equal(running.app.inFlight(), 0);
});

test('an answer of a draining service ends its connection, but not before that of a pipelined request', async (t) => {
  const handler = '(request, response) => void setImmediate(() => response.end(request.url))';
  const running = await startService({ controllers: { 'OldController.mjs': mounted(handler) } });
  t.after(() => running.close());
  const [one, two] = ['1', '2'].map((path) => `GET /api/old/${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
  await running.raw(`${one}`, 1);
  running.app.setDraining();
  const [first = '', second = ''] = (await running.raw(`${one}${two}`, 2)).split(/(?=HTTP\/1\.1 200)/);
  assert.match(first, /^Connection: keep-alive.*\/api\/old\/1/ims);
  assert.match(second, /^Connection: close.*\/api\/old\/2/ims);
});

test('of two files of one name the first extension serves, and a folder of the name does not', async (t) => {
  const running = await startService({
    controllers: {
      'service.mjs': `import { defineService } from '${GATEFOLD}'; export default defineService({ folders: true });`,
      'AController.mjs': mounted(`(request, response) => response.end('mjs')`),
      'AController.js': mounted(`(request, response) => response.end('js')`),
      'a/BController.mjs': 'export default { index() { return {} } }',
    },
  });
  t.after(() => running.close());
  for (const path of ['/api/a', '/api/a/b']) assert.match((await ask(running, `GET ${path}`)).body, /mjs/);
});

test('a handler that writes after the answer of the service has no effect, also while its client still sends', async (t) => {
  const late: { error?: unknown; isOver?: true } = {};
  Object.assign(globalThis, { lateWrites: late });
  const running = await startService({
    controllers: {
      'LateController.mjs': mounted(
        `(request, response) => {
  const timer = setInterval(() => {
    if (!response.headersSent) return;
    clearInterval(timer);
    try {
      response.setHeader('X-Late', '1').removeHeader('Content-Type');
      response.writeHead(200);
      response.write('late');
      response.end('late');
    } catch (error) { lateWrites.error = error; }
    lateWrites.isOver = true;
  }, 5);
}`,
        '{ timeout: 100 }',
      ),
    },
    expectedErrors: ['request-failed'],
  });
  t.after(() => running.close());
  const socket = connect(Number(new URL(running.url).port), '127.0.0.1');
  let text = '';
  socket.on('data', (piece) => {
    text += piece;
  });
  socket.write('POST /api/late HTTP/1.1\r\nHost: a.test\r\nContent-Length: 9\r\n\r\nabc');
  await until(() => late.isOver === true);
  socket.end('defghi');
  await new Promise((done) => socket.once('close', done));
  assert.equal(late.error, undefined);
  const { status, headers, body } = parseRaw(text);
  assert.deepEqual([status, headers.get('x-late')], [503, undefined]);
  assert.equal(Buffer.byteLength(body), Number(headers.get('content-length')));
});
