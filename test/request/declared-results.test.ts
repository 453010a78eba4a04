// Results that are limited to the fields of their types: `results: 'declared'`. The rows leak a column without it.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createParams } from '../../src/api/controller/create-params.ts';
import { createLog } from '../../src/base/log.ts';
import type { Group, Operation } from '../../src/groups/operations.ts';
import { createGroups } from '../../src/live/load/registry.ts';
import { GATEFOLD, type Service, startService } from '../support/service.ts';

const HEAD = `import { eventStream, Reply as Answer } from '${GATEFOLD}';
import type { EventStream, Reply } from 'gatefold';
import { Readable } from 'node:stream';
const row = () => ({ id: 1, name: 'Ann', passwordHash: 'secret', boss: { id: 2, name: 'Bo', passwordHash: 'secret' } });
interface PublicUser { id: number; name: string }
interface Team { lead: PublicUser; members: PublicUser[] }
interface Node { id: number; next?: Node; children?: Node[] }
type Shape = { kind: 'circle'; r: number } | { kind: 'square'; side: number; corner: PublicUser };
class Row { #id = 7; id = 1; name = 'Ann'; passwordHash = 'secret'; get secret() { return this.#id; } }
class Document { passwordHash = 'secret'; toJSON(key: string) { return { ...row(), key }; } }
class Money { cents = 700; secret = 'secret'; toJSON() { return '7.00'; } }
const cyclic = () => { const user: any = row(); user.self = user; user.id = user; return user; };
`;

type Row = readonly [name: string, signature: string, code: string, expected: unknown];

