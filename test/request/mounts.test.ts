// Mounts of web handlers: what the handler gets, what its answer becomes, the steps before it, and the fallback.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { createLog } from '../../src/base/log.ts';
import { type CallerRow, checkCall } from '../../src/callers/access/credential-rights.ts';
import { createGroups } from '../../src/live/load/registry.ts';
import { createFolder, write } from '../support/folder.ts';
import { GATEFOLD, parseRaw, type Service, startService } from '../support/service.ts';

const log = createLog({ level: 'silent', sink: { write() {}, flush() {} } });
const service = (options: string) =>
  `import { defineService, mount } from '${GATEFOLD}';\nexport default defineService({ ${options} });\n`;
const mounted = (handler: string, settings = '{}') =>
  `import { mount, HttpError } from '${GATEFOLD}';\nexport default mount(${handler}, ${settings});\n`;

/** A handler that answers with what it got. */
const ECHO = `async (request, params) => Response.json({
  url: request.url,
  method: request.method,
  headers: Object.fromEntries(request.headers),
  body: await request.text(),
  path: params.path,
  page: params.page,
  user: params.user,
  application: params.application,
})`;

const row = (groups: ReadonlySet<string> | '*' | undefined, handler?: string): CallerRow => ({
  ...{ application: { id: 'k', name: 'k' }, handler, groups, methods: undefined },
});
const rows: Record<string, CallerRow> = {
  'Bearer all': row('*'),
  'Bearer auth': row(new Set(['Auth'])),
  'Bearer order': row(new Set(['Order'])),
  'Bearer sdk': row(undefined, 'Order'),
  'Bearer reader': { ...row(undefined, 'Order'), methods: new Set(['GET']) },
  'Bearer rest': row(new Set(['/*'])),
};
const credentials = {
  identify: (text: string) => {
    const found = rows[text];
    if (found !== undefined) return { kind: 'row', row: found } as const;
    return text.startsWith('Bearer gfk_')
      ? ({ kind: 'refused', reason: 'x' } as const)
      : ({ kind: 'foreign' } as const);
  },
};

interface Echo {
  readonly url: string;
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body: string;
  readonly path: Record<string, string>;
  readonly page: string;
  readonly application?: { id: string };
  readonly user?: { id: string };
  readonly error_code?: string;
  readonly message?: string;
}

/** Sends a raw request, and returns its answer with its parsed body. */
async function ask(running: Service, head: string, body = '') {
  const [line = '', ...headers] = head.split('\n');
  const host = headers.some((header) => /^host:/i.test(header)) ? [] : ['Host: a.test'];
  const lines = [`${line} HTTP/1.1`, ...host, 'Connection: close', ...headers];
  const answer = parseRaw(await running.raw(`${lines.join('\r\n')}\r\n\r\n${body}`));
  const text = answer.headers.get('transfer-encoding') === 'chunked' ? dechunk(answer.body) : answer.body;
  const isJson = answer.headers.get('content-type')?.includes('json') === true && text !== '';
  return { ...answer, body: text, json: (isJson ? JSON.parse(text) : {}) as Echo };
}

function dechunk(text: string): string {
  let result = '';
  for (let rest = text; ; ) {
    const size = Number.parseInt(rest, 16);
    if (!(size > 0)) return result;
    const from = rest.indexOf('\r\n') + 2;
    result += rest.slice(from, from + size);
    rest = rest.slice(from + size + 2);
  }
}

