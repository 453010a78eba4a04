// A constraint stays with its field in each type that is made from the type of the field: Partial, Pick, T['key'],
// mapped types and such, at random within each other. All texts, numbers and lists of the declarations have one.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Schema } from '../../src/contract/contract.ts';
import { createSchemaWriter } from '../../src/contract/schema/schema.ts';
import { parseModule } from '../../src/contract/source/parse-module.ts';
import { Unsupported } from '../../src/contract/source/source-error.ts';
import { createEvaluator } from '../../src/contract/types/evaluate.ts';
import { createRandom } from './oracle/values.ts';

const DECLARATIONS = `
/** @minLength 5 */ type S = string;
/** @minimum 100 */ type N = number;
/** @minItems 2 */ type L<T> = T[];
interface Base {
  /** @minLength 5 */
  a: string;
  /** @minimum 100 */
  b?: number | null;
  /** @minItems 2 */
  c: S[];
  /** @minLength 5
   *  @minimum 100 */
  d?: string | number;
  e: { /** @minLength 5 */ a: string; y?: N };
}
class Plain { /** @minLength 5 */ a!: string; /** @minimum 100 */ g?: number }
type Either = { kind: 'one'; a: S; /** @minimum 100 */ v: number } | { kind: 'two'; a?: S; w: L<N> };
interface Wide extends Omit<Base, 'c'> { /** @minLength 7 */ a: string; z: Base['c'] }
interface Tree<T> { a: T; /** @minItems 2 */ list: T[]; next?: Tree<T> | null }
type Each<T> = { [K in keyof T]: T[K] };
type Maybe<T> = { [K in keyof T]?: T[K] };
type OrNull<T> = { [K in keyof T]: T[K] | null };
type Filled<T> = { readonly [K in keyof T]-?: T[K] };
type Deep<T> = { [K in keyof T]?: Deep<T[K]> };
type Chosen<T, K extends keyof T> = { [P in K]: T[P] };
type Get<T, K extends keyof T> = T[K];
type Merged<T, U> = Omit<T, keyof U> & U;
`;
const OBJECTS = ['Base', 'Plain', 'Either', 'Wide', "Base['e']", 'Tree<S>'];

function randomType(random: () => number) {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  function object(depth: number): string {
    if (depth === 0) return pick(OBJECTS);
    const [o, t] = [() => object(depth - 1), () => type(depth - 1)];
    const known = pick(OBJECTS);
    const one = pick(['Partial', 'Required', 'Readonly', 'Each', 'Maybe', 'OrNull', 'Filled', 'Deep', 'NonNullable']);
    return pick([
      () => `${one}<${o()}>`,
      () => `${one}<${o()}>`,
      () => `${pick(['Pick', 'Chosen'])}<${known}, 'a'>`,
      () => `Omit<${o()}, 'kind'>`,
      () => `(${o()}) & (${o()})`,
      () => pick(['Base & { a: string }', '{ a: string } & Base']),
      () => `Merged<${known}, ${o()}>`,
      () => `Tree<${t()}>`,
      () => `{ q: ${t()}; r?: ${t()} }`,
      () => `Record<${pick(['string', 'number', "'q' | 'r'"])}, ${t()}>`,
      () => `{ [K in keyof ${known}]${pick(['', '?', '-?'])}: ${known}[K] }`,
    ])();
  }
  function type(depth: number): string {
    if (depth === 0) return pick(['S', 'N', "Base['c']", 'L<S>', ...OBJECTS]);
    const [o, t] = [() => object(depth - 1), () => type(depth - 1)];
    return pick([
      o,
      o,
      () => `${pick(OBJECTS)}['a']`,
      () => `Get<${pick(OBJECTS)}, 'a'>`,
      () => pick(['Base[keyof Base]', "Base['c'][number]", "NonNullable<Base['b' | 'd']>"]),
      () => `L<${t()}>`,
      () => `[S, ${t()}]`,
      () => `(${t()}) | ${pick(['null', t()])}`,
      () => 'S & { __brand: 1 }',
    ])();
  }
  return type(3);
}

const LEAST: Readonly<Record<string, [string, number]>> = {
  string: ['minLength', 5],
  number: ['minimum', 100],
  array: ['minItems', 2],
};

/** Returns the parts of a schema that have lost their constraint, and counts those that have it. */
function listLost(schema: Schema, count: { kept: number }): Schema[] {
  const { items, prefixItems = [], properties, additionalProperties, patternProperties, anyOf = [] } = schema;
  const below = [items, additionalProperties, ...prefixItems, ...anyOf];
  const named = [properties, patternProperties].flatMap((fields) => Object.values(fields ?? {}));
  const lost = [...below, ...named].flatMap((part) => (typeof part === 'object' ? listLost(part, count) : []));
  for (const type of [schema.type].flat()) {
    const [keyword, least] = (prefixItems.length === 0 && LEAST[type ?? '']) || [];
    if (keyword === undefined || least === undefined) continue;
    if (Number(schema[keyword]) >= least) count.kept++;
    else lost.push(schema);
  }
  return lost;
}

test('a constraint stays in all types that are made from the type of its field', () => {
  const random = createRandom(Number(process.env.SEED ?? 3));
  const texts = Array.from({ length: 1000 }, () => randomType(random));
  const module = parseModule(DECLARATIONS + texts.map((text, i) => `type Made${i} = ${text};`).join('\n'));
  const scope = { path: '/x.ts', module, load: () => undefined, typeParams: new Map() };
  const count = { kept: 0, refused: 0 };
  for (const [i, text] of texts.entries()) {
    const writer = createSchemaWriter();
    try {
      writer.write(createEvaluator().evaluate({ kind: 'name', name: `Made${i}`, args: [], at: 0 }, scope));
    } catch (error) {
      if (!(error instanceof Unsupported)) throw error;
      count.refused++;
      continue;
    }
    const lost = Object.values(writer.defs).flatMap((schema) => listLost(schema, count));
    assert.deepEqual(lost, [], text);
  }
  assert.ok(count.kept > 2_000 && count.refused < 10, JSON.stringify(count));
});
