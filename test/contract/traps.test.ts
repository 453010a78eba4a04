// Syntax that misleads a parser. Each row ends with a method that must be found. TypeScript's parser must find the same
// members with the same types.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createLog } from '../../src/base/log.ts';
import type { Schema } from '../../src/contract/contract.ts';
import { outlineOf } from '../../src/contract/outline.ts';
import { parseModule } from '../../src/contract/source/parse-module.ts';
import { createGroups } from '../../src/live/load/registry.ts';
import { differences, outlineOfOurs, outlineOfTypeScript } from './oracle/parsers.ts';

const B = '`';
const HOLE = '$' + '{';

describe('the parser finds the members of a class with', () => {
  const rows: Record<string, readonly [name: string, body: string, members: string]> = Object.fromEntries(
    Object.entries({
      'a field without semicolon': ['a = 1\n', 'a'],
      'a field that ends with !': ['a = b!\n', 'a'],
      'a field that ends with ++': ['a = i++\n', 'a'],
      'a field that ends with --': ['a = i--\n', 'a'],
      'a field without value': ['a\nb: string\nc?: number\n', 'a b c'],
      'a field that continues on the next line': ['a = 1\n + 2\nb = x\n .y\n', 'a b'],
      'a field with a comparison on the next line': ['a = b\n !== c\nd = b\n != c\n', 'a d'],
      'a field with a call over several lines': ['a = f(\n1,\n)\nb = [\n1,\n]\n', 'a b'],
      'a field with a function': ['a = () => { return { b() {} } }\n', 'a'],
      'a field with an arrow function over two lines': ['a = () =>\n 1\n', 'a'],
      'a field with a ternary over several lines': ['a = b\n ? { c() {} }\n : 2\n', 'a'],
      'a field with a tagged template on the next line': [`a = tag\n${B}b() {}${B}\n`, 'a'],
      'a field before a computed method': ["a = 1;\n['b']() {}\n", 'a b'],
      'a field before a generator': ['a = 1;\n*b() {}\n', 'a b'],
      'a regular expression with a brace': ['a = /[}]/;\n', 'a'],
      'a regular expression with a slash in a class': ['a = /[/}]/g;\n', 'a'],
      'a regular expression with an escaped slash': ['a = /\\/}/\n', 'a'],
      'a regular expression behind a parenthesis': ['a() { if (b) /[}]/.test(c); while (d) /}/.test(e) }\n', 'a'],
      'a regular expression behind return': ['a() { return /[}]/ }\n', 'a'],
      'a regular expression behind a block': ['a() { {}\n/[}]/.test(b) }\n', 'a'],
      'a regular expression in a ternary': ['a = b ? /}/ : /{/\n', 'a'],
      'a division behind a parenthesis': ["a() { return (b) / 2 + '}'.length / 1 }\n", 'a'],
      'a division behind a brace': ['a = { b: 1 }.b / 2 / 3\n', 'a'],
      'a division behind !': ['a = b! / 2 / c\n', 'a'],
      'a division behind ++': ['a() { let b = 1; return b++ / 2 / 3 }\n', 'a'],
      'a division behind ]': ['a = b[0] / c[1] / 2\n', 'a'],
      'a division behind a keyword that is a field': ['a = b.return / 2 / c\n', 'a'],
      'a division behind a keyword that is a field, and a slash in brackets': [
        "a = b.return / (2 + '/'.length)\n",
        'a',
      ],
      'a division behind a number, and a slash in brackets': ["a = 1 / (2 + '/'.length)\n", 'a'],
      'a division behind a string, and a slash in brackets': ["a = 'b' / (2 + '/'.length)\n", 'a'],
      'a division behind a value with !, and a slash in brackets': [
        "a = 'b'! / (2 + '/'.length)\nc = (b)! / (2 + '/'.length)\nd = b[0]! / (2 + '/'.length)\n",
        'a c d',
      ],
      'two divisions that look like a regular expression': ['a = b / c / d\n', 'a'],
      'nested templates': [`a = ${B}x ${HOLE}${B}} ${HOLE}{ b: '}' }.b} {${B}} }${B}\n`, 'a'],
      'a template with a function': [`a = ${B}${HOLE}[1].map((b) => { return ${B}{${HOLE}b}${B} })}${B}\n`, 'a'],
      'a template with an escape': [`a = ${B}\\${B} \\${HOLE} {${B}\n`, 'a'],
      'a string with an escape': ['a = \'it\\\'s }\' + "\\"{"\n', 'a'],
      'comments with brackets': ['/* { */ a = 1 // }\n/** } */\n', 'a'],
      'type arguments with a comma': ['a = new Map<string, { b: number }>()\nc = 1\n', 'a c'],
      'type arguments of a call': ['a = f<string, number>(1)\nb = 1\n', 'a b'],
      'a comparison': ['a = b < c\nd = 1\n', 'a d'],
      'two comparisons': ['a = b < c && d > (e)\nf = 1\n', 'a f'],
      'a shift': ['a = b >> 1 >>> 2\nc: Array<Array<number>> = []\n', 'a c'],
      'a default that compares': ['a(b = c < d, e = f > (g)) {}\n', 'a'],
      'a default with type arguments': ['a(b = new Map<string, number>(), c = 1) {}\n', 'a'],
      'keywords as methods': [
        'get() {}\nset() {}\nstatic() {}\nasync() {}\nreadonly() {}\ntype() {}\ninterface() {}\n',
        'get set static async readonly type interface',
      ],
      'keywords as fields': [
        'get = 1\nset = 1\nstatic = 1\nasync\ndeclare = 1\nabstract = 2\nstatic\nasync\nget\nlast() { return 1 }\n',
        'get set static async declare abstract async last',
      ],
      'keywords that are modifiers as well': [
        'static static() {}\nget get() { return 1 }\nasync async() {}\nreadonly readonly = 1\n',
        'static get async readonly',
      ],
      'quoted and numbered names': ["'a b'() {}\n1() {}\n0x10 = 1\n", 'a b 1 16'],
      'private names': ['#a = 1\n#b() {}\nstatic #c = 1\n', '#a #b #c'],
      'a static block': ['static { const b = { c() {} }; }\na = 1\n', ' a'],
      'index signatures': ['[key: string]: unknown\na = 1\n', ' a'],
      accessors: ['get a() { return 1 }\nset a(b) {}\naccessor c = 1\n', 'a a c'],
      'a definite field': ['a!: string\nb?: string\n', 'a b'],
      overloads: ['a(b: string): void\na(b: number): void\na(b: unknown) {}\n', 'a a a'],
      'a type with a method': ['a: { b(): void; c: () => { d: 1 } } = x\n', 'a'],
      'a type over several lines': ['a:\n | 1\n | { b: 2 }\n | (() => void)\n', 'a'],
      'a conditional type': ['a: B extends { c: infer D } ? D : never\n', 'a'],
      'a type predicate': ['a(b: unknown): b is string { return true }\nc(): asserts this is D {}\n', 'a c'],
      'an object type as a result': ['a(): { b: { c: 1 } } { return x }\n', 'a'],
      'parameters with patterns': ['a({ b: { c = 1 }, ...d }: E = {}, [f, , g]: H[] = []) {}\n', 'a'],
      'a nested class': ['a = class { b() {} }\nc() { class D { e() {} } }\n', 'a c'],
      'lone semicolons': [';;a() {};\n', 'a'],
    }).map(([name, [body, members]]) => [name, [name, body as string, members as string]]),
  );
  for (const [name, body, members] of Object.values(rows)) {
    test(name, () => {
      const source = `export default class A {\n${body}created(data: { last: string }) {}\n}\nexport interface Behind { a: 1 }\n`;
      const own = parseModule(source).declarations.get('A')?.[0]?.members ?? [];
      assert.deepEqual(
        own.map((one) => one.name),
        [
          ...(members === ' a' ? ['', 'a'] : members === 'a b 1 16' ? ['a b', '1', '16'] : members.split(' ')),
          'created',
        ],
      );
      const theirs = outlineOfTypeScript('a.ts', source);
      assert.ok(theirs !== undefined, 'TypeScript must accept the source');
      const { different, compared } = differences(outlineOfOurs(source), theirs);
      assert.deepEqual([different, compared], [[], 2]);
    });
  }
});

