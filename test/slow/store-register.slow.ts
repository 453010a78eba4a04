// Registration and sign-in over HTTP on several machines. Each machine is the built service, and all share a
// PostgreSQL.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { createFolder } from '../support/folder.ts';
import { startIdentityProvider, type TestProvider } from '../support/identity-provider.ts';
import { noPostgres, startOwnStore } from '../support/store-bench.ts';
import { type Machine, run, startMachine, until } from '../support/store-machines.ts';

const STORE_KEY = 'a key of the tests with 32 characters or more';
/** A controller that credentials without groups may call. A registration makes such credentials. */
const CONTROLLER = 'export default class { index() { return {}; } }';

interface Answer {
  readonly status: number;
  readonly authorization?: string;
  readonly error_code?: string;
}

async function startWithProvider(test: TestContext, url: string, { issuer, clientIds }: TestProvider) {
  const dir = createFolder(test, { 'SdkController.mjs': CONTROLLER });
  const data = join(dirname(dir), 'data');
  mkdirSync(data, { recursive: true });
  const provider = { name: 'local', issuer, client_ids: Object.values(clientIds), registration: 'open' };
  writeFileSync(join(data, 'identity-providers.json'), JSON.stringify([provider]));
  return startMachine(test, url, { dir, env: { STORE_KEY } });
}

async function post({ port }: Machine, path: string, body: object): Promise<Answer> {
  const response = await fetch(`http://127.0.0.1:${port}/api/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', connection: 'close' },
    body: JSON.stringify(body),
  });
  const answer = (await response.json()) as Record<string, unknown>;
  return { ...answer, status: response.status };
}

describe('/api/register on machines that share a store', { skip: noPostgres }, () => {
  it('returns a token and a session that all machines accept, and uses each name once', async (test) => {
    const { url, database } = await startOwnStore(test);
    const provider = await startIdentityProvider();
    test.after(() => provider.close());
    const machines = [await startWithProvider(test, url, provider), await startWithProvider(test, url, provider)];
    const [one, two] = machines as [Machine, Machine];
    const credential = await provider.signIn({ subject: 'ada-1815', name: 'Ada L.' });
    const register = (machine: Machine, name: string) =>
      post(machine, 'register', { credential, application: { name } });

    const registered = await register(one, 'engine');
    assert.equal(registered.status, 201);
    const statuses = (token: unknown) => Promise.all(machines.map((each) => each.ask(String(token))));
    assert.deepEqual(await statuses(registered.authorization), [200, 200]);
    for (const machine of machines)
      await until('all machines accept a session', async () => {
        const { status, authorization } = await post(machine, 'idp-signin', { credential });
        return status === 200 && (await statuses(authorization)).every((each) => each === 200);
      });
    assert.ok(machines.every(({ lines }) => !lines.some(({ level }) => level === 'error')));
    const answers = await Promise.all([one, two, one, two, one, two].map((machine) => register(machine, 'same')));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 409, 409, 409, 409, 409]);

    const listed = await run(two.env, 'credentials', 'list', '--json');
    assert.equal((JSON.parse(listed.out) as unknown[]).length, 2);
    await database.stop();
    await until('the store is away', async () => (await one.ready()).store.state === 'away');
    const refused = await register(one, 'later');
    assert.deepEqual([refused.status, refused.error_code], [503, 'REGISTRATION_UNAVAILABLE']);
    await database.start();
    await one.logged('store-back');
    assert.equal((await register(one, 'later')).status, 201);
  });
});
