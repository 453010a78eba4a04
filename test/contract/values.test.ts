// Checks and conversions of single values by type: texts from a query, a path or a form, and JSON values.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { createCompiler } from '../../src/contract/check/compile.ts';
import { FAULTS, joinAlternatives } from '../../src/contract/check/messages.ts';
import { CheckRun } from '../../src/contract/check/run.ts';
import type { Schema } from '../../src/contract/contract.ts';
import { createSchemaWriter } from '../../src/contract/schema/schema.ts';
import { parseModule } from '../../src/contract/source/parse-module.ts';
import { createEvaluator } from '../../src/contract/types/evaluate.ts';

/** Writes the schema of a type, or of the type T in a source. */
function schemaOf(type: string) {
  const module = parseModule(/\bT\b/.test(type) ? type : `type T = ${type};`);
  const writer = createSchemaWriter();
  const schema = writer.write(
    createEvaluator().evaluate(
      { kind: 'name', name: 'T', args: [], at: 0 },
      { path: 'x.ts', module, load: () => undefined, typeParams: new Map() },
    ),
  );
  return { schema, defs: writer.defs };
}

/** Creates the check of a type, or of the type T in a source. */
function checkOf(type: string, isText: boolean): (value: unknown) => { made: unknown; mistakes: string[] } {
  const { schema, defs } = schemaOf(type);
  const check = createCompiler(defs, isText).compile(schema);
  return (value) => {
    const run = new CheckRun();
    const made = check(value, run);
    return { made, mistakes: run.mistakes.map(({ pointer, message }) => `${pointer} ${message}`.trim()) };
  };
}

const LONG = 'a'.repeat(1000);
const tagged = (tag: string, text: string) => `/** @${tag} */\ntype T = ${text};`;
/** A template with a dollar sign and a `|`, which have a meaning in regular expressions. */
const TEMPLATE = ['`a.$', "{'x' | '$'}`"].join('');
/** A template literal type, with its types written as #{type}. */
const template = (text: string) => ['`', text.replaceAll('#', '$'), '`'].join('');
/** Ten templates, so a template of two of them has 100 combinations. */
const TEN = [...'abcdefghij'].map((letter) => template(`${letter}#{number}`)).join(' | ');
const THREE_DIGITS = `must match ^${'(?:0|1|2|3|4|5)'.repeat(3)}$`;
const HUNDRED = `must be one of ${Array.from({ length: 10 }, (_, i) => `"0${i}"`).join(', ')}, … (100 in all)`;
const VERSION = template('#{number}.#{number}.#{number}');
/** As in TypeScript, only the mapped type of the alias itself has the optional fields of `T`. */
const CHOSEN = `interface Chosen<T, K extends keyof T = keyof T> { by: { [P in K]: boolean } }
type Each<T, K extends keyof T = keyof T> = { [P in K]: boolean };
type Known<K extends keyof { a?: 1; b: 2 }> = { [P in K]: boolean };\n`;
const INT = "import type { Int } from 'gatefold';\n";
const fields = (text: string): object => Object.assign(Object.create(null), JSON.parse(text));

