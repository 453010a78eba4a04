// Controllers that are refused because a request type is not supported, with place and reason. An unsupported result
// type is only left out of the document.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createLog } from '../../src/base/log.ts';
import { createSourceFiles } from '../../src/contract/source/files.ts';
import type { GroupLoad } from '../../src/live/load/group-load.ts';
import { createGroups } from '../../src/live/load/registry.ts';

const silent = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });
let dir: string;
before(() => {
  dir = mkdtempSync(join(tmpdir(), 'gatefold-refusals-'));
  writeFileSync(join(dir, 'package.json'), '{"type":"module"}');
});
after(() => rmSync(dir, { recursive: true, force: true }));

let count = 0;
async function load(
  files: Readonly<Record<string, string>>,
): Promise<{ load: GroupLoad; groups: ReturnType<typeof createGroups> }> {
  const path = join(dir, String(count++));
  for (const [name, source] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), source);
  }
  const groups = createGroups({ dir: path, log: silent });
  const [load] = await groups.loadAll({ skip: new Map(), onLoading: () => {} });
  return { load: load as GroupLoad, groups };
}

const operation = (type: string, before = ''): string =>
  `${before}\nexport default class XController {\n  created(data: ${type}) { return data; }\n}`;

/** A type L12<T> with 4096 different types at its ends. */
const HALVED = Array.from({ length: 12 }, (_, i) => `interface L${i + 1}<T> { a: L${i}<[T, 1]>; b: L${i}<[T, 2]> }`)
  .join('\n')
  .concat('\ninterface L0<T> { end: T }');

/** Forms in which the parser might miss a typed operation. */
const hidden: [name: string, source: string, expected: RegExp, more?: Record<string, string>][] = [
  [
    'an operation from Object.defineProperty',
    "class XController { index() { return 1; } }\nObject.defineProperty(XController.prototype, 'created', { enumerable: true, value(data: { a: string }) { return data; } });\nexport default XController;",
    /created is an operation whose types are not found/,
  ],
  [
    'an operation from Object.assign',
    'class XController { index() { return 1; } }\nObject.assign(XController.prototype, { created(data: { a: string }) { return data; } });\nexport default XController;',
    /created is an operation whose types are not found/,
  ],
  [
    'a class variable that is assigned again',
    'let X = class A { created(data: unknown) { return data; } };\nX = class B { created(data: { a: string }) { return data; } };\nexport default X;',
    /created is an operation whose types are not found/,
  ],
];

/** Members of a class, and the advice of their refusal. A type of the query or of the path is never a body. */
const cures: Readonly<Record<string, string>> = {
  "created(data: string extends 'a' ? 1 : 2) { return data; }": 'write the type out, or run gatefold contracts',
  'created(data: typeof tasks.$inferInsert) { return data; }':
    'export const NewRow = createInsertSchema(tasks), of drizzle-zod, and write z.infer<typeof NewRow>; or run gatefold contracts',
  'created(data: Map<string, 1>) { return data; }':
    'declare the schema of a library, static operations = { created: { body: schema } }, or write a type of your own',
  'GET(data: Map<string, 1>) { return data; }':
    'declare the schema of a library, static operations = { GET: { query: schema } }, or write a type of your own',
  "'POST {id}'(_: unknown, params: ControllerParams<{ path: { id: Set<1> } }>) { return params; }":
    "declare the schema of a library, static operations = { 'POST {id}': { query: schema, path: schema } }, or write a type of your own",
  "static operations = { 'GET {id}': { query: any } }; 'GET {id}'(_: unknown, params: ControllerParams<{ path: { id: Set<1> } }>) { return params; }":
    "declare the schema of a library, static operations = { 'GET {id}': { path: schema } }, or write a type of your own",
  'created(data: unknown, params: string) { return [data, params]; }': 'write params: ControllerParams',
  'created(data: ControllerParams) { return data; }': 'write (data: unknown, params: …)',
};

describe('the refusal of a type says what to write for', () => {
  for (const [member, cure] of Object.entries(cures)) {
    test(member, async () => {
      const head = "import type { ControllerParams } from 'gatefold';\nimport { tasks } from './tasks.ts';\n";
      const schema =
        "const any = { '~standard': { version: 1, vendor: 'x', validate: (value: unknown) => ({ value }) } };";
      const { load: result } = await load({
        'XController.ts': `${head}${schema}\nexport default class XController { ${member} }`,
        'tasks.ts': 'export const tasks = {} as { $inferInsert: { a: string } };',
      });
      assert.equal(result.error?.slice(result.error.indexOf('; ') + 2), cure, result.error ?? 'it loaded');
    });
  }
});

