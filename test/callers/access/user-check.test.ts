// Asynchronous functions of the service file: `authenticate`, and functions in `access`.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request as sendRequest } from 'node:http';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { asRaw, assertEnvelope, GATEFOLD, parseRaw, type Service, startService } from '../../support/service.ts';

const controllers = {
  'service.mjs': `
    import { defineService } from '${GATEFOLD}';
    export default defineService({
      async authenticate({ authorization, address, signal, log }) {
        log.info('asked', { address, aborted: signal.aborted });
        await null;
        if (authorization === 'Token late') await new Promise((done, fail) => { globalThis.failLate = fail });
        return { id: 'ann' };
      },
    });`,
  'DeskController.mjs': `
    const asked = globalThis.askedRules = [];
    const rule = (name, verdict) => () => { asked.push(name); return verdict };
    export default class {
      static operations = {
        created: { timeout: 300, access: ['user', rule('first', Promise.resolve(true)), rule('second', true)] },
        refused: { access: [rule('refuses', Promise.resolve(false)), rule('never', true)] },
        index: { timeout: 40 },
      };
      created(data, { cookies }) { return { data, cookies } }
      refused() { return {} }
      index() { return {} }
    }`,
};
const shared = globalThis as unknown as { askedRules: string[]; failLate: (error: Error) => void };
let service: Service;
before(async () => {
  service = await startService({ controllers, expectedErrors: ['request-failed'] });
});
after(() => service.close());

test('the cookies of several lines are one list', async () => {
  const { host } = new URL(service.url);
  const lines = ['Host', host, 'Cookie', 'a=1; b=2', 'cookie', 'c=3', 'Cookie', 'a=4', 'Content-Length', '0'];
  const request = sendRequest(`${service.url}/api/desk`, { method: 'POST', headers: lines }).end();
  const [answer] = (await once(request, 'response')) as [IncomingMessage];
  const { cookies } = JSON.parse((await answer.toArray()).join('')) as { cookies: unknown };
  assert.deepEqual(cookies, { a: '1', b: '2', c: '3' });
  shared.askedRules.splice(0);
});

test('authenticate is awaited first, and then each access rule in order', async () => {
  // A subdomain can set a cookie such as `\u00a0d`, which is another name than `d`.
  const cookie = '=x; \u00a0d=w;\t a=%zz; b=%20; =c; d="e"; d=f; g';
  const headers = { cookie, 'content-type': 'application/json' };
  const answer = await fetch(`${service.url}/api/desk`, { method: 'POST', headers, body: '[1]' });
  assert.deepEqual(await answer.json(), { data: [1], cookies: { '\u00a0d': 'w', a: '%zz', b: ' ', d: 'e' } });
  assert.deepEqual(shared.askedRules.splice(0), ['first', 'second']);
  const line = service.lines.find(({ event }) => event === 'operation-info');
  assert.deepEqual([line?.message, line?.address, line?.aborted], ['asked', '127.0.0.1', false]);
});

test('an access rule that refuses is the last one that is called', async () => {
  assertEnvelope(await asRaw(await fetch(`${service.url}/api/desk/refused`)), 403, 'ACCESS_DENIED');
  assert.deepEqual(shared.askedRules.splice(0), ['refuses']);
});

test('the time limit does not run while the body arrives', async () => {
  const socket = connect(service.port, '127.0.0.1').setEncoding('latin1');
  socket.write('POST /api/desk HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3\r\n\r\n[');
  await sleep(400);
  socket.write('2]');
  assert.match(parseRaw((await socket.toArray()).join('')).body, /"data":\[2\]/);
});

test('an error of authenticate after the time limit is logged', async () => {
  const answer = await fetch(`${service.url}/api/desk`, { headers: { authorization: 'Token late' } });
  assertEnvelope(await asRaw(answer), 503, 'OPERATION_TIMEOUT');
  shared.failLate(new Error('the pool is closed'));
  await sleep(0);
  const line = service.lines.find(({ event }) => event === 'operation-failed-late');
  assert.deepEqual([line?.operation, line?.error], ['index', 'the pool is closed']);
});

for (const [name, schemes, header] of [
  [
    'names each scheme of HTTP once',
    "a: { type: 'http', scheme: 'bearer' }, b: { type: 'http', scheme: 'BEARER' }, c: { type: 'http', scheme: 'basic' }",
    'Bearer, Basic',
  ],
  ['is not sent without a scheme of HTTP', "key: { type: 'apiKey', in: 'header', name: 'X-Key' }", null],
] as const)
  test(`WWW-Authenticate ${name}`, async () => {
    const other = await startService({
      controllers: {
        'service.mjs': `import { defineService } from '${GATEFOLD}';
          export default defineService({ authenticate: () => undefined, securitySchemes: { ${schemes} } });`,
        'DeskController.mjs':
          "export default class { static operations = { '*': { access: 'user' } }; index() { return {} } }",
      },
    });
    const answer = await fetch(`${other.url}/api/desk`);
    await answer.text();
    await other.close();
    assert.deepEqual([answer.status, answer.headers.get('www-authenticate')], [401, header]);
  });