describe('the conversion of a text', () => {
  const rows: [type: string, text: unknown, expected: unknown][] = [
    ['number', '36', 36],
    ['number', '-1.5e3', -1500],
    ['number', '.5', 0.5],
    ['number', '12345678901', 12345678901],
    ['number', '007', 7],
    ['number', `0.${'0'.repeat(48)}`, 0],
    ['number | string', '36', 36],
    ['string | number', '36', 36],
    ['string | number', 'x36', 'x36'],
    ['string | boolean', 'true', true],
    ['string | number', '-1.5', -1.5],
    ['string | number', '007', '007'],
    ['string | number', '1e5', '1e5'],
    ['string | number', '1.50', '1.50'],
    ['string | number', '123456789012345678901', '123456789012345678901'],
    ['(string | number)[]', ['007', '7'], ['007', 7]],
    ['{ id: string | number }', fields('{"id":"007"}'), fields('{"id":"007"}')],
    ["number | 'auto'", '1.50', 1.5],
    ['number | number[]', '007', 7],
    ['number | string[]', '007', 7],
    ['number | Date', '007', 7],
    [`/** @pattern ^[a-z]+$ */\ntype Slug = string;\ntype T = number | Slug;`, '007', 7],
    ['string | null', 'null', 'null'],
    ["string | 'a' | 1", '1', 1],
    ['string | string[]', 'a', 'a'],
    ['number[] | string', 'a', 'a'],
    ['number[]', '1', [1]],
    ['number[]', ['1', '2'], [1, 2]],
    ["'all' | number[]", '3', [3]],
    ['1 | 2', '2', 2],
    ['true', 'true', true],
    ['null | number', '1', 1],
    ['[number, string]', ['1', '2'], [1, '2']],
    ['Date', '2026-01-02T03:04:05Z', new Date('2026-01-02T03:04:05Z')],
    ['{ kind: 1; a: number } | { kind: 2; b: number }', fields('{"kind":"2","b":"3"}'), fields('{"kind":2,"b":3}')],
    ['{ toString?: string; a?: number }', fields('{"a":"1"}'), fields('{"a":1}')],
    ['Record<string, number>', fields('{"a":"1"}'), fields('{"a":1}')],
    ['{ a: number } | { a: number; b: number[] }', fields('{"a":"1","b":"2","c":"3"}'), fields('{"a":1,"b":[2]}')],
    ['Record<number, number>', fields('{"1":"1","-1.5":"2","07":"x","a":"x","":"x"}'), fields('{"1":1,"-1.5":2}')],
    ['{ [key: string]: string } & { a: string }', fields('{"a":"1","b":"2"}'), fields('{"a":"1","b":"2"}')],
  ];
  for (const [type, text, expected] of rows) {
    test(`${type} ← ${JSON.stringify(text)}`, () => {
      const { made, mistakes } = checkOf(type, true)(text);
      assert.deepEqual(mistakes, []);
      // The comparison includes prototypes, because an object from a query has none.
      assert.deepStrictEqual(made, expected);
    });
  }

  const wrong: [type: string, text: unknown, message: string][] = [
    ['number', '', 'must be a number'],
    ['number', ' 1', 'must be a number'],
    ['number', '0x10', 'must be a number'],
    ['number', `0.${'0'.repeat(49)}`, 'must be a number'],
    ['number', '1:', 'must be a number'],
    ['number', '1/', 'must be a number'],
    ['number', '1_000', 'must be a number'],
    ['number', 'Infinity', 'must be a number'],
    ['number', '1e400', 'must be a number'],
    ['number', ['1', '2'], 'must be a number'],
    ['boolean', '1', 'must be true or false'],
    ['1 | 2', '3', 'must be 1 or 2'],
    ['null', 'null', 'must be null'],
    ["'a' | null", 'null', 'must be "a" or null'],
    [tagged('minimum 1', 'number | null'), '0', 'must be at least 1'],
    ['number | null', 'x', 'must be a number'],
    ['[number, string]', ['1'], 'must have at least 2 entries'],
    ['[number]', ['1', '2'], 'must have at most 1 entry'],
    ['{ a: number }', 'x', 'must be an object'],
    ['{ toString: string }', fields('{}'), '/toString is missing'],
    ['{ kind: 1; a: number } | { kind: 2; b: number }', fields('{"kind":"3"}'), '/kind must be 1 or 2'],
  ];
  for (const [type, text, message] of wrong) {
    test(`${type} ← ${JSON.stringify(text)}: ${message}`, () =>
      assert.deepEqual(checkOf(type, true)(text).mistakes, [message]));
  }
});

