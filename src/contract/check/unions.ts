// Compiles unions, whose parts are the types between the `|`. The check finds the part for a value in up to three
// steps:
// 1. The kind of the value (such as string, list or object) selects the parts that accept this kind.
// 2. Among objects, the tag selects the part. A tag is a field that every part requires, with a different literal in
//    each part: `{ kind: 'a'; … } | { kind: 'b'; … }`.
// 3. When several parts remain, the check tries each of them.
// union-safety.ts refuses a recursive union that would need step 3.

import type { Schema } from '../contract.ts';
import { IS_DATE, IS_FILE } from '../schema/schema.ts';
import {
  FAULTS,
  type Fault,
  FORMAT_DESCRIPTIONS,
  joinAlternatives,
  KIND_DESCRIPTIONS,
  listLiterals,
  noneOfObjects,
} from './messages.ts';
import { type Check, type CheckRun, type Compiler, type Mistake, PER_STEP } from './run.ts';
import { emptyLike, setField } from './structures.ts';

interface Part {
  readonly schema: Schema;
  readonly check: Check;
}

type Kind = 'null' | 'boolean' | 'number' | 'string' | 'array' | 'object' | 'file';
const KINDS: readonly Kind[] = ['null', 'boolean', 'number', 'string', 'array', 'object', 'file'];

export function compileUnion(schemas: readonly Schema[], compiler: Compiler): Check {
  const parts = flattenParts(schemas, compiler).map((schema): Part => ({ schema, check: compiler.compile(schema) }));
  const fault = describeFault(schemas, compiler);
  const byKind = new Map<Kind, Check>();
  for (const kind of KINDS) {
    const fitting = parts.filter(({ schema }) => kindsOf(schema, compiler).has(kind));
    if (kind === 'string' && compiler.parsesText) byKind.set(kind, compileTextUnion(parts, compiler, fault));
    else if (fitting.length > 0)
      byKind.set(kind, kind === 'object' ? compileObjects(fitting, compiler, fault) : compileTrial(fitting, fault));
  }
  return (value, run) => {
    const check = byKind.get(kindOf(value));
    return check === undefined ? run.report(fault) : check(value, run);
  };
}

/** Returns the parts of a union, each once. A part that is a union itself is replaced by the parts of that union. */
export function flattenParts(schemas: readonly Schema[], { resolve }: Pick<Compiler, 'resolve'>): Schema[] {
  const seen = new Set<Schema>();
  const visit = (schema: Schema): Schema[] => {
    const target = resolve(schema);
    if (seen.has(target)) return [];
    seen.add(target);
    return target.anyOf === undefined ? [schema] : target.anyOf.flatMap(visit);
  };
  return schemas.flatMap(visit);
}

function kindOf(value: unknown): Kind {
  if (typeof value !== 'object') return typeof value as Kind;
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return value instanceof Blob ? 'file' : 'object';
}

export function kindsOf(schema: Schema, compiler: Pick<Compiler, 'resolve'>): ReadonlySet<Kind> {
  const target = compiler.resolve(schema);
  const { type } = target;
  if (target.anyOf !== undefined)
    return new Set(flattenParts([target], compiler).flatMap((part) => [...kindsOf(part, compiler)]));
  if (target.enum !== undefined || 'const' in target) return new Set((target.enum ?? [target.const]).map(kindOf));
  if (type === undefined) return new Set(target.not === undefined ? KINDS : []);
  const stringKind: Kind = Object.hasOwn(target, IS_FILE) ? 'file' : 'string';
  return new Set(
    [type].flat().map((name) => (name === 'integer' ? 'number' : name === 'string' ? stringKind : (name as Kind))),
  );
}

/** Compiles a union for a text of a query, a path or a form. Tries numbers and literals, then strings, then lists. */
function compileTextUnion(parts: readonly Part[], compiler: Compiler, fault: Fault): Check {
  const rank = ({ schema }: Part): number => {
    const kinds = kindsOf(schema, compiler);
    return kinds.has('array') ? 2 : kinds.has('string') && !('const' in schema) && schema.enum === undefined ? 1 : 0;
  };
  const possible = parts.filter(({ schema }) => [...kindsOf(schema, compiler)].some((kind) => kind !== 'null'));
  const sorted = possible.sort((a, b) => rank(a) - rank(b));
  return compileTrial(sorted, fault);
}

function compileObjects(parts: readonly Part[], compiler: Compiler, fault: Fault): Check {
  const schemas = parts.map(({ schema }) => schema);
  const tag = parts.length < 2 ? undefined : findTag(schemas, compiler);
  if (tag === undefined) return compileTrial(parts, noneOfObjects(fault, parts.length));
  const byTagValue = new Map<unknown, Check>();
  for (const { schema, check } of parts)
    for (const value of tagValuesOf(schema, tag, compiler) ?? []) byTagValue.set(value, check);
  const byTagText = compiler.parsesText
    ? new Map(Array.from(byTagValue, ([value, check]): [unknown, Check] => [String(value), check]))
    : undefined;
  const wrongTag = FAULTS.notLiteral([...byTagValue.keys()]);
  return (value, run) => {
    const tagValue = (value as Record<string, unknown>)[tag];
    const check = byTagValue.get(tagValue) ?? byTagText?.get(tagValue);
    if (check !== undefined) return check(value, run);
    return run.reportField(tag, tagValue === undefined ? FAULTS.missing : wrongTag);
  };
}

