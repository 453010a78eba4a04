// JSON Schemas of the author, such as those of TypeBox, in `static operations` and behind `Static<typeof S>`: over a real
// socket. A keyword that no check implements refuses the file.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createCompiler } from '../../src/contract/check/compile.ts';
import { CheckRun } from '../../src/contract/check/run.ts';
import { createDefinitionMover } from '../../src/contract/schema/bundle.ts';
import { readJsonSchema } from '../../src/contract/schema/json-schema.ts';
import { createSchemaWriter } from '../../src/contract/schema/schema.ts';
import { type Service, startService } from '../support/service.ts';

const CONTROLLERS = {
  'UserController.ts': `
    import type { ControllerParams } from 'gatefold';
    import type { Static } from '@sinclair/typebox';
    const Kind = Symbol('TypeBox.Kind');
    export const NewUser = {
      [Kind]: 'Object', type: 'object', required: ['name'], additionalProperties: false,
      properties: { name: { [Kind]: 'String', type: 'string', minLength: 1 }, age: { type: 'integer' } },
    } as const;
    export const Page = { type: 'object', properties: { page: { type: 'integer', minimum: 1 } } } as const;
    const Id = { type: 'object', properties: { id: { type: 'integer' } }, required: ['id'] };
    export default class UserController {
      static operations = {
        created: { body: NewUser }, index: { query: Page }, 'GET id/{id}': { path: Id },
        red: { body: NewUser, query: Page }, deleted: { query: Page, body: Page },
      };
      created(data: unknown) { return { data }; }
      index(data: unknown, params: ControllerParams) { return { data, query: params.query }; }
      'GET id/{id}'(_: unknown, params: ControllerParams) { return { path: params.path }; }
      red(data: unknown, params: ControllerParams) { return { data, query: params.query }; }
      deleted(data: unknown) { return { data }; }
      patch(data: Static<typeof NewUser>, params: ControllerParams<{ query: Static<typeof Page> }>) { return { data, query: params.query }; }
    }`,
};

let service: Service;
before(async () => {
  service = await startService({ controllers: CONTROLLERS });
});
after(() => service.close());

type Answer = { errors?: { pointer: string; code: string }[] };

async function send(method: string, path: string, body?: unknown): Promise<[status: number, body: Answer]> {
  const init =
    body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
  const response = await fetch(`${service.url}/api/${path}`, { method, ...init });
  return [response.status, (await response.json()) as Answer];
}

describe('a JSON Schema checks the data, the query and the path of', () => {
  const rows: [method: string, path: string, body: unknown, status: number, expected: unknown][] = [
    ['POST', 'user', { name: 'a' }, 200, { data: { name: 'a' } }],
    ['POST', 'user', { name: '' }, 422, '/name minLength'],
    ['POST', 'user', { name: 'a', age: '7' }, 422, '/age type'],
    ['POST', 'user', { name: 'a', more: 1 }, 422, '/more additionalProperties'],
    ['GET', 'user?page=2', undefined, 200, { data: { page: 2 }, query: { page: 2 } }],
    ['GET', 'user?page=0', undefined, 422, '/page minimum'],
    ['GET', 'user?page=2&x=1', undefined, 200, { data: { page: 2 }, query: { page: 2 } }],
    ['GET', 'user?page=x', undefined, 422, '/page type'],
    ['GET', 'user/id/7', undefined, 200, { path: { id: 7 } }],
    ['GET', 'user/id/x', undefined, 422, '/id type'],
    ['PUT', 'user?page=2', { name: 'a' }, 200, { data: { name: 'a' }, query: { page: 2 } }],
    ['PUT', 'user?page=0', { name: 'a' }, 422, '/page minimum'],
    ['PUT', 'user?page=2', {}, 422, '/name required'],
    ['DELETE', 'user?page=2', undefined, 200, { data: { page: 2 } }],
    ['DELETE', 'user?page=2', { page: 3 }, 200, { data: { page: 3 } }],
    ['DELETE', 'user?page=2', { page: 0 }, 422, '/page minimum'],
    ['PATCH', 'user?page=2', { name: 'a' }, 200, { data: { name: 'a' }, query: { page: 2 } }],
    ['PATCH', 'user?page=0', { name: '' }, 422, '/page minimum'],
    ['PATCH', 'user', { name: 'a', more: 1 }, 422, '/more additionalProperties'],
  ];
  for (const [method, path, body, status, expected] of rows)
    test(`${method} ${path} ${JSON.stringify(body)}`, async () => {
      const [actual, answer] = await send(method, path, body);
      const [mistake] = answer.errors ?? [];
      assert.deepEqual([actual, mistake ? `${mistake.pointer} ${mistake.code}` : answer], [status, expected]);
    });
});

