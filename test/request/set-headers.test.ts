// `params.setHeader`, `appendHeader` and `setCookie`, over a socket: on every kind of answer, and with odd arguments.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { formatCookie } from '../../src/base/set-cookie.ts';
import { GATEFOLD, type Service, startService } from '../support/service.ts';

/** Each row: the body of an operation with `p` for its params, and the header lines of its answer that are checked. */
type Row = readonly [operation: string, headers: Readonly<Record<string, string | readonly string[] | undefined>>];
const COOKIE = 'a=1; Path=/; HttpOnly; SameSite=Lax';

const ROWS: Readonly<Record<string, Row>> = {
  'on an object': ["p.setHeader('X-A', 'b')", { 'x-a': 'b', 'content-type': 'application/json; charset=UTF-8' }],
  'as a number': ["p.setHeader('X-Total', 5)", { 'x-total': '5' }],
  'twice: the last wins': ["p.setHeader('X-A', '1'); p.setHeader('x-a', '2')", { 'x-a': '2' }],
  'without this': ["const { setHeader } = p; setHeader('X-A', '1')", { 'x-a': '1' }],
  'of another name': [
    "p.setHeader('Content-Type', 'application/hal+json')",
    { 'content-type': 'application/hal+json' },
  ],
  'that the service file has': ["p.setHeader('X-Service', 'own')", { 'x-service': 'own' }],
  'that the service file has, beside another': ["p.setHeader('X-A', '1')", { 'x-service': 'file' }],
  'that a Reply has': ["p.setHeader('X-A', 'p'); return new Reply(201, {}, { 'x-a': 'reply' })", { 'x-a': 'reply' }],
  'beside a Reply': ["p.setHeader('X-A', 'p'); return new Reply(201, {}, { 'X-B': '1' })", { 'x-a': 'p', 'x-b': '1' }],
  'on a Reply without a body': ["p.setHeader('X-A', 'p'); return new Reply(204)", { 'x-a': 'p' }],
  'on a redirect': ["p.setHeader('X-A', 'p'); return Reply.redirect('/')", { 'x-a': 'p', location: '/' }],
  'on a text with a type that is not JSON': [
    "p.setHeader('Content-Type', 'text/html'); return '<h1>'",
    { 'content-type': 'text/html', 'content-length': '4' },
  ],
  'on bytes': [
    "p.setHeader('Content-Type', 'image/png'); return new Uint8Array(3)",
    { 'content-type': 'image/png', 'content-length': '3' },
  ],
  'on bytes of a Reply with a type': [
    "p.setHeader('Content-Type', 'image/png'); return new Reply(200, new Uint8Array(3), { 'Content-Type': 'image/gif' })",
    { 'content-type': 'image/gif' },
  ],
  'on a stream': ["p.setHeader('X-A', 'p'); return new Blob(['a']).stream()", { 'x-a': 'p' }],
  'on a stream, before its first byte': [
    `return new ReadableStream({ pull(c) { p.setHeader('X-A', 'late'); c.enqueue(new Uint8Array(1)); c.close() } })`,
    { 'x-a': 'late' },
  ],
  'on a web Response': [
    "p.setHeader('X-A', 'p'); return new Response('x', { headers: { 'X-B': '1' } })",
    { 'x-a': 'p', 'x-b': '1' },
  ],
  'on an event stream': ["p.setHeader('X-A', 'p'); return eventStream((async function* () {})())", { 'x-a': 'p' }],
  'on a 304': [
    "p.setHeader('X-A', 'p'); p.setHeader('Content-Language', 'de'); return new Reply(200, {}, { ETag: '\"1\"' })",
    { 'x-a': 'p', 'content-language': undefined },
  ],
  'on a refusal': [
    "p.setHeader('X-A', 'p'); throw new HttpError(409, 'X', 'x')",
    { 'x-a': 'p', 'cache-control': 'no-store' },
  ],
  'on a refusal that has the header': [
    "p.setHeader('X-A', 'p'); throw new HttpError(409, 'X', 'x', { headers: { 'X-A': 'error' } })",
    { 'x-a': 'error' },
  ],
  'about the content, on a refusal': [
    `p.setHeader('Content-Type', 'text/html'); p.setHeader('Content-Encoding', 'gzip'); p.setHeader('Cache-Control', 'public');
     throw new HttpError(409, 'X', 'x')`,
    {
      'content-type': 'application/json; charset=UTF-8',
      'content-encoding': undefined,
      'cache-control': 'no-store',
    },
  ],
  'about the content, on a result': [
    "p.setHeader('Content-Language', 'de'); p.setHeader('Content-Location', '/a')",
    { 'content-language': 'de', 'content-location': '/a' },
  ],
  'on a 500': ["p.setHeader('X-A', 'p'); throw new Error('x')", { 'x-a': 'p' }],
  'X-Content-Type-Options, which every answer has': [
    "p.setHeader('X-Content-Type-Options', 'sniff')",
    { 'x-content-type-options': 'nosniff' },
  ],
  'appended': ["p.appendHeader('Link', '<a>'); p.appendHeader('link', '<b>')", { link: ['<a>', '<b>'] }],
  'a cookie': ["p.setCookie('a', '1')", { 'set-cookie': [COOKIE], 'cache-control': 'no-store' }],
  'two cookies': [
    "p.setCookie('a', '1'); p.setCookie('b', '2')",
    { 'set-cookie': [COOKIE, COOKIE.replace('a=1', 'b=2')] },
  ],
  'a cookie twice: the last wins': ["p.setCookie('a', '0'); p.setCookie('a', '1')", { 'set-cookie': [COOKIE] }],
  'a cookie of two paths': [
    "p.setCookie('a', '1'); p.setCookie('a', '1', { path: '/x' })",
    { 'set-cookie': [COOKIE, COOKIE.replace('Path=/', 'Path=/x')] },
  ],
  'a cookie beside that of a Reply': [
    "p.setCookie('a', '1'); return new Reply(200, {}, { 'Set-Cookie': 'b=2' })",
    { 'set-cookie': ['b=2', COOKIE], 'cache-control': 'no-store' },
  ],
  'a cookie that a Reply also has': [
    "p.setCookie('a', '1'); return new Reply(200, {}, { 'Set-Cookie': 'a=; Path=/; Max-Age=0' })",
    { 'set-cookie': ['a=; Path=/; Max-Age=0'] },
  ],
  'a cookie that a Reply also has, written in another way': [
    "p.setCookie('a', '1', { domain: 'a.example' }); return new Reply(200, {}, { 'Set-Cookie': 'a=2; path=/; DOMAIN=A.example' })",
    { 'set-cookie': ['a=2; path=/; DOMAIN=A.example'] },
  ],
  'a cookie of as many bytes as browsers keep': [
    "p.setCookie('a', 'x'.repeat(4094))",
    { 'set-cookie': [COOKIE.replace('a=1', `a=${'x'.repeat(4094)}`)] },
  ],
  'a cookie whose options are undefined': [
    "p.setCookie('a', '1', { path: undefined, maxAge: undefined, secure: undefined })",
    { 'set-cookie': [COOKIE] },
  ],
  'a cookie and Cache-Control': [
    "p.setHeader('Cache-Control', 'private'); p.setCookie('a', '1')",
    { 'set-cookie': [COOKIE], 'cache-control': 'private' },
  ],
  'a cookie and Cache-Control of a Reply': [
    "p.setCookie('a', '1'); return new Reply(200, {}, { 'Cache-Control': 'private' })",
    { 'cache-control': 'private' },
  ],
  'a cookie on a refusal': [
    "p.setCookie('a', '1'); throw new HttpError(409, 'X', 'x', { headers: { 'Set-Cookie': 'b=2' } })",
    { 'set-cookie': ['b=2', COOKIE], 'cache-control': 'no-store' },
  ],
};