describe('the check of a JSON value', () => {
  const rows: [type: string, value: unknown, mistakes: string[]][] = [
    ['number[]', 1, ['must be a list']],
    ['number', '1', ['must be a number']],
    ['number', Number.POSITIVE_INFINITY, ['must be a number']],
    [tagged('integer', 'number'), 2 ** 53, ['must be at most 9007199254740991']],
    [tagged('integer', 'number'), -(2 ** 53), ['must be at least -9007199254740991']],
    [tagged('integer\n * @maximum 9', 'number'), 1e300, ['must be at most 9']],
    [tagged('integer', 'number'), 2 ** 53 - 1, []],
    [tagged('minimum 1', 'number'), 1, []],
    [tagged('minimum 1', 'number'), 0.9, ['must be at least 1']],
    [tagged('maximum 1', 'number'), 1, []],
    [tagged('maximum 1', 'number'), 1.1, ['must be at most 1']],
    [tagged('exclusiveMinimum 1', 'number'), 1, ['must be more than 1']],
    [tagged('exclusiveMinimum 1', 'number'), 1.1, []],
    [tagged('exclusiveMaximum 1', 'number'), 1, ['must be less than 1']],
    [tagged('exclusiveMaximum 1', 'number'), 0.9, []],
    [tagged('multipleOf 0.1', 'number'), 0.3, []],
    [tagged('multipleOf 0.1', 'number'), 0.35, ['must be a multiple of 0.1']],
    [tagged('multipleOf 3', 'number'), 0, []],
    [tagged('multipleOf 0.01', 'number'), 4.35, []],
    [tagged('multipleOf 0.1', 'number'), 1.1, []],
    [tagged('multipleOf 1', 'number'), 1e21, []],
    [tagged('multipleOf 1e22', 'number'), 1e23, []],
    [tagged(`multipleOf ${2 ** 50}`, 'number'), 1e60, []],
    [tagged(`multipleOf ${2 ** 50}`, 'number'), 1e30, [`must be a multiple of ${2 ** 50}`]],
    [tagged('multipleOf 1e23', 'number'), 1e20, ['must be a multiple of 1e+23']],
    [tagged('multipleOf 2.5e-7', 'number'), -1.25e-6, []],
    [tagged('multipleOf 0.01', 'number'), 10_000_000.005, ['must be a multiple of 0.01']],
    [tagged('multipleOf 0.01', 'number'), 12_345_678.9012, ['must be a multiple of 0.01']],
    [tagged('multipleOf 1', 'number'), 1_000_000_000.5, ['must be a multiple of 1']],
    [tagged('multipleOf 3', 'number'), 1_000_000_000, ['must be a multiple of 3']],
    [tagged('multipleOf 1e300', 'number'), 5e-324, ['must be a multiple of 1e+300']],
    [tagged('maxLength 2', 'string'), '😀😀', []],
    [tagged('maxLength 1', 'string'), '😀😀', ['must have at most 1 character']],
    [tagged('minLength 2', 'string'), '😀', ['must have at least 2 characters']],
    [tagged('minLength 1', 'string'), '', ['must not be empty']],
    [tagged('pattern ^.$', 'string'), '😀', []],
    [tagged('uniqueItems true', 'string[]'), ['a', 'a'], ['must not contain the same entry twice']],
    ['/** @minLength 2 */ /** @minLength 2 */\ntype T = string;', 'x', ['must have at least 2 characters']],
    [tagged('minItems 1', 'string[]'), [], ['must have at least 1 entry']],
    [tagged('minItems 2', 'string[]'), ['a'], ['must have at least 2 entries']],
    [tagged('maxItems 1', 'string[]'), ['a', 'b'], ['must have at most 1 entry']],
    [
      '/** @minLength 2 */\ntype A = string;\ninterface T {\n/** @minLength 1 */\na: A }',
      { a: 'x' },
      ['/a must have at least 2 characters'],
    ],
    [
      '/** @minLength 1 */\ntype A = string;\ninterface T {\n/** @minLength 2 */\na: A }',
      { a: 'x' },
      ['/a must have at least 2 characters'],
    ],
    [
      '/** @maxLength 1 */\ntype A = string;\ninterface T {\n/** @maxLength 2 */\na: A }',
      { a: 'xx' },
      ['/a must have at most 1 character'],
    ],
    ['/** @minLength 2 */ /** @maxLength 3 */\ntype T = string;', 'x', ['must have at least 2 characters']],
    ['/** @minLength 2 */ /** @maxLength 3 */\ntype T = string;', 'xxxx', ['must have at most 3 characters']],
    ['interface T { next?: T }', { next: { next: {} } }, []],
    [
      'type Json = string | number | boolean | null | { [key: string]: Json | undefined } | Json[];\ntype T = Json;',
      { a: [{ b: null }, 'x', 1] },
      [],
    ],
    [
      'type Json = string | number | boolean | null | { [key: string]: Json | undefined } | Json[];\ntype T = Json;',
      { a: [undefined] },
      ['/a/0 must be a string or a number or true or false or an object or a list or null'],
    ],
    ['type T = undefined | { [key: string]: T };', { a: { b: {} } }, []],
    ['type T = undefined | { [key: string]: T };', { a: { b: 1 } }, ['/a/b must be an object']],
    ['type T = [Maybe, Maybe?];\ntype Maybe = string | undefined;', ['x'], []],
    ["{ a: 'x' | 'y' } & { [key: string]: string; a: 'x' }", { a: 'y' }, ['/a must be "x"']],
    ['keyof ({ a: 1; b: 1 } | { a: 1; c: 1 })', 'b', ['must be "a"']],
    ["Omit<{ a: 1; b: 1 } | { a?: 2; b: 2 }, 'b'>", {}, []],
    ["Omit<{ a: 1; b: 1 } | { a?: 2; b: 2 }, 'b'>", { a: 3 }, ['/a must be 1 or 2']],
    ['keyof { a: 1; [key: number]: 1 }', 7, []],
    ['keyof { a: 1; [key: number]: 1 }', 'b', ['must be "a"']],
    ["interface X { a?: 1 }\ntype T = { b: X['a'] };", {}, []],
    ["interface X { a: 1 }\ntype T = { b: X['a'] };", {}, ['/b is missing']],
    ['Partial<string>', 'x', []],
    ['object & string[]', [1], ['/0 must be a string']],
    ['string[] & object', [1], ['/0 must be a string']],
    ["{ readonly __brand: 'Id' } & string", 'x', []],
    ["{ readonly __brand: 'Id' } & string", 1, ['must be a string']],
    ["string[] & { readonly __brand: 'Ids' }", [1], ['/0 must be a string']],
    ['unknown & { a: string }', {}, ['/a is missing']],
    ['{ a: string } & unknown', {}, ['/a is missing']],
    ['type T = { n: {} };', { n: 1 }, []],
    ['type T = { n: {} };', { n: 'x' }, []],
    ['type T = { n: {} };', { n: [null] }, []],
    ['type T = { n: {} };', { n: null }, ['/n must be an object or a list or a string or a number or true or false']],
    ['type T = { n: {} };', {}, ['/n is missing']],
    ['interface E {}\ntype T = E | null;', null, []],
    [
      'interface E {}\ntype T = E[];',
      [false, null],
      ['/1 must be an object or a list or a string or a number or true or false'],
    ],
    ['/** @minLength 3 */\ndeclare\ntype T = string;', 'a', []],
    ["type T = { +readonly [K in 'a']: string };", { a: 1 }, ['/a must be a string']],
    ['interface N { next?: N; a: 1 }\ntype T = N & N;', { a: 1, next: {} }, ['/next/a is missing']],
    [
      'interface N { [key: string]: N }\ninterface M { [key: string]: N }\ninterface T extends N, M {}',
      { a: { b: 1 } },
      ['/a/b must be an object'],
    ],
    ['interface N { next?: N }\ntype T = N[];', Array.from({ length: 300 }, () => ({ next: {} })), []],
    [
      'declare const MARK: unique symbol;\ninterface Order { [MARK]?: 1; id: string }\ntype T = Order;',
      {},
      ['/id is missing'],
    ],
    ['(string | null) & {}', null, ['must be a string']],
    ["(string | null) & { readonly __brand: 'Id' }", null, ['must be a string']],
    [
      'type Each<U> = { [K in keyof U]: U[K] };\ntype T = Each<{ a: number; [key: string]: unknown }>;',
      { a: 'x', b: 1 },
      ['/a must be a number'],
    ],
    ["'\\u{10ffff}'", '\u{10ffff}', []],
    ['interface B<in out U> { a: U }\ntype T = B<string>;', { a: 1 }, ['/a must be a string']],
    ['type Start = [string?];\ntype T = [...Start, number];', ['x'], ['must have at least 2 entries']],
    ["interface T extends Omit<Record<string, string>, 'x'> { [key: string]: string }", { a: 'b' }, []],
    ['{ a: string } & { a?: string }', {}, ['/a is missing']],
    ['{ a?: string } & { a: string }', {}, ['/a is missing']],
    ['{ a?: string } & { a?: string }', {}, []],
    ["{ a?: 'x' } & { a?: 'y' }", {}, []],
    ['({ a: null } & { a: string }) | ({ a: boolean } & { a: string }) | 1', 1, []],
    ["Omit<{ 1: string; '2': string; 3: string }, '1' | 2 | 3>", {}, ['/1 is missing', '/2 is missing']],
    [`${CHOSEN}type T = Chosen<{ a?: 1; b: 2 }>;`, { by: { b: true } }, ['/by/a is missing']],
    [`${CHOSEN}type T = Known<'a' | 'b'>;`, { b: true }, ['/a is missing']],
    [`${CHOSEN}type T = Each<{ a?: 1; b: 2 }>;`, { b: true }, []],
    [TEMPLATE, 'a.$', []],
    [`type P = ${TEN};\ntype T = ${template('#{P}-#{P}')};`, 'a1-j2', []],
    [TEMPLATE, 'abx', ['must be "a.x" or "a.$"']],
    [template("a.#{'x' | '$'}#{boolean | string}"), 'a.$1', []],
    [`type D = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9;\ntype T = ${template('#{D}#{D}')};`, '1', [HUNDRED]],
    [`type D = 0 | 1 | 2 | 3 | 4 | 5;\ntype T = ${template('#{D}#{D}#{D}')};`, '126', [THREE_DIGITS]],
    [
      template("a.#{'x' | '$'}#{boolean | string}"),
      'a.1',
      ['must match ^(?:a\\.(?:x|\\$)(?:true|false)|a\\.(?:x|\\$)[\\s\\S]*)$'],
    ],
    [`'a.x' & ${TEMPLATE}`, 'a.x', []],
    [VERSION, '10.20.30', []],
    [`type A = ${VERSION};\ntype T = A[];`, Array(1000).fill('10.20.30'), []],
    [
      template('#{number}-#{number}'),
      'x'.repeat(200_000),
      [
        'must match ^(?:\\d+(?:\\.\\d*)?|\\.\\d+)(?:[eE][+]?\\d{1,2})?--?(?:\\d+(?:\\.\\d*)?|\\.\\d+)(?:[eE][+-]?\\d{1,2})?$',
      ],
    ],
    [`${INT}type T = ${template('v#{Int}.#{Int}')};`, 'v1.2', []],
    [`${INT}type T = ${template('v#{Int}.#{Int}')};`, 'v1.2.5', ['must match ^v-?\\d+\\.-?\\d+$']],
    [`/** @pattern ^[a-z]+$ */\ntype Slug = string;\ntype T = ${template('/#{Slug}/#{boolean}')};`, '/ab/true', []],
    [`'a.y' & ${TEMPLATE}`, 'a.y', ['must be left out']],
    ["Omit<{ [key: string]: number; a: number }, 'a'>", { b: 'x' }, ['/b must be a number']],
    ['Required<{ a?: string | undefined }>', {}, ['/a is missing']],
    ['Record<number, string>', { 1: 'a', x: 1, '07': 1 }, []],
    ['Record<number, string>', { 1: 1, '-2.5': 1, x: 1 }, ['/1 must be a string', '/-2.5 must be a string']],
    ['Partial<Record<number, string>>', { 1: 1, x: 1 }, ['/1 must be a string']],
    ['{ [n: number]: string; a: number }', { 1: 1, a: 'x', b: 1 }, ['/a must be a number', '/1 must be a string']],
    [
      '{ n: NonNullable<unknown> }',
      { n: null },
      ['/n must be an object or a list or a string or a number or true or false'],
    ],
    ['{ n: NonNullable<unknown> }', {}, ['/n is missing']],
    ['{ n: NonNullable<unknown> }', { n: 1 }, []],
    ['{ a: 1; b: unknown } & { [n: number]: string }', { a: 1, b: 1, 2: 2 }, ['/2 must be a string']],
    ['never', 1, ['must be left out']],
    ['{ a?: never }', { a: 1 }, ['/a must be left out']],
    ['string | null', 1, ['must be a string or null']],
    ['{ nick: string | null }', { nick: 1 }, ['/nick must be a string or null']],
    [tagged('minLength 1', 'string | null'), '', ['must not be empty']],
    [tagged('minLength 1', 'string | null'), null, []],
    ['boolean | null', 'x', ['must be true or false or null']],
    [tagged('integer', 'number | null'), 'x', ['must be a whole number or null']],
    [tagged('integer', 'number | null'), 1.5, ['must be a whole number']],
    ['Date', 1, ['must be a date and time like 2026-12-31T23:59:59Z']],
    [
      'type D = Date | null;\ntype T = D | number;',
      true,
      ['must be a date and time like 2026-12-31T23:59:59Z or null or a number'],
    ],
    ['{ cover: File | null }', { cover: null }, []],
    ['type F = File | null;\ntype T = F | number;', null, []],
    ['File | null', 'x', ['must be a file or null']],
    ['Date | null', 1, ['must be a date and time like 2026-12-31T23:59:59Z or null']],
    ['Date | number', true, ['must be a date and time like 2026-12-31T23:59:59Z or a number']],
    ['object', 1, ['must be an object or a list']],
    ['string | { a: 1 }', 1, ['must be a string or an object']],
    ['{ a: 1 } | { b: 1 }', { c: 1 }, ['must be one of 2 kinds of object']],
    ['{ a: 1 } | { b: 1 }', 1, ['must be an object']],
    [template('a-#{null | undefined}'), 'a-undefined', []],
    [template('a-#{null | undefined}'), 'a-null', []],
    [template('a-#{null | undefined}'), 'a-', ['must be "a-null" or "a-undefined"']],
    ['interface T extends Array<string> {}', ['x'], []],
    ['interface T extends Array<string> {}', [1], ['/0 must be a string']],
    ['type P = [string];\ninterface T extends P {}', [1], ['/0 must be a string']],
    ["Capitalize<'ab'>", 'Ab', []],
    ["Capitalize<'ab'>", 'AAb', ['must be "Ab"']],
    ["Uncapitalize<'AB'>", 'aB', []],
    ["Uncapitalize<'AB'>", 'aaB', ['must be "aB"']],
    ['enum T { a = -1, b }', -1, []],
    ['enum T { a = -1, b }', 0, []],
    ['enum T { a = -1, b }', 1, ['must be -1 or 0']],
    ['interface G<X> { a: X }\ntype T = { b: G<string>; c: G<number> };', { b: { a: 'x' }, c: { a: 1 } }, []],
    ["{ [K in 'a']?: 1 }", {}, []],
    ["{ [K in 'a']?: 1 }", { a: 2 }, ['/a must be 1']],
    ["{ [K in 'a']+?: 1 }", {}, []],
    ['type X = { a?: 1 };\ntype T = { [K in keyof X]-?: X[K] };', {}, ['/a is missing']],
    ['const enum T { a = 1 }', 1, []],
    ['const enum T { a = 1 }', 2, ['must be 1']],
    ['const A = -1;\ntype T = typeof A;', -1, []],
    ['const A = -1;\ntype T = typeof A;', 1, ['must be -1']],
    ['const A = { b: { c: 1 } } as const;\ntype T = typeof A.b.c;', 2, ['must be 1']],
    ['const { a } = { a: 1 }\ntype T = 1;', 2, ['must be 1']],
    ["/[{]/.test('');\ntype T = 1;", 2, ['must be 1']],
    ["const a = `4` / (1, '/');\ntype T = 1;", 2, ['must be 1']],
    ["!/[{]/.test('');\ntype T = 1;", 2, ['must be 1']],
    [`const a = ${template('#{/[}]/.source}')};\ntype T = 1;`, 2, ['must be 1']],
  ];
  for (const [type, value, mistakes] of rows) {
    test(`${type.replaceAll('\n', ' ')} ← ${JSON.stringify(value).slice(0, 40)}: ${mistakes.join() || 'fits'}`, () => {
      assert.deepEqual(checkOf(type, false)(value).mistakes, mistakes);
    });
  }

  const formats: [format: string, message: string, good: string[], bad: string[]][] = [
    [
      'email',
      'an email address',
      ['a@b.de', "o'x+y@a-b.co.uk", `${'a'.repeat(64)}@b.de`, `aaa@${'b.'.repeat(124)}de`],
      [
        'a@b',
        'a@-b.de',
        '@b.de',
        'a.@b.de',
        'a@b..de',
        `${'a'.repeat(65)}@b.de`,
        `a@${'b.'.repeat(130)}de`,
        `abcd@${'b.'.repeat(124)}de`,
      ],
    ],
    [
      'date',
      'a date like 2026-12-31',
      ['2024-02-29', '2000-02-29', '0000-02-29', '2026-12-31'],
      ['2023-02-29', '1900-02-29', '2026-04-31', '2026-13-01', '2026-00-10', '2026-01-00', '2026-01-32', '26-01-01'],
    ],
    [
      'date-time',
      'a date and time like 2026-12-31T23:59:59Z',
      ['2026-01-01T00:00:00Z', '2026-01-01t00:00:00.123456789z', '2026-01-01T23:59:59-23:59'],
      [
        '2026-01-01T24:00:00Z',
        '2026-01-01T00:00:60Z',
        '2026-01-01T00:00:00',
        '2026-01-01 00:00:00Z',
        '2026-01-01T00:00:00+24:00',
        '2026-01-01T00:00:00+0000',
        '2026-01-01T00:00:00Z ',
      ],
    ],
    [
      'time',
      'a time like 23:59:59Z',
      ['23:59:59Z', '00:00:00+05:30', `00:00:00.${'1'.repeat(9)}Z`],
      ['24:00:00Z', `00:00:00.${'1'.repeat(10)}Z`],
    ],
    [
      'uuid',
      'a UUID',
      ['123e4567-e89b-12d3-a456-426614174000'],
      ['123e4567e89b12d3a456426614174000', '{123e4567-e89b-12d3-a456-42661417400}'],
    ],
    [
      'uri',
      'a URI',
      [
        ...['https://a.de/b?c#d', 'urn:isbn:1', 'mailto:a@b.de', 'https://ä.de/'],
        `https://a.de?${LONG}`,
        `data:,${LONG}`,
        `https://${LONG}:b@a.de`,
      ],
      // Node needs seconds to sort the accents of a long host.
      ['a.de', '/b', 'http://a b', 'http://[', `https://${LONG}/`, `ftp:u@${LONG}`],
    ],
    ['ipv4', 'an IPv4 address', ['127.0.0.1', '255.255.255.255'], ['256.0.0.1', '1.2.3', '01.2.3.4', '1.2.3.4.5']],
    [
      'hostname',
      'a host name',
      ['a', 'a-b.de', 'xn--a.de', `${'a.'.repeat(126)}a`],
      ['', '-a', 'a-', 'a..b', 'a_b', `${'a'.repeat(64)}.de`, `${'a.'.repeat(127)}`],
    ],
  ];
  for (const [format, message, good, bad] of formats) {
    test(`the format ${format}`, () => {
      const check = checkOf(tagged(`format ${format}`, 'string'), false);
      for (const text of good) assert.deepEqual(check(text).mistakes, [], text);
      for (const text of bad) assert.deepEqual(check(text).mistakes, [`must be ${message}`], text);
    });
  }
});

