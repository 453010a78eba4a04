// `_around` of a group and `around` of the service file, over a socket: their order, and what clumsy ones do.
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { GATEFOLD, type ServiceOptions, startService } from '../support/service.ts';

const HEAD = `import { HttpError, Reply, defineService, eventStream } from '${GATEFOLD}';\n`;

async function start(t: TestContext, controllers: Readonly<Record<string, string>>, options: ServiceOptions = {}) {
  const files = Object.fromEntries(Object.entries(controllers).map(([name, text]) => [name, HEAD + text]));
  const service = await startService({ ...options, controllers: files });
  t.after(service.close);
  const get = async (path: string, init?: RequestInit) => {
    const response = await fetch(`${service.url}/api/${path}`, init);
    const text = await response.text();
    return { status: response.status, body: text.startsWith('{') || text.startsWith('[') ? JSON.parse(text) : text };
  };
  return { ...service, get };
}

/** The time limit logs an error. */
const TIMES_OUT = { expectedErrors: ['request-failed'] };

describe('the order of guards', () => {
  const log = (name: string) => `globalThis.aroundOrder.push('${name}')`;
  const wrap = (name: string) =>
    `_around(next) { ${log(`${name} in`)}; return next().finally(() => ${log(`${name} out`)}) }`;
  const files = {
    'service.mjs': `export default defineService({
      async around(next, params) {
        ${log('service in')};
        try { return await next(); } finally { ${log('service out')}; }
      },
    });`,
    'XController.mjs': `class Base {
        _before() { ${log('base before')} }
        ${wrap('base')}
      }
      export default class extends Base {
        _before(_, params) { ${log('before')}; if (params.query.stop) return new Reply(202, { stopped: true }); }
        ${wrap('group')}
        _after(result) { ${log('after')}; return { ...result, after: true }; }
        index() { ${log('operation')}; return { value: 7 }; }
      }`,
  };
  const inside = ['service in', 'base in', 'group in', 'operation', 'group out', 'base out', 'service out'];

  it('is every _before of the base first, around of the service, _around of the base first, _after', async (t) => {
    const { get } = await start(t, files);
    const order: string[] = [];
    Object.assign(globalThis, { aroundOrder: order });
    assert.deepEqual(await get('x'), { status: 200, body: { value: 7, after: true } });
    assert.deepEqual(order, ['base before', 'before', ...inside, 'after']);
    order.length = 0;
    assert.deepEqual(await get('x?stop=1'), { status: 202, body: { stopped: true } });
    assert.deepEqual(order, ['base before', 'before'], 'no around runs behind a guard that answers');
  });

  it('has the guards of an object and of its prototype', async (t) => {
    const { get } = await start(t, {
      'XController.mjs': `const order = [];
        const base = { _before() { order.push(1) }, _around(next) { order.push(3); return next() } };
        export default { __proto__: base, _before() { order.push(2) }, _around(next) { order.push(4); return next() },
          index() { return order.splice(0) } };`,
    });
    assert.deepEqual((await get('x')).body, [1, 2, 3, 4]);
  });

  it('of types and access comes first: what they refuse reaches no around', async (t) => {
    const { get } = await start(t, {
      'service.mjs': `export default defineService({
        access: ({ query }) => query.in === '1', around() { return { cached: true } },
      });`,
      'XController.ts': 'export default class { index(data: { in: string; n: number }) { return data } }',
    });
    assert.equal((await get('x')).status, 403);
    assert.equal((await get('x?in=1')).status, 422);
    assert.deepEqual((await get('x?in=1&n=1')).body, { cached: true });
  });
});

