// Expensive requests and types: each has a bound. The tests count steps where they can. Where they measure time, it is
// the time of the processor, and the limit is far above the need of a slow machine.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createCompilers, createRequestCheck } from '../../src/contract/check/request-check.ts';
import type { Problem } from '../../src/contract/contract.ts';
import { createSchemaWriter } from '../../src/contract/schema/schema.ts';
import { parseModule } from '../../src/contract/source/parse-module.ts';
import { findLevels } from '../../src/contract/types/class-levels.ts';
import { createEvaluator } from '../../src/contract/types/evaluate.ts';

const CONTRACT = { name: 'created', isDeprecated: false, dataIsOptional: false, results: [] };
const LIMIT_MS = 5000;
const TOO_MANY = 'takes too many steps to be checked';
const BOUNDED = '/** @pattern ^a{0,299}a*$ */\ntype T = string;';
const EMAIL = '/** @pattern ^[^@]+@[^@]+\\.[^@]+$ */\ntype T = string;';

function checkOf(source: string): (data: unknown) => string | undefined {
  const problemsIn = problemsOf(source);
  return (value) => problemsIn(value)[0]?.message;
}

function problemsOf(source: string): (data: unknown) => readonly Problem[] {
  const check = partsOf(source);
  return (data) => check(data).problems;
}

/** Returns a check of the type T, which also returns the data as the operation gets it. */
function partsOf(source: string): (data: unknown) => { data: unknown; problems: readonly Problem[] } {
  const module = parseModule(source);
  const { evaluate } = createEvaluator();
  const writer = createSchemaWriter();
  const data = writer.write(
    evaluate(
      { kind: 'name', name: 'T', args: [], at: 0 },
      { path: 'x.ts', module, load: () => undefined, typeParams: new Map() },
    ),
  );
  const check = createRequestCheck({ ...CONTRACT, data }, {}, { queryAsData: 'never' }, createCompilers(writer.defs));
  return (value) => {
    const parts = { data: value, query: undefined, path: undefined, headers: undefined };
    const problems = check?.(parts, 'body', 'POST') ?? [];
    return { ...parts, problems: problems as readonly Problem[] };
  };
}

const nested = (depth: number, wrap: (inner: unknown) => unknown): unknown => {
  let value: unknown = null;
  for (let i = 0; i < depth; i++) value = wrap(value);
  return value;
};

/** Unions in unions. No field distinguishes the two parts of each, so a check tries both: 2^depth times. */
const ambiguous = (depth: number, leaf: string): string =>
  `${Array.from({ length: depth }, (_, i) => `type L${i} = ${['p', 'q'].map((name) => `{ x: L${i + 1}; ${name}?: string }`).join(' | ')};\n`).join('')}type L${depth} = ${leaf};\ntype T = L0;`;
const inUnions = (depth: number, leaf: unknown): unknown => nested(depth, (x) => ({ x: x ?? leaf }));
const TREE = 'interface T { name?: string; /** @uniqueItems */ children?: T[]; map?: Record<string, number> }';
const inTree = (depth: number, leaf: object): unknown => nested(depth, (node) => ({ children: [node ?? leaf] }));
const names = (count: number) => Array.from({ length: count }, (_, i) => ({ name: i.toString(36) }));
const map = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, i]));