test('a valid date-time text becomes a valid Date', () => {
  const check = checkOf('Date', false);
  for (const text of [
    '0000-01-01T00:00:00Z',
    '2026-01-01t00:00:00.123456789z',
    '9999-12-31T23:59:59-23:59',
    '2026-01-01T00:00:00-00:00',
  ]) {
    assert.ok(!Number.isNaN((check(text).made as Date).getTime()), text);
  }
});

test('@multipleOf gives the same result as integer arithmetic', () => {
  const checks = new Map<number, ReturnType<typeof checkOf>>();
  // A number keeps up to 15 decimal digits exactly, also when it is written out.
  const digits = fc.integer({ min: -(10 ** 15 - 1), max: 10 ** 15 - 1 });
  const places = fc.integer({ min: 0, max: 20 });
  const steps = fc.tuple(fc.integer({ min: 1, max: 999 }), fc.integer({ min: 0, max: 6 }));
  fc.assert(
    fc.property(
      fc.oneof(digits, fc.integer({ min: -9999, max: 9999 })),
      places,
      steps,
      fc.boolean(),
      (given, fraction, [step, stepFraction], makesOne) => {
        const whole = makesOne ? Math.trunc(given / 1000) * step : given;
        const at = makesOne ? stepFraction : fraction;
        const most = BigInt(Math.max(at, stepFraction));
        const scaled = BigInt(whole) * 10n ** (most - BigInt(at));
        const isMultiple = scaled % (BigInt(step) * 10n ** (most - BigInt(stepFraction))) === 0n;
        const of = Number(`${step}e-${stepFraction}`);
        const check = checks.get(of) ?? checkOf(tagged(`multipleOf ${of}`, 'number'), false);
        checks.set(of, check);
        assert.equal(check(Number(`${whole}e-${at}`)).mistakes.length === 0, isMultiple, `${whole}e-${at} of ${of}`);
        if (makesOne) assert.ok(isMultiple);
      },
    ),
    { numRuns: 2000, seed: 7 },
  );
});