/** Compiles a schema as a controller does, and checks a value. */
function check(schema: unknown, value: unknown): 'fits' | 'does not fit' {
  const writer = createSchemaWriter();
  const moved = createDefinitionMover(writer)(readJsonSchema(schema), 'x');
  const run = new CheckRun();
  run.check(createCompiler(writer.defs, false).compile(moved), value);
  return run.mistakes.length === 0 ? 'fits' : 'does not fit';
}

describe('the check of a JSON Schema is that of JSON Schema for', () => {
  const tree = {
    $id: 'T',
    type: 'object',
    required: ['kids'],
    properties: { kids: { type: 'array', items: { $ref: 'T' } } },
  };
  const rows: [schema: unknown, fits: unknown[], others: unknown[]][] = [
    [{ type: 'object', properties: { a: true, b: {} } }, [{ a: 1, b: null }], []],
    [{ type: ['string', 'null'] }, ['a', null], [1]],
    [{ enum: ['a', 1, null] }, ['a', 1, null], ['b', 2]],
    [{ const: 'a', type: 'string' }, ['a'], ['b']],
    [{ type: 'string', title: undefined, allOf: undefined }, ['a'], [1]],
    [{ anyOf: [{ type: 'string' }, { type: 'number', minimum: 3 }] }, ['a', 3], [2, null]],
    [{ type: 'string', pattern: '^a', maxLength: 2 }, ['ab'], ['b', 'abc']],
    [{ type: 'string', format: 'email' }, ['a@b.de'], ['a']],
    [{ type: 'string', format: 'password' }, ['a'], [1]],
    [{ type: 'integer', format: 'int32', multipleOf: 2 }, [4], [3, 4.5]],
    [{ type: 'array', items: { type: 'string' }, uniqueItems: true, minItems: 1 }, [['a']], [[], ['a', 'a'], [1]]],
    [{ type: 'array', prefixItems: [{ type: 'string' }], items: false, minItems: 1 }, [['a']], [[], ['a', 'b']]],
    [{ type: 'array', prefixItems: [{ type: 'string' }] }, [['a', 1], []], [[1]]],
    [
      { type: 'array', items: [{ type: 'string' }], additionalItems: false, minItems: 1, maxItems: 1 },
      [['a']],
      [[], ['a', 'b']],
    ],
    [{ type: 'object', patternProperties: { '^(.*)$': { type: 'number' } } }, [{ a: 1 }, {}], [{ a: 'x' }]],
    // TypeBox writes a record and a tuple of references so.
    [
      { type: 'object', patternProperties: { '^(.*)$': { $ref: '#/$defs/N' } }, $defs: { N: { type: 'number' } } },
      [{ a: 1 }],
      [{ a: 'x' }],
    ],
    [
      { type: 'array', items: [{ $ref: '#/$defs/N' }], additionalItems: false, $defs: { N: { type: 'number' } } },
      [[1], []],
      [['x'], [1, 2]],
    ],
    [
      {
        type: 'object',
        patternProperties: {
          '^(.*)$': {
            $id: 'Node',
            type: 'object',
            properties: { kids: { type: 'array', items: { $ref: 'Node' } } },
            required: ['kids'],
          },
        },
      },
      [{ a: { kids: [{ kids: [] }] } }],
      [{ a: { kids: [{}] } }],
    ],
    [
      { type: 'array', items: [{ type: 'number' }, { $ref: '#/items/0' }], minItems: 2, additionalItems: false },
      [[1, 2]],
      [[1, 'x']],
    ],
    [{ type: 'object', additionalProperties: { type: 'number' } }, [{ a: 1 }], [{ a: 'x' }]],
    [{ type: 'object', additionalProperties: false }, [{}], [{ a: 1 }]],
    [{ type: 'object', patternProperties: { '.*': true }, additionalProperties: false }, [{ a: 1 }], [1]],
    [{ type: 'object', additionalProperties: true }, [{ a: 1 }], [1]],
    [{ type: 'object', required: [] }, [{ a: 1 }], [1]],
    [{ type: 'array', items: false, maxItems: 0 }, [[]], [[1]]],
    [{ type: 'array', uniqueItems: false }, [[1, 1]], [1]],
    [{ type: 'integer', enum: [1, 2] }, [1], [3]],
    [{ type: ['string', 'null'], const: null }, [null], ['a']],
    [{ type: 'object' }, [{ a: 1 }], [1, []]],
    [{ not: {} }, [], [1]],
    [tree, [{ kids: [{ kids: [] }] }], [{ kids: [{}] }, {}]],
    [
      { $defs: { N: { type: 'object', properties: { n: { $ref: '#/$defs/N' } } } }, $ref: '#/$defs/N' },
      [{ n: { n: {} } }],
      [{ n: { n: 1 } }],
    ],
    [
      {
        $defs: {
          ...{ A: { $ref: '#/$defs/B' }, B: { $ref: '#/$defs/C' }, C: { $ref: '#/$defs/D' } },
          ...{
            D: { type: 'object', required: ['a'], properties: { a: { $ref: '#/$defs/E' } } },
            E: { $ref: '#/$defs/F' },
          },
          F: { type: 'string' },
        },
        $ref: '#/$defs/A',
      },
      [{ a: 'x' }],
      [{}, { a: 1 }],
    ],
    [{ $defs: { A: { $ref: '#/$defs/B' }, B: { $ref: '#/$defs/A' } }, $ref: '#/$defs/A' }, [], [1]],
    [
      { $defs: { N: { $id: 'N', type: 'object', properties: { n: { $ref: 'N' } } } }, $ref: 'N' },
      [{ n: {} }],
      [{ n: 1 }],
    ],
  ];
  for (const [schema, fits, others] of rows)
    test(JSON.stringify(schema), () => {
      for (const value of fits) assert.equal(check(schema, value), 'fits', JSON.stringify(value));
      for (const value of others) assert.equal(check(schema, value), 'does not fit', JSON.stringify(value));
    });
});

