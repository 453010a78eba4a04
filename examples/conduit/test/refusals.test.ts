// One row for each refusal of the Conduit. Each has its status and the format of the specification.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { startConduit } from './conduit.ts';
import { noPostgres } from './postgres.ts';

interface Row {
  readonly title: string;
  readonly request: readonly [verb: string, path: string, json?: unknown];
  readonly as?: 'ann' | 'bob' | 'nobody';
  /** The header `Authorization`. Default: the header of a user. */
  readonly authorization?: string;
  /** The body as sent. Default: JSON. */
  readonly text?: string;
  readonly type?: string;
  readonly status: number;
  /** The expected messages. */
  readonly errors?: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
}

const NEW = { title: 'Tea', description: 'How', body: 'Slowly' };
const tokenOf = (content: object, secret: string, alg = 'HS256'): string => {
  const [header, payload] = [{ alg, typ: 'JWT' }, content].map((part) =>
    Buffer.from(JSON.stringify(part)).toString('base64url'),
  );
  const signature = createHmac('sha256', secret).update(`${header}.${payload}`).digest('base64url');
  return `Token ${header}.${payload}.${signature}`;
};
const LATER = Math.floor(Date.now() / 1000) + 1000;
const nobody = { as: 'nobody', status: 401, errors: ['Sign in: the operation is for users alone'] } as const;
const odd = { ...nobody, request: ['GET', '/user'] } as const;