test('a union keeps the fields that any matching part declares', () => {
  const check = checkOf('{ a: string; b: { c: 1 } } | { a: string; b: { d?: 2 } }', false);
  assert.deepEqual(check({ a: 'x', b: { c: 1, d: 2, e: 3 }, f: 4 }).made, { a: 'x', b: { c: 1, d: 2 } });
  assert.deepEqual(checkOf('{ a: 1; b?: 2 } | { a: 1 }', false)({ a: 1, b: 2, c: 3 }).made, { a: 1, b: 2 });
});

describe('a type is refused:', () => {
  const rows: [type: string, message: RegExp][] = [
    [template('#{string | number}'.repeat(7)), /a template with more than 100 combinations of types/],
    [
      template(`#{number}${"#{'a' | 'b'}".repeat(7)}#{number}`),
      /a template with more than 100 texts between two of its types/,
    ],
    [
      `/** @minLength 2 */\ntype S = string;\ntype T = ${template('a#{S}')};`,
      /a constrained string inside of a template is not understood/,
    ],
    [
      `/** @minimum 2 */\ntype N = number;\ntype T = ${template('a#{N}')};`,
      /a constrained number inside of a template is not understood/,
    ],
    ['[...string[], number]', /a tuple with elements after its rest is not understood/],
    ['keyof string', /keyof of something that is not an object/],
    ["{ a: 1 }['b']", /there is no such field/],
    ["Pick<string, 'a'>", /this must be an object type/],
    ['{ a }', /the field a has no type/],
    ["type K = 'a';\ntype T = { [key: K]: 1 };", /this kind of key is not understood/],
    ['{ [key: boolean]: 1 }', /this kind of key is not understood/],
    ["{ [K in 'a']: 1; b: 2 }", /expected } and found b/],
    ['{ = }', /expected a member and found =/],
    ['class T { a: string b: number }', /expected ; and found b/],
    ['type T =', /and found the end of the file/],
    ['type T = 1;\nexport * as', /expected more and found the end of the file/],
    ['type T = 1;\nexport * from a;', /expected a string and found a/],
    [Array.from({ length: 5001 }, (_, i) => i).join(' | '), /a union of 5001 parts is too large: at most 5000/],
  ];
  for (const [type, message] of rows)
    test(type.replaceAll('\n', ' ').slice(0, 60), () => assert.throws(() => schemaOf(type), message));
});