describe('the parser finds a class behind', () => {
  const rows: Record<string, string> = {
    'type as a name': 'let type = 1\ntype = 2\ntype\nclass B {}',
    'interface and namespace as names': 'const namespace = 1, module = 2\nnamespace\nmodule\nclass B {}',
    'imports of names that are keywords':
      "import { type as x, type type as y, type Z } from './x.ts'\nimport type from './y.ts'\nimport type T from './z.ts'\nimport from, { a } from './w.ts'",
    'a call of import': "const b = import('./x.ts'), c = import.meta.url",
    'a labelled block': 'a: { class B {} }',
    'declare and abstract as names': 'let declare = 1, abstract = 2\ndeclare\nabstract\nclass B {}',
    'a type over several lines': "type A =\n  | { kind: 'a' }\n  | { kind: 'b' }\nclass B {}",
    'a function that returns a generic': 'function f<T extends { a: 1 }>(a: T): Array<{ b: T }> { return [] }',
    'overloads of a function': 'function f(a: string): void\nfunction f(a: number): void\nfunction f(a: unknown) {}',
    'an arrow with type parameters': 'const f = <T,>(a: T): a is T & string => true',
    'a comparison that looks like type arguments': 'const f = a < b, g = c > (d)\nif (a<b||c>d) {}',
    'a regular expression on a line of its own': '{}\n/class X { a() {} }/.test(y)',
    'a namespace': 'declare namespace N { interface Inner { a: 1 } }\nexport type I = N.Inner',
    decorators: '@a({ b: 1 }) @c.d class B { @e() f() {} @g h = 1 }',
    'a byte order mark and a hash bang': 'const a = 1',
  };
  for (const [name, head] of Object.entries(rows)) {
    test(name, () => {
      const source = `${head}\nexport default class Last { created(data: { last: string }) {} }\n`;
      const theirs = outlineOfTypeScript('a.ts', source);
      assert.ok(theirs !== undefined, 'TypeScript must accept the source');
      assert.deepEqual(differences(outlineOfOurs(source), theirs).different, []);
      assert.deepEqual(
        parseModule(source)
          .declarations.get('Last')?.[0]
          ?.members.map((one) => one.name),
        ['created'],
      );
    });
  }
});

