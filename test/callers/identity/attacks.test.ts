// The table of attacks, with a test for each row: the token of a forger, and the reason in the log. The answer to each
// is the same 401.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { type HttpError, isHttpError } from '../../../src/base/errors.ts';
import { createIdentity, type Identity } from '../../../src/callers/identity/handler.ts';
import { InvalidToken, TOKEN_REASONS } from '../../../src/callers/identity/invalid-token.ts';
import { ATTACKS, claims, ec, forger, KEY_SET, NOW, places, rsa } from '../../support/identity-attacks.ts';
import {
  type DataFolder,
  makeAccounts,
  makeDataFolder,
  makeParams,
  type RememberedLog,
  rememberLog,
} from '../../support/identity-bench.ts';
import { type CountingServer, signByHand, signByJose, startCountingServer } from '../../support/identity-tokens.ts';

let keyServer: CountingServer;
let bait: CountingServer;
let folder: DataFolder;
let log: RememberedLog;
let identity: Identity;
const params = makeParams();

describe('identity under attack', () => {
  before(async () => {
    keyServer = await startCountingServer(() => ({ keys: KEY_SET }));
    bait = await startCountingServer(() => ({ keys: [forger.jwk, { ...forger.jwk, kid: 'forged' }] }));
    Object.assign(places, { issuer: keyServer.url, bait: bait.url });
    const row = { name: 'local', issuer: keyServer.url, client_ids: ['client-1', 'client-2'], registration: 'open' };
    folder = makeDataFolder([{ ...row, jwks_uri: `${keyServer.url}/jwks` }]);
    log = rememberLog();
    identity = createIdentity({ dataDir: folder.dir, log, accounts: makeAccounts(), now: () => NOW * 1000 });
  });
  after(async () => {
    identity.close();
    folder.remove();
    await keyServer.close();
    await bait.close();
  });

  test('signin accepts an honest token of each key', async () => {
    for (const key of [rsa, ec]) {
      const credential = await signByJose(key, claims());
      await assert.rejects(identity.signin({ credential }, params), { code: 'NOT_REGISTERED' });
    }
    const two = await signByJose(
      rsa,
      claims({ aud: ['client-1', 'client-2'], azp: 'client-2', nbf: NOW + 60, iat: NOW + 60 }),
    );
    await assert.rejects(identity.signin({ credential: two }, params), { code: 'NOT_REGISTERED' });
    const noTyp = signByHand(ec, { alg: 'ES256' }, claims({ exp: NOW - 59, iat: NOW - 600, email: null, typ: 'ID' }));
    await assert.rejects(identity.signin({ credential: noTyp }, params), { code: 'NOT_REGISTERED' });
  });

  for (const { name, token, reason } of ATTACKS) {
    test(`signin and register refuse: ${name}`, async () => {
      const credential = await token();
      for (const attempt of [
        identity.signin({ credential }, params),
        identity.register({ credential, application: { name: 'X' } }, params),
      ]) {
        const error: HttpError = await attempt.then(
          () => assert.fail('the token was accepted'),
          (thrown) => thrown,
        );
        assert.ok(isHttpError(error), String(error));
        assert.deepEqual([error.status, error.code], [401, 'INVALID_ID_TOKEN']);
        assert.equal(error.message, 'The identity token is not valid');
        assert.deepEqual(error.headers, { 'WWW-Authenticate': 'Bearer error="invalid_token"' });
        assert.ok(error.cause instanceof InvalidToken);
        assert.equal(error.cause.reason, reason);
        const parts = credential.split('.').filter((part) => part.length > 12);
        for (const part of [...parts, 'victim-1'])
          assert.ok(!log.lines.some((line) => line.includes(part)), 'a part of the token is in the log');
      }
    });
  }

  test('the attacks cause no fetch from the forger, and one more fetch from the provider', () => {
    assert.deepEqual(bait.requests, []);
    assert.deepEqual(keyServer.requests, ['/jwks', '/jwks']);
  });

  test('docs/IDENTITY.md lists each reason for an invalid token', () => {
    const document = readFileSync(new URL('../../../docs/IDENTITY.md', import.meta.url), 'utf8');
    for (const [reason, sentence] of Object.entries(TOKEN_REASONS)) {
      assert.ok(document.includes(`\`${reason}\``), `The document lacks the reason ${reason}`);
      assert.match(sentence, / .* /, reason);
    }
  });
});
