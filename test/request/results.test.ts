// Tests what an operation may return and throw, over a socket.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { moduleUrl } from '../support/own-modules.ts';
import { asRaw, assertEnvelope, type Service, startService } from '../support/service.ts';

const ERRORS = moduleUrl('src/base/errors');

let service: Service;
before(async () => {
  const controllers = {
    'ResultController.mjs': `
      import { HttpError } from ${JSON.stringify(ERRORS)};
      const foreign = Object.assign(new Error('secret of the database'), { status: 418, statusCode: 418, expose: true });
      const forged = Object.assign(Object.create(HttpError.prototype), { status: 99, code: 1 });
      const cycle = {}; cycle.self = cycle;
      export default class {
        object() { return { a: 1 } } array() { return [1] } text() { return 'x' } number() { return 0 } no() { return false } empty() { return '' }
        yes() { return true } nothing() {} nil() { return null } date() { return new Date(0) }
        later() { return Promise.resolve({ later: true }) } async laterNothing() {} thenable() { return { then: (done) => done({ thenable: true }) } }
        cycle() { return cycle } bigint() { return 1n } big() { return { a: 1n } } fn() { return () => 1 } symbol() { return Symbol('x') }
        badJson() { return { toJSON() { throw new Error('toJSON') } } } noJson() { return { toJSON() {} } }
        thrower() { throw foreign } throwString() { throw 'text' } throwNull() { throw null } async rejecter() { throw foreign } rejectNothing() { return Promise.reject() }
        refuse() { throw new HttpError(422, 'NAME_TAKEN', 'There is one of this name', { headers: { 'Retry-After': '5', 'Content-Type': 'text/html', 'x y': '1', 'X-Bad': 'a\\nb' } }) }
        async refuseLater() { throw new HttpError(404, 'USER_NOT_FOUND', 'There is no such user') }
        badStatus() { throw new HttpError(200, 'X', 'x') } badCode() { throw new HttpError(400, 'x', 'x') } badMessage() { throw new HttpError(400, 'X', 1) }
        forge() { throw forged }
        none() { return { count: arguments.length } } one(data) { return { data } } defaults(data = 1, params = 2) { return { params } } rest(...all) { return { count: all.length, page: all[1].page } }
        self() { return { own: this instanceof Object && this.constructor.prototype.self === this.self } }
        spread(data, params) { return { ...params } }
        keys(data, params) { return { keys: Object.keys(params), request: params.request.method, accept: params.request.headers['x-probe'], signal: params.signal.aborted, slugs: params.slugs } }
        shift(data, params) { params.slugs.shift(); params.query.x = 1; return params.slugs }
      }`,
  };
  service = await startService({ controllers, expectedErrors: ['request-failed'] });
});
after(() => service.close());

const call = (method: string, init?: RequestInit) => fetch(`${service.url}/api/result/${method}`, init);

describe('results', () => {
  const rows: [method: string, body: unknown][] = [
    ['object', { a: 1 }],
    ['array', [1]],
    ['text', { data: 'x' }],
    ['number', { data: 0 }],
    ['no', { data: false }],
    ['empty', { data: '' }],
    ['date', '1970-01-01T00:00:00.000Z'],
    ['later', { later: true }],
    ['thenable', { thenable: true }],
    ['none', { count: 2 }],
    ['one', { data: {} }],
    [
      'defaults',
      {
        params: { page: 'result', method: 'defaults', verb: 'GET', slugs: ['defaults'], query: {}, requestId: 'probe' },
      },
    ],
    ['rest', { count: 2, page: 'result' }],
    ['self', { own: true }],
    ['spread', { page: 'result', method: 'spread', verb: 'GET', slugs: ['spread'], query: {}, requestId: 'probe' }],
    [
      'keys',
      {
        keys: ['page', 'method', 'verb', 'slugs', 'query', 'requestId'],
        request: 'GET',
        accept: 'yes',
        signal: false,
        slugs: ['keys'],
      },
    ],
    ['shift', []],
  ];
  for (const [method, body] of rows) {
    test(method, async () => {
      const answer = await call(method, { headers: { 'x-request-id': 'probe', 'X-Probe': 'yes' } });
      assert.deepEqual(await answer.json(), body);
      assert.equal(answer.status, 200);
    });
  }
  for (const method of ['yes', 'nothing', 'nil', 'laterNothing']) {
    test(`${method} is a plain success`, async () => {
      const body = (await (await call(method)).json()) as Record<string, unknown>;
      assert.deepEqual([Object.keys(body), body.status], [['status', 'message', 'timestamp'], 'success']);
    });
  }
  test('an operation that changes its params does not affect the next request', async () => {
    for (let i = 0; i < 2; i++) assert.deepEqual(await (await call('shift/a')).json(), ['a']);
  });
});