const ROWS: readonly Row[] = [
  // 401: each operation that needs a user, whatever the body.
  { ...nobody, title: 'the current user without a token', request: ['GET', '/user'] },
  { ...nobody, title: 'a change of the user without a token', request: ['PUT', '/user', { user: { email: 7 } }] },
  { ...nobody, title: 'a follow without a token', request: ['POST', '/profiles/ann/follow'] },
  { ...nobody, title: 'an unfollow without a token', request: ['DELETE', '/profiles/ann/follow'] },
  { ...nobody, title: 'the feed without a token', request: ['GET', '/articles/feed?limit=0'] },
  { ...nobody, title: 'a new article without a token', request: ['POST', '/articles', { article: {} }] },
  {
    ...nobody,
    title: 'a new article without a token and with invalid JSON',
    request: ['POST', '/articles'],
    text: '{',
  },
  {
    ...nobody,
    title: 'a change of an article without a token',
    request: ['PUT', '/articles/nothing', { article: NEW }],
  },
  { ...nobody, title: 'the deletion of an article without a token', request: ['DELETE', '/articles/tea'] },
  { ...nobody, title: 'a favourite without a token', request: ['POST', '/articles/tea/favorite'] },
  { ...nobody, title: 'the removal of a favourite without a token', request: ['DELETE', '/articles/tea/favorite'] },
  { ...nobody, title: 'a comment without a token', request: ['POST', '/articles/tea/comments', { comment: {} }] },
  { ...nobody, title: 'the deletion of a comment without a token', request: ['DELETE', '/articles/tea/comments/one'] },
  // 401: invalid tokens.
  { ...odd, title: 'a token that is not a JWT', authorization: 'Token nonsense' },
  { ...odd, title: 'a scheme without a token', authorization: 'Token' },
  { ...odd, title: 'two tokens', authorization: 'Token a.b.c d.e.f' },
  {
    ...odd,
    title: 'a Bearer token',
    authorization: tokenOf({ sub: 1, exp: LATER }, 'of the tests').replace('Token', 'Bearer'),
  },
  {
    ...odd,
    title: 'a token signed with another secret',
    authorization: tokenOf({ sub: 1, exp: LATER }, 'another'),
  },
  { ...odd, title: 'an expired token', authorization: tokenOf({ sub: 1, exp: LATER - 2000 }, 'of the tests') },
  {
    ...odd,
    title: 'a token with the algorithm none',
    authorization: tokenOf({ sub: 1, exp: LATER }, 'of the tests', 'none'),
  },
  {
    ...odd,
    title: 'a token of a user who does not exist',
    authorization: tokenOf({ sub: 999, exp: LATER }, 'of the tests'),
  },
  {
    title: 'a wrong password',
    request: ['POST', '/users/login', { user: { email: 'ann@example.com', password: 'wrong' } }],
    status: 401,
    errors: ['email or password is invalid'],
  },
  {
    title: 'an unknown email',
    request: ['POST', '/users/login', { user: { email: 'who@example.com', password: 'secret' } }],
    status: 401,
    errors: ['email or password is invalid'],
  },
  // 403
  {
    title: 'a change of a foreign article',
    request: ['PUT', '/articles/tea', { article: { body: 'x' } }],
    as: 'bob',
    status: 403,
    errors: ['this article belongs to somebody else'],
  },
  { title: 'the deletion of a foreign article', request: ['DELETE', '/articles/tea'], as: 'bob', status: 403 },
  {
    title: 'the deletion of a foreign comment',
    request: ['DELETE', '/articles/tea/comments/1'],
    as: 'bob',
    status: 403,
    errors: ['this comment belongs to somebody else'],
  },
  // 404
  {
    title: 'an unknown article',
    request: ['GET', '/articles/nothing'],
    status: 404,
    errors: ['there is no such article'],
  },
  { title: 'a change of an unknown article', request: ['PUT', '/articles/nothing', { article: NEW }], status: 404 },
  { title: 'the deletion of an unknown article', request: ['DELETE', '/articles/nothing'], status: 404 },
  { title: 'an unknown article as a favourite', request: ['POST', '/articles/nothing/favorite'], status: 404 },
  {
    title: 'the removal of an unknown article as a favourite',
    request: ['DELETE', '/articles/nothing/favorite'],
    status: 404,
  },
  { title: 'comments of an unknown article', request: ['GET', '/articles/nothing/comments'], status: 404 },
  {
    title: 'a comment on an unknown article',
    request: ['POST', '/articles/nothing/comments', { comment: { body: 'x' } }],
    status: 404,
  },
  {
    title: 'an unknown comment',
    request: ['DELETE', '/articles/tea/comments/999'],
    status: 404,
    errors: ['there is no such comment'],
  },
  {
    title: 'a comment with a large number',
    request: ['DELETE', '/articles/tea/comments/9007199254740991'],
    status: 404,
  },
  {
    title: 'a comment, deleted under another article',
    request: ['DELETE', '/articles/coffee/comments/1'],
    status: 404,
  },
  { title: 'an unknown profile', request: ['GET', '/profiles/who'], status: 404, errors: ['there is no such profile'] },
  { title: 'an unknown profile to follow', request: ['POST', '/profiles/who/follow'], status: 404 },
  { title: 'an unknown profile to unfollow', request: ['DELETE', '/profiles/who/follow'], status: 404 },
  { title: 'an unknown group', request: ['GET', '/nothing'], status: 404 },
  { title: 'an unknown group without a token', request: ['GET', '/nothing'], as: 'nobody', status: 404 },
  { title: 'a path below the tags', request: ['GET', '/tags/what/ever'], status: 404 },
  { title: 'the name of an operation as a path', request: ['POST', '/users/POST', {}], status: 404 },
  { title: 'a path with an extra segment', request: ['GET', '/articles/tea/comments/1/2'], status: 404 },
  { title: 'HEAD of an unknown article', request: ['HEAD', '/articles/nothing'], status: 404 },
  // 405
  { title: 'DELETE of the tags', request: ['DELETE', '/tags'], status: 405, headers: { allow: 'GET, HEAD, OPTIONS' } },
  { title: 'GET of the users', request: ['GET', '/users'], status: 405, headers: { allow: 'POST, OPTIONS' } },
  { title: 'PATCH of an article', request: ['PATCH', '/articles/tea', {}], status: 405 },
  { title: 'GET of a favourite', request: ['GET', '/articles/tea/favorite'], status: 405 },
  { title: 'PUT of the login', request: ['PUT', '/users/login', {}], status: 405 },
  // 400, 413, 415
  { title: 'a body with invalid JSON', request: ['POST', '/articles'], text: '{"article":', status: 400 },
  {
    title: 'a body that is too large',
    request: ['POST', '/articles'],
    text: JSON.stringify('x'.repeat(2e6)),
    status: 413,
  },
  {
    title: 'a body of another type',
    request: ['POST', '/articles'],
    text: '<a/>',
    type: 'application/xml',
    status: 415,
  },
  // 422: bodies
  { title: 'no body', request: ['POST', '/articles'], status: 422, errors: ['article is missing'] },
  { title: 'a list as a body', request: ['POST', '/articles', []], status: 422, errors: ['must be an object'] },
  {
    title: 'an empty article',
    request: ['POST', '/articles', { article: {} }],
    status: 422,
    errors: ['article.title is missing', 'article.description is missing', 'article.body is missing'],
  },
  {
    title: 'an empty title',
    request: ['POST', '/articles', { article: { ...NEW, title: '' } }],
    status: 422,
    errors: ['article.title must not be empty'],
  },
  {
    title: 'a title that is a number',
    request: ['PUT', '/articles/tea', { article: { title: 1 } }],
    status: 422,
    errors: ['article.title must be a string'],
  },
  {
    title: 'a text as the list of tags',
    request: ['POST', '/articles', { article: { ...NEW, tagList: 'a' } }],
    status: 422,
  },
  {
    title: 'a tag that is null',
    request: ['POST', '/articles', { article: { ...NEW, tagList: ['a', null] } }],
    status: 422,
  },
  {
    title: 'an empty comment',
    request: ['POST', '/articles/tea/comments', { comment: { body: '' } }],
    status: 422,
    errors: ['comment.body must not be empty'],
  },
  {
    title: 'a user without fields',
    request: ['POST', '/users', { user: {} }],
    status: 422,
    errors: ['user.username is missing', 'user.email is missing', 'user.password is missing'],
  },
  {
    title: 'an invalid email',
    request: ['POST', '/users', { user: { username: 'x', email: 'x', password: 'x' } }],
    status: 422,
  },
  {
    title: 'a login without a password',
    request: ['POST', '/users/login', { user: { email: 'ann@example.com' } }],
    status: 422,
    errors: ['user.password is missing'],
  },
  {
    title: 'a change without a field',
    request: ['PUT', '/user', { user: {} }],
    status: 422,
    errors: ['user needs one field at least'],
  },
  { title: 'an email that is null', request: ['PUT', '/user', { user: { email: null } }], status: 422 },
  {
    title: 'a NUL in a text',
    request: ['PUT', '/user', { user: { bio: 'a\u0000b' } }],
    status: 422,
    errors: ['a value cannot be stored'],
  },
  // 422: names that are taken
  {
    title: 'a username that is taken',
    request: ['POST', '/users', { user: { username: 'ann', email: 'x@example.com', password: 'x' } }],
    status: 422,
    errors: ['username has already been taken'],
  },
  {
    title: 'an email that is taken, in other letter case',
    request: ['POST', '/users', { user: { username: 'x', email: 'ANN@example.com', password: 'x' } }],
    status: 422,
    errors: ['email has already been taken'],
  },
  {
    title: 'the email of somebody else',
    request: ['PUT', '/user', { user: { email: 'bob@example.com' } }],
    status: 422,
    errors: ['email has already been taken'],
  },
  // 422: queries and paths
  { title: 'a limit of 0', request: ['GET', '/articles?limit=0'], status: 422 },
  { title: 'a negative offset', request: ['GET', '/articles?offset=-1'], status: 422 },
  { title: 'a limit that is not a number', request: ['GET', '/articles/feed?limit=many'], status: 422 },
  { title: 'two authors', request: ['GET', '/articles?author=ann&author=bob'], status: 422 },
  { title: 'a comment id that is not a number', request: ['DELETE', '/articles/tea/comments/one'], status: 422 },
  { title: 'a NUL in a query', request: ['GET', '/articles?tag=%00'], status: 422 },
  { title: 'a NUL in a path', request: ['GET', '/profiles/%00'], status: 400 },
];

