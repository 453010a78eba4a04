// Groups with routes, over a socket: which route is chosen, and which requests are refused how. A group without routes
// behaves as before.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { asRaw, assertEnvelope, parseRaw, type Service, startService } from '../support/service.ts';

const ECHO = '(data, { method, path, slugs }) { return { method, path, slugs } }';
const controllers = {
  'OrderController.mjs': `class Base {
      'GET {id}/history'${ECHO}
      created${ECHO}
      helper${ECHO}
    }
    export default class extends Base {
      index${ECHO}
      pay${ECHO}
      updated${ECHO}
      'GET export.csv'${ECHO}
      'GET params'(data, params) { return { ...params, keys: Object.keys(params) } }
      'GET {id}'${ECHO}
      'PATCH {id}'${ECHO}
      'GET {id}/items/{item}'${ECHO}
      'POST {id}/pay'${ECHO}
      'GET files/{path*}'${ECHO}
    }`,
  'PlainController.mjs': `export default { index${ECHO}, created${ECHO}, pay${ECHO} }`,
  'UnreachableController.mjs': `export default { 'GET {id}'() {}, 'GET {name}'() {} }`,
  'WrongController.mjs': `export default { index() {}, 'get {id}'() {} }`,
  'SettingsController.mjs': 'export default class { static operations = { index: { acess: 1 } }; index() {} }',
};

let service: Service;
before(async () => {
  service = await startService({ controllers, expectedErrors: ['request-failed', 'group-not-loadable'] });
});
after(() => service.close());
const ask = (verb: string, path: string) => fetch(service.url + path, { method: verb });

describe('a group with routes', () => {
  const answered: [verb: string, path: string, method: string, captured: Record<string, string>][] = [
    ['GET', '/api/order', 'index', {}],
    ['POST', '/api/order', 'created', {}],
    ['POST', '/api/order/pay', 'pay', {}],
    ['POST', '/api/order/pay/7', 'pay', {}],
    ['POST', '/api/order/updated', 'updated', {}],
    ['GET', '/api/order/pay', 'GET {id}', { id: 'pay' }],
    ['GET', '/api/order/created', 'GET {id}', { id: 'created' }],
    ['PATCH', '/api/order/updated', 'PATCH {id}', { id: 'updated' }],
    ['GET', '/api/order/export.csv', 'GET export.csv', {}],
    ['GET', '/api/order/7/items/3', 'GET {id}/items/{item}', { id: '7', item: '3' }],
    ['GET', '/api/order/7//items/3/', 'GET {id}/items/{item}', { id: '7', item: '3' }],
    ['GET', '/api/order/%37%2f8', 'GET {id}', { id: '7/8' }],
    ['GET', '/api/order/GET%20%7Bid%7D', 'GET {id}', { id: 'GET {id}' }],
    ['POST', '/api/order/7/pay', 'POST {id}/pay', { id: '7' }],
    ['GET', '/api/order/7/history', 'GET {id}/history', { id: '7' }],
    ['GET', '/api/order/files/a/b%2Fc', 'GET files/{path*}', { path: 'a/b/c' }],
    ['GET', '/api/order%2F7', 'GET {id}', { id: '7' }],
  ];
  for (const [verb, path, method, captured] of answered) {
    test(`${verb} ${path} → ${method}`, async () => {
      const answer = await ask(verb, path);
      const body = (await answer.json()) as Record<string, unknown>;
      assert.deepEqual([answer.status, body.method, body.path], [200, method, captured]);
    });
  }

  const refused: [verb: string, path: string, status: number, code: string, allow?: string][] = [
    ['GET', '/api/order/7/nothing', 404, 'ROUTE_NOT_FOUND'],
    ['DELETE', '/api/order/7/items/3/4', 404, 'ROUTE_NOT_FOUND'],
    ['POST', '/api/order/created', 405, 'METHOD_NOT_ALLOWED', 'GET, HEAD, PATCH, OPTIONS'],
    ['POST', '/api/order/GET%20%7Bid%7D', 405, 'METHOD_NOT_ALLOWED', 'GET, HEAD, PATCH, OPTIONS'],
    ['DELETE', '/api/order/7', 405, 'METHOD_NOT_ALLOWED', 'GET, HEAD, PATCH, OPTIONS'],
    ['DELETE', '/api/order/pay', 405, 'METHOD_NOT_ALLOWED', 'GET, HEAD, POST, PATCH, OPTIONS'],
    ['GET', '/api/order/7/pay', 405, 'METHOD_NOT_ALLOWED', 'POST, OPTIONS'],
    ['DELETE', '/api/order', 405, 'METHOD_NOT_ALLOWED', 'GET, HEAD, POST, OPTIONS'],
    ['PROPFIND', '/api/order', 405, 'METHOD_NOT_ALLOWED', 'GET, HEAD, POST, OPTIONS'],
    ['PROPFIND', '/api/order/7', 405, 'METHOD_NOT_ALLOWED', 'GET, HEAD, PATCH, OPTIONS'],
    ['POST', '/api/order/helper', 405, 'METHOD_NOT_ALLOWED', 'GET, HEAD, PATCH, OPTIONS'],
  ];
  for (const [verb, path, status, code, allow] of refused) {
    test(`${verb} ${path} is ${status} ${code}`, async () => {
      const answer = await asRaw(await ask(verb, path));
      assertEnvelope(answer, status, code);
      assert.equal(answer.headers.get('allow') ?? undefined, allow);
    });
  }

  test('HEAD runs the route of GET, and returns its headers without a body', async () => {
    const get = await ask('GET', '/api/order/7');
    const head = parseRaw(await service.raw('HEAD /api/order/7 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'));
    assert.deepEqual([head.status, head.body], [200, '']);
    assert.equal(head.headers.get('content-length'), get.headers.get('content-length'));
  });

  test('the captured segments are not among the enumerable keys of params', async () => {
    const body = (await (await ask('GET', '/api/order/params')).json()) as { keys: string[]; method: string };
    assert.deepEqual(body.keys, ['page', 'method', 'verb', 'slugs', 'query', 'requestId']);
  });
});

test('a group without routes runs the operation that the URL names, whatever the verb is', async () => {
  for (const [verb, path, method] of [
    ['GET', '/api/plain/pay', 'pay'],
    ['GET', '/api/plain/created', 'created'],
    ['DELETE', '/api/plain/pay/7', 'pay'],
    ['GET', '/api/plain/7/items', 'index'],
  ] as const) {
    assert.equal(((await (await ask(verb, path)).json()) as { method: string }).method, method);
  }
});

test('a file with invalid routes or settings does not load, and the reason is logged', async () => {
  for (const [page, reason] of [
    ['unreachable', /route 'GET \{name\}' can never be reached: 'GET \{id\}' takes all of its paths/],
    ['wrong', /"get \{id\}" is no route: it must begin with one of GET, HEAD/],
    ['settings', /static operations: "index" has the unknown property acess/],
  ] as const) {
    assertEnvelope(await asRaw(await ask('GET', `/api/${page}`)), 500, 'GROUP_NOT_LOADABLE');
    const line = service.lines.findLast(({ event }) => event === 'group-not-loadable');
    assert.match(String(line?.error), reason);
  }
});
