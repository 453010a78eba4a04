// The rights of a row: groups by URL, methods and scopes. Also a credential that was written a moment ago.
import assert from 'node:assert/strict';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createLog } from '../../../src/base/log.ts';
import { type Credentials, createCredentials, MAX_WAITING } from '../../../src/callers/credentials/credentials.ts';
import { generateToken, hashSecret } from '../../../src/callers/credentials/token.ts';
import { makeRow, tableText } from '../../support/credentials-bench.ts';
import { asRaw, assertEnvelope, type Service, startService } from '../../support/service.ts';

const OPERATIONS = ['index', 'created', 'red', 'patch', 'deleted', 'updated', 'options', 'hello'];
const source = (name: string) =>
  `export default { ${OPERATIONS.map((op) => `${op}: (data, { application }) => ({ group: '${name}', op: '${op}', application })`).join(', ')} };`;
const CONTROLLERS = {
  'OrderController.mjs': source('Order'),
  'UserController.mjs': source('User'),
  'SdkController.mjs': source('Sdk'),
  'PageController.mjs': `export default { 'GET'() {} };`,
};

const rows = {
  one: makeRow({ name: 'one', groups: ['order'], scopes: ['orders:read', 'orders:write'] }),
  all: makeRow({ name: 'all', groups: '*' }),
  none: makeRow({ name: 'none', groups: [] }),
  reader: makeRow({ name: 'reader', groups: '*', methods: ['GET'] }),
  pinger: makeRow({ name: 'pinger', groups: '*', methods: ['HEAD'] }),
  writer: makeRow({ name: 'writer', groups: '*', methods: ['GET', 'PUT'] }),
  sdk: makeRow({ name: 'sdk', methods: ['GET'] }),
  disabled: makeRow({ name: 'disabled', groups: '*', disabled: true }),
  unlimited: makeRow({ name: 'unlimited', groups: '*', disabled: false, team: 'a' }),
};

let data: string;
let service: Service;
let credentials: Credentials;
before(async () => {
  data = mkdtempSync(join(tmpdir(), 'gatefold-rights-'));
  writeFileSync(join(data, 'production.json'), tableText(...Object.values(rows).map(({ row }) => row)));
  const log = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });
  credentials = await createCredentials({ dataDir: data, sessionKey: 'k'.repeat(32), log });
  service = await startService({
    controllers: CONTROLLERS,
    parts: { credentials },
    expectedErrors: ['request-failed'],
  });
});
after(async () => {
  credentials.close();
  await service.close();
  rmSync(data, { recursive: true, force: true });
});

const ask = async (verb: string, path: string, token: string) =>
  asRaw(await fetch(service.url + path, { method: verb, headers: { authorization: `Bearer ${token}` } }));

