// Checks of unions. The kind of the value decides first, then a field by whose value the parts can be told apart; only
// what is left is tried. A recursive union that would have to be tried is refused when its file is loaded
// (union-safety.ts).

import type { Schema } from '../contract.ts';
import { IS_DATE, IS_FILE } from '../schema/schema.ts';
import { LIMITS } from '../types/limits.ts';
import type { Check, Compiler, Mistake, Run } from './run.ts';
import { FORMAT_NAMES, listed } from './values.ts';

interface Part {
  readonly schema: Schema;
  readonly check: Check;
}

type Kind = 'null' | 'boolean' | 'number' | 'string' | 'array' | 'object' | 'file';
const KINDS: readonly Kind[] = ['null', 'boolean', 'number', 'string', 'array', 'object', 'file'];

export function compileUnion(schemas: readonly Schema[], compiler: Compiler): Check {
  const parts = partsOf(schemas, compiler).map((schema): Part => ({ schema, check: compiler.compile(schema) }));
  const message = `must be ${describe(schemas, compiler)}`;
  const byKind = new Map<Kind, Check>();
  for (const kind of KINDS) {
    const fitting = parts.filter(({ schema }) => kindsOf(schema, compiler).has(kind));
    if (kind === 'string' && compiler.texts) byKind.set(kind, firstText(parts, compiler, message));
    else if (fitting.length > 0)
      byKind.set(kind, kind === 'object' ? objects(fitting, compiler, message) : anyOf(fitting, message));
  }
  return (value, run) => {
    const check = byKind.get(kindOf(value));
    return check === undefined ? run.wrong(message) : check(value, run);
  };
}

/** The parts of a union, each once; of one that is part of it by name, its own. */
export function partsOf(schemas: readonly Schema[], { resolve }: Pick<Compiler, 'resolve'>): Schema[] {
  const seen = new Set<Schema>();
  const visit = (schema: Schema): Schema[] => {
    const target = resolve(schema);
    if (seen.has(target)) return [];
    seen.add(target);
    return target.anyOf === undefined ? [schema] : (target.anyOf as Schema[]).flatMap(visit);
  };
  return schemas.flatMap(visit);
}

function kindOf(value: unknown): Kind {
  if (typeof value !== 'object') return typeof value as Kind;
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return value instanceof Blob ? 'file' : 'object';
}

/** The kinds of values that a schema can take. */
export function kindsOf(schema: Schema, compiler: Pick<Compiler, 'resolve'>): ReadonlySet<Kind> {
  const of = compiler.resolve(schema);
  if (of.anyOf !== undefined) return new Set(partsOf([of], compiler).flatMap((part) => [...kindsOf(part, compiler)]));
  if (of.enum !== undefined || 'const' in of) return new Set(((of.enum as unknown[]) ?? [of.const]).map(kindOf));
  if (of.type === undefined) return new Set(of.not === undefined ? KINDS : []);
  const text: Kind = Object.hasOwn(of, IS_FILE) ? 'file' : 'string';
  return new Set(
    [of.type].flat().map((type) => (type === 'integer' ? 'number' : type === 'string' ? text : (type as Kind))),
  );
}

/** Of a text of a query or a form: what it can be read as comes first, a string after that, a list of it last. */
function firstText(parts: readonly Part[], compiler: Compiler, message: string): Check {
  const rank = ({ schema }: Part): number => {
    const kinds = kindsOf(schema, compiler);
    return kinds.has('array') ? 2 : kinds.has('string') && !('const' in schema) && schema.enum === undefined ? 1 : 0;
  };
  const readable = parts.filter(({ schema }) => [...kindsOf(schema, compiler)].some((kind) => kind !== 'null'));
  return anyOf(
    readable.sort((a, b) => rank(a) - rank(b)),
    message,
  );
}

function objects(parts: readonly Part[], compiler: Compiler, message: string): Check {
  const schemas = parts.map(({ schema }) => schema);
  const tag = parts.length < 2 ? undefined : tagOf(schemas, compiler);
  if (tag === undefined) return anyOf(parts, message);
  const byValue = new Map<unknown, Check>();
  for (const { schema, check } of parts)
    for (const value of tagValues(schema, tag, compiler) ?? []) byValue.set(value, check);
  const wrongTag = `must be ${listed([...byValue.keys()])}`;
  return (value, run) => {
    const given = (value as Record<string, unknown>)[tag];
    const check =
      byValue.get(given) ?? (compiler.texts && typeof given === 'string' ? byText(byValue, given) : undefined);
    if (check !== undefined) return check(value, run);
    const from = run.mistakes.length;
    run.wrong(given === undefined ? 'is missing' : wrongTag);
    run.within(tag, from);
    return undefined;
  };
}

