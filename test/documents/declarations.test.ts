// The declarations of `gatefold types`: how a schema is written as a type, and which names the types of groups get.
// test/slow/cli-types.slow.ts compiles such a file with a front end.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { GroupContract, OperationContract, Schema } from '../../src/contract/contract.ts';
import { NO_RESULT_TYPE, sentForm } from '../../src/contract/results.ts';
import { IS_DATE } from '../../src/contract/schema/schema.ts';
import { writeDeclarations } from '../../src/documents/declarations.ts';
import type { DocumentedGroup } from '../../src/documents/documented.ts';
import { docComment, typeText } from '../../src/documents/type-text.ts';

const TEXT: Schema = { type: 'string' };
const NUMBER: Schema = { type: 'number' };
const EITHER: Schema = { anyOf: [TEXT, NUMBER] };

describe('a schema becomes the type', () => {
  const rows: [schema: unknown, text: string][] = [
    [TEXT, 'string'],
    [{ type: ['string', 'null'] }, 'string | null'],
    [{ type: 'integer' }, 'number'],
    [{ type: 'boolean' }, 'boolean'],
    [{ type: 'other' }, 'unknown'],
    [true, 'unknown'],
    [{}, 'unknown'],
    [false, 'never'],
    [{ not: {} }, 'never'],
    [{ $ref: '#/$defs/Item' }, 'Item'],
    [{ type: 'string', [IS_DATE]: true }, 'Date'],
    [{ type: ['string', 'null'], [IS_DATE]: true }, 'Date | null'],
    [{ type: 'string', contentMediaType: 'a/b' }, 'File'],
    [{ type: 'string', contentEncoding: 'binary' }, 'File'],
    [{ type: ['string', 'null'], contentMediaType: 'a/b' }, 'File | null'],
    [{ type: 'string', contentMediaType: 'text/html' }, 'string'],
    [{ type: 'string', contentMediaType: 'application/ld+json' }, 'string'],
    [{ type: 'string', contentMediaType: 'image/png', contentEncoding: 'base64' }, 'string'],
    [{ type: 'string', contentMediaType: 'text/csv', contentEncoding: 'binary' }, 'File'],
    [{ const: "it's" }, "'it\\'s'"],
    [{ const: 'a "b"' }, `'a "b"'`],
    [{ const: null }, 'null'],
    [{ enum: ['a', 7, true, null] }, "'a' | 7 | true | null"],
    [EITHER, 'string | number'],
    [{ anyOf: [TEXT, {}] }, 'unknown'],
    [{ anyOf: [TEXT, TEXT] }, 'string'],
    [{ anyOf: [] }, 'never'],
    [{ oneOf: [TEXT, NUMBER] }, 'string | number'],
    [{ allOf: [{ $ref: '#/$defs/A' }, EITHER] }, 'A & (string | number)'],
    [{ type: 'array', items: TEXT }, 'string[]'],
    [{ type: 'array', items: EITHER }, '(string | number)[]'],
    [{ type: 'array' }, 'unknown[]'],
    [{ type: 'array', items: false }, '[]'],
    [{ type: ['object', 'array'] }, 'object'],
    [{ type: 'array', prefixItems: [TEXT, NUMBER], minItems: 1, items: false }, '[string, number?]'],
    [{ type: 'array', prefixItems: [EITHER], items: false }, '[(string | number)?]'],
    [{ type: 'array', prefixItems: [TEXT], minItems: 1, items: EITHER }, '[string, ...(string | number)[]]'],
    [{ type: 'array', prefixItems: [TEXT], minItems: 1 }, '[string, ...unknown[]]'],
    [{ type: 'object' }, 'object'],
    [{ type: 'object', properties: {} }, 'Record<never, never>'],
    [{ type: ['object', 'null'], properties: { a: TEXT }, required: ['a'] }, '{\n  a: string;\n} | null'],
    [{ type: ['object', 'null'], additionalProperties: NUMBER }, '{ [name: string]: number } | null'],
    [{ type: 'object', additionalProperties: NUMBER }, '{ [name: string]: number }'],
    [{ type: 'object', additionalProperties: false }, 'object'],
    [{ type: 'object', additionalProperties: { not: {} } }, '{ [name: string]: never }'],
    // Nothing fits a field together with an index signature of `never`.
    [{ type: 'object', properties: { a: TEXT }, additionalProperties: { not: {} } }, '{\n  a?: string;\n}'],
    [{ type: 'object', patternProperties: { '^\\d+$': TEXT } }, '{ [name: number]: string }'],
    [
      {
        type: 'object',
        properties: {
          id: { ...NUMBER, description: 'The id.' },
          'odd-name': { type: 'object', properties: { a: TEXT } },
        },
        required: ['id'],
        additionalProperties: true,
      },
      "{\n  /** The id. */\n  id: number;\n  'odd-name'?: {\n    a?: string;\n  };\n} & { [name: string]: unknown }",
    ],
  ];
  for (const [schema, text] of rows)
    test(text, () =>
      assert.equal(
        typeText(schema, (reference) => reference.slice('#/$defs/'.length)),
        text,
      ),
    );
});