/** Finds the tag of a union: the name of a field that every part requires, with literals that no other part has. */
export function findTag(parts: readonly Schema[], compiler: Pick<Compiler, 'resolve'>): string | undefined {
  const { required } = compiler.resolve(parts[0] ?? {});
  return required?.find((name) => {
    const seen = new Set<unknown>();
    return parts.every((part) => {
      const values = tagValuesOf(part, name, compiler);
      return values?.every((value) => !seen.has(value) && seen.add(value));
    });
  });
}

/** Returns the literals that a required field can be; undefined for an optional field, and for another type. */
function tagValuesOf(part: Schema, name: string, compiler: Pick<Compiler, 'resolve'>): readonly unknown[] | undefined {
  const { required, properties } = compiler.resolve(part);
  if (!required?.includes(name) || properties === undefined) return undefined;
  const field = compiler.resolve(properties[name] as Schema);
  return 'const' in field ? [field.const] : field.enum;
}

/**
 * Compiles a check that tries every part. When no part accepts a value, the check reports only `fault`. For a single
 * part, returns the check of this part, which reports the mistakes themselves.
 */
function compileTrial(parts: readonly Part[], fault: Fault): Check {
  const [only] = parts;
  if (only !== undefined && parts.length === 1) return only.check;
  const tryParts: Check = (value, run) => {
    let result: unknown;
    let fits = false;
    let inexactNumber: unknown;
    for (const { check } of parts) {
      run.spend(1);
      const converted = tryPart(check, value, run);
      if (converted === FAILED) continue;
      // The text `007` would lose its zeros as the number 7. So the number is used only when no later part, such as
      // `string`, accepts the text unchanged.
      if (typeof converted === 'number' && typeof value === 'string' && String(converted) !== value) {
        inexactNumber ??= converted;
        continue;
      }
      if (inexactNumber !== undefined && converted !== value) continue;
      // The check of `{ a }` drops a field `b`, and the check of `{ a, b }` keeps it. A value that fits both must keep
      // its `b`, so the results are merged.
      result = fits ? merge(result, converted, run) : converted;
      fits = true;
      if (typeof value !== 'object' || value === null) break;
    }
    return fits ? result : (inexactNumber ?? run.report(fault));
  };
  return (value, run) => {
    const { alsoDeclared } = run;
    if (alsoDeclared === undefined || !isStructure(value)) return tryParts(value, run);
    // The value may fit several parts. Each field that one of them declares is declared.
    run.alsoDeclared = undefined;
    const result = tryParts(value, run);
    run.alsoDeclared = alsoDeclared;
    reportDropped(value, result, run, alsoDeclared);
    return result;
  };
}

/** Reports the fields that the result of a check lacks, at any depth. A value that the check returns lacks none. */
function reportDropped(value: unknown, result: unknown, run: CheckRun, alsoDeclared: ReadonlySet<string>): void {
  if (value === result || !isStructure(value) || !isStructure(result)) return;
  for (const key of Object.keys(value)) {
    run.spend(1 / PER_STEP.entries);
    if (run.hasMaxMistakes) return;
    const mistakesBefore = run.mistakes.length;
    if (Object.hasOwn(result, key)) {
      reportDropped(value[key], result[key], run, alsoDeclared);
      run.prefixPointers(key, mistakesBefore);
    } else if (!alsoDeclared.has(key)) run.reportField(key, FAULTS.undeclared);
  }
}

const FAILED = Symbol('failed');

/** Returns FAILED when the check of a part reports mistakes. These mistakes are discarded. */
function tryPart(check: Check, value: unknown, run: CheckRun): unknown {
  const mistakesBefore: Mistake[] = run.mistakes;
  run.mistakes = [];
  const converted = check(value, run);
  const hasFailed = run.mistakes.length > 0;
  run.mistakes = mistakesBefore;
  return hasFailed ? FAILED : converted;
}

/** Merges the results of two parts for one value. A merged object has every field of both results. */
function merge(a: unknown, b: unknown, run: CheckRun): unknown {
  if (a === b || !isStructure(a) || !isStructure(b)) return a;
  run.spend((Array.isArray(a) ? a : Object.keys(a)).length);
  if (Array.isArray(a)) return Array.isArray(b) ? a.map((item, i) => merge(item, b[i], run)) : a;
  const merged = emptyLike(a);
  for (const key of Object.keys(b)) setField(merged, key, b[key]);
  for (const key of Object.keys(a)) setField(merged, key, Object.hasOwn(b, key) ? merge(a[key], b[key], run) : a[key]);
  return merged;
}

function isStructure(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !(value instanceof Date) && !(value instanceof Blob);
}

function describeFault(schemas: readonly Schema[], compiler: Compiler): Fault {
  const descriptions = new Set<string>();
  const types = new Set<string>();
  const literals: unknown[] = [];
  for (const schema of schemas) {
    const target = compiler.resolve(schema);
    if (target.enum !== undefined || 'const' in target) {
      const ownLiterals = target.enum ?? [target.const];
      descriptions.add(listLiterals(ownLiterals));
      literals.push(...ownLiterals);
    } else
      for (const kind of kindsOf(target, compiler)) {
        const type = kind === 'number' && target.type === 'integer' ? 'integer' : kind;
        const isDate = type === 'string' && target[IS_DATE] === true;
        descriptions.add(isDate ? (FORMAT_DESCRIPTIONS['date-time'] as string) : KIND_DESCRIPTIONS[type]);
        types.add(type);
      }
  }
  return FAULTS.notInUnion(joinAlternatives([...descriptions]), [...types], literals);
}