/** Rows with a status as `expected` are refused with this status. */
const ROWS: readonly Row[] = [
  ['a row behind its public type', '(): PublicUser', 'row()', { id: 1, name: 'Ann' }],
  ['a promise of rows', '(): Promise<PublicUser[]>', 'Promise.resolve([row()])', [{ id: 1, name: 'Ann' }]],
  [
    'rows at any depth',
    '(): Team',
    '({ lead: row(), members: [row()], more: row() })',
    { lead: { id: 1, name: 'Ann' }, members: [{ id: 1, name: 'Ann' }] },
  ],
  [
    'a generic type',
    '(): { items: PublicUser[]; total: number }',
    '({ items: [row()], total: 1, next: 2 })',
    { items: [{ id: 1, name: 'Ann' }], total: 1 },
  ],
  ['an instance of a class', '(): PublicUser', 'new Row()', { id: 1, name: 'Ann' }],
  [
    'an object without a prototype',
    '(): PublicUser',
    'Object.assign(Object.create(null), row())',
    { id: 1, name: 'Ann' },
  ],
  ['a proxy', '(): PublicUser', 'new Proxy(row(), {})', { id: 1, name: 'Ann' }],
  ['what toJSON returns', '(): PublicUser', 'new Document()', { id: 1, name: 'Ann' }],
  ['what toJSON returns, with its key', '(): { a: { key: string } }', '({ a: new Document() })', { a: { key: 'a' } }],
  ['the index as the key of toJSON', '(): { key: string }[]', '[new Document()]', [{ key: '0' }]],
  [
    'toJSON of a field',
    '(): { price: string; at: Date }',
    '({ price: new Money(), at: new Date(0) })',
    { price: '7.00', at: '1970-01-01T00:00:00.000Z' },
  ],
  ['an object that may be null', '(): { id: number } | null', 'row()', { id: 1 }],
  ['a list that may be null', '(): { id: number }[] | null', '[row()]', [{ id: 1 }]],
  ['toJSON of the whole result that returns a text', '(): string', 'new Money()', '7.00'],
  ['a date that is not valid', '(): { at: Date }', '({ at: new Date(NaN) })', { at: null }],
  [
    'fields in other orders',
    '(): PublicUser[]',
    "[{ name: 'Ann', id: 1 }, { id: 1, name: 'Ann' }, { name: 'Ann' }, { x: 1, id: 1 }, {}]",
    [{ name: 'Ann', id: 1 }, { id: 1, name: 'Ann' }, { name: 'Ann' }, { id: 1 }, {}],
  ],
  [
    'one row of a list',
    '(): PublicUser[]',
    "[{ id: 1, name: 'Ann' }, row(), { id: 3, name: 'Cy' }]",
    [
      { id: 1, name: 'Ann' },
      { id: 1, name: 'Ann' },
      { id: 3, name: 'Cy' },
    ],
  ],
  [
    'a row inside of a plain object',
    '(): Team',
    "({ lead: { id: 1, name: 'Ann' }, members: [{ id: 1, name: 'Ann' }, row()] })",
    {
      lead: { id: 1, name: 'Ann' },
      members: [
        { id: 1, name: 'Ann' },
        { id: 1, name: 'Ann' },
      ],
    },
  ],
  [
    'a field of the prototype',
    '(): PublicUser',
    "Object.create({ id: 1, passwordHash: 'secret' }, { name: { value: 'Ann', enumerable: true } })",
    { name: 'Ann' },
  ],
  [
    'a date with other fields',
    '(): { at: Date; list: Date[] }',
    "({ at: Object.assign(new Date(0), { passwordHash: 'secret' }), list: [new Date(0)] })",
    { at: '1970-01-01T00:00:00.000Z', list: ['1970-01-01T00:00:00.000Z'] },
  ],
  ['a row where the type is a text', '(): { author: string }', '({ author: row() })', { author: {} }],
  ['a list where the type is a text', '(): { author: string }', '({ author: [row(), 1] })', { author: [{}, 1] }],
  ['a list where the type is an object', '(): PublicUser', '[row()]', [{}]],
  ['an object where the type is a list', '(): PublicUser[]', 'row()', {}],
  [
    'null and undefined in fields',
    '(): { a: PublicUser | null; b?: PublicUser; c: string | null }',
    '({ a: null, b: undefined, c: null })',
    { a: null, c: null },
  ],
  ['holes and undefined in a list', '(): PublicUser[]', '[, row(), undefined]', [null, { id: 1, name: 'Ann' }, null]],
  [
    'functions and symbols',
    '(): { a: string; b: string[] }',
    '({ a: () => 1, b: [Symbol(), () => 1] })',
    { b: [null, null] },
  ],
  ['a function with toJSON', '(): { a: string }', '({ a: Object.assign(() => 1, { toJSON: () => row() }) })', {}],
  ['the tag of a union', '(): Shape', "({ kind: 'circle', r: 1, side: 2, corner: row() })", { kind: 'circle', r: 1 }],
  [
    'the other tag of a union',
    '(): Shape',
    "({ kind: 'square', r: 1, side: 2, corner: row() })",
    { kind: 'square', side: 2, corner: { id: 1, name: 'Ann' } },
  ],
  [
    'a union that nothing decides',
    '(): { a: number } | { b: PublicUser }',
    '({ a: 1, b: row(), c: 1 })',
    { a: 1, b: { id: 1, name: 'Ann' } },
  ],
  [
    'a field of a union in all its parts',
    '(): { a: { x: 1 } } | { a: { y: 1 } }',
    '({ a: { x: 1, y: 1, z: 1 } })',
    { a: { x: 1, y: 1 } },
  ],
  ['a union of an object and a list', '(): PublicUser | PublicUser[]', '[row()]', [{ id: 1, name: 'Ann' }]],
  ['a union of an object and a text', '(): PublicUser | string', 'row()', { id: 1, name: 'Ann' }],
  [
    'a recursive type',
    '(): Node',
    '({ id: 1, x: 1, next: { id: 2, x: 1, children: [{ id: 3, x: 1 }] } })',
    { id: 1, next: { id: 2, children: [{ id: 3 }] } },
  ],
  ['a tuple', '(): [PublicUser, number]', '[row(), 1, row()]', [{ id: 1, name: 'Ann' }, 1]],
  [
    'a tuple with a rest',
    '(): [number, ...PublicUser[]]',
    '[1, row(), row()]',
    [1, { id: 1, name: 'Ann' }, { id: 1, name: 'Ann' }],
  ],
  [
    'an index signature',
    '(): Record<string, PublicUser>',
    '({ a: row(), b: row() })',
    { a: { id: 1, name: 'Ann' }, b: { id: 1, name: 'Ann' } },
  ],
  [
    'an index signature beside a field',
    '(): { [name: string]: unknown; a: PublicUser }',
    '({ a: row(), b: { c: 1 } })',
    { a: { id: 1, name: 'Ann' }, b: { c: 1 } },
  ],
  [
    'an index signature by number',
    '(): { [id: number]: PublicUser }',
    '({ 7: row(), x: row() })',
    { 7: { id: 1, name: 'Ann' } },
  ],
  ['unknown', '(): unknown', '({ a: { b: 1 } })', { a: { b: 1 } }],
  ['a field that is unknown', '(): { a: unknown }', '({ a: { b: 1 }, c: 1 })', { a: { b: 1 } }],
  ['object', '(): object', '({ a: 1 })', { a: 1 }],
  ['a field that is never there', '(): { id: number; name?: never }', 'row()', { id: 1 }],
  ['an index signature of never', '(): Record<string, never>', 'row()', {}],
  ['the empty type', '(): Record<never, never>', '({ a: 1 })', {}],
  [
    'Pick, Omit and an intersection',
    "(): Pick<PublicUser, 'id'> & { more: Omit<PublicUser, 'id'> }",
    '({ ...row(), more: row() })',
    { id: 1, more: { name: 'Ann' } },
  ],
  [
    'a name that every object inherits',
    '(): { constructor?: string; toString?: string; id: number }',
    '({ id: 1 })',
    { id: 1 },
  ],
  [
    'a key __proto__ of the row',
    '(): PublicUser',
    `JSON.parse('{"id":1,"name":"Ann","__proto__":{"x":1}}')`,
    { id: 1, name: 'Ann' },
  ],
  [
    'a key __proto__ of an index signature',
    '(): Record<string, PublicUser>',
    `JSON.parse('{"__proto__":{"id":1,"name":"Ann","x":1}}')`,
    JSON.parse('{"__proto__":{"id":1,"name":"Ann"}}'),
  ],
  [
    'a getter of an undeclared field that throws',
    '(): PublicUser',
    '({ ...row(), get x() { throw new Error("no"); } })',
    { id: 1, name: 'Ann' },
  ],
  [
    'a getter of a declared field that throws',
    '(): PublicUser',
    '({ get id() { throw new Error("no"); }, name: "" })',
    500,
  ],
  ['toJSON that throws', '(): PublicUser', '({ toJSON() { throw new Error("no"); } })', 500],
  ['a circle in an undeclared field', '(): { name: string }', 'cyclic()', { name: 'Ann' }],
  [
    'a circle of a recursive type',
    '(): Node',
    '(() => { const node: any = { id: 1 }; node.next = node; return node; })()',
    500,
  ],
  [
    'a circle of a list',
    '(): Node',
    '(() => { const node: any = { id: 1 }; node.children = [node]; return node; })()',
    500,
  ],
  ['a Map', '(): { users: Record<string, PublicUser> }', "({ users: new Map([['a', row()]]) })", 500],
  ['an Error', '(): { problem: PublicUser }', "({ problem: new Error('x') })", 500],
  ['a BigInt', '(): { n: number }', '({ n: 1n })', 500],
  ['a typed array', '(): { list: number[] }', '({ list: new Uint16Array([1, 2]) })', { list: { 0: 1, 1: 2 } }],
  ['a Buffer in a field', '(): { text: string }', "({ text: Buffer.from('secret') })", { text: {} }],
  ['null', '(): PublicUser | null', 'null', 'Done'],
  ['nothing', '(): void', 'undefined', 'Done'],
  ['a row where the type is void', '(): void', 'row()', {}],
  ['a number', '(): number', '7', { data: 7 }],
  [
    'the body of a Reply',
    '(): Reply<201, PublicUser>',
    'new Answer(201, row(), { "X-A": "b" })',
    { id: 1, name: 'Ann' },
  ],
  ['the body of a Reply of another status', '(): PublicUser', 'new Answer(202, row())', { id: 1, name: 'Ann' }],
  [
    'Replies by their status',
    '(): Reply<200, { id: number }> | Reply<202, { name: string }>',
    'new Answer(202, row())',
    { name: 'Ann' },
  ],
  ['a Reply without a body', '(): Reply<201, PublicUser>', 'new Answer(201)', ''],
  ['a text in a Reply', '(): Reply<200, string>', "new Answer(200, '<h1>', { 'Content-Type': 'text/html' })", '<h1>'],
  ['a web response', '(): Response', 'new Response(\'{"a":1}\')', { a: 1 }],
  ['bytes', '(): Buffer', "Buffer.from('abc')", 'abc'],
  ['a stream', '(): ReadableStream', "Readable.from(['a', 'b'])", 'ab'],
  ['a row where the type has a web response, too', '(): Response | PublicUser', 'row()', { id: 1, name: 'Ann' }],
  [
    'a row where the type has bytes or nothing, too',
    '(): Promise<Buffer | PublicUser | undefined>',
    'Promise.resolve(row())',
    { id: 1, name: 'Ann' },
  ],
  ['a web response where the type has a row, too', '(): Response | PublicUser', 'new Response(\'{"a":1}\')', { a: 1 }],
  [
    'a row where the type has events, too',
    '(): EventStream<{ id: number }> | PublicUser',
    'row()',
    { id: 1, name: 'Ann' },
  ],
  [
    'events where the type has a row, too',
    '(): EventStream<{ id: number }> | PublicUser',
    'eventStream((async function* () { yield row(); })())',
    ['{"id":1}'],
  ],
  [
    'the events of a stream',
    '(): EventStream<PublicUser>',
    "eventStream((async function* () { yield row(); yield { data: row(), id: '7' }; })())",
    ['{"id":1,"name":"Ann"}', '{"id":1,"name":"Ann"}'],
  ],
  [
    'the events of a stream in a Reply',
    '(): Reply<200, EventStream<PublicUser>>',
    'new Answer(200, eventStream((async function* () { yield row(); })()))',
    ['{"id":1,"name":"Ann"}'],
  ],
  [
    'events that are texts',
    '(): EventStream<string>',
    "eventStream((async function* () { yield 'a'; yield undefined; })())",
    ['"a"', 'null'],
  ],
];