describe('a comment', () => {
  const rows: [name: string, doc: Parameters<typeof docComment>[0], text: string][] = [
    ['of nothing', {}, ''],
    ['of empty texts', { summary: '', description: '' }, ''],
    ['of one line', { summary: 'One' }, '  /** One */\n'],
    ['with empty lines around', { description: '\nOne\n' }, '  /** One */\n'],
    ['of two paragraphs', { summary: 'One', description: 'Two' }, '  /**\n   * One\n   *\n   * Two\n   */\n'],
    ['that would end', { description: 'a */ b' }, '  /** a *\\/ b */\n'],
    ['with the tag alone', { deprecated: true }, '  /** @deprecated */\n'],
    [
      'of several lines',
      { summary: 'One', description: 'Two  \nthree', deprecated: true },
      '  /**\n   * One\n   *\n   * Two\n   * three\n   * @deprecated\n   */\n',
    ],
  ];
  for (const [name, doc, text] of rows) test(name, () => assert.equal(docComment(doc, '  '), text));
});

type Known = Partial<OperationContract> & { readonly name: string };

function group(name: string, defs: GroupContract['defs'], ...known: readonly Known[]): DocumentedGroup {
  const base = { isDeprecated: false, dataIsOptional: false, results: [{ status: 200, body: 'json' as const }] };
  const contracts = known.map((own): [string, OperationContract] => [own.name, { ...base, ...own }]);
  const operations = known.map(({ name: own }) => {
    const method = ['upload', 'none', 'late'].includes(own) ? () => undefined : (data: unknown) => data;
    const settings = own === 'upload' ? { body: 'stream' as const, summary: 'Takes bytes' } : {};
    return [own, { name: own, method, settings, contract: undefined }] as const;
  });
  const contract = {
    operations: new Map(contracts),
    defs,
    summary: name === 'Shop' ? 'A shop' : undefined,
  };
  return { name, routes: [], operations: new Map(operations), contract };
}

const refer = (name: string): Schema => ({ $ref: `#/$defs/${name}` });
const returns = (returnedSchema: Schema) => [{ status: 200, body: 'json' as const, returnedSchema }];
const ITEM: Schema = { type: 'object', properties: { title: TEXT }, required: ['title'], description: 'An item.' };

test('the file has the operations of all groups, and the types that these need', () => {
  const shop = group(
    'Shop',
    {
      Item: { ...ITEM, description: 'An item of a shop.' },
      Tag: TEXT,
      'a.b': NUMBER,
      a_b: TEXT,
      '7up': NUMBER,
      default: TEXT,
      Reply: ITEM,
      Unused: TEXT,
    },
    { name: 'find', data: refer('Item'), dataIsOptional: true, results: returns(refer('Tag')) },
    {
      name: 'names',
      results: returns({ anyOf: [refer('a.b'), refer('a_b'), refer('7up'), refer('Reply'), refer('default')] }),
    },
    {
      name: 'GET {id}',
      summary: 'One of them',
      path: { type: 'object', properties: { id: NUMBER }, required: ['id'] },
      query: { type: 'object', properties: {} },
      headers: { type: 'object', properties: { 'x-a': TEXT } },
      results: [
        { status: 200, body: 'json', returnedSchema: refer('Item'), mayBeAbsent: true, isReplyWithBody: true },
        { status: 204, body: 'none' },
      ],
    },
    { name: 'events', isDeprecated: true, results: [{ status: 200, body: 'events', returnedSchema: TEXT }] },
    { name: 'upload', results: [{ status: 200, body: 'bytes' }] },
    { name: 'none', results: [{ status: 200, body: 'json', mayBeAbsent: true }] },
    { name: 'late', path: { type: 'object', properties: {} }, results: returns(TEXT) },
    { name: 'unknown', undocumentedReason: 'it comes from a package' },
    { name: 'any' },
  );
  const order = group(
    'Order',
    { Item: ITEM, Tag: TEXT, List: { type: 'array', items: refer('Item') } },
    { name: 'find', results: returns({ type: 'array', items: refer('List') }) },
    { name: 'tag', results: returns(refer('Tag')) },
  );
  const { text, untypedOperations } = writeDeclarations([shop, order], 'http://localhost/api');
  assert.deepEqual(untypedOperations, [
    'shop unknown: it comes from a package',
    'shop any: its result has no type in the source, so it is unknown: annotate it, or write a schema as result',
  ]);
  assert.equal(text, FILE);
});

test('an operation without types takes and returns unknown, and the root group has its own name', () => {
  const root = group('v2/', {}, { name: 'tag', results: returns(TEXT) });
  const order = group('Order', {}, { name: 'tag' });
  const { text, untypedOperations } = writeDeclarations([root, order], '/api');
  assert.deepEqual(untypedOperations, [`order tag: ${NO_RESULT_TYPE}`]);
  assert.equal(
    text.slice(text.indexOf('\n\n') + 2),
    'export interface Api {\n  order: {\n    tag(data: unknown): unknown;\n  };\n  v2_root: {\n    tag(data: unknown): string;\n  };\n}\n',
  );
});

