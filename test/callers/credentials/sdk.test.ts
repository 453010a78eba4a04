// SDK mode over a socket, with the real table: a request with a registered credential goes to the handler group of its
// row (decisions 6).
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { createLog } from '../../../src/base/log.ts';
import { type Credentials, createCredentials } from '../../../src/callers/credentials/credentials.ts';
import { generateToken, hashSecret } from '../../../src/callers/credentials/token.ts';
import { asRaw, assertEnvelope, parseRaw, type Service, startService } from '../../support/service.ts';

const tokens = {
  all: generateToken(),
  reader: generateToken(),
  custom: generateToken(),
  lost: generateToken(),
  expired: generateToken(),
  revoked: generateToken(),
};
const row = (name: keyof typeof tokens, more: object = {}) => ({
  id: tokens[name].id,
  name,
  hash: hashSecret(tokens[name].secret),
  created_at: '2026-01-01T00:00:00Z',
  ...more,
});
const TABLE = {
  production: [
    row('all', { description: 'may do everything', owner: { issuer: 'https://idp.test', subject: 's1' } }),
    row('reader', { methods: ['GET', 'OPTIONS'] }),
    row('custom', { handler: 'Custom' }),
    row('lost', { handler: 'Nowhere' }),
    row('expired', { expires_at: '2026-01-02T00:00:00Z' }),
    row('revoked', { revoked_at: '2026-01-02T00:00:00Z' }),
    { id: 'literal00000', name: 'literal', authorization: 'Basic bGVnYWN5', created_at: '2026-01-01T00:00:00Z' },
  ],
};
const CONTROLLERS = {
  'SdkController.mjs': `export default class {
    index(data, params) { return { op: 'index', params } } created(data, params) { return { op: 'created', data, params } }
    hello(data, params) { return { op: 'hello', params } } options(data, params) { return { op: 'options', params } }
  }`,
  'CustomController.mjs': 'export default { index: (data, params) => ({ op: "custom", params }) }',
  'TestController.mjs': 'export default { index: () => ({ op: "test" }), secret: () => ({ op: "secret" }) }',
};