const method = ([, signature, code]: Row, index: number): string =>
  `  row${index}${signature} { return (${code}) as never; }\n`;
const CONTROLLER = `${HEAD}export default class XController {
${ROWS.map(method).join('')}}
`;
const SERVICE = (options: string) =>
  `import { defineService } from '${GATEFOLD}';\nexport default defineService({ ${options} });\n`;

async function read(url: string): Promise<{ status: number; body: unknown }> {
  const response = await fetch(url, { method: 'POST' });
  const text = await response.text();
  const isStream = response.headers.get('content-type') === 'text/event-stream';
  const events = [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => data);
  try {
    return { status: response.status, body: isStream ? events : JSON.parse(text) };
  } catch {
    return { status: response.status, body: text };
  }
}

describe("with results: 'declared', an answer has the declared fields of", () => {
  let service: Service;
  before(async () => {
    service = await startService({
      controllers: { 'XController.ts': CONTROLLER, 'service.ts': SERVICE("results: 'declared'") },
      expectedErrors: ['request-failed'],
    });
  });
  after(() => service.close());
  for (const [index, row] of ROWS.entries())
    test(row[0], async () => {
      const { status, body } = await read(`${service.url}/api/x/row${index}`);
      const expected = row[3];
      if (typeof expected === 'number') {
        assert.equal(status, expected);
        assert.equal((body as { error_code: string }).error_code, 'UNENCODABLE_RESULT');
        assert.doesNotMatch(JSON.stringify(body), /secret/);
      } else if (expected === 'Done') assert.equal((body as { message: string }).message, 'Done');
      else assert.deepEqual(body, expected);
    });

  test('a list of 100,000 rows', async () => {
    const big = await startService({
      controllers: {
        'XController.ts': `${HEAD}export default class XController { static operations = { many: { results: 'declared' } };
  many(): PublicUser[] { return Array.from({ length: 100_000 }, row); } }`,
      },
    });
    const { body } = await read(`${big.url}/api/x/many`);
    await big.close();
    assert.equal((body as unknown[]).length, 100_000);
    assert.doesNotMatch(JSON.stringify(body), /secret/);
  });
});