describe('a file is refused by an object type', () => {
  const file = new File(['x'], 'evil.html', { type: 'text/html' });
  const types = [
    '{ name: string; size: number }',
    '{ name?: string }',
    'Record<string, string>',
    '{ [key: string]: unknown }',
    '{}',
    'object',
  ];
  for (const type of types) {
    test(type, () => {
      for (const isText of [true, false]) {
        for (const value of [file, new Blob(['x'])]) {
          assert.match(checkOf(type, isText)(value).mistakes.join(), /^must be an object/);
          assert.match(
            checkOf(`{ meta: ${type} }`, isText)({ meta: value }).mistakes.join(),
            /^\/meta must be an object/,
          );
          assert.match(
            checkOf(`{ meta: (${type}) | null }`, isText)({ meta: value }).mistakes.join(),
            /^\/meta must be/,
          );
        }
      }
    });
  }
  test('a file is accepted by the types File, Blob and unknown', () => {
    for (const type of ['File', 'File | { name: string }', 'unknown', '{ [key: string]: unknown } | Blob']) {
      const { made, mistakes } = checkOf(type, true)(file);
      assert.deepEqual([made, mistakes], [file, []], type);
    }
  });
});

test('a record with number keys drops undeclared keys that are not numbers', () => {
  const check = checkOf('{ [n: number]: { a: string } } & { b?: number }', false);
  assert.deepEqual(check({ 1: { a: 'x', c: 1 }, 2.5: { a: 'y' }, '01': { a: 'z' }, b: 1, c: 1 }).made, {
    1: { a: 'x' },
    2.5: { a: 'y' },
    b: 1,
  });
  const sent = { 1: { a: 'x' }, b: 1 };
  assert.equal(check(sent).made, sent);
  assert.deepEqual(checkOf('Record<number, unknown>', false)({ 1: 'x', a: 1 }).made, { 1: 'x' });
});