describe('conduit answers', { skip: noPostgres }, async () => {
  if (noPostgres) return;
  const { api, ask, register } = await startConduit();
  const tokens = { ann: await register('ann'), bob: await register('bob'), nobody: undefined };
  for (const title of ['Tea', 'Coffee']) await ask('POST', '/articles', tokens.ann, { article: { ...NEW, title } });
  await ask('POST', '/articles/tea/comments', tokens.ann, { comment: { body: 'Mine' } });

  for (const { title, request, as = 'ann', authorization, text, type, status, errors, headers = {} } of ROWS) {
    const [verb, path, json] = request;
    test(`${title}: ${status}`, async () => {
      const answer = await ask(verb, path, tokens[as], json, {
        ...(text !== undefined && { body: text }),
        headers: {
          ...(text !== undefined && { 'content-type': type ?? 'application/json' }),
          ...(authorization !== undefined && { authorization }),
        },
      });
      assert.equal(answer.status, status, JSON.stringify(answer.body));
      for (const [name, value] of Object.entries(headers)) assert.equal(answer.headers.get(name), value);
      assert.equal(answer.headers.get('access-control-allow-origin'), '*');
      assert.match(answer.headers.get('content-type') ?? '', /^application\/json\b/);
      if (verb === 'HEAD') return;
      assert.deepEqual(Object.keys(answer.body), ['errors']);
      assert.deepEqual(Object.keys(answer.body.errors), ['body']);
      assert.ok(answer.body.errors.body.length > 0);
      for (const message of answer.body.errors.body) assert.match(message, /^\S.*\S$/);
      if (errors !== undefined) assert.deepEqual(answer.body.errors.body, errors);
    });
  }

  test('a request that is not HTTP: 400 with the error format', async () => {
    const answer = await new Promise<string>((resolve, reject) => {
      let text = '';
      const socket = connect(api.port, '127.0.0.1', () => socket.end('NONSENSE\r\n\r\n'));
      socket
        .on('error', reject)
        .on('data', (piece) => (text += piece))
        .on('close', () => resolve(text));
    });
    assert.match(answer, /^HTTP\/1\.1 400 /);
    assert.deepEqual(Object.keys(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n'))).errors), ['body']);
  });

  test('a path outside /api: 404 with the error format', async () => {
    const answer = await fetch(`${api.url}/other`);
    assert.deepEqual([answer.status, Object.keys((await answer.json()) as object)], [404, ['errors']]);
  });

  test('an invalid token on a public operation: 200', async () => {
    assert.equal((await ask('GET', '/tags', 'nonsense')).status, 200);
    assert.equal((await ask('GET', '/articles/tea', 'nonsense')).status, 200);
  });

  test('HEAD, a slash at the end and a CORS preflight: success', async () => {
    assert.equal((await ask('HEAD', '/articles')).status, 200);
    assert.equal((await ask('GET', '/tags/')).status, 200);
    const preflight = await ask('OPTIONS', '/user', undefined, undefined, {
      headers: {
        origin: 'https://app.example.com',
        'access-control-request-method': 'PUT',
        'access-control-request-headers': 'authorization,content-type',
      },
    });
    assert.equal(preflight.status < 300, true);
    assert.match(preflight.headers.get('access-control-allow-headers') ?? '', /authorization.*content-type/i);
  });

  test('too many logins in a second: 429 with Retry-After', async () => {
    const logins = Array.from({ length: 60 }, () => ask('POST', '/users/login', undefined, {}));
    const late = (await Promise.all(logins)).filter(({ status }) => status === 429);
    assert.ok(late.length > 0);
    assert.match(late[0]?.headers.get('retry-after') ?? '', /^\d+$/);
    assert.deepEqual(Object.keys(late[0]?.body.errors), ['body']);
  });
});
