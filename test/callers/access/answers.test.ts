// The answers under a service file: the bodies of errors, the headers of all answers, CORS, and a header for keys.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { makeApplication } from '../../support/caller-table.ts';
import { GATEFOLD, type Service, startService } from '../../support/service.ts';

const FILE = `
import { defineService, ErrorReply } from '${GATEFOLD}';
export default defineService({
  strict: true,
  keyHeader: 'X-Api-Key',
  headers: { 'Strict-Transport-Security': 'max-age=1', 'Content-Security-Policy': "default-src 'none'" },
  cors: { origins: ['https://a.example'], credentials: true, maxAge: 60 },
  securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
  authenticate: ({ authorization }) => (authorization === 'Token ann' ? { id: 'ann' } : undefined),
  formatError(refusal) {
    const { code, cause } = refusal;
    if (code === 'THROW') throw new Error('in the format');
    if (code === 'NOTHING') return undefined as never;
    if (code === 'CHANGED') { (cause as { status: number }).status = 200; return undefined as never; }
    if (code === 'PROMISE') return Promise.resolve({}) as never;
    if (code === 'REJECTS') return Promise.reject(new Error('nobody awaits it')) as never;
    if (code === 'BIGINT') return { n: 1n };
    if (code === 'MAP') return new Map([['a', 1]]);
    if (code === 'ERROR') return new ErrorReply(422, { cause: new Error('lost') });
    if (code === 'RESPONSE') return new Response('a') as never;
    if (code === 'SYMBOL') return Symbol('no JSON') as never;
    if (code === 'STATUS') return { ...new ErrorReply(400, {}), status: 200, [Symbol.for('gatefold.ErrorReply')]: true } as never;
    if (code === 'LISTS') return new ErrorReply(422, 'plain', { 'Content-Type': ['text/plain'], 'Set-Cookie': ['a=1', 'b=2'], 'X-Own': ['1'] });
    if (code === 'COOKIES') return new ErrorReply(400, {}, { 'Set-Cookie': ['a=1', 'b=2'], Link: '<a>' });
    if (code === 'TYPES') return new ErrorReply(422, 'plain', { 'Content-Type': ['text/plain', 'text/html'] });
    if (code === 'TEXT') return new ErrorReply(418, 'plain', { 'Content-Type': 'text/plain', 'X-Own': '1', Allow: 'NONE', 'Content-Length': '1' });
    if ((cause as { code?: string } | undefined)?.code === 'ECONNREFUSED') return new ErrorReply(503, { busy: true }, { 'Retry-After': '5' });
    return new ErrorReply(refusal.status, { type: code, echo: { ...refusal } }, { 'Content-Type': 'application/problem+json' });
  },
});
`;

const CONTROLLER = `
import { HttpError, Reply } from '${GATEFOLD}';
export default class XController {
  static operations = { 'GET user': { access: 'user' } };
  'GET'() { return { ok: true }; }
  'GET user'() { return {}; }
  'GET fails/{code}'(_: undefined, { path }: { path: { code: string } }) {
    throw new HttpError(400, path.code, 'It fails', { headers: { Allow: 'GET' } });
  }
  'GET cookies'() { throw new HttpError(400, 'COOKIES', 'It fails', { headers: { 'set-cookie': 'c=3', Link: '<b>' } }); }
  'GET away'() { throw Object.assign(new Error('no database'), { code: 'ECONNREFUSED' }); }
  'GET reply'() { return new Reply(200, { a: 1 }, { 'X-Total': '7', 'Content-Security-Policy': 'own', Vary: 'Accept' }); }
  'POST'() { return {}; }
}
`;

