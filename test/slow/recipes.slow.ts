// Runs the recipe of docs/RECIPES.md that signs in with a password, on a real PostgreSQL.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import postgres from 'postgres';
import { noPostgres, startPostgres } from '../../examples/conduit/test/postgres.ts';
import { SOURCES, sendForm, startRecipe, TEXT } from '../support/recipe.ts';

it('the recipe of a password signs in, guards, and ends sessions', { skip: noPostgres }, async (t) => {
  const database = await startPostgres();
  t.after(() => database.close());
  const sql = postgres(database.url, { max: 1, onnotice: () => {} });
  t.after(() => sql.end());
  await sql.unsafe(/```sql\n([\s\S]*?)```/.exec(TEXT)?.[1] ?? '');
  const passwords = SOURCES.find(({ name }) => name === 'lib/passwords.ts');
  const { send, port } = await startRecipe(t, 'password', {
    'lib/passwords.ts': String(passwords?.source).replace('2 ** 14', '2 ** 10'), // sixteen times as fast
    // The stand-in for `pg`, with the client that the tests have.
    'lib/database.ts': `import postgres from 'postgres';
      const sql = postgres('${database.url}', { max: 3 });
      export const pool = {
        query: async <Row>(text: string, values: any[]) => ({ rows: await sql.unsafe(text, values) as unknown as Row[] }),
        end: () => sql.end({ timeout: 4 }),
      };`,
    'SetController.ts': `import { hashPassword } from './lib/passwords.ts';
      export default class { static operations = { POST: { access: 'anyone' } } as const;
        async 'POST'({ password }: { password: string }): Promise<{ hash: string }> { return { hash: await hashPassword(password) } } }`,
  });
  const first = 'correct horse battery';
  const { hash } = (await send('POST', 'set', { password: first })).body;
  await sql`insert into users (email, password, role) values ('Ada@example.com', ${hash}, 'admin')`;
  const signIn = async (email: string, password: string, before: Record<string, string> = {}) => {
    const answer = await send('POST', 'session', { email, password }, before);
    return { ...answer, cookie: { cookie: String(answer.headers.getSetCookie()[0]?.split(';')[0]) } };
  };

  for (const [email, password] of [
    ['ada@example.com', 'wrong'],
    ['bob@example.com', first],
  ] as const)
    assert.equal((await signIn(email, password)).body.error_code, 'WRONG_PASSWORD');
  assert.equal(await sendForm(port, { email: 'ada@example.com', password: first }), 415);
  const ada = await signIn('ada@example.com', first);
  assert.match(
    String(ada.headers.getSetCookie()),
    /^session=[\w-]{43}; Path=\/; Max-Age=604800; HttpOnly; SameSite=Lax$/,
  );
  assert.deepEqual([ada.status, Object.keys(ada.body).sort()], [201, ['email', 'id', 'role']]);
  assert.deepEqual((await send('GET', 'session', undefined, ada.cookie)).body, ada.body);

  const bob = { email: 'bob@example.com', password: 'a long enough one' };
  assert.equal((await send('POST', 'user', bob)).status, 401);
  assert.equal((await send('POST', 'user', bob, ada.cookie)).body.role, 'member');
  assert.equal((await send('POST', 'user', { ...bob, email: 'BOB@example.com' }, ada.cookie)).status, 409);
  const member = await signIn(bob.email, bob.password);
  assert.equal((await send('POST', 'user', { ...bob, email: 'eve@example.com' }, member.cookie)).status, 403);

  const before = await signIn('ada@example.com', first);
  const again = await signIn('ada@example.com', first, before.cookie);
  assert.equal(
    (await send('GET', 'session', undefined, before.cookie)).status,
    401,
    'a sign-in ends the session before',
  );
  assert.equal((await send('DELETE', 'session', undefined, ada.cookie)).status, 204);
  assert.equal((await send('GET', 'session', undefined, ada.cookie)).status, 401);
  const change = (old: string) =>
    send('PUT', 'session/password', { old, new: 'another long one' }, again.cookie).then(({ status }) => status);
  assert.deepEqual([await change('wrong'), await change(first), await change(first)], [403, 204, 401]);
  assert.equal((await signIn('ada@example.com', first)).status, 401);
  assert.equal((await signIn('ada@example.com', 'another long one')).status, 201);
  await sql`update sessions set expires_at = now()`;
  assert.equal((await send('GET', 'session', undefined, member.cookie)).status, 401);
});
