// The root group (`Controller.ts`), routes for every method (`ANY`), and segments such as `{name}.json`.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createClient } from '../../src/api/client.ts';
import { createLog } from '../../src/base/log.ts';
import type { CallerRow } from '../../src/callers/access/credential-rights.ts';
import { createDocument } from '../../src/documents/openapi.ts';
import { createRoutes, fitRoute } from '../../src/groups/group-routes.ts';
import { createGroups } from '../../src/live/load/registry.ts';
import { createFolder, write } from '../support/folder.ts';
import { GATEFOLD, parseRaw, type Service, startService } from '../support/service.ts';

const ECHO = '(_, { page, method, slugs, path }) { return { page, method, slugs, path } }';
const group = (...names: string[]) => `export default { ${names.map((name) => `'${name}'${ECHO}`).join(', ')} }`;
const service = (options: string) =>
  `import { defineService } from '${GATEFOLD}';\nexport default defineService({ ${options} });\n`;
const log = createLog({ level: 'silent', sink: { write() {}, flush() {} } });

const row = (...groups: string[]): CallerRow => ({
  application: { id: 'k', name: 'k' },
  handler: undefined,
  groups: new Set(groups),
  methods: undefined,
});
const rows: Record<string, CallerRow> = { order: row('Order'), root: row('/'), v2: row('v2/') };
const credentials = {
  identify: (name: string) => {
    const found = rows[name];
    return found === undefined ? ({ kind: 'foreign' } as const) : ({ kind: 'row', row: found } as const);
  },
};

