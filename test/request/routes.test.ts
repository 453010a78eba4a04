// Routes of groups, over a socket: the route that a request gets, and the requests and files that are refused. The
// order of routes does not count (groups/group-routes.test.ts).
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { CallerRow } from '../../src/callers/access/credential-rights.ts';
import { ask, CONTROLLERS, ROUTE_ROWS, VERB_NAMES } from '../support/route-table.ts';
import { asRaw, assertEnvelope, parseRaw, type Service, startService } from '../support/service.ts';

/** The group of each file that does not load, its source, and the reason in the log. */
const REFUSED: Readonly<Record<string, readonly [source: string, reason: RegExp]>> = {
  Unreachable: [`{ 'GET {id}'() {}, 'GET {name}'() {} }`, /'GET \{name\}' can never be reached: 'GET \{id\}' takes/],
  Wrong: [`{ index() {}, 'get {id}'() {} }`, /"get \{id\}" is no route: it must begin with one of GET, HEAD/],
  Space: [`{ 'PUT '() {} }`, /"PUT " is no route: .*'PUT' without a space/],
  Settings: ['class { static operations = { index: { acess: 1 } }; index() {} }', /"index" has the unknown property/],
  ...Object.fromEntries(
    Object.entries(VERB_NAMES).map(([verb, name]): [string, readonly [string, RegExp]] => [
      `Both${verb}`,
      [`{ '${verb}'() {}, ${name}() {} }`, new RegExp(`'${verb}' and ${name} are both`)],
    ]),
  ),
  Twin: [
    `class extends class { 'GET {id}'() {} } { 'GET {name}'() {} }`,
    /'GET \{id\}' can never be reached: 'GET \{name\}' takes all of its paths/,
  ],
  Inherits: [`class extends class { red() {} } { 'PUT'() {} }`, /'PUT' and red are both/],
  Leaves: [`class extends class { 'PUT'() {} } { red() {} }`, /'PUT' and red are both/],
};
const refusedFiles = Object.entries(REFUSED).map(([group, [source]]) => [
  `${group}Controller.mjs`,
  `export default ${source}`,
]);

const row = (methods: string[], handler?: string): CallerRow => ({
  application: { id: 'a', name: 'a' },
  handler,
  groups: handler === undefined ? '*' : undefined,
  methods: new Set(methods),
});
const keys: Readonly<Record<string, CallerRow>> = {
  reader: row(['GET']),
  header: row(['HEAD']),
  writer: row(['PUT']),
  sdk: row(['GET', 'POST', 'PUT'], 'User'),
};

let service: Service;
before(async () => {
  service = await startService({
    controllers: {
      ...CONTROLLERS,
      ...Object.fromEntries(refusedFiles),
      'ParamsController.mjs': `export default { 'GET {id}'(data, params) { return { ...params, keys: Object.keys(params) } } }`,
      'DataController.mjs': `export default class {
          static operations = { PUT: { status: 202 } };
          'PUT'(data) { return { data } } 'GET'(data) { return { data } }
        }`,
      'TypedController.ts': `import type { ControllerParams } from 'gatefold';
        export default class TypedController {
          'PUT'(data: { name: string }, params: ControllerParams<{ query: { dry?: boolean } }>) {
            return { method: params.method, data, query: params.query };
          }
        }`,
      'PathController.ts': `export default class { 'PUT'(_: unknown, params: { path: { id: number } }) {} }`,
    },
    expectedErrors: ['request-failed', 'group-not-loadable'],
    parts: {
      credentials: {
        identify: (name) => (keys[name] === undefined ? { kind: 'foreign' } : { kind: 'row', row: keys[name] }),
      },
    },
  });
});
after(() => service.close());

describe('the route of a request', () => {
  for (const route of ROUTE_ROWS)
    test([route.key, route.verb, route.path, '→', route.answer].filter(Boolean).join(' '), async () => {
      const { answer, allow } = await ask(service.url, route);
      assert.equal(answer, route.answer);
      if (route.key === undefined) assert.equal(allow, route.allow);
    });
});

test('HEAD returns the headers of GET without a body', async () => {
  const get = await fetch(`${service.url}/api/order/7`);
  const head = parseRaw(await service.raw('HEAD /api/order/7 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'));
  assert.deepEqual([head.status, head.body], [200, '']);
  assert.equal(head.headers.get('content-length'), get.headers.get('content-length'));
});

test('the captured segments are not among the enumerable keys of params', async () => {
  const body = (await (await fetch(`${service.url}/api/params/7`)).json()) as { keys: string[] };
  assert.deepEqual(body.keys, ['page', 'method', 'verb', 'slugs', 'query', 'requestId']);
});

test('PUT without a body gets an empty object as data and the status of its settings, and GET gets the query', async () => {
  for (const [method, status, data] of [
    ['PUT', 202, {}],
    ['GET', 200, { a: '1' }],
  ] as const) {
    const answer = await fetch(`${service.url}/api/data?a=1`, { method });
    assert.deepEqual([answer.status, await answer.json()], [status, { data }]);
  }
});

test('the data and the query of a route are checked against its types', async () => {
  const put = (name: unknown) =>
    fetch(`${service.url}/api/typed?dry=true`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name }),
    });
  assert.deepEqual(await (await put('x')).json(), { method: 'PUT', data: { name: 'x' }, query: { dry: true } });
  assert.equal((await put(7)).status, 422);
});

describe('a file with ambiguous or invalid routes or settings does not load, and the log has the reason', () => {
  const reasons = Object.entries(REFUSED).map(([group, [, reason]]): [string, RegExp] => [group, reason]);
  for (const [group, reason] of [...reasons, ['Path', /PUT: its route has no \{id\}/] as const])
    test(group, async () => {
      assertEnvelope(await asRaw(await fetch(`${service.url}/api/${group}`)), 500, 'GROUP_NOT_LOADABLE');
      assert.match(String(service.lines.findLast(({ event }) => event === 'group-not-loadable')?.error), reason);
    });
});