describe('a mount of a web handler', () => {
  let running: Service;
  before(async () => {
    running = await startService({
      controllers: {
        'service.mjs': service(`
          keyHeader: 'X-Api-Key',
          headers: { 'X-Service': 'yes' },
          cors: { origins: ['https://app.test'], credentials: true },
          authenticate: ({ cookies }) => cookies.user && { id: cookies.user },
          around: () => { throw new Error('not around a mount'); }`),
        'AuthController.mjs': mounted(ECHO),
        'OwnController.mjs': mounted(
          `(request) => new Response(request.method, { headers: {
            'Access-Control-Allow-Origin': 'https://own.test', Connection: 'close', 'Content-Length': '3', Vary: 'X' } })`,
          `{ cors: 'own', access: 'user' }`,
        ),
        'PlainController.mjs': mounted(
          `() => new Response('x', { headers: { 'Access-Control-Allow-Origin': 'https://own.test', Connection: 'close' } })`,
        ),
        'UserController.mjs': mounted(ECHO, `{ access: 'user', summary: 'Only users' }`),
        'LimitController.mjs': mounted(ECHO, `{ limit: '1/h', bodyLimit: 10 }`),
        'FetchController.mjs': `import { mount } from '${GATEFOLD}';
          class App { name = 'app'; fetch() { return new Response(this.name); } }
          export default mount(new App());`,
        'OddController.mjs': mounted(
          `(request, params) => {
          switch (new URL(request.url).pathname.split('/').pop()) {
            case 'throws': throw new Error('no');
            case 'refuses': throw new HttpError(418, 'TEAPOT', 'no');
            case 'nothing': return;
            case 'object': return { a: 1 };
            case 'never': return new Promise(() => {});
            case 'rejects': return Promise.reject(new Error('no'));
            case 'head': return new Response(null, { headers: { 'Content-Type': 'text/x', 'Content-Length': '9' } });
            case 'replaces':
              params.address = 'first';
              params.address = 'second';
              const shown = { ...params }.address;
              delete params.address;
              return Response.json([shown, 'address' in params]);
          }
        }`,
          '{ timeout: 300 }',
        ),
        'OrderController.mjs': 'export default { index() { return { group: "order" } } }',
      },
      settings: { BODY_LIMIT: '1KiB' },
      parts: { credentials },
      expectedErrors: ['request-failed'],
    });
  });
  after(() => running.close());

  test('gets params whose properties it can replace, copy and delete', async () => {
    const answer = await fetch(`${running.url}/api/odd/replaces`);
    assert.deepEqual(await answer.json(), ['second', false]);
  });

  test('has every path at and below its group, and every method', async () => {
    for (const [method, path] of [
      ['GET', '/api/auth'],
      ['GET', '/api/auth/'],
      ['POST', '/api/auth/sign-in/email'],
      ['PROPFIND', '/api/auth/a.b/~c'],
      ['DELETE', '/api/Auth/x?a=1&a=2'],
    ] as const) {
      const { status, json } = await ask(running, `${method} ${path}`);
      assert.equal(status, 200, path);
      assert.equal(json.url, `http://a.test${path}`);
      assert.equal(json.method, method);
      assert.equal(json.page, path.split('/')[2]?.replace('Auth', 'Auth'));
    }
    assert.deepEqual((await ask(running, 'GET /api/auth/a/b%2Fc')).json.path, { path: 'a/b/c' });
    assert.equal((await ask(running, 'GET /api/auth/a/b%2Fc')).json.url, 'http://a.test/api/auth/a/b%2Fc');
    assert.equal((await ask(running, 'GET http://other.test/api/auth/x')).json.url, 'http://a.test/api/auth/x');
    const head = await ask(running, 'HEAD /api/auth/x');
    assert.deepEqual([head.status, head.body, head.headers.get('content-type')], [200, '', 'application/json']);
  });

  test('gets all headers but those of the connection and a key', async () => {
    const { json } = await ask(
      running,
      'POST /api/auth/x\nCookie: a=b\nCookie: c=d\nX-Forwarded-For: 1.2.3.4\nTE: trailers\nKeep-Alive: 5\nExpect: 100-continue\nAuthorization: Bearer foreign\nContent-Encoding: gzip\nContent-Length: 4',
      'wxyz',
    );
    const { host, cookie, authorization } = json.headers;
    assert.deepEqual([host, cookie, authorization], ['a.test', 'a=b; c=d', 'Bearer foreign']);
    assert.equal(json.headers['content-encoding'], 'gzip');
    assert.equal(json.body, 'wxyz', 'the body is not inflated');
    for (const name of ['connection', 'te', 'keep-alive', 'expect']) assert.equal(json.headers[name], undefined, name);
    const byHeader = await ask(running, 'GET /api/auth/x\nX-Api-Key: all\nAuthorization: Basic eDp5');
    assert.equal(byHeader.json.headers['x-api-key'], undefined);
    assert.equal(byHeader.json.headers.authorization, 'Basic eDp5');
    assert.equal(byHeader.json.application?.id, 'k');
    const byAuthorization = await ask(running, 'GET /api/auth/x\nAuthorization: Bearer all');
    assert.equal(byAuthorization.json.headers.authorization, undefined);
  });

  for (const path of [
    '/api/auth/../order',
    '/api/auth/%2e%2e/order',
    '/api/auth/.%2E/x',
    '/api/auth/./x',
    '/api/auth\\..\\order',
    '/api/auth/a\\b',
  ])
    test(`refuses ${path}, which another reader would resolve`, async () => {
      const { status, json } = await ask(running, `GET ${path}`);
      assert.equal(json.error_code, path.startsWith('/api/auth\\') ? 'GROUP_NOT_FOUND' : 'MALFORMED_PATH');
      assert.equal(status, path.startsWith('/api/auth\\') ? 404 : 400);
    });

  test('is not reached by an encoded slash behind its name, nor by TRACE', async () => {
    assert.equal((await ask(running, 'GET /api/auth%2Fx')).json.error_code, 'ROUTE_NOT_FOUND');
    assert.equal((await ask(running, 'GET /api/auth%2F..%2Forder')).json.error_code, 'ROUTE_NOT_FOUND');
    assert.equal((await ask(running, 'TRACE /api/auth/x')).status, 405);
  });

  test('passes the steps of an operation: key, rights, origin, access, limit', async () => {
    const code = async (head: string, body = '') => (await ask(running, head, body)).json.error_code;
    assert.equal(await code('GET /api/auth/x\nAuthorization: Bearer gfk_x'), 'INVALID_CREDENTIAL');
    assert.equal(await code('GET /api/auth/x\nAuthorization: Bearer order'), 'GROUP_NOT_ALLOWED');
    assert.equal(await code('GET /api/auth/x\nAuthorization: Bearer auth'), undefined);
    assert.equal(await code('POST /api/auth/x\nCookie: user=ann\nOrigin: https://evil.test'), 'ORIGIN_NOT_ALLOWED');
    assert.equal(await code('POST /api/auth/x\nCookie: user=ann\nOrigin: https://app.test'), undefined);
    assert.equal(await code('GET /api/auth/x\nCookie: user=ann\nOrigin: https://evil.test'), undefined);
    assert.equal(await code('GET /api/user/x'), 'USER_REQUIRED');
    assert.equal((await ask(running, 'GET /api/user/x\nCookie: user=ann')).json.user?.id, 'ann');
    assert.equal(await code('GET /api/limit/x'), undefined);
    assert.equal(await code('GET /api/limit/y'), 'RATE_LIMITED');
  });

  test('gets a body that streams, within its limit', async () => {
    const long = 'x'.repeat(2000);
    assert.equal((await ask(running, `POST /api/auth/x\nContent-Length: 2000`, long)).status, 413);
    const chunked = `${(2000).toString(16)}\r\n${long}\r\n0\r\n\r\n`;
    const { status, json } = await ask(running, `POST /api/auth/x\nTransfer-Encoding: chunked`, chunked);
    assert.deepEqual([status, json.error_code], [413, 'BODY_TOO_LARGE']);
    const short = await ask(running, `POST /api/auth/x\nTransfer-Encoding: chunked`, '3\r\nabc\r\n0\r\n\r\n');
    assert.deepEqual([short.json.body, short.json.headers['transfer-encoding']], ['abc', undefined]);
  });

  test('a GET with a body loses it, and the connection lives on', async () => {
    const request = (rest: string) => `GET /api/auth/x HTTP/1.1\r\nHost: a.test\r\n${rest}`;
    const text = await running.raw(request('Content-Length: 3\r\n\r\nabc') + request('Connection: close\r\n\r\n'), 9);
    assert.deepEqual(text.match(/HTTP\/1.1 \d+/g), ['HTTP/1.1 200', 'HTTP/1.1 200']);
  });

  test('has its own headers, and those of the service instead of its CORS headers', async () => {
    const { headers } = await ask(running, 'GET /api/plain\nOrigin: https://app.test');
    assert.equal(headers.get('access-control-allow-origin'), 'https://app.test');
    assert.equal(headers.get('x-service'), 'yes');
    assert.equal(headers.get('x-content-type-options'), 'nosniff');
    assert.ok(!running.lines.some(({ event }) => event === 'header-dropped'));
    const preflight = await ask(
      running,
      'OPTIONS /api/plain\nOrigin: https://app.test\nAccess-Control-Request-Method: PUT',
    );
    assert.equal(preflight.headers.get('access-control-allow-origin'), 'https://app.test');
  });

  test("with cors: 'own' it answers preflights, sets the CORS headers and checks the origin", async () => {
    const preflight = await ask(
      running,
      'OPTIONS /api/own/x\nOrigin: https://evil.test\nAccess-Control-Request-Method: PUT',
    );
    assert.deepEqual([preflight.status, preflight.body], [200, 'OPTIONS']);
    assert.equal(preflight.headers.get('access-control-allow-origin'), 'https://own.test');
    assert.equal(preflight.headers.get('vary'), 'X');
    const post = await ask(running, 'POST /api/own/x\nCookie: user=ann\nOrigin: https://evil.test');
    assert.deepEqual([post.status, post.body], [200, 'POST']);
    const refused = await ask(running, 'POST /api/own/x\nOrigin: https://app.test');
    assert.deepEqual([refused.status, refused.headers.get('access-control-allow-origin')], [401, 'https://app.test']);
    // Only a preflight passes without a user.
    assert.equal((await ask(running, 'OPTIONS /api/own/x')).status, 401);
    const other = await ask(
      running,
      'OPTIONS /api/order\nOrigin: https://app.test\nAccess-Control-Request-Method: PUT',
    );
    assert.deepEqual([other.status, other.body], [200, '']);
    assert.equal((await ask(running, 'OPTIONS /api/nothing')).status, 200);
  });

  test('an answer to HEAD without a body has the type of the GET, and says nothing about its length', async () => {
    for (const [method, length] of [
      ['HEAD', undefined],
      ['GET', '0'],
    ] as const) {
      const { headers } = await ask(running, `${method} /api/odd/head`);
      assert.deepEqual([headers.get('content-type'), headers.get('content-length')], ['text/x', length]);
    }
  });

  test('is an object with fetch, whose this is the object', async () => {
    assert.equal((await ask(running, 'GET /api/fetch')).body, 'app');
  });

  for (const [path, status, code] of [
    ['throws', 500, 'INTERNAL_ERROR'],
    ['rejects', 500, 'INTERNAL_ERROR'],
    ['nothing', 500, 'INTERNAL_ERROR'],
    ['object', 500, 'INTERNAL_ERROR'],
    ['refuses', 418, 'TEAPOT'],
    ['never', 503, 'OPERATION_TIMEOUT'],
  ] as const)
    test(`a handler that ${path} is a ${status}`, async () => {
      const answer = await ask(running, `GET /api/odd/${path}`);
      assert.deepEqual([answer.status, answer.json.error_code], [status, code]);
    });

  test('is in the log', async () => {
    await ask(running, 'GET /api/auth/secret?token=1');
    const line = running.lines.find(({ event, path }) => event === 'request' && path === '/api/auth/secret');
    assert.deepEqual([line?.page, line?.operation, line?.status], ['auth', 'ANY {path*}', 200]);
  });
});

