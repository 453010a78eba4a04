// The order of a request's steps under a service file: which step refuses first. No later step may run.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { pathToFileURL } from 'node:url';
import { makeApplication } from '../../support/caller-table.ts';
import { GATEFOLD, onUncaught, type Service, startService } from '../../support/service.ts';

const SERVICE_FILE = `
import { defineService, HttpError } from '${GATEFOLD}';
export const calls: string[] = [];
let reads = 0;
function fail(): never { throw new Error('it throws late'); }
interface User { id: string; name: string }
export default defineService<User>({
  strict: true,
  authenticate({ authorization, path, query, page, method, verb, cookies }) {
    calls.push([page, method, verb, path.id ?? '', query.q ?? '', cookies.session ?? ''].join());
    if (authorization === 'Token odd') return { id: '' } as User;
    if (authorization?.startsWith('Name ')) return { id: authorization.slice('Name '.length), name: '' };
    if (authorization === 'Token getter') return { get id() { return reads++ === 0 ? 'once' : fail(); }, name: '' };
    if (authorization === 'Token stray') return new Promise(() => { setTimeout(fail, 1); });
    if (authorization === 'Token throws') throw new TypeError('no database');
    if (authorization === 'Token refused') throw new HttpError(403, 'BANNED', 'You are banned');
    if (authorization === 'Token text') return 'ann' as unknown as User;
    return authorization === 'Token ann' ? { id: 'ann', name: 'Ann' } : undefined;
  },
  formatError: ({ status, code, message, errors, page, method, path, verb }) =>
    ({ problem: code, status, text: message, count: errors?.length ?? 0, page, method, path, verb }),
});
`;

const NOTE_CONTROLLER = `
import type { ControllerParams, Int, Operations } from 'gatefold';
interface User { id: string; name: string }
export default class NoteController {
  static operations: Operations<NoteController> = {
    'POST': { access: 'user' },
    'GET secret': { access: 'user' },
    'GET either': { access: 'caller' },
    'GET odd': { access: ({ user }) => (user === undefined ? false : ('yes' as unknown as boolean)) },
    'GET mine': { access: ['user', ({ user }) => (user as User).name === 'Bob'] },
    'GET limited': { limit: '1/h' },
  };
  'GET {id}'(_: undefined, { path, user }: ControllerParams<{ path: { id: Int }; user?: User }>) {
    return { id: path.id, by: user?.name ?? null };
  }
  'POST'(data: { text: string }, { user }: ControllerParams<{ user: User }>) { return { text: data.text, by: user.name }; }
  'GET secret'(_: undefined, params: ControllerParams<{ user: User }>) { return { echo: { ...params }, by: params.user.id }; }
  'GET either'() { return {}; }
  'GET odd'() { return {}; }
  'GET mine'() { return {}; }
  'GET limited'() { return {}; }
  'POST publish'() { return {}; }
}
`;

/** Two routes of which one name is the other name and one more word. */
const LIMIT_CONTROLLER = `
export default class LimitController {
  static operations = { '*': { limit: '1/h' } };
  'GET'() { return {}; }
  'GET user'() { return {}; }
}
`;

const ANN = { authorization: 'Token ann' };

interface Row {
  readonly title: string;
  readonly request: readonly [verb: string, path: string, headers?: Record<string, string>, body?: string];
  readonly status: number;
  readonly problem?: string;
  /** How often `authenticate` runs. */
  readonly asked: number;
  readonly headers?: Readonly<Record<string, string | null>>;
}

