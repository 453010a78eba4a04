// Compares our checks with TypeScript's checker, value by value. Every difference must have one of the reasons in
// oracle/types.ts. test/slow/more-rounds.slow.ts compares more values and types.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { randomTypes } from './oracle/random-types.ts';
import { compareTypes, createChecks, REASONS, type TypeResult } from './oracle/types.ts';

const SAMPLES = join(import.meta.dirname, 'samples');

/** The samples that are refused, with the reason. Any other refusal is a defect. */
const REFUSED: Readonly<Record<string, RegExp>> = {
  A097: /private members/,
  A116: /kind of key/,
  A117: /kind of key/,
  A119: /conditional type/,
  A120: /a function/,
  A121: /a method/,
  A122: /a Map has no JSON form/,
  A123: /bigint has no JSON form/,
  A124: /JSON.parse is not a constant/,
  A138: /must be a union of literals/,
  A139: /must be a union of literals/,
  A142: /mapped type with `as`/,
  A159: /symbol has no JSON form/,
  A163: /a value of the enum Flag is not a literal/,
  A164: /CAST is not a constant/,
  A165: /FIRST is not a constant/,
  A166: /LENGTH is not a constant/,
  A167: /CHOICE is not a constant/,
  A168: /MET is not a constant/,
  A201: /a union with an index signature/,
};

function judge(results: readonly TypeResult[]): { types: number; values: number } {
  assert.deepEqual(
    results.flatMap(({ unexplained }) => unexplained),
    [],
  );
  for (const { explained } of results) for (const reason of Object.keys(explained)) assert.ok(reason in REASONS);
  const understood = results.filter(({ refused }) => refused === undefined);
  return { types: understood.length, values: understood.reduce((sum, { values }) => sum + values, 0) };
}

test('the checks of hand-written types accept the same values as TypeScript', () => {
  const file = join(SAMPLES, 'samples.ts');
  const declared = readFileSync(file, 'utf8').matchAll(/^export (?:type|interface|class) (A\d+)(?![<\w])/gm);
  const names = [...new Set([...declared].map(([, name]) => name as string))].filter(
    (name) => name !== 'A059' && name !== 'A062',
  );
  const count = Number(process.env.VALUES ?? 5);
  const results = compareTypes(file, names, count, 42);
  const { types, values } = judge(results);
  assert.ok(types >= 140 && values >= 150 * count, `${types} types, ${values} values`);
  for (const { name, refused } of results) {
    if (refused !== undefined || REFUSED[name] !== undefined)
      assert.match(refused ?? 'understood', REFUSED[name] ?? /^$/, name);
  }
});

test('a numeric enum accepts exactly the values of its members', () => {
  const file = join(SAMPLES, 'samples.ts');
  const check = createChecks(file, readFileSync(file, 'utf8'))('A151');
  assert.ok(typeof check === 'function');
  assert.deepEqual(
    [-1, 0, 1, 2, 4, 5, 6, 7, 'Red', null].filter((value) => check(value) === undefined),
    [0, 5, 6],
  );
});

test('the checks of random types accept the same values as TypeScript', () => {
  const count = Number(process.env.RANDOM_TYPES ?? 30);
  const seed = Number(process.env.SEED ?? 7);
  const { source, names } = randomTypes(count, seed);
  const file = join(SAMPLES, `random-${seed}.ts`);
  const results = compareTypes(file, names, 25, seed, (path) => (path === file ? source : readFileSync(path, 'utf8')));
  const { types, values } = judge(results);
  assert.ok(types >= count * 0.9 && values >= count * 25, `${types} types, ${values} values`);
});