describe('answers under a service file', () => {
  let service: Service;
  before(async () => {
    service = await startService({
      controllers: { 'service.ts': FILE, 'XController.ts': CONTROLLER },
      parts: { credentials: { identify: makeApplication } },
      expectedErrors: ['request-failed', 'error-format-failed'],
    });
  });
  after(() => service.close());

  const ask = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(service.url + path, init);
    const text = await response.text();
    return { status: response.status, headers: response.headers, text };
  };

  for (const code of [
    'THROW',
    'NOTHING',
    'PROMISE',
    'REJECTS',
    'BIGINT',
    'SYMBOL',
    'MAP',
    'ERROR',
    'RESPONSE',
    'STATUS',
    'CHANGED',
    'TYPES',
  ])
    it(`sends the envelope and logs an error when formatError fails: ${code}`, async () => {
      service.lines.length = 0;
      const { status, headers, text } = await ask(`/api/x/fails/${code}`);
      assert.equal(status, 400);
      assert.equal(JSON.parse(text).error_code, code);
      assert.equal(headers.get('content-type'), 'application/json; charset=UTF-8');
      assert.ok(service.lines.some(({ event, error_code }) => event === 'error-format-failed' && error_code === code));
    });

  it('sends the status, type and headers of an ErrorReply, but keeps the headers of the server', async () => {
    const { status, headers, text } = await ask('/api/x/fails/TEXT');
    assert.deepEqual([status, text], [418, 'plain']);
    assert.equal(headers.get('content-type'), 'text/plain');
    assert.equal(headers.get('x-own'), '1');
    assert.equal(headers.get('allow'), 'GET');
    assert.equal(headers.get('content-length'), '5');
    assert.equal(headers.get('cache-control'), 'no-store');
    assert.equal(headers.get('x-content-type-options'), 'nosniff');
    assert.match(headers.get('x-request-id') ?? '', /./);
    const line = service.lines.findLast(({ event }) => event === 'request');
    assert.equal(line?.status, 418);
  });

  it('sends a line for each entry of a list in the headers of an ErrorReply', async () => {
    const raw = await service.raw('GET /api/x/fails/LISTS HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    const lines = raw.slice(0, raw.indexOf('\r\n\r\n')).split('\r\n');
    assert.equal(lines[0], 'HTTP/1.1 422 Unprocessable Entity');
    const sent = lines.filter((line) => /^(content-type|set-cookie|x-own):/i.test(line));
    assert.deepEqual(sent, ['Content-Type: text/plain', 'Set-Cookie: a=1', 'Set-Cookie: b=2', 'X-Own: 1']);
  });

  it('sends the cookies of formatError beside those of the error', async () => {
    const { headers } = await ask('/api/x/cookies');
    assert.deepEqual(headers.getSetCookie(), ['a=1', 'b=2', 'c=3']);
    assert.equal(headers.get('link'), '<b>', 'any other header of the error is not replaced');
  });

  it('passes the thrown error to formatError as a cause that a copy leaves out', async () => {
    const away = await ask('/api/x/away');
    assert.deepEqual([away.status, away.text, away.headers.get('retry-after')], [503, '{"busy":true}', '5']);
    const { text, headers } = await ask('/api/x/fails/OTHER?q=secret');
    const { requestId: id, ...echo } = JSON.parse(text).echo;
    assert.equal(id, headers.get('x-request-id'));
    const place = { page: 'x', method: 'GET fails/{code}', path: '/api/x/fails/OTHER', verb: 'GET' };
    assert.deepEqual(echo, { status: 400, code: 'OTHER', message: 'It fails', ...place });
    assert.equal(headers.get('content-type'), 'application/problem+json');
  });

  it('formats the errors of the HTTP parser and of a path outside /api', async () => {
    const raw = await service.raw('GET /api/x HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n');
    assert.match(raw, /^HTTP\/1\.1 400 /);
    assert.match(raw, /Content-Type: application\/problem\+json\r\n/);
    assert.match(raw, /Strict-Transport-Security: max-age=1\r\n/);
    assert.doesNotMatch(raw, /undefined/);
    assert.match(raw, /\{"type":"MALFORMED_REQUEST"/);
    assert.equal(JSON.parse((await ask('/elsewhere')).text).type, 'NOT_FOUND');
  });

  it('sends WWW-Authenticate with the security scheme of users', async () => {
    const { status, headers } = await ask('/api/x/user');
    assert.deepEqual([status, headers.get('www-authenticate')], [401, 'Bearer']);
  });

  it('sends the headers of the service file unless a reply sets the header itself', async () => {
    for (const path of ['/api/x', '/api/nothing'])
      assert.equal((await ask(path)).headers.get('strict-transport-security'), 'max-age=1', path);
    const { headers } = await ask('/api/x/reply');
    assert.equal(headers.get('content-security-policy'), 'own');
    assert.equal(headers.get('strict-transport-security'), 'max-age=1');
    assert.equal(headers.get('vary'), 'Accept, Origin, x-api-key');
  });

  const keys: readonly (readonly [lines: string, status: number, code?: string])[] = [
    ['X-Api-Key: app\r\n', 200],
    ['x-api-key: app\r\n', 200],
    ['X-Api-Key: dead\r\n', 401, 'INVALID_CREDENTIAL'],
    ['X-Api-Key: whatever\r\n', 401, 'INVALID_CREDENTIAL'],
    ['X-Api-Key:\r\n', 401, 'INVALID_CREDENTIAL'],
    ['X-Api-Key: app\r\nX-Api-Key: app\r\n', 400, 'DUPLICATE_AUTHORIZATION'],
    ['X-Api-Key: app\r\nAuthorization: Bearer app\r\n', 400, 'DUPLICATE_AUTHORIZATION'],
    ['X-Api-Key: app\r\nAuthorization: Token ann\r\n', 200],
    ['X-Api-Key: app\r\nAuthorization: Bearer dead\r\n', 401, 'INVALID_CREDENTIAL'],
    ['Authorization: Bearer app\r\n', 200],
  ];
  for (const [lines, status, code] of keys)
    it(`answers ${status} ${code ?? ''} to ${JSON.stringify(lines)}`, async () => {
      const answer = await service.raw(`GET /api/x HTTP/1.1\r\nHost: a\r\n${lines}\r\n`);
      assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `), answer);
      if (code !== undefined) assert.match(answer, new RegExp(code));
    });

  it('answers OPTIONS with an invalid key as a preflight', async () => {
    const answer = await service.raw('OPTIONS /api/x HTTP/1.1\r\nHost: a\r\nX-Api-Key: dead\r\n\r\n');
    assert.match(answer, /^HTTP\/1\.1 200 /);
  });
});