describe('a named type is declared', () => {
  const DOT: Schema = { type: 'object', properties: { x: NUMBER }, required: ['x'] };
  const rows: [schema: Schema, text: string][] = [
    [DOT, 'export interface Named {\n  x: number;\n}'],
    [{ anyOf: [DOT, TEXT] }, 'export type Named = {\n  x: number;\n} | string;'],
    [{ ...DOT, type: ['object', 'null'] }, 'export type Named = {\n  x: number;\n} | null;'],
    [{ ...DOT, additionalProperties: NUMBER }, 'export type Named = {\n  x: number;\n} & { [name: string]: number };'],
    [{ type: 'object', properties: {} }, 'export type Named = Record<never, never>;'],
  ];
  for (const [schema, declaration] of rows)
    test(declaration, () => {
      const order = group('Order', { Named: schema }, { name: 'tag', results: returns(refer('Named')) });
      const { text } = writeDeclarations([order], '/api');
      assert.equal(text.slice(text.lastIndexOf('\n\n') + 2), `${declaration}\n`);
    });
});

test('a named group has a capital letter where its name would lead a client to a root group', () => {
  const names = ['Root', 'Tree_root', 'Old_tree_root', 'v2/Root', 'Roots'];
  const { text } = writeDeclarations(
    names.map((name) => group(name, {}, { name: 'tag', results: returns(TEXT) })),
    '/api',
  );
  assert.deepEqual(
    Array.from(text.matchAll(/^ {2}(\S+): \{$/gm), ([, name]) => name),
    ['old_tree_root', 'Root', 'roots', 'Tree_root', "'v2/root'"],
  );
});

describe('the type of a result with the schema of a library has the answer', () => {
  const rows: [Schema, string][] = [
    [TEXT, '{ data: string; }'],
    [{ type: 'boolean' }, '{ data: boolean; } | null'],
    [{ type: ['string', 'null'] }, '{ data: string; } | null'],
    [{ anyOf: [TEXT, { const: null }, ITEM] }, '{ data: string; } | { title: string; } | null'],
  ];
  for (const [schema, type] of rows)
    test(type, () => {
      const results = [{ status: 200, body: 'json' as const, ...sentForm(schema, {}) }];
      const { text } = writeDeclarations([group('Order', {}, { name: 'tag', results })], '/api');
      const written = /tag\(data: unknown\): (.*); \}; \} $/.exec(text.replaceAll(/\s+/g, ' '))?.[1];
      assert.equal(written, type);
    });
});

test('the file has no type of a result that no operation has', () => {
  const { text } = writeDeclarations([group('Order', {}, { name: 'tag', results: returns(TEXT) })], '/api');
  assert.equal(
    text.slice(text.indexOf('\n\n') + 2),
    'export interface Api {\n  order: {\n    tag(data: unknown): string;\n  };\n}\n',
  );
});

const FILE = `// Declarations of the service's operations. \`gatefold types\` makes this file: do not edit it.
//
//   import { createClient } from 'gatefold/client';
//   const api = createClient<Api>('http://localhost/api');

/** A result with a status of its own. */
interface Reply<Status extends number, Body> {
  readonly status: Status;
  readonly body: Body | undefined;
  readonly headers: Readonly<Record<string, string | readonly string[]>> | undefined;
}

/** A stream of server-sent events. */
interface EventStream<Data> {
  readonly source: AsyncIterable<
    { readonly data: Data; readonly event?: string; readonly id?: string; readonly retry?: number } | Data
  >;
  readonly options: { readonly retry?: number };
}

export interface Api {
  order: {
    find(data: unknown): OrderList[];
    tag(data: unknown): Tag;
  };
  /** A shop */
  shop: {
    find(data?: ShopItem): Tag;
    names(data: unknown): a_b | a_b2 | _7up | ShopReply | Shopdefault;
    /** One of them */
    'GET {id}'(data: unknown, params: { path: {
        id: number;
      }; query: Record<never, never>; headers: {
        'x-a'?: string;
      } }): Reply<200, ShopItem> | Reply<200, undefined> | Reply<204, undefined>;
    /** @deprecated */
    events(data: unknown): EventStream<string>;
    /** Takes bytes */
    upload(data: Blob): Blob;
    none(): undefined;
    late(data: unknown, params: { path: Record<never, never> }): string;
    unknown(data: unknown): unknown;
    any(data: unknown): unknown;
  };
}

export type OrderList = OrderItem[];

export type Tag = string;

/** An item of a shop. */
export interface ShopItem {
  title: string;
}

export type a_b = number;

export type a_b2 = string;

export type _7up = number;

/** An item. */
export interface ShopReply {
  title: string;
}

export type Shopdefault = string;

/** An item. */
export interface OrderItem {
  title: string;
}
`;
