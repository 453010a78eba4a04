// `cors` with a function in `origins`, with `methods` and `preflightStatus`, over a socket.
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { GATEFOLD, parseRaw, startService } from '../../support/service.ts';

const ORIGINS = `(origin, { headers }) => {
  globalThis.corsAsked?.(origin);
  if (origin === 'https://throws.example') throw new Error('x');
  if (origin === 'https://promise.example') return Promise.reject(new Error('x'));
  if (origin === 'https://one.example') return 1;
  if (origin === 'https://any.example' || origin === 'null' || origin === '*') return true;
  return origin === 'https://' + headers['x-tenant'] + '.example';
}`;

async function start(t: TestContext, cors: string) {
  const service = await startService({
    controllers: {
      'service.mjs': `import { defineService } from '${GATEFOLD}';
        export default defineService({ authenticate: () => undefined, cors: { ${cors} } });`,
      'XController.mjs': 'export default class { index() { return {} } created() { return {} } }',
    },
  });
  t.after(service.close);
  const send = async (method: string, headers: Readonly<Record<string, string>>) => {
    const lines = Object.entries({ Host: 'a', Connection: 'close', 'Content-Length': '0', ...headers });
    const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
    return parseRaw(await service.raw(`${method} /api/x HTTP/1.1\r\n${head}\r\n`, 9));
  };
  return { ...service, send };
}

describe('origins as a function', () => {
  const rows: [origin: string, tenant: string, isAllowed: boolean][] = [
    ['https://any.example', '', true],
    ['https://ann.example', 'ann', true],
    ['https://ann.example', 'bob', false],
    ['https://ann.example', 'ann', true],
    ['https://throws.example', '', false],
    ['https://promise.example', '', false],
    ['https://one.example', '', false],
    ['null', '', false],
    ['*', '', false],
    ['https://a.example, https://any.example', '', false],
  ];
  for (const credentials of [false, true]) {
    it(`is asked for each request, ${credentials ? 'with' : 'without'} credentials`, async (t) => {
      const { send } = await start(t, `origins: ${ORIGINS}, credentials: ${credentials}`);
      for (const [origin, tenant, isAllowed] of rows) {
        const sent = { Origin: origin, 'X-Tenant': tenant };
        for (const method of ['GET', 'OPTIONS']) {
          const { status, headers } = await send(method, sent);
          const shown = `${method} ${origin} ${tenant}`;
          assert.equal(status, 200, shown);
          assert.equal(headers.get('access-control-allow-origin'), isAllowed ? origin : undefined, shown);
          assert.equal(headers.get('vary'), 'Origin', shown);
          assert.equal(headers.get('access-control-allow-credentials'), isAllowed && credentials ? 'true' : undefined);
        }
        const change = await send('POST', { ...sent, Cookie: 'a=1', 'Sec-Fetch-Site': 'cross-site' });
        assert.equal(change.status, isAllowed ? 200 : 403, `POST ${origin} ${tenant}`);
      }
    });
  }

  it('may change its answer at any call', async (t) => {
    const flips = '() => { globalThis.corsFlips ^= 1; return globalThis.corsFlips === 1; }';
    const { send } = await start(t, `origins: ${flips} }, strict: true, headers: {`);
    t.after(() => Object.assign(globalThis, { corsFlips: undefined }));
    for (const first of [0, 1]) {
      Object.assign(globalThis, { corsFlips: first });
      const { status, headers } = await send('DELETE', { Origin: 'https://a.example' });
      assert.deepEqual([status, headers.get('allow')], [405, 'GET, HEAD, POST, OPTIONS']);
    }
  });

  it('is not asked without an origin, nor for an answer to bytes that are no request', async (t) => {
    const { send, raw } = await start(t, `origins: ${ORIGINS}`);
    const asked: string[] = [];
    Object.assign(globalThis, { corsAsked: (origin: string) => asked.push(origin) });
    t.after(() => Object.assign(globalThis, { corsAsked: undefined }));
    assert.equal((await send('GET', {})).headers.get('access-control-allow-origin'), undefined);
    await raw('GET\r\n\r\n');
    assert.deepEqual(asked, []);
  });
});

it('methods are those of a preflight', async (t) => {
  const { send } = await start(t, "methods: ['GET', 'PATCH']");
  const { headers } = await send('OPTIONS', { Origin: 'https://a.example' });
  assert.equal(headers.get('access-control-allow-methods'), 'GET, PATCH');
});

it('preflightStatus 204 has no length and keeps the connection', async (t) => {
  const { raw } = await start(t, "origins: ['https://a.example'], preflightStatus: 204");
  const preflight = 'OPTIONS /api/x HTTP/1.1\r\nHost: a\r\nOrigin: https://a.example\r\n';
  const text = await raw(`${preflight}\r\n${preflight}Connection: close\r\n\r\n`, 9);
  const answers = text.split(/(?=HTTP\/1\.1 )/);
  assert.equal(answers.length, 2);
  for (const answer of answers) {
    const { status, headers, body } = parseRaw(answer);
    assert.equal(status, 204);
    assert.equal(body, '');
    assert.equal(headers.has('content-length') || headers.has('transfer-encoding'), false, answer);
    assert.equal(headers.get('access-control-allow-origin'), 'https://a.example');
    assert.match(String(headers.get('x-request-id')), /./);
  }
});