describe('the root group', () => {
  let running: Service;
  const ask = async (path: string, method = 'GET', headers: Record<string, string> = {}) => {
    const text = await running.raw(
      `${method} ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${Object.entries(headers)
        .map(([name, value]) => `${name}: ${value}\r\n`)
        .join('')}\r\n`,
    );
    const { status, body } = parseRaw(text);
    return { ...(body === '' ? {} : (JSON.parse(body) as Record<string, unknown>)), status } as Record<string, unknown>;
  };
  before(async () => {
    running = await startService({
      controllers: {
        'service.mjs': service('folders: true'),
        'Controller.mjs': group('GET', 'GET robots.txt', 'GET {user}/{repo}', 'GET .well-known/{path*}', 'cancel'),
        'OrderController.mjs': group('index'),
        'BrokenController.mjs': 'throw new Error("broken")',
        'v2/Controller.mjs': group('GET', 'GET {id}'),
        'v2/ItemController.mjs': group('index'),
      },
      expectedErrors: ['request-failed'],
      parts: { credentials },
    });
  });
  after(() => running.close());

  for (const [path, expected] of [
    ['/api', { page: '/', method: 'GET', slugs: [] }],
    ['/api/', { page: '/', method: 'GET', slugs: [] }],
    ['/api/robots.txt', { page: '/', method: 'GET robots.txt', slugs: ['robots.txt'] }],
    ['/api/ada/engine', { page: '/', method: 'GET {user}/{repo}', path: { user: 'ada', repo: 'engine' } }],
    ['/api/.well-known/a/b', { page: '/', method: 'GET .well-known/{path*}', path: { path: 'a/b' } }],
    ['/api/.well-known/a%2Fb', { page: '/', method: 'GET .well-known/{path*}', slugs: ['.well-known', 'a/b'] }],
    ['/api/order', { page: 'order', method: 'index' }],
    ['/api/order/7', { page: 'order', method: 'index', slugs: ['7'] }],
    ['/api/order%2F7', { page: 'order', method: 'index', slugs: ['7'] }],
    ['/api/v2', { page: 'v2/', method: 'GET', slugs: [] }],
    ['/api/v2/7', { page: 'v2/', method: 'GET {id}', path: { id: '7' } }],
    ['/api/v2/item', { page: 'v2/item', method: 'index' }],
    ['/api/v2/item/7', { page: 'v2/item', method: 'index', slugs: ['7'] }],
  ] as const)
    test(`answers ${path} as ${expected.page}`, async () => {
      const { status, ...answer } = await ask(path);
      assert.equal(status, 200, JSON.stringify(answer));
      for (const [name, value] of Object.entries(expected)) assert.deepEqual(answer[name], value, name);
    });

  for (const [path, method, status, code] of [
    ['/api/ada%2Fengine', 'GET', 404, 'ROUTE_NOT_FOUND'],
    ['/api/v2%2Fitem', 'GET', 404, 'ROUTE_NOT_FOUND'],
    ['/api/nobody', 'GET', 404, 'ROUTE_NOT_FOUND'],
    ['/api/robots.txt', 'POST', 405, 'METHOD_NOT_ALLOWED'],
    ['/api/broken', 'GET', 500, 'GROUP_NOT_LOADABLE'],
    ['/api/broken/x', 'GET', 500, 'GROUP_NOT_LOADABLE'],
    ['/other', 'GET', 404, 'NOT_FOUND'],
  ] as const)
    test(`refuses ${method} ${path} with ${code}`, async () => {
      const { status: sent, error_code } = await ask(path, method);
      assert.deepEqual([sent, error_code], [status, code]);
    });

  test('an absent group is the root group, also for a foreign Authorization', async () => {
    assert.equal((await ask('/api/a/b', 'GET', { Authorization: 'Bearer x' })).method, 'GET {user}/{repo}');
    assert.equal((await ask('/api/nobody', 'GET', { Authorization: 'Bearer x' })).error_code, 'ROUTE_NOT_FOUND');
  });

  test('an operation without a route has its own URL, which takes POST', async () => {
    assert.equal((await ask('/api/cancel', 'POST')).method, 'cancel');
    assert.equal((await ask('/api/cancel')).error_code, 'METHOD_NOT_ALLOWED');
  });

  test('a key needs the root group by its name', async () => {
    const code = async (path: string, key: string) => (await ask(path, 'GET', { Authorization: key })).error_code;
    assert.equal(await code('/api/a/b', 'order'), 'GROUP_NOT_ALLOWED');
    assert.equal(await code('/api/a/b', 'root'), undefined);
    assert.equal(await code('/api/order', 'root'), 'GROUP_NOT_ALLOWED');
    assert.equal(await code('/api/v2/7', 'root'), 'GROUP_NOT_ALLOWED');
    assert.equal(await code('/api/v2/7', 'v2'), undefined);
  });

  test('a preflight is answered, whatever the path', async () => {
    assert.equal((await ask('/api/a/b', 'OPTIONS')).status, 200);
  });

  test('the page of the log is /', async () => {
    await ask('/api/robots.txt');
    assert.ok(
      running.lines.some(({ event, page, path }) => event === 'request' && page === '/' && path === '/api/robots.txt'),
    );
  });

  test('the client calls the root groups root and v2_root', async () => {
    type Route = (input?: object) => Promise<{ method: string; page: string }>;
    const client = createClient(running.url) as unknown as Record<string, Record<string, Route>>;
    assert.equal((await client.root?.GET?.())?.page, '/');
    assert.equal((await client.root?.['GET {user}/{repo}']?.({ path: { user: 'a', repo: 'b' } }))?.page, '/');
    assert.equal((await client.v2_root?.['GET {id}']?.({ path: { id: 7 } }))?.page, 'v2/');
  });

  test('its ids in the document begin with root', async (t) => {
    const dir = createFolder(t, { 'Controller.mjs': group('GET', 'GET {name}.json', 'ANY {path*}') });
    const groups = createGroups({ dir, log });
    await groups.loadAll({ skip: new Map(), onLoading: () => {} });
    for (const [base, prefix] of [
      ['/api', '/api'],
      ['', ''],
    ] as const) {
      const { paths } = createDocument(await groups.all(), { title: 't', version: '1' }, base);
      assert.deepEqual(
        Object.entries(paths).map(([path, item]) => [
          path,
          ...Object.entries(item).map(([verb, { operationId }]) => `${verb} ${operationId}`),
        ]),
        [
          [prefix || '/', 'get root_GET'],
          [`${prefix}/{name}.json`, 'get root_GET_by_name_json'],
          [`${prefix}/{path}`, 'x-any root_ANY_by_path'],
        ],
      );
    }
    const plain = createGroups({ dir: createFolder(t, { 'Controller.mjs': group('index') }), log });
    await plain.loadAll({ skip: new Map(), onLoading: () => {} });
    assert.deepEqual(Object.keys(createDocument(await plain.all(), { title: 't', version: '1' }, '').paths), ['/']);
  });
});

test('under BASE_PATH=/ the root group answers the root, and a new group takes over at its next request', async (t) => {
  const running = await startService({
    controllers: { 'Controller.mjs': group('GET', 'GET {name}') },
    settings: { BASE_PATH: '/' },
  });
  t.after(() => running.close());
  const pageOf = async (path: string) => ((await (await fetch(running.url + path)).json()) as { page: string }).page;
  assert.equal(await pageOf('/'), '/');
  assert.equal(await pageOf('/order'), '/');
  write(running.dir, 'OrderController.mjs', group('index'));
  assert.equal(await pageOf('/order'), 'order');
});

