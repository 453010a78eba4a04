// Types in JSDoc comments of JavaScript files. For each form, the service accepts the same values as TypeScript's
// checker, or it refuses the file.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import ts from 'typescript-5';
import { explain, type Reason } from '../contract/oracle/types.ts';
import { createRandom, createValues, JUNK, typeTextOf } from '../contract/oracle/values.ts';
import { type Service, startService } from '../support/service.ts';

/** Reasons why Gatefold's check and TypeScript's differ on purpose. */
type Difference = Reason | 'object' | 'nested' | 'constrained' | 'comments';
const DIFFERENCES: Readonly<Record<Exclude<Difference, Reason>, string>> = {
  object: 'Object and * are anything here; strict tsc takes Object for what is neither null nor undefined',
  comments: 'all comments before an operation count; tsc reads the last one',
  nested: 'fields of a parameter whose type is * count here; tsc leaves them out',
  constrained: 'tsc ends an object at the first tag that is no @property; here tags between them constrain',
};

interface Row {
  readonly form: string;
  /** Comments before the class. */
  readonly before?: string;
  /** The comment before the operation. */
  readonly doc?: string;
  readonly params?: string;
  readonly differs?: Difference;
  readonly refused?: RegExp;
}

const of = (form: string, more: Omit<Row, 'form'> = {}): Row => ({
  form,
  doc: `/** @param {${form}} data */`,
  ...more,
});
const not = (form: string, refused: RegExp, more: Omit<Row, 'form'> = {}): Row => of(form, { refused, ...more });
const typedef = (form: string, before: string, more: Omit<Row, 'form'> = {}): Row => ({
  form,
  before,
  doc: '/** @param {A} data */',
  ...more,
});
const docs = (form: string, doc: string, more: Omit<Row, 'form'> = {}): Row => ({ form, doc, ...more });
const UNKNOWN =
  /Controller\.mjs:\d+: created\(data\): the type \{.*\} is not understood; write unknown and check it yourself$/;