test('params.toRequest gives any operation the same request', async (t) => {
  const running = await startService({
    controllers: {
      'RequestController.mjs': `export default {
          operations: { PUT: { body: 'stream' } },
          async POST(data, params) {
            const request = params.toRequest();
            return { data, url: request.url, text: await request.text(), headers: Object.fromEntries(request.headers) };
          },
          PUT(_, params) { return this.POST(undefined, params) },
          'GET {path*}': (_, params) => ({ url: params.toRequest().url }),
        }`,
    },
  });
  t.after(() => running.close());
  const { json } = await ask(
    running,
    'POST /api/request?a=1\nContent-Type: application/json\nContent-Length: 7',
    '{"a":1}',
  );
  const { url, text, data, headers } = json as unknown as Record<string, unknown>;
  assert.deepEqual([url, text, data], ['http://a.test/api/request?a=1', '{"a":1}', { a: 1 }]);
  assert.equal((headers as Record<string, string>)['content-type'], 'application/json');
  // The class `URL` would resolve such a path, past the `access` of this operation.
  for (const path of ['../closed', 'a/%2e%2E/..', './a', 'a\\..\\..\\closed'])
    assert.equal((await ask(running, `GET /api/request/${path}`)).json.error_code, 'MALFORMED_PATH', path);
  assert.equal((await ask(running, 'GET /api/request/...//a')).json.url, 'http://a.test/api/request/...//a');
  // The body is inflated, so no header says that it is not.
  for (const [method, length] of [
    ['POST', '7'],
    ['PUT', undefined],
  ] as const) {
    const init = { method, body: gzipSync('{"a":1}'), headers: { 'content-encoding': 'gzip' } };
    const answer = await fetch(`${running.url}/api/request`, init);
    const inflated = (await answer.json()) as { text: string; headers: Record<string, string> };
    const { 'content-encoding': encoding, 'content-length': sent } = inflated.headers;
    assert.deepEqual([inflated.text, encoding, sent], ['{"a":1}', undefined, length]);
  }
});