describe('the fields of a result are limited after', () => {
  const GROUPS: Readonly<Record<string, string>> = {
    before: '_before() { return new Answer(200, row()); }\n  index(): PublicUser { return row(); }',
    around:
      'async _around(next: () => Promise<unknown>) { return { ...(await next() as object), more: 1 }; }\n  index(): PublicUser { return row(); }',
    after:
      '_after(result: object) { return new Answer(200, { ...result, more: 1 }); }\n  index(): PublicUser { return row(); }',
    service: 'index(): Promise<PublicUser> { return Promise.resolve(row()); }',
  };
  let service: Service;
  before(async () => {
    const controllers = Object.fromEntries(
      Object.entries(GROUPS).map(([name, body]) => [
        `${name}Controller.ts`.replace(/^./, (letter) => letter.toUpperCase()),
        `${HEAD}export default class { ${body} }\n`,
      ]),
    );
    const rules = "results: 'declared', around: async (next) => ({ ...(await next() as object), added: 1 })";
    service = await startService({ controllers: { ...controllers, 'service.ts': SERVICE(rules) } });
  });
  after(() => service.close());
  for (const name of Object.keys(GROUPS))
    test(name, async () => {
      const response = await fetch(`${service.url}/api/${name}`);
      assert.deepEqual(await response.json(), { id: 1, name: 'Ann' });
    });
});

