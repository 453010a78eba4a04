// Results that differ from their types: with NODE_ENV=development the log has a line, else nothing happens.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createParams } from '../../src/api/controller/create-params.ts';
import { createLog } from '../../src/base/log.ts';
import type { StandardSchema } from '../../src/contract/check/library.ts';
import { createCopyCompiler } from '../../src/contract/check/result-copy.ts';
import { createResultFilter } from '../../src/contract/check/result-filter.ts';
import type { OperationContract, ResultContract } from '../../src/contract/contract.ts';
import { sentForm } from '../../src/contract/results.ts';
import { createGroups, type Groups } from '../../src/live/load/registry.ts';

const SOURCE = `
import type { ReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { ReadableStream as WebStream } from 'node:stream/web';
import type { ErrorReply, EventStream, Reply } from 'gatefold';
const LOTS = [{ a: 'x', b: 1 }, { a: 'x' }, { a: 'x', b: 1 }];
class Answer {
  status: number;
  body: unknown;
  constructor(status: number, body: unknown) {
    this.status = status;
    this.body = body;
    Object.defineProperty(this, Symbol.for('gatefold.Reply'), { value: true });
  }
}
interface User { id: string; born: Date; tags?: string[] }
type Queued = Reply<202, number> | Reply<303>;
type Foreign = import('x').A;
type Ready = 200;
type Early = 201 | 202;
export default class UserController {
  static operations = { given: { status: 201 }, replied: { status: 201 }, both: { status: 201 } };
  given(): User { return { id: 1, born: new Date(0) } as never; }
  replied(): Reply<202, User> { return new Answer(202, { id: 1, born: new Date(0) }) as never; }
  both(): User | Reply<200, number> { return new Answer(200, 'x') as never; }
  right(): User { return { id: 'a', born: new Date(0) } as never; }
  wrong(): User { return { id: 1, born: 'x' } as never; }
  async late(): Promise<User[]> { return [{ id: 'a', born: new Date(0) }, { id: 'b' }] as never; }
  scalar(): number { return 'x' as never; }
  nothing(): User | undefined { return undefined; }
  odd(): { a: string } { const a: { a?: unknown } = {}; a.a = a; return a as never; }
  none(): User | null { return null; }
  done(): User { return true as never; }
  gone(): Reply<204, User> | Reply<201, number> { return undefined as never; }
  untyped() { return 1; }
  reset(): Reply<205, User> | Reply<304, User> { return undefined as never; }
  mixed(): string | { a: string } { return 'x'; }
  found(): User | true { return true; }
  lost(): User | false { return false; }
  either(): { a: boolean } | boolean { return true; }
  queued(): Reply<201 | 202, User> { return new Answer(202, { id: 1, born: new Date(0) }) as never; }
  soon(): Reply<Ready | Early, User> { return undefined as never; }
  unread(): Promise<Reply<201, import('x').A> | Reply<202, Foreign> | Reply<304, User>> { return undefined as never; }
  partly(): Promise<Reply<201, User> | import('x').A | Queued> { return undefined as never; }
  named(): User | Queued { return undefined as never; }
  when(): Date { return new Date(0); }
  csv(): Reply<200, Readable> { return undefined as never; }
  web(): WebStream { return undefined as never; }
  file(): ReadStream { return undefined as never; }
  live(): EventStream { return undefined as never; }
  open(): Reply { return undefined as never; }
  refused(): ErrorReply { return undefined as never; }
  lots(): { a: string } { return LOTS.shift() as never; }
  news(): EventStream<{ a: string }> | EventStream<{ b: number }> { return undefined as never; }
}`;

const silent = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });
const PARAMS = createParams({});
const told: unknown[] = [];
let dir: string;
let groups: Groups;
before(() => {
  dir = mkdtempSync(join(tmpdir(), 'gatefold-results-'));
  writeFileSync(join(dir, 'UserController.ts'), SOURCE);
  groups = createGroups({
    dir,
    log: silent,
    onMismatch({ operation, pointer, message, request_id }) {
      assert.equal(request_id, PARAMS.requestId);
      told.push([operation, pointer, message]);
    },
  });
});
after(() => rmSync(dir, { recursive: true, force: true }));

async function call(from: Groups, name: string): Promise<unknown> {
  const operation = (await from.find('user'))?.operations.get(name);
  return operation?.method.call(operation.controller, {}, PARAMS);
}