const ROWS: readonly Row[] = [
  of('string'),
  of('?string'),
  of('string?'),
  of('!string'),
  of('string!'),
  of('string='),
  of('?string='),
  of('(string|number)'),
  of('string | ?number'),
  of('string[]'),
  of('?string[]'),
  of('(?string)[]'),
  of('(string|null)[]'),
  of('Array<string>'),
  of('Array.<string>'),
  of('!Array<!string>'),
  of('Array<?string>'),
  of('Array<*>'),
  of('Array<?>'),
  of('Array'),
  of('*'),
  of('?'),
  of('any'),
  of('unknown'),
  of('object'),
  of('Object', { differs: 'object' }),
  of('object[]'),
  of('String'),
  of('Number'),
  of('Boolean'),
  of('Array<String>'),
  of('Object<string, number>'),
  of('Object.<string, number>'),
  of('Object<string, *>'),
  of('Object<string, ?Number>'),
  of('Record<string, number>'),
  of('{ a: string, b?: number }'),
  of('{a: string, b: !Array<number>, c: ?Boolean}'),
  of('{a: string; b: {c: Number[]}}'),
  of('{\n   *   a: string,\n   *   b?: number\n   * }'),
  of("'a' | 'b.<c' | '!d' | '*'"),
  of('1|2|null'),
  of('[string, ?number]'),
  of('Date', { differs: 'date' }),
  of('Partial<{a: string}>', { differs: 'weak' }),
  not('array', /there is no type array here/),
  not('integer', /there is no type integer here/),
  not('int', /there is no type int here/),
  not('function(string): void', UNKNOWN),
  not('Function', /there is no type Function here/),
  not('function', /there is no type function here/),
  not('...string', UNKNOWN),
  not('module:shop', UNKNOWN),
  not('module:shop/order~Order', UNKNOWN),
  not('Order#item', UNKNOWN),
  not('Order~Item', UNKNOWN),
  not('new:Date', UNKNOWN),
  not('{a: string, b}', /the field b has no type/),
  not("Object<'a' | 'b', number>", /there is no type Object here/),
  not('Object<string>', /there is no type Object here/),
  not('string & number?', UNKNOWN),
  not('string, number', UNKNOWN),
  not('Map<string, number>', /a Map has no JSON form/),
  not('symbol', /symbol has no JSON form/),
  not('{a: string', /@param without a name is no parameter/),

  docs('the type on the next line', '/**\n   * @param\n   * {string} data\n   */'),
  docs('the type and the name on lines of their own', '/**\n   * @param\n   * {string}\n   * data - the data\n   */'),
  docs('the name before the type', '/** @param data {string} - the data */'),
  docs('the name in backticks', '/** @param {string} `data` */'),
  docs('an optional name', '/** @param {{ a: number }} [data] */'),
  docs('an optional name with a default', "/** @param {string} [data='[x]'] */"),
  docs('@arg', '/** @arg {string} data */'),
  docs('@argument', '/** @argument {string} data */'),
  docs('@param behind text on one line', '/** Makes one. @param {string} data @returns {string} */'),
  docs('text with braces and quotes', '/** @param {{ "a}": string }} data - the {data} isn\'t long */'),
  docs('two comments', '/** @param {string} data */\n  /** Makes one. */', { differs: 'comments' }),
  docs(
    'a @callback above the comment',
    '/**\n   * @callback Handler\n   * @param {number} a\n   */\n  /** @param {string} data */',
  ),
  docs('a @type of the parameter', '', { params: '/** @type {string} */ data' }),
  docs('a @type of the parameter, on its own line', '', { params: '/** @type {?Number} the data */\n    data' }),
  docs('a @type of the parameter, without braces', '', { params: '/** @type string */ data' }),
  docs('a pattern', '/** @param {{ a: string }} options */', { params: '{ a }' }),
  docs('fields of a pattern', '/**\n   * @param {Object} options\n   * @param {string} options.a\n   */', {
    params: '{ a }',
  }),
  docs(
    'fields',
    '/**\n   * @param {Object} data - it\n   * @param {string} data.a - its a\n   * @param {number} [data.b=1] - its b\n   */',
  ),
  docs(
    'fields of object',
    '/**\n   * @param {object} data\n   * @param {string} data.a\n   * @param {number=} data.b\n   */',
  ),
  docs(
    'fields of fields',
    '/**\n   * @param {Object} data\n   * @param {Object} data.a\n   * @param {string} data.a.b\n   * @param {Object} [data.c]\n   * @param {?number} data.c.d\n   */',
  ),
  docs(
    'fields of the entries of a list',
    '/**\n   * @param {Object[]} data\n   * @param {string} data[].name\n   * @param {number} [data[].age]\n   */',
  ),
  docs(
    'fields of the entries of a list, without brackets',
    '/**\n   * @param {Object[]} data\n   * @param {string} data.name\n   */',
  ),
  docs(
    'a list in a field',
    '/**\n   * @param {Object} data\n   * @param {Object[]} data.items\n   * @param {string} data.items[].name\n   */',
  ),
  docs('fields of *', '/**\n   * @param {*} data\n   * @param {string} data.a\n   */', { differs: 'nested' }),
  docs('a description of a field of a type', '/**\n   * @param {{ a: string }} data\n   * @param data.a its a\n   */'),
  docs('a @type with braces', '/** @type {(data: string) => void} */', {
    refused: /created: @type of an operation is not read: write @param$/,
  }),
  docs('a @type without braces', '/** @type Handler */', { refused: /@type of an operation is not read/ }),
  docs('an @overload', '/**\n   * @overload\n   * @param {string} data\n   */', {
    refused: /@overload of an operation is not read/,
  }),
  docs('a @template', '/**\n   * @template T\n   * @param {T} data\n   */', {
    refused: /@template of an operation is not read/,
  }),
  docs('a @param of another parameter', '/** @param {string} date */', {
    refused: /@param date is no parameter of the operation$/,
  }),
  docs('a @param without a name', '/** @param {string} */', {
    refused: /@param without a name is no parameter of the operation$/,
  }),
  docs('two types', '/** @param {string} data\n   * @param {number} data */', {
    refused: /@param data is written twice: write it once$/,
  }),
  docs('a second type beside the parameter', '/** @param {string} data */', {
    params: '/** @type {number} */ data',
    refused: /@param data already has a type/,
  }),
  docs('a field without a parent', '/** @param {string} data.a */', {
    refused: /@param data\.a has no parent: write @param \{Object\} data before it$/,
  }),
  docs('a field of a missing field', '/** @param {Object} data\n   * @param {string} data.a.b */', {
    refused: /@param data\.a\.b has no parent/,
  }),
  docs('a field of a @param without a type', '/** @param data\n   * @param {string} data.a */', {
    refused: /@param data\.a is a field of something that is not an Object: write @param \{Object\} data/,
  }),
  docs('a field of a type', '/** @param {{ a: string }} data\n   * @param {string} data.b */', {
    refused: /@param data\.b is a field of something that is not an Object: write all fields in one place/,
  }),
  docs('a field of a list of texts', '/** @param {string[]} data\n   * @param {string} data[].a */', {
    refused: /is a field of something that is not an Object/,
  }),
  docs('an entry of an object that is not a list', '/** @param {Object} data\n   * @param {string} data[].a */', {
    refused: /@param data\[\]\.a: data is not a list: write \{Object\[\]\} data/,
  }),
  docs('an unknown type of a parameter', '', {
    params: '/** @type {string, number} */ data',
    refused: UNKNOWN,
  }),

  typedef('@typedef of a type', '/** @typedef {{ a: string }} A */'),
  typedef(
    '@typedef with fields',
    '/**\n * @typedef {Object} A - It.\n * @property {string} a - its a\n * @property {Number} [b]\n * @prop {?Boolean=} c\n */',
  ),
  typedef('@typedef without Object', '/**\n * @typedef A\n * @property {string} a\n */'),
  typedef('@typedef with its type in a tag', '/**\n * @typedef A\n * @type {string[]}\n */'),
  typedef('@typedef of a list with fields', '/**\n * @typedef {Object[]} A\n * @property {string} a\n */'),
  typedef(
    '@typedef with fields of fields',
    '/**\n * @typedef {Object} A\n * @property {Object} a\n * @property {string} a.b\n * @property {Object[]} c\n * @property {number} c[].d\n */',
  ),
  typedef(
    '@typedef with a template',
    '/**\n * @template T\n * @typedef {{ page: T[] }} Page\n */\n/** @typedef {Page<string>} A */',
  ),
  typedef(
    '@typedef with two templates',
    '/**\n * @template {string} K, V - text\n * @template W\n * @typedef {{ k: K, v: V, w?: W }} M\n */\n/** @typedef {M<"a", number, Boolean>} A */',
  ),
  typedef(
    '@typedef that is recursive',
    '/**\n * @typedef {Object} A\n * @property {string} a\n * @property {A[]} [next]\n */',
  ),
  typedef('@typedef with a dotted name', '/** @typedef {string} Shop.Id */\n/** @typedef {{ id: Shop.Id }} A */'),
  typedef('@typedef with a name beyond ASCII', '/** @typedef {string} Größe */\n/** @typedef {{ a: Größe }} A */'),
  typedef(
    '@typedef in a text and in a plain comment',
    '// /** @typedef {number} A */\nconst a = "/** @typedef {boolean} A */"; a;\n/** @typedef {string} A */',
  ),
  typedef(
    'two @typedefs in a comment',
    '/**\n * @typedef {Object} B\n * @property {string} b\n * @typedef {Object} A\n * @property {B} a\n */',
  ),
  typedef(
    'constraints between fields',
    '/**\n * @typedef {Object} A\n * @property {string} a\n * @minLength 0\n * @property {string} b\n */',
    { differs: 'constrained' },
  ),
  typedef('@import', "/** @import { B as A } from './types.ts' */"),
  typedef('@import over lines', "/**\n * @import {\n *   B as A,\n * } from './types.ts'\n */"),
  typedef('import()', "/** @typedef {import('./types.ts').B} A */"),
  typedef(
    '@typedef with a field twice',
    '/** @typedef {Object} A\n * @property {string} a\n * @property {number} a */',
    {
      refused: /@property a is written twice: write it once/,
    },
  ),
  typedef('@typedef twice', '/** @typedef {string} A */\n/** @typedef {number} A */', {
    refused: /@typedef A is written twice in this file: write it once/,
  }),
  typedef('@typedef of a type with fields', '/** @typedef {string} A\n * @property {string} a */', {
    refused: /@property a is a field of something that is not an Object/,
  }),
  typedef('@callback', '/** @callback A\n * @param {string} a */', { refused: /there is no type A here/ }),
  typedef('@enum', '/** @enum {string} */\nconst A = { B: "b" };', {
    refused: /A is a value and not a type|there is no type A here/,
  }),
];

