// BASE_PATH over a socket: paths with and without the prefix, for several prefixes and for none.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createClient } from '../../src/api/client.ts';
import { startTest, type TestApi } from '../../src/api/testing.ts';
import { createRouter } from '../../src/request/router.ts';
import { routeTable } from '../../src/request/routes.ts';
import { createFolder } from '../support/folder.ts';
import { asRaw, assertEnvelope, type Service, startService } from '../support/service.ts';

const controllers = {
  'UserController.mjs': `export default {
    'GET'(_, params) { return { page: params.page, slugs: params.slugs, base: params.base, keys: Object.keys(params) } },
    'PUT'(data) { return { data } },
    'GET {id}'(_, { path, page }) { return { page, id: path.id } },
  }`,
  'ApiController.mjs': 'export default { index(_, { slugs }) { return { api: slugs } } }',
  'RegisterController.mjs': 'export default { index() { return { group: true } } }',
};

/** The values of BASE_PATH, and the prefix of each. */
for (const [base, prefix] of [
  ['/api', '/api'],
  ['/v1', '/v1'],
  ['/v1/', '/v1'],
  ['/shop/v1', '/shop/v1'],
  ['/api/api', '/api/api'],
  ['/', ''],
] as const)
  describe(`BASE_PATH=${base}`, () => {
    let service: Service;
    before(async () => {
      service = await startService({ controllers, settings: { BASE_PATH: base }, expectedErrors: ['request-failed'] });
    });
    after(() => service.close());
    const get = (path: string, init?: RequestInit) => fetch(service.url + path, init);
    const json = async (path: string) => (await get(path)).json() as Promise<Record<string, unknown>>;

    test('is the prefix of groups and their routes', async () => {
      assert.deepEqual(await json(`${prefix}/user`), {
        page: 'user',
        slugs: [],
        base: prefix,
        keys: ['page', 'method', 'verb', 'slugs', 'query', 'requestId'],
      });
      assert.deepEqual(await json(`${prefix}/user/7`), { page: 'user', id: '7' });
      assert.deepEqual(await json(`${prefix}//user/7/`), { page: 'user', id: '7' });
      assert.deepEqual(await json(`${prefix}/user%2F7`), { page: 'user', id: '7' });
    });

    test('is the prefix of the explicit routes, which the log names without it', async () => {
      assert.equal((await get(`${prefix}/register`, { method: 'POST' })).status, 201);
      assert.deepEqual(await json(`${prefix}/register`), { group: true });
      assert.equal((await get(`${prefix}/docs/`)).status, 200);
      const pages = service.lines.filter(({ event }) => event === 'request').map(({ page }) => page);
      assert.ok(pages.includes('register') && pages.includes('docs'), String(pages));
    });

    test('is answered as a path itself, with a slash at the end and without', async () => {
      for (const path of [prefix, `${prefix}/`]) {
        const answer = await asRaw(await get(path || '/'));
        assertEnvelope(answer, 404, 'GROUP_NOT_FOUND');
      }
      const preflight = await get(`${prefix}/`, { method: 'OPTIONS' });
      assert.deepEqual([preflight.status, await preflight.text()], [200, '']);
    });

    test('answers paths outside of it with 404', async () => {
      for (const path of ['/user', '/ap/user', '/apis/user', '/v1x/user', '/v11/user', '/shop/user', '/%2Fapi/user']) {
        if (prefix === '' && path === '/user') continue;
        const answer = await asRaw(await get(path));
        assertEnvelope(answer, 404, prefix === '' ? 'GROUP_NOT_FOUND' : 'NOT_FOUND');
        if (prefix !== '') assert.equal(JSON.parse(answer.body).message, `Nothing is served outside ${prefix}`);
      }
      if (prefix === '') assert.deepEqual(await json('/api/user'), { api: ['user'] });
      if (prefix === '/v1') assert.equal((await get('/api/user')).status, 404);
    });

    test('does not match with an encoded slash', async () => {
      const slash = encodeURIComponent('/');
      const paths = [`${prefix}${slash}user`, `${prefix.replaceAll(/(?<!^)\//g, slash)}${slash}user`];
      for (const path of paths) assert.equal((await get(path.replace(/^(?!\/)/, '/'))).status, 404, path);
    });

    test('is accepted by the client, with a slash at the end and without', async () => {
      const at = `${service.url}${prefix || '/.'}`;
      for (const url of [at, `${at}/`]) {
        const api = createClient<{ user: { PUT(data: { name: string }): { data: unknown } } }>(url);
        assert.deepEqual(await api.user.PUT({ body: { name: 'x' } }), { data: { name: 'x' } });
      }
    });

    test('is in the generic rows of the route table, and the root has one row less', () => {
      const rows = routeTable('on', prefix).map(({ path }) => path);
      const generic = prefix === '' ? ['/', '/{params}'] : [prefix, `${prefix}/`, `${prefix}/{params}`];
      assert.deepEqual(rows.slice(4), generic);
      const { matches } = createRouter(routeTable('off', prefix), prefix).resolve(`${prefix}/docs/x`);
      assert.deepEqual(
        matches.map(({ groupInUrl, slugs }) => [groupInUrl, slugs]),
        [['docs', ['x']]],
      );
    });
  });

describe('startTest with BASE_PATH', () => {
  for (const base of ['/v1/shop', '/'])
    test(`${base} applies to fetch, the client and the OpenAPI document`, async (t) => {
      const prefix = base === '/' ? '' : base;
      const api: TestApi = await startTest({ controllers: createFolder(t, controllers), env: { BASE_PATH: base } });
      t.after(() => api.close());
      for (const path of [`${prefix}/user/7`, '/user/7', 'user/7'])
        assert.deepEqual(await (await api.fetch(path)).json(), { page: 'user', id: '7' });
      const client = api.client<{ user: { 'GET {id}'(): { id: string } } }>();
      assert.equal((await client.user['GET {id}']({ path: { id: 8 } })).id, '8');
      const document = (await (await api.fetch('/openapi.json')).json()) as {
        servers: { url: string }[];
        paths: Record<string, object>;
      };
      assert.deepEqual(document.servers, [{ url: base }]);
      assert.deepEqual(Object.keys(document.paths), ['/api', '/register', '/user', '/user/{id}']);
    });
});

test('a route table may have its base with and without a slash at the end, but no row twice', () => {
  const generic = (path: string) => ({ methods: 'any', path, target: 'gateway.index' }) as const;
  createRouter([generic('/a/b'), generic('/a/b/'), generic('/a/b/{params}')], '/a/b');
  assert.throws(() => createRouter([generic('/a/b'), generic('/a/b')], '/a/b'), /can never be reached/);
});