test('a union of event streams becomes one stream whose events have any of the types', async () => {
  const [result, ...others] = (await groups.find('user'))?.contract.operations.get('news')?.results ?? [];
  assert.deepEqual(others, []);
  assert.equal(result?.body, 'events');
  const types = (result?.returnedSchema?.anyOf ?? []) as { required: string[] }[];
  assert.deepEqual(
    types.map(({ required }) => required),
    [['a'], ['b']],
  );
});

test('a reply whose body or neighbour is not read keeps its status', async () => {
  const operations = (await groups.find('user'))?.contract.operations;
  const { results, undocumentedReason } = operations?.get('unread') ?? {};
  assert.match(undocumentedReason ?? '', /a type in import/);
  const kinds = results?.map(({ status, body, schema }) => [status, body, schema]);
  assert.deepEqual(kinds, [
    [201, 'json', undefined],
    [202, 'json', undefined],
    [304, 'none', undefined],
  ]);
  // The setting `result` describes the first result.
  const statuses = operations?.get('partly')?.results.map(({ status }) => status);
  assert.deepEqual(statuses, [200, 201, 202, 303]);
});

test('Reply, ErrorReply and EventStream need no type arguments', async () => {
  const operations = (await groups.find('user'))?.contract.operations;
  const kinds = ['open', 'refused', 'live'].map((name) =>
    operations
      ?.get(name)
      ?.results?.map(({ status, body, schema, returnedSchema }) => [status, body, schema, returnedSchema]),
  );
  assert.deepEqual(kinds, [
    [[200, 'json', undefined, undefined]],
    [[200, 'json', undefined, undefined]],
    [[200, 'events', undefined, undefined]],
  ]);
});

test('a result that is a stream of a module of Node is bytes', async () => {
  const operations = (await groups.find('user'))?.contract.operations;
  const bodies = ['csv', 'web', 'file'].map((name) => operations?.get(name)?.results?.map(({ body }) => body));
  assert.deepEqual(bodies, [['bytes'], ['bytes'], ['json']]);
});

test('a checked method keeps its length and text, because documents read both', async () => {
  const method = (await groups.find('user'))?.operations.get('right')?.method;
  assert.equal(method?.length, 0);
  assert.match(String(method), /^right\(\) *\{/);
});

describe('a result that does not match its type is reported', () => {
  const rows: [name: string, expected: unknown[]][] = [
    ['right', []],
    ['wrong', [['wrong', '/id', 'must be a string']]],
    ['late', [['late', '/1/born', 'is missing']]],
    ['scalar', [['scalar', '/data', 'must be a number']]],
    ['nothing', []],
    ['none', []],
    ['done', []],
    ['gone', []],
    ['odd', []],
    ['untyped', []],
    ['given', [['given', '/id', 'must be a string']]],
    ['queued', [['queued', '/id', 'must be a string']]],
    ['replied', [['replied', '/id', 'must be a string']]],
    ['both', [['both', '/data', 'must be a number']]],
  ];
  for (const [name, expected] of rows) {
    test(name, async () => {
      told.length = 0;
      await call(groups, name);
      assert.deepEqual(told, expected);
    });
  }
});

test('undeclared fields are reported until a result has none, and then again', async () => {
  told.length = 0;
  for (let i = 0; i < 3; i++) await call(groups, 'lots');
  assert.deepEqual(told, [
    ['lots', '/b', 'is not declared'],
    ['lots', '/b', 'is not declared'],
  ]);
});

test('the result of an operation may be the success message for undefined, null and true', async () => {
  const operations = (await groups.find('user'))?.contract.operations ?? new Map();
  const names = [...operations].filter(([, { results }]) => results[0].mayBeSuccessMessage === true);
  assert.deepEqual(
    names.map(([name]) => name),
    ['nothing', 'none', 'found', 'either'],
  );
});

test('a result with status 204, 205 or 304 has no body, whatever its type', async () => {
  const contract = await (await groups.find('user'))?.contract;
  assert.deepEqual(
    contract?.operations.get('gone')?.results.map(({ status, body }) => [status, body]),
    [
      [204, 'none'],
      [201, 'json'],
    ],
  );
  assert.deepEqual(
    contract?.operations.get('reset')?.results.map(({ status, body }) => [status, body]),
    [
      [205, 'none'],
      [304, 'none'],
    ],
  );
});

test('the schema of a result has the form that is sent: a scalar in data, also in a union, and a Date alone', async () => {
  const operations = (await groups.find('user'))?.contract.operations;
  const schemaOf = (name: string) => operations?.get(name)?.results[0]?.schema;
  const inData = (schema: object) => ({ type: 'object', properties: { data: schema }, required: ['data'] });
  assert.deepEqual(schemaOf('scalar'), inData({ type: 'number' }));
  const object = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] };
  assert.deepEqual(schemaOf('mixed'), { anyOf: [inData({ type: 'string' }), object] });
  assert.deepEqual(schemaOf('lost'), { anyOf: [inData({ const: false }), { $ref: '#/$defs/User' }] });
  assert.equal(schemaOf('when')?.format, 'date-time');
});