/** Calls that throw. The operation answers with the message. */
const REFUSED: readonly (readonly [call: string, message: RegExp])[] = [
  ...[
    'Content-Length',
    'Transfer-Encoding',
    'connection',
    'X-Request-Id',
    'Access-Control-Allow-Origin',
    'Keep-Alive',
    'Access-Control-Max-Age',
    'Allow',
    'Retry-After',
    'www-authenticate',
    'Trailer',
    'Upgrade',
    'TE',
    'Proxy-Connection',
  ].flatMap((name): [string, RegExp][] => [
    [`p.setHeader('${name}', '1')`, new RegExp(`the header ${name} belongs to the server`)],
    [`p.appendHeader('${name}', '1')`, new RegExp(`the header ${name} belongs to the server`)],
  ]),
  ["p.setHeader('X-A', 'a\\r\\nSet-Cookie: s=1')", /Invalid character/],
  ["p.setHeader('X-A', 'a\\nb')", /Invalid character/],
  ["p.setHeader('X-A\\r\\nX-B', 'a')", /valid HTTP token/],
  ["p.setHeader('X A', 'a')", /valid HTTP token/],
  ["p.setHeader('', 'a')", /valid HTTP token/],
  ["p.setHeader('X-A', 'é€')", /Invalid character/],
  ["p.setHeader('X-A', undefined)", /must be a text or a number/],
  ["p.setHeader('X-A', null)", /must be a text or a number/],
  ["p.setHeader('X-A', NaN)", /must be a text or a number/],
  ["p.setHeader('X-A', ['1', '2'])", /call appendHeader for each entry of a list/],
  ["p.setHeader('X-A', { toString: () => 'x' })", /must be a text or a number/],
  ["p.setHeader(7, 'a')", /./],
  ["p.setCookie('a b', '1')", /"a b" is no name of a cookie/],
  ["p.setCookie('a=b', '1')", /is no name of a cookie/],
  ["p.setCookie('a;b', '1')", /is no name of a cookie/],
  ["p.setCookie('', '1')", /is no name of a cookie/],
  ["p.setCookie('a\\r\\nX: y', '1')", /is no name of a cookie/],
  ["p.setCookie('a')", /the value of a must be a text/],
  ["p.setCookie('a', 1)", /the value of a must be a text/],
  ["p.setCookie('a', '\\ud800')", /half of a surrogate pair/],
  ["p.setCookie('a', 'x'.repeat(4095))", /a has 4097 bytes, and browsers drop over 4096/],
  ["p.setCookie('a', '1', null)", /the options of a must be an object/],
  ["p.setCookie('a', '1', { httponly: false })", /httponly is no option; there are httpOnly, /],
  ["p.setCookie('a', '1', { toString: 1 })", /toString is no option/],
  ["p.setCookie('a', '1', { sameSite: 'none' })", /sameSite must be 'Strict', 'Lax' or 'None'/],
  ["p.setCookie('a', '1', { path: '/; Domain=evil.example' })", /path must be a path/],
  ["p.setCookie('a', '1', { path: 'x' })", /path must be a path/],
  ["p.setCookie('a', '1', { path: '/\\r\\n' })", /path must be a path/],
  ["p.setCookie('a', '1', { domain: 'a.example; Secure' })", /domain must be the name of a host/],
  ["p.setCookie('a', '1', { maxAge: 1.5 })", /maxAge must be a whole number/],
  ["p.setCookie('a', '1', { maxAge: '60' })", /maxAge must be a whole number/],
  ["p.setCookie('a', '1', { expires: new Date() })", /expires is no option/],
  ["p.setCookie('a', '1', { sameSite: 'None', secure: false })", /browsers drop a without secure/],
  ["p.setCookie('__Host-a', '1', { path: '/x' })", /__Host-a can have no other path/],
  ["p.setCookie('__Host-a', '1', { domain: 'a.example' })", /__Host-a can have no other path/],
  ["p.setCookie('__Secure-a', '1', { secure: false })", /browsers drop __Secure-a without secure/],
];

