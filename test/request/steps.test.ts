// The order of a request's steps: one request has a fault for each step, and loses them one by one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRate } from '../../src/base/rate.ts';
import { checkGroup } from '../../src/callers/access/credential-rights.ts';
import { moduleUrl } from '../support/own-modules.ts';
import { parseRaw, startService } from '../support/service.ts';

const GATEFOLD = moduleUrl('src/api/controller');
const controllers = {
  'OrderController.ts': `
    import { HttpError } from ${JSON.stringify(GATEFOLD)};
    const refuse = (code: string): never => { throw new HttpError(409, code, 'refused'); };
    export class OrderController {
      static operations = { place: { access: { scope: 'orders' }, limit: '1/h' } };
      _before(data: { step?: string }) { if (data.step === 'before') refuse('BEFORE'); }
      _after(result: { step?: string }) { if (result.step === 'after') refuse('AFTER'); }
      'GET {id}'() { return {}; }
      place(data: { step: string }) { return data.step === 'operation' ? refuse('OPERATION') : data; }
      spend() { return {}; }
    }`,
};
const row = (id: string, rights: object = {}) => ({
  kind: 'row' as const,
  row: {
    application: { id, name: id, scopes: ['orders'] },
    handler: undefined,
    groups: '*',
    methods: undefined,
    ...rights,
  },
});
const narrow = { methods: new Set(['GET']), groups: new Set(['Other']) };
const CALLERS: Readonly<Record<string, object>> = {
  refused: { kind: 'refused', reason: 'unknown' },
  spent: row('spent', { ...narrow, limit: parseRate('1/h') }),
  reader: row('reader', narrow),
  narrow: row('narrow', { ...narrow, methods: undefined }),
  plain: row('plain', { application: { id: 'plain', name: 'plain' } }),
  often: row('often'),
  good: row('good'),
};

test('a request is refused by its first faulty step, in the order of the steps', async (t) => {
  const identify = (text: string) => CALLERS[text] ?? { kind: 'foreign' };
  const service = await startService({ controllers, parts: { credentials: { identify } as never } });
  t.after(service.close);
  const ask = async (verb: string, host: string, target: string, key: string, body: string) => {
    const head = `${verb} ${target} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: ${key}\r\nContent-Type: application/json\r\n`;
    const answer = parseRaw(await service.raw(`${head}Content-Length: ${body.length}\r\n\r\n${body}`));
    const { error_code } = JSON.parse(answer.body) as { error_code?: string };
    return `${answer.status} ${error_code ?? ''}`.trim();
  };
  assert.equal(await ask('GET', 'x', '/api/order/1', 'spent', ''), '403 GROUP_NOT_ALLOWED');
  assert.equal(await ask('POST', 'x', '/api/order/place', 'often', '{"step":"none"}'), '200');

  const json = (step: unknown) => JSON.stringify({ step });
  for (const [expected, host, target, key, body] of [
    ['400 MALFORMED_HOST', 'a,b', '/%zz', 'refused', '{'],
    ['400 MALFORMED_PATH', 'x', '/%zz', 'refused', '{'],
    ['404 NOT_FOUND', 'x', '/nowhere', 'refused', '{'],
    ['401 INVALID_CREDENTIAL', 'x', '/api/absent/a/b', 'refused', '{'],
    ['429 RATE_LIMITED', 'x', '/api/absent/a/b', 'spent', '{'],
    ['405 METHOD_NOT_ALLOWED', 'x', '/api/absent/a/b', 'reader', '{'],
    ['403 GROUP_NOT_ALLOWED', 'x', '/api/absent/a/b', 'narrow', '{'],
    ['404 GROUP_NOT_FOUND', 'x', '/api/absent/a/b', 'plain', '{'],
    ['404 ROUTE_NOT_FOUND', 'x', '/api/order/a/b', 'plain', '{'],
    ['403 SCOPE_MISSING', 'x', '/api/order/place', 'plain', '{'],
    // Still not a request that the limit counts.
    ['403 SCOPE_MISSING', 'x', '/api/order/place', 'plain', '{'],
    ['429 RATE_LIMITED', 'x', '/api/order/place', 'often', '{'],
    ['400 MALFORMED_JSON', 'x', '/api/order/place', 'good', '{'],
  ] as const)
    assert.equal(await ask('POST', host, target, key, body), expected, `${target} with the key ${key}`);

  // Each of these requests counts for the limit of the operation, so each has a key of its own.
  for (const [index, [expected, body]] of (
    [
      ['422 INVALID_DATA', json(1)],
      ['409 BEFORE', json('before')],
      ['409 OPERATION', json('operation')],
      ['409 AFTER', json('after')],
      ['200', json('none')],
    ] as const
  ).entries()) {
    const key = `key ${index}`;
    (CALLERS as Record<string, object>)[key] = row(key);
    assert.equal(await ask('POST', 'x', '/api/order/place', key, body), expected, body);
  }
});

test('a request that is refused while its group is imported never reaches the operation', async (t) => {
  const controllers = {
    'SlowController.mjs': `
      await new Promise((open) => { globalThis.openSlowGroup = open; });
      export class SlowController {
        static operations = { created: { body: 'stream' } };
        created() { globalThis.slowGroupRan = true; return {}; }
        index() { return { ran: globalThis.slowGroupRan === true }; }
      }`,
  };
  const service = await startService({ controllers });
  t.after(service.close);
  const answer = parseRaw(
    await service.raw('POST /api/slow HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\n'),
  );
  assert.equal(answer.status, 400);
  const later = fetch(`${service.url}/api/slow`);
  const globals = globalThis as { openSlowGroup?: () => void };
  while (globals.openSlowGroup === undefined) await new Promise(setImmediate);
  globals.openSlowGroup();
  assert.deepEqual(await (await later).json(), { ran: false });
});

test('a row with neither a handler nor groups allows no group', () => {
  const row = { application: { id: 'app', name: 'App' }, handler: undefined, methods: undefined };
  assert.throws(() => checkGroup(row, 'order'), { code: 'GROUP_NOT_ALLOWED' });
  assert.doesNotThrow(() => checkGroup({ ...row, groups: '*' }, 'order'));
});
