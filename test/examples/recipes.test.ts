// Runs the recipes of docs/RECIPES.md over a socket. test/slow/recipes.slow.ts runs the one that needs PostgreSQL.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, it } from 'node:test';
import { SOURCES, sendForm, startRecipe as start, TEXT } from '../support/recipe.ts';
import { parseRaw, sendRaw } from '../support/service.ts';

/** The stand-in for a database: rows in a Map, which a transaction copies, and the statements so far. */
const DATABASE = `
  export const statements: string[] = [];
  let rows = new Map<string, number>([['ann', 10], ['bob', 0]]);
  export interface Transaction { add(name: string, amount: number): Promise<number>; commit(): Promise<void>; rollback(): Promise<void> }
  export const database = {
    rows: () => Object.fromEntries(rows),
    async begin(): Promise<Transaction> {
      statements.push('begin');
      const own = new Map(rows);
      return {
        async add(name, amount) { own.set(name, (own.get(name) ?? 0) + amount); return own.get(name) ?? 0 },
        async commit() { statements.push('commit'); rows = own },
        async rollback() { statements.push('rollback') },
      };
    },
  };`;

describe('the recipe of', () => {
  it('a transaction commits what succeeds and rolls back what throws', async (t) => {
    const { send } = await start(t, 'transaction', {
      'lib/database.ts': DATABASE,
      'LookController.ts': `import { database, statements } from './lib/database.ts';
        export default class { index() { return { rows: database.rows(), statements: statements.splice(0) } } }`,
    });
    const pay = (amount: number) => send('POST', 'account/transfer', { from: 'ann', to: 'bob', amount });
    assert.deepEqual((await pay(4)).body, { left: 6 });
    assert.deepEqual((await send('GET', 'look')).body, { rows: { ann: 6, bob: 4 }, statements: ['begin', 'commit'] });
    assert.equal((await pay(7)).status, 409);
    assert.deepEqual((await send('GET', 'look')).body, { rows: { ann: 6, bob: 4 }, statements: ['begin', 'rollback'] });
    assert.equal((await send('POST', 'account/transfer', { amount: 'x' })).status, 422);
    assert.deepEqual((await send('GET', 'look')).body.statements, [], 'a wrong request begins no transaction');
  });

  it('an idempotency key answers again with the first answer, and with the first refusal', async (t) => {
    const { send } = await start(t, 'idempotency');
    const pay = (amount: number, key?: string) =>
      send('POST', 'payment', { amount }, key === undefined ? {} : { 'idempotency-key': key });
    const twice = await Promise.all([pay(1, 'a'), pay(1, 'a')]);
    assert.deepEqual(
      twice.map(({ status, body }) => [status, body.payment]),
      [
        [201, 1],
        [201, 1],
      ],
    );
    assert.equal((await pay(1, 'a')).body.payment, 1);
    assert.equal((await pay(1)).body.payment, 2);
    assert.equal((await pay(2, 'a')).body.error_code, 'KEY_REUSED');
    const elsewhere = await send('POST', 'payment?shop=2', { amount: 1 }, { 'idempotency-key': 'a' });
    assert.equal(elsewhere.body.error_code, 'KEY_REUSED');
    for (const _ of [1, 2]) {
      const { status, body } = await pay(500, 'b');
      assert.deepEqual([status, body.message], [402, 'No. 3']);
    }
  });

  it('a session slides with each request and ends with two cookies', async (t) => {
    const { send, port } = await start(t, 'session');
    const wrong = await send('POST', 'session', { name: 'ann', password: 'x' });
    assert.equal(wrong.status, 401);
    assert.equal(await sendForm(port, { name: 'ann', password: 'correct horse' }), 415);
    const login = await send('POST', 'session', { name: 'ann', password: 'correct horse' });
    const [session = '', flag = ''] = login.headers.getSetCookie();
    assert.match(session, /^session=[\w-]+; Path=\/; Max-Age=3600; HttpOnly; SameSite=Lax$/);
    assert.match(flag, /^signed_in=1; Path=\/; Max-Age=3600; SameSite=Lax$/);
    const cookie = { cookie: String(session.split(';')[0]) };
    for (const [path, status] of [
      ['session', 200],
      ['session/none', 404],
      ['session?x', 200],
    ] as const) {
      const answer = await send('GET', path, undefined, cookie);
      assert.equal(answer.status, status);
      if (status === 200) assert.deepEqual(answer.headers.getSetCookie(), [session]);
    }
    assert.equal((await send('GET', 'session')).status, 401);
    const again = await send('POST', 'session', { name: 'ann', password: 'correct horse' }, cookie);
    assert.equal((await send('GET', 'session', undefined, cookie)).status, 401, 'a sign-in ends the session before');
    cookie.cookie = String(again.headers.getSetCookie()[0]?.split(';')[0]);
    const logout = await send('DELETE', 'session', undefined, cookie);
    assert.deepEqual(logout.headers.getSetCookie(), [
      'session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax',
      'signed_in=; Path=/; Max-Age=0; SameSite=Lax',
    ]);
    assert.equal(logout.headers.get('cache-control'), 'no-store');
    assert.equal((await send('GET', 'session', undefined, cookie)).status, 401);
  });

  it('a session ends an hour after its last request, also for a copy of its cookie', async (t) => {
    const { send } = await start(t, 'session');
    const login = await send('POST', 'session', { name: 'ann', password: 'correct horse' });
    const cookie = { cookie: String(login.headers.getSetCookie()[0]?.split(';')[0]) };
    const begun = Date.now();
    let minutes = 0;
    t.mock.method(Date, 'now', () => begun + minutes * 60_000);
    for (const [later, status] of [
      [59, 200],
      [118, 200],
      [179, 401],
    ] as const) {
      minutes = later;
      assert.equal((await send('GET', 'session', undefined, cookie)).status, status);
    }
  });

  it('a session limits wrong passwords alone', async (t) => {
    const { send } = await start(t, 'session');
    const login = async (password: string) => (await send('POST', 'session', { name: 'ann', password })).status;
    for (let i = 0; i < 25; i++) assert.equal(await login('correct horse'), 200);
    for (let i = 0; i < 20; i++) assert.equal(await login('x'), 401);
    assert.equal(await login('correct horse'), 429);
  });

  it('webhooks sends one after the answer, and takes only what is signed, once', async (t) => {
    const { port, send, service } = await start(t, 'webhook', {
      'lib/hooks.ts': `export const secret = 'of the test';
        export const hooks: { url: string; secret: string }[] = [];
        export const seen = new Map<string, number>();
        let arrived = () => {};
        const set = seen.set.bind(seen);
        seen.set = (id, total) => { const map = set(id, total); arrived(); return map };
        export const waitFor = () => new Promise<void>((resolve) => { arrived = resolve });`,
      'SetController.ts': `import { hooks, secret, seen, waitFor } from './lib/hooks.ts';
        export default class { created({ port }: { port: number }) { hooks.push({ url: \`http://127.0.0.1:\${port}/api/hook\`, secret }) }
          async index() { if (seen.size === 0) await waitFor(); return { seen: [...seen] } } }`,
    });
    await send('POST', 'set', { port });
    assert.equal((await send('POST', 'order', { total: 7 })).status, 202);
    const { seen } = (await send('GET', 'set')).body;
    assert.equal(seen[0][1], 7);
    const time = () => Math.floor(Date.now() / 1000);
    const body = '{"type":"order.made", "total":8}';
    const post = async (secret: string, sent: string, age = 0) => {
      const mac = createHmac('sha256', secret)
        .update(`a.${time() - age}.${body}`)
        .digest('base64');
      const headers = {
        'content-type': 'application/json',
        'webhook-id': 'a',
        'webhook-timestamp': String(time() - age),
        'webhook-signature': `v1,bm90 v1,${mac}`,
      };
      const answer = await service.fetch('/hook', { method: 'POST', headers, body: sent });
      return [answer.status, ((await answer.json()) as { isNew?: boolean }).isNew];
    };
    assert.deepEqual(await post('of another', body), [401, undefined]);
    assert.deepEqual(await post('of the test', body.replace('8', '9')), [401, undefined]);
    assert.deepEqual(await post('of the test', body, 3600), [401, undefined]);
    assert.deepEqual(await post('of the test', body), [200, true]);
    assert.deepEqual(await post('of the test', body), [200, false]);
    assert.equal((await send('POST', 'hook', { type: 'order.made', total: 1 })).status, 401);
  });

  it('a calendar feed is a text that is sent once', async (t) => {
    const { send } = await start(t, 'calendar', {
      'lib/calendars.ts': `const from = new Date('2026-12-01T09:00:00Z');
        export const calendars = new Map([['secret', [{ id: 1, title: 'Plan; think', from, to: from }]]]);`,
    });
    const first = await send('GET', 'calendar/feed.ics?key=secret');
    assert.equal(first.headers.get('content-type'), 'text/calendar; charset=utf-8');
    assert.match(first.body, /\r\nDTSTART:20261201T090000Z\r\nDTEND:20261201T090000Z\r\nSUMMARY:Plan\\; think\r\n/);
    const etag = String(first.headers.get('etag'));
    const second = await send('GET', 'calendar/feed.ics?key=secret', undefined, { 'if-none-match': etag });
    assert.deepEqual([second.status, second.body], [304, '']);
    assert.equal((await send('GET', 'calendar/feed.ics?key=other')).status, 404);
    const { paths } = (await send('GET', 'openapi.json')).body;
    const { content } = paths['/api/calendar/feed.ics'].get.responses[200];
    assert.deepEqual(content, { '*/*': { schema: { type: 'string', format: 'binary' } } });
  });

  it('errors answers in German to those who ask for it', async (t) => {
    const { send } = await start(t, 'errors');
    const wrong = { name: 'A', seats: 9 };
    const german = await send('POST', 'booking', wrong, { 'accept-language': 'de-AT,de;q=0.9' });
    assert.deepEqual(german.body, {
      code: 'INVALID_DATA',
      message: 'Bitte prüfen Sie Ihre Angaben',
      fields: [
        { pointer: '/name', message: 'braucht mindestens 3 Zeichen' },
        { pointer: '/seats', message: 'darf höchstens 8 sein' },
      ],
    });
    const english = await send('POST', 'booking', wrong);
    assert.equal(english.body.fields[0].message, 'must have at least 3 characters');
  });

  it('a tenant by host keeps tenants apart', async (t) => {
    const { port } = await start(t, 'tenant');
    const ask = async (method: string, host: string, origin: string, body = '') => {
      const head = `${method} /api/note HTTP/1.1\r\nHost: ${host}\r\nOrigin: ${origin}\r\nContent-Type: application/json\r\n`;
      return parseRaw(
        await sendRaw(port, `${head}Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`, 9),
      );
    };
    const [ann, bob] = ['https://app.ann.example', 'https://app.bob.example'];
    assert.deepEqual(JSON.parse((await ask('POST', 'ann.example', ann, '{"text":"milk"}')).body), {
      name: 'Ann',
      notes: ['milk'],
    });
    const own = await ask('GET', 'bob.example', bob);
    assert.deepEqual(JSON.parse(own.body), { name: 'Bob', notes: [] });
    assert.equal(own.headers.get('access-control-allow-origin'), bob);
    assert.equal((await ask('GET', 'bob.example', ann)).headers.get('access-control-allow-origin'), undefined);
    assert.equal((await ask('OPTIONS', 'bob.example', bob)).status, 204);
    assert.equal((await ask('GET', 'eve.example', bob)).status, 404);
  });
});

it('docs/RECIPES.md has eight recipes, and no source that is not run', () => {
  assert.deepEqual(
    [...new Set(SOURCES.map(({ recipe }) => recipe))],
    ['transaction', 'idempotency', 'session', 'password', 'webhook', 'calendar', 'errors', 'tenant'],
  );
  assert.equal(SOURCES.length, TEXT.split('```ts').length - 1);
});