let data: string;
let service: Service;
let credentials: Credentials;
before(async () => {
  data = mkdtempSync(join(tmpdir(), 'gatefold-sdk-'));
  writeFileSync(join(data, 'production.json'), JSON.stringify(TABLE), { mode: 0o600 });
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

const ask = (path: string, authorization: string, init: RequestInit = {}) =>
  fetch(service.url + path, { ...init, headers: { ...(init.headers as Record<string, string>), authorization } });

describe('a request with a live credential', () => {
  const all = tokens.all.token;
  const rows: [name: string, verb: string, path: string, authorization: string, op: string][] = [
    ['with Bearer', 'GET', '/api/test', `Bearer ${all}`, 'index'],
    ['with bearer in lower case', 'GET', '/api/test', `bearer  ${all}`, 'index'],
    ['without a scheme', 'GET', '/api/test', all, 'index'],
    ['on a group that does not exist', 'GET', '/api/absent', all, 'index'],
    ['on /api itself', 'GET', '/api', all, 'index'],
    ['by the operation of the second segment', 'GET', '/api/test/hello', all, 'hello'],
    ['by the operation of the first segment', 'GET', '/api/hello', all, 'hello'],
    ['by the second segment before the first', 'GET', '/api/created/hello', all, 'hello'],
    ['with an encoded slash in the path', 'GET', '/api/test%2Fhello', all, 'hello'],
    ['without the operations of the group in the URL', 'GET', '/api/test/secret', all, 'index'],
    ['by the operation of the verb', 'POST', '/api/test', all, 'created'],
    ['with OPTIONS, which is not a preflight', 'OPTIONS', '/api/test', all, 'options'],
    ['by the handler of the row', 'GET', '/api/test', tokens.custom.token, 'custom'],
    ['with a verb that the row allows', 'GET', '/api/test', tokens.reader.token, 'index'],
    ['for a literal row', 'GET', '/api/test', 'Basic bGVnYWN5', 'index'],
    ['for a session', 'GET', '/api/test', 'session', 'index'],
  ];
  for (const [name, verb, path, authorization, op] of rows) {
    test(`is served ${name}`, async () => {
      const value =
        authorization === 'session' ? `Bearer ${credentials.issueSession(tokens.all.id).token}` : authorization;
      const answer = await ask(path, value, { method: verb });
      const body = (await answer.json()) as { op: string; params: { application: { name: string } } };
      assert.equal(answer.status, 200);
      assert.equal(body.op, op);
      assert.equal(typeof body.params.application.name, 'string');
    });
  }

  test('has the application in its params, without a secret', async () => {
    const text = await (await ask('/api/test/hello/x?q=1', `Bearer ${all}`)).text();
    const { params } = JSON.parse(text) as { params: Record<string, unknown> };
    assert.deepEqual(params.application, {
      id: tokens.all.id,
      name: 'all',
      description: 'may do everything',
      owner: { issuer: 'https://idp.test', subject: 's1' },
    });
    assert.deepEqual([params.page, params.slugs, params.query], ['test', ['hello', 'x'], { q: '1' }]);
    assert.ok(!text.includes(tokens.all.secret) && !text.includes('sha256'));
  });

  test('gets 405 and Allow for a verb that the row does not allow, and HEAD is allowed with GET', async () => {
    const answer = await ask('/api/test', tokens.reader.token, { method: 'POST' });
    assert.equal(answer.headers.get('allow'), 'GET, OPTIONS');
    assertEnvelope(await asRaw(answer), 405, 'METHOD_NOT_ALLOWED');
    assert.equal((await ask('/api/test', tokens.reader.token, { method: 'HEAD' })).status, 200);
  });

  test('gets 500 when the handler does not exist', async () => {
    assertEnvelope(await asRaw(await ask('/api/test', tokens.lost.token)), 500, 'DELEGATED_GROUP_NOT_FOUND');
  });
});

describe('a token of Gatefold without a live row gets 401', () => {
  const good = tokens.all.token;
  const rows: [name: string, value: string][] = [
    ['unknown', generateToken().token],
    ['expired', tokens.expired.token],
    ['revoked', tokens.revoked.token],
    ['another secret', generateToken(undefined, tokens.all.id).token],
    ['a wrong checksum', `${good.slice(0, -1)}${good.endsWith('0') ? '1' : '0'}`],
    ['cut short', good.slice(0, 40)],
    ['the prefix alone', 'gfk_'],
    ['one more character', `${good}x`],
    ['upper case', good.toUpperCase()],
    ['upper case and cut short', good.toUpperCase().slice(0, 40)],
    ['upper case inside something longer', `x${good.toUpperCase()}`],
    ['a session in upper case inside something longer', `x${'gfs_eyJhIjoxfQ.aaaa'.toUpperCase()}`],
    ['5 KB', `gfk_${'a'.repeat(5000)}`],
    ['U+00A0 before it', `\u00a0${good}`],
    ['U+00A0 behind it', `${good}\u00a0`],
    ['another scheme', `Token ${good}`],
    ['Bearer twice', `Bearer Bearer ${good}`],
    ['quoted', `Bearer "${good}"`],
    ['id __proto__', 'gfk___proto_____aaaa'],
    ['a malformed session', 'gfs_eyJhIjoxfQ.aaaa'],
  ];
  for (const [name, value] of rows) {
    test(name, async () => {
      const answer = parseRaw(
        await service.raw(
          Buffer.from(`GET /api/test HTTP/1.1\r\nHost: x\r\nAuthorization: ${value}\r\n\r\n`, 'latin1'),
        ),
      );
      const body = assertEnvelope(answer, 401, 'INVALID_CREDENTIAL');
      assert.equal(answer.headers.get('www-authenticate'), 'Bearer error="invalid_token"');
      assert.equal(body.message, 'The application credential is not valid');
    });
  }

  test('a session of a revoked row is refused', async () => {
    const { token } = credentials.issueSession(tokens.revoked.id);
    assert.equal((await credentials.identify(token)).kind, 'refused');
  });

  test('the log has the reason of a refusal, and no secret', () => {
    const reasons = service.lines.filter(({ event }) => event === 'request-refused').map(({ reason }) => reason);
    assert.ok(reasons.includes('its row is revoked') && reasons.includes('its row has expired'));
    for (const { secret } of Object.values(tokens)) assert.ok(!JSON.stringify(service.lines).includes(secret));
  });
});

describe('the group in the URL serves a header value that matches no row', () => {
  for (const value of [
    'Basic eDp5',
    'Bearer abc',
    'Bearer',
    'x',
    'Digest username="a"',
    'gfk',
    'Bearer eyJhbGciOiJub25lIn0.e30.',
  ]) {
    test(value, async () => {
      const answer = await ask('/api/test', value);
      assert.deepEqual([answer.status, await answer.json()], [200, { op: 'test' }]);
    });
  }
});

test('any Authorization value gets 200, 400 or 401', () =>
  fc.assert(
    fc.asyncProperty(
      fc.oneof(
        fc.string({ maxLength: 60 }),
        fc.string({ maxLength: 30 }).map((text) => `gfk_${text}`),
      ),
      async (value) => {
        const line = Buffer.from(
          `GET /api/test HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: ${value}\r\n\r\n`,
          'utf8',
        );
        const text = await service.raw(line);
        assert.ok([200, 400, 401].includes(parseRaw(text).status), text);
      },
    ),
    { numRuns: 200 },
  ));

test('the shipped SdkController returns the application of the caller, and requires a credential', async (t) => {
  const shipped = await startService({ parts: { credentials } });
  t.after(shipped.close);
  const authorization = `Bearer ${tokens.all.token}`;
  for (const [verb, path] of [
    ['GET', ''],
    ['POST', ''],
    ['PUT', ''],
    ['DELETE', ''],
    ['GET', '/updated'],
  ] as const) {
    assertEnvelope(
      await asRaw(await fetch(`${shipped.url}/api/sdk${path}`, { method: verb })),
      401,
      'CREDENTIAL_REQUIRED',
    );
    assert.equal(
      (await fetch(`${shipped.url}/api/anything${path}`, { method: verb, headers: { authorization } })).status,
      200,
    );
  }
  const body = (await (await fetch(`${shipped.url}/api/x`, { headers: { authorization } })).json()) as {
    application: { name: string };
  };
  assert.equal(body.application.name, 'all');
});