const OPTIONS: ts.CompilerOptions = {
  strict: true,
  allowJs: true,
  checkJs: true,
  noEmit: true,
  skipLibCheck: true,
  types: [],
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  allowImportingTsExtensions: true,
};

const nameOf = (i: number): string => `Row${i}Controller`;
const sourceOf = ({ before: head = '', doc = '', params = 'data' }: Row, i: number): string =>
  `${head}\nexport default class ${nameOf(i)} {\n  ${doc}\n  created(${params}) { return {}; }\n}\n`;

describe('a form of JSDoc', () => {
  let service: Service;
  let program: ts.Program;
  let values: unknown[][];
  before(async () => {
    const files = Object.fromEntries(ROWS.map((row, i) => [`${nameOf(i)}.mjs`, sourceOf(row, i)]));
    const controllers = { ...files, 'types.ts': 'export interface B { a: string; b?: number }\n' };
    service = await startService({ controllers, expectedErrors: ['group-not-loadable', 'request-failed'] });
    const paths = Object.keys(files).map((name) => join(service.dir, name));
    const first = ts.createProgram(paths, OPTIONS);
    const make = createValues(first.getTypeChecker(), createRandom(3));
    values = ROWS.map(({ refused, differs }, i) => {
      if (refused !== undefined) return [];
      return differs === 'object' ? [...JUNK] : make.some(typeOf(first, i), 12);
    });
    const lines = values.flatMap((list, i) => list.map((value, j) => `export type V${i}_${j} = ${typeTextOf(value)};`));
    writeFileSync(join(service.dir, 'values.ts'), lines.join('\n'));
    program = ts.createProgram([...paths, join(service.dir, 'values.ts')], OPTIONS, undefined, first);
  });
  after(() => service.close());

  function typeOf(from: ts.Program, i: number): ts.Type {
    const file = from.getSourceFile(join(service.dir, `${nameOf(i)}.mjs`)) as ts.SourceFile;
    const declared = file.statements
      .find(ts.isClassDeclaration)
      ?.members.find(ts.isMethodDeclaration) as ts.MethodDeclaration;
    return from.getTypeChecker().getTypeAtLocation(declared.parameters[0] as ts.ParameterDeclaration);
  }

  async function send(i: number, value: unknown): Promise<number> {
    const init = { method: 'POST', body: JSON.stringify(value), headers: { 'Content-Type': 'application/json' } };
    return (await fetch(`${service.url}/api/row${i}`, init)).status;
  }

  for (const [i, { form, refused, differs }] of ROWS.entries()) {
    if (refused !== undefined) {
      test(`${form} refuses the file`, async () => {
        assert.match(await loadErrorOf(i), refused);
      });
      continue;
    }
    test(`${form} accepts the same values as tsc`, async () => {
      const checker = program.getTypeChecker();
      const type = typeOf(program, i);
      const literals =
        program.getSourceFile(join(service.dir, 'values.ts'))?.statements.filter(ts.isTypeAliasDeclaration) ?? [];
      const reasons = new Set<string>();
      for (const [j, value] of (values[i] as unknown[]).entries()) {
        const literal = literals.find(({ name }) => name.text === `V${i}_${j}`) as ts.TypeAliasDeclaration;
        const truth = checker.isTypeAssignableTo(checker.getTypeFromTypeNode(literal.type), type);
        const status = await send(i, value);
        assert.ok(status === 200 || status === 422, `${status} to ${JSON.stringify(value)}`);
        if (truth === (status === 200)) continue;
        const reason = differs !== undefined && differs in DIFFERENCES ? differs : explain(checker, value, type, truth);
        assert.ok(
          reason !== undefined,
          `tsc ${truth ? 'takes' : 'refuses'} ${JSON.stringify(value)} for ${checker.typeToString(type)}, answered ${status}`,
        );
        reasons.add(reason);
      }
      if (differs !== undefined) assert.ok(reasons.has(differs), `no value shows the difference ${differs}`);
    });
  }

  async function loadErrorOf(i: number): Promise<string> {
    const status = await send(i, 'x');
    assert.equal(status, 500);
    const line = service.lines.find(({ event, group }) => event === 'group-not-loadable' && group === `Row${i}`);
    return String(line?.error);
  }
});

