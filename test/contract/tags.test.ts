// Tags and decorators: a constraint is checked where TypeScript reads its tag. A constraint that nothing reads, or of
// another library, refuses the file. All other tags are remarks.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createLog } from '../../src/base/log.ts';
import { CONSTRAINTS, findTagMistake } from '../../src/contract/source/constraint-tags.ts';
import { readDoc } from '../../src/contract/source/doc-comment.ts';
import { createGroups } from '../../src/live/load/registry.ts';
import { type Service, startService } from '../support/service.ts';

const inClass = (type: string, declared = ''): string =>
  `${declared}\nexport default class XController {\n  created(data: ${type}) { return data; }\n}\n`;
const field = (comment: string, type = 'string'): string =>
  inClass('A', `interface A {\n  ${comment}\n  name: ${type};\n}`);
const inScript = (comment: string, before = ''): string =>
  `${before}\nexport default class XController {\n  ${comment}\n  created(data) { return data; }\n}\n`;

describe('a constraint is checked where TypeScript reads its tag', () => {
  const rows: [name: string, source: string, good: unknown, bad: unknown, file?: string][] = [
    ['behind text on one line', field('/** The name. @minLength 3 */'), { name: 'abc' }, { name: 'ab' }],
    [
      'behind text on a later line',
      field('/**\n * The name.\n * As it is. @minLength 3\n */'),
      { name: 'abc' },
      { name: 'ab' },
    ],
    ['that counts a pair of surrogates as one', field('/** @maxLength 2 */'), { name: '😀😀' }, { name: '😀😀a' }],
    ['that counts half a pair as one', field('/** @minLength 3 */'), { name: '\ud83dab' }, { name: '\ud83da' }],
    ['that counts the other half as one', field('/** @minLength 3 */'), { name: 'a\ude00b' }, { name: 'a\ude00' }],
    ['behind a dash', field('/** The name - @minLength 3 */'), { name: 'abc' }, { name: 'ab' }],
    ['as the first of two tags on one line', field('/** @minLength 2 @maxLength 3 */'), { name: 'ab' }, { name: 'a' }],
    [
      'as the second of two tags on one line',
      field('/** @minLength 2 @maxLength 3 */'),
      { name: 'abc' },
      { name: 'abcd' },
    ],
    ['with its value on the next line', field('/**\n * @minLength\n * 3\n */'), { name: 'abc' }, { name: 'ab' }],
    ['before an alias', inClass('A', '/** The name. @minLength 3 */\ntype A = string;'), 'abc', 'ab'],
    ['before an exported alias', inClass('A', '/** The name. @minLength 3 */\nexport type A = string;'), 'abc', 'ab'],
    ['before a line comment', field('/** @minLength 3 */\n  // as it is'), { name: 'abc' }, { name: 'ab' }],
    ['before another comment', field('/** @minLength 3 */ /** The name. */'), { name: 'abc' }, { name: 'ab' }],
    [
      'within a type',
      inClass('{ a?: 1; /** The name. @minLength 3 */ name: string }'),
      { name: 'abc' },
      { name: 'ab' },
    ],
    ...['{ ', '{ a?: 1; ', '{ a?: 1, '].map((before): [string, string, unknown, unknown] => [
      `in a comment of several lines behind ${before}`,
      inClass(`${before}/**\n * The name.\n * @minLength 3\n */\n name: string }`),
      { name: 'abc' },
      { name: 'ab' },
    ]),
    ['behind a modifier', inClass('{ readonly /** @minLength 3 */ name: string }'), { name: 'abc' }, { name: 'ab' }],
    [
      'on a field of a class',
      inClass('A', "class A {\n  /** The name. @minLength 3 */\n  name: string = '';\n}"),
      { name: 'abc' },
      { name: 'ab' },
    ],
    ['a pattern before another tag', field('/** @pattern ^[a-z]+$ @maxLength 3 */'), { name: 'abc' }, { name: 'abcd' }],
    ['a pattern with a blank', field('/** @pattern ^[a-z]+ [a-z]+$ */'), { name: 'a b' }, { name: 'a  b' }],
    ['a pattern with a dollar sign', field('/** @pattern ^\\$ \\d+[$ ]\\$$ */'), { name: '$ 1 $' }, { name: '$1' }],
    ['a pattern with a $ in a group', field('/** @pattern ^a(?:$|b$) */'), { name: 'ab' }, { name: 'abb' }],
    ['a pattern with an at sign', field('/** @pattern ^\\S+ \\x40\\S+$ */'), { name: 'a @b' }, { name: 'a b' }],
  ];
  let service: Service;
  before(async () => {
    const files = rows.map(([, source, , , file = 'ts'], i) => [
      `Row${i}Controller.${file}`,
      source.replace('XController', `Row${i}Controller`),
    ]);
    service = await startService({ controllers: Object.fromEntries(files) });
  });
  after(() => service.close());

  for (const [i, [name, , good, bad]] of rows.entries()) {
    test(name, async () => {
      const send = async (value: unknown): Promise<number> => {
        const init = { method: 'POST', body: JSON.stringify(value), headers: { 'Content-Type': 'application/json' } };
        return (await fetch(`${service.url}/api/row${i}`, init)).status;
      };
      assert.deepEqual([await send(good), await send(bad)], [200, 422]);
    });
  }
});