/** Each row: the body of `_around(next, data, params)`, and the answer to a GET of an operation. */
const ROWS: Readonly<Record<string, [around: string, status: number, body: unknown, method?: string]>> = {
  'returns the result': ['return next()', 200, { calls: 1 }],
  'awaits and changes the result': ['return { ...(await next()), more: 1 }', 200, { calls: 1, more: 1 }],
  'awaits and returns nothing': ['await next()', 200, { calls: 1 }],
  'calls next and waits for nothing': ['next()', 200, { calls: 1 }],
  'answers without next': ['return new Reply(203, { cached: 1 })', 203, { cached: 1 }],
  'answers a text without next': ["return 'cached'", 200, { data: 'cached' }],
  'gets the data and the params': ['return [data.a, params.method, await next()]', 200, ['1', 'index', { calls: 1 }]],
  'calls next twice, one after the other': ['await next(); return next()', 200, { calls: 2 }],
  'calls next twice at a time': ['return Promise.all([next(), next()])', 200, [{ calls: 1 }, { calls: 2 }]],
  'calls next with arguments': ["await next({ a: 'other' }); return { data }", 200, { data: { a: '1' } }],
  'tries again after an error': ['try { return await next() } catch { return next() }', 200, { calls: 2 }, 'once'],
  'sees the error and throws its own': [
    "try { await next() } catch (e) { throw new HttpError(409, 'OWN', e.code) }",
    409,
    'OWN',
    'refuse',
  ],
  'lets the error pass': ['return next()', 402, 'PAY', 'refuse'],
  'lets the error pass, without a return': ['next()', 402, 'PAY', 'refuse'],
  'replaces an error by an answer': [
    'return next().catch(({ status }) => ({ status }))',
    200,
    { status: 402 },
    'refuse',
  ],
  'throws before next': ["throw new HttpError(423, 'LOCKED', 'x')", 423, 'LOCKED'],
  'throws after next': ["await next(); throw new HttpError(423, 'LOCKED', 'x')", 423, 'LOCKED'],
};
/** Rows whose answer is a 500 that the log explains. */
const FAILED: Readonly<Record<string, [around: string, error: RegExp]>> = {
  'neither calls next nor returns': ['', /neither called next\(\) nor returned a result/],
  'throws what is no HttpError': ["await next(); throw new TypeError('late')", /late/],
  'returns a generator': ['return (function* () {})()', /return an array, such as/],
};

describe('an _around that', () => {
  const controller = (around: string) => `let calls = 0;
    export default class {
      async _around(next, data, params) { ${around} }
      index() { return { calls: ++calls } }
      once() { if (++calls === 1) throw new Error('once'); return { calls } }
      refuse() { throw new HttpError(402, 'PAY', 'x') }
    }`;
  for (const [name, [around, status, body, method]] of Object.entries(ROWS)) {
    for (const place of ['_around', 'around of the service file']) {
      const isService = place !== '_around';
      if (isService && /\bdata\b/.test(around)) continue;
      it(`${name} (${place})`, async (t) => {
        const { get } = await start(t, {
          'XController.mjs': controller(isService ? 'return next()' : around),
          ...(isService && {
            'service.mjs': `export default defineService({ async around(next, params) { ${around} } });`,
          }),
        });
        const answer = await get(method === undefined ? 'x?a=1' : `x/${method}?a=1`);
        assert.equal(answer.status, status, JSON.stringify(answer.body));
        assert.deepEqual(status < 400 ? answer.body : answer.body.error_code, body);
      });
    }
  }

  for (const [name, [around, error]] of Object.entries(FAILED)) {
    it(`${name} is a 500 whose log line says why`, async (t) => {
      const files = { 'XController.mjs': controller(around) };
      const { get, lines } = await start(t, files, { expectedErrors: ['request-failed'] });
      assert.equal((await get('x')).status, 500);
      assert.match(String(lines.find(({ event }) => event === 'request-failed')?.error), error);
    });
  }

  it('never calls next and never ends is a 503 after the time limit, and its signal aborts', async (t) => {
    const { get } = await start(
      t,
      {
        'XController.mjs': `export default class { static operations = { '*': { timeout: 50 } };
        _around(next, data, { signal }) { return new Promise((end) => signal.addEventListener('abort', end)) }
        index() {} }`,
      },
      TIMES_OUT,
    );
    const { status, body } = await get('x');
    assert.deepEqual([status, body.error_code], [503, 'OPERATION_TIMEOUT']);
  });

  const LATE: Readonly<Record<string, string>> = {
    'after its return': `async _around(next) { late(next); return { early: true } }`,
    'after its return, a second time': `async _around(next) { await next(); late(next); return { early: true } }`,
    'after its return, while _after runs': `async _around(next) { late(next); return { early: true } }
      _after() { return new Promise(setImmediate) }`,
    'after the time limit': `async _around(next, data, { signal }) {
      await new Promise((end) => signal.addEventListener('abort', end)); late(next); return {} }`,
  };
  for (const [name, around] of Object.entries(LATE)) {
    it(`calls next ${name} gets a rejection, and the operation does not run`, async (t) => {
      const { get } = await start(
        t,
        {
          'XController.mjs': `let calls = 0;
          const late = (next) => setImmediate(() => next().then(() => globalThis.aroundLate('ran'), globalThis.aroundLate));
          export default class { static operations = { '*': { timeout: 50 } }; ${around} index() { calls++ } }`,
        },
        TIMES_OUT,
      );
      const settled = new Promise<unknown>((resolve) => Object.assign(globalThis, { aroundLate: resolve }));
      await get('x');
      assert.match(String(await settled), /next\(\) was called after the answer/);
    });
  }
});