const rows: readonly Row[] = [
  { title: 'a preflight', request: ['OPTIONS', '/api/note'], status: 200, asked: 0 },
  { title: 'an absent group', request: ['GET', '/api/nothing'], status: 404, problem: 'GROUP_NOT_FOUND', asked: 0 },
  {
    title: 'an absent group for a signed-in user',
    request: ['GET', '/api/nothing', ANN],
    status: 404,
    problem: 'GROUP_NOT_FOUND',
    asked: 0,
  },
  { title: 'a path outside /api', request: ['GET', '/other'], status: 404, problem: 'NOT_FOUND', asked: 0 },
  {
    title: 'a path without a route',
    request: ['GET', '/api/note/1/2', ANN],
    status: 404,
    problem: 'ROUTE_NOT_FOUND',
    asked: 0,
  },
  {
    title: 'a verb that the route does not have',
    request: ['PATCH', '/api/note', ANN],
    status: 405,
    problem: 'METHOD_NOT_ALLOWED',
    asked: 0,
    headers: { allow: 'POST, OPTIONS' },
  },
  { title: 'an anonymous caller of a public operation', request: ['GET', '/api/note/7'], status: 200, asked: 1 },
  { title: 'HEAD of a public operation', request: ['HEAD', '/api/note/7'], status: 200, asked: 1 },
  {
    title: 'an anonymous caller of an operation for users, with a body of the wrong type',
    request: ['POST', '/api/note', { 'content-type': 'application/json' }, '{"text":1}'],
    status: 401,
    problem: 'USER_REQUIRED',
    asked: 1,
    headers: { 'www-authenticate': null },
  },
  {
    title: 'an anonymous caller of an operation for users, with malformed JSON',
    request: ['POST', '/api/note', { 'content-type': 'application/json' }, '{'],
    status: 401,
    problem: 'USER_REQUIRED',
    asked: 1,
  },
  {
    title: 'a user with malformed JSON',
    request: ['POST', '/api/note', { ...ANN, 'content-type': 'application/json' }, '{'],
    status: 400,
    problem: 'MALFORMED_JSON',
    asked: 1,
  },
  {
    title: 'a user with a body of the wrong type',
    request: ['POST', '/api/note', { ...ANN, 'content-type': 'application/json' }, '{"text":1}'],
    status: 422,
    problem: 'INVALID_DATA',
    asked: 1,
  },
  {
    title: 'a user with a path of the wrong type',
    request: ['GET', '/api/note/seven', ANN],
    status: 422,
    problem: 'INVALID_DATA',
    asked: 1,
  },
  {
    title: 'a user with a valid body',
    request: ['POST', '/api/note', { ...ANN, 'content-type': 'application/json' }, '{"text":"a"}'],
    status: 200,
    asked: 1,
  },
  {
    title: 'authenticate that returns a user with an empty id',
    request: ['GET', '/api/note/7', { authorization: 'Token odd' }],
    status: 500,
    problem: 'INTERNAL_ERROR',
    asked: 1,
  },
  {
    title: 'authenticate that returns a string',
    request: ['GET', '/api/note/7', { authorization: 'Token text' }],
    status: 500,
    problem: 'INTERNAL_ERROR',
    asked: 1,
  },
  {
    title: 'authenticate that throws',
    request: ['GET', '/api/note/7', { authorization: 'Token throws' }],
    status: 500,
    problem: 'INTERNAL_ERROR',
    asked: 1,
  },
  {
    title: 'authenticate that throws an HttpError',
    request: ['GET', '/api/note/7', { authorization: 'Token refused' }],
    status: 403,
    problem: 'BANNED',
    asked: 1,
  },
  {
    title: 'an access function that returns neither true nor false',
    request: ['GET', '/api/note/odd', ANN],
    status: 500,
    problem: 'INTERNAL_ERROR',
    asked: 1,
  },
  {
    title: 'an access function that returns false',
    request: ['GET', '/api/note/odd'],
    status: 403,
    problem: 'ACCESS_DENIED',
    asked: 1,
  },
  {
    title: 'an access list whose second rule fails',
    request: ['GET', '/api/note/mine', ANN],
    status: 403,
    problem: 'ACCESS_DENIED',
    asked: 1,
  },
  {
    title: 'an access list whose first rule fails',
    request: ['GET', '/api/note/mine'],
    status: 401,
    problem: 'USER_REQUIRED',
    asked: 1,
  },
  {
    title: 'a user at an operation with access: caller',
    request: ['GET', '/api/note/either', ANN],
    status: 200,
    asked: 1,
  },
  {
    title: 'an application at an operation with access: caller',
    request: ['GET', '/api/note/either', { authorization: 'Bearer app' }],
    status: 200,
    asked: 1,
  },
  {
    title: 'an anonymous caller at an operation with access: caller',
    request: ['GET', '/api/note/either'],
    status: 401,
    problem: 'USER_REQUIRED',
    asked: 1,
  },
  {
    title: 'a revoked credential',
    request: ['GET', '/api/note/7', { authorization: 'Bearer dead' }],
    status: 401,
    problem: 'INVALID_CREDENTIAL',
    asked: 0,
  },
];