function byText(byValue: ReadonlyMap<unknown, Check>, text: string): Check | undefined {
  for (const [value, check] of byValue) if (String(value) === text) return check;
  return undefined;
}

/** The field by whose value the parts of a union can be told from each other. */
export function tagOf(parts: readonly Schema[], compiler: Pick<Compiler, 'resolve'>): string | undefined {
  const [first] = parts;
  const required = (first === undefined ? undefined : compiler.resolve(first).required) ?? [];
  return (required as string[]).find((name) => {
    const seen = new Set<unknown>();
    return parts.every((part) => {
      const values = tagValues(part, name, compiler);
      return values?.every((value) => !seen.has(value) && seen.add(value));
    });
  });
}

function tagValues(part: Schema, name: string, compiler: Pick<Compiler, 'resolve'>): readonly unknown[] | undefined {
  const { required, properties } = compiler.resolve(part) as {
    required?: string[];
    properties?: Record<string, Schema>;
  };
  if (!required?.includes(name) || properties === undefined) return undefined;
  const field = compiler.resolve(properties[name] as Schema);
  return 'const' in field ? [field.const] : (field.enum as unknown[] | undefined);
}

/** One part is checked as if there were no union, so that its mistakes are told; several are tried. */
function anyOf(parts: readonly Part[], message: string): Check {
  const [only] = parts;
  if (only !== undefined && parts.length === 1) return only.check;
  return (value, run) => {
    let result: unknown;
    let fits = false;
    let inexact: unknown;
    for (const { check } of parts) {
      if (++run.tries > LIMITS.tries) return run.wrong('is too ambiguous to be checked');
      const made = attempt(check, value, run);
      if (made === FAILED) continue;
      // `007` stays a text where a string may stand: as a number it would lose how it was written.
      if (typeof made === 'number' && typeof value === 'string' && String(made) !== value) {
        inexact ??= made;
        continue;
      }
      if (inexact !== undefined && made !== value) continue;
      // What one part drops another may have declared: `{ a } | { a, b }`.
      result = fits ? merge(result, made) : made;
      fits = true;
      if (typeof value !== 'object' || value === null) break;
    }
    return fits ? result : (inexact ?? run.wrong(message));
  };
}

const FAILED = Symbol('failed');

function attempt(check: Check, value: unknown, run: Run): unknown {
  const before: Mistake[] = run.mistakes;
  run.mistakes = [];
  const made = check(value, run);
  const failed = run.mistakes.length > 0;
  run.mistakes = before;
  return failed ? FAILED : made;
}

/** Both were made of one value: all fields that either kept. */
function merge(a: unknown, b: unknown): unknown {
  if (a === b || !isStructure(a) || !isStructure(b)) return a;
  if (Array.isArray(a)) return Array.isArray(b) ? a.map((item, i) => merge(item, b[i])) : a;
  const made = Object.assign(Object.getPrototypeOf(a) === null ? Object.setPrototypeOf({}, null) : {}, b) as Record<
    string,
    unknown
  >;
  for (const key of Object.keys(a)) made[key] = key in b ? merge(a[key], b[key]) : a[key];
  return made;
}

function isStructure(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !(value instanceof Date) && !(value instanceof Blob);
}

const NAMES: Readonly<Record<Kind, string>> = {
  null: 'null',
  boolean: 'true or false',
  number: 'a number',
  string: 'a string',
  array: 'a list',
  object: 'an object',
  file: 'a file',
};

function nameOf(kind: Kind, { type, [IS_DATE]: isDate }: Schema & { [IS_DATE]?: true }): string {
  if (kind === 'string' && isDate) return FORMAT_NAMES['date-time'] as string;
  return kind === 'number' && type === 'integer' ? 'a whole number' : NAMES[kind];
}

/** `a string or null`, literals by their values. */
function describe(schemas: readonly Schema[], compiler: Compiler): string {
  const found = new Set<string>();
  for (const schema of schemas) {
    const of = compiler.resolve(schema);
    if (of.enum !== undefined) found.add(listed(of.enum as unknown[]));
    else if ('const' in of) found.add(listed([of.const]));
    else for (const kind of kindsOf(of, compiler)) found.add(nameOf(kind, of));
  }
  const all = [...found];
  return all.length > 10 ? `one of ${all.length} kinds of value` : all.join(' or ') || 'left out';
}