describe('a schema of a library as the result', () => {
  const SCHEMA = `const schema = (isAsync: boolean) => ({ '~standard': { version: 1, vendor: 'test', validate(value: any) {
  const outcome = typeof value.id !== 'number' ? { issues: [{ message: 'no number', path: ['id'] }] }
    : typeof value.at !== 'string' ? { issues: [{ message: 'no text', path: ['at'] }] }
    : { value: { id: value.id, at: value.at, isAsync } };
  return isAsync ? Promise.resolve(outcome) : outcome; } } });\n`;
  const source = `${HEAD}${SCHEMA}export default class XController {
  static operations = { '*': { result: schema(false) as never }, later: { result: schema(true) as never }, replyLater: { result: schema(true) as never } };
  now() { return { ...row(), at: 'now' }; }
  later() { return { ...row(), at: 'now' }; }
  date() { return { ...row(), at: new Date(0) }; }
  reply() { return new Answer(201, { ...row(), at: 'now' }); }
  replyLater() { return new Answer(201, { ...row(), at: 'now' }); }
  json() { return { toJSON: () => ({ ...row(), at: 'now' }) }; }
  wrong() { return { ...row(), id: 'x' }; }
  nothing() {}
}`;
  const rows: [name: string, expected: unknown][] = [
    ['now', { id: 1, at: 'now', isAsync: false }],
    ['later', { id: 1, at: 'now', isAsync: true }],
    ['date', { id: 1, at: '1970-01-01T00:00:00.000Z', isAsync: false }],
    ['reply', { id: 1, at: 'now', isAsync: false }],
    ['replyLater', { id: 1, at: 'now', isAsync: true }],
    ['json', { id: 1, at: 'now', isAsync: false }],
    ['wrong', 500],
    ['nothing', 'Done'],
  ];
  let service: Service;
  before(async () => {
    service = await startService({
      controllers: { 'XController.ts': source, 'service.ts': SERVICE("results: 'declared'") },
      expectedErrors: ['request-failed'],
    });
  });
  after(() => service.close());
  for (const [name, expected] of rows)
    test(`limits it: ${name}`, async () => {
      const { status, body } = await read(`${service.url}/api/x/${name}`);
      if (expected === 500) {
        assert.equal(status, 500);
        assert.match(JSON.stringify(service.lines), /does not fit its schema: \/id no number/);
      } else if (expected === 'Done') assert.equal((body as { message: string }).message, 'Done');
      else assert.deepEqual(body, expected);
    });
});

describe('a schema as the result of an operation whose type says nothing', () => {
  const SCHEMAS = `const fields = { type: 'object', properties: { id: { type: 'integer' } } };
const closed = { ...fields, additionalProperties: false };
const texts = { ...fields, additionalProperties: { type: 'string' } };
const library = (make: (value: any) => unknown) =>
  ({ '~standard': { version: 1, vendor: 'test', validate: (value: any) => ({ value: make(value) }) } });\n`;
  const OPERATIONS: Readonly<Record<string, readonly [schema: string, code: string, expected: unknown]>> = {
    open: ['fields', 'row()', { id: 1 }],
    closed: ['closed', 'row()', { id: 1 }],
    empty: ["{ type: 'object', additionalProperties: false }", 'row()', {}],
    list: ["{ type: 'array', items: closed }", '[row()]', [{ id: 1 }]],
    reply: ['closed', 'new Answer(201, row())', { id: 1 }],
    events: ['closed', 'eventStream((async function* () { yield row(); })())', ['{"id":1}']],
    // A channel makes the event `reset`, which has no data, and a schema of the author knows only those of its events.
    live: [
      'library(({ id }) => ({ id }))',
      "eventStream((async function* () { yield { id: '1', event: 'reset', data: null }; yield row(); })())",
      ['null', '{"id":1}'],
    ],
    texts: ['texts', '({ id: 1, name: "Ann", boss: row() })', { id: 1, name: 'Ann', boss: {} }],
    number: ['library(({ id }) => id)', 'row()', { data: 1 }],
    later: ['library(({ id }) => id)', 'Promise.resolve(row())', { data: 1 }],
    null: ['library(() => null)', 'row()', 'Done'],
    json: ['library(() => null)', '({ toJSON: row })', 'Done'],
    replied: ['library(({ name }) => name)', 'new Answer(200, row())', { data: 'Ann' }],
  };
  let service: Service;
  before(async () => {
    const settings = Object.entries(OPERATIONS).map(([name, [schema]]) => `${name}: { result: ${schema} as never }`);
    const methods = Object.entries(OPERATIONS).map(([name, [, code]]) => `${name}(): any { return ${code}; }`);
    const source = `${HEAD}${SCHEMAS}export default class XController {
  static operations = { ${settings.join(', ')} };
  ${methods.join('\n  ')}
}`;
    service = await startService({
      controllers: { 'XController.ts': source, 'service.ts': SERVICE("results: 'declared'") },
    });
  });
  after(() => service.close());
  for (const [name, [, , expected]] of Object.entries(OPERATIONS))
    test(`limits it: ${name}`, async () => {
      const { body } = await read(`${service.url}/api/x/${name}`);
      if (expected === 'Done') assert.equal((body as { message: string }).message, 'Done');
      else assert.deepEqual(body, expected);
    });
});

