// Methods such as `'PUT'(…)` without a pattern are routes of the bare group, over a socket. Routes are chosen by their
// patterns, not by their order.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { CallerRow } from '../../src/callers/access/credential-rights.ts';
import { asRaw, assertEnvelope, parseRaw, type Service, startService } from '../support/service.ts';

const ECHO = '(data, { method, path, slugs, verb }) { return { method, path, slugs, verb, data } }';
const VERBS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
const REFERENCE = {
  GET: 'index',
  HEAD: 'index',
  POST: 'created',
  PUT: 'red',
  PATCH: 'patch',
  DELETE: 'deleted',
  OPTIONS: 'options',
};

const controllers: Record<string, string> = {
  'UserController.mjs': `class Base { 'DELETE'${ECHO} helper${ECHO} }
    export default class extends Base {
      static operations = { PUT: { status: 202 } };
      GET${ECHO} 'POST'${ECHO} 'PUT'${ECHO} 'PATCH'${ECHO} 'OPTIONS'${ECHO} pay${ECHO}
    }`,
  'ReadController.mjs': `export default { 'GET'${ECHO} }`,
  'BelowController.mjs': `export default { 'GET {id}'${ECHO} }`,
  'HeadController.mjs': `export default { 'GET'${ECHO}, 'HEAD'() { throw new Error('HEAD was called') } }`,
  'MixedController.mjs': `export default { index${ECHO}, created${ECHO}, 'PUT'${ECHO}, 'POST {id}'${ECHO}, updated${ECHO} }`,
  'OrderedController.mjs': `class Base { 'GET {id}'${ECHO} 'GET lit/b'${ECHO} }
    export default class extends Base {
      'GET {all*}'${ECHO} 'GET {x}/{y}'${ECHO} 'GET lit'${ECHO} 'HEAD {id}'() { return {} }
      'POST {id}'${ECHO} 'POST pay/{id}/x'${ECHO} 'POST lit'${ECHO} find${ECHO}
    }`,
  'TwinController.mjs': `class Base { 'GET {id}'() {} } export default class extends Base { 'GET {name}'() {} }`,
  'OverrideController.mjs': `class Base { 'GET {id}'() {} 'PUT'() {} }
    export default class extends Base { 'GET {id}'${ECHO} 'PUT'${ECHO} }`,
  'InheritsController.mjs': `class Base { red() {} } export default class extends Base { 'PUT'() {} }`,
  'LeavesController.mjs': `class Base { 'PUT'() {} } export default class extends Base { red() {} }`,
  'TypedController.ts': `import type { ControllerParams } from 'gatefold';
    export default class TypedController {
      'PUT'(data: { name: string }, params: ControllerParams<{ query: { dry?: boolean } }>) {
        return { method: params.method, data, query: params.query };
      }
    }`,
  'PathController.ts': `export default class PathController { 'PUT'(_: unknown, params: { path: { id: number } }) {} }`,
  'SpaceController.mjs': `export default { 'PUT '() {} }`,
  ...Object.fromEntries(
    Object.entries(REFERENCE).map(([verb, name]) => [
      `Both${verb}Controller.mjs`,
      `export default { '${verb}'() {}, ${name}() {} }`,
    ]),
  ),
};

const row = (methods: string[], handler?: string): CallerRow => ({
  application: { id: 'a', name: 'a' },
  handler,
  groups: handler === undefined ? '*' : undefined,
  methods: new Set(methods),
});
const rows: Record<string, CallerRow> = {
  reader: row(['GET']),
  header: row(['HEAD']),
  writer: row(['PUT']),
  sdk: row(['GET', 'POST', 'PUT'], 'User'),
};

let service: Service;
before(async () => {
  service = await startService({
    controllers,
    expectedErrors: ['request-failed', 'group-not-loadable'],
    parts: {
      credentials: {
        identify: (name) => {
          const known = rows[name];
          return known === undefined ? { kind: 'foreign' } : { kind: 'row', row: known };
        },
      },
    },
  });
});
after(() => service.close());
const ask = (verb: string, path: string, authorization?: string) =>
  fetch(service.url + path, { method: verb, ...(authorization && { headers: { authorization } }) });

