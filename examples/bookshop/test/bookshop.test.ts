// Tests all operations of the bookshop, over a socket and without a cluster.
import assert from 'node:assert/strict';
import { createHmac, randomBytes } from 'node:crypto';
import { after, describe, test } from 'node:test';
import { startTest, type TestApi } from 'gatefold/testing';
import type BookController from '../controllers/BookController.ts';
import type { Book, NewBook } from '../lib/books.ts';

const hasSqlite = await import('node:sqlite').then(
  () => true,
  () => false,
);
process.env.BOOKSHOP_DB = ':memory:';
process.env.WEBHOOK_SECRET = 'shared with the payment provider';

const emma: NewBook = {
  title: 'Emma',
  author: 'Austen',
  isbn: '9780141439587',
  price: 8.5,
  currency: 'EUR',
  pages: 474,
  publishedOn: '1815-12-23',
  inPrint: true,
  language: 'en',
  tags: ['novel'],
};

describe('bookshop', { skip: hasSqlite ? false : 'node:sqlite needs Node 22.13' }, async () => {
  if (!hasSqlite) return;
  const api: TestApi = await startTest({ controllers: './controllers', env: { MCP: 'on' } });
  const writer = api.as({ application: { name: 'office', scopes: ['books:write'] } });
  after(() => api.close());
  const add = async (book: Partial<NewBook>): Promise<Book> =>
    (await (await writer.fetch('/book', { method: 'POST', json: { ...emma, ...book } })).json()) as Book;
  const list = async (query: string) =>
    (await (await api.fetch(`/book${query}`)).json()) as { books: Book[]; page: number; total: number };
  const titles = async (query: string) => (await list(query)).books.map(({ title }) => title);

  const made = await writer.fetch('/book', { method: 'POST', json: emma });
  const book = (await made.json()) as Book;
  const one = `/book/${book.id}`;
  await add({ title: 'Persuasion', isbn: '9780141439686', price: 7, inPrint: false });
  await add({ title: 'Dracula', author: 'Stoker', isbn: '9780141439846', price: 10.5 });

  test('POST /book returns 201 with Location and ETag', () => {
    assert.deepEqual(
      [made.status, made.headers.get('location'), made.headers.get('etag')],
      [201, `/api/book/${book.id}`, '"1"'],
    );
    assert.deepEqual(book, { ...emma, id: book.id, version: 1 });
  });

  test('GET /book returns a page of the list', async () => {
    const { books, page, total } = await list('?page=2&size=2');
    assert.deepEqual([books.length, page, total], [1, 2, 3]);
  });

  test('GET /book filters the list', async () => {
    assert.deepEqual(await titles('?author=austen'), ['Emma', 'Persuasion']);
    assert.deepEqual(await titles('?title=mm'), ['Emma']);
    assert.deepEqual(await titles('?inPrint=false'), ['Persuasion']);
    assert.deepEqual(await titles('?maxPrice=8'), ['Persuasion']);
  });

  test('GET /book sorts the list', async () => {
    assert.deepEqual(await titles('?sort=price&descending=true'), ['Dracula', 'Emma', 'Persuasion']);
  });

  test('GET /book refuses invalid query values with 422', async () => {
    const answer = await api.fetch('/book?page=0&size=many&inPrint=perhaps&sort=colour');
    const { errors } = (await answer.json()) as { errors: { in: string; pointer: string }[] };
    assert.equal(answer.status, 422);
    assert.deepEqual(errors.map(({ in: place, pointer }) => `${place}${pointer}`).sort(), [
      'query/inPrint',
      'query/page',
      'query/size',
      'query/sort',
    ]);
  });

  test('an unknown book is 404, an invalid id 422, and a wrong method 405', async () => {
    assert.equal((await api.fetch('/book/999')).status, 404);
    assert.equal((await api.fetch(`${one}/nothing`)).status, 404);
    assert.equal((await api.fetch('/book/seven')).status, 422);
    const wrongMethod = await api.fetch(one, { method: 'POST' });
    assert.deepEqual(
      [wrongMethod.status, wrongMethod.headers.get('allow')],
      [405, 'GET, HEAD, PATCH, DELETE, OPTIONS'],
    );
  });

  test('GET /book/{id} with the current ETag returns 304', async () => {
    const answer = await api.fetch(one, { headers: { 'If-None-Match': '"1"' } });
    assert.deepEqual([answer.status, await answer.text()], [304, '']);
  });

  test('PATCH needs the current ETag in If-Match', async () => {
    const patch = (etag?: string) =>
      writer.fetch(one, {
        method: 'PATCH',
        json: { price: 9 },
        headers: etag === undefined ? {} : { 'If-Match': etag },
      });
    assert.equal((await patch()).status, 428);
    assert.equal((await patch('"0"')).status, 412);
    const changed = await patch('"1"');
    assert.deepEqual(
      [changed.status, changed.headers.get('etag'), ((await changed.json()) as Book).price],
      [200, '"2"', 9],
    );
    assert.equal((await patch('"1"')).status, 412);
  });

  test('PATCH with a version refuses an old version and the ISBN of another book', async () => {
    const patch = (json: object) => writer.fetch(one, { method: 'PATCH', json });
    assert.equal((await patch({ price: 8, version: 1 })).status, 412);
    assert.equal((await patch({ isbn: '9780141439686', version: 2 })).status, 409);
    const changed = await patch({ isbn: emma.isbn, price: 8.5, version: 2 });
    assert.deepEqual([changed.status, ((await changed.json()) as Book).version], [200, 3]);
  });

  test('DELETE /book/{id} returns 204 and removes the book', async () => {
    const { id } = await add({ isbn: '9780000000002' });
    const gone = await writer.fetch(`/book/${id}`, { method: 'DELETE' });
    assert.deepEqual([gone.status, await gone.text()], [204, '']);
    assert.equal((await api.fetch(`/book/${id}`)).status, 404);
  });

  test('the reviews of a book are added, listed and found', async () => {
    const review = await api.fetch(`${one}/reviews`, { method: 'POST', json: { stars: 5, text: 'Badly done, Emma' } });
    assert.equal(review.status, 201);
    const url = review.headers.get('location') ?? '';
    assert.deepEqual(await (await api.fetch(url)).json(), await review.json());
    assert.equal(((await (await api.fetch(`${one}/reviews`)).json()) as unknown[]).length, 1);
    assert.equal((await api.fetch(`${one}/reviews/99`)).status, 404);
  });

  test('a cover is stored and returned byte for byte', async () => {
    const image = randomBytes(2_000_000);
    const upload = await writer.fetch(`${one}/cover`, {
      method: 'PUT',
      body: image,
      headers: { 'Content-Type': 'image/png' },
    });
    assert.equal(upload.status, 204);
    const cover = await api.fetch(`${one}/cover`);
    assert.equal(cover.headers.get('content-type'), 'image/png');
    assert.ok(image.equals(Buffer.from(await cover.arrayBuffer())));
    const text = await writer.fetch(`${one}/cover`, {
      method: 'PUT',
      body: 'x',
      headers: { 'Content-Type': 'video/mp4' },
    });
    assert.equal(text.status, 415);
  });

  test('GET /book/export.csv returns CSV with Content-Disposition', async () => {
    const csv = await api.fetch('/book/export.csv');
    assert.equal(csv.headers.get('content-disposition'), 'attachment; filename="books.csv"');
    const lines = (await csv.text()).split('\r\n');
    assert.match(lines[0] ?? '', /^id,title,author/);
    assert.match(lines[1] ?? '', /^"1","Emma","Austen"/);
  });

  test('GET /book/latest redirects with 303', async () => {
    const answer = await api.fetch('/book/latest', { redirect: 'manual' });
    assert.equal(answer.status, 303);
    assert.match(answer.headers.get('location') ?? '', /^\/api\/book\/\d+$/);
  });

  test('the webhook checks the signature of its raw bytes', async () => {
    const order = (await (
      await api.fetch('/order', { method: 'POST', json: { book: book.id, copies: 1 } })
    ).json()) as { id: number };
    const sign = (body: string) => createHmac('sha256', 'shared with the payment provider').update(body).digest('hex');
    const post = (body: string, signature: string) =>
      api.fetch('/webhook/payment', {
        method: 'POST',
        body,
        headers: { 'Content-Type': 'application/json', 'X-Signature': signature },
      });
    const plain = `{"type":"paid","order":${order.id}}`;
    for (const body of [
      `{ "type": "paid", "order": ${order.id} }`,
      `{"type":"paid","order":${order.id},"amount":10.00}`,
      `{"type":"paid","order":${order.id},"note":"\\u00e9"}`,
      `{"type":"paid","order":${order.id},"reference":12345678901234567890}`,
    ]) {
      assert.equal((await post(body, sign(body))).status, 200, body);
      assert.equal((await post(body, sign(JSON.stringify(JSON.parse(body))))).status, 401, body);
    }
    assert.equal((await post(plain, '')).status, 401);
    assert.equal(((await (await api.fetch(`/order/${order.id}`)).json()) as { paid: boolean }).paid, true);
  });

  test('server-sent events resume after Last-Event-ID', async () => {
    const order = () => api.fetch('/order', { method: 'POST', json: { book: book.id, copies: 2 } });
    const { id } = (await (await order()).json()) as { id: number };
    await order();
    const stop = new AbortController();
    const events = await api.fetch('/order/events', {
      headers: { 'Last-Event-ID': String(id - 1) },
      signal: stop.signal,
    });
    assert.equal(events.headers.get('content-type'), 'text/event-stream');
    let text = '';
    for await (const piece of events.body as unknown as AsyncIterable<Uint8Array>) {
      text += Buffer.from(piece).toString();
      if (text.includes(`id: ${id + 1}\n`)) break;
    }
    assert.ok(text.includes(`event: order\nid: ${id}\ndata: {`), text);
    stop.abort();
  });

  test('a session cookie signs a user in and out', async () => {
    const signIn = (password: string) => api.fetch('/session', { method: 'POST', json: { user: 'ada', password } });
    assert.equal((await signIn('wrong')).status, 401);
    const [cookie = ''] = (await signIn('notes')).headers.getSetCookie();
    assert.match(cookie, /^session=[\w-]{32}; HttpOnly/);
    const headers = { cookie: cookie.split(';')[0] ?? '' };
    assert.deepEqual(await (await api.fetch('/session/me', { headers })).json(), { user: 'ada' });
    assert.equal((await api.fetch('/session', { method: 'DELETE', headers })).status, 204);
    assert.equal((await api.fetch('/session/me', { headers })).status, 401);
  });

  test('repeated logins are refused with 429 and Retry-After', async () => {
    for (let i = 0; i < 6; i++)
      await api.fetch('/session', { method: 'POST', json: { user: 'eve', password: 'guess' } });
    const answer = await api.fetch('/session', { method: 'POST', json: { user: 'eve', password: 'guess' } });
    assert.deepEqual(
      [answer.status, ((await answer.json()) as { error_code: string }).error_code],
      [429, 'RATE_LIMITED'],
    );
    assert.ok(Number(answer.headers.get('retry-after')) > 0);
  });

  test('POST /book needs a credential with the scope books:write', async () => {
    const reader = api.as({ application: { name: 'front end', scopes: ['books:read'] } });
    assert.equal((await api.fetch('/book', { method: 'POST', json: emma })).status, 401);
    assert.equal((await reader.fetch('/book', { method: 'POST', json: emma })).status, 403);
    assert.equal((await reader.fetch('/book')).status, 200);
  });

  test('POST /book reports each of ten invalid fields, and a taken ISBN as 409', async () => {
    const wrong = {
      title: '',
      author: 7,
      isbn: '123',
      price: -1,
      currency: 'DM',
      pages: 1.5,
      publishedOn: 'yesterday',
      inPrint: 'yes',
      language: 'English',
      tags: 'novel',
    };
    const answer = await writer.fetch('/book', { method: 'POST', json: wrong });
    const { errors } = (await answer.json()) as { errors: { pointer: string }[] };
    assert.equal(answer.status, 422);
    assert.deepEqual(
      errors.map(({ pointer }) => pointer).sort(),
      Object.keys(wrong)
        .map((name) => `/${name}`)
        .sort(),
    );
    const taken = await writer.fetch('/book', { method: 'POST', json: emma });
    assert.deepEqual(
      [taken.status, ((await taken.json()) as { errors: unknown }).errors],
      [409, [{ pointer: '/isbn', message: `is that of the book with the id ${book.id}` }]],
    );
  });

  test('an order logs a line, and sends a mail after the answer', async () => {
    const { database } = await import('../lib/database.ts');
    const mails = () => (database.prepare('SELECT count(*) AS count FROM mail').get() as { count: number }).count;
    const before = mails();
    await api.fetch('/order', {
      method: 'POST',
      json: { book: book.id, copies: 3 },
      headers: { 'X-Request-Id': 'order-3' },
    });
    const line = api.lines.find(({ event, request_id }) => event === 'operation-info' && request_id === 'order-3');
    assert.deepEqual([line?.message, line?.copies, line?.group, line?.operation], ['order placed', 3, 'Order', 'POST']);
    while (mails() <= before) await new Promise((later) => setTimeout(later, 10));
  });

  test('the MCP endpoint lists and calls tools', async () => {
    const ask = async (caller: Pick<TestApi, 'fetch'>, method: string, params: object = {}) => {
      const answer = await caller.fetch('/mcp', {
        method: 'POST',
        headers: { 'MCP-Protocol-Version': '2025-11-25' },
        json: { jsonrpc: '2.0', id: 1, method, params },
      });
      const { result } = (await answer.json()) as {
        result: { tools: { name: string; description: string }[]; content: { text: string }[]; isError?: boolean };
      };
      return result;
    };
    const { tools } = await ask(writer, 'tools/list');
    assert.deepEqual(
      tools.map(({ name }) => name),
      [
        ...['find_books', 'add_book', 'get_book', 'change_book', 'delete_book', 'list_reviews', 'add_review'],
        ...['show_cover', 'place_order', 'get_order'],
      ],
    );
    assert.ok(
      tools.every(({ description }) => !/^[A-Z]+ \//.test(description)),
      'each tool has a description',
    );
    assert.equal((await ask(api, 'tools/list')).tools.length, 7, 'a caller without a key sees only the public tools');
    const change = (body: object) =>
      ask(writer, 'tools/call', { name: 'change_book', arguments: { path: { id: book.id }, body } });
    const { content, isError } = await change({ price: 9 });
    assert.equal(isError, true);
    assert.match(content[0]?.text ?? '', /- \/body\/version is missing$/);
    const [got] = (await ask(writer, 'tools/call', { name: 'get_book', arguments: { path: { id: book.id } } })).content;
    const { version } = JSON.parse(got?.text ?? '');
    assert.equal((await change({ price: 9, version })).isError, undefined);
    assert.equal((await change({ price: 8, version })).isError, true);
  });

  test('the OpenAPI document lists the methods of a book', async () => {
    const document = (await (await api.fetch('/openapi.json')).json()) as {
      openapi: string;
      paths: Record<string, Record<string, unknown>>;
    };
    assert.match(document.openapi, /^3\.1/);
    assert.deepEqual(
      Object.keys(document.paths['/api/book/{id}'] ?? {})
        .filter((name) => /^[a-z]+$/.test(name) && name !== 'parameters')
        .sort(),
      ['delete', 'get', 'patch'],
    );
  });

  test('the OpenAPI document says what is a redirect, a file, an image and a stream of events', async () => {
    interface Document {
      paths: Record<string, { get: { responses: Record<string, { content?: object }> } }>;
    }
    const { paths } = (await (await api.fetch('/openapi.json')).json()) as Document;
    const found = ['book/latest', 'book/export.csv', 'book/{id}/cover', 'order/events'].map((path) => {
      const { default: _refused, 422: _invalid, ...results } = paths[`/api/${path}`]?.get.responses ?? {};
      return Object.entries(results).map(([status, { content }]) => [status, ...Object.keys(content ?? {})]);
    });
    assert.deepEqual(found, [[['303']], [['200', '*/*']], [['200', '*/*']], [['200', 'text/event-stream']]]);
  });

  test('the typed client returns a book, and throws for an unknown book', async () => {
    const { book: books } = writer.client<{ book: typeof BookController }>();
    const found: Book = await books['GET {id}']({ path: { id: book.id } });
    assert.equal(found.title, 'Emma');
    await assert.rejects(books['GET {id}']({ path: { id: 999 } }), { code: 'BOOK_NOT_FOUND', status: 404 });
  });

  test('the database is closed with the service', async () => {
    const { database } = await import('../lib/database.ts');
    await api.close();
    assert.equal(database.isOpen, false);
  });
});
