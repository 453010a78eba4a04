// Runs the example of the service file in docs/CONTROLLERS.md, and checks the step at which each refusal ends.
import assert from 'node:assert/strict';
import { readFileSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { startTest, type TestApi } from '../../../src/api/testing.ts';
import type { Caller } from '../../../src/callers/access/key-check.ts';
import { makeProject } from '../../support/command-bench.ts';
import { GATEFOLD, type Service, startService } from '../../support/service.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const TEXT = readFileSync(join(ROOT, 'docs/CONTROLLERS.md'), 'utf8');
const section = TEXT.slice(TEXT.indexOf('## The service file'));
const sources = Object.fromEntries(
  Array.from(section.matchAll(/```ts\n\/\/ (controllers\/\w+\.ts)\n([\s\S]*?)```/g), ([, name = '', text = '']) => [
    name,
    text,
  ]),
);
const answers = new Map(
  Array.from(section.matchAll(/^\| (.*) \| (\d{3}) `(.*)` \|$/gm), ([, request = '', status, body = '']) => [
    request,
    [Number(status), JSON.parse(body)],
  ]),
);

describe('the service file of docs/CONTROLLERS.md', () => {
  let api: TestApi;
  const cleanUp: (() => void)[] = [];
  before(async () => {
    assert.deepEqual(Object.keys(sources), ['controllers/service.ts', 'controllers/NoteController.ts']);
    const cwd = makeProject({ after: (clean) => cleanUp.push(clean) }, { ...sources, 'node_modules/.keep': '' });
    symlinkSync(ROOT, join(cwd, 'node_modules/gatefold'));
    api = await startTest({ controllers: `${cwd}/controllers` });
  });
  after(async () => {
    await api?.close();
    for (const clean of cleanUp) clean();
  });

  const ann = { authorization: 'Token ann' };
  const requests: readonly [row: string, path: string, init: Parameters<TestApi['fetch']>[1]][] = [
    ['`POST /api/note` with `{"text":1}`', '/note', { method: 'POST', json: { text: 1 } }],
    ['the same with `Authorization: Token ann`', '/note', { method: 'POST', json: { text: 1 }, headers: ann }],
    ['with `{"text":"Buy milk"}`', '/note', { method: 'POST', json: { text: 'Buy milk' }, headers: ann }],
    ['`GET /api/note/1` by nobody', '/note/1', {}],
    ['`DELETE /api/note` by Ann', '/note', { method: 'DELETE', headers: ann }],
    ['`GET /api/note/1/2` by Ann', '/note/1/2', { headers: ann }],
    ['`GET /api/nothing` by Ann', '/nothing', { headers: ann }],
  ];
  test('gives the responses that the table shows', async () => {
    assert.deepEqual(
      [...answers.keys()],
      requests.map(([row]) => row),
    );
    for (const [row, path, init] of requests) {
      const response = await api.fetch(path, init);
      assert.deepEqual([response.status, await response.json()], answers.get(row), row);
    }
  });

  test('has a table of all properties of ServiceOptions', () => {
    const options = readFileSync(join(ROOT, 'src/api/controller/service.ts'), 'utf8');
    const [, body = ''] = /interface ServiceOptions<[^{]*\{([\s\S]*?)^\}/m.exec(options) ?? [];
    const names = Array.from(body.matchAll(/^ {2}readonly (\w+)\?/gm), ([, name = '']) => name);
    assert.ok(names.length > 9);
    for (const name of names) assert.match(section, new RegExp(`^\\| \`${name}\\b`, 'm'), name);
  });
});

describe('in development, a refusal has the step of docs/CONTROLLERS.md at which the request ended', () => {
  const controllers = {
    'service.mjs': `import { defineService } from '${GATEFOLD}';
      export default defineService({
        cors: { origins: ['https://a.example'], credentials: true },
        authenticate: ({ cookies }) => (cookies.user === 'ann' ? { id: 'ann' } : undefined),
        keyHeader: 'X-Key',
      });`,
    'ThingController.ts': `import { HttpError } from '${GATEFOLD}';
      export default class {
        static operations = { index: { access: 'user' }, pay: { limit: '1/h' } };
        index() {}
        created(data: { n: number }) { throw new HttpError(409, 'TAKEN', 'It is taken', { cause: new Error('a twin') }); }
        patch() { throw new Error('the disk is full'); }
        async deleted() { throw new HttpError(404, 'NO_THING', 'There is none'); }
        pay() {}
      }`,
  };
  const row = { application: { id: 'app', name: 'App', scopes: [] }, handler: undefined, groups: '*' as const };
  const identify = (authorization: string): Caller => {
    if (!authorization.startsWith('Bearer ')) return { kind: 'foreign' };
    if (authorization === 'Bearer dead') return { kind: 'refused', reason: 'its row is revoked' };
    return { kind: 'row', row: { ...row, methods: new Set(['GET']) } };
  };
  const post = (body: string, headers: Record<string, string> = {}): RequestInit => {
    return { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } };
  };
  const rows: [step: string, status: number, path: string, init?: RequestInit, error?: string][] = [
    ['request', 400, '/api/%zz'],
    ['row', 404, '/other'],
    ['origin', 403, '/api/thing', post('{"n":1}', { origin: 'https://evil.example', cookie: 'user=ann' })],
    ['key', 401, '/api/thing', { headers: { authorization: 'Bearer dead' } }, 'its row is revoked'],
    ['rights', 405, '/api/thing', post('{"n":1}', { authorization: 'Bearer app' })],
    ['group and operation', 404, '/api/nothing'],
    ['access', 401, '/api/thing'],
    ['limit', 429, '/api/thing/pay'],
    ['body', 400, '/api/thing', post('{')],
    ['types', 422, '/api/thing', post('{}')],
    ['operation', 409, '/api/thing', post('{"n":1}'), 'a twin'],
    ['operation', 404, '/api/thing', { method: 'DELETE' }],
  ];
  const start = (settings: Record<string, string>, files = controllers) =>
    startService({
      controllers: files,
      settings,
      parts: { credentials: { identify } },
      expectedErrors: ['request-failed'],
    });
  const endOf = async (service: Service, path: string, init?: RequestInit) => {
    const answer = await fetch(`${service.url}${path}`, init);
    const text = await answer.text();
    return { status: answer.status, detail: text === '' ? undefined : JSON.parse(text).detail };
  };

  let service: Service;
  before(async () => {
    service = await start({ NODE_ENV: 'development' });
    await fetch(`${service.url}/api/thing/pay`);
  });
  after(() => service.close());
  for (const [step, status, path, init, error] of rows)
    test(`${init?.method ?? 'GET'} ${path} ends at the step ${step}`, async () => {
      const expected = error === undefined ? { step } : { step, error };
      assert.deepEqual(await endOf(service, path, init), { status, detail: expected });
    });

  test('a 500 has the stack of its cause, too', async () => {
    const { status, detail } = await endOf(service, '/api/thing', { method: 'PATCH' });
    assert.deepEqual([status, detail.step, detail.error], [500, 'operation', 'the disk is full']);
    assert.match(detail.stack, /ThingController/);
  });

  test('also without keyHeader, and for the rate of the address', async (t) => {
    const files = { ...controllers, 'service.mjs': controllers['service.mjs'].replace(/keyHeader: .*/, '') };
    const limited = await start({ NODE_ENV: 'development', RATE_LIMIT: '1/h' }, files);
    t.after(limited.close);
    const dead = await endOf(limited, '/api/thing', { headers: { authorization: 'Bearer dead' } });
    assert.deepEqual(dead, { status: 401, detail: { step: 'key', error: 'its row is revoked' } });
    assert.deepEqual(await endOf(limited, '/api/nothing'), { status: 429, detail: { step: 'rate' } });
  });

  test('and in production, it has none', async (t) => {
    const production = await start({});
    t.after(production.close);
    for (const [, status, path, init] of rows)
      if (status !== 429) assert.deepEqual(await endOf(production, path, init), { status, detail: undefined }, path);
  });
});