describe('the parser reads as TypeScript', () => {
  const rows: Record<string, string> = {
    'an object type with signatures': 'type A = { new (b: B): C; new: D; <E>(f: E): F; (g: G): H; i: I }',
    'an object type with a generic signature of new': 'type A = { new <B>(c: B): C; d: D }',
    'a class with signatures as names': 'class A { new(b: B): C {} "d" = 1 }',
    'a constructor type': 'type A = new () => B\ntype C = abstract new (d: D) => E\ntype F = G | (new () => H)',
    'functions in a union': 'type A = | (() => void) | (<B>(c: B) => C) & D\ntype E = (f: F) => G | H',
    'a conditional type with a constrained name':
      'type A<B> = B extends [infer C extends string, ...infer D] ? [C, D] : never\ntype E = 1',
    'a function as the constraint of a name':
      'type A<B> = B extends infer C extends (d: D) => E ? C : never\ntype F = 1',
    'the type of a generic value': 'type A = typeof b<string, number>\ntype C = (typeof d<1>)[]\ntype E = 1',
    'a dotted value': 'type A = typeof b.c.d\ntype E = typeof this.f',
    'a unique symbol': 'declare const b: unique symbol\ntype A = { [b]: unique symbol; c: D }',
    'values in patterns': 'const [a, , b = 1] = c, { d, e: f } = g\nlet { h } = i\ntype E = 1',
    'a default function without a name': 'export default function (a: A): B {}\ntype E = 1',
    'a default generator without a name': 'export default async function* <C>(a: A): B {}\ntype E = 1',
    'a default class without a name': 'export default class { a: A = 1 }\ntype E = 1',
    'a default abstract class': 'export default abstract class A { abstract b(): C }',
    'a default interface': 'export default interface A { b: B }',
    'type arguments before a template': `const a = { b: c < d, e: f<G, H>${B}i${B}, j: k<L, M>${B}${HOLE}n}${B}, o: p }\ntype E = 1`,
    'a class with the type arguments of its parent': 'class A<B = C> extends D<B, E> implements G<B>, H { i: I }',
    'a mapped type with each sign': 'type A = { -readonly [B in C]-?: D }\ntype E = { +readonly [B in C as F]+?: D };',
    'named items': 'type A = [b: B, c?: C, ...d: D[]]\ntype E = [F?, ...G]',
    'numbers of each form': 'type A = 0b11 | 0o17 | 0xff | 1_000 | .5 | 1e-3 | -1n | 5n',
    'a template type': `type A = ${B}b${HOLE}C}d${HOLE}E | F}${B}\ntype E = ${B}g${B}`,
    'predicates': 'function a(b: B): asserts b\nfunction c(d: D): d is E\nfunction f(this: G): this is H\ntype E = 1',
    'an import type': "type A = import('./b.ts').C<D>\ntype E = typeof import('./f.ts')",
    'modifiers of fields':
      'class A { declare b: B; static override c: C; protected readonly d?: D; accessor e: E; f!: F }',
    'parameters with modifiers': 'class A { constructor(private readonly b: B, public c?: C, d = 1, ...e: E[]) {} }',
  };
  for (const [name, source] of Object.entries(rows)) {
    test(name, () => {
      const theirs = outlineOfTypeScript('a.ts', source);
      assert.ok(theirs !== undefined, 'TypeScript must accept the source');
      const { different, compared } = differences(outlineOfOurs(source), theirs);
      assert.deepEqual(different, []);
      assert.ok(compared > 0);
    });
  }
});

