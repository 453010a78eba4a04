// The JSON Schema of a library in the OpenAPI document: its definitions become components, and every reference
// resolves.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { startTest } from '../../src/api/testing.ts';
import type { Schema } from '../../src/contract/contract.ts';
import { createDefinitionMover } from '../../src/contract/schema/bundle.ts';
import { createSchemaWriter } from '../../src/contract/schema/schema.ts';
import { makeProject } from '../support/command-bench.ts';

const ref = (to: string) => ({ $ref: to });
const list = (items: Schema) => ({ type: 'array', items });
const object = (properties: Record<string, Schema>) => ({ type: 'object', properties });

describe('a library schema in the document, with', () => {
  const rows: [name: string, schema: Schema, expected: Schema, defs?: Record<string, Schema>][] = [
    ['no definitions', object({ a: { type: 'string' } }), object({ a: { type: 'string' } })],
    [
      'definitions of draft 2020-12',
      { ...object({ a: ref('#/$defs/Named') }), $defs: { Named: { type: 'string' }, Idle: { type: 'null' } } },
      object({ a: ref('#/$defs/Named') }),
      { Named: { type: 'string' } },
    ],
    [
      'a name with a percent sign, and a dangling reference',
      { ...object({ a: ref('#/$defs/50%') }), $defs: { '50%': object({ b: ref('#/$defs/Nowhere') }) } },
      object({ a: ref('#/$defs/50_') }),
      { '50_': object({ b: {} }) },
    ],
    [
      'definitions of older drafts',
      { ...object({ a: ref('#/definitions/Named') }), definitions: { Named: { type: 'string' } } },
      object({ a: ref('#/$defs/Named') }),
      { Named: { type: 'string' } },
    ],
    [
      'a definition that is true',
      { ...object({ a: ref('#/$defs/Any') }), $defs: { Any: true as never } },
      object({ a: ref('#/$defs/Any') }),
      { Any: true as never },
    ],
    [
      'a name that another component has',
      { ...ref('#/$defs/Taken'), $defs: { Taken: { type: 'null' } } },
      ref('#/$defs/Taken2'),
      { Taken2: { type: 'null' } },
    ],
    [
      'a generated name such as __schema0',
      {
        ...object({ a: ref('#/$defs/__schema0') }),
        $defs: { __schema0: object({ sub: list(ref('#/$defs/__schema0')) }) },
      },
      object({ a: ref('#/$defs/x_body') }),
      { x_body: object({ sub: list(ref('#/$defs/x_body')) }) },
    ],
    [
      'a reference to the whole schema',
      object({ sub: list(ref('#')) }),
      ref('#/$defs/x_body'),
      { x_body: object({ sub: list(ref('#/$defs/x_body')) }) },
    ],
    [
      'references to properties of the schema',
      {
        ...object({ a: { type: 'string' }, 'b/c': { type: 'null' } }),
        items: ref('#/properties/a'),
        not: ref('#/properties/b~1c'),
      },
      {
        ...object({ a: { type: 'string' }, 'b/c': { type: 'null' } }),
        items: ref('#/$defs/x_body'),
        not: ref('#/$defs/x_body2'),
      },
      { x_body: { type: 'string' }, x_body2: { type: 'null' } },
    ],
    [
      'a name with a blank',
      { ...ref('#/$defs/a%20b'), $defs: { 'a b': { type: 'null' } } },
      ref('#/$defs/a_20b'),
      { a_20b: { type: 'null' } },
    ],
    [
      'a name with a tilde or a slash, in percent-encoding or not',
      {
        ...object({
          a: ref('#/$defs/a~1b'),
          b: ref('#/$defs/a%7E1b'),
          c: ref('#/$defs/a%7E0b'),
          d: ref('#/$defs/a~01b'),
        }),
        $defs: { 'a/b': { type: 'null' }, 'a~b': { type: 'string' }, 'a~1b': { type: 'number' } },
      },
      object({ a: ref('#/$defs/a_1b'), b: ref('#/$defs/a_7E1b'), c: ref('#/$defs/a_7E0b'), d: ref('#/$defs/a_01b') }),
      { a_1b: { type: 'null' }, a_7E1b: { type: 'null' }, a_7E0b: { type: 'string' }, a_01b: { type: 'number' } },
    ],
    [
      'two names of equal definitions, which both stay',
      {
        ...object({ a: ref('#/$defs/Id'), b: ref('#/$defs/Name') }),
        $defs: { Id: { type: 'string' }, Name: { type: 'string' } },
      },
      object({ a: ref('#/$defs/Id'), b: ref('#/$defs/Name') }),
      { Id: { type: 'string' }, Name: { type: 'string' } },
    ],
    [
      'dangling references',
      { items: ref('#/$defs/No'), not: ref('https://example.com/x.json'), if: ref('#name') },
      { items: {}, not: {}, if: {} },
    ],
    [
      'two definitions that refer to each other',
      { ...ref('#/$defs/A'), $defs: { A: object({ b: ref('#/$defs/B') }), B: list(ref('#/$defs/A')) } },
      ref('#/$defs/A'),
      { A: object({ b: ref('#/$defs/B') }), B: list(ref('#/$defs/A')) },
    ],
    [
      'values that look like references',
      { enum: [ref('#/$defs/A')], default: ref('#/$defs/A') },
      { enum: [ref('#/$defs/A')], default: ref('#/$defs/A') },
    ],
    [
      'fields that are named like keywords',
      object({ $id: {}, $defs: {}, $ref: {}, enum: ref('#/$defs/A') }),
      object({ $id: {}, $defs: {}, $ref: {}, enum: {} }),
    ],
    [
      'the keywords $id, $schema and $anchor, which are removed',
      { $id: 'https://example.com/x', $schema: 'x', $anchor: 'a', type: 'null' },
      { type: 'null' },
    ],
  ];
  for (const [name, schema, expected, defs = {}] of rows) {
    test(name, () => {
      const writer = createSchemaWriter();
      writer.defs[writer.reserve('Taken')] = { type: 'string' };
      assert.deepEqual(createDefinitionMover(writer)(schema, 'x_body'), expected);
      const { Taken, ...others } = writer.defs;
      assert.deepEqual([Taken, others], [{ type: 'string' }, defs]);
    });
  }

  test('equal definitions of several schemas, which become one component', () => {
    const writer = createSchemaWriter();
    const moveDefinitions = createDefinitionMover(writer);
    const category = (type: string) => ({
      ...ref('#/$defs/Category'),
      $defs: { Category: object({ name: { type }, sub: list(ref('#/$defs/Category')) }) },
    });
    const made = [
      moveDefinitions(category('string'), 'a'),
      moveDefinitions(category('string'), 'b'),
      moveDefinitions(category('number'), 'c'),
    ];
    assert.deepEqual(made, [ref('#/$defs/Category'), ref('#/$defs/Category'), ref('#/$defs/Category2')]);
    assert.deepEqual(writer.defs.Category2, object({ name: { type: 'number' }, sub: list(ref('#/$defs/Category2')) }));
  });
});