describe('a stream', () => {
  it('as data lets next be called once', async (t) => {
    const { get, lines } = await start(
      t,
      {
        'XController.mjs': `export default class { static operations = { created: { body: 'stream' } };
          async _around(next) { await next(); return next() }
          async created(data) { return { text: await new Response(data).text() } } }`,
      },
      { expectedErrors: ['request-failed'] },
    );
    assert.equal((await get('x', { method: 'POST', body: 'hello' })).status, 500);
    assert.match(String(lines.find(({ event }) => event === 'request-failed')?.error), /can be read only once/);
  });

  it('as result passes, and is closed where _around throws behind it', async (t) => {
    const { get } = await start(t, {
      'XController.mjs': `import { Readable } from 'node:stream';
        export default class {
          async _around(next, { fail }) { const result = await next(); if (fail) throw new HttpError(409, 'LATE', 'x'); return result }
          index() { const body = Readable.from(['he', 'llo']); body.on('close', () => globalThis.aroundClosed()); return body } }`,
    });
    const nextClose = () => new Promise((resolve) => Object.assign(globalThis, { aroundClosed: resolve }));
    let closed = nextClose();
    assert.deepEqual(await get('x'), { status: 200, body: 'hello' });
    await closed;
    closed = nextClose();
    assert.equal((await get('x?fail=1')).status, 409);
    await closed;
  });

  it('of events is opened and closed once where _after throws', async (t) => {
    const { get } = await start(t, {
      'XController.mjs': `const calls = globalThis.aroundCalls = [];
        const source = { next: async () => { calls.push('next') }, return: async () => { calls.push('return'); return { done: true } } };
        export default class {
          _after() { throw new HttpError(409, 'LATE', 'x') }
          index() { return eventStream({ [Symbol.asyncIterator]() { calls.push('open'); return source } }) } }`,
    });
    assert.equal((await get('x')).status, 409);
    assert.deepEqual(Reflect.get(globalThis, 'aroundCalls'), ['open', 'return']);
  });
});

it('an operation runs in the AsyncLocalStorage of its _around', async (t) => {
  const { get } = await start(t, {
    'XController.mjs': `import { AsyncLocalStorage } from 'node:async_hooks';
      const storage = new AsyncLocalStorage();
      export default class { _around(next, data) { return storage.run(data.tenant, next) }
        async index() { await new Promise(setImmediate); return { tenant: storage.getStore() } } }`,
  });
  const answers = await Promise.all(['a', 'b', 'c'].map((tenant) => get(`x?tenant=${tenant}`)));
  assert.deepEqual(
    answers.map(({ body }) => body.tenant),
    ['a', 'b', 'c'],
  );
});

it('a transaction is committed or rolled back, also when the client leaves and after the time limit', async (t) => {
  const { get, url, lines } = await start(
    t,
    {
      'XController.mjs': `export default class { static operations = { '*': { timeout: 200 } };
        async _around(next) {
          globalThis.aroundSql.push('begin');
          try { const result = await next(); globalThis.aroundSql.push('commit'); return result }
          catch (error) { globalThis.aroundSql.push('rollback'); globalThis.aroundSql.done?.(); throw error } }
        index() {} refuse() { throw new HttpError(409, 'NO', 'x') } fail() { throw new Error('x') }
        wait(_, { signal }) { globalThis.aroundSql.waits?.();
          return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))) } }`,
    },
    { expectedErrors: ['request-failed'] },
  );
  const sql: string[] & { done?: () => void; waits?: () => void } = [];
  Object.assign(globalThis, { aroundSql: sql });
  for (const path of ['x', 'x/refuse', 'x/fail', 'x/wait']) await get(path);
  const controller = new AbortController();
  const done = new Promise<void>((resolve) => {
    sql.done = resolve;
    sql.waits = () => controller.abort();
  });
  await assert.rejects(fetch(`${url}/api/x/wait`, { signal: controller.signal }));
  await done;
  const rolledBack = ['begin', 'rollback'];
  assert.deepEqual([...sql], ['begin', 'commit', ...rolledBack, ...rolledBack, ...rolledBack, ...rolledBack]);
  assert.ok(lines.some(({ event }) => event === 'operation-failed-late'));
});