describe('a header that an operation sets', () => {
  let service: Service;
  before(async () => {
    const methods = Object.values(ROWS).map(([operation], i) => `async 'GET r${i}'(_, p) { ${operation}\nreturn {} }`);
    const refused = REFUSED.map(
      ([call], i) => `'GET t${i}'(_, p) { try { ${call} } catch (e) { return e.message } return 'nothing thrown' }`,
    );
    service = await startService({
      controllers: {
        'service.mjs': `import { defineService } from '${GATEFOLD}'; export default defineService({ headers: { 'X-Service': 'file' } });`,
        'XController.mjs': `import { eventStream, HttpError, Reply } from '${GATEFOLD}';
          export default class { ${methods.join('\n')} ${refused.join('\n')} }`,
      },
      expectedErrors: ['request-failed'],
    });
  });
  after(() => service.close());

  for (const [i, [name, [operation, expected]]] of Object.entries(ROWS).entries()) {
    it(name, async () => {
      const text = await service.raw(
        `GET /api/x/r${i} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nIf-None-Match: "1"\r\n\r\n`,
        2,
      );
      const head = text.slice(0, text.indexOf('\r\n\r\n')).split('\r\n').slice(1);
      for (const [header, value] of Object.entries(expected)) {
        const values = head
          .filter((line) => line.toLowerCase().startsWith(`${header}: `))
          .map((line) => line.slice(header.length + 2));
        assert.deepEqual(values, value === undefined ? [] : [value].flat(), `${operation}: ${header}\n${text}`);
      }
    });
  }

  for (const [i, [call, message]] of REFUSED.entries()) {
    it(`throws for ${call}`, async () => {
      const { data } = (await (await fetch(`${service.url}/api/x/t${i}`)).json()) as { data: string };
      assert.match(data, message);
    });
  }
});