describe('failures', () => {
  const rows: [method: string, status: number, code: string][] = [
    ['cycle', 500, 'UNENCODABLE_RESULT'],
    ['bigint', 500, 'UNENCODABLE_RESULT'],
    ['big', 500, 'UNENCODABLE_RESULT'],
    ['fn', 500, 'UNENCODABLE_RESULT'],
    ['symbol', 500, 'UNENCODABLE_RESULT'],
    ['badJson', 500, 'UNENCODABLE_RESULT'],
    ['noJson', 500, 'UNENCODABLE_RESULT'],
    ['thrower', 500, 'INTERNAL_ERROR'],
    ['throwString', 500, 'INTERNAL_ERROR'],
    ['throwNull', 500, 'INTERNAL_ERROR'],
    ['rejecter', 500, 'INTERNAL_ERROR'],
    ['rejectNothing', 500, 'INTERNAL_ERROR'],
    ['badStatus', 500, 'INTERNAL_ERROR'],
    ['badCode', 500, 'INTERNAL_ERROR'],
    ['badMessage', 500, 'INTERNAL_ERROR'],
    ['forge', 500, 'INTERNAL_ERROR'],
    ['refuse', 422, 'NAME_TAKEN'],
    ['refuseLater', 404, 'USER_NOT_FOUND'],
  ];
  for (const [method, status, code] of rows) {
    test(`${method} → ${status} ${code}`, async () => {
      const answer = await asRaw(await call(method));
      assertEnvelope(answer, status, code);
      assert.doesNotMatch(answer.body, /database/);
      const id = answer.headers.get('x-request-id');
      const isLogged = service.lines.some(({ event, request_id }) => event === 'request-failed' && request_id === id);
      assert.equal(isLogged, status === 500);
    });
  }

  test('the cause of a 500 is logged with the request id', async () => {
    await call('thrower', { headers: { 'x-request-id': 'find-me' } });
    const line = service.lines.find(({ request_id, event }) => request_id === 'find-me' && event === 'request-failed');
    assert.equal(line?.error, 'secret of the database');
    assert.match(String(line?.stack), /ResultController\.mjs/);
  });

  test('headers of an HttpError are sent, except invalid headers and headers of the server', async () => {
    const answer = await call('refuse');
    assert.equal(answer.headers.get('retry-after'), '5');
    assert.equal(answer.headers.get('content-type'), 'application/json; charset=UTF-8');
    assert.equal(answer.headers.get('x-bad'), null);
  });

  describe('a value that JSON has not, or would encode as {}, is refused with 500, and its place in the result is logged', () => {
    const rows: [code: string, pointer: string, instead: RegExp][] = [
      ['{ a: [{ "b/~": new Map([[1, 2]]) }] }', '/a/0/b~1~0', /an object of class Map.*: return Object\.fromEntries/],
      ['{ tags: new Set(["x"]) }', '/tags', /return \[\.\.\.set\]$/],
      ['{ user: Promise.resolve(1) }', '/user', /await it$/],
      ['{ failed: new Error("x") }', '/failed', /an object of class Error.*: return its message$/],
      ['{ failed: new TypeError("x", { cause: 1 }) }', '/failed', /class TypeError/],
      ['[1, new WeakMap()]', '/1', /class WeakMap/],
      ['{ all: (function* () { yield 1 })() }', '/all', /return an array/],
      ['{ all: (async function* () { yield 1 })() }', '/all', /eventStream/],
      ['{ all: new Map().entries() }', '/all', /return an array/],
      ['{ at: new URLSearchParams("a=1") }', '/at', /class URLSearchParams/],
      ['{ at: /x/ }', '/at', /class RegExp/],
      ['{ bytes: new ArrayBuffer(1) }', '/bytes', /Uint8Array/],
      ['{ bytes: new DataView(new ArrayBuffer(1)) }', '/bytes', /class DataView/],
      ['{ file: new Blob(["x"]) }', '/file', /class Blob/],
      ['{ own: new (class Own { #a = 1; get a() { return 1 } })() }', '/own', /class Own/],
      ['{ a: { toJSON() { return { b: new Set() } } } }', '/a/b', /class Set/],
      ['new (class { list = [{}, { map: new Map() }] })()', '/list/1/map', /class Map/],
      ['{ empty: {}, list: [, [{ map: new Map() }]] }', '/list/1/0/map', /class Map/],
      ['{ number: Object(1), when: new Date(0), list: [[new Map()]] }', '/list/0/0', /class Map/],
      ['{ bytes: new Uint8Array(0), empty: [], fn: { f() {} }, own: { map: new Map() } }', '/own/map', /class Map/],
      ['{ a: { self: {}, toJSON() { return { b: {}, c: [new Set()] } } } }', '/a/c/0', /class Set/],
      ['{ a: new (class { set = new Set(); toJSON() { return this } })() }', '/a/set', /class Set/],
      ['{ a: ((empty) => [empty, empty])({}), b: { c: { d: new Map() } } }', '/b/c/d', /class Map/],
      ['{ a: Object.assign([1], { unsent: {} }), b: { c: { d: new Map() } } }', '/b/c/d', /class Map/],
      [
        '{ empty: { __proto__: null }, deep: [1, 2].reduce((value) => ({ value }), new Map()) }',
        '/deep/value/value',
        /Map/,
      ],
      ['new Reply(201, { tags: new Set() })', '/tags', /class Set/],
      ['Promise.resolve({ tags: new Set() })', '/tags', /class Set/],
      ['{ a: [{ "b/~": 1n }], c: 2n }', '/a/0/b~1~0', /a BigInt at .*: return String\(value\) or Number\(value\)$/],
      ['{ a: { n: 1n }, toJSON() { return { b: [0, this.a] } } }', '/b/1/n', /a BigInt/],
      ['Array.from({ length: 100_000 }, (_, i) => i === 99_999 ? new Map() : i)', '/99999', /class Map/],
    ];
    const plain: [code: string, body: unknown][] = [
      [
        '{ a: {}, b: [{}], text: "{}", none: null, nothing: undefined, bare: Object.create(null) }',
        { a: {}, b: [{}], text: '{}', none: null, bare: {} },
      ],
      [
        '{ fn() {}, symbol: Symbol("x"), list: [() => {}], at: new Date(0), e: {} }',
        { list: [null], at: '1970-01-01T00:00:00.000Z', e: {} },
      ],
      [
        '{ own: new (class { a = 1; e = {} })(), unset: new (class { a = undefined })() }',
        { own: { a: 1, e: {} }, unset: {} },
      ],
      [
        '{ bytes: new Uint8Array(0), list: new Float64Array(1), text: Object("x"), number: Object(1), e: {} }',
        { bytes: {}, list: { 0: 0 }, text: 'x', number: 1, e: {} },
      ],
      [
        '{ a: { toJSON() { return {} }, map: new Map() }, b: Object.assign(new Map(), { toJSON: () => [1] }) }',
        { a: {}, b: [1] },
      ],
      ['{ failed: Object.assign(new Error("x"), { code: "X" }), e: {} }', { failed: { code: 'X' }, e: {} }],
      [
        '{ e: {}, get once() { if (globalThis.onceOfResultsTest) throw 1; globalThis.onceOfResultsTest = true; return 1 } }',
        { e: {}, once: 1 },
      ],
    ];
    for (const mode of ['production', 'development']) {
      test(mode, async (t) => {
        delete (globalThis as { onceOfResultsTest?: true }).onceOfResultsTest;
        const members = [...rows, ...plain].map(([code], i) => `row${i}() { return ${code} }`).join('\n');
        const REPLY = moduleUrl('src/api/controller/reply');
        const controllers = {
          'XController.mjs': `import { Reply } from ${JSON.stringify(REPLY)}; export default class { ${members} }`,
        };
        const other = await startService({
          controllers,
          settings: { NODE_ENV: mode },
          expectedErrors: ['request-failed'],
        });
        t.after(other.close);
        for (const [i, [code, pointer, instead]] of rows.entries()) {
          assertEnvelope(await asRaw(await fetch(`${other.url}/api/x/row${i}`)), 500, 'UNENCODABLE_RESULT');
          const error = other.lines.find(
            ({ event, operation }) => event === 'request-failed' && operation === `row${i}`,
          )?.error;
          assert.ok(String(error).includes(` at ${pointer}, `), `${code}: ${error}`);
          assert.match(String(error), instead, code);
        }
        for (const [i, [code, body]] of plain.entries()) {
          const answer = await fetch(`${other.url}/api/x/row${rows.length + i}`);
          assert.deepEqual([answer.status, await answer.json()], [200, body], code);
        }
      });
    }
  });

  test('a 500 includes the error in development', async (t) => {
    const controllers = { 'XController.mjs': 'export default { index() { throw new Error("what happened") } }' };
    const development = await startService({
      controllers,
      settings: { NODE_ENV: 'development' },
      expectedErrors: ['request-failed'],
    });
    t.after(development.close);
    const body = (await (await fetch(`${development.url}/api/x`)).json()) as { detail: { error: string } };
    assert.equal(body.detail.error, 'what happened');
  });
});