const PROXIED = { TRUSTED_PROXIES: '127.0.0.1' };
const DOMAINS = { DOMAINS: 'shop.test', PORT: '8443' };

describe('the origin of the URL', () => {
  for (const [title, settings, host, expected] of [
    ['PUBLIC_ORIGIN', { PUBLIC_ORIGIN: 'https://shop.test' }, 'evil.test', 'https://shop.test/api/a'],
    ['one of PUBLIC_ORIGIN', { PUBLIC_ORIGIN: 'https://shop.test,https://b.test' }, 'b.test', 'https://b.test/api/a'],
    ['Host', {}, 'evil.test:80', 'http://evil.test/api/a'],
    ['https behind a proxy', PROXIED, 'a.test\nX-Forwarded-Proto: https', 'https://a.test/api/a'],
    ['http behind a proxy', PROXIED, 'a.test\nX-Forwarded-Proto: http', 'http://a.test/api/a'],
    ['one of DOMAINS', DOMAINS, 'shop.test', 'https://shop.test/api/a'],
    ['one of DOMAINS with PORT', DOMAINS, 'Shop.test:8443', 'https://shop.test:8443/api/a'],
    ['one of DOMAINS without another port', DOMAINS, 'shop.test:99', 'https://shop.test/api/a'],
    ['refused when Host is none of DOMAINS', DOMAINS, 'evil.test', undefined],
  ] as const)
    test(`is ${title}`, async (t) => {
      const running = await startService({ controllers: { 'AController.mjs': mounted(ECHO) }, settings });
      t.after(() => running.close());
      const { status, json } = await ask(running, `GET /api/a\nHost: ${host}`);
      assert.deepEqual([status, json.url], [expected === undefined ? 421 : 200, expected]);
    });
});

