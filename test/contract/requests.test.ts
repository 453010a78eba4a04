// Requests that are checked by the types of their operations, over a real socket: accepted values, their conversion,
// and the answers to wrong ones.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type Service, startService } from '../support/service.ts';

const CONTROLLERS = {
  'types.ts': `
    import type { Int } from 'gatefold';
    export type Role = 'admin' | 'user';
    export interface Address { street: string; zip: string }
    export interface Page<T> { items: T[]; total: Int }
    export const SIZES = ['s', 'm', 'l'] as const;`,
  'UserController.ts': `
    import type { ControllerParams, DateOnly, Email, Int, Uuid } from 'gatefold';
    import { type Address, type Role, SIZES } from './types.ts';
    /** Somebody new. */
    interface NewUser {
      /** @minLength 1
       *  @maxLength 10 */
      name: string;
      email: Email;
      age?: Int;
      role: Role;
      address?: Address;
      size?: (typeof SIZES)[number];
      born?: DateOnly;
      seen?: Date;
      tags?: string[];
      id?: Uuid;
    }
    type Nested = string | (number | Nested)[];
    const seen = (data: unknown, params: ControllerParams) => ({ data, query: params.query });
    export default class UserController {
      created(data: NewUser, params: ControllerParams<{ query: { dryRun?: boolean; limit?: Int } }>) {
        return { data, isDate: data.seen instanceof Date, dryRun: params.query.dryRun ?? null };
      }
      index(query: { page?: Int; on?: boolean; role?: Role; tag?: string[]; since?: Date; ratio?: number | 'auto' }) {
        return { query, isDate: query.since instanceof Date };
      }
      red(data: Record<string, number>) { return data; }
      updated(data: { /** @minimum 2 */ [name: string]: number }) { return data; }
      patch(data: { kind: 'circle'; r: number } | { kind: 'square'; side: number }) { return data; }
      deleted(data: { a: string } | { a: string; b: number }) { return data; }
      free(data: unknown, params: ControllerParams) { return seen(data, params); }
      nest(data: { list: Nested }) { return data; }
      static operations = { scan: { accepts: ['image/png'] } };
      scan(data: { size: number; type?: string }) { return data; }
      sort(data: { meta: Record<string, string> }) { return data; }
      upload(data: { file: File; note?: string; count: Int }) { return { size: data.file.size, count: data.count }; }
    }`,
  'OrderController.ts': `
    import type { ControllerParams, Int } from 'gatefold';
    type Params = ControllerParams<{ path: { id: Int } }>;
    export default class OrderController {
      'GET {id}'(_: unknown, { path: { id } }: Params) { return { id }; }
      'PATCH {id}'(change: { note: string }, { path: { id } }: Params) { return { id, change }; }
    }`,
  'ObjectController.ts': `
    const rename = async (data: { to: string }) => data;
    export default {
      index: (query: { page: number }) => query,
      async created(data: { name: string }) { return data; },
      patch: rename,
      red: function (data: { on: boolean }) { return data; },
    };`,
  'crud.ts': `
    export abstract class Crud<T extends { id: string }> {
      created(data: T): T { return data; }
      updated(data: Partial<T>): Partial<T> { return data; }
    }`,
  'ItemController.ts': `
    import { Crud } from './crud.ts';
    interface Item { id: string; price: number }
    export default class ItemController extends Crud<Item> {
      index() { return []; }
    }`,
  'ScriptController.mjs': `
    export default class ScriptController {
      /** Takes what comes. */
      red(data) { return data; }
    }`,
  'LibraryController.mjs': `
    const schema = (check, json) => ({ '~standard': { version: 1, vendor: 'test', validate: check, ...(json && { jsonSchema: { input: () => json, output: () => json } }) } });
    export default class LibraryController {
      static operations = {
        created: { body: schema((value) => (typeof value?.n === 'number' ? { value: { n: value.n + 1 } } : { issues: [{ message: 'no number', path: ['n', { key: 'a/b' }] }] })) },
        red: { body: schema(async (value) => ({ value: { late: value } })) },
        index: { query: schema((value) => ({ value: { page: Number(value.page) } })) },
        lateOne: { timeout: 20, body: schema(async (value) => { await globalThis.schemaGate; return { value } }) },
        patch: { body: schema(() => { throw new Error('broken schema'); }) },
        free: { body: schema(() => ({ issues: [] })) },
        flood: { body: schema((value) => ({ issues: Array.from({ length: value.length }, (_, i) => ({ message: 'no', path: [i] })) })) },
        many: { body: schema(() => ({ issues: Array(30).fill({ message: 'no' }) })), query: schema(() => ({ issues: Array(30).fill({ message: 'no' }) })) },
        plain: { body: schema((value) => ({ value, issues: null })) },
        find: { query: schema((value) => ({ value: { page: Number(value.page) } })) },
        updated: { body: schema((value) => (value?.n ? { value } : { issues: [{ message: 'no number', path: ['n'] }] })), query: schema(() => ({ value: { page: 1 } })) },
      };
      created(data) { return data; }
      red(data) { return data; }
      lateOne() { globalThis.lateOneRan = true; return {}; }
      index(data, params) { return { data, query: params.query }; }
      patch(data) { return data; }
      find(data) { return data; }
      free(data) { return data; }
      flood(data) { return data; }
      many(data) { return data; }
      plain(data) { return data; }
      updated(data, params) { return { data, query: params.query }; }
    }`,
};