describe('the time limit and the signal', () => {
  const controllers = {
    'SlowController.mjs': `
      export const seen = [];
      export default class {
        index(data, { signal }) { return new Promise((done) => signal.addEventListener('abort', () => { seen.push(signal.reason.message); done({ late: true }); })); }
        deaf() { return new Promise((done, fail) => { globalThis.failDeafOfResultsTest = fail; }) }
        late(data, params) { return new Promise((done) => { globalThis.askLateOfResultsTest = () => { done({}); return params.signal } }) }
        seen() { return seen }
      }`,
  };

  test('an operation beyond OPERATION_TIMEOUT gets 503, its signal is aborted, and its late end is logged', async (t) => {
    const slow = await startService({
      controllers,
      settings: { OPERATION_TIMEOUT: '50ms' },
      expectedErrors: ['request-failed'],
    });
    t.after(slow.close);
    assertEnvelope(await asRaw(await fetch(`${slow.url}/api/slow`)), 503, 'OPERATION_TIMEOUT');
    assertEnvelope(await asRaw(await fetch(`${slow.url}/api/slow/deaf`)), 503, 'OPERATION_TIMEOUT');
    (globalThis as unknown as { failDeafOfResultsTest(error: Error): void }).failDeafOfResultsTest(
      new Error('too late'),
    );
    assert.deepEqual(await (await fetch(`${slow.url}/api/slow/seen`)).json(), ['the operation is out of time']);
    const late = slow.lines
      .filter(({ event }) => /^operation-.*-late$/.test(event))
      .map(({ event, error }) => [event, error]);
    assert.deepEqual(late.sort(), [
      ['operation-failed-late', 'too late'],
      ['operation-finished-late', undefined],
    ]);
  });

  for (const reason of ['the operation is out of time', 'the client is gone'])
    test(`a signal that is first read late is already aborted with its reason: ${reason}`, async (t) => {
      const isTime = reason.includes('time');
      const settings = { OPERATION_TIMEOUT: isTime ? '50ms' : '60s' };
      const slow = await startService({ controllers, settings, expectedErrors: ['request-failed'] });
      t.after(slow.close);
      const shared = globalThis as unknown as { askLateOfResultsTest?: () => AbortSignal };
      delete shared.askLateOfResultsTest;
      const accepted = once(slow.app.server, 'connection');
      const socket = connect(slow.port, '127.0.0.1');
      t.after(() => void socket.destroy());
      socket.write('GET /api/slow/late HTTP/1.1\r\nHost: x\r\n\r\n');
      const [peer] = (await accepted) as [Socket];
      while (shared.askLateOfResultsTest === undefined) await new Promise(setImmediate);
      if (isTime) await once(socket, 'data');
      else {
        const closed = once(peer, 'close');
        socket.destroy();
        await closed;
      }
      const signal = (shared.askLateOfResultsTest as () => AbortSignal)();
      assert.deepEqual([signal.aborted, (signal.reason as Error | undefined)?.message], [true, reason]);
    });

  test('a client that disconnects aborts the signal', async (t) => {
    const slow = await startService({ controllers });
    t.after(slow.close);
    const socket = connect(slow.port, '127.0.0.1');
    socket.write('GET /api/slow HTTP/1.1\r\nHost: x\r\n\r\n');
    await once(slow.app.server, 'request');
    while (slow.app.inFlight() === 0) await new Promise(setImmediate);
    // A second request waits until the group is loaded. By then the operation has its signal.
    await fetch(`${slow.url}/api/slow/seen`);
    socket.destroy();
    let seen: string[] = [];
    while (seen.length === 0) seen = (await (await fetch(`${slow.url}/api/slow/seen`)).json()) as string[];
    assert.deepEqual(seen, ['the client is gone']);
    assert.equal(slow.app.inFlight(), 0);
  });
});

test('each request is logged in one line without header values, body or query', async (t) => {
  const logged = await startService();
  t.after(logged.close);
  await fetch(`${logged.url}/api/test/made%22up?password=hunter2`, {
    method: 'POST',
    body: '{"card":"4111"}',
    headers: {
      authorization: 'Bearer s3cret',
      cookie: 'c00kie',
      'x-request-id': 'line-1',
      'content-type': 'application/json',
    },
  });
  const lines = logged.lines.filter(({ event }) => event === 'request');
  assert.equal(lines.length, 1);
  const { time, duration_ms, bytes, pid, ...rest } = lines[0] as Record<string, unknown>;
  assert.deepEqual(rest, {
    level: 'info',
    event: 'request',
    method: 'POST',
    path: '/api/test/made%22up',
    page: 'test',
    operation: 'created',
    status: 200,
    request_id: 'line-1',
  });
  assert.match(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.equal(typeof duration_ms, 'number');
  assert.ok((bytes as number) > 100 && pid === process.pid);
  assert.doesNotMatch(JSON.stringify(logged.lines), /hunter2|4111|s3cret|c00kie/);
});
