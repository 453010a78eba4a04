// Typical days of some users of the Conduit, over a socket and with a real PostgreSQL.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { startConduit } from './conduit.ts';
import { noPostgres } from './postgres.ts';

const dragon = { title: 'How to train your dragon', description: 'Ever wonder how?', body: 'Very carefully.' };
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

describe('conduit', { skip: noPostgres }, async () => {
  if (noPostgres) return;
  const { ask, register } = await startConduit();
  const ann = await register('ann');
  const bob = await register('bob');

  test('a user registers, signs in, and changes the bio and the password', async () => {
    const user = { username: 'Zoë', email: 'Zoe@Example.com', password: 'pässwörd' };
    const made = await ask('POST', '/users', undefined, { user });
    assert.equal(made.status, 201);
    const { token, ...rest } = made.body.user;
    assert.deepEqual(rest, { username: 'Zoë', email: 'Zoe@Example.com', bio: null, image: null });
    const login = await ask('POST', '/users/login', undefined, { user: { ...user, email: 'zoe@example.com' } });
    assert.equal(login.status, 200);
    const current = await ask('GET', '/user', login.body.user.token);
    assert.deepEqual([current.status, current.body.user.username], [200, 'Zoë']);
    const changed = await ask('PUT', '/user', token, { user: { bio: 'I train', image: null, password: 'new' } });
    assert.deepEqual([changed.status, changed.body.user.bio], [200, 'I train']);
    const again = { user: { email: user.email, password: 'new' } };
    assert.equal((await ask('POST', '/users/login', undefined, again)).status, 200);
    assert.equal((await ask('POST', '/users/login', undefined, { user })).status, 401);
  });

  test('a user follows and unfollows a profile', async () => {
    const following = async (verb: string, path: string, token?: string) =>
      (await ask(verb, path, token)).body.profile.following;
    assert.deepEqual((await ask('GET', '/profiles/bob')).body, {
      profile: { username: 'bob', bio: null, image: null, following: false },
    });
    assert.equal(await following('POST', '/profiles/bob/follow', ann), true);
    assert.equal(await following('POST', '/profiles/bob/follow', ann), true, 'a second follow changes nothing');
    assert.equal(await following('GET', '/profiles/bob', ann), true);
    assert.equal(await following('GET', '/profiles/bob', bob), false);
    assert.equal(await following('DELETE', '/profiles/bob/follow', ann), false);
    assert.equal(await following('DELETE', '/profiles/bob/follow', ann), false, 'a second unfollow changes nothing');
  });

  test('an author creates, changes, renames and deletes an article', async () => {
    const made = await ask('POST', '/articles', ann, {
      article: { ...dragon, tagList: ['training', 'dragons', 'training'] },
    });
    assert.equal(made.status, 201);
    const { createdAt, updatedAt, ...article } = made.body.article;
    assert.match(createdAt, TIME);
    assert.match(updatedAt, TIME);
    const author = { username: 'ann', bio: null, image: null, following: false };
    assert.deepEqual(article, {
      ...dragon,
      ...{
        slug: 'how-to-train-your-dragon',
        tagList: ['dragons', 'training'],
        favorited: false,
        favoritesCount: 0,
        author,
      },
    });
    const second = (await ask('POST', '/articles', ann, { article: dragon })).body.article;
    assert.match(second.slug, /^how-to-train-your-dragon-[0-9a-f]{8}$/);
    assert.deepEqual(second.tagList, []);

    const one = `/articles/${article.slug}`;
    const changed = (await ask('PUT', one, ann, { article: { body: 'With two hands', tagList: ['x'] } })).body.article;
    assert.deepEqual([changed.slug, changed.body, changed.tagList], [article.slug, 'With two hands', article.tagList]);
    assert.ok(changed.updatedAt >= updatedAt);
    const renamed = (await ask('PUT', one, ann, { article: { title: 'Feed' } })).body.article;
    assert.match(renamed.slug, /^feed-/, 'a slug never equals the route feed');
    assert.equal((await ask('GET', one)).status, 404);
    for (const { slug } of [renamed, second]) {
      const gone = await ask('DELETE', `/articles/${slug}`, ann);
      assert.deepEqual([gone.status, gone.body], [204, undefined]);
    }
    assert.deepEqual((await ask('GET', '/articles')).body, { articles: [], articlesCount: 0 });
  });

  test('articles are listed by tag, author, favourite and feed, page by page', async () => {
    const add = async (title: string, token: string, tagList: string[]) =>
      (await ask('POST', '/articles', token, { article: { ...dragon, title, tagList } })).body.article.slug as string;
    await add('one', ann, ['a']);
    await add('two', bob, ['a', 'b']);
    const three = await add('three', bob, []);
    const list = async (query: string, token?: string) => {
      const { articles, articlesCount } = (await ask('GET', `/articles${query}`, token)).body;
      return [articlesCount, ...articles.map(({ slug }: { slug: string }) => slug)];
    };
    assert.deepEqual(await list(''), [3, 'three', 'two', 'one']);
    assert.deepEqual(await list('?limit=1&offset=1'), [3, 'two']);
    assert.deepEqual(await list('?offset=7'), [3]);
    assert.deepEqual(await list('?tag=a'), [2, 'two', 'one']);
    assert.deepEqual(await list('?author=bob&tag=b'), [1, 'two']);
    assert.deepEqual(await list('?favorited=ann'), [0]);
    const liked = (await ask('POST', `/articles/${three}/favorite`, ann)).body.article;
    assert.deepEqual([liked.favorited, liked.favoritesCount], [true, 1]);
    assert.equal(
      (await ask('POST', `/articles/${three}/favorite`, ann)).body.article.favoritesCount,
      1,
      'a second favourite is not counted',
    );
    assert.deepEqual(await list('?favorited=ann'), [1, 'three']);
    assert.deepEqual(await list('/feed', ann), [0]);
    await ask('POST', '/profiles/bob/follow', ann);
    assert.deepEqual(await list('/feed?limit=1', ann), [2, 'three']);
    const [newest] = (await ask('GET', '/articles', ann)).body.articles;
    assert.deepEqual([newest.favorited, newest.author.following, 'body' in newest], [true, true, false]);
    const unliked = (await ask('DELETE', `/articles/${three}/favorite`, ann)).body.article;
    assert.deepEqual([unliked.favorited, unliked.favoritesCount], [false, 0]);
    assert.deepEqual((await ask('GET', '/tags')).body, { tags: ['a', 'b'] });
  });

  test('concurrent articles with the same title get different slugs or are refused', async () => {
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => ask('POST', '/articles', bob, { article: { ...dragon, title: 'At once' } })),
    );
    const made = answers.filter(({ status }) => status === 201).map(({ body }) => body.article.slug);
    assert.equal(new Set(made).size, made.length);
    for (const { status, body } of answers.filter(({ status }) => status !== 201))
      assert.deepEqual([status, body], [422, { errors: { body: ['slug has already been taken'] } }]);
  });

  test('a user adds, lists and deletes a comment', async () => {
    const slug = (await ask('POST', '/articles', ann, { article: dragon })).body.article.slug;
    const path = `/articles/${slug}/comments`;
    const made = await ask('POST', path, bob, { comment: { body: 'Thank you so much!' } });
    assert.equal(made.status, 200);
    const { id, createdAt, updatedAt, ...rest } = made.body.comment;
    assert.deepEqual([Number.isInteger(id), TIME.test(createdAt), TIME.test(updatedAt)], [true, true, true]);
    const author = { username: 'bob', bio: null, image: null, following: false };
    assert.deepEqual(rest, { body: 'Thank you so much!', author });
    assert.equal((await ask('GET', path, ann)).body.comments[0].author.following, true);
    assert.deepEqual((await ask('GET', path)).body, { comments: [made.body.comment] });
    assert.equal((await ask('DELETE', `${path}/${id}`, bob)).status, 204);
    assert.deepEqual((await ask('GET', path)).body, { comments: [] });
  });

  test('the OpenAPI document has the Token scheme for users, and the error body of the specification', async () => {
    const { paths, components } = (await ask('GET', '/openapi.json')).body;
    assert.deepEqual(Object.keys(components.securitySchemes), ['application', 'Token']);
    const operations = Object.entries(paths as Record<string, Record<string, { security?: object }>>).flatMap(
      ([path, verbs]) => Object.entries(verbs).map(([verb, { security }]) => ({ name: `${verb} ${path}`, security })),
    );
    assert.equal(operations.length, 19);
    const open = operations.filter(({ security }) => security === undefined).map(({ name }) => name);
    assert.deepEqual(open.sort(), [
      'get /api/articles',
      'get /api/articles/{slug}',
      'get /api/articles/{slug}/comments',
      'get /api/profiles/{username}',
      'get /api/tags',
      'post /api/users',
      'post /api/users/login',
    ]);
    for (const { name, security } of operations)
      if (!open.includes(name)) assert.deepEqual(security, [{ Token: [] }], name);
    const { schema } = components.responses.InvalidData.content['application/json'];
    assert.deepEqual(schema, { $ref: '#/components/schemas/Errors' });
  });
});
