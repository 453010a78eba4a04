// The two identity routes over a real socket: the built service with two workers, a certified provider on loopback, and
// the credentials table on disk. The other tests of identity check the parts.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { type Service, startService } from '../../support/cluster-server.ts';
import { startIdentityProvider } from '../../support/identity-provider.ts';
import { encode } from '../../support/identity-tokens.ts';

const WORKERS = 2;
const ada = { subject: 'ada-1815', email: 'ada@analytical.example', email_verified: true, name: 'Ada L.' };
// `params.application` names the caller, which shows that each worker has found the token's row.
const SDK =
  'export default class SdkController { index(data, params) { return { application: params.application.id }; } }\n';

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Record<string, unknown>;
}

test('idp-signin and register over the running service', async (suite) => {
  const provider = await startIdentityProvider();
  suite.after(() => provider.close());
  const service: Service = await startService(suite, {
    files: { 'SdkController.js': SDK },
    env: { WORKERS: String(WORKERS) },
  });
  const data = join(dirname(service.dir), 'data');
  const credential = await provider.signIn(ada);
  let said = '';
  service.process.stderr?.on('data', (text: string) => {
    said += text;
  });

  async function ask(path: string, init: RequestInit): Promise<Answer> {
    // Each request has a new connection, so that both workers answer.
    const headers = { connection: 'close', ...(init.headers as Record<string, string> | undefined) };
    const response = await fetch(`http://127.0.0.1:${service.port}${path}`, { ...init, headers });
    return {
      status: response.status,
      headers: response.headers,
      body: (await response.json()) as Record<string, unknown>,
    };
  }
  const post = (path: string, body: object) =>
    ask(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });

  await suite.test('idp-signin gets IDENTITY_NOT_CONFIGURED until a provider row is live on every worker', async () => {
    const before = await post('/api/idp-signin', { credential });
    assert.deepEqual([before.status, before.body.error_code], [503, 'IDENTITY_NOT_CONFIGURED']);
    const row = {
      name: 'local',
      issuer: provider.issuer,
      client_ids: Object.values(provider.clientIds),
      registration: 'open',
    };
    writeFileSync(join(data, 'providers.new'), JSON.stringify([row]));
    renameSync(join(data, 'providers.new'), join(data, 'identity-providers.json'));
    const told = new Set<unknown>();
    while (told.size < WORKERS)
      told.add((await service.logged('identity-providers-changed', ({ pid }) => !told.has(pid))).pid);
    for (let i = 0; i < 8; i++)
      assert.equal((await post('/api/idp-signin', { credential })).body.error_code, 'NOT_REGISTERED');
  });

  await suite.test(
    'register returns a token and idp-signin a session, both valid on every worker and never cached',
    async () => {
      const registered = await post('/api/register', { credential, application: { name: 'Engine' } });
      assert.equal(registered.status, 201);
      const { id } = registered.body.application as { id: string };
      const answer = await until(
        () => post('/api/idp-signin', { credential }),
        ({ status }) => status === 200,
      );
      assert.deepEqual(answer.body.applications, [{ id, name: 'Engine' }]);
      for (const { headers, body } of [registered, answer]) {
        assert.equal(headers.get('cache-control'), 'no-store');
        assert.equal(headers.get('access-control-allow-origin'), '*');
        const authorization = String(body.authorization);
        assert.match(authorization, /^gf[ks]_/);
        for (let i = 0; i < 8; i++) {
          // The other worker reads the table that the first one has written within a second (the contract).
          const { body: seen } = await until(
            () => ask('/api/who', { headers: { authorization } }),
            ({ status }) => status === 200,
          );
          assert.deepEqual(seen, { application: id });
        }
      }
    },
  );

  await suite.test('idp-signin accepts the form post of Google Identity Services as a browser sends it', async () => {
    const form = (token: string) => new URLSearchParams({ credential, g_csrf_token: token, select_by: 'btn' });
    const send = (token: string) =>
      ask('/api/idp-signin', { method: 'POST', headers: { cookie: 'g_csrf_token=c-1; a=b' }, body: form(token) });
    await until(
      () => send('c-1'),
      ({ status }) => status === 200,
    );
    const forged = await send('c-2');
    assert.deepEqual([forged.status, forged.body.error_code], [400, 'CSRF_TOKEN_MISMATCH']);
  });

  await suite.test('a foreign page cannot sign in without the double submit of the CSRF token', async () => {
    for (const [path, application] of [
      ['/api/idp-signin', undefined],
      ['/api/register', 'Forged'],
    ] as const) {
      const text = JSON.stringify({ credential, application });
      // fetch sends no Content-Type for a Blob without a type, and text/plain for a text.
      for (const headers of [{ origin: 'https://evil.example' }, { origin: 'null' }, { cookie: 'a=b' }]) {
        const untyped = await ask(path, { method: 'POST', headers, body: new Blob([text]) });
        assert.deepEqual([untyped.status, untyped.body.error_code], [400, 'CSRF_TOKEN_MISMATCH']);
        assert.match(String(untyped.body.message), /Content-Type/);
      }
      const plain = await ask(path, { method: 'POST', headers: { origin: 'https://evil.example' }, body: text });
      assert.deepEqual([plain.status, plain.body.error_code], [400, 'INVALID_REQUEST_DATA']);
    }
    const body = new Blob([JSON.stringify({ credential })]);
    await until(
      () => ask('/api/idp-signin', { method: 'POST', body }),
      ({ status }) => status === 200,
    );
  });

  await suite.test('idp-signin refuses a forged token with 401, and logs the reason', async () => {
    const [header, payload] = credential.split('.');
    const { status, headers, body } = await post('/api/idp-signin', {
      credential: `${header}.${payload}.${encode('x'.repeat(256))}`,
    });
    assert.deepEqual([status, body.error_code], [401, 'INVALID_ID_TOKEN']);
    assert.equal(headers.get('www-authenticate'), 'Bearer error="invalid_token"');
    const line = await service.logged('request-refused', ({ request_id }) => request_id === body.request_id);
    assert.match(String(line.reason), /signature-wrong/);
    assert.ok(!JSON.stringify(body).includes('signature'));
  });

  await suite.test(
    '60 unknown kids cost the provider at most one request per worker, and a good token is accepted',
    async () => {
      const asked = provider.keyRequests();
      const [, payload, signature] = credential.split('.');
      const bogus = (i: number) => `${encode({ alg: 'RS256', kid: `bogus-${i}` })}.${payload}.${signature}`;
      const answers = await Promise.all(
        Array.from({ length: 60 }, (_, i) => post('/api/idp-signin', { credential: bogus(i) })),
      );
      assert.ok(answers.every(({ status }) => status === 401));
      assert.ok(provider.keyRequests() - asked <= WORKERS, `${provider.keyRequests() - asked} requests`);
      await until(
        () => post('/api/idp-signin', { credential }),
        ({ status }) => status === 200,
      );
    },
  );

  await suite.test('register stores each of 30 concurrent applications exactly once', async () => {
    const names = Array.from({ length: 30 }, (_, i) => `App ${i}`);
    const queue = names.flatMap((name) => [name, ...(name.endsWith('7') ? [name] : [])]);
    const statuses = new Map<number, number>();
    const run = async () => {
      for (let name = queue.pop(); name !== undefined; name = queue.pop()) {
        const { status } = await post('/api/register', { credential, application: { name } });
        // On a slow disk, one of 16 waits for too long. Its client asks again.
        if (status === 503) queue.push(name);
        else statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    };
    await Promise.all(Array.from({ length: 16 }, run));
    assert.deepEqual(Object.fromEntries(statuses), { 201: 30, 409: 3 });
    const table = JSON.parse(readFileSync(join(data, 'production.json'), 'utf8')) as { production: { name: string }[] };
    const stored = table.production.map((row) => row.name).filter((name) => name.startsWith('App '));
    assert.deepEqual(stored.sort(), [...names].sort());
  });

  await suite.test('the log has no token, e-mail, name or subject', async () => {
    service.process.kill('SIGTERM');
    await once(service.process, 'close');
    assert.ok(said.includes('identity-registered'));
    for (const secret of [...credential.split('.'), ada.email, ada.name, ada.subject, 'gfk_', 'gfs_'])
      assert.ok(!said.includes(secret));
  });
});

async function until<T>(attempt: () => Promise<T>, holds: (value: T) => boolean): Promise<T> {
  const deadline = Date.now() + 60_000;
  for (;;) {
    const value = await attempt();
    if (holds(value)) return value;
    assert.ok(Date.now() < deadline, 'the expected answer did not come');
  }
}