describe('routes of the bare group', () => {
  for (const verb of VERBS)
    test(`${verb} calls '${verb}'`, async () => {
      const answer = await ask(verb, '/api/user', 'foreign');
      const body = (await answer.json()) as Record<string, unknown>;
      assert.deepEqual([answer.status, body.method, body.slugs], [verb === 'PUT' ? 202 : 200, verb, []]);
    });

  test('PUT without a body gets an empty object as data, and GET gets the query', async () => {
    for (const [verb, data] of [
      ['PUT', {}],
      ['GET', { a: '1' }],
    ] as const)
      assert.deepEqual(((await (await ask(verb, '/api/user?a=1')).json()) as { data: unknown }).data, data);
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

  test('HEAD runs GET in a group without HEAD', async () => {
    const answer = await ask('HEAD', '/api/user');
    assert.deepEqual([answer.status, answer.headers.get('content-type')], [200, 'application/json; charset=UTF-8']);
    assert.equal((await ask('HEAD', '/api/head')).status, 500);
  });

  test('OPTIONS without Authorization is a preflight', async () => {
    const answer = await ask('OPTIONS', '/api/user');
    assert.deepEqual([answer.status, await answer.text()], [200, '']);
  });

  const refused: [verb: string, path: string, status: number, code: string, allow?: string][] = [
    ['POST', '/api/user/PUT', 404, 'ROUTE_NOT_FOUND'],
    ['PUT', '/api/user/PUT', 404, 'ROUTE_NOT_FOUND'],
    ['GET', '/api/user/GET', 404, 'ROUTE_NOT_FOUND'],
    ['POST', '/api/user/DELETE', 404, 'ROUTE_NOT_FOUND'],
    ['POST', '/api/user%2FPUT', 404, 'ROUTE_NOT_FOUND'],
    ['POST', '/api/user/PUT%20', 404, 'ROUTE_NOT_FOUND'],
    ['POST', '/api/user/%20', 404, 'ROUTE_NOT_FOUND'],
    ['POST', '/api/user/helper', 404, 'ROUTE_NOT_FOUND'],
    ['GET', '/api/user/pay', 405, 'METHOD_NOT_ALLOWED', 'POST, OPTIONS'],
    ['PROPFIND', '/api/user', 405, 'METHOD_NOT_ALLOWED', 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS'],
    ['GET', '/api/below', 405, 'METHOD_NOT_ALLOWED', 'OPTIONS'],
    ['POST', '/api/read', 405, 'METHOD_NOT_ALLOWED', 'GET, HEAD, OPTIONS'],
    ['DELETE', '/api/mixed', 405, 'METHOD_NOT_ALLOWED', 'GET, HEAD, POST, PUT, OPTIONS'],
    ['POST', '/api/mixed/PUT/x', 404, 'ROUTE_NOT_FOUND'],
  ];
  for (const [verb, path, status, code, allow] of refused)
    test(`${verb} ${path} is ${status} ${code}`, async () => {
      const answer = await asRaw(await ask(verb, path));
      assertEnvelope(answer, status, code);
      assert.equal(answer.headers.get('allow') ?? undefined, allow);
    });

  test('the name of a route in the URL calls no route, even with a foreign Authorization', async () => {
    const request = 'POST /api/user/PUT HTTP/1.1\r\nHost: a\r\nAuthorization: foreign\r\nConnection: close\r\n\r\n';
    assert.equal(parseRaw(await service.raw(request)).status, 404);
  });

  test('a route captures a segment that is the name of another route', async () => {
    const body = (await (await ask('POST', '/api/mixed/PUT')).json()) as Record<string, unknown>;
    assert.deepEqual([body.method, body.path], ['POST {id}', { id: 'PUT' }]);
  });

  test('a bare route works beside operations of the verb table and operations that the URL names', async () => {
    for (const [verb, path, method] of [
      ['GET', '/api/mixed', 'index'],
      ['PUT', '/api/mixed', 'PUT'],
      ['POST', '/api/mixed', 'created'],
      ['POST', '/api/mixed/updated', 'updated'],
      ['POST', '/api/user/pay', 'pay'],
    ] as const)
      assert.equal(((await (await ask(verb, path)).json()) as { method: string }).method, method);
  });

  const keys: [key: string, verb: string, path: string, outcome: string | number][] = [
    ['reader', 'GET', '/api/user', 'GET'],
    ['reader', 'PUT', '/api/user', 405],
    ['reader', 'POST', '/api/user/PUT', 405],
    ['header', 'GET', '/api/user', 405],
    ['header', 'HEAD', '/api/user', 405],
    ['header', 'HEAD', '/api/mixed', 405],
    ['header', 'HEAD', '/api/head', 500],
    ['writer', 'PUT', '/api/user', 'PUT'],
    ['writer', 'GET', '/api/user', 405],
    ['sdk', 'PUT', '/api/anything', 'PUT'],
    ['sdk', 'PUT', '/api', 'PUT'],
    ['sdk', 'POST', '/api/PUT', 'POST'],
    ['sdk', 'POST', '/api/pay', 'pay'],
    ['sdk', 'PUT', '/api/x/PUT', 404],
    ['sdk', 'DELETE', '/api/user', 405],
  ];
  for (const [key, verb, path, outcome] of keys)
    test(`the key ${key}: ${verb} ${path} → ${outcome}`, async () => {
      const answer = await ask(verb, path, key);
      if (typeof outcome === 'number') return assert.equal(answer.status, outcome);
      assert.equal(((await answer.json()) as { method?: string }).method, outcome);
    });
});

test('routes are chosen by their patterns, own routes and inherited ones', async () => {
  for (const [verb, path, method] of [
    ['GET', 'lit', 'GET lit'],
    ['GET', '7', 'GET {id}'],
    ['GET', 'lit/b', 'GET lit/b'],
    ['GET', 'lit/c', 'GET {x}/{y}'],
    ['GET', 'a/b/c', 'GET {all*}'],
    ['POST', 'find', 'find'],
    ['POST', 'find/7', 'find'],
    ['POST', 'lit', 'POST lit'],
    ['POST', '7', 'POST {id}'],
  ] as const)
    assert.equal(((await (await ask(verb, `/api/ordered/${path}`)).json()) as { method: string }).method, method);
  const head = await ask('HEAD', '/api/ordered/lit');
  assert.notEqual(head.headers.get('content-length'), '2', 'HEAD lit runs HEAD {id} instead of GET lit');
  for (const [verb, path] of [
    ['GET', '7'],
    ['PUT', ''],
  ] as const)
    assert.equal((await ask(verb, `/api/override/${path}`)).status, 200);
});

test('a file with ambiguous or invalid routes does not load, and the reason is logged', async () => {
  for (const [page, reason] of [
    ['twin', /'GET \{id\}' can never be reached: 'GET \{name\}' takes all of its paths/],
    ['inherits', /'PUT' and red are both/],
    ['leaves', /'PUT' and red are both/],
    ['path', /PUT: its route has no \{id\}/],
    ['space', /"PUT " is no route: .*'PUT' without a space/],
    ...Object.keys(REFERENCE).map((verb) => [
      `both${verb}`,
      new RegExp(`'${verb}' and ${REFERENCE[verb as 'GET']} are both`),
    ]),
  ] as [string, RegExp][]) {
    assertEnvelope(await asRaw(await ask('GET', `/api/${page}`)), 500, 'GROUP_NOT_LOADABLE');
    assert.match(String(service.lines.findLast(({ event }) => event === 'group-not-loadable')?.error), reason);
  }
});