describe('the contract of an operation in', () => {
  const silent = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });
  let dir: string;
  let count = 0;
  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'gatefold-traps-'));
    writeFileSync(join(dir, 'package.json'), '{"type":"module"}');
  });
  after(() => rmSync(dir, { recursive: true, force: true }));

  const CRUD = `
export interface Entity { id: string }
export abstract class Base<T, K extends keyof T = never> {
  created(data: Omit<T, K>) { return data; }
  patch(data: Partial<T>[]) { return data; }
}
export class Crud<T extends Entity, U = T> extends Base<T & { version: number }, 'id' & keyof T> {
  red(data: U) { return data; }
}
export default abstract class Named<T> { created(data: T) { return data; } }`;
  const rows: Record<string, readonly [source: string, expected: Record<string, string>, extension?: 'mjs']> = {
    'arrow functions of an object': [
      'export default { created: (data: { a: string }) => data, red: async (data: { b: string }) => { return data }, patch: async function named(data: { c: string }) { return data; } };',
      { created: 'data { a }', red: 'data { b }', patch: 'data { c }' },
    ],
    'arrow functions with type parameters and defaults': [
      "const f = (a: number) => a;\nexport default { created: <T,>(data: { a: string }): T | { a: string } => data, red: (data: { b: string } = { b: f(1 < 2 ? 3 : 4) + 'x' }) => data };",
      { created: 'data { a }', red: 'data { b }' },
    ],
    'functions by name in an object': [
      'const created = (data: { a: string }) => data;\nfunction change(data: { b: string }) { return data; }\nexport default { created, red: change };',
      { created: 'data { a }', red: 'data { b }' },
    ],
    'a function with a type assertion': [
      'function create(data: { b: string }) { return data; }\nexport default { created: create as (data: never) => unknown };',
      { created: 'data { b }' },
    ],
    'an object with a spread and quoted names': [
      "const more = { x: 1 };\nexport default { ...more, 'created'(data: { a: string }) { return data; }, ['red'](data: { b: string }) { return data; } };",
      { created: 'data { a }', red: 'data { b }' },
    ],
    'an object with a type assertion': [
      'export default ({ created(data: { a: string }) { return data; } }) as { created(data: { a: string }): unknown };',
      { created: 'data { a }' },
    ],
    'an object with satisfies': [
      'export default { created(data: { a: string }) { return data; } } satisfies Record<string, unknown>;',
      { created: 'data { a }' },
    ],
    'a generic base class': [
      "import { Crud } from './crud.ts';\ninterface Item { id: string; price: number }\nexport default class XController extends Crud<Item> {}",
      {
        created: 'data { price, version }',
        patch: 'data list of { id?, price?, version? }',
        red: 'data { id, price }',
      },
    ],
    'a generic base class with both arguments': [
      "import { Crud as Base, type Entity } from './crud.ts';\ninterface Item extends Entity { price: number }\nexport default class XController extends Base<Item, { only: true }> { created(data: { own: string }) { return data as never; } }",
      { created: 'data { own }', red: 'data { only }' },
    ],
    'a base class without types': [
      'class Base { created(data: unknown) { return data; } }\nexport default class XController extends Base { red(data: { b: string }) { return data; } }',
      { created: 'its type is unknown or any', red: 'data { b }' },
    ],
    'an abstract method that the controller implements': [
      'abstract class Base<T> { abstract created(data: T): unknown }\nexport default class XController extends Base<{ a: string }> { created(data: { a: string; b?: string }) { return data; } }',
      { created: 'data { a, b? }' },
    ],
    overloads: [
      'export default class XController { created(data: string): string; created(data: number): number; created(data: unknown): unknown { return data; } }',
      { created: 'refused' },
    ],
    'overloads of a function': [
      'function created(data: string): string; function created(data: number): number; function created(data: unknown): unknown { return data; }\nexport default { created };',
      { created: 'refused' },
    ],
    'overloads without data': [
      'export default class XController { created(): string; created(): unknown { return 1; } }',
      { created: '' },
    ],
    'arrow functions without parentheses': [
      'export default { created: data => data, red: data => [data].map(a => a), patch: (data: { b: string }) => data };',
      { created: 'it has no annotation', red: 'it has no annotation', patch: 'data { b }' },
    ],
    'an abstract class that is a default export': [
      "import Base from './crud.ts';\nexport default class XController extends Base<{ a: string }> {}",
      { created: 'data { a }' },
    ],
    'every kind of data': [
      `type Names = 'a' | 'b' | 'c' | 'd' | 'e' | 'f' | 'g' | 'h' | 'i' | 'j' | 'k' | 'l' | 'm';
      export default class XController {
        static operations = { picture: { accepts: ['image/*'] } };
        created(data: 'x' | 'y') { return data; }
        red(data: 'x') { return data; }
        patch(data: string | { a: 1 }) { return data; }
        index(data: Record<string, string>) { return data; }
        deleted(data: {}) { return data; }
        named(data: { [K in Names]: 1 }) { return data; }
        listed(data: unknown[]) { return data; }
        maybe(data: number | null) { return data; }
        mapped(data: { [K in 'a' | 'b'] }) { return data; }
        picture(data: Blob) { return data; }
        nested(data: string[][][][]) { return data; }
      }`,
      {
        created: 'data one of its literals',
        red: 'data one of its literals',
        patch: 'data one of 2 types',
        index: 'data { … }',
        deleted: 'data object or array or string or number or boolean',
        named: 'data { a, b, c, d, e, f, g, h, i, j, k, l, … 1 more }',
        listed: 'data list of anything',
        maybe: 'data number or null',
        mapped: 'data { a, b }',
        picture: 'data file',
        nested: 'data list of list of list',
      },
    ],
    'a type parameter whose default is narrower than its constraint': [
      'export default class XController { created<T extends { a: string } = { a: string; b: string }>(data: T) { return data; } }',
      { created: 'data { a }' },
    ],
    'a method that says what this is': [
      'export default class XController { created(this: XController, data: { a: string }) { return [this, data]; } }',
      { created: 'data { a }' },
    ],
    'a method beside a static one of another name': [
      'export default class XController { static make(data: { no: string }) { return data; } created(data: { a: string }) { return data; } }',
      { created: 'data { a }' },
    ],
    'a method beside a static one of its name': [
      'export default class XController { static created(data: { no: string }) { return data; } created(data: { a: string }) { return data; } }',
      { created: 'data { a }' },
    ],
  };
  for (const [name, [source, expected, extension = 'ts']] of Object.entries(rows)) {
    test(name, async () => {
      const folder = join(dir, String(count++));
      mkdirSync(folder);
      writeFileSync(join(folder, 'crud.ts'), CRUD);
      writeFileSync(join(folder, `XController.${extension}`), source);
      const groups = createGroups({ dir: folder, log: silent });
      const [load] = await groups.loadAll({ skip: new Map(), onLoading: () => {} });
      if (load?.ok !== true) {
        assert.deepEqual(Object.values(expected), ['refused'], load?.error ?? 'not loaded');
        return;
      }
      const contract = await (await groups.find('x'))?.contract;
      const told = Object.keys(expected).map((one) => {
        const operation = contract?.operations.get(one);
        const outline = operation === undefined ? undefined : outlineOf(operation, contract?.defs ?? {});
        return [one, outline?.checked || outline?.unchecked || ''];
      });
      assert.deepEqual(Object.fromEntries(told), expected);
    });
  }

  test('only a recursive intersection gets a name', async () => {
    const folder = join(dir, String(count++));
    mkdirSync(folder);
    writeFileSync(
      join(folder, 'XController.ts'),
      `interface X { x: string }
      interface Y { y: number }
      interface A { a: X; next: A | null }
      interface B { a: Y; next: B | null }
      export default class XController {
        created(data: { a: X; b: X } & { a: Y; b: Y }) { return data; }
        red(data: { one: A; two: A; x: X } & { one: B; two: B; x: Y }) { return data; }
      }`,
    );
    const groups = createGroups({ dir: folder, log: silent });
    await groups.loadAll({ skip: new Map(), onLoading: () => {} });
    const contract = await (await groups.find('x'))?.contract;
    const both = {
      type: 'object',
      properties: { x: { type: 'string' }, y: { type: 'number' } },
      required: ['x', 'y'],
    };
    const fieldsOf = (name: string) => contract?.operations.get(name)?.data?.properties;
    assert.deepEqual(fieldsOf('created'), { a: both, b: both });
    assert.deepEqual(fieldsOf('red')?.x, both);
    assert.deepEqual(Object.keys(contract?.defs ?? {}), ['A_B']);
  });
});