test('a request without a Host has the URL of localhost, and a target without a path that of the root', async (t) => {
  const running = await startService({ controllers: { 'service.mjs': service(`fallback: mount(${ECHO})`) } });
  t.after(() => running.close());
  for (const [head, url] of [
    ['GET /a HTTP/1.0', 'http://localhost/a'],
    ['GET http://b.test HTTP/1.1\r\nHost: b.test\r\nConnection: close', 'http://b.test/'],
    ['GET http://b.test/?a=1 HTTP/1.1\r\nHost: b.test\r\nConnection: close', 'http://b.test/?a=1'],
  ] as const)
    assert.match(await running.raw(`${head}\r\n\r\n`), new RegExp(`"url":"${url.replace('?', '\\?')}"`));
});

test('a Host that no URL can have is 400', async (t) => {
  const running = await startService({ controllers: { 'AController.mjs': mounted(ECHO) } });
  t.after(() => running.close());
  for (const host of ['256.1.1.1', 'a%00', 'a%2fb', 'a%40b', '[1]', 'a:70000']) {
    const { status, json } = await ask(running, `GET /api/a\nHost: ${host}`);
    assert.deepEqual([host, status, json.error_code], [host, 400, 'MALFORMED_HOST']);
  }
});

test('a preflight that the fallback gets calls no route of the root group, whose access it has not passed', async (t) => {
  const running = await startService({
    controllers: {
      'service.mjs': service(
        `fallback: mount(${ECHO}, { access: 'anyone' }), access: 'user', authenticate: () => undefined`,
      ),
      'Controller.mjs': `export default {
        operations: { 'OPTIONS open': { access: 'anyone' } },
        'OPTIONS closed'() { return { page: 'closed' } },
        'OPTIONS open'() { return { page: 'open' } },
      }`,
    },
  });
  t.after(() => running.close());
  for (const path of ['/api/closed', '/api/open'])
    for (const method of ['GET', 'PUT', 'DELETE']) {
      const head = `OPTIONS ${path}\nOrigin: https://x.test\nAccess-Control-Request-Method: ${method}`;
      assert.equal((await ask(running, head)).json.page, '/*', head);
    }
  assert.equal((await ask(running, 'OPTIONS /api/closed')).body, '');
});