describe('groups and methods', () => {
  type Who = keyof typeof rows;
  const served: [who: Who, verb: string, path: string, group: string, op: string][] = [
    ['one', 'GET', '/api/order', 'Order', 'index'],
    ['one', 'POST', '/api/Order', 'Order', 'created'],
    ['one', 'GET', '/api/order/hello', 'Order', 'hello'],
    ['one', 'GET', '/api/order/deleted/7', 'Order', 'deleted'],
    ['all', 'DELETE', '/api/user/7', 'User', 'deleted'],
    ['all', 'GET', '/api/sdk', 'Sdk', 'index'],
    ['reader', 'GET', '/api/order/index', 'Order', 'index'],
    ['reader', 'GET', '/api/order/hello', 'Order', 'hello'],
    ['writer', 'GET', '/api/order/updated', 'Order', 'updated'],
    ['writer', 'PUT', '/api/order/red', 'Order', 'red'],
    ['sdk', 'GET', '/api/order', 'Sdk', 'index'],
    ['unlimited', 'GET', '/api/order', 'Order', 'index'],
  ];
  for (const [who, verb, path, group, op] of served) {
    test(`${who}: ${verb} ${path} is ${group} ${op}`, async () => {
      const { status, body } = await ask(verb, path, rows[who].token);
      const answer = JSON.parse(body) as { group: string; op: string; application: { id: string } };
      assert.deepEqual([status, answer.group, answer.op, answer.application.id], [200, group, op, rows[who].id]);
    });
  }

  const refused: [who: Who, verb: string, path: string, status: number, code: string, allow?: string][] = [
    ['one', 'GET', '/api/user', 403, 'GROUP_NOT_ALLOWED'],
    ['one', 'GET', '/api/absent', 403, 'GROUP_NOT_ALLOWED'],
    ['one', 'GET', '/api/ORDER', 403, 'GROUP_NOT_ALLOWED'],
    ['one', 'GET', '/api', 403, 'GROUP_NOT_ALLOWED'],
    ['none', 'GET', '/api/order', 403, 'GROUP_NOT_ALLOWED'],
    ['all', 'GET', '/api/absent', 404, 'GROUP_NOT_FOUND'],
    ['all', 'GET', '/api', 404, 'GROUP_NOT_FOUND'],
    ['reader', 'POST', '/api/order', 405, 'METHOD_NOT_ALLOWED', 'GET'],
    ['reader', 'POST', '/api/order/index', 405, 'METHOD_NOT_ALLOWED', 'GET'],
    ['reader', 'GET', '/api/order/created', 405, 'METHOD_NOT_ALLOWED', 'GET'],
    ['reader', 'GET', '/api/order/deleted/7', 405, 'METHOD_NOT_ALLOWED', 'GET'],
    ['reader', 'GET', '/api/order/updated/7', 405, 'METHOD_NOT_ALLOWED', 'GET'],
    ['writer', 'GET', '/api/order/patch', 405, 'METHOD_NOT_ALLOWED', 'GET, PUT'],
    ['sdk', 'GET', '/api/order/deleted', 405, 'METHOD_NOT_ALLOWED', 'GET'],
    ['disabled', 'GET', '/api/order', 401, 'INVALID_CREDENTIAL'],
  ];
  for (const [who, verb, path, status, code, allow] of refused) {
    test(`${who}: ${verb} ${path} is ${status} ${code}`, async () => {
      const answer = await ask(verb, path, rows[who].token);
      assertEnvelope(answer, status, code);
      assert.equal(answer.headers.get('allow'), allow);
    });
  }
});

test('a key for HEAD alone calls the operation of GET by HEAD, and nothing else', async () => {
  const calls: [verb: string, path: string, status: number][] = [
    ['HEAD', '/api/order', 200],
    ['HEAD', '/api/order/index', 200],
    ['HEAD', '/api/page', 200],
    ['HEAD', '/api/order/deleted/7', 405],
    ['GET', '/api/order', 405],
    ['GET', '/api/page', 405],
  ];
  for (const [verb, path, status] of calls)
    assert.equal((await ask(verb, path, rows.pinger.token)).status, status, `${verb} ${path}`);
});

test('params.application has the scopes of its row, and no scopes for a row without them', async () => {
  const scopesOf = async (token: string) => {
    const { body } = await ask('GET', '/api/order', token);
    return (JSON.parse(body) as { application: { scopes?: string[] } }).application.scopes;
  };
  assert.deepEqual(await scopesOf(rows.one.token), ['orders:read', 'orders:write']);
  assert.equal(await scopesOf(rows.all.token), undefined);
});

test('a new key and a rotated key work on the next request, and the old key is refused', async () => {
  const write = (...added: object[]) => {
    writeFileSync(join(data, 'new'), tableText(...Object.values(rows).map(({ row }) => row), ...added));
    renameSync(join(data, 'new'), join(data, 'production.json'));
  };
  const fresh = makeRow({ name: 'fresh', groups: '*' });
  write(fresh.row);
  assert.equal((await ask('GET', '/api/order', fresh.token)).status, 200);
  const { token, secret } = generateToken(undefined, fresh.id);
  write({ ...fresh.row, hash: hashSecret(secret) });
  assert.equal((await ask('GET', '/api/order', token)).status, 200);
  assertEnvelope(await ask('GET', '/api/order', fresh.token), 401, 'INVALID_CREDENTIAL');
});

test('a limited number of unknown tokens waits for a look at the file, and the others are refused at once', async () => {
  const answers = Array.from({ length: 200 }, () => credentials.identify(generateToken().token));
  assert.equal(answers.filter((answer) => answer instanceof Promise).length, MAX_WAITING);
  for (const answer of await Promise.all(answers)) assert.equal(answer.kind, 'refused');
  assert.ok(credentials.identify(generateToken().token) instanceof Promise);
});
