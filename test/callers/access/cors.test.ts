// CORS over a socket: the table of requests and answers, and functions in `origins` that a test watches.
import assert from 'node:assert/strict';
import { after, before, describe, it, type TestContext } from 'node:test';
import { CORS_OPTIONS, CORS_SERVICES, check, FUNCTION, fileOf } from '../../support/cors-table.ts';
import { parseRaw, type Service, startService } from '../../support/service.ts';

for (const [rules, { files, rows }] of Object.entries(CORS_SERVICES))
  describe(`a service with ${rules}`, () => {
    let service: Service;
    before(async () => {
      service = await startService({ ...CORS_OPTIONS, controllers: files });
    });
    after(() => service.close());

    for (const row of rows)
      it(`answers ${row.answer.status} to ${[row.request, ...row.lines].join(', ')}`, () => check(service.port, row));
  });

async function start(t: TestContext, cors: string): Promise<Service> {
  const service = await startService({ controllers: fileOf(cors) });
  t.after(service.close);
  return service;
}
const headOf = (verb: string, lines = '') =>
  `${verb} /api/x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n${lines}Connection: close\r\n\r\n`;

it('a function in origins may change its answer at any call', async (t) => {
  const flips = '() => { globalThis.corsFlips ^= 1; return globalThis.corsFlips === 1; }';
  const { raw } = await start(t, `origins: ${flips} }, strict: true, headers: {`);
  t.after(() => Object.assign(globalThis, { corsFlips: undefined }));
  for (const first of [0, 1]) {
    Object.assign(globalThis, { corsFlips: first });
    const { status, headers } = parseRaw(await raw(headOf('DELETE', 'Origin: https://a.example\r\n')));
    assert.deepEqual([status, headers.get('allow')], [405, 'GET, HEAD, POST, OPTIONS']);
  }
});

it('a function in origins is not asked without an origin, nor about bytes that are no request', async (t) => {
  const { raw } = await start(t, `origins: ${FUNCTION}`);
  const asked: string[] = [];
  Object.assign(globalThis, { corsAsked: (origin: string) => asked.push(origin) });
  t.after(() => Object.assign(globalThis, { corsAsked: undefined }));
  assert.equal(parseRaw(await raw(headOf('GET'))).headers.get('access-control-allow-origin'), undefined);
  await raw('GET\r\n\r\n');
  assert.deepEqual(asked, []);
});

it('the status 204 of a preflight keeps the connection', async (t) => {
  const { raw } = await start(t, "origins: ['https://a.example'], preflightStatus: 204");
  const preflight = 'OPTIONS /api/x HTTP/1.1\r\nHost: a\r\nOrigin: https://a.example\r\n';
  const text = await raw(`${preflight}\r\n${preflight}Connection: close\r\n\r\n`, 9);
  const answers = text.split(/(?=HTTP\/1\.1 )/);
  assert.equal(answers.length, 2);
  for (const answer of answers) assert.match(answer, /^HTTP\/1\.1 204 .*\r\nX-Request-Id: .*\r\n\r\n$/s);
});