describe("results: 'declared'", () => {
  test('limits one operation, and no other', async () => {
    const service = await startService({
      controllers: {
        'XController.ts': `${HEAD}export default class XController {
  static operations = { one: { results: 'declared' } };
  one(): PublicUser { return row(); }
  two(): PublicUser { return row(); }
}`,
      },
    });
    assert.deepEqual((await read(`${service.url}/api/x/one`)).body, { id: 1, name: 'Ann' });
    assert.equal((await read(`${service.url}/api/x/two`)).body?.['passwordHash' as never], 'secret');
    await service.close();
  });

  for (const [options, error] of [
    ["results: 'all'", /results must be 'declared'/],
    [
      "results: 'declared', unchecked: 'refuse'",
      /results: 'declared' does not limit its result \(its result has no type /,
    ],
  ] as const)
    test(`refuses the file, and says why in development: ${options}`, async () => {
      const service = await startService({
        settings: { NODE_ENV: 'development' },
        controllers: {
          'XController.ts': 'export default class XController { index() { return {}; } }\n',
          'service.ts': SERVICE(options),
        },
        expectedErrors: ['group-not-loadable', 'service-not-loadable', 'request-failed'],
      });
      const response = await fetch(`${service.url}/api/x`);
      assert.equal(response.status, 500);
      const { error_code, detail } = (await response.json()) as { error_code: string; detail: { error: string } };
      await service.close();
      assert.equal(error_code, options.includes('all') ? 'SERVICE_NOT_LOADABLE' : 'GROUP_NOT_LOADABLE');
      assert.match(detail.error, error);
    });
});

describe('the log', () => {
  const SOURCE = `${HEAD}export default class XController {
  index() { return row(); }
  other(): Promise<PublicUser[]> { return Promise.resolve([row(), { ...row(), more: 1 }]); }
  any(): unknown { return row(); }
  whole(): Node { return { id: 1 }; }
  read(): Map<string, PublicUser> { return new Map(); }
}`;

  test('names the operations whose results are not limited, at the start', () => {
    const { loads } = load("results: 'declared'");
    return loads.then(([, { notes = [] } = {}]) =>
      assert.deepEqual(
        notes.flatMap(({ event, reason }) => (event === 'result-unfiltered' ? [reason] : [])),
        [
          'index: its result has no type in the source, so it is unknown: annotate it, or write a schema as result',
          'read: a Map has no JSON form; write a type of your own, or a schema as result',
        ],
      ),
    );
  });

  test('names the undeclared fields that went out once', async () => {
    for (const [options, expected] of [
      ['strict: true', [['other', '/*/passwordHash, /*/boss, /*/more']]],
      ["results: 'declared'", []],
    ] as const) {
      const { loads, groups, reports } = load(options);
      await loads;
      const group = (await groups.find('x')) as Group;
      for (const name of ['index', 'other', 'other', 'any', 'whole']) {
        const { method, controller } = group.operations.get(name) as Operation;
        await method.call(controller, {}, createParams({}));
      }
      assert.deepEqual(reports, expected);
    }
  });

  function load(options: string) {
    const dir = mkdtempSync(join(tmpdir(), 'gatefold-declared-'));
    writeFileSync(join(dir, 'XController.ts'), SOURCE);
    writeFileSync(join(dir, 'service.ts'), SERVICE(options));
    const reports: [operation: string, pointer: string][] = [];
    const log = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });
    const groups = createGroups({ dir, log, onMismatch: (it) => void reports.push([it.operation, it.pointer]) });
    const loads = groups.loadAll({ skip: new Map(), onLoading: () => {} });
    return { loads: loads.finally(() => rmSync(dir, { recursive: true })), groups, reports };
  }
});