describe('a JSON Schema is refused for', () => {
  const circle: Record<string, unknown> = { type: 'object' };
  circle.properties = { self: circle };
  const rows: [schema: unknown, expected: RegExp][] = [
    [{ type: 'object', properties: { a: { allOf: [{}] } } }, /#\/properties\/a has allOf and no type/],
    [{ type: 'object', allOf: [{}] }, /# has the keyword allOf, which is not checked here/],
    [{ oneOf: [{ type: 'string' }] }, /has oneOf and no type/],
    [{ type: 'string', anyOf: [{ minLength: 1 }] }, /has the keyword type, which is not checked here/],
    [{ anyOf: [{ minLength: 1 }] }, /#\/anyOf\/0 has minLength and no type: write its type/],
    [{ properties: { a: { type: 'string' } } }, /has properties and no type/],
    [{ type: 'object', properties: { a: {} }, required: ['b'] }, /requires b, which is not in its properties/],
    [{ type: 'object', minProperties: 1 }, /has the keyword minProperties/],
    [{ type: 'object', unevaluatedProperties: false }, /has the keyword unevaluatedProperties/],
    [{ type: 'object', patternProperties: { '^x': { type: 'string' } } }, /checked only for records of any name/],
    [{ type: 'string', minimum: 1 }, /has the keyword minimum/],
    [{ type: 'string', minLength: -1 }, /has a wrong minLength/],
    [{ type: 'number', minimum: '1' }, /has a wrong minimum/],
    [{ type: 'string', minLength: 1.5 }, /has a wrong minLength/],
    [{ type: 'number', multipleOf: 0 }, /has a wrong multipleOf/],
    [{ type: 'string', pattern: 7 }, /has a wrong pattern$/],
    [{ type: 'string', pattern: '(a+)+$' }, /# has the pattern \(a\+\)\+\$: .*can take exponentially long/],
    [{ type: 'number', format: 'email' }, /has the format email, which is not checked here/],
    [{ type: 'string', format: 'ipv6' }, /has the format ipv6, which is not checked here/],
    [{ type: 'Date' }, /has the type Date, which JSON has not/],
    [{ type: 'bigint' }, /has the type bigint/],
    [{ not: { type: 'string' } }, /has the keyword not/],
    [{ type: 'string', nullable: true }, /has the keyword nullable/],
    [{ $ref: 7 }, /# has a wrong \$ref$/],
    [{ anyOf: [] }, /# has a wrong anyOf$/],
    [{ anyOf: { type: 'string' } }, /has a wrong anyOf$/],
    [{ $ref: '#/$defs/None' }, /refers to #\/\$defs\/None, which is not found/],
    [{ $ref: 'https://example.com/schema' }, /refers to https:\/\/example\.com\/schema, which is not found/],
    [{ $dynamicRef: '#a' }, /has \$dynamicRef and no type/],
    [{ $ref: '#', type: 'string' }, /has the keyword type/],
    [{ enum: ['a'], minLength: 2 }, /has the keyword minLength/],
    [{ const: 'a', pattern: 'b' }, /has the keyword pattern/],
    [{ not: {}, type: 'string' }, /has the keyword type/],
    [{ enum: [{ a: 1 }] }, /# has a wrong enum: only texts, numbers, booleans and null are compared$/],
    [{ enum: [] }, /has a wrong enum/],
    [{ const: ['a'] }, /has a wrong const/],
    [{ type: 'string', enum: [1] }, /has a enum that is not of its type/],
    [{ type: 'integer', const: 1.5 }, /has a const that is not of its type/],
    [{ type: ['string', 'number'], enum: ['a', null] }, /has a enum that is not of its type/],
    [{ type: [] }, /has the type undefined, which JSON has not/],
    [{ type: 'array', items: [{}], maxItems: 3, additionalItems: false }, /maxItems that differs/],
    [{ type: 'array', items: false, maxItems: 1 }, /# has a maxItems that differs from the number of its items$/],
    [{ type: 'array', uniqueItems: 'yes' }, /# has a wrong uniqueItems$/],
    [{ type: 'array', items: {}, additionalItems: {} }, /# has additionalItems without a list of items$/],
    [{ type: 'array', items: [{}], prefixItems: [{}] }, /# has a list of items beside prefixItems$/],
    [{ type: 'array', prefixItems: [] }, /# has a wrong prefixItems$/],
    [{ type: 'array', prefixItems: {} }, /has a wrong prefixItems/],
    [{ type: 'array', items: [{ type: 'x' }] }, /#\/items\/0 has the type x/],
    [{ type: 'array', prefixItems: [{ type: 'x' }] }, /#\/prefixItems\/0 has the type x/],
    [{ type: 'array', items: [{}], additionalItems: { type: 'x' } }, /#\/additionalItems has the type x/],
    [{ type: 'object', properties: 7 }, /# has a wrong properties$/],
    [{ type: 'object', properties: { 'a/~': { type: 'x' } } }, /#\/properties\/a~1~0 has the type x/],
    [
      { type: 'object', properties: JSON.parse('{"__proto__":{}}') },
      /has a field named __proto__: give it another name/,
    ],
    [{ type: 'object', required: 'a' }, /requires undefined/],
    [{ type: 'object', additionalProperties: { type: 'x' } }, /#\/additionalProperties has the type x/],
    [{ type: 'object', patternProperties: { '.*': { type: 'x' } } }, /#\/patternProperties\/\.\* has the type x/],
    [{ type: 'object', properties: {}, patternProperties: { '.*': {} } }, /checked only for records of any name/],
    [{ type: 'object', patternProperties: { '.*': {}, '^.*$': {} } }, /checked only for records of any name/],
    [{ type: 'object', patternProperties: { '.*': {} }, additionalProperties: true }, /checked only for records/],
    [circle, /is nested without end/],
    [{ type: 'string', '~refine': [] }, /has code of its library/],
    [{}, /# says nothing about a value/],
    [{ title: 'x' }, /# says nothing about a value/],
    [true, /# says nothing about a value/],
    [new Map(), /is no JSON Schema/],
    [{ type: 'array', items: new Map() }, /#\/items is no JSON Schema/],
    [7, /is no JSON Schema/],
    [String, /is no JSON Schema/],
  ];
  for (const [schema, expected] of rows)
    test(String(expected), () => {
      assert.throws(() => check(schema, {}), expected);
    });

  test('a setting of an operation, with the operation and the part', async (t) => {
    const source =
      "export default class XController { static operations = { created: { body: { type: 'object', minProperties: 1 } } }; created(data: unknown) { return data; } }";
    const broken = await startService({
      controllers: { 'XController.ts': source },
      expectedErrors: ['group-not-loadable', 'request-failed'],
    });
    t.after(() => broken.close());
    assert.equal((await fetch(`${broken.url}/api/x`)).status, 500);
    const line = broken.lines.find(({ event }) => event === 'group-not-loadable');
    assert.match(
      String(line?.error),
      /created: the schema of its body: # has the keyword minProperties, which is not checked here/,
    );
    assert.equal(line?.code, 'INVALID_SETTING');
  });
});