let service: Service;
before(async () => {
  service = await startService({ controllers: CONTROLLERS, expectedErrors: ['request-failed'] });
});
after(() => service.close());

function formOf(fields: Readonly<Record<string, string | File>>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.set(name, value);
  return form;
}

const USER = { name: 'Ada', email: 'ada@example.com', role: 'admin' };

async function ask(
  method: string,
  path: string,
  body?: unknown,
  type = 'application/json',
): Promise<{ status: number; body: Record<string, unknown> }> {
  const isText = typeof body === 'string';
  const init =
    body === undefined ? {} : { body: body instanceof FormData ? body : isText ? body : JSON.stringify(body) };
  const headers = body === undefined || body instanceof FormData ? {} : { 'Content-Type': type };
  const response = await fetch(`${service.url}/api/${path}`, { method, headers, ...init });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

describe('a valid request reaches its operation with converted data', () => {
  const rows: [name: string, request: Parameters<typeof ask>, expected: unknown][] = [
    ['a body', ['POST', 'user', USER], { data: USER, isDate: false, dryRun: null }],
    [
      'undeclared fields, which are dropped',
      ['POST', 'user', { ...USER, isAdmin: true, address: { street: 'a', zip: 'b', x: 1 } }],
      { data: { ...USER, address: { street: 'a', zip: 'b' } }, isDate: false, dryRun: null },
    ],
    [
      'a Date',
      ['POST', 'user', { ...USER, seen: '2026-01-02T03:04:05+01:00' }],
      { data: { ...USER, seen: '2026-01-02T02:04:05.000Z' }, isDate: true, dryRun: null },
    ],
    [
      'params.query beside a body',
      ['POST', 'user?dryRun=true&other=1', USER],
      { data: USER, isDate: false, dryRun: true },
    ],
    [
      'a query',
      ['GET', 'user?page=2&on=false&role=user&tag=a&ratio=0.5&since=2026-01-02T03:04:05Z'],
      {
        query: { page: 2, on: false, role: 'user', tag: ['a'], ratio: 0.5, since: '2026-01-02T03:04:05.000Z' },
        isDate: true,
      },
    ],
    [
      'several values for one query parameter',
      ['GET', 'user?tag=a&tag=b&ratio=auto'],
      { query: { tag: ['a', 'b'], ratio: 'auto' }, isDate: false },
    ],
    ['a record, which keeps its fields', ['PUT', 'user', { a: 1, b: 2 }], { a: 1, b: 2 }],
    ['a union with a tag', ['PATCH', 'user', { kind: 'square', side: 2, r: 1 }], { kind: 'square', side: 2 }],
    [
      'a union without a tag, which keeps the declared fields of all parts',
      ['DELETE', 'user', { a: 'x', b: 1, c: 2 }],
      { a: 'x', b: 1 },
    ],
    [
      'data of type unknown, which is not checked',
      ['POST', 'user/free?a=1', { any: [1] }],
      { data: { any: [1] }, query: { a: '1' } },
    ],
    [
      'a form',
      ['POST', 'user?', 'name=Ada&email=ada@example.com&role=user&age=36&tags=x', 'application/x-www-form-urlencoded'],
      {
        data: { name: 'Ada', email: 'ada@example.com', age: 36, role: 'user', tags: ['x'] },
        isDate: false,
        dryRun: null,
      },
    ],
    ['a recursive union', ['POST', 'user/nest', { list: [1, ['a', [2]]] }], { list: [1, ['a', [2]]] }],
    ['a path', ['GET', 'order/7'], { id: 7 }],
    ['a path and a body', ['PATCH', 'order/7', { note: 'n', id: 9 }], { id: 7, change: { note: 'n' } }],
    ['an arrow function of an object', ['GET', 'object?page=1'], { page: 1 }],
    ['a method of an object', ['POST', 'object', { name: 'x', y: 1 }], { name: 'x' }],
    ['a constant in an object', ['PATCH', 'object', { to: 'x', y: 1 }], { to: 'x' }],
    ['a generic base class', ['POST', 'item', { id: 'a', price: 1, x: 1 }], { id: 'a', price: 1 }],
    ['a Partial of a type parameter in a generic base class', ['POST', 'item/updated', { price: 1 }], { price: 1 }],
    ['a script without types', ['PUT', 'script', { a: 1 }], { a: 1 }],
    ['a library schema', ['POST', 'library', { n: 1 }], { n: 2 }],
    ['an asynchronous library schema', ['PUT', 'library', [1]], { late: [1] }],
    ['a library schema for the query', ['GET', 'library?page=4'], { data: { page: 4 }, query: { page: 4 } }],
    ['a library schema for the query of an operation by name', ['GET', 'library/find?page=4'], { page: 4 }],
    ['a library schema that returns null for no issues', ['POST', 'library/plain', { a: 1 }], { a: 1 }],
    [
      'library schemas for the body and the query',
      ['POST', 'library/updated', { n: 1 }],
      { data: { n: 1 }, query: { page: 1 } },
    ],
  ];
  for (const [name, request, expected] of rows) {
    test(name, async () => assert.deepEqual(await ask(...request), { status: 200, body: expected }));
  }

  test('a file of a form', async () => {
    const form = formOf({ file: new File(['abc'], 'a.txt'), count: '3' });
    assert.deepEqual(await ask('POST', 'user/upload', form), { status: 200, body: { size: 3, count: 3 } });
  });
});

describe('an invalid request gets 422 with its mistakes', () => {
  const rows: [name: string, request: Parameters<typeof ask>, expected: string[]][] = [
    [
      'several fields',
      ['POST', 'user', { name: '', role: 'root', age: 1.5 }],
      [
        'body /name must not be empty',
        'body /email is missing',
        'body /age must be a whole number',
        'body /role must be "admin" or "user"',
      ],
    ],
    ['a body of null', ['POST', 'user', 'null'], ['body  must be an object']],
    ['a list in the place of an object', ['POST', 'user', [USER]], ['body  must be an object']],
    [
      'a nested field',
      ['POST', 'user', { ...USER, address: { street: 1, zip: 'z' } }],
      ['body /address/street must be a string'],
    ],
    ['an entry of a list', ['POST', 'user', { ...USER, tags: ['a', 1] }], ['body /tags/1 must be a string']],
    ['a number as a string in JSON', ['POST', 'user', { ...USER, age: '36' }], ['body /age must be a whole number']],
    [
      'a text that is too long',
      ['POST', 'user', { ...USER, name: 'a'.repeat(11) }],
      ['body /name must have at most 10 characters'],
    ],
    [
      'formats',
      ['POST', 'user', { ...USER, email: 'ada@', born: '2026-02-30', seen: 'now', id: 'x' }],
      [
        'body /email must be an email address',
        'body /born must be a date like 2026-12-31',
        'body /seen must be a date and time like 2026-12-31T23:59:59Z',
        'body /id must be a UUID',
      ],
    ],
    [
      'an enumeration of constants',
      ['POST', 'user', { ...USER, size: 'xl' }],
      ['body /size must be one of "s", "m", "l"'],
    ],
    [
      'a body and a query at once',
      ['POST', 'user?dryRun=yes&limit=x', { ...USER, name: 1 }],
      ['query /dryRun must be true or false', 'query /limit must be a whole number', 'body /name must be a string'],
    ],
    [
      'a query',
      ['GET', 'user?page=two&on=1&role=x'],
      [
        'query /page must be a whole number',
        'query /on must be true or false',
        'query /role must be "admin" or "user"',
      ],
    ],
    ['a single query value that is sent twice', ['GET', 'user?page=1&page=2'], ['query /page must be a whole number']],
    ['a record', ['PUT', 'user', { a: 1, 'b/c~d': 'x' }], ['body /b~1c~0d must be a number']],
    ['an unknown tag of a union', ['PATCH', 'user', { kind: 'oval' }], ['body /kind must be "circle" or "square"']],
    ['a missing tag of a union', ['PATCH', 'user', {}], ['body /kind is missing']],
    ['a missing field in a part of a tagged union', ['PATCH', 'user', { kind: 'circle' }], ['body /r is missing']],
    [
      'a recursive union',
      ['POST', 'user/nest', { list: [1, [true]] }],
      ['body /list/1/0 must be a number or a string or a list'],
    ],
    [
      'the bytes of a body where an object is declared',
      ['POST', 'user/scan', 'GIF', 'image/png'],
      ['body  must be an object'],
    ],
    [
      'a text where a file is declared',
      ['POST', 'user/upload', 'file=a&count=1', 'application/x-www-form-urlencoded'],
      ['body /file must be a file'],
    ],
    [
      'a file where an object is declared',
      ['POST', 'user/sort', formOf({ meta: new File(['x'], 'evil.html') })],
      ['body /meta must be an object'],
    ],
    ['a path', ['GET', 'order/seven'], ['path /id must be a whole number']],
    ['a whole number of 19 digits', ['GET', `order/${2n ** 60n}`], ['path /id must be at most 9007199254740991']],
    ['a path and a body', ['PATCH', 'order/x', {}], ['path /id must be a whole number', 'body /note is missing']],
    ['an arrow function of an object', ['GET', 'object?page=x'], ['query /page must be a number']],
    ['a constant in an object', ['PATCH', 'object', {}], ['body /to is missing']],
    ['a function in an object', ['PUT', 'object', { on: 'true' }], ['body /on must be true or false']],
    ['a generic base class', ['POST', 'item', { id: 1 }], ['body /id must be a string', 'body /price is missing']],
    [
      'a Partial of a type parameter in a generic base class',
      ['POST', 'item/updated', { price: 'x' }],
      ['body /price must be a number'],
    ],
    [
      'a constraint on the fields of a record',
      ['POST', 'user/updated', { a: 2, b: 1 }],
      ['body /b must be at least 2'],
    ],
    [
      'a form',
      ['POST', 'user', 'name=Ada&email=x&role=user&age=old', 'application/x-www-form-urlencoded'],
      ['body /email must be an email address', 'body /age must be a whole number'],
    ],
    ['a library schema', ['POST', 'library', {}], ['body /n/a~1b no number']],
    [
      'a library schema with half a million issues',
      ['POST', 'library/flood', { length: 500_000 }],
      Array.from({ length: 50 }, (_, i) => `body /${i} no`),
    ],
    [
      'two library schemas with many issues',
      ['POST', 'library/many', {}],
      [...Array(30).fill('query  no'), ...Array(20).fill('body  no')],
    ],
    ['a library schema that returns an empty list of issues', ['POST', 'library/free', {}], ['body  is not valid']],
    [
      'a missing body of a library schema, which the query does not replace',
      ['POST', 'library/updated'],
      ['query /n no number'],
    ],
  ];
  for (const [name, request, expected] of rows) {
    test(name, async () => {
      const { status, body } = await ask(...request);
      const errors = body.errors as { in: string; pointer: string; message: string }[];
      assert.deepEqual(
        errors?.map((error) => `${error.in} ${error.pointer} ${error.message}`),
        expected,
        JSON.stringify(body),
      );
      assert.equal(status, 422);
      assert.equal(body.error_code, 'INVALID_DATA');
      assert.equal(body.status, 'error');
    });
  }

  test('the message names the cure for JSON that is sent as a form or as a text', async () => {
    const rows: [type: string, body: string, hasCure: boolean][] = [
      ['application/x-www-form-urlencoded', '{"name":"Ada"}', true],
      ['text/plain;charset=UTF-8', '[1]', true],
      ['application/x-www-form-urlencoded', 'name=Ada', false],
      ['text/plain', 'Ada', false],
      ['application/json', '{"name":"Ada"}', false],
    ];
    for (const [type, sent, hasCure] of rows) {
      const { status, body } = await ask('POST', 'user', sent, type);
      assert.equal(status, 422);
      assert.equal(/ wrong\. A JSON body needs .* application\/json$/.test(String(body.message)), hasCure, type);
    }
  });

  test('a library schema that throws causes a 500', async () => {
    assert.equal((await ask('PATCH', 'library', {})).status, 500);
  });

  test('an operation does not run when its schema finishes after the timeout', async () => {
    const shared = globalThis as unknown as { schemaGate: Promise<void>; lateOneRan?: true };
    let open = () => {};
    shared.schemaGate = new Promise((resolve) => {
      open = resolve;
    });
    assert.equal((await ask('POST', 'library/lateOne', {})).status, 503);
    open();
    while (!service.lines.some(({ event }) => event === 'operation-finished-late'))
      await new Promise((later) => setTimeout(later, 5));
    assert.equal(shared.lateOneRan, undefined);
  });

  test('the error body contains no sent value and at most 50 mistakes', async () => {
    const secret = 'hunter2-hunter2';
    const tags = Array.from({ length: 500 }, () => ({ secret }));
    const { body } = await ask('POST', 'user?dryRun=x&limit=x', {
      ...USER,
      name: { secret },
      role: secret,
      tags,
      seen: secret,
    });
    assert.ok(!JSON.stringify(body).includes(secret));
    assert.equal((body.errors as unknown[]).length, 50);
  });
});

test('the shipped group "test" receives its body and query unchanged', async () => {
  const shipped = await startService();
  try {
    const answer = await fetch(`${shipped.url}/api/test?a=1`, {
      method: 'POST',
      body: '{"x":[1,{"y":null}]}',
      headers: { 'Content-Type': 'application/json' },
    });
    const { data, params } = (await answer.json()) as { data: unknown; params: { query: unknown } };
    assert.deepEqual([data, params.query], [{ x: [1, { y: null }] }, { a: '1' }]);
  } finally {
    await shipped.close();
  }
});