describe('a cookie', () => {
  const VALUES = [
    '',
    'a',
    'a b',
    'a;b',
    'a,b',
    '"a"',
    'a=b',
    'é€😀',
    'a\r\nSet-Cookie: x=1',
    '%41',
    '\\',
    '\0',
    '{"a":1}',
  ];
  it('comes back with the value that was set, whatever characters it has', async (t) => {
    const service = await startService({
      controllers: {
        'XController.mjs': `export default class {
          created({ value }, { setCookie }) { setCookie('v', value) }
          index(_, { cookies }) { return { value: cookies.v } } }`,
      },
    });
    t.after(service.close);
    for (const value of VALUES) {
      const headers = { 'content-type': 'application/json' };
      const set = await fetch(`${service.url}/api/x`, { method: 'POST', body: JSON.stringify({ value }), headers });
      const cookies = set.headers.getSetCookie();
      assert.equal(cookies.length, 1);
      const [pair = ''] = String(cookies[0]).split(';');
      const back = await fetch(`${service.url}/api/x`, { headers: { cookie: pair } });
      assert.deepEqual(await back.json(), { value }, pair);
    }
  });

  const FORMATS: readonly (readonly [args: Parameters<typeof formatCookie>, text: string])[] = [
    [['a', '1', {}, true], 'a=1; Path=/; HttpOnly; Secure; SameSite=Lax'],
    [['a', '1', { secure: false }, true], COOKIE],
    [
      ['a', '1', { httpOnly: false, sameSite: 'Strict', path: '/x', domain: 'a.example' }],
      'a=1; Domain=a.example; Path=/x; SameSite=Strict',
    ],
    [['a', '', { maxAge: 0 }], 'a=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax'],
    [['a', '1', { sameSite: 'None' }], 'a=1; Path=/; HttpOnly; Secure; SameSite=None'],
    [['a', '1', { sameSite: 'Lax' }], 'a=1; Path=/; HttpOnly; SameSite=Lax'],
    [['__Host-a', '1'], '__Host-a=1; Path=/; HttpOnly; Secure; SameSite=Lax'],
    [['__Secure-a', '1'], '__Secure-a=1; Path=/; HttpOnly; Secure; SameSite=Lax'],
  ];
  for (const [args, text] of FORMATS) it(`is ${text}`, () => assert.equal(formatCookie(...args), text));

  const HTTPS: readonly (readonly [
    settings: Record<string, string>,
    headers: Record<string, string>,
    isSecure: boolean,
  ])[] = [
    [{}, {}, false],
    [{}, { 'x-forwarded-proto': 'http' }, false],
    [{}, { 'x-forwarded-proto': 'https' }, true],
    [{}, { 'x-forwarded-proto': 'HTTPS, http' }, true],
    [{ PUBLIC_ORIGIN: 'https://api.example.com' }, {}, true],
    [{ PUBLIC_ORIGIN: 'http://api.example.com' }, {}, false],
  ];
  for (const [settings, headers, isSecure] of HTTPS) {
    it(`is ${isSecure ? '' : 'not '}Secure with ${JSON.stringify({ ...settings, ...headers })}`, async (t) => {
      const controllers = { 'XController.mjs': "export default class { index(_, p) { p.setCookie('a', '1') } }" };
      const service = await startService({ controllers, settings });
      t.after(service.close);
      const response = await fetch(`${service.url}/api/x`, { headers });
      assert.equal(/; Secure;/.test(String(response.headers.get('set-cookie'))), isSecure);
    });
  }
});