test('the status in static operations applies to a plain result and not to a Reply', async () => {
  const contract = await (await groups.find('user'))?.contract;
  const statuses = (name: string) => contract?.operations.get(name)?.results.map(({ status }) => status);
  assert.deepEqual([statuses('given'), statuses('replied'), statuses('both')], [[201], [202], [201, 200]]);
});

test('a Reply has each status of its type, also through a type alias', async () => {
  const contract = await (await groups.find('user'))?.contract;
  const statuses = (name: string) => contract?.operations.get(name)?.results.map(({ status }) => status);
  assert.deepEqual(statuses('queued'), [201, 202]);
  assert.deepEqual(statuses('soon'), [200, 201, 202]);
  assert.deepEqual(statuses('named'), [200, 202, 303]);
});

test('an operation without an observer is the method of the controller', async () => {
  const plain = createGroups({ dir, log: silent });
  const group = await plain.find('user');
  const prototype = Object.getPrototypeOf(group?.controller) as Record<string, unknown>;
  for (const [name, { method }] of group?.operations ?? []) assert.equal(method, prototype[name]);
});

describe('the filter of results', () => {
  const filterOf = (
    results: readonly ResultContract[],
    validate?: StandardSchema['~standard']['validate'],
    isList = false,
  ) =>
    createResultFilter(
      { results } as OperationContract,
      createCopyCompiler({}),
      validate && { standard: { '~standard': { version: 1, vendor: 'x', validate } }, isList },
    );
  const json: ResultContract = { status: 200, body: 'json' };

  test('does not exist where no type limits a result', () => assert.equal(filterOf([json]), undefined));

  test('sends events whole whose type is unknown, beside results with a type', () => {
    const declared = { ...json, returnedSchema: { type: 'object', properties: {} } };
    const filter = filterOf([{ status: 200, body: 'events' }, declared]);
    assert.deepEqual([filter?.({ a: 1 }, 'events', undefined), filter?.({ a: 1 }, 'json', 200)], [{ a: 1 }, {}]);
  });

  test('sends only the declared fields, wherever the type has an object', () => {
    const own: Record<string, unknown> = { type: 'object', properties: { a: { type: 'string' } } };
    const other = { type: 'object', properties: { b: { type: 'number' } } };
    const sent = { a: '1', b: 2, c: 3 };
    const rows: [returnedSchema: Record<string, unknown>, sent: unknown, shown: unknown][] = [
      [own, sent, { a: '1' }],
      [{ ...own, type: ['object', 'null'] }, sent, { a: '1' }],
      // A JSON Schema of the author declares all fields and all entries of these.
      [{ anyOf: [{ type: 'string' }, { type: 'object' }] }, sent, sent],
      [{ anyOf: [{ type: 'string' }, { type: 'array' }] }, [sent], [sent]],
      [{ type: 'array', prefixItems: [own] }, [sent, sent], [{ a: '1' }, sent]],
      [{ type: ['array', 'null'], items: own }, [sent], [{ a: '1' }]],
      [{ anyOf: [{ const: 'x' }, own] }, sent, { a: '1' }],
      [{ anyOf: [{ const: 'x' }, own] }, 'x', 'x'],
      [{ anyOf: [{ enum: ['x', 1] }, own] }, sent, { a: '1' }],
      [{ anyOf: [{ not: {} }, own] }, sent, { a: '1' }],
      [{ anyOf: [{ type: 'null' }, own] }, null, null],
      [{ anyOf: [own, other] }, sent, { a: '1', b: 2 }],
      [{ anyOf: [{ type: 'integer' }, { type: 'array', items: own }] }, [sent, sent], [{ a: '1' }, { a: '1' }]],
      [{ type: 'object', properties: { f: { anyOf: [{ const: 'x' }, own] } } }, { f: sent, g: 1 }, { f: { a: '1' } }],
      [{ type: 'object', properties: { f: { anyOf: [{ type: 'integer' }, own] } } }, { f: sent }, { f: { a: '1' } }],
      [{ type: 'object', properties: { f: { enum: ['x'] } } }, { f: 'x', g: 1 }, { f: 'x' }],
      [
        { type: 'object', additionalProperties: own },
        { k: sent, l: sent },
        { k: { a: '1' }, l: { a: '1' } },
      ],
      [{ type: 'array', prefixItems: [own], items: other }, [sent, sent], [{ a: '1' }, { b: 2 }]],
      [{ type: 'object', properties: { f: { type: ['object', 'array'] } } }, { f: sent, g: 1 }, { f: sent }],
      [{ type: 'object', properties: { f: {} } }, { f: sent, g: 1 }, { f: sent }],
    ];
    // JSON.stringify calls \`toJSON\` once, and not that of its result.
    class Inner {
      toJSON() {
        return sent;
      }
    }
    rows.push([own, { toJSON: () => new Inner() }, {}]);
    for (const [returnedSchema, value, shown] of rows) {
      const result = filterOf([{ ...json, returnedSchema }])?.(value, 'json', 200);
      assert.deepEqual(JSON.parse(JSON.stringify(result)), shown, JSON.stringify(returnedSchema));
    }
  });

  test('waits for each item of a list whose schema is asynchronous', async () => {
    const filter = filterOf(
      [json],
      (value) => (value === 1 ? { value: 'now' } : Promise.resolve({ value: 'later' })),
      true,
    );
    assert.deepEqual(await filter?.([1, 2], 'json', undefined), ['now', 'later']);
    assert.throws(() => filter?.({}, 'json', undefined), /the result does not fit its schema: it is no list$/);
  });

  test('gives the schema a date as it is, and another object as its toJSON', () => {
    const filter = filterOf([json], (value) => ({ value: value instanceof Date ? 'a date' : value }));
    assert.equal(filter?.(new Date(0), 'json', undefined), 'a date');
    assert.equal(filter?.({ toJSON: () => 'its text' }, 'json', undefined), 'its text');
  });

  test('gives the schema null for an entry that JSON has not', () => {
    const validate = (value: unknown) => (value === null ? { value: 'null' } : { issues: [{ message: 'none' }] });
    assert.deepEqual(filterOf([json], validate, true)?.([undefined], 'json', undefined), ['null']);
  });

  test('says what does not fit, without a blank at the end', () => {
    const filter = filterOf([json], () => ({ issues: [{ message: ' ' }] }));
    assert.throws(() => filter?.({}, 'json', undefined), new TypeError('the result does not fit its schema:'));
  });
});