test('a field __proto__ stays a field when two parts of a union match', () => {
  const check = checkOf('{ at: Date; [key: string]: unknown } | { at: string; [key: string]: unknown }', false);
  const { made } = check(JSON.parse('{"at":"2026-01-01T00:00:00Z","__proto__":{"admin":true}}')) as { made: object };
  assert.ok(Object.hasOwn(made, '__proto__'));
  assert.equal(Object.getPrototypeOf(made), Object.prototype);
});

test('a field __proto__ of a record stays a field', () => {
  const check = checkOf('Record<string, Date>', false);
  const { made } = check(JSON.parse('{"__proto__":"2026-01-01T00:00:00Z"}')) as { made: object };
  assert.equal(Object.getPrototypeOf(made), Object.prototype);
  const { value, ...attributes } = Object.getOwnPropertyDescriptor(made, '__proto__') ?? {};
  assert.deepEqual(value, new Date('2026-01-01T00:00:00Z'));
  assert.deepEqual(attributes, { writable: true, enumerable: true, configurable: true });
});

test('a check stops after 50 mistakes', () => {
  const list = Array.from({ length: 60 }, () => 'x');
  const unread = { get: () => assert.fail('the check read an entry after 50 mistakes'), enumerable: true };
  Object.defineProperty(list, 55, unread);
  assert.equal(checkOf('number[]', false)(list).mistakes.length, 50);
  const record = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`f${i}`, 'x']));
  Object.defineProperty(record, 'f55', unread);
  assert.equal(checkOf('Record<string, number>', false)(record).mistakes.length, 50);
});