describe('the check has a bound for', () => {
  const rows: [name: string, type: string, data: () => unknown, expected: string | undefined][] = [
    ['an object 99 levels deep', 'interface T { a: T | null }', () => nested(99, (a) => ({ a })), undefined],
    [
      'an object 100,000 levels deep',
      'interface T { a: T | null }',
      () => nested(100_000, (a) => ({ a })),
      'is nested deeper than 100',
    ],
    [
      'lists 100,000 levels deep',
      'type T = T[] | null;',
      () => nested(100_000, (a) => [a]),
      'is nested deeper than 100',
    ],
    [
      'any JSON 200,000 levels deep',
      'type T = string | number | boolean | null | T[] | { [key: string]: T };',
      () => nested(100_000, (a) => [{ a }]),
      'is nested deeper than 100',
    ],
    [
      'lists 100,000 levels deep in a recursive union',
      'type T = string | (number | T)[];',
      () => nested(100_000, (a) => [a]),
      'is nested deeper than 100',
    ],
    [
      '10,001 fields',
      'interface T { a?: string }',
      () => Object.fromEntries(Array.from({ length: 10_001 }, (_, i) => [`f${i}`, 1])),
      'must have at most 10000 fields',
    ],
    [
      '10,001 fields of a record',
      'type T = Record<string, number>;',
      () => Object.fromEntries(Array.from({ length: 10_001 }, (_, i) => [`f${i}`, 1])),
      'must have at most 10000 fields',
    ],
    [
      '10,000 undeclared fields',
      'interface T { a?: string }',
      () => Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`f${i}`, 1])),
      undefined,
    ],
    [
      '10,001 fields of a record of anything',
      'type T = { [name: string]: unknown };',
      () => Object.fromEntries(Array.from({ length: 10_001 }, (_, i) => [`f${i}`, 1])),
      'must have at most 10000 fields',
    ],
    [
      'unique entries 100,000 levels deep',
      'interface T {\n/** @uniqueItems */\nlist: unknown[] }',
      () => ({ list: [nested(100_000, (a) => [a])] }),
      'is nested deeper than 100',
    ],
    [
      'unique entries 90 levels deep, with quotes in their strings',
      'interface T {\n/** @uniqueItems */\nlist: unknown[] }',
      () => ({ list: Array.from({ length: 1000 }, (_, i) => nested(90, (a) => [a ?? `"${i}"`])) }),
      undefined,
    ],
    ['a million wrong entries', 'type T = number[];', () => Array.from({ length: 1e6 }, () => 'x'), 'must be a number'],
    [
      '100,000 texts that each fit the first of three patterns',
      `type T = (\`a-\${number}\` | \`b-\${number}\` | \`c-\${number}\`)[];`,
      () => Array.from({ length: 1e5 }, () => 'a-1'),
      undefined,
    ],
    [
      '100,000 entries of 200 alternatives each',
      `type T = (${Array.from({ length: 200 }, (_, i) => `{ a: string; f${i}: 1 }`).join(' | ')})[];`,
      () => Array.from({ length: 1e5 }, () => ({ a: 'x', f199: 1 })),
      TOO_MANY,
    ],
    [
      'unions in unions',
      `type A = { a: string; b: 1 } | { a: string; c: 1 };\n${Array.from({ length: 12 }, (_, i) => `type U${i} = { n: ${i === 0 ? 'A' : `U${i - 1}`}; x: 1 } | { n: ${i === 0 ? 'A' : `U${i - 1}`}; y: 1 };`).join('\n')}\ntype T = U11;`,
      () => nested(12, (n) => ({ n: n ?? { a: 'x', d: 1 }, x: 1, y: 1 })),
      'must be one of 2 kinds of object',
    ],
    [
      'a pattern with two repetitions on a long text',
      'interface T {\n/** @pattern ^\\S+@\\S+$ */\na: string }',
      () => ({ a: '@'.repeat(500_000) }),
      'is too long for its pattern',
    ],
    [
      'the pattern of the documentation and 547 characters',
      EMAIL,
      () => '@'.repeat(547),
      'is too long for its pattern',
    ],
    // Each match may take 1,000 times 300 steps, and 1,001 times 300.
    ['a text with as many steps as are allowed', BOUNDED, () => 'a'.repeat(999), undefined],
    ['a text with more steps', BOUNDED, () => 'a'.repeat(1000), 'is too long for its pattern'],
    ['the pattern of the documentation and 546 characters', EMAIL, () => `a@${'.'.repeat(544)}`, undefined],
    [
      '99 texts for a pattern with two repetitions',
      'type T = P[];\n/** @pattern ^\\S+@\\S+$ */\ntype P = string;',
      () => Array.from({ length: 99 }, () => '@'.repeat(99)),
      undefined,
    ],
    [
      '101 texts for a pattern with two repetitions',
      'type T = P[];\n/** @pattern ^\\S+@\\S+$ */\ntype P = string;',
      () => Array.from({ length: 101 }, () => '@'.repeat(99)),
      TOO_MANY,
    ],
    ['50,000 unique entries', TREE, () => ({ children: names(50_000) }), undefined],
    ['50,000 unique entries 48 lists deep', TREE, () => inTree(48, { children: names(50_000) }), TOO_MANY],
    ['9,900 fields 48 unique lists deep', TREE, () => inTree(48, { map: map(9900) }), TOO_MANY],
    ['a text of 900,000 characters 48 unique lists deep', TREE, () => inTree(48, { name: 'a'.repeat(9e5) }), TOO_MANY],
    [
      '90,000 unique texts in 64 attempts of unions',
      ambiguous(6, '{ /** @uniqueItems */ tags: string[] }'),
      () => inUnions(6, { tags: Array.from({ length: 90_000 }, (_, i) => `x${i}`) }),
      TOO_MANY,
    ],
    ['9,900 fields in 256 attempts', ambiguous(8, 'Record<string, number>'), () => inUnions(8, map(9900)), TOO_MANY],
    [
      '9,900 undeclared fields in 4,096 attempts',
      ambiguous(12, '{ a?: string }'),
      () => inUnions(12, map(9900)),
      TOO_MANY,
    ],
    [
      '200,000 numbers in 4,096 attempts',
      ambiguous(12, 'number[]'),
      () =>
        inUnions(
          12,
          Array.from({ length: 2e5 }, () => 1),
        ),
      TOO_MANY,
    ],
    [
      'objects without 100 required fields in a union',
      `type T = (${['a', 'b'].map((first) => `{ ${Array.from({ length: 100 }, (_, i) => `${first}${i}: 1`).join('; ')} }`).join(' | ')} | { z?: 1 })[];`,
      () => Array.from({ length: 3e5 }, () => ({})),
      TOO_MANY,
    ],
    [
      'objects of 1,000 optional fields',
      `type T = { ${Array.from({ length: 1000 }, (_, i) => `f${i}?: string`).join('; ')} }[];`,
      () => Array.from({ length: 3e5 }, () => ({})),
      TOO_MANY,
    ],
    [
      'multiples of a fraction in 64 attempts',
      ambiguous(6, '{ /** @multipleOf 0.01 */ n: number }[]'),
      () =>
        inUnions(
          6,
          Array.from({ length: 5e4 }, (_, i) => ({ n: i / 100 })),
        ),
      TOO_MANY,
    ],
    [
      'a linear pattern on a million characters in 4,096 attempts',
      ambiguous(12, '{ /** @pattern ^[a-z]+$ */ text: string }'),
      () => inUnions(12, { text: 'a'.repeat(1e6) }),
      TOO_MANY,
    ],
    [
      'a linear pattern on a million characters',
      '/** @pattern ^[a-z]+$ */\ntype T = string;',
      () => 'a'.repeat(1e6),
      undefined,
    ],
    [
      'a million objects of two fields',
      'type T = { id: number; name: string }[];',
      () => Array.from({ length: 1e6 }, (_, id) => ({ id, name: 'x' })),
      undefined,
    ],
    [
      '100,000 entries of two alternatives each',
      'type T = ({ a: string; b: number } | { a: string; c: number })[];',
      () => Array.from({ length: 1e5 }, () => ({ a: 'x', c: 1 })),
      undefined,
    ],
    [
      '250,000 multiples of a fraction',
      'type T = { /** @multipleOf 0.01 */ n: number }[];',
      () => Array.from({ length: 2.5e5 }, () => ({ n: 1.1 })),
      undefined,
    ],
    [
      'an email address of a million characters',
      '/** @format email */\ntype T = string;',
      () => `${'a.'.repeat(5e5)}@b`,
      'must be an email address',
    ],
    [
      'a URI of a million characters',
      '/** @format uri */\ntype T = string;',
      () => `x${':'.repeat(1e6)} `,
      'must be a URI',
    ],
    ['a number of a million digits, as text', 'type T = number;', () => '1'.repeat(1e6), 'must be a number'],
    [
      'fields that are named like members of Object.prototype',
      'interface T { constructor: string; toString?: string }',
      () => ({}),
      'is missing',
    ],
  ];
  for (const [name, type, data, expected] of rows) {
    test(name, () => {
      const check = checkOf(type);
      const value = data();
      const from = process.cpuUsage();
      assert.equal(check(value), expected);
      const { user, system } = process.cpuUsage(from);
      assert.ok((user + system) / 1000 < LIMIT_MS);
    });
  }

  test('the patterns of all parts of a request together', () => {
    const pattern = { type: 'object', properties: { a: { type: 'array', items: { type: 'string', pattern: 'a+a' } } } };
    const contract = { ...CONTRACT, data: pattern, query: pattern };
    const check = createRequestCheck(contract, {}, { queryAsData: 'never' }, createCompilers({}));
    const half = { a: Array.from({ length: 40 }, () => 'a'.repeat(99)) };
    const problemsOf = (data: unknown) =>
      check?.({ data, query: half, path: undefined, headers: undefined }, 'body', 'POST');
    assert.equal(problemsOf({ a: [] }), undefined);
    const [problem] = problemsOf(half) as readonly Problem[];
    assert.deepEqual([problem?.in, problem?.message], ['body', TOO_MANY]);
  });

  test('the pointers of mistakes cut long keys and deep paths', () => {
    const check = problemsOf('type T = { [name: string]: number[] | T };');
    const key = 'k'.repeat(1e6);
    const problems = check({ [key]: Array(60).fill('x') });
    assert.equal(problems.length, 50);
    assert.ok(JSON.stringify(problems).length < 20_000);
    assert.equal(problems[0]?.pointer, `/${'k'.repeat(200)}…/0`);
    const deep = nested(90, (a) => ({ [key.slice(0, 150)]: a ?? ['x'] }));
    assert.equal(check(deep)[0]?.pointer.length, 1001);
    const keys = [...Array(5).fill('k'.repeat(198)), 'kk'];
    const whole = keys.reduceRight<object>((value, name) => ({ [name]: value }), ['x']);
    assert.equal(check(whole)[0]?.pointer, `/${keys.join('/')}/0`);
    assert.equal(check({ ['k'.repeat(200)]: ['x'] })[0]?.pointer, `/${'k'.repeat(200)}/0`);
  });

  const lists: [name: string, type: string, list: unknown[], isTwice: boolean][] = [
    ['zero and minus zero', 'number', [0, -0], true],
    ['a number and its text', 'number | string', [1, '1'], false],
    [
      'objects with the same fields in another order',
      '{ a: number; b: number }',
      [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
      true,
    ],
    [
      'objects that differ',
      '{ a: number; b: number }',
      [
        { a: 1, b: 2 },
        { a: 2, b: 1 },
      ],
      false,
    ],
    ['a list and its text', 'unknown', [[1], ' [ 1]'], false],
    ['lists with commas in their texts', 'string[]', [['a,b'], ['a', 'b']], false],
    ['the same time in two zones', 'Date', ['2026-01-01T00:00:00Z', '2026-01-01T01:00:00+01:00'], true],
    ['files', 'File', [new File(['a'], 'a'), new File(['a'], 'a')], false],
    ['null and an absent field', '{ a?: null }', [{ a: null }, {}], false],
  ];
  for (const [name, type, list, isTwice] of lists) {
    test(`@uniqueItems compares ${name}`, () => {
      const check = checkOf(`interface T {\n/** @uniqueItems */\nlist: (${type})[] }`);
      assert.equal(check({ list }), isTwice ? 'must not contain the same entry twice' : undefined);
    });
  }

  test('classes that extend each other in a circle', () => {
    const module = parseModule('class A extends B {}\nclass B extends A {}\nexport default A;');
    const scope = { path: 'x.ts', module, load: () => undefined, typeParams: new Map() };
    assert.equal(findLevels('default', scope, createEvaluator()).levels.length, 2);
  });

  test('the message for an enumeration of 5,000 values lists only ten', () => {
    const check = checkOf(`type T = ${Array.from({ length: 5000 }, (_, i) => `'value-${i}'`).join(' | ')};`);
    assert.match(check('x') ?? '', /^must be one of "value-0", .*"value-9", … \(5000 in all\)$/);
  });

  test('the check returns valid data without a copy and never changes the sent data', () => {
    const module = 'interface T { a: { b: string }; when?: Date; list: { c: number }[] }';
    const check = partsOf(module);
    const right = { a: { b: 'x' }, list: [{ c: 1 }] };
    assert.equal(check(right).data, right);
    const sent = Object.freeze({
      a: Object.freeze({ b: 'x', no: 1 }),
      when: '2026-01-01T00:00:00Z',
      list: Object.freeze([Object.freeze({ c: 1, no: 1 })]),
    });
    assert.deepEqual(check(sent).data, { a: { b: 'x' }, when: new Date('2026-01-01T00:00:00Z'), list: [{ c: 1 }] });
  });
});