const silent = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });
let dir: string;
let count = 0;
before(() => {
  dir = mkdtempSync(join(tmpdir(), 'gatefold-tags-'));
  writeFileSync(join(dir, 'package.json'), '{"type":"module"}');
});
after(() => rmSync(dir, { recursive: true, force: true }));

async function load(
  files: Readonly<Record<string, string>>,
): Promise<{ error: string; describe: () => Promise<unknown> }> {
  const path = join(dir, String(count++));
  mkdirSync(path);
  for (const [name, source] of Object.entries(files)) writeFileSync(join(path, name), source);
  const groups = createGroups({ dir: path, log: silent });
  const loads = await groups.loadAll({ skip: new Map(), onLoading: () => {} });
  const failed = loads.find(({ ok }) => !ok);
  return { error: failed?.error ?? 'it loaded', describe: async () => (await groups.find('x'))?.contract };
}

const IDLE =
  /: @minLength can have no effect here: write it in the comment before a property or a type alias(?:, on a line of its own)?$/;

describe('a constraint that nothing reads refuses the file', () => {
  const rows: [name: string, source: string, expected?: RegExp][] = [
    ...['/** Makes one. */', ''].map((comment): [string, string] => [
      `before a property whose function has the comment '${comment}'`,
      `${comment}\nfunction create(data: string) { return data; }\nexport default {\n  /** @minLength 3 */\n  created: create,\n};\n`,
    ]),
    [
      'with a length that is not a whole number',
      field('/** @minLength 1.5 */'),
      /@minLength 1\.5: the value must be a whole number/,
    ],
    [
      'before the type of a field',
      inClass('{ name: /** @minLength 3 */ string }'),
      /^XController\.ts:3: created\(data: .*@minLength can have/,
    ],
    [
      'before the type of a field of an interface',
      inClass('A', 'interface A {\n  name: /** @minLength 3 */ string;\n}'),
      /^XController\.ts:2: /,
    ],
    ['behind text before a type', inClass('{ name: /** The name. @minLength 3 */ string }')],
    ['before the element of a list', inClass('(/** @minLength 3 */ string)[]')],
    ['before a type argument', inClass('Array</** @minLength 3 */ string>')],
    ['before a part of a union', inClass('A', 'type A =\n  /** @minLength 3 */\n  | string\n  | null;')],
    ['behind the bar of a union', inClass('null | /** @minLength 3 */ string')],
    ['before an item of a tuple', inClass('[/** @minLength 3 */ string, name: /** @minLength 3 */ string]')],
    ['before a named item of a tuple', inClass('[/** @minLength 3 */ name: string]')],
    ['before the type of an alias', inClass('A', 'type A = /** @minLength 3 */ string;')],
    ['within the head of an alias', inClass('A', 'type /** @minLength 3 */ A = string;')],
    [
      'between export and its alias, below another comment',
      inClass('A', '/** A. */\nexport /** @minLength 3 */ type A = string;'),
    ],
    [
      'behind a type',
      inClass('{ name: string /** @minLength 3 */ }'),
      /: created\(data: \{ name: string \/\*\* @minLength 3 \*\/ \}\): @minLength can/,
    ],
    ['behind a type, before a semicolon', inClass('A', 'interface A {\n  name: string /** @minLength 3 */;\n}')],
    [
      'behind a field on its line',
      inClass('A', 'interface A {\n  name: string; /** @minLength 3 */\n  age: number;\n}'),
    ],
    ['behind a type of an interface', inClass('A', 'interface A { name: string /** @minLength 3 */ }')],
    [
      'behind a field on its line, above a comment',
      inClass('A', 'interface A {\n  name: string; /** @minLength 3 */\n  /** B. */\n  b: string;\n}'),
    ],
    [
      'before a field, behind a bracket and above a comment',
      inClass('A', 'interface A { /** @minLength 3 */\n  /** B. */\n  b: string;\n}'),
    ],
    ['before the default of a type parameter', inClass('A', 'interface A<T = /** @minLength 3 */ string> { name: T }')],
    ['before the type of a constant', inClass('typeof A', "const A: /** @minLength 3 */ string = 'a';")],
    ['behind the last field', inClass('A', 'interface A {\n  name: string;\n  /** @minLength 3 */\n}')],
    ['behind the last field on its line', inClass('A', 'interface A {\n  name: string; /** @minLength 3 */\n}')],
    [
      'behind a bracket on its line',
      inClass('A', 'interface A { /** @minLength 3 */\n  name: string;\n}'),
      /, on a line of its own$/,
    ],
    ['behind an alias on its line', inClass('A', 'type A = string; /** @minLength 3 */\ntype B = A;')],
    ['before the alias behind it', inClass('B', 'type A = string; /** @minLength 3 */\ntype B = A;')],
    [
      'behind an alias on its line, without semicolon',
      inClass('A', 'type A = string /** @minLength 3 */\ntype B = A;'),
    ],
    [
      'behind an index signature on its line',
      inClass('A', 'interface A {\n  [name: string]: string; /** @minLength 3 */\n}'),
    ],
    ['before a key', inClass('{ [name: /** @minLength 3 */ string]: string }')],
    [
      'within the extends clause of an interface',
      inClass('B', 'interface A { name: string }\ninterface B extends /** @minLength 3 */ A { b: 1 }'),
    ],
    ['before an interface', inClass('A', '/** @minLength 3 */\ninterface A { name: string }')],
    [
      'before the second interface of a name',
      inClass('A', 'interface A { name: string }\n/** @minLength 3 */\ninterface A { age: number }'),
    ],
    ['before a class that is data', inClass('A', "/** @minLength 3 */\nclass A { name: string = '' }")],
    ['before the value of a field', inClass('A', "class A { name: string /** @minLength 3 */ = '' }")],
    ['before an enum', inClass('A', "/** @minLength 3 */\ndeclare enum A { B = 'b' }")],
    ['before a constant', inClass('typeof A', "/** @minLength 3 */\nconst A = { name: 'a' };")],
    [
      'before a field of a constant',
      inClass('typeof A', "const A = {\n  /** @minLength 3 */\n  name: 'a',\n};"),
      /the value A is not a constant/,
    ],
    [
      'before a member of an enum',
      inClass('A', "declare enum A {\n  /** @minLength 3 */\n  B = 'b',\n}"),
      /a value of the enum A is not a literal/,
    ],
    [
      'before a method of an interface',
      inClass('A', 'interface A {\n  /** @minLength 3 */\n  name(): string;\n}'),
      /a method/,
    ],
    ['before a parameter', inClass('string').replace('data:', '/** @minLength 3 */ data:')],
    ['before the type of a parameter', inClass('/** @minLength 3 */ string')],
    ['behind a parameter', inClass('string').replace('data:', 'data /** @minLength 3 */ :')],
    ['before an operation', inClass('string').replace('created', '/** @minLength 3 */\n  created')],
    ['on the class of the controller', inClass('string').replace('export', '/** @minLength 3 */\nexport')],
    [
      'behind text before an operation',
      inClass('string').replace('created', '/** Makes one. @minLength 3 */\n  created'),
    ],
    [
      'that another library reads, before an operation',
      inClass('string').replace('created', '/** @isInt data */\n  created'),
      /@isInt is not read/,
    ],
    [
      'that another library reads, before a type',
      inClass('{ n: /** @isInt */ number }'),
      /@isInt is not read here: the constraints are @minLength, /,
    ],
    [
      'twice',
      field('/** @minLength 3 @minLength 4 */'),
      /@minLength is written twice with different values: write it once$/,
    ],
    [
      'twice, in two comments',
      field('/** @minLength 3 */ /** @minLength 4 */'),
      /@minLength is written twice with different values: write it once$/,
    ],
  ];
  for (const [name, source, expected = IDLE] of rows) {
    test(name, async () => assert.match((await load({ 'XController.ts': source })).error, expected));
  }

  const scripts: [name: string, source: string][] = [
    ['behind a @param', inScript('/** @param {string} data The name. @minLength 3 */')],
    ['before a parameter', inScript('').replace('(data)', '(/** @type {string} @minLength 3 */ data)')],
    ['of a type above the class', inScript('', '/** @typedef {string} A\n * @minLength 3 */')],
  ];
  for (const [name, source] of scripts) {
    test(`${name}, in a script`, async () =>
      assert.match(
        (await load({ 'XController.mjs': source })).error,
        /@minLength has no effect in JavaScript: give a schema in static operations$/,
      ));
  }

  const silentRows: [name: string, source: string][] = [
    [
      'in a type that no operation uses',
      inClass('A', 'type A = string;\ninterface B { name: /** @minLength 3 */ string }'),
    ],
    ['in the type of a result', inClass('string').replace(')', '): { name: /** @minLength 3 */ string }')],
    [
      'in code',
      inClass('string').replace(
        'return data;',
        'const a: /** @minLength 3 */ string = data; return { /** @minLength 3 */ a };',
      ),
    ],
    ['in a text', inClass("'/** @minLength 3 */'")],
    ['as the @format mark of prettier', inClass('string').replace('export', '/** @format */\nexport')],
    ['in a plain comment', field('/* @minLength 3 */ // @minLength 3')],
    ...['a: string; /** A. */\n}', 'a: string; }', 'a: string }', 'a: string\n}'].map((end): [string, string] => [
      `before an alias behind an interface that ends with '${end}'`,
      inClass('{ a: A; b: B }', `interface A { ${end}\n/** @minLength 3 */\ntype B = string;`),
    ]),
    [
      'before a field behind a field with a remark on its line',
      inClass('A', 'interface A {\n  a: string; /** A. */\n  /** @minLength 3 */\n  b: string;\n}'),
    ],
  ];
  for (const [name, source] of silentRows) {
    test(`${name} lets the file load`, async () =>
      assert.equal((await load({ 'XController.ts': source })).error, 'it loaded'));
  }

  test('in another file refuses the file only when an operation uses its type', async () => {
    const types =
      'export interface Good { name: string }\nexport interface Bad {\n  name: /** @minLength 3 */ string;\n}\n';
    const using = (type: string) => inClass(type, `import type { ${type} } from './types.ts';`);
    assert.equal((await load({ 'XController.ts': using('Good'), 'types.ts': types })).error, 'it loaded');
    assert.match(
      (await load({ 'XController.ts': using('Bad'), 'types.ts': types })).error,
      /^types\.ts:3: created\(data: Bad\): @minLength can/,
    );
  });
});

describe('a pattern that would refuse every value refuses the file', () => {
  const rows: [pattern: string, expected: RegExp][] = [
    [
      '^[a-z]+$ only small letters',
      /@pattern \^\[a-z\]\+\$ only small letters: nothing can follow the \$; write text above the tags/,
    ],
    ['^[a-z]+$. Only small letters', /nothing can follow the \$/],
    ['^a$|^b$ or so', /nothing can follow the \$/],
    [
      '^[a-z]+$\n * only small letters',
      /@pattern \^\[a-z\]\+\$ only small letters: a tag is one line; write text above the tags$/,
    ],
    ['[a-z]+ only small letters', /write text above the tags, and \\x20 for a blank, or end the pattern with \$$/],
    ['/^[a-z]+$/', /write the pattern without slashes and flags/],
    ['/^[a-z]+$/i', /write the pattern without slashes and flags/],
    ['`^[a-z]+$`', /write the pattern without quotes/],
    ["'^[a-z]+$'", /write the pattern without quotes/],
    ['^\\S+ @\\S+$', /@pattern \^\\S\+: @ ends it; write \\x40 for an at sign, or the next tag on its own line$/],
    ['^\\S+ @example\\.com$', /@pattern \^\\S\+: @example ends it; write \\x40 for an at sign/],
    ['', /@pattern needs a value$/],
  ];
  for (const [pattern, expected] of rows) {
    test(JSON.stringify(pattern), async () => {
      assert.match((await load({ 'XController.ts': field(`/**\n * @pattern ${pattern}\n */`) })).error, expected);
    });
  }

  test('text behind or below another constraint refuses the file', async () => {
    const rows: [comment: string, expected: RegExp][] = [
      ['/** @minLength 3 characters */', /@minLength 3 characters: the value must be a number$/],
      ['/** @minLength 3\n * The name. */', /@minLength 3 The name\.: a tag is one line; write text above the tags$/],
      ['/** @integer The number. */', /@integer takes no value; write text above the tags$/],
    ];
    for (const [comment, expected] of rows)
      assert.match((await load({ 'XController.ts': field(comment) })).error, expected);
  });
});

/** The tags of JSDoc, TSDoc, TypeDoc and Closure, and remarks for readers that schema generators write. */
const REMARKS =
  `abstract access alias alpha arg argument async augments author beta borrows callback category categoryDescription class classdesc
  comment const constant constructor constructs copyright decorator default defaultValue defaultvalue defaults deprecated desc description
  document emits enum enumMember event eventProperty example examples exception expand experimental export exports extends external file
  fileoverview final fires flow function func generator global group groupDescription hidden hideCategories hideGroups hideconstructor
  host i18n ignore implements implicitCast import include includeCode inheritDoc inheritdoc inline inlineType inner instance interface
  internal kind label lends license link linkcode linkplain listens member memberof memberOf mergeModuleWith method mixes mixin module
  name nameSpace namespace nocollapse nocompile nosideeffects noInheritDoc nullable optional overload overload override overview package
  packageDocumentation param polymer polymerBehavior preserve preventExpand preventInline primaryExport private privateRemarks
  project prop property protected public readOnly readonly record reflection related remarks requires required return returns satisfies
  sealed see showCategories showGroups since sortStrategy static struct summary suppress template this throws title todo tsoaModel tutorial
  type typeParam typedef unrestricted unstable useDeclaredType variation var version view virtual writeOnly x yield yields TJS-type TJS-ignore
  issue mode formula sample unique form-data interval`.split(/\s+/);

describe('a tag', () => {
  test('that is a remark is allowed', async () => {
    for (const name of REMARKS) assert.equal(findTagMistake(name, ''), undefined, name);
    const tags = REMARKS.filter((name) => name !== 'default').map((name) => `   * @${name}`);
    assert.equal((await load({ 'XController.ts': field(`/**\n${tags.join('\n')}\n   */`) })).error, 'it loaded');
  });

  test('of a supported constraint is allowed', () => {
    for (const name of Object.keys(CONSTRAINTS)) assert.equal(findTagMistake(name, ''), undefined, name);
  });

  const rows = [
    'minLenght 3',
    'minlength 3',
    'MinLength 3',
    'min-length 3',
    'minLen 3',
    'maxlen 3',
    'Pattern ^a$',
    'patern ^a$',
    'formats email',
    'minItem 3',
    'interger',
    'multipleof 3',
    'uniqueItem',
    'isInt',
    'IsInt',
    'isLong',
    'isFloat',
    'isString',
    'isDate',
    'isEmail',
    'IsMobilePhone',
    'min 3',
    'max 3',
    'length 3',
    'items 3',
    'range 1-3',
    'contains a',
    'minProperties 1',
    'maxProperties 1',
    'contentMediaType image/png',
    'const 5',
    'additionalProperties false',
    'TJS-minimum 3',
    'TJS-pattern ^a$',
    'TJS-type integer',
    'asType integer',
    'type {integer}',
    'type int',
    'type uint32',
    'type integer | undefined, int64',
  ];
  for (const tag of rows) {
    test(`@${tag} refuses the file, and the message lists the constraints`, async () => {
      const { error } = await load({ 'XController.ts': field(`/** The name. @${tag} */`, 'any') });
      const [name, value] = tag.split(' ');
      const said = /^(?:TJS-|as)?type$/i.test(name as string) ? `${name} ${value}` : name;
      const constraints = Object.keys(CONSTRAINTS).join(', @');
      const cure = `the constraints are @${constraints}; for others, give a schema in static operations`;
      assert.equal(error, `XController.ts:3: created(data: A): @${said} is not read here: ${cure}`);
    });
  }

  const passes = [
    '@const',
    '@const {string}',
    '@type {string}',
    '@type string',
    '@type {"int"}',
    '@TJS-type string',
    '@default two',
    '@interface',
  ];
  for (const tag of passes) {
    test(`${tag} loads`, async () =>
      assert.equal((await load({ 'XController.ts': field(`/** ${tag} */`) })).error, 'it loaded'));
  }

  test('@type in a script stays a type', async () => {
    const { error } = await load({
      'XController.mjs': inScript('', '/** @typedef {number} int */').replace('(data)', '(/** @type {int} */ data)'),
    });
    assert.equal(error, 'it loaded');
  });

  test('@default and @example of any text appear in the schema', async () => {
    const rows: [comment: string, expected: Record<string, unknown>][] = [
      ['@default two', { default: 'two' }],
      ["@default 'two'", { default: 'two' }],
      ['@default "two"', { default: 'two' }],
      ['@default [1, 2]', { default: [1, 2] }],
      [
        'The name. @default 2 or so @example a @example 1',
        { default: '2 or so', examples: ['a', 1], description: 'The name.' },
      ],
      [
        'The name. @maxLength 5 */ /** @title Name',
        { description: 'The name.', title: 'Name', maxLength: 5, type: 'string' },
      ],
      ['@deprecated since 2', { deprecated: true }],
      ['@description The name. @title Name', { description: 'The name.', title: 'Name' }],
    ];
    for (const [comment, expected] of rows) {
      const { describe } = await load({
        'XController.ts': field(`/** ${comment} */`, 'type' in expected ? 'string' : 'any'),
      });
      const { defs } = (await describe()) as { defs: Record<string, { properties: Record<string, unknown> }> };
      assert.deepEqual({ ...(defs.A?.properties.name as object) }, expected);
    }
  });

  test('behind a link without its closing brace is read', () => {
    assert.deepEqual(readDoc('/** See {@link Other\n * @minLength 3 */').tags, [
      { name: 'minLength', text: '3', isFirstOnLine: true },
    ]);
  });
});

describe('a decorator', () => {
  const CURE = 'are not read: write the constraint as a tag, or give a schema in static operations';
  const dto = (member: string): Record<string, string> => ({
    'XController.ts': inClass('Dto', "import type { Dto } from './dto.ts';"),
    'dto.ts': `import { IsEmail, v } from 'class-validator';\nexport class Dto {\n  ${member}\n}\n`,
  });
  const rows: [name: string, member: string, decorator: string][] = [
    ['on a field', '@IsEmail() email!: string;', '@IsEmail'],
    ['without a call, on an optional field', '@IsEmail email?: string;', '@IsEmail'],
    [
      'with arguments, above another decorator on a field',
      "@v.Matches(/^a/, { message: 'b' })\n  @IsEmail()\n  readonly email: string = '';",
      '@v.Matches',
    ],
    ['from an expression, on a field', '@(v.of(1)) email!: string;', '@(…)'],
    ['on a field without a type', "@IsEmail() email = '';", '@IsEmail'],
    ['on an accessor', '@IsEmail() accessor email: string;', '@IsEmail'],
    ['below a comment, on a field', '/** The address. */\n  @IsEmail()\n  email!: string;', '@IsEmail'],
  ];
  for (const [name, member, decorator] of rows) {
    test(`${name} of a request type refuses the file`, async () => {
      const { error } = await load(dto(member));
      assert.match(error, /^dto\.ts:\d: /);
      assert.ok(error.endsWith(`created(data: Dto): decorators such as ${decorator} ${CURE}`), error);
    });
  }

  test('on a constructor parameter that declares a field refuses the file', async () => {
    assert.match(
      (await load(dto('constructor(@IsEmail() readonly email: string) {}'))).error,
      /a class whose constructor declares fields/,
    );
  });

  test('on a field of a result type lets the file load', async () => {
    const files = dto('@IsEmail() email!: string;');
    const source =
      "import type { Dto } from './dto.ts';\nexport default class XController { created(data: { a: 1 }): Dto { return data as never; } }";
    assert.equal((await load({ ...files, 'XController.ts': source })).error, 'it loaded');
  });

  test('on the class, a method or a field of a controller lets the file load', {
    skip: process.features.typescript ? 'Node runs no decorators' : false,
  }, async () => {
    const source = `const v = (..._: unknown[]): void => {};
@v export default class XController {
  @v db: unknown;
  @v created(data: { a: 1 }) { return data; }
}`;
    assert.equal((await load({ 'XController.ts': source })).error, 'it loaded');
  });
});
