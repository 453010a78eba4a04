// Checks of objects and lists. They copy only where something changes: a field dropped, a text that became a Date.

import type { Schema } from '../contract.ts';
import { isNumberName } from '../types/formats.ts';
import { LIMITS } from '../types/limits.ts';
import type { Check, Compiler, Run } from './run.ts';

type Fields = Readonly<Record<string, unknown>>;

/** A file of a form and the bytes of a body are no objects. */
const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Blob);

export function compileArray(schema: Schema, { compile, texts }: Compiler): Check {
  type Bounds = { minItems?: number; maxItems?: number; uniqueItems?: boolean };
  const { minItems = 0, maxItems = Infinity, uniqueItems = false } = schema as Bounds;
  const first = ((schema.prefixItems ?? []) as Schema[]).map(compile);
  const rest = schema.items === undefined || schema.items === false ? undefined : compile(schema.items as Schema);
  const most = schema.items === false ? first.length : maxItems;
  return (value, run) => {
    let list: readonly unknown[];
    if (Array.isArray(value)) list = value;
    else if (texts && value !== undefined) list = [value];
    else return run.wrong('must be a list');
    if (list.length < minItems)
      return run.wrong(`must have at least ${minItems} ${minItems === 1 ? 'entry' : 'entries'}`);
    if (list.length > most) return run.wrong(`must have at most ${most} ${most === 1 ? 'entry' : 'entries'}`);
    const before = run.mistakes.length;
    let made: unknown[] | undefined;
    for (let i = 0; i < list.length; i++) {
      const check = i < first.length ? first[i] : rest;
      if (check === undefined) continue;
      const from = run.mistakes.length;
      const item = list[i];
      const changed = check(item, run);
      if (run.mistakes.length > from) {
        run.within(i, from);
        if (run.isFull) return undefined;
      } else if (changed !== item) {
        made ??= list.slice();
        made[i] = changed;
      }
    }
    if (uniqueItems && run.mistakes.length === before) refuseTwice(made ?? list, run);
    return made ?? list;
  };
}

function refuseTwice(list: readonly unknown[], run: Run): void {
  const keys = list.map((item) => (item instanceof Blob ? item : textOf(item, 0)));
  if (keys.includes(undefined)) run.wrong(`is nested deeper than ${LIMITS.depth}`);
  else if (new Set(keys).size < list.length) run.wrong('must have no entry twice');
}

/** Equal for what is equal, whatever the order of its fields; a string has quotes in it. Undefined: too deep. */
function textOf(value: unknown, depth: number): string | undefined {
  if (typeof value !== 'object' || value === null || value instanceof Date) return ` ${JSON.stringify(value)}`;
  if (depth > LIMITS.depth) return undefined;
  const parts = Array.isArray(value)
    ? value.map((item) => textOf(item, depth + 1))
    : Object.entries(value)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .flatMap(([name, item]) => [JSON.stringify(name), textOf(item, depth + 1)]);
  if (parts.includes(undefined)) return undefined;
  return Array.isArray(value) ? ` [${parts.join()}]` : ` {${parts.join()}}`;
}

export function compileObject(schema: Schema, { compile, texts }: Compiler): Check {
  const { properties, additionalProperties, patternProperties } = schema as {
    properties?: Record<string, Schema>;
    additionalProperties?: Schema | true;
    patternProperties?: Record<string, Schema>;
  };
  // An index by number is the one pattern that there is.
  const [byNumber] = Object.values(patternProperties ?? {});
  const index = byNumber ?? additionalProperties;
  const names = Object.keys(properties ?? {});
  const checks = names.map((name) => compile((properties as Record<string, Schema>)[name] as Schema));
  const required = new Set((schema.required ?? []) as string[]);
  const isRequired = names.map((name) => required.has(name));
  // `toString` and the like are there without having been sent.
  const isInherited = names.map((name) => name in Object.prototype);
  const known = new Set(names);
  const other = typeof index === 'object' ? compile(index) : undefined;
  // A schema without properties says nothing of the fields.
  const keepsOthers = index !== undefined || properties === undefined;
  const isMadeAnew = texts && !keepsOthers;

  return (value, run) => {
    if (!isObject(value)) return run.wrong('must be an object');
    const fields = value;
    const before = run.mistakes.length;
    // Nearly every field of texts changes, so their object is made anew at once. Their parser has counted the fields.
    const anew: Record<string, unknown> | undefined = isMadeAnew ? Object.create(null) : undefined;
    let changed: unknown[] | undefined;
    let present = 0;
    for (let i = 0; i < names.length; i++) {
      const name = names[i] as string;
      const field = isInherited[i] && !Object.hasOwn(fields, name) ? undefined : fields[name];
      if (field === undefined) {
        if (isRequired[i]) run.missing(name);
        continue;
      }
      present++;
      const from = run.mistakes.length;
      const made = (checks[i] as Check)(field, run);
      if (run.mistakes.length > from) run.within(name, from);
      else if (anew !== undefined) anew[name] = made;
      else if (made !== field) {
        changed ??= [];
        changed[i] = made;
      }
    }
    if (anew !== undefined) return anew;
    let sent = 0;
    for (const _ in fields)
      if (++sent > LIMITS.properties) return run.wrong(`must have at most ${LIMITS.properties} fields`);
    if (sent === present && changed === undefined) return value;
    if (sent > present && other !== undefined) return withOthers(fields, changed, run, before);
    if (sent > present && keepsOthers && changed === undefined) return value;
    return run.mistakes.length > before ? undefined : declaredOf(fields, changed, keepsOthers);
  };

  /** What was declared, and with `all` the rest as it was sent. */
  function declaredOf(fields: Fields, changed: readonly unknown[] | undefined, all: boolean): Record<string, unknown> {
    const made = emptyLike(fields);
    if (all) for (const name of Object.keys(fields)) if (!known.has(name)) put(made, name, fields[name]);
    for (let i = 0; i < names.length; i++) {
      const name = names[i] as string;
      if (isInherited[i] && !Object.hasOwn(fields, name)) continue;
      const field = changed?.[i] ?? fields[name];
      if (field !== undefined) made[name] = field;
    }
    return made;
  }

  function withOthers(fields: Fields, changed: readonly unknown[] | undefined, run: Run, before: number): unknown {
    const made = declaredOf(fields, changed, false);
    let differs = changed !== undefined;
    for (const name of Object.keys(fields)) {
      if (known.has(name)) continue;
      if (byNumber !== undefined && !isNumberName(name)) {
        differs = true;
        continue;
      }
      const from = run.mistakes.length;
      const checked = (other as Check)(fields[name], run);
      if (run.mistakes.length > from) {
        run.within(name, from);
        if (run.isFull) return undefined;
      } else put(made, name, checked);
      differs ||= checked !== fields[name];
    }
    return run.mistakes.length > before ? undefined : differs ? made : fields;
  }
}

/** Queries and forms have no prototype, and what becomes of them has none either. */
function emptyLike(fields: Fields): Record<string, unknown> {
  return Object.getPrototypeOf(fields) === null ? Object.setPrototypeOf({}, null) : {};
}

/** Assigning `__proto__` would set the prototype of an object that has one. */
function put(into: Record<string, unknown>, name: string, value: unknown): void {
  if (name === '__proto__')
    Object.defineProperty(into, name, { value, enumerable: true, configurable: true, writable: true });
  else into[name] = value;
}