const CONTROLLER = `
  const list = (items) => ({ type: 'array', items });
  const input = { type: 'object', properties: { root: { $ref: '#/$defs/__schema0' } }, $defs: { __schema0: { type: 'object', properties: { sub: list({ $ref: '#/$defs/__schema0' }) } } } };
  const output = { type: 'object', properties: { sub: list({ $ref: '#' }) } };
  const schema = { '~standard': { version: 1, vendor: 'x', validate: () => ({}), jsonSchema: { input: () => input, output: () => output } } };
  export default class TreeController {
    static operations = { created: { body: schema, result: schema }, index: { query: schema } };
    created(data) { return data; }
    index(data) { return data; }
  }`;

test('every reference in the document leads to a component', async (t) => {
  const api = await startTest({
    controllers: `${makeProject(t, { 'controllers/TreeController.mjs': CONTROLLER })}/controllers`,
  });
  try {
    const text = await (await api.fetch('/openapi.json')).text();
    const { schemas } = (JSON.parse(text) as { components: { schemas: Record<string, unknown> } }).components;
    const names = Array.from(text.matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g), ([, name]) => name as string);
    for (const name of names) assert.ok(name in schemas, name);
    assert.ok(names.includes('created_body') && names.includes('created_result'), names.join());
    assert.doesNotMatch(text, /\$defs|"\$ref":"#"/);
  } finally {
    await api.close();
  }
});