describe('a server with a service file', () => {
  let service: Service;
  let calls: string[];
  before(async () => {
    service = await startService({
      controllers: {
        // The import below then has the same exports on every Node.
        'package.json': '{"type":"module"}',
        'service.ts': SERVICE_FILE,
        'NoteController.ts': NOTE_CONTROLLER,
        'LimitController.ts': LIMIT_CONTROLLER,
      },
      parts: { credentials: { identify: makeApplication } },
      expectedErrors: ['request-failed'],
    });
    calls = (await import(pathToFileURL(join(service.dir, 'service.ts')).href)).calls;
  });
  after(() => service.close());

  for (const { title, request, status, problem, asked, headers = {} } of rows) {
    it(`${title}: ${status} ${problem ?? ''}`, async () => {
      calls.length = 0;
      const [method, path, sent, body] = request;
      const response = await fetch(service.url + path, { method, headers: sent ?? {}, body: body ?? null });
      const text = await response.text();
      assert.equal(response.status, status, text);
      if (problem !== undefined) assert.equal(JSON.parse(text).problem, problem, text);
      assert.equal(calls.length, asked, calls.join('; '));
      for (const [name, value] of Object.entries(headers)) assert.equal(response.headers.get(name), value, name);
    });
  }

  it('passes the path, query and cookies to authenticate as strings', async () => {
    calls.length = 0;
    const headers = { cookie: 'session=s%201; session=2; odd', 'content-type': 'application/json' };
    // A function that compares `page` with a name must not miss the other spelling of the group.
    await fetch(`${service.url}/api/Note/07?q=a`, { headers });
    assert.deepEqual(calls, ['note,GET {id},GET,07,a,s 1']);
  });

  it('leaves the user out of a copy of the params and logs the user', async () => {
    const response = await fetch(`${service.url}/api/note/secret`, { headers: ANN });
    const { echo, by } = (await response.json()) as { echo: object; by: string };
    assert.equal(by, 'ann');
    assert.equal('user' in echo, false);
    const line = service.lines.filter(({ event, path }) => event === 'request' && path === '/api/note/secret').at(-1);
    assert.equal(line?.user, 'ann');
  });

  it('sends 100 Continue only after the access check', async () => {
    const head = 'POST /api/note HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 12\r\n';
    const refused = await service.raw(`${head}Expect: 100-continue\r\n\r\n`);
    assert.match(refused, /^HTTP\/1\.1 401 /);
    const asked = await service.raw(
      `${head}Authorization: Token ann\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n`,
      0,
    );
    assert.match(asked, /^HTTP\/1\.1 100 /);
  });

  it('counts the rate limit of an operation per user', async () => {
    const limited = (headers: Record<string, string>) => fetch(`${service.url}/api/note/limited`, { headers });
    assert.equal((await limited(ANN)).status, 200);
    const second = await limited(ANN);
    assert.equal(second.status, 429);
    assert.match(second.headers.get('retry-after') ?? '', /^\d+$/);
    assert.equal((await limited({})).status, 200, 'an anonymous caller must be counted by address');
  });

  it('counts users, applications and addresses of the same name separately for each operation', async () => {
    for (const name of ['127.0.0.1', 'application app']) {
      const path = `${service.url}/api/limit`;
      assert.equal((await fetch(path, { headers: { authorization: `Name ${name}` } })).status, 200, name);
      const headers: Record<string, string> = name === 'application app' ? { authorization: 'Bearer app' } : {};
      for (const other of ['', '/user'])
        assert.equal((await fetch(path + other, { headers })).status, 200, name + other);
    }
  });

  it('reads the id of a user once', async () => {
    const response = await fetch(`${service.url}/api/note/either`, { headers: { authorization: 'Token getter' } });
    assert.equal(response.status, 200, await response.text());
    const line = service.lines.findLast(({ event }) => event === 'request');
    assert.deepEqual([line?.path, line?.user], ['/api/note/either', 'once']);
  });

  it('answers 500 when authenticate throws in a callback', async (t) => {
    onUncaught(t as TestContext, service.app.failCurrentRequest);
    const response = await fetch(`${service.url}/api/note/7`, {
      headers: { authorization: 'Token stray' },
      signal: AbortSignal.timeout(60_000),
    });
    assert.equal(response.status, 500, await response.text());
  });

  it('passes no page, method, path or verb to formatError for a malformed request', async () => {
    const answer = await service.raw('NONSENSE\r\n\r\n');
    const body = JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4));
    assert.deepEqual(body, { problem: 'MALFORMED_REQUEST', status: 400, text: body.text, count: 0 });
    assert.match(answer, /x-request-id/i);
  });
});