describe('sentForm returns what is sent for a schema of', () => {
  const data = (schema: object) => ({ schema: { type: 'object', properties: { data: schema }, required: ['data'] } });
  const rows: readonly [schema: object, sent: object][] = [
    [{ type: 'string' }, data({ type: 'string' })],
    [{ type: ['string'] }, data({ type: 'string' })],
    [{ type: ['string', 'number'] }, data({ type: ['string', 'number'] })],
    [{ type: ['string', 'null'] }, { ...data({ type: 'string' }), mayBeSuccessMessage: true }],
    [{ type: ['object', 'null'] }, { schema: { type: 'object' }, mayBeSuccessMessage: true }],
    [{ type: 'null' }, { mayBeSuccessMessage: true }],
    [{ type: 'boolean' }, { ...data({ type: 'boolean' }), mayBeSuccessMessage: true }],
    [{ type: 'string', format: 'date-time' }, { schema: { type: 'string', format: 'date-time' } }],
    [{ const: 7 }, data({ const: 7 })],
    [{ enum: ['a', null] }, { ...data({ enum: ['a', null] }), mayBeSuccessMessage: true }],
    [
      { anyOf: [{ type: 'null' }, { type: 'object' }] },
      { schema: { anyOf: [{ type: 'object' }] }, mayBeSuccessMessage: true },
    ],
    [{ oneOf: [{ type: 'object' }] }, { schema: { oneOf: [{ type: 'object' }] } }],
  ];
  for (const [schema, sent] of rows)
    test(JSON.stringify(schema), () => assert.deepEqual(sentForm(schema as never, {}), sent));
});
