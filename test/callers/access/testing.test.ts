// `gatefold/testing` under a service file: users of a test, and a file that does not load.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { ControllerParams } from '../../../src/api/controller.ts';
import { createParams, startTest, type TestApi, type TestCaller } from '../../../src/api/testing.ts';
import { makeProject } from '../../support/command-bench.ts';
import { createFolder } from '../../support/folder.ts';
import { GATEFOLD } from '../../support/service.ts';

interface User {
  readonly id: string;
  readonly name: string;
}
const ANN: User = { id: 'ann', name: 'Ann' };
const BOB: User = { id: 'bob', name: 'Bob' };

const FILES = {
  'service.ts': `
    import { defineService } from '${GATEFOLD}';
    interface User { id: string; name: string }
    export default defineService<User>({
      authenticate: ({ authorization }) => (authorization === 'Token eve' ? { id: 'eve', name: 'Eve' } : undefined),
    });`,
  'MeController.ts': `
    import type { ControllerParams, Operations } from 'gatefold';
    import { Reply } from '${GATEFOLD}';
    interface User { id: string; name: string }
    export default class MeController {
      'GET moved'() { return Reply.redirect('/api/me/user'); }
      static operations: Operations<MeController> = { 'GET both': { access: ['user', 'application'] }, 'GET user': { access: 'user' } };
      'GET'(_: unknown, { user, application }: ControllerParams<{ user?: User }>) {
        return { user: user?.name ?? null, application: application?.name ?? null };
      }
      'GET user'(_: unknown, { user }: ControllerParams<{ user: User }>) { return { user: user.name }; }
      'GET both'(_: unknown, { user, application }: ControllerParams<{ user: User }>) {
        return { user: user.name, application: application?.name };
      }
    }`,
};
declare class MeController {
  'GET moved'(): { user: string };
  'GET user'(): { user: string };
}
const EVE = { headers: { authorization: 'Token eve' } };
const ask = async (caller: TestCaller, path = '/me', init = {}) => {
  const response = await caller.fetch(path, init);
  return response.ok ? await response.json() : response.status;
};

describe('a test under a service file', () => {
  let api: TestApi;
  before(async () => {
    const files = Object.entries(FILES).map(([name, text]) => [`controllers/${name}`, text]);
    const cwd = makeProject({ after: (done) => after(done) }, Object.fromEntries(files));
    api = await startTest({ controllers: `${cwd}/controllers` });
  });
  after(() => api.close());

  it('calls authenticate for a request without a test user', async () => {
    assert.deepEqual(await ask(api), { user: null, application: null });
    assert.deepEqual(await ask(api, '/me', EVE), { user: 'Eve', application: null });
    assert.equal(await ask(api, '/me/user'), 401);
  });

  it('calls as a user with fetch and with the client', async () => {
    // A literal may have more fields than the id.
    const ann = api.as({ id: ANN.id, name: ANN.name });
    assert.deepEqual(await ask(ann, '/me/user'), { user: 'Ann' });
    assert.deepEqual(await ask(ann, '/me', EVE), { user: 'Ann', application: null });
    const client = ann.client<{ me: typeof MeController }>({ headers: { 'X-Other': '1' } });
    assert.deepEqual(await client.me['GET user'](), { user: 'Ann' });
    assert.deepEqual(await ann.client<{ me: typeof MeController }>().me['GET moved'](), { user: 'Ann' });
    assert.deepEqual(await ask(api.as(BOB), '/me/user'), { user: 'Bob' });
    assert.deepEqual(await ask(ann, '/me/user'), { user: 'Ann' });
  });

  it('calls as an application, and as a user with an application', async () => {
    const application = { name: 'shop' };
    assert.deepEqual(await ask(api.as({ application })), { user: null, application: 'shop' });
    assert.equal(await ask(api.as({ application }), '/me/both'), 401);
    assert.equal(await ask(api.as(ANN), '/me/both'), 401);
    assert.deepEqual(await ask(api.as({ application, user: ANN }), '/me/both'), { user: 'Ann', application: 'shop' });
  });

  it('calls as the default user, as another user and as an anonymous caller', async (t) => {
    const signedIn = await startTest({ controllers: createFolder(t, FILES), user: ANN });
    t.after(() => signedIn.close());
    assert.deepEqual(await ask(signedIn, '/me/user'), { user: 'Ann' });
    assert.deepEqual(await ask(signedIn.as(BOB), '/me/user'), { user: 'Bob' });
    assert.equal(await ask(signedIn.as(null), '/me/user'), 401);
  });
});

it('startTest refuses a user when no service file has authenticate', async (t) => {
  const controllers = createFolder(t, { 'MeController.mjs': 'export default { index() {} };' });
  await assert.rejects(
    startTest({ controllers, user: ANN }),
    /Cannot call as the user ann: no service file .*authenticate/,
  );
  const api = await startTest({ controllers });
  t.after(() => api.close());
  assert.throws(() => api.as(ANN), /no service file/);
  assert.throws(() => api.as({ application: {}, user: ANN }), /no service file/);
});

it('a broken service file makes startTest fail once, with its line', async (t) => {
  const source = `import { defineService } from '${GATEFOLD}';\nexport default defineService({\n  strikt: true,\n} as object);\n`;
  const controllers = createFolder(t, { 'service.ts': source, 'MeController.mjs': 'export default { index() {} };' });
  await assert.rejects(startTest({ controllers }), (error: Error) => {
    assert.match(error.message, /service-not-loadable .*service\.ts:3: strikt is no property of a service/);
    assert.doesNotMatch(error.message, /group-not-loadable/);
    return true;
  });
  const api = await startTest({ controllers, expectedErrors: ['service-not-loadable', 'request-failed'] });
  t.after(() => api.close());
  assert.equal((await api.fetch('/me')).status, 500);
});

describe('createParams', () => {
  const greet = (_: unknown, { user, cookies }: ControllerParams<{ user: User }>) => `${user.name} ${cookies.session}`;

  it('returns the given user and cookies', () => {
    assert.equal(greet({}, createParams({ user: ANN, cookies: { session: 's1' } })), 'Ann s1');
    const path = { id: 7 };
    const mine = (_: unknown, params: ControllerParams<{ user: User; path: { id: number } }>) =>
      `${params.user.name} ${params.path.id}`;
    assert.equal(mine({}, createParams({ user: ANN, path })), 'Ann 7');
  });

  it('returns params without a user, also in their type, when no user is given', () => {
    // @ts-expect-error this operation needs a user
    assert.throws(() => greet({}, createParams()), TypeError);
    const maybe = (_: unknown, { user }: ControllerParams<{ user?: User }>) => user?.name ?? 'nobody';
    assert.equal(maybe({}, createParams()), 'nobody');
    assert.equal(maybe({}, createParams({ user: ANN })), 'Ann');
    // @ts-expect-error a user of another type
    maybe({}, createParams({ user: { id: 1 } }));
  });

  it('returns params whose JSON leaves out the user', () => {
    assert.equal(JSON.stringify(createParams({ user: ANN, cookies: { a: '1' } })).includes('Ann'), false);
  });
});