describe('the JSDoc comment of an operation is read', () => {
  const DOC = '/** @param {{ a: string }} data */';
  const rows: Record<string, string> = {
    'before a function that an object names': `${DOC}\nfunction create(data) { return data; }\nexport default { /** Creates. */ created: create };`,
    'before a constant that an object names': `${DOC}\nconst create = (data) => data;\nexport default { /** Creates. */ created: create };`,
    'before the value of a constant': `const create = ${DOC} (data) => data;\nexport default { /** Creates. */ created: create };`,
    'before the value of a field': `export default { /** Creates. */ created: ${DOC} (data) => data };`,
    'before the function of a field': `export default { created: ${DOC} async function (data) { return data; } };`,
    'behind a modifier': `export default class X { async ${DOC} created(data) { return data; } }`,
    'behind a modifier with a comment': `export default class X { /** Creates. */ async ${DOC} created(data) { return data; } }`,
    'on the line of another method': `export default class X { index() {} ${DOC}\n created(data) { return data; } }`,
    'before a method of an object': `export default { /** Creates. */ ${DOC} created(data) { return data; } };`,
  };
  let service: Service;
  before(async () => {
    const sources = Object.values(rows).map((source, i) => [`Row${i}Controller.mjs`, source]);
    service = await startService({ controllers: Object.fromEntries(sources) });
  });
  after(() => service.close());

  for (const [i, name] of Object.keys(rows).entries()) {
    test(name, async () => {
      const send = async (body: string): Promise<number> =>
        (
          await fetch(`${service.url}/api/row${i}`, {
            method: 'POST',
            body,
            headers: { 'Content-Type': 'application/json' },
          })
        ).status;
      assert.deepEqual([await send('{"a":"x"}'), await send('{"a":1}')], [200, 422]);
    });
  }
});
