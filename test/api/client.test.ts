// The typed client in Node: the bytes that it sends, and how it reads answers. Each test defines the answers of a
// simple server. test/api/types.ts tests the types, and browser.test.ts tests a browser.
import assert from 'node:assert/strict';
import { getEventListeners, once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { buildSync } from 'esbuild';
import { readEvents } from '../../src/api/client/events.ts';
import {
  ApiError,
  type Call,
  type CallOptions,
  type ClientOptions,
  createClient,
  isApiError,
  type ServerEvent,
} from '../../src/api/client.ts';

interface Sent {
  readonly line: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Operations without types, because this file tests only the bytes on the wire. */
type Untyped = Record<'user' | 'order' | 'book' | 'file' | 'feed', Record<Name, Operation>>;
type Operation = (
  first?: unknown,
  second?: CallOptions & { query?: object; slugs?: unknown[]; method?: string },
) => Call<unknown>;
type Name = 'index' | 'created' | 'red' | 'patch' | 'deleted' | 'find' | 'watch' | 'GET' | 'PUT' | 'DELETE' | Route;
type Route =
  | 'GET {id}'
  | 'GET {id}/items/{item}'
  | 'DELETE {id}'
  | 'POST {id}/pay'
  | 'PUT {id}/cover'
  | 'GET export.csv'
  | 'GET {path*}';

let server: Server;
let url: string;
let sent: Sent[] = [];
let reply: (response: ServerResponse, request: Sent) => void;

const json =
  (value: unknown, status = 200) =>
  (response: ServerResponse) =>
    response.writeHead(status, { 'Content-Type': 'application/json; charset=UTF-8' }).end(JSON.stringify(value));

before(async () => {
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { method, url: target, headers } = request;
    const got = { line: `${method} ${target}`, headers, body: Buffer.concat(chunks) };
    sent.push(got);
    reply(response, got);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
after(() => {
  server.closeAllConnections();
  server.close();
});

function client(answer: typeof reply = json({}), options: ClientOptions = {}, base = url): Untyped {
  sent = [];
  reply = answer;
  return createClient(base, options) as Untyped;
}

async function linesOf(use: (api: Untyped) => Promise<unknown>, base?: string): Promise<string> {
  await use(client(json({}), {}, base));
  return sent.map(({ line, body }) => (body.length === 0 ? line : `${line} ${body}`)).join(', ');
}

const AT = new Date(0);

describe('createClient sends', () => {
  const rows: Record<string, [use: (api: Untyped) => Promise<unknown>, sent: string]> = {
    'index as GET, its data as the query': [
      (api) => api.user.index({ page: 1, all: false }),
      'GET /api/user?page=1&all=false',
    ],
    'a list in the query as repeated keys, and no key for null or undefined': [
      (api) => api.user.index({ tag: ['a b', 'c&d'], gone: undefined, none: null }),
      'GET /api/user?tag=a+b&tag=c%26d',
    ],
    'a date as ISO 8601': [(api) => api.user.index({ since: AT }), 'GET /api/user?since=1970-01-01T00%3A00%3A00.000Z'],
    'created as POST': [
      (api) => api.user.created({ name: 'Ada', at: AT }),
      'POST /api/user {"name":"Ada","at":"1970-01-01T00:00:00.000Z"}',
    ],
    'created without data as POST without a body': [(api) => api.user.created(), 'POST /api/user'],
    'created with a query beside its body': [
      (api) => api.user.created({}, { query: { dryRun: true } }),
      'POST /api/user?dryRun=true {}',
    ],
    'red, patch and deleted as PUT, PATCH and DELETE': [
      async (api) => {
        await api.user.red([1]);
        await api.user.patch('text');
        await api.user.deleted({ id: 7 });
      },
      'PUT /api/user [1], PATCH /api/user "text", DELETE /api/user?id=7',
    ],
    'any other operation as POST': [(api) => api.user.find({ name: 'x' }), 'POST /api/user/find {"name":"x"}'],
    'an operation with the method of its options': [
      (api) => api.user.find({ name: 'x' }, { method: 'GET' }),
      'GET /api/user/find?name=x',
    ],
    'an operation with a method in lower case': [
      async (api) => {
        await api.user.find({ name: 'x' }, { method: 'delete' });
        await api.user.find({ name: 'x' }, { method: 'patch' });
      },
      'DELETE /api/user/find?name=x, PATCH /api/user/find {"name":"x"}',
    ],
    slugs: [(api) => api.user.find(undefined, { slugs: ['a/b', 7] }), 'POST /api/user/find/a%2Fb/7'],
    'slugs of a verb operation': [(api) => api.user.index({}, { slugs: ['7'] }), 'GET /api/user/7'],
    'a method without a pattern to the bare group': [
      async (api) => {
        await api.user.PUT({ body: { name: 'x' }, query: { dry: true } });
        await api.user.GET({ query: { page: 2 } });
        await api.user.DELETE();
      },
      'PUT /api/user?dry=true {"name":"x"}, GET /api/user?page=2, DELETE /api/user',
    ],
    'a quoted route': [
      (api) => api.order['GET {id}/items/{item}']({ path: { id: 7, item: 'ä?' } }),
      'GET /api/order/7/items/%C3%A4%3F',
    ],
    'a quoted route with a query': [
      (api) => api.order['DELETE {id}']({ path: { id: 7 }, query: { force: true } }),
      'DELETE /api/order/7?force=true',
    ],
    'a quoted route with a body': [
      (api) => api.order['POST {id}/pay']({ path: { id: 7 }, body: { amount: 1 } }),
      'POST /api/order/7/pay {"amount":1}',
    ],
    'a named group with the name of a root group': [
      async (api) => {
        const groups = api as Record<string, Untyped['user']>;
        for (const name of ['Root', 'Tree_root', 'old_tree_root', 'v2/tree_root', 'tree_root'])
          await groups[name]?.index();
      },
      'GET /api/Root, GET /api/Tree_root, GET /api/old_tree_root, GET /api/v2/tree_root, GET /api/tree',
    ],
    'a route without captures': [(api) => api.order['GET export.csv'](), 'GET /api/order/export.csv'],
    'a capture of the remaining segments': [
      (api) => api.file['GET {path*}']({ path: { path: 'a b/c' } }),
      'GET /api/file/a%20b/c',
    ],
    'a capture of the remaining segments, given as a list': [
      (api) => api.file['GET {path*}']({ path: { path: ['a/b', 'c'] } }),
      'GET /api/file/a%2Fb/c',
    ],
  };
  for (const [name, [use, expected]] of Object.entries(rows)) {
    test(name, async () => assert.equal(await linesOf(use), expected));
  }

  for (const suffix of ['', '/', '/api', '/api/']) {
    test(`to the same URL when the base ends in ${suffix === '' ? 'nothing' : suffix}`, async () => {
      assert.equal(await linesOf((api) => api.user.index(), `${url}${suffix}`), 'GET /api/user');
    });
  }

  test('the query in a browser without URLSearchParams.size, such as Safari 16', async (t) => {
    const size = Object.getOwnPropertyDescriptor(URLSearchParams.prototype, 'size') as PropertyDescriptor;
    Reflect.deleteProperty(URLSearchParams.prototype, 'size');
    t.after(() => Object.defineProperty(URLSearchParams.prototype, 'size', size));
    assert.equal(await linesOf((api) => api.user.deleted({ id: 7 })), 'DELETE /api/user?id=7');
  });

  for (const value of ['..', '.', '', undefined, null, [], ['..']]) {
    test(`no request with ${JSON.stringify(value)} as a path segment`, async () => {
      await assert.rejects(client().order['GET {id}']({ path: { id: value } }), TypeError);
      await assert.rejects(client().file['GET {path*}']({ path: { path: value } }), TypeError);
      await assert.rejects(client().file['GET {path*}']({ path: { path: ['a', value] } }), TypeError);
      await assert.rejects(client().user.find({}, { slugs: [value] }), TypeError);
      assert.deepEqual(sent, []);
    });
  }

  test('no request with a segment that a URL would resolve, and says why', async () => {
    const message = `".." cannot be a segment of a path: give a value that is not '', '.' or '..'`;
    await assert.rejects(client().order['GET {id}']({ path: { id: '..' } }), new TypeError(message));
  });

  const asUrl = / cannot be sent in a URL or beside a file: give a text or a number$/;
  const asQuery = /^TypeError: This value cannot be sent as a query: give an object with a value for each key$/;
  const inside =
    /^TypeError: (?:cover|image) is a file inside of another value: give it as a field of the data itself$/;
  const lost: Record<string, readonly [use: (api: Untyped) => Promise<unknown>, message: RegExp]> = {
    'a list for one segment': [(api) => api.order['GET {id}']({ path: { id: ['7', 'pay'] } }), asUrl],
    'an object for one segment': [(api) => api.order['GET {id}']({ path: { id: { id: 7 } } }), asUrl],
    'an object in a query': [(api) => api.user.index({ filter: { name: 'Ada' } }), asUrl],
    'a list of lists in a query': [(api) => api.user.find({}, { query: { tag: [['a']] } }), asUrl],
    'a form as the query': [(api) => api.user.index(new FormData()), asQuery],
    'URLSearchParams as the query': [(api) => api.user.deleted(new URLSearchParams('id=7')), asQuery],
    'URLSearchParams beside a body': [
      (api) => api.user.created({}, { query: new URLSearchParams('dryRun=1') }),
      asQuery,
    ],
    'bytes as the query': [(api) => api.user.find(new Uint8Array(1), { method: 'HEAD' }), asQuery],
    'a text as the query': [(api) => api.user.index('ab'), asQuery],
    'a list as the query': [(api) => api.user.deleted([7]), asQuery],
    'an object beside a file': [(api) => api.book.created({ cover: new Blob(), author: { name: 'Ada' } }), asUrl],
    'a file within an object': [(api) => api.book.created({ pages: { cover: new Blob() } }), inside],
    'a file within objects of a list': [(api) => api.book.created({ pages: [{ image: new Blob() }] }), inside],
  };
  for (const [name, [use, message]] of Object.entries(lost)) {
    test(`no request that would lose ${name}`, async () => {
      await assert.rejects(use(client()), (error) => error instanceof TypeError && message.test(String(error)));
      assert.deepEqual(sent, []);
    });
  }

  test('no stream in a browser that would send it as a text, such as Firefox', async (t) => {
    const duplex = Object.getOwnPropertyDescriptor(Request.prototype, 'duplex') as PropertyDescriptor;
    Reflect.deleteProperty(Request.prototype, 'duplex');
    t.after(() => Object.defineProperty(Request.prototype, 'duplex', duplex));
    const call = client().book['PUT {id}/cover']({ path: { id: 7 }, body: new Blob(['PNG']).stream() });
    await assert.rejects(call, new TypeError('This browser cannot send a stream: give a File or a Blob'));
    assert.deepEqual(sent, []);
  });

  test('JSON in React Native, which has no ReadableStream', async (t) => {
    const { ReadableStream } = globalThis;
    t.after(() => Object.assign(globalThis, { ReadableStream }));
    Reflect.deleteProperty(globalThis, 'ReadableStream');
    let body: unknown;
    const fetch = async (_: unknown, init?: RequestInit) => {
      body = init?.body;
      return { ok: true, headers: new Headers(), blob: async () => ({ size: 0 }) } as Response;
    };
    await client(json({}), { fetch }).book.created({ title: 'Tea' });
    assert.equal(body, '{"title":"Tea"}');
  });

  test('a form with its boundary, even with another Content-Type in the headers of the client', async () => {
    const headers = { 'Content-Type': 'application/json' };
    const form = new FormData();
    form.set('title', 'Tea');
    const api = client(json({}), { headers });
    await api.book.created(form);
    await api.book.created({ title: 'Tea', cover: new Blob(['PNG']) });
    for (const { headers, body } of sent) {
      const boundary = /^multipart\/form-data; boundary=(.+)$/.exec(String(headers['content-type']))?.[1];
      assert.ok(boundary !== undefined && body.includes(`--${boundary}`));
    }
    assert.equal(sent.length, 2);
  });

  test('past the cache of the browser: with it, a second tab of Firefox waits for the end of the same stream', async () => {
    const caches: unknown[] = [];
    const spy: typeof fetch = (input, init) => {
      caches.push((init as { cache?: string }).cache);
      return fetch(input, init);
    };
    await client(json({}), { fetch: spy }).user.index();
    assert.deepEqual(caches, ['no-store']);
  });

  test('the headers of the client and of the call, and a fixed or computed Authorization', async () => {
    let asked = 0;
    const api = client(json({}), {
      headers: { 'X-App': 'a', 'X-Call': 'a' },
      authorization: async () => `Bearer ${++asked}`,
    });
    await api.user.index({}, { headers: { 'X-Call': 'b' } });
    await api.user.index();
    assert.deepEqual(
      sent.map(({ headers }) => [headers['x-app'], headers['x-call'], headers.authorization]),
      [
        ['a', 'b', 'Bearer 1'],
        ['a', 'a', 'Bearer 2'],
      ],
    );
    await client(json({}), { authorization: 'Bearer x' }).user.index();
    assert.equal(sent[0]?.headers.authorization, 'Bearer x');
  });

  test('an object with files as a form, and bytes as they are', async () => {
    const cover = new File(['PNG'], 'cover.png', { type: 'image/png' });
    const api = client();
    await api.book.created({ title: 'Tea', pages: [cover, cover], year: 1900, none: undefined });
    const form = await new Response(sent[0]?.body as Buffer<ArrayBuffer>, {
      headers: { 'Content-Type': String(sent[0]?.headers['content-type']) },
    }).formData();
    assert.deepEqual(
      [form.get('title'), form.get('year'), form.getAll('pages').length, form.has('none')],
      ['Tea', '1900', 2, false],
    );
    assert.equal((form.get('pages') as File).name, 'cover.png');
    await api.book['PUT {id}/cover']({ path: { id: 1 }, body: cover });
    await api.book['PUT {id}/cover']({ path: { id: 1 }, body: new Uint8Array([1, 2]) });
    await api.book['PUT {id}/cover']({ path: { id: 1 }, body: new Blob(['stream']).stream() });
    await api.book['PUT {id}/cover']({
      path: { id: 1 },
      body: new Uint8Array([3]),
      headers: { 'content-type': 'image/gif' },
    });
    assert.deepEqual(
      sent.slice(1).map(({ headers, body }) => [headers['content-type'], body.toString('latin1')]),
      [
        ['image/png', 'PNG'],
        ['application/octet-stream', '\u0001\u0002'],
        ['application/octet-stream', 'stream'],
        ['image/gif', '\u0003'],
      ],
    );
  });
});

describe('createClient returns', () => {
  test('JSON as a value, of any JSON type', async () => {
    assert.deepEqual(await client(json({ a: [1] })).user.index(), { a: [1] });
    assert.deepEqual(
      await client((response) =>
        response.writeHead(201, { 'Content-Type': 'application/hal+json' }).end('[1]'),
      ).user.index(),
      [1],
    );
  });
  test('undefined for 204', async () =>
    assert.equal(await client((response) => response.writeHead(204).end()).user.deleted(), undefined));
  test('bytes as a Blob', async () => {
    const blob = await client((response) =>
      response.writeHead(200, { 'Content-Type': 'image/png' }).end('PNG'),
    ).user.index();
    assert.ok(blob instanceof Blob);
    assert.deepEqual([blob.type, await blob.text()], ['image/png', 'PNG']);
  });
  test('the response with its headers, and its body as a stream', async () => {
    const api = client((response) =>
      response.writeHead(201, { 'Content-Type': 'application/json', ETag: '"1"' }).end('{"a":1}'),
    );
    const call = api.user.created({}) as Call<unknown>;
    assert.equal((await call.response).headers.get('etag'), '"1"');
    assert.deepEqual(await call, { a: 1 });
    assert.deepEqual(await call.finally(() => {}), { a: 1 });
    const { body } = (await api.user.index().response) as Response;
    assert.equal(await new Response(body).text(), '{"a":1}');
    assert.equal(sent.length, 2);
  });
  test('the same function for an operation each time, and groups that are no promises', async () => {
    const api = client();
    assert.equal(api.user.index, api.user.index);
    assert.equal(await api, api);
    assert.equal(await api.user, api.user);
  });
});

describe('a failed call is rejected with', () => {
  const envelope = {
    status: 'error',
    error_code: 'INVALID_DATA',
    message: '1 field is wrong',
    timestamp: 1,
    request_id: 'r-1',
    errors: [{ in: 'body', pointer: '/items/0/price', message: 'must be a number' }],
  };
  test('an ApiError with the fields of the envelope', async () => {
    const error = await refusal(client(json(envelope, 422)).user.created({}));
    assert.ok(error instanceof ApiError && error instanceof Error);
    const { name, status, code, message, errors, requestId, response } = error;
    assert.deepEqual(
      [name, status, code, message, requestId],
      ['ApiError', 422, 'INVALID_DATA', '1 field is wrong', 'r-1'],
    );
    assert.deepEqual(errors, envelope.errors);
    assert.equal(response?.status, 422);
  });
  test('HTTP_502 for a 502 without an envelope', async () => {
    const { code, errors } = await refusal(
      client((response) => response.writeHead(502).end('<h1>Bad Gateway</h1>')).user.index(),
    );
    assert.deepEqual([code, errors], ['HTTP_502', []]);
  });
  test('HTTP 502 as the message, when the status has no text', async () => {
    const withoutText = (response: ServerResponse) => response.socket?.end('HTTP/1.1 502\r\nContent-Length: 0\r\n\r\n');
    assert.equal((await refusal(client(withoutText).user.index())).message, 'HTTP 502');
  });
  test('the received body of a service with its own error format', async () => {
    const mine = { errors: { body: ['is taken'] }, message: 'theirs' };
    const error = await refusal(
      client((response) => {
        response.setHeader('X-Request-Id', 'r-2');
        json(mine, 422)(response);
      }).user.created({}),
    );
    const { status, code, message, errors, requestId, body } = error;
    assert.deepEqual([status, code, message, errors, requestId], [422, 'HTTP_422', 'Unprocessable Entity', [], 'r-2']);
    assert.deepEqual(body, mine);
    assert.ok(isApiError<typeof mine>(error) && error.body.errors.body[0] === 'is taken');
    assert.equal(isApiError(new Error('another')), false);
  });
  test('the received body: an envelope, a text, other JSON, or undefined', async () => {
    assert.deepEqual((await refusal(client(json(envelope, 422)).user.created({}))).body, envelope);
    const page = client((response) => response.writeHead(502).end('<h1>Bad Gateway</h1>'));
    assert.equal((await refusal(page.user.index())).body, '<h1>Bad Gateway</h1>');
    const gone = client((response) => response.destroy());
    assert.equal((await refusal(gone.user.index())).body, undefined);
    for (const odd of ['null', '7', '"text"', '[]', '{"error_code":7}']) {
      const error = await refusal(client((response) => response.writeHead(400).end(odd)).user.index());
      assert.deepEqual([error.code, error.errors, error.body], ['HTTP_400', [], JSON.parse(odd)]);
    }
  });
  test('NETWORK_ERROR when the answer is missing or incomplete', async () => {
    const first = await refusal(client((response) => response.destroy()).user.index());
    assert.deepEqual(
      [first.status, first.code, first.message],
      [0, 'NETWORK_ERROR', 'No complete answer came from the service'],
    );
    const half = client((response) => {
      response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': '100' }).write('{');
      setImmediate(() => response.destroy());
    });
    assert.equal((await refusal(half.user.index())).code, 'NETWORK_ERROR');
  });
  test('the error by which Next.js ends the making of a page at its build', async () => {
    const dynamic = Object.assign(new Error('Dynamic server usage'), { digest: 'DYNAMIC_SERVER_USAGE' });
    const api = client(() => {}, { fetch: () => Promise.reject(dynamic) });
    await assert.rejects(async () => api.user.index(), dynamic);
  });
  test('TIMEOUT after the time-out of the client or of the call, before and during the body', async () => {
    const { status, code, message } = await refusal(client(() => {}, { timeout: 20 }).user.index());
    assert.deepEqual([status, code, message], [0, 'TIMEOUT', 'No answer within 20 ms']);
    assert.equal(
      (await refusal(client(() => {}, { timeout: 60_000 }).user.index({}, { timeout: 20 }))).code,
      'TIMEOUT',
    );
    const slow = client((response) => response.writeHead(200, { 'Content-Type': 'application/json' }).write('{'), {
      timeout: 50,
    });
    assert.equal((await refusal(slow.user.index())).code, 'TIMEOUT');
  });
  for (const timeout of [Infinity, 2 ** 31])
    test(`no TIMEOUT with a time-out of ${timeout} ms`, async () => {
      const later: typeof reply = (response) => void setTimeout(() => json({})(response), 20);
      assert.deepEqual(await client(later, { timeout }).user.index(), {});
    });
  test('the reason of an aborted signal: before the call, while waiting, and while reading', async () => {
    const reason = new Error('gone');
    await assert.rejects(client().user.index({}, { signal: AbortSignal.abort(reason) }), reason);
    assert.deepEqual(sent, []);
    const waiting = new AbortController();
    const asking = client(json({}), { authorization: () => new Promise<string>(() => {}) });
    const unsent = asking.user.index({}, { signal: waiting.signal });
    waiting.abort(reason);
    await assert.rejects(unsent, reason);
    const abort = new AbortController();
    await assert.rejects(client(() => abort.abort(reason)).user.index({}, { signal: abort.signal }), reason);
    const reading = new AbortController();
    const call = client((response) =>
      response.writeHead(200, { 'Content-Type': 'application/json' }).write('{'),
    ).user.index({}, { signal: reading.signal }) as Call<unknown>;
    await call.response;
    setImmediate(() => reading.abort(reason));
    await assert.rejects(call, reason);
  });

  test('no listener left on the signal of the caller, after any outcome', async () => {
    const { signal } = new AbortController();
    const text = (response: ServerResponse) =>
      response.writeHead(200, { 'Content-Type': 'text/event-stream' }).end('data: 1\n\n: end\n\n');
    for (let i = 0; i < 10; i++) {
      await client().user.index({}, { signal });
      await client((response) => response.writeHead(204).end()).user.deleted({}, { signal });
      await refusal(client(json(envelope, 422)).user.created({}, { signal }));
      await refusal(client((response) => response.destroy()).user.index({}, { signal }));
      await refusal(client(() => {}, { timeout: 5 }).user.index({}, { signal }));
      await assert.rejects(async () => client().book['GET {id}']({ path: { id: '..' }, signal }), TypeError);
      for await (const _ of (await client(text).feed.index({}, { signal })) as AsyncIterable<ServerEvent>);
    }
    assert.equal(getEventListeners(signal, 'abort').length, 0);
  });

  async function refusal(call: Call<unknown> | undefined): Promise<ApiError> {
    try {
      await call;
    } catch (error) {
      return error as ApiError;
    }
    throw new Error('it was not refused');
  }
});

describe('a redirect', () => {
  let foreign: Server;
  let foreignUrl: string;
  let reached: string[];
  before(async () => {
    foreign = createServer(({ method, headers }, response) => {
      const keys = ['x-api-key', 'authorization', 'last-event-id'].filter((name) => headers[name] !== undefined);
      reached.push([method, ...keys].join(' '));
      json({ from: 'foreign' })(response);
    });
    await new Promise<void>((listening) => foreign.listen(0, '127.0.0.1', listening));
    foreignUrl = `http://127.0.0.1:${(foreign.address() as AddressInfo).port}`;
  });
  after(() => {
    foreign.closeAllConnections();
    foreign.close();
  });

  /** Answers the first requests with redirects to these targets, and each later request with `{}`. */
  function redirecting(status: number, ...targets: string[]): typeof reply {
    reached = [];
    return (response) => {
      const location = targets.shift();
      if (location === undefined) json({ from: 'service' })(response);
      else response.writeHead(status, { Location: location }).end('moved');
    };
  }
  const OWN: ClientOptions = { headers: { 'X-Api-Key': 'secret' }, authorization: 'Bearer x' };
  type Use = (api: Untyped) => Promise<unknown>;
  const get: Use = (api) => api.user.index();
  const post: Use = (api) => api.user.created({ name: 'Ada' });

  for (const status of [301, 302, 303, 307, 308])
    for (const [verb, use] of [
      ['GET', get],
      ['POST', post],
    ] as const) {
      test(`${status} of a ${verb} is refused when the client has headers, and is followed otherwise`, async () => {
        for (const target of [`${foreignUrl}/stolen`, '/a']) {
          const error = await use(client(redirecting(status, target), OWN)).catch((thrown: unknown) => thrown);
          assert.ok(error instanceof ApiError);
          assert.deepEqual([error.status, error.code], [status, 'REDIRECT_REFUSED']);
          assert.match(error.message, /send a key by authorization/);
          assert.equal(error.response?.headers.get('location'), target);
        }
        assert.deepEqual(reached, []);
        const api = client(redirecting(status, '/a', './b?c'), { authorization: 'Bearer x' });
        assert.deepEqual(await use(api), { from: 'service' });
        assert.equal(sent.length, 3);
      });
    }

  test('is refused by the headers of a call alone', async () => {
    const headers = { 'X-Api-Key': 'secret' };
    const call = client(redirecting(302, `${foreignUrl}/stolen`)).user.index({}, { headers });
    await assert.rejects(call, { code: 'REDIRECT_REFUSED' });
    assert.deepEqual(reached, []);
  });

  test('without headers is followed to another origin, without the Authorization', async () => {
    const api = client(redirecting(302, foreignUrl), { authorization: 'Bearer x' });
    assert.deepEqual([await api.user.index(), reached], [{ from: 'foreign' }, ['GET']]);
  });

  test('is no redirect without a Location, and with another status', async () => {
    const bare = client((response) => response.writeHead(302).end(), OWN);
    await assert.rejects(bare.user.index(), { code: 'HTTP_302' });
    await assert.rejects(client(redirecting(304, '/a'), OWN).user.index(), { code: 'HTTP_304' });
  });

  test('that a browser hides is refused', async () => {
    const hidden = { type: 'opaqueredirect', status: 0, ok: false, headers: new Headers() };
    const modes: unknown[] = [];
    const sendRequest = async (_: unknown, { redirect }: RequestInit = {}) => {
      modes.push(redirect);
      return { ...hidden, text: async () => '' } as Response;
    };
    const api = client(json({}), { ...OWN, fetch: sendRequest as typeof fetch });
    await assert.rejects(api.user.index(), { status: 0, code: 'REDIRECT_REFUSED' });
    assert.deepEqual(modes, ['manual']);
  });

  test('ends a stream of events that is requested again', async () => {
    let requests = 0;
    const api = client(
      (response) =>
        requests++ === 0
          ? response.writeHead(200, { 'Content-Type': 'text/event-stream' }).end('retry: 0\ndata: 1\n\n')
          : response.writeHead(302, { Location: foreignUrl }).end(),
      OWN,
    );
    reached = [];
    await assert.rejects(
      async () => {
        for await (const _ of (await api.feed.index()) as AsyncIterable<ServerEvent>);
      },
      { code: 'REDIRECT_REFUSED' },
    );
    assert.deepEqual([requests, reached], [2, []]);
  });
});

describe('a stream of events', () => {
  const stream = (response: ServerResponse, text: string) =>
    response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(text);
  const events = (api: Untyped, name: 'index' | 'watch' = 'index', options?: CallOptions) =>
    api.feed[name](undefined, options) as Call<AsyncIterable<ServerEvent>>;

  test('yields names, ids and values, however the bytes are split', async () => {
    const text =
      ': hello\n\nevent: paid\nid: 1\ndata: {"total":\r\ndata: 7}\n\nretry: 5\r\ndata:"ä\u2028"\r\n\r\nid: 2\rdata: no JSON\r\rdata\n\nevent: none\n\n: end\n\n';
    for (const size of [1, 3, 1000]) {
      const bytes = Buffer.from(text);
      const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
        bytes.subarray(i * size, (i + 1) * size),
      );
      let reads = 0;
      const split = new ReadableStream({
        pull(controller) {
          reads++;
          const piece = pieces.shift();
          return piece === undefined ? controller.close() : controller.enqueue(new Uint8Array(piece));
        },
      });
      const answer = new Response(split, { headers: { 'Content-Type': 'text/event-stream' } });
      const got: unknown[] = [];
      for await (const event of await events(client(json({}), { fetch: async () => answer }))) got.push(event);
      assert.deepEqual(got, [
        { event: 'paid', id: '1', data: { total: 7 } },
        { event: 'message', id: '1', data: 'ä\u2028' },
        { event: 'message', id: '2', data: 'no JSON' },
        { event: 'message', id: '2', data: '' },
      ]);
      assert.equal(reads, Math.ceil(bytes.length / size) + 1);
    }
  });

  test('yields the last event when the stream ends with a carriage return', async () => {
    const answer = new Response('data: 1\r\r', { headers: { 'Content-Type': 'text/event-stream' } });
    const got: unknown[] = [];
    const answers = [answer];
    const fetchOnce = async () => answers.shift() ?? new Response(null, { status: 204 });
    for await (const { data } of await events(client(json({}), { fetch: fetchOnce }))) got.push(data);
    assert.deepEqual(got, [1]);
  });

  test('is requested again with the id of the last whole event until the service ends it', async () => {
    const answers = ['retry: 1\nid: 7→é\ndata: 1\n\nid: 8\ndata: half', undefined, 502, 'id: 9\ndata: 2\n\n: end\n\n'];
    const api = client((response) => {
      const answer = answers.shift();
      if (answer === undefined) response.destroy();
      else if (typeof answer === 'number') response.writeHead(answer).end();
      else stream(response, answer) && response.end();
    });
    const got: unknown[] = [];
    for await (const { id, data } of await events(api)) got.push([id, data]);
    assert.deepEqual(got, [
      ['7→é', 1],
      ['9', 2],
    ]);
    assert.deepEqual(
      sent.map(({ headers }) => Buffer.from(String(headers['last-event-id']), 'latin1').toString()),
      ['undefined', '7→é', '7→é', '7→é'],
    );
  });

  test('is not requested again after a POST', async () => {
    const api = client((response) => stream(response, 'data: 1\n\n') && response.end());
    const got: unknown[] = [];
    for await (const { data } of await events(api, 'watch')) got.push(data);
    assert.deepEqual([got, sent.length], [[1], 1]);
    const broken = client((response) => stream(response, 'data: 1\n\n') && setImmediate(() => response.destroy()));
    await assert.rejects(async () => {
      for await (const _ of await events(broken, 'watch'));
    }, /broke off/);
  });

  const retries: readonly (readonly [lines: string, delay: number])[] = [
    ['retry: 700\nretry: soon\nretry:\nretry: -1\nretry: 1e9', 700],
    ['retry: 0', 100],
    ['retry: 99', 100],
    ['retry: 101', 101],
    ['retry: 600001', 600_000],
    ['retry: 99999999999999999999', 600_000],
    [`retry: ${'9'.repeat(400)}`, 600_000],
  ];
  for (const [lines, delay] of retries) {
    test(`is requested again after ${delay} ms with ${lines.slice(0, 40).replaceAll('\n', ', ')}`, async (t) => {
      const delays: unknown[] = [];
      const { setTimeout } = globalThis;
      t.mock.method(globalThis, 'setTimeout', (done: () => void, ms: number, ...given: []) => {
        delays.push(ms);
        return setTimeout(done, 0, ...given);
      });
      const resume = async () => new Response('data: 2\n\n: end\n\n');
      const got: unknown[] = [];
      for await (const { data } of readEvents(new Response(`${lines}\ndata: 1\n\n`), resume, new AbortController()))
        got.push(data);
      assert.deepEqual({ got, delays }, { got: [1, 2], delays: [delay] });
    });
  }

  test('leaves no listener on the signal, however often it is requested again', async (t) => {
    const abort = new AbortController();
    const body = (text: string) => new Response(text);
    let requests = 0;
    const { setTimeout } = globalThis;
    t.mock.method(globalThis, 'setTimeout', (done: () => void, _: number, ...given: []) =>
      setTimeout(done, 0, ...given),
    );
    const resume = async () => body(++requests < 20 ? 'retry: 0\ndata: 1\n\n' : 'data: 1\n\n: end\n\n');
    const counts: number[] = [];
    for await (const _ of readEvents(body('retry: 0\ndata: 1\n\n'), resume, abort))
      counts.push(getEventListeners(abort.signal, 'abort').length);
    assert.deepEqual([requests, ...new Set(counts)], [20, 0]);
  });

  for (const status of [401, 500, 501]) {
    test(`rejects when the service answers a repeated request with ${status}`, async () => {
      const answers = [200, status];
      const api = client((response) => {
        const answer = answers.shift();
        if (answer === 200) stream(response, 'retry: 1\ndata: 1\n\n') && response.end();
        // An unexpected further request gets the answer that ends the stream, so that the test ends.
        else if (answer === undefined) response.writeHead(204).end();
        else json({ error_code: `REFUSED_${status}` }, answer)(response);
      });
      await assert.rejects(
        async () => {
          for await (const _ of await events(api));
        },
        { code: `REFUSED_${status}` },
      );
      assert.equal(sent.length, 2);
    });
  }

  test('ends at 204, as EventSource does', async () => {
    let asked = 0;
    const api = client((response) =>
      asked++ === 0 ? stream(response, 'retry: 1\n\n') && response.end() : response.writeHead(204).end(),
    );
    for await (const _ of await events(api));
    assert.equal(sent.length, 2);
  });

  test('closes the connection when its reader stops, and when its signal is aborted', async () => {
    const connections: Promise<unknown>[] = [];
    const api = client((response) => {
      connections.push(once(response, 'close'));
      stream(response, 'data: 1\n\n');
    });
    for await (const _ of await events(api)) break;
    const abort = new AbortController();
    const reason = new Error('enough');
    await assert.rejects(async () => {
      for await (const _ of await events(api, 'index', { signal: abort.signal })) abort.abort(reason);
    }, reason);
    assert.equal((await Promise.all(connections)).length, 2);
  });

  // The timers stay real. `fetch` keeps timers of its connections, which a mocked `clearTimeout` would not end: such a
  // timer of Node 20 throws when its connection is gone.
  test('has no time-out after its head', async (t) => {
    let answer: ServerResponse | undefined;
    const api = client((response) => {
      answer = response;
      stream(response, 'data: 1\n\n');
    });
    const limit = 54_321;
    const begun: unknown[] = [];
    const open = new Set<unknown>();
    const { setTimeout, clearTimeout } = globalThis;
    t.mock.method(globalThis, 'setTimeout', (done: () => void, ms: number, ...given: []) => {
      const timer = setTimeout(done, ms, ...given);
      if (ms === limit) open.add(timer) && begun.push(timer);
      return timer;
    });
    t.mock.method(globalThis, 'clearTimeout', (timer: NodeJS.Timeout) => {
      open.delete(timer);
      clearTimeout(timer);
    });
    const got: unknown[] = [];
    for await (const { data } of await events(api, 'index', { timeout: limit })) {
      got.push([data, begun.length, open.size]);
      if (data === 1) answer?.end('data: 2\n\n: end\n\n');
    }
    assert.deepEqual(got, [
      [1, 1, 0],
      [2, 1, 0],
    ]);
  });
});

test('the client has 3.4 KB, minified and compressed', () => {
  const { outputFiles } = buildSync({
    entryPoints: ['src/api/client.ts'],
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2022',
    write: false,
  });
  const bytes = gzipSync(outputFiles[0]?.contents ?? '', { level: 9 }).length;
  assert.ok(bytes < 3450, `${bytes} bytes`);
});