describe('fallback of the service file', () => {
  let running: Service;
  before(async () => {
    running = await startService({
      controllers: {
        'service.mjs': service(`fallback: mount(${ECHO}), strict: true`),
        'Controller.mjs':
          'export default { "GET robots.txt"() { return { page: "root" } }, "GET {a}"() { return { page: "root" } } }',
        'OrderController.mjs': 'export default { index() { return { page: "order" } } }',
        'BrokenController.mjs': 'throw new Error("broken")',
      },
      parts: { credentials },
      expectedErrors: ['request-failed'],
    });
  });
  after(() => running.close());

  for (const [head, page] of [
    ['GET /', '/*'],
    ['GET /index.html', '/*'],
    ['POST /checkout?a=1', '/*'],
    ['GET /api', '/*'],
    ['GET /api/a/b', '/*'],
    ['POST /api/robots.txt', '/*'],
    ['GET /api/register', 'root'],
    ['GET /api/register/x', '/*'],
    ['GET /api/robots.txt', 'root'],
    ['GET /api/anything', 'root'],
    ['GET /api/order', 'order'],
    ['GET /api/a/b\nAuthorization: Bearer foreign', '/*'],
    ['GET /a/b\nAuthorization: Bearer all', '/*'],
    ['OPTIONS /a/b\nOrigin: https://x.test\nAccess-Control-Request-Method: GET', '/*'],
    ['OPTIONS /api/a/b\nOrigin: https://x.test\nAccess-Control-Request-Method: GET', '/*'],
    ['GET //evil.test/x', '/*'],
  ] as const)
    test(`${head.replaceAll('\n', ', ')} is for ${page}`, async () => {
      const { json, status } = await ask(running, head);
      assert.deepEqual([status, json.page], [200, page]);
      if (page === '/*') assert.equal(json.url, `http://a.test${head.split(' ')[1]?.split('\n')[0]}`);
    });

  test('a file that does not load keeps its paths, and a method that a named group lacks is its 405', async () => {
    assert.equal((await ask(running, 'GET /api/broken/x')).json.error_code, 'GROUP_NOT_LOADABLE');
    assert.equal((await ask(running, 'PUT /api/order')).json.error_code, 'METHOD_NOT_ALLOWED');
    assert.equal((await ask(running, 'GET /api/order/x')).json.error_code, 'ROUTE_NOT_FOUND');
  });

  test('a preflight of a route is answered by the service', async () => {
    const preflight = (path: string, method: string) =>
      ask(running, `OPTIONS ${path}\nOrigin: https://x.test\nAccess-Control-Request-Method: ${method}`);
    for (const [path, method] of [
      ['/api/robots.txt', 'GET'],
      ['/api/order', 'GET'],
      ['/api/broken', 'GET'],
      ['/api/docs', 'GET'],
      ['/api/idp-signin', 'POST'],
    ] as const) {
      const { status, body, headers } = await preflight(path, method);
      assert.deepEqual([status, body, headers.get('access-control-allow-origin')], [200, '', '*'], path);
    }
    assert.equal((await preflight('/api/idp-signin', 'PUT')).json.page, '/*');
  });

  test('only a key for all groups reaches it', async () => {
    for (const path of ['/a', '/api/a/b', '/api/a'])
      for (const key of ['auth', 'order'])
        assert.equal(
          (await ask(running, `GET ${path}\nAuthorization: Bearer ${key}`)).json.error_code,
          'GROUP_NOT_ALLOWED',
        );
    assert.equal((await ask(running, 'GET /a\nAuthorization: Bearer sdk')).json.error_code, 'GROUP_NOT_ALLOWED');
    assert.equal((await ask(running, 'GET /api/a/b\nAuthorization: Bearer sdk')).json.page, 'order');
  });

  test('a key may name it, and its streams stay allowed', async () => {
    const page = async (path: string) => {
      const { json } = await ask(running, `GET ${path}\nAuthorization: Bearer rest`);
      return json.page ?? json.error_code;
    };
    assert.equal(await page('/a'), '/*');
    assert.equal(await page('/api/a/b'), '/*', 'no route of the root group takes it');
    for (const path of ['/api/order', '/api/a', '/api/robots.txt']) assert.equal(await page(path), 'GROUP_NOT_ALLOWED');
    for (const path of ['/api/a', '/api/order'])
      assert.equal(
        (await ask(running, `POST ${path}\nAuthorization: Bearer reader`)).json.message,
        'This application may not use the method',
        path,
      );
    const call = { verb: 'GET', groupInUrl: '/*', group: '/*', operation: 'ANY {path*}' };
    for (const groups of ['*', new Set(['/*'])] as const) checkCall(row(groups), call);
    assert.throws(() => checkCall(row(new Set(['Order'])), call), /may not use the handler group/);
  });

  test('its name is no URL', async () => {
    assert.equal((await ask(running, 'GET /api/%2F*')).json.page, 'root');
    assert.equal((await ask(running, 'GET /api/%2F*/x')).json.page, '/*');
  });

  test('a new controller takes over at its next request', async () => {
    assert.equal((await ask(running, 'GET /api/cart/1')).json.page, '/*');
    write(running.dir, 'CartController.mjs', 'export default { "GET {id}"() { return { page: "cart" } } }');
    assert.equal((await ask(running, 'GET /api/cart/1')).json.page, 'cart');
  });
});