test('a schema replaces a type from a package in each method of the bare group', async () => {
  const { load: result } = await load({
    'XController.ts': `import type { Id } from 'shop';
      const any = { '~standard': { version: 1, vendor: 'x', validate: (value: unknown) => ({ value }) } };
      export default class XController {
        static operations = { GET: { query: any }, DELETE: { query: any }, POST: { body: any } };
        GET(data: Id) { return data; }
        DELETE(data: Id) { return data; }
        POST(data: Id) { return data; }
      }`,
  });
  assert.equal(result.error, undefined);
});

describe('the server refuses a controller file with', () => {
  const rows: [name: string, source: string, expected: RegExp, more?: Record<string, string>][] = [
    [
      'a type from a package',
      operation('Order', "import type { Order } from 'shop';"),
      /^XController\.ts:3: created\(data: Order\): Order comes from a package, whose types are not read; write the type out, or run gatefold contracts$/,
    ],
    [
      'a type from a path alias',
      operation('Order', "import type { Order } from '#types';"),
      /Order comes from #types, and the imports of package\.json lead to no such file/,
    ],
    [
      'a type from a built-in module',
      operation('IncomingMessage', "import type { IncomingMessage } from 'node:http';"),
      /IncomingMessage comes from a package/,
    ],
    ['a type that does not exist', operation('Odrer'), /there is no type Odrer here/],
    [
      'a type that the imported file does not export',
      operation('Order', "import type { Order } from './types.ts';"),
      /Order is imported from \.\/types\.ts, which exports no such type; export it there$/,
      { 'types.ts': 'export type Other = 1;' },
    ],
    [
      'a type from a .tsx file',
      operation('Props', "import type { Props } from './view.tsx';"),
      /Props is imported from \.\/view\.tsx, where no \.ts or \.js file is found/,
      { 'view.tsx': 'export interface Props { a: string }' },
    ],
    ['a conditional type', operation("string extends 'a' ? 1 : 2"), /a conditional type is not understood/],
    [
      'a function',
      operation('{ a: () => void }'),
      /a function is not understood; leave it out, as by Omit<Options, 'onSave'>$/,
    ],
    ['a unique symbol', operation('{ a: unique symbol }'), /a unique symbol is not understood; write the type out$/],
    ['an inferred type', operation('{ a: infer B }'), /an inferred type is not understood/],
    ...[
      ['a bracket without a partner', 'type B = [;', 'a bracket has no partner'],
      ['a bracket with another partner', 'type B = (];', 'a bracket has no partner'],
      ['a template without an end', 'type B = `b', 'a template has no end'],
    ].map(([name = '', source = '', error]): [string, string, RegExp, Record<string, string>] => [
      `an imported file with ${name}`,
      operation('A', "import type { A } from './types.ts';"),
      new RegExp(`^types\\.ts:1: .*${error}`),
      { 'types.ts': `export type A = string; ${source}` },
    ]),
    ['a method', operation('{ a(): void }'), /a is a method or an accessor, and has no JSON form/],
    ['a Map', operation('Map<string, number>'), /a Map has no JSON form/],
    ['a Set', operation('Set<string>'), /a Set has no JSON form/],
    ['a stream', operation('AsyncIterable<string>'), /a stream has no JSON form/],
    ['bytes', operation('Uint8Array'), /a stream or a piece of bytes has no JSON form/],
    [
      'a stream of events',
      operation('{ a: EventStream<string> }', "import type { EventStream } from 'gatefold';"),
      /a stream of events has no JSON form/,
    ],
    ['a Reply', operation('Reply<200, string>', "import type { Reply } from 'gatefold';"), /a Reply has no JSON form/],
    ['the type of this', operation('{ a: this }'), /`this` is not understood/],
    [
      'a class with a parent that is an expression',
      operation('A', 'class A extends (class { b = 1 }) { a = 1 }'),
      /a class made by an expression is not understood/,
    ],
    [
      'a class with a parent that is a class without a name',
      operation('A', 'class A extends class { b = 1 } { a = 1 }'),
      /a class made by an expression is not understood/,
    ],
    [
      'a class with a parent that a call makes',
      operation('A', 'class A extends Mixed(Object) { a = 1 }\nfunction Mixed<T>(base: T): T { return base; }'),
      /a class made by a call is not understood/,
    ],
    ['a Record of one type', operation('Record<string>'), /Record needs two type arguments/],
    [
      'a Reply of the status 199',
      operation('Reply<199>', "import type { Reply } from 'gatefold';"),
      /is from 200 to 399/,
    ],
    [
      'a Reply of the status 400',
      operation('Reply<400>', "import type { Reply } from 'gatefold';"),
      /is from 200 to 399/,
    ],
    ['bigint', operation('{ a: bigint }'), /bigint has no JSON form/],
    ['a field __proto__', operation("{ '__proto__': string }"), /a field named __proto__ is not supported/],
    ['a nested symbol', operation('{ a: { b: Array<symbol> } }'), /symbol has no JSON form/],
    [
      'an unsupported type in another file, reported with its line',
      operation('A', "import type { A } from './types.ts';"),
      /^types\.ts:2: created\(data: A\): bigint has no JSON form/,
      { 'types.ts': 'export interface A {\n  b: bigint;\n}' },
    ],
    [
      'an imported file with a syntax error',
      operation('A', "import type { A } from './types.ts';"),
      /^types\.ts:1: .* \(imported by XController\.ts\): the types in this file cannot be read$/,
      { 'types.ts': 'export interface A { b: string' },
    ],
    [
      'a required field that no value fits',
      operation('{ a: string & number }'),
      /the field a is never, which no value fits; write a\?: never/,
    ],
    ['a type that no value fits', operation("Exclude<'a', 'a'>"), /this type is never, which no request fits/],
    [
      'an unsupported type argument',
      'class Crud<Entity> { created(data: Entity) { return data; } }\ninterface Entity { n?: unknown }\nexport default class XController extends Crud<Map<string, Entity>> {}',
      /a Map has no JSON form/,
    ],
    ['aliases in a circle', operation('A', 'type A = B;\ntype B = A;'), /depends on itself/],
    [
      'declarations that add to another file',
      operation('A', "import type { A } from './types.ts';\ndeclare module './types.ts' { interface A { b: string } }"),
      /^XController\.ts:2: declarations that add to another file are not read: the types in this file cannot be read$/,
      { 'types.ts': 'export interface A { a: string }' },
    ],
    ['a type that grows without end', operation('G<string>', 'interface G<T> { a?: G<T[]> }'), /grows without end/],
    ['a type with thousands of types', operation('L12<1>', HALVED), /this type grows without end/],
    ['a mapped type of an unsupported type', operation("{ [K in 'a']: Map<K, 1> }"), /a Map has no JSON form/],
    [
      'a constant list with a spread',
      operation('(typeof ALL)[number]', "const MORE = ['a'] as const;\nconst ALL = [...MORE, 'b'] as const;"),
      /ALL is not a constant/,
    ],
    [
      'a recursive union without a name',
      operation('A', 'interface A { kids: (A | B)[] }\ninterface B { kids: (A | B)[] }'),
      /this type is a recursive union whose parts cannot be distinguished/,
    ],
    [
      'a class with private members',
      operation('C', 'class C { a: string = ""; private b: number = 1 }'),
      /private members/,
    ],
    ['a Buffer', operation('Buffer'), /Buffer/],
    [
      'rest arguments',
      'export default class XController { created(...all: [{ a: string }]) { return all; } }',
      /the types of rest arguments are not read/,
    ],
    [
      'rest arguments with an own ControllerParams',
      'interface ControllerParams { query: { a: number } }\nexport default class XController { created(...all: [unknown, ControllerParams]) { return all; } }',
      /the types of rest arguments are not read/,
    ],
    [
      'an import alias with the name of a global type',
      'namespace Own { export interface Date { a: string } }\nimport Date = Own.Date;\nexport default class XController { created(data: Date) { return data; } }',
      /Date comes from a package|TypeScript/,
    ],
    [
      'an import alias with the name of a global type, in another file',
      operation('A', "import type { A } from './types.ts';"),
      /^types\.ts:3: .*Date comes from a package/,
      {
        'types.ts':
          'namespace Own { export interface Date { a: string } }\nimport Date = Own.Date;\nexport interface A { at: Date }',
      },
    ],
    [
      'the type of a module',
      operation("{ a: typeof import('./types.ts') }"),
      /a type in import\(…\) is not understood; import it by name, at the top of the file$/,
    ],
    ['a type in import(…)', operation("import('./types.ts').Order"), /a type in import\(…\) is not understood/],
    [
      'a type of a namespace',
      operation('Shop.Order', 'namespace Shop { export interface Order { a: string } }'),
      /there is no type Shop\.Order here, and namespaces are not read/,
    ],
    [
      'type parameters with circular constraints',
      'export default class XController { created<T extends U, U extends T>(data: T) { return data; } }',
      /this type depends on itself/,
    ],
    ['a type without its arguments', operation('A', 'interface A<T> { a: T }'), /A needs more type arguments/],
    [
      'an interface that extends a list',
      operation('A', 'type S = string[];\ninterface A extends S { a: string }'),
      /A extends something that is not an object/,
    ],
    ['a tuple with a rest that is not a list', operation('[...string]'), /this rest of a tuple is not understood/],
    [
      'a class of gatefold',
      operation('HttpError', "import type { HttpError } from 'gatefold';"),
      /HttpError of gatefold has no JSON form/,
    ],
    ['Pick of an absent field', operation("Pick<{ a: 1 }, 'b'>"), /there is no such field/],
    ['an indexed access to a field of a string', operation("string['b']"), /there is no such field/],
    ['an indexed access to a field of a list', operation("string[]['b']"), /there is no such field/],
    ['an index outside a tuple', operation('[string][3]'), /there is no such place in the tuple/],
    ['Partial of a list', operation('Partial<string[]>'), /Partial or Required of a list is not understood/],
    [
      'a Record whose keys are constrained',
      operation('Record<K, 1>', '/** @minLength 2 */\ntype K = string;'),
      /this kind of key is not understood; write Record<string, …>/,
    ],
    [
      'an intersection with two patterns',
      operation('K & L', '/** @pattern ^a$ */\ntype K = string;\n/** @pattern ^b$ */\ntype L = string;'),
      /there are two different patterns/,
    ],
    [
      'an object in a template literal type',
      operation(`\`a-${'$'}{{ a: 1 }}\``),
      /this inside of a template is not understood/,
    ],
    [
      'a template literal type whose check can take too long',
      operation(`\`${`${'$'}{P}`.repeat(20)}\``, '/** @pattern ^a*$ */\ntype P = string;'),
      /the template has the pattern \^(?:\(\?:a\*\)){20}\$: a text of length 1 can take too long: /,
    ],
    ['a bigint literal', operation('{ a: 1n }'), /a bigint is not understood/],
    [
      'a destructured parameter with a long type',
      'export default class XController { created({ a }: { a: symbol; b: "the rest of this type is not in the message" }) { return a; } }',
      /created\(…: \{ a: symbol; b: "the rest of this type is not in the message…\): symbol has no JSON form/,
    ],
    [
      'overloads',
      'export default class XController { created(data: string): string; created(data: number): number; created(data: unknown): unknown { return data; } }',
      /created is overloaded/,
    ],
    [
      'an arrow function in a wrapper call',
      'const wrap = <T,>(f: T): T => f;\nexport default { created: wrap((data: { a: string }) => data) };',
      /created is an operation whose types are not found/,
    ],
    [
      'a class that a function makes',
      'const make = () => class { created(data: { a: string }) { return data; } };\nexport default make();',
      /created is an operation whose types are not found/,
    ],
    [
      'a class that a function of another file makes',
      "import { Crud } from './crud.ts';\nexport default class XController extends Crud(Object) { index() { return 1; } }",
      /created is an operation whose types are not found/,
      {
        'crud.ts':
          'export const Crud = (Base: ObjectConstructor) => class extends Base { created(data: { a: string }) { return data; } };',
      },
    ],
    [
      'a method that is added at run time',
      'export default class XController { index() { return 1; } static { (XController.prototype as never as Record<string, unknown>).created = function (data: { a: string }) { return data; }; } }',
      /created is an operation whose types are not found/,
    ],
    [
      'a method that is deleted at run time, over one of the parent class',
      'class Base { created(data: { b: string }) { return data; } }\nexport default class XController extends Base { override created(data: { b: string; a?: 1 }) { return data; } static { delete (XController.prototype as Partial<XController>).created; } }',
      /created is an operation whose types are not found/,
    ],
    [
      'a method that is deleted at run time',
      'export default class XController { created(data: { a: string }) { return data; } index(query: { a: string }) { return query; } static { delete (XController.prototype as Partial<XController>).index; } }',
      /index was read as an operation, but the loaded class has none of that name/,
    ],
    [
      'a second argument that is not a ControllerParams',
      'export default class XController { created(data: unknown, params: string) { return [data, params]; } }',
      /the second argument must be a ControllerParams/,
    ],
    [
      'a ControllerParams as the first argument',
      "import type { ControllerParams } from 'gatefold';\nexport default class XController { created(params: ControllerParams<{ query: { a: string } }>) { return params; } }",
      /a ControllerParams is the second argument/,
    ],
    [
      'an unknown property in ControllerParams',
      "import type { ControllerParams } from 'gatefold';\nexport default class XController { created(data: unknown, params: ControllerParams<{ header: { a: string } }>) { return [data, params]; } }",
      /ControllerParams takes path, query, headers and user, and no header/,
    ],
    [
      'a path type from a package beside a schema for the query',
      "import type { ControllerParams } from 'gatefold';\nimport type { Id } from 'shop';\nconst any = { '~standard': { version: 1, vendor: 'x', validate: (value: unknown) => ({ value }) } };\nexport default class XController { static operations = { 'PUT {id}': { query: any } }; 'PUT {id}'(_: unknown, params: ControllerParams<{ path: { id: Id } }>) { return params; } }",
      /Id comes from a package/,
    ],
    [
      'a path type of an operation without a route',
      "import type { ControllerParams } from 'gatefold';\nexport default class XController { created(data: unknown, params: ControllerParams<{ path: { id: string } }>) { return [data, params]; } }",
      /it has no route, so its path is empty/,
    ],
    [
      'a path type with a name that its route does not have',
      "import type { ControllerParams } from 'gatefold';\nexport default class XController { 'GET {id}'(data: unknown, params: ControllerParams<{ path: { it: string } }>) { return [data, params]; } }",
      /its route has no \{it\}/,
    ],
    [
      'a recursive union whose parts cannot be distinguished',
      operation('T', 'type T = { a?: T; b: string } | { a?: T; c: string };'),
      /recursive union whose parts cannot be distinguished: give them a field of different literals, like kind: 'a'/,
    ],
    [
      'index signatures by number and by string',
      operation('T', 'type T = { [n: number]: string; [key: string]: string | number };'),
      /index signatures by string and by number together are not understood/,
    ],
    [
      'an intersection of records by string and by number',
      operation('T', 'type T = Record<string, unknown> & Record<number, string>;'),
      /index signatures by string and by number together are not understood/,
    ],
    [
      'a recursive union of lists',
      operation('T', 'type T = T[] | (T | 1)[] | null;'),
      /recursive union whose parts cannot be distinguished: write one list of all entries/,
    ],
    [
      'a type that two files re-export from each other',
      operation('Nope', "import type { Nope } from './types.ts';"),
      /created\(data: Nope\): /,
      { 'types.ts': "export { Nope } from './round.ts';", 'round.ts': "export { Nope } from './types.ts';" },
    ],
    [
      'an absent type in files with circular `export *`',
      operation('Nope', "import type { Nope } from './types.ts';"),
      /Nope is imported from \.\/types\.ts, which exports no such type; export it there$/,
      {
        'types.ts': "export * from './a.ts';\nexport * from './b.ts';\nexport * from './c.ts';",
        'a.ts': "export * from './types.ts';",
        'b.ts': "export * from './types.ts';",
        'c.ts': "export * from './types.ts';",
      },
    ],
    [
      'an unsupported type that the result of another operation contains',
      "import type { Money } from 'shop';\ninterface Line { price: Money; order: Order }\ninterface Order { id: string; lines: Line[] }\nexport default class XController { index(): Order[] { return []; } created(data: Order) { return data; } }",
      /^XController\.ts:2: created\(data: Order\): Money comes from a package/,
    ],
    [
      'an unsupported part of a type that the result of another operation contains',
      "import type { Money } from 'shop';\ninterface Line { order: Order }\ninterface Order { line: Line; total: Money }\nexport default class XController { index(): Order[] { return []; } created(data: Line) { return data; } }",
      /^XController\.ts:3: created\(data: Line\): Money comes from a package/,
    ],
    [
      'a type named like a global type, behind `export *` of a package',
      operation('File', "import type { File } from './types.ts';"),
      /File comes from a package/,
      { 'types.ts': "export type * from 'shop';" },
    ],
    [
      'a type named like a global type, behind `export *` of a missing file',
      operation('Date', "import type { Date } from './types.ts';"),
      /Date is imported from \.\/gone\.ts, where no \.ts or \.js file is found/,
      { 'types.ts': "export type * from './gone.ts';" },
    ],
    [
      'a type named like a global type that the imported file does not export',
      operation('Partial<{ a: string }>', "import type { Partial } from './types.ts';"),
      /Partial is imported from \.\/types\.ts, which exports no such type; export it there$/,
      { 'types.ts': 'export interface Order { a: string }' },
    ],
    [
      'a default export behind `export *`',
      operation('Order', "import type Order from './types.ts';"),
      /Order is imported from \.\/types\.ts, which exports no such type; export it there$/,
      { 'types.ts': "export type * from './order.ts';", 'order.ts': 'export default interface Order { a: string }' },
    ],
    [
      'a key from a package',
      operation('A', "import type { KEY } from 'shop';\ninterface A { [KEY]: string }"),
      /a computed member or a signature without a name has no JSON form/,
      { 'node_modules/shop/package.json': '{"exports":"./index.js"}', 'node_modules/shop/index.js': '' },
    ],
    [
      'a key from a declared namespace',
      operation('A', "declare namespace Keys { const id: 'id' }\ninterface A { [Keys.id]: string }"),
      /a computed member or a signature without a name has no JSON form/,
    ],
    [
      'a field __proto__ of a Record',
      operation("Record<'__proto__' | 'a', string>"),
      /a field named __proto__ is not supported/,
    ],
    [
      'base interfaces with index signatures by number and by string',
      operation(
        'A',
        "interface N { [n: number]: 'a' }\ninterface S { [key: string]: string }\ninterface A extends N, S {}",
      ),
      /index signatures by string and by number together are not understood/,
    ],
    [
      'a mapped type over a template',
      operation(['{ [K in `x-$', '{string}`]: number }'].join('')),
      /this kind of key is not understood/,
    ],
    [
      'a literal beside a constrained type',
      operation("Long & 'abc'", '/** @minLength 5 */\ntype Long = string;'),
      /a literal beside a constrained type is not understood/,
    ],
    [
      'Pick of a name from a Record by string',
      operation("Pick<Record<string, number>, 'a'>"),
      /there is no such field/,
    ],
    [
      'a tag on a constructor',
      operation('A', 'class A {\n  /** @minLength 1 */\n  constructor() {}\n  a!: string }'),
      /@minLength can have no effect here/,
    ],
    [
      'a tag in the head of an interface',
      operation('A', 'interface A /** @minLength 1 */ { a: string }'),
      /@minLength can have no effect here/,
    ],
    [
      'a tag behind a parameter',
      'export default class XController { created(data: { a: string } /** @minLength 1 */) { return data; } }',
      /@minLength can have no effect here/,
    ],
    [
      '@minLength with a negative value',
      operation('A', 'interface A {\n  /** @minLength -1 */\n  a: string }'),
      /@minLength -1: the value must be a whole number/,
    ],
    [
      '@multipleOf with the value 0',
      operation('A', 'interface A {\n  /** @multipleOf 0 */\n  a: number }'),
      /@multipleOf: the value must be more than 0/,
    ],
    [
      'a misspelt tag',
      operation('A', 'interface A {\n  /** @minLenght 1 */\n  a: string }'),
      /@minLenght is not read here: the constraints are @minLength, /,
    ],
    [
      'a tag for strings on a number',
      operation('A', 'interface A {\n  /** @minLength 1 */\n  a: number }'),
      /@minLength is for strings, and this type is not one/,
    ],
    [
      'a tag for strings on a literal',
      operation('A', "interface A {\n  /** @maxLength 1 */\n  a: 'x' | 'y' }"),
      /@maxLength is for strings/,
    ],
    [
      'a tag on an interface',
      operation('A', '/** @minLength 1 */\ninterface A { a: string }'),
      /@minLength can have no effect here/,
    ],
    [
      'a tag without its value',
      operation('A', 'interface A {\n  /** @minLength */\n  a: string }'),
      /@minLength needs a value$/,
    ],
    [
      'a tag with a value of the wrong kind',
      operation('A', 'interface A {\n  /** @maxLength ten */\n  a: string }'),
      /@maxLength ten: the value must be a number/,
    ],
    [
      'an unknown format',
      operation('A', 'interface A {\n  /** @format phone */\n  a: string }'),
      /the format phone is unknown: use one of email/,
    ],
    [
      'a pattern with nested repetitions',
      operation('A', 'interface A {\n  /** @pattern ^(a+)+$ */\n  a: string }'),
      /a repetition inside a repetition can take exponentially long/,
    ],
    [
      'a pattern with bounded repetitions in a bounded one',
      operation('A', 'interface A {\n  /** @pattern ^(?:[a-z0-9]{1,10}-?){1,10}$ */\n  a: string }'),
      /let it match no character that may come directly after it, like \(\?:-\[a-z\]\+\)\*$/,
    ],
    [
      'an intersection of a list and an object',
      operation('string[] & { a: string }'),
      /this intersection is not understood/,
    ],
    [
      'an intersection of a list and a brand with another field',
      operation("string[] & { __brand: 'a'; b: 1 }"),
      /this intersection is not understood/,
    ],
    [
      'an invalid pattern',
      operation('A', 'interface A {\n  /** @pattern ( */\n  a: string }'),
      /@pattern \(: Invalid regular expression/,
    ],
  ];
  for (const [name, source, expected, more = {}] of [...rows, ...hidden]) {
    test(name, async () => {
      const { load: made } = await load({ 'XController.ts': source, ...more });
      assert.match(made.error ?? 'it loaded', expected);
      assert.match(made.code ?? '', /^(?:UNREAD_TYPE|UNREAD_OPERATION|TAG_WITHOUT_EFFECT|SYNTAX_ERROR|INVALID_ROUTE)$/);
      assert.match(made.at ?? '', /(?:XController|types)\.ts(?::\d+)?$/);
    });
  }
});

test('an operation that is not read is refused with what to write', async () => {
  const exception =
    'or write static operations = { "created": { body: schema } } or { "created": { unchecked: true } }';
  const rows: [source: string, cure: string][] = [
    [
      'class A { created(data: { a: string }) { return data; } }\nexport default new A();',
      'export a class or an object',
    ],
    [
      "const K = 'created';\nexport default class { [K](data: { a: string }) { return data; } }",
      'write it as a method with a plain name',
    ],
  ];
  for (const [source, cure] of rows) {
    const { load: made } = await load({ 'XController.ts': source });
    const place = 'declared in this file or imported by name from the file that declares it';
    assert.match(made.error ?? '', /^XController\.ts:1: created is an operation whose types are not found/);
    assert.ok(made.error?.endsWith(`: ${cure}, ${place}; ${exception}`), made.error ?? 'it loaded');
  }
});

describe('the server loads a controller file with', () => {
  const rows: [name: string, file: string, source: string][] = [
    [
      'a property with the name of an operation on another object',
      'XController.ts',
      'const cycle: Record<string, unknown> = {}; cycle.created = (a: number) => a;\nexport default class XController { created() { return cycle; } }',
    ],
    [
      'custom params types',
      'XController.ts',
      "import type { IncomingMessage } from 'node:http';\nimport type { ControllerParams } from 'gatefold';\ninterface Mine { signal: AbortSignal; request: IncomingMessage }\ninterface More extends ControllerParams { user?: AbortSignal }\nexport default class XController { index(_: unknown, { signal }: { signal: AbortSignal }) { return !signal; } created(_: unknown, params: Mine) { return !params; } red(_: unknown, params?: More) { return !params; } patch(_: unknown, params: Pick<ControllerParams, 'slugs'>) { return params.slugs; } deleted(_: unknown, params: ControllerParams & { a?: 1 }) { return params.slugs; } }",
    ],
    [
      'types from a package beside library schemas',
      'XController.ts',
      "import type { ControllerParams } from 'gatefold';\nimport type { infer as Infer } from 'zod';\nconst any = { '~standard': { version: 1, vendor: 'x', validate: (value: unknown) => ({ value }) } };\ntype Params = ControllerParams<{ query: Infer<1> }>;\nexport default class XController { static operations = { created: { body: any, query: any }, index: { query: any }, 'PUT {id}': { query: any } }; created(data: Infer<1>, params: ControllerParams<{ query: Infer<2> }>) { return [data, params]; } index(data: Infer<1>, params: Params) { return [data, params]; } 'PUT {id}'(_: unknown, params: ControllerParams<{ path: { id: string }; query: Infer<2> }>) { return params; } }",
    ],
    [
      'an alias for a custom params type',
      'XController.ts',
      'type Mine = { signal: AbortSignal };\nexport default class XController { created(_: unknown, { signal }: Mine) { return !signal; } }',
    ],
    [
      'form values',
      'XController.ts',
      "import type { FormValue } from 'gatefold';\nexport default class XController { created(data: Record<string, FormValue>) { return Object.keys(data); } }",
    ],
    [
      'an unsupported result type',
      'XController.ts',
      "import type { Order } from 'shop';\nexport default class XController { index(): Order { return 1 as never; } created(data: unknown): Promise<Order> { return data as never; } }",
    ],
    [
      'helpers with types from packages',
      'XController.ts',
      "import type { Db } from 'db';\nconst find = (db: Db, id: string) => [db, id];\nexport default class XController { index(_: unknown) { return typeof find; } private find(db: Db) { return db; } }",
    ],
    [
      'any and unknown',
      'XController.ts',
      'export default class XController { created(data: any, params: unknown) { return [data, params]; } }',
    ],
    [
      'types that one file re-exports from gatefold and from another file',
      'XController.ts',
      "import type { Int, Order } from './types.ts';\nexport default class XController { created(data: Order & { n: Int }) { return data; } }",
    ],
    [
      'rest arguments of unknown',
      'XController.ts',
      'export default class XController { created(...all: unknown[]) { return all.length; } }',
    ],
    [
      'rest arguments without a type',
      'XController.mjs',
      'export default class XController { created(...all) { return all.length; } }',
    ],
    [
      'an object from a function, in a script',
      'XController.mjs',
      'const make = () => ({ created(data) { return data; } });\nexport default make();',
    ],
    [
      'JSDoc without request types, in a script',
      'XController.mjs',
      'export default class XController {\n /** Makes one.\n * @param data what to make\n * @param {*} params */\n created(data, params) { return [data, params]; } }',
    ],
    [
      'imported functions, in a script',
      'XController.mjs',
      "import { index } from './fns.mjs';\nexport default { index, created: index };",
    ],
  ];
  for (const [name, file, source] of rows) {
    test(name, async () => {
      const { load: made } = await load({
        [file]: source,
        'fns.mjs': 'export function index(data) { return data; }',
        'types.ts': "export type * from 'gatefold';\nexport type * from './order.ts';",
        'order.ts': 'export interface Order { a: string }',
      });
      assert.deepEqual([made.error, made.ok], [undefined, true]);
    });
  }
});

describe('an import of a .js file beside a .ts file of the same name', () => {
  const files = {
    'base.ts': "export const KEY = 'created';\nexport class Base { created(data: any) { return data; } }",
    'base.js': "export const KEY = 'find';\nexport class Base { created(data) { return data; } }",
  };
  const refused: [name: string, file: string, source: string, at: string][] = [
    [
      'a parent class',
      'XController.ts',
      "import { Base } from './base.js';\nexport default class extends Base {}",
      'X',
    ],
    [
      'a parent class in a script',
      'XController.js',
      "import { Base } from './base.js';\nexport default class extends Base {}",
      'X',
    ],
    [
      'a namespace',
      'XController.ts',
      "import * as all from './base.js';\nexport default class extends all.Base {}",
      'X',
    ],
    [
      'the name of an operation',
      'XController.ts',
      "import { KEY } from './base.js';\nexport default class { [KEY](data: { a: string }) { return data; } }",
      'X',
    ],
  ];
  for (const [name, file, source, at] of refused) {
    test(`is refused for ${name}`, async () => {
      const { load: outcome } = await load({ [file]: source, ...files });
      assert.match(
        outcome.error ?? 'it loaded',
        /'\.\/base\.js' is base\.js for Node, but base\.ts for tsx and for the types; import base\.ts by its name, or delete base\.js$/,
      );
      assert.match(outcome.at ?? '', new RegExp(`/${at}(?:Controller)?\\.[jt]s:1$`));
    });
  }

  const accepted: [name: string, source: string, more: Readonly<Record<string, string>>][] = [
    [
      'a type',
      "import type { Order } from './order.js';",
      { 'order.ts': 'export type Order = { a: string };', 'order.js': '' },
    ],
    [
      'a folder of the same name',
      "import type { Order } from './order';",
      { 'order/index.ts': 'export type Order = { a: string };', 'order.js': '' },
    ],
    [
      'the name of the .ts file',
      "import { Base } from './base.ts';\nexport class Other extends Base {}\ntype Order = { a: string };",
      files,
    ],
    [
      'a .d.ts declaration of the .js file',
      "import { ROLES } from './roles.js';\ntype Order = { a: (typeof ROLES)[number] };",
      {
        'roles.d.ts': "export declare const ROLES: readonly ['a', 'b'];",
        'roles.js': "export const ROLES = ['a', 'b'];",
      },
    ],
  ];
  for (const [name, before, more] of accepted) {
    test(`is accepted for ${name}`, async () => {
      const { load: outcome, groups } = await load({ 'XController.ts': operation('Order', before), ...more });
      assert.equal(outcome.error, undefined);
      assert.notEqual((await groups.find('x'))?.operations.get('created')?.check, undefined);
    });
  }
});

test('a source file is parsed again when it has changed', () => {
  const path = join(dir, 'changing.ts');
  const { read } = createSourceFiles({
    textOf: (path) => readFileSync(path, 'utf8'),
    resolve: () => undefined,
    watch: () => {},
  });
  writeFileSync(path, 'export interface A { a: 1 }');
  assert.equal(read(path), read(path));
  writeFileSync(path, 'export interface Other { a: 1 }');
  assert.deepEqual([...read(path).declarations.keys()], ['Other']);
});

test('the cache of parsed files has a size limit and always keeps the newest file', () => {
  const sources: Record<string, string> = { a: `// ${'a'.repeat(600_000)}`, b: `// ${'b'.repeat(600_000)}` };
  const { read } = createSourceFiles({
    textOf: (path) => sources[path] as string,
    resolve: () => undefined,
    watch: () => {},
  });
  const first = read('a');
  const newest = read('b');
  assert.equal(read('b'), newest);
  assert.notEqual(read('a'), first);
});

test('the server watches files that are imported only for types, also missing files', async () => {
  const source = operation('A & B', "import type { A } from './a.ts';\nimport type { B } from './b.js';");
  const files = {
    'a.ts': "export type { C as A } from './c.ts';",
    'b.ts': 'export interface B { b: string }',
    'c.ts': 'export interface C { c: string }',
  };
  const { load: made, groups } = await load({ 'XController.ts': source, ...files });
  assert.equal(made.error, undefined);
  const watched = groups.closure().map(({ path }) => path.replace(/^.*\//, ''));
  for (const name of Object.keys(files)) assert.ok(watched.includes(name), `${name} is not watched: ${watched}`);
  // TypeScript resolves each of these specifiers to the file that appears later.
  for (const specifier of ['./later.ts', './later.js', './later']) {
    const missing = await load({ 'XController.ts': operation('A', `import type { A } from '${specifier}';`) });
    assert.match(missing.load.error ?? '', /A is imported from \.\/later.*, where no .ts or .js file is found/);
    const isWatched = missing.groups
      .closure()
      .some(({ path, fingerprint }) => path.endsWith('later.ts') && fingerprint === 'absent');
    assert.ok(isWatched, specifier);
  }
});
