// Uses `gatefold/testing` as an author of controllers does: the service runs in this process, on a real socket.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import type { ControllerParams } from '../../src/api/controller.ts';
import { createParams, startTest, type TestCaller } from '../../src/api/testing.ts';
import { moduleUrl } from '../support/own-modules.ts';

const SOURCE = `
export let calls = 0;
export default class BookController {
  index(query, params) { calls++; return { query, requestId: params.requestId, application: params.application ?? null }; }
  created(book) { return { ...book, made: true }; }
  fails() { throw new Error('a mistake of the controller'); }
  later(_, { waitUntil }) { waitUntil(new Promise((_, fail) => setTimeout(fail, 20, new Error('after the answer')))); }
}
`;

function folder(
  test: { after(remove: () => void): void },
  files: Readonly<Record<string, string>> = { 'BookController.mjs': SOURCE },
): string {
  const dir = mkdtempSync(join(tmpdir(), 'gatefold-testing-'));
  test.after(() => rmSync(dir, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text);
  return dir;
}

async function applicationOf(caller: TestCaller, path = '/anything'): Promise<unknown> {
  const answer = (await (await caller.fetch(path)).json()) as { application: unknown };
  return answer.application;
}

interface Book {
  title: string;
}
declare class BookController {
  created(book: Book): Book & { made: boolean };
}

it('the client of the installed startTest throws the ApiError of gatefold/client', async (test) => {
  const load = (name: string) => import(pathToFileURL(resolve(import.meta.dirname, '../../dist', name)).href);
  const { ApiError } = (await load('client.js')) as typeof import('../../src/api/client.ts');
  const installed = (await load('testing.js')) as typeof import('../../src/api/testing.ts');
  const api = await installed.startTest({ controllers: folder(test) });
  const absent = api.client<{ absent: typeof BookController }>().absent;
  await assert.rejects(absent.created({ title: 'Emma' }), ApiError);
  await api.close();
});

it('fetch of startTest sends json with the Content-Type of the test, or else application/json', async (test) => {
  const source = "export default { created: (_, { request }) => ({ type: request.headers['content-type'] }) };";
  const api = await startTest({ controllers: folder(test, { 'TypeController.mjs': source }) });
  const typeOf = async (headers: Record<string, string>) => {
    const answer = await api.fetch('/type', { method: 'POST', headers, json: {} });
    return ((await answer.json()) as { type: string }).type;
  };
  assert.equal(await typeOf({}), 'application/json');
  assert.equal(await typeOf({ 'Content-Type': 'application/json; charset=UTF-8' }), 'application/json; charset=UTF-8');
  await api.close();
});

describe('startTest', async () => {
  const controllers = folder({ after });
  const api = await startTest({ controllers });
  after(() => api.close());

  it('serves each path on its own port, with or without /api', async () => {
    for (const path of ['/book?a=1', '/api/book?a=1', 'book?a=1', 'api/book?a=1']) {
      const response = await api.fetch(path, { headers: { 'X-Request-Id': 'mine' } });
      assert.deepEqual(await response.json(), { query: { a: '1' }, requestId: 'mine', application: null });
    }
    assert.equal((await fetch(`${api.url}/api/absent`)).status, 404);
    assert.equal((await api.fetch('/apiary')).status, 404);
  });

  it('logs the trace id of a traceparent header while the trace export is off', async () => {
    const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
    await api.fetch('/book', { headers: { traceparent: `00-${traceId}-00f067aa0ba902b7-01` } });
    assert.ok(api.lines.some((line) => line.trace_id === traceId));
    assert.ok(!api.lines.some(({ event }) => event === 'traces-on'));
  });

  it('has a typed client', async () => {
    const made = await api.client<{ book: typeof BookController }>().book.created({ title: 'Emma' });
    assert.deepEqual(made, { title: 'Emma', made: true });
    const posted = await api.fetch('/book', { method: 'POST', json: { title: 'Emma' } });
    assert.deepEqual(await posted.json(), made);
  });

  it('calls as an application outside the credentials table, with the rights of the test', async (test) => {
    const dir = folder(test, { 'SdkController.mjs': SOURCE, 'BookController.mjs': SOURCE });
    const sdk = await startTest({ controllers: dir });
    test.after(() => sdk.close());
    const shop = sdk.as({ application: { name: 'shop' }, handler: 'sdk', methods: ['get'] });
    assert.deepEqual(await applicationOf(shop), { id: 'test00000001', name: 'shop' });
    assert.equal((await shop.fetch('/anything', { method: 'POST' })).status, 405);
    const book = sdk.as({ application: { id: 'abc', name: 'other' }, handler: 'book' });
    assert.deepEqual(await applicationOf(book), { id: 'abc', name: 'other' });
    const reader = sdk.as({ application: { name: 'reader', scopes: ['books'] }, groups: ['book'] });
    assert.deepEqual(await applicationOf(reader, '/book'), { id: 'test00000003', name: 'reader', scopes: ['books'] });
    assert.equal((await reader.fetch('/sdk')).status, 403);
    assert.equal((await sdk.as({ application: {} }).fetch('/sdk')).status, 200);
    assert.equal((await sdk.fetch('/book')).status, 200);
    assert.equal((await sdk.fetch('/book', { headers: { Authorization: 'Bearer gfk_unknown' } })).status, 401);
  });

  it('refuses a caller that has neither an id nor an application', () => {
    for (const caller of [{ name: 'Ann' }, { application: undefined }, { application: null, groups: ['book'] }])
      assert.throws(() => api.as(caller as never), /^TypeError: A caller needs the id of a user, or an application$/);
  });

  it('runs no task without a service file', () =>
    assert.rejects(api.run('nightly'), new Error('No task nightly: the service file has no tasks')));

  it('collects the log lines as objects', async () => {
    await api.fetch('/book/created', { method: 'PUT', headers: { 'X-Request-Id': 'this-one' } });
    const line = api.lines.find(({ event, request_id }) => event === 'request' && request_id === 'this-one');
    assert.deepEqual([line?.method, line?.operation, line?.status], ['PUT', 'created', 200]);
  });

  it('serves the same module instance that the test imports', async () => {
    const book = await import(pathToFileURL(join(controllers, 'BookController.mjs')).href);
    const before = book.calls;
    await api.fetch('/book');
    assert.equal(book.calls, before + 1);
  });

  it('applies the settings in env and refuses an invalid one', async (test) => {
    const small = await startTest({ controllers, env: { BODY_LIMIT: '10' } });
    test.after(() => small.close());
    assert.equal((await small.fetch('/book', { method: 'POST', body: '{"title":"longer"}' })).status, 413);
    await assert.rejects(startTest({ controllers, env: { BODY_LIMIT: 'x' } }), /BODY_LIMIT/);
  });

  it('creates its own credentials table and removes the folder on close', async () => {
    const one = await startTest({ controllers });
    const dir = String(one.lines.find(({ event }) => event === 'credentials-loaded')?.file);
    assert.ok(existsSync(join(dir, '..')));
    await one.close();
    assert.ok(!existsSync(join(dir, '..')));
  });

  it('fails on close when the log has an error that the test does not expect', async () => {
    const failing = await startTest({ controllers });
    assert.equal((await failing.fetch('/book/fails')).status, 500);
    await assert.rejects(failing.close(), /request-failed .*a mistake of the controller.*BookController\.mjs:6/s);
    const expecting = await startTest({ controllers });
    await expecting.fetch('/book/fails');
    expecting.expectErrors('request-failed');
    await expecting[Symbol.asyncDispose]();
  });

  it('waits on close for background work and reports its failure', async () => {
    const working = await startTest({ controllers });
    assert.equal((await working.fetch('/book/later')).status, 200);
    await assert.rejects(working.close(), /background-work-failed .*after the answer/);
  });

  it('disposes controllers only after the last service of the process has closed', async (test) => {
    const pool = `
      export const pool = { isOpen: true, ends: 0, query() { if (!this.isOpen) throw new Error('the pool has ended'); return 1; } };
      export class Base { async [Symbol.asyncDispose]() { pool.isOpen = false; pool.ends++; } }`;
    const tags = (name: string) =>
      `import { Base, pool } from '../pool.mjs'; export default class ${name} extends Base { index() { return { tags: pool.query() }; } }`;
    const root = folder(test, { 'pool.mjs': pool });
    const dirs = ['one', 'other'].map((name) => join(root, name)) as [string, string];
    for (const dir of dirs) {
      mkdirSync(dir);
      writeFileSync(join(dir, 'TagsController.mjs'), tags('TagsController'));
    }
    const out = runScript(`
      import { pool } from ${JSON.stringify(pathToFileURL(join(root, 'pool.mjs')).href)};
      const [one, other] = ${JSON.stringify(dirs)};
      const services = [];
      for (const controllers of [one, one, other]) services.push(await startTest({ controllers }));
      const [a, b, c] = services;
      const seen = [];
      const see = async (api) => seen.push((await api.fetch('/tags')).status);
      await b.close();
      await b.close();
      await see(a);
      await c.close();
      await see(a);
      await a.close();
      console.log(JSON.stringify([seen, pool.isOpen, pool.ends]));`);
    assert.deepEqual(JSON.parse(out), [[200, 200], false, 3]);
  });

  it('refuses to start with a broken controller unless the test expects the error', async (test) => {
    const dir = folder(test, { 'BookController.mjs': SOURCE, 'BadController.mjs': 'export default class { index( }' });
    await assert.rejects(startTest({ controllers: dir }), /group-not-loadable .*BadController\.mjs/);
    const api = await startTest({ controllers: dir, expectedErrors: ['group-not-loadable', 'request-failed'] });
    test.after(() => api.close());
    assert.deepEqual([(await api.fetch('/book')).status, (await api.fetch('/bad')).status], [200, 500]);
  });

  it('disposes the controllers of a start that is refused', (test) => {
    const pool = "export default class { index() {} [Symbol.asyncDispose]() { console.log('disposed'); } }";
    const dir = folder(test, { 'PoolController.mjs': pool, 'BadController.mjs': 'export default class { index( }' });
    const start = `startTest({ controllers: ${JSON.stringify(dir)} })`;
    assert.equal(runScript(`await ${start}.catch(() => console.log('refused'));`), 'disposed\nrefused\n');
  });

  it('refuses to start when the controllers folder does not exist', async () => {
    await assert.rejects(startTest({ controllers: '/none' }), {
      message: 'Cannot read the controllers folder /none: it does not exist',
    });
  });

  it('counts the called operations in the V8 coverage, and removes its folders without a close or after a failed start', (test) => {
    const dir = folder(test);
    const [coverage, tables] = ['coverage', 'tables'].map((name) => join(dir, name)) as [string, string];
    for (const made of [coverage, tables]) mkdirSync(made);
    const controllers = JSON.stringify(dir);
    runScript(
      // A connection that stays open would keep the process for four seconds.
      `const api = await startTest({ controllers: ${controllers} });
      await api.fetch('/book', { headers: { Connection: 'close' } });
      await startTest({ controllers: ${controllers}, env: { BODY_LIMIT: 'much' } }).catch(() => console.log('refused'));`,
      { NODE_V8_COVERAGE: coverage, TMPDIR: tables },
    );
    const scripts = readdirSync(coverage).flatMap(
      (name) => JSON.parse(readFileSync(join(coverage, name), 'utf8')).result,
    );
    const { functions } = scripts.find(({ url }: { url: string }) => url.endsWith('/BookController.mjs'));
    const counts = new Map(
      functions.map(({ functionName, ranges }: { functionName: string; ranges: { count: number }[] }) => [
        functionName,
        ranges[0]?.count,
      ]),
    );
    assert.deepEqual([counts.get('index'), counts.get('created') ?? 0], [1, 0]);
    assert.deepEqual(
      readdirSync(tables).filter((name) => name.startsWith('gatefold-')),
      [],
    );
  });
});

/** Runs a script in a new process. Returns the output. */
function runScript(script: string, env: Readonly<Record<string, string>> = {}): string {
  const testing = moduleUrl('src/api/testing');
  const flags = process.execArgv.filter((flag) => !flag.startsWith('--test'));
  const args = [
    ...flags,
    '--input-type=module',
    '-e',
    `import { startTest } from ${JSON.stringify(testing)};\n${script}`,
  ];
  return execFileSync(process.execPath, args, { env: { ...process.env, ...env }, encoding: 'utf8' });
}

describe('createParams', () => {
  it('returns the params for a direct call of an operation', () => {
    const { slugs, query, verb, signal, request } = createParams({ slugs: ['find', '1'], verb: 'POST' });
    assert.deepEqual(
      [slugs, { ...query }, verb, signal.aborted, typeof request],
      [['find', '1'], {}, 'POST', false, 'object'],
    );
  });

  it('returns the params of a request GET /api/test', () => {
    const params = createParams();
    assert.deepEqual(JSON.parse(JSON.stringify(params)), {
      ...{ page: 'test', method: 'index', verb: 'GET', slugs: [], query: {}, requestId: 'test' },
    });
    const { base, path, headers, cookies, address, lastEventId, user } = params;
    assert.deepEqual(
      { base, path, headers, cookies, address, lastEventId, user },
      {
        base: '/api',
        path: {},
        headers: {},
        cookies: {},
        address: '127.0.0.1',
        lastEventId: undefined,
        user: undefined,
      },
    );
    const { method, url } = params.toRequest();
    assert.deepEqual([method, url], ['GET', 'http://127.0.0.1/api/test']);
    assert.equal(
      createParams().trace.span('work', ({ traceId }) => traceId ?? 'none'),
      'none',
    );
  });

  it('returns params with the types of its arguments', () => {
    const operation = (
      _: unknown,
      { path, query }: ControllerParams<{ path: { id: number }; query: { deep?: boolean } }>,
    ) => [path.id + 1, query.deep];
    assert.deepEqual(operation({}, createParams({ path: { id: 6 }, query: { deep: true } })), [7, true]);
    const untyped = (_: unknown, { path, query, log }: ControllerParams) => log.info('seen', { ...path, ...query });
    untyped({}, createParams());
  });

  it('returns params whose JSON leaves out the request and the signal', () => {
    const params: ControllerParams = createParams({ signal: AbortSignal.abort() });
    assert.ok(params.signal.aborted);
    assert.deepEqual(Object.keys(JSON.parse(JSON.stringify(params))), [
      'page',
      'method',
      'verb',
      'slugs',
      'query',
      'requestId',
    ]);
  });
});