test('a root group can be a mount, which takes segments with a slash', async (t) => {
  const running = await startService({ controllers: { 'Controller.mjs': mounted(ECHO) } });
  t.after(() => running.close());
  for (const path of ['/api', '/api/a%2Fb', '/api/a/b'])
    assert.deepEqual((await ask(running, `GET ${path}`)).json.url, `http://a.test${path}`);
});

test('the access of the service file holds for the fallback, unless its settings have another', async (t) => {
  for (const [settings, status] of [
    ['{}', 401],
    [`{ access: 'anyone' }`, 200],
  ] as const) {
    const running = await startService({
      controllers: {
        'service.mjs': service(`access: 'application', fallback: mount(() => new Response('x'), ${settings})`),
      },
    });
    t.after(() => running.close());
    assert.equal((await ask(running, 'GET /x')).status, status);
  }
});

describe('a mount that does not load', () => {
  for (const [title, source, reason, options = ''] of [
    ['a number', mounted('7'), /mount takes a function/],
    ['a class', mounted('class { fetch() {} }'), /mount takes a function/],
    ['an unknown setting', mounted(ECHO, '{ acces: "user" }'), /unknown property acces; there are access, limit/],
    ['a wrong setting', mounted(ECHO, '{ access: "users" }'), /access must be/],
    ['a setting of a Node handler', mounted(ECHO, '{ strip: true }'), /unknown property strip/],
    ['settings in another export', `${mounted(ECHO)}export const access = 'user';`, /access says nothing beside mount/],
    ['operations in another export', `${mounted(ECHO)}export const operations = {};`, /operations says nothing/],
    ['guards in another export', `${mounted(ECHO)}export const _before = () => {};`, /_before says nothing/],
    [
      'settings in a copy of the mount',
      mounted(ECHO).replace(/default (.*);\n$/s, 'default Object.freeze({ ...$1, access: "application" });'),
      /it is a copy of a mount: write its settings into mount/,
    ],
    ['a user without authenticate', mounted(ECHO, '{ access: "user" }'), /no service file has authenticate/],
    ['no types', mounted(ECHO), /mount\(\)/, `unchecked: 'refuse'`],
  ] as const)
    test(title, async (t) => {
      const dir = createFolder(t, {
        'AController.mjs': source,
        ...(options === '' ? {} : { 'service.mjs': service(options) }),
      });
      const loads = await createGroups({ dir, log }).loadAll({ skip: new Map(), onLoading: () => {} });
      assert.match(String(loads.find(({ file }) => file === 'AController.mjs')?.error), reason);
    });

  test("with unchecked: 'refuse', a mount loads with unchecked: true, and the fallback, too", async (t) => {
    for (const [settings, ok] of [
      ['{}', false],
      ['{ unchecked: true }', true],
    ] as const) {
      const dir = createFolder(t, {
        'AController.mjs': mounted(ECHO, settings),
        'service.mjs': service(`unchecked: 'refuse'`),
      });
      const loads = await createGroups({ dir, log }).loadAll({ skip: new Map(), onLoading: () => {} });
      assert.equal(loads.find(({ group }) => group === 'A')?.ok, ok);
      const groups = createGroups({
        dir: createFolder(t, { 'service.mjs': service(`unchecked: 'refuse', fallback: mount(${ECHO}, ${settings})`) }),
        log,
      });
      const [own] = await groups.loadAll({ skip: new Map(), onLoading: () => {} });
      assert.equal(own?.ok, ok);
    }
  });
});