test('a new Controller.ts answers the next request, and it is strict', async (t) => {
  const running = await startService({ controllers: {}, expectedErrors: [] });
  t.after(() => running.close());
  assert.equal((await fetch(`${running.url}/api`)).status, 404);
  write(running.dir, 'Controller.mjs', group('index'));
  assert.equal((await fetch(`${running.url}/api`)).status, 200);
  assert.equal((await fetch(`${running.url}/api/whatever`)).status, 404);
});

test('RootController beside Controller is refused, also in a folder', async (t) => {
  const dir = createFolder(t, {
    'service.mjs': service('folders: true'),
    'Controller.mjs': group('GET'),
    'RootController.mjs': group('GET'),
    'v2/Controller.mjs': group('GET'),
    'v2/RootController.mjs': group('GET'),
  });
  const loads = await createGroups({ dir, log }).loadAll({ skip: new Map(), onLoading: () => {} });
  assert.deepEqual(loads.flatMap(({ file, ok }) => (ok ? [] : [file])).sort(), [
    'RootController.mjs',
    'v2/RootController.mjs',
  ]);
});

describe('routes', () => {
  const nameOf = (names: string[], verb: string, ...path: string[]) => {
    const fit = fitRoute(createRoutes(names), verb, path);
    return fit && [fit.route.name, fit.path];
  };

  test('ANY takes each method that no other route takes', () => {
    const names = ['ANY {id}', 'GET {path*}', 'POST {id}', 'ANY'];
    assert.deepEqual(nameOf(names, 'GET', '7'), ['GET {path*}', { path: '7' }]);
    assert.deepEqual(nameOf(names, 'HEAD', '7'), ['GET {path*}', { path: '7' }]);
    assert.deepEqual(nameOf(names, 'POST', '7'), ['POST {id}', { id: '7' }]);
    assert.deepEqual(nameOf(names, 'PROPFIND', '7'), ['ANY {id}', { id: '7' }]);
    assert.deepEqual(nameOf(names, 'DELETE'), ['ANY', {}]);
    assert.equal(nameOf(names, 'DELETE', '7', '8'), undefined);
  });

  test('a segment can end in a literal text', () => {
    const names = ['GET {name}.json', 'GET {name}.geo.json', 'GET {id}', 'GET all.json', 'GET {a}/{b}.txt/x'];
    assert.deepEqual(nameOf(names, 'GET', 'map.json'), ['GET {name}.json', { name: 'map' }]);
    assert.deepEqual(nameOf(names, 'GET', 'map.geo.json'), ['GET {name}.geo.json', { name: 'map' }]);
    assert.deepEqual(nameOf(names, 'GET', 'all.json'), ['GET all.json', {}]);
    assert.deepEqual(nameOf(names, 'GET', '.json'), ['GET {id}', { id: '.json' }]);
    assert.deepEqual(nameOf(names, 'GET', 'a', 'b.txt', 'x'), ['GET {a}/{b}.txt/x', { a: 'a', b: 'b' }]);
    assert.throws(() => createRoutes(['GET {a}.json', 'GET {b}.json']), /can never be reached/);
    for (const name of ['GET {name*}.json', 'GET {a}{b}', 'GET x{a}', 'GET {a}.j on', 'GET {a}.%20'])
      assert.throws(() => createRoutes([name]), /is no route/, name);
  });
});

test('the origin check of an ANY route goes by the method of the request', async (t) => {
  const running = await startService({
    controllers: {
      'service.mjs': service('authenticate: () => undefined'),
      'AController.mjs': group('ANY {path*}'),
    },
  });
  t.after(() => running.close());
  const statusOf = async (method: string, headers: Record<string, string>) =>
    (await fetch(`${running.url}/api/a/x`, { method, headers: { cookie: 'a=b', ...headers } })).status;
  assert.equal(await statusOf('GET', { 'sec-fetch-site': 'cross-site' }), 200);
  assert.equal(await statusOf('POST', { 'sec-fetch-site': 'cross-site' }), 403);
  assert.equal(await statusOf('PURGE', { 'sec-fetch-site': 'cross-site' }), 403);
  assert.equal(await statusOf('POST', {}), 200);
});