test('only check/messages.ts contains the texts of mistakes', () => {
  const dir = new URL('../../src/contract/check/', import.meta.url);
  for (const file of readdirSync(dir)) {
    const source = readFileSync(new URL(file, dir), 'utf8');
    assert.doesNotMatch(source, /\breport\(\s*['"`]/, file);
    if (file !== 'messages.ts') assert.doesNotMatch(source, /['"`](?:must|is) [a-z]/, file);
  }
});

test('a part of a union that refuses all values accepts none, and a part without a keyword accepts all', () => {
  const mistakesOf = (anyOf: readonly Schema[], value: unknown, isText = false) => {
    const run = new CheckRun();
    createCompiler({}, isText).compile({ anyOf })(value, run);
    return run.mistakes.map(({ message }) => message);
  };
  const never = { not: {} };
  assert.deepEqual(mistakesOf([{}, { type: 'string' }], 1), []);
  assert.deepEqual(mistakesOf([{}, { type: 'string' }], null), []);
  assert.deepEqual(mistakesOf([never, { type: 'number' }], 1), []);
  assert.deepEqual(mistakesOf([never, { type: 'number' }], 'x'), ['must be a number']);
  assert.deepEqual(mistakesOf([never, { type: 'number' }], 'x', true), ['must be a number']);
});

test('the compiler throws on a keyword or type that it cannot check', () => {
  assert.throws(
    () => createCompiler({}, false).compile({ type: 'string', contains: {} }),
    /No check implements the JSON Schema keyword contains/,
  );
  assert.throws(
    () => createCompiler({}, false).compile({ type: 'text' }),
    /No check implements the JSON Schema type text/,
  );
  assert.throws(
    () => createCompiler({}, false).compile({ type: 'string', format: 'phone' }),
    /No check implements the format phone/,
  );
});

test('the message of a union with many named parts does not list them', () => {
  const names = [...'ABCDEFGHIJK'];
  const aliases = names.map((name) => `type ${name} = '${name}1' | '${name}2' | '${name}3';`);
  const messageOf = (parts: readonly string[]) =>
    checkOf(`${aliases.join('\n')}\ntype T = ${parts.join(' | ')};`, false)(true).mistakes;
  assert.deepEqual(messageOf(names), ['must be one of 11 kinds of value']);
  assert.deepEqual(messageOf(names.slice(0, 2)), ['must be one of "A1", "A2", "A3" or one of "B1", "B2", "B3"']);
});

test('a message shows ten alternatives, and 100 characters of a literal or a pattern', () => {
  const numbers = (count: number) => Array.from({ length: count }, (_, i) => i);
  const ten = numbers(10).join(', ');
  const { message, params } = FAULTS.notLiteral(numbers(10));
  assert.deepEqual([message, params], [`must be one of ${ten}`, { allowedValues: numbers(10) }]);
  const more = FAULTS.notLiteral(numbers(11));
  assert.deepEqual(
    [more.message, more.params],
    [`must be one of ${ten}, … (11 in all)`, { allowedValues: numbers(10), count: 11 }],
  );
  assert.equal(joinAlternatives(numbers(10).map(String)), numbers(10).join(' or '));
  assert.equal(joinAlternatives(numbers(11).map(String)), 'one of 11 kinds of value');
  const long = 'a'.repeat(100);
  assert.equal(FAULTS.noMatch(long).message, `must match ${long}`);
  assert.equal(FAULTS.noMatch(`${long}a`).message, `must match ${long}…`);
});

test('lists and dates that fit two parts of a union keep the fields of both', () => {
  const check = checkOf('{ a: number }[] | { a: number; b?: Date }[]', false);
  const at = '2026-01-02T03:04:05Z';
  assert.deepEqual(check([{ a: 1, b: at, c: 2 }, { a: 2 }]).made, [{ a: 1, b: new Date(at) }, { a: 2 }]);
  const dated = checkOf('{ at: Date } | { at: Date; b?: 1 }', false);
  assert.deepEqual(dated({ at, b: 1 }).made, { at: new Date(at), b: 1 });
  const nested = checkOf('{ list: { a: number }[] } | { list: { a: number; b: string }[]; more?: 1 }', false);
  assert.deepEqual(nested({ list: [{ a: 1, b: 'x', c: 2 }], more: 1 }).made, { list: [{ a: 1, b: 'x' }], more: 1 });
});

describe('the schema of a type has no keyword that says nothing', () => {
  const string = { type: 'string' };
  const rows: [type: string, schema: object][] = [
    ['[]', { type: 'array', items: false }],
    ['[string?]', { type: 'array', prefixItems: [string], items: false }],
    ['[string, ...string[]]', { type: 'array', prefixItems: [string], items: string, minItems: 1 }],
    ['Record<string, unknown>', { type: 'object', additionalProperties: true }],
    ['Record<string, string>', { type: 'object', additionalProperties: string }],
    ["true | false | 'a'", { anyOf: [{ type: 'boolean' }, { const: 'a' }] }],
    ['string | null', { type: ['string', 'null'] }],
    ["'a' | null", { enum: ['a', null] }],
    [
      'interface T { /** @format password */ a: Date }',
      { type: 'object', properties: { a: { type: 'string', format: 'date-time' } }, required: ['a'] },
    ],
  ];
  for (const [type, schema] of rows)
    test(type, () => assert.deepEqual(JSON.parse(JSON.stringify(schemaOf(type).defs.T)), schema));
});
