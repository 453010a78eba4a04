// createIdentity with a certified provider on loopback: real tokens, real fetch, keys that rotate, and a provider that
// stops.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createIdentity, type Identity } from '../../../src/callers/identity/handler.ts';
import { KEY_TIMES } from '../../../src/callers/identity/jwks.ts';
import {
  type DataFolder,
  makeAccounts,
  makeDataFolder,
  makeParams,
  type RememberedLog,
  rememberLog,
} from '../../support/identity-bench.ts';
import { startIdentityProvider, type TestProvider } from '../../support/identity-provider.ts';

const ada = { subject: 'ada-1815', email: 'ada@analytical.example', email_verified: true, name: 'Ada L.' };
const eve = { subject: 'eve-0', email: 'eve@elsewhere.example', email_verified: true };

describe('identity, end to end with oidc-provider', () => {
  let provider: TestProvider;
  let folder: DataFolder;
  let log: RememberedLog;
  let identity: Identity;
  let skipped = 0;
  const tokens: string[] = [];
  const accounts = makeAccounts();
  const params = makeParams();

  before(async () => {
    provider = await startIdentityProvider();
    const { issuer, clientIds } = provider;
    folder = makeDataFolder([
      {
        name: 'local',
        issuer,
        client_ids: Object.values(clientIds),
        registration: { emails: ['Ada@analytical.example'] },
      },
    ]);
    log = rememberLog();
    identity = createIdentity({ dataDir: folder.dir, log, accounts, clock: () => performance.now() + skipped });
  });
  after(async () => {
    identity.close();
    await provider.close();
    folder.remove();
  });

  async function tokenOf(...args: Parameters<TestProvider['signIn']>): Promise<string> {
    const token = await provider.signIn(...args);
    tokens.push(token);
    return token;
  }

  test('signin of a verified person without an application gets NOT_REGISTERED', async () => {
    await assert.rejects(identity.signin({ credential: await tokenOf(ada) }, params), {
      status: 403,
      code: 'NOT_REGISTERED',
    });
  });

  test('register creates a row and returns its token, and refuses the same name with ALREADY_REGISTERED', async () => {
    const credential = await tokenOf(ada);
    const { status, body } = await identity.register(
      { credential, application: { name: 'Engine', description: 'It counts' } },
      params,
    );
    assert.equal(status, 201);
    assert.deepEqual(body.application, { id: 'row1', name: 'Engine' });
    assert.equal(body.authorization, 'gfk_row1');
    const again = identity.register({ credential, application: { name: 'Engine' } }, params);
    await assert.rejects(again, { status: 409, code: 'ALREADY_REGISTERED' });
  });

  for (const alg of ['RS256', 'ES256'] as const) {
    test(`signin accepts an ${alg} token and returns user, applications and a session`, async () => {
      const { status, body } = await identity.signin(
        { credential: await tokenOf(ada, { alg, nonce: 'n-1' }), nonce: 'n-1' },
        params,
      );
      assert.equal(status, 200);
      const user = {
        issuer: provider.issuer,
        subject: ada.subject,
        email: ada.email,
        email_verified: true,
        name: ada.name,
      };
      assert.deepEqual(JSON.parse(JSON.stringify(body)), {
        user,
        applications: [{ id: 'row1', name: 'Engine' }],
        application: { id: 'row1', name: 'Engine' },
        authorization: 'gfs_for_row1',
        expires_at: 1_780_003_600,
      });
    });
  }

  test('signin refuses a nonce that the token does not have', async () => {
    const credential = await tokenOf(ada, { nonce: 'n-1' });
    await assert.rejects(identity.signin({ credential, nonce: 'n-2' }, params), {
      status: 401,
      code: 'INVALID_ID_TOKEN',
    });
  });

  test('register refuses a person whom the rules of the provider row do not allow', async () => {
    const request = { credential: await tokenOf(eve), application: { name: 'Mine' } };
    await assert.rejects(identity.register(request, params), { status: 403, code: 'REGISTRATION_CLOSED' });
  });

  test('signin accepts new keys at once after a rotation, and refuses the old keys', async () => {
    const old = await tokenOf(ada);
    const asked = provider.keyRequests();
    provider.rotateKeys();
    assert.equal((await identity.signin({ credential: await tokenOf(ada) }, params)).status, 200);
    assert.equal((await identity.signin({ credential: await tokenOf(ada, { alg: 'ES256' }) }, params)).status, 200);
    assert.equal(provider.keyRequests(), asked + 1);
    await assert.rejects(identity.signin({ credential: old }, params), { status: 401 });
  });

  test('signin uses the cached keys while the provider is unreachable, and fetches new keys afterwards', async () => {
    const credential = await tokenOf(ada);
    provider.goAway();
    skipped += KEY_TIMES.fresh + 1;
    assert.equal((await identity.signin({ credential }, params)).status, 200);
    assert.equal(identity.status().keyFailures, 1);
    provider.comeBack();
    provider.rotateKeys();
    skipped += KEY_TIMES.coolDown + 1;
    assert.equal((await identity.signin({ credential: await tokenOf(ada) }, params)).status, 200);
  });

  test('signin gets IDENTITY_UNAVAILABLE when the provider is unreachable and no key is cached', async () => {
    const cold = createIdentity({ dataDir: folder.dir, log: rememberLog(), accounts });
    const credential = await tokenOf(ada);
    provider.goAway();
    await assert.rejects(cold.signin({ credential }, params), {
      ...{ status: 503, code: 'IDENTITY_UNAVAILABLE', headers: { 'Retry-After': '30' } },
    });
    provider.comeBack();
    cold.close();
  });

  test('the log has no token, e-mail, name or subject', () => {
    assert.ok(log.lines.length > 5);
    const secrets = [
      ...tokens.flatMap((token) => [token, ...token.split('.')]),
      ada.email,
      ada.name,
      ada.subject,
      eve.email,
      eve.subject,
    ];
    for (const line of log.lines) assert.ok(!secrets.some((secret) => line.includes(secret)), line);
  });
});