test('the outline of a contract describes each checked part in a few words', () => {
  const text = { type: 'string' };
  const fields = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`f${i}`, text]));
  const names = (count: number) => Object.keys(fields(count)).map((name) => `${name}?`);
  const listOf = (items: Schema): Schema => ({ type: 'array', items });
  const rows: [schema: Schema, outline: string][] = [
    [{ type: 'object' }, '{}'],
    [{ type: 'object', properties: { a: text, b: text }, required: ['a'] }, '{ a, b? }'],
    [{ type: 'object', properties: fields(12) }, `{ ${names(12).join(', ')} }`],
    [{ type: 'object', properties: fields(13) }, `{ ${names(12).join(', ')}, … 1 more }`],
    [{ type: 'object', properties: { a: text }, additionalProperties: text }, '{ a?, … }'],
    [{ type: 'object', patternProperties: { '^a$': text } }, '{ … }'],
    [{ type: 'array' }, 'list'],
    [listOf({ $ref: '#/$defs/Own' }), 'list of { own }'],
    [listOf(listOf(listOf(text))), 'list of list of list'],
    [{ enum: ['a', 'b'] }, 'one of its literals'],
    [{ const: undefined }, 'one of its literals'],
    [{ anyOf: [text, { type: 'number' }] }, 'one of 2 types'],
    [{ type: 'string', contentMediaType: 'application/octet-stream' }, 'file'],
    [{ type: ['string', 'null'] }, 'string or null'],
    [{}, 'anything'],
  ];
  const defs = { Own: { type: 'object', properties: { own: text }, required: ['own'] } };
  const base = { name: 'a', isDeprecated: false, dataIsOptional: false, results: [] };
  for (const [data, outline] of rows)
    assert.deepEqual(outlineOf({ ...base, data }, defs), {
      checked: `data ${outline}`,
      unchecked: undefined,
      undocumented: undefined,
    });
  assert.equal(outlineOf(base, defs), undefined);
  assert.equal(
    outlineOf({ ...base, data: text, query: {}, path: text }, defs)?.checked,
    'data string, query anything, path string',
  );
  const reasons = { uncheckedReason: 'u', undocumentedReason: 'r', schemaGaps: 'g' };
  assert.deepEqual(outlineOf({ ...base, ...reasons }, defs), { checked: '', unchecked: 'u', undocumented: 'r; g' });
  assert.equal(outlineOf({ ...base, schemaGaps: 'g' }, defs)?.undocumented, 'g');
});