describe('authenticate and access', () => {
  const start = (options = '') =>
    startService({
      controllers: {
        'service.mjs': `import { defineService, HttpError } from '${GATEFOLD}';
          export default defineService({
            authenticate({ setCookie, setHeader, appendHeader, cookies }) {
              setHeader('X-Session', 'slid'); appendHeader('Vary', 'Cookie');
              if (cookies.session === 'dead') { setCookie('session', '', { maxAge: 0 }); throw new HttpError(401, 'DEAD', 'x') }
              if (cookies.session !== undefined) { setCookie('session', cookies.session, { maxAge: 60 }); return { id: 'ann' } }
            },
            access: ['user', (params) => { params.setHeader('X-Access', '1'); return params.query.in !== 'no' }],
            ${options}
          });`,
        'XController.ts': `import { HttpError, Reply } from '${GATEFOLD}';
          export default class {
            static operations = { limited: { limit: '1/h' }, slow: { timeout: 30 } };
            index(data: { in?: string; n?: number }) { return {} } refuse() { throw new HttpError(409, 'NO', 'x') } fail() { throw new Error('x') }
            limited() {} reply() { return new Reply(201, {}, { 'X-Session': 'own' }) }
            slow() { return new Promise(() => {}) }
          }`,
      },
      expectedErrors: ['request-failed'],
    });
  const SLID = 'session=1; Path=/; Max-Age=60; HttpOnly; SameSite=Lax';
  const rows: [
    path: string,
    status: number,
    cookie: string | undefined,
    sent: string | null,
    session: string | null,
  ][] = [
    ['x', 200, '1', SLID, 'slid'],
    ['x?in=no', 403, '1', SLID, 'slid'],
    ['x', 401, undefined, null, 'slid'],
    ['x', 401, 'dead', 'session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax', 'slid'],
    ['x?n=a', 422, '1', SLID, 'slid'],
    ['x/refuse', 409, '1', SLID, 'slid'],
    ['x/fail', 500, '1', SLID, 'slid'],
    ['x/reply', 201, '1', SLID, 'own'],
    ['x/slow', 503, '1', SLID, 'slid'],
    ['x/limited', 200, '1', SLID, 'slid'],
    ['x/limited', 429, '1', SLID, 'slid'],
    ['nothing', 404, '1', null, null],
  ];
  for (const options of [
    '',
    "formatError: ({ code }) => ({ code }), cors: { origins: ['https://a.example'], credentials: true },",
  ]) {
    it(`set headers of whatever is answered then, with ${options || 'nothing else'}`, async (t) => {
      const service = await start(options);
      t.after(service.close);
      for (const [path, status, cookie, sent, session] of rows) {
        const headers = {
          ...(cookie !== undefined && { cookie: `session=${cookie}` }),
          ...(options !== '' && { origin: 'https://a.example' }),
        };
        const method = path.includes('/') ? 'POST' : 'GET';
        const response = await fetch(`${service.url}/api/${path}`, { headers, method });
        await response.text();
        const shown = `${path} ${cookie}`;
        assert.equal(response.status, status, shown);
        assert.equal(response.headers.get('set-cookie'), sent, shown);
        assert.equal(response.headers.get('x-session'), session, shown);
        if (sent !== null) assert.equal(response.headers.get('cache-control'), 'no-store', shown);
        if (options !== '' && session !== null) {
          assert.match(String(response.headers.get('access-control-expose-headers')), /X-Session/, shown);
          assert.match(String(response.headers.get('vary')), /Cookie/);
        }
      }
    });
  }
});

it('after the answer, a header can no longer be set', async (t) => {
  const service = await startService({
    controllers: {
      'XController.mjs': `export default class { index(_, { setHeader, setCookie, waitUntil }) {
        waitUntil(new Promise((resolve) => setImmediate(resolve)).then(() => globalThis.headersLate([setHeader, setCookie])));
      } }`,
    },
  });
  t.after(service.close);
  const late = new Promise<((name: string, value: string) => void)[]>((resolve) =>
    Object.assign(globalThis, { headersLate: resolve }),
  );
  await fetch(`${service.url}/api/x`);
  for (const set of await late) assert.throws(() => set('X-A', '1'), /the answer has been sent/);
});
