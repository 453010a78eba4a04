// Compiles the schemas of objects and lists. The checks copy a value only when something in it changes: a field is
// dropped, or a text is converted to a Date.

import type { Fields } from '../../base/values.ts';
import type { Schema } from '../contract.ts';
import { isNumberName } from '../types/formats.ts';
import { LIMITS } from '../types/limits.ts';
import { MESSAGES } from './messages.ts';
import type { Check, Compiler, Run } from './run.ts';

/** Whether a value is an object with fields. A Blob is not: it is a file of a form, or a body of bytes. */
const hasFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Blob);

export function compileArray(schema: Schema, { compile, readsText }: Compiler): Check {
  const { minItems = 0, maxItems = Infinity, uniqueItems = false, prefixItems = [], items } = schema;
  const prefixChecks = prefixItems.map(compile);
  const restCheck = typeof items === 'object' ? compile(items) : undefined;
  const maxLength = items === false ? prefixChecks.length : maxItems;
  return (value, run) => {
    let list: readonly unknown[];
    if (Array.isArray(value)) list = value;
    // A query that has the key of a list only once has a plain text. The text becomes a list of one entry.
    else if (readsText && value !== undefined) list = [value];
    else return run.report(MESSAGES.notList);
    if (list.length < minItems) return run.report(MESSAGES.tooFew(minItems));
    if (list.length > maxLength) return run.report(MESSAGES.tooMany(maxLength));
    const mistakeCountBefore = run.mistakes.length;
    let copy: unknown[] | undefined;
    for (let i = 0; i < list.length; i++) {
      const check = i < prefixChecks.length ? prefixChecks[i] : restCheck;
      if (check === undefined) continue;
      const firstOwnMistake = run.mistakes.length;
      const item = list[i];
      const converted = check(item, run);
      if (run.mistakes.length > firstOwnMistake) {
        run.prefixPointers(i, firstOwnMistake);
        if (run.hasMaxMistakes) return undefined;
      } else if (converted !== item) {
        copy ??= list.slice();
        copy[i] = converted;
      }
    }
    if (uniqueItems && run.mistakes.length === mistakeCountBefore) reportDuplicates(copy ?? list, run);
    return copy ?? list;
  };
}

function reportDuplicates(list: readonly unknown[], run: Run): void {
  const keys = list.map((item) => (item instanceof Blob ? item : canonicalText(item, 0)));
  if (keys.includes(undefined)) run.report(MESSAGES.tooDeep);
  else if (new Set(keys).size < list.length) run.report(MESSAGES.duplicate);
}

/** Writes equal values as the same text, in any order of fields. Returns undefined for a value nested too deep. */
function canonicalText(value: unknown, depth: number): string | undefined {
  if (typeof value !== 'object' || value === null || value instanceof Date) return ` ${JSON.stringify(value)}`;
  if (depth > LIMITS.depth) return undefined;
  const parts = Array.isArray(value)
    ? value.map((item) => canonicalText(item, depth + 1))
    : Object.entries(value)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .flatMap(([name, item]) => [JSON.stringify(name), canonicalText(item, depth + 1)]);
  if (parts.includes(undefined)) return undefined;
  return Array.isArray(value) ? ` [${parts.join()}]` : ` {${parts.join()}}`;
}

export function compileObject(schema: Schema, { compile, readsText }: Compiler): Check {
  const { properties, additionalProperties, patternProperties } = schema;
  // schema.ts writes `patternProperties` only for an index signature by number, `{ [id: number]: T }`.
  const [numberIndexSchema] = Object.values(patternProperties ?? {});
  const othersSchema = numberIndexSchema ?? additionalProperties;
  const names = Object.keys(properties ?? {});
  const checks = Object.values(properties ?? {}).map(compile);
  const required = new Set(schema.required);
  const isRequired = names.map((name) => required.has(name));
  // Every object inherits names such as `toString`, even when the client did not send them.
  const isInherited = names.map((name) => name in Object.prototype);
  const declared = new Set(names);
  const otherCheck = typeof othersSchema === 'object' ? compile(othersSchema) : undefined;
  // A schema without `properties` allows any fields.
  const keepsOthers = othersSchema !== undefined || properties === undefined;
  const alwaysCopies = readsText && !keepsOthers;

  return (fields, run) => {
    if (!hasFields(fields)) return run.report(MESSAGES.notObject);
    const mistakeCountBefore = run.mistakes.length;
    // Nearly every field that comes from text is converted, so such an object is copied from the start. Its fields are
    // not counted here, because the parser of the query or the form has already limited their number.
    const copy: Record<string, unknown> | undefined = alwaysCopies ? Object.create(null) : undefined;
    // The converted fields that differ from the sent fields, by their index in `names`.
    let changed: unknown[] | undefined;
    let presentCount = 0;
    for (let i = 0; i < names.length; i++) {
      const name = names[i] as string;
      const field = isInherited[i] && !Object.hasOwn(fields, name) ? undefined : fields[name];
      if (field === undefined) {
        if (isRequired[i]) run.reportMissing(name);
        continue;
      }
      presentCount++;
      const firstOwnMistake = run.mistakes.length;
      const converted = (checks[i] as Check)(field, run);
      if (run.mistakes.length > firstOwnMistake) run.prefixPointers(name, firstOwnMistake);
      else if (copy !== undefined) copy[name] = converted;
      else if (converted !== field) {
        changed ??= [];
        changed[i] = converted;
      }
    }
    if (copy !== undefined) return copy;
    let sentCount = 0;
    for (const _ in fields) if (++sentCount > LIMITS.properties) return run.report(MESSAGES.tooManyFields);
    if (sentCount === presentCount && changed === undefined) return fields;
    if (sentCount > presentCount && otherCheck !== undefined)
      return checkOthers(fields, changed, run, mistakeCountBefore);
    if (sentCount > presentCount && keepsOthers && changed === undefined) return fields;
    return run.mistakes.length > mistakeCountBefore ? undefined : copyFields(fields, changed, keepsOthers);
  };

  /** Copies the declared fields. With `includesOthers`, also copies the other fields as they were sent. */
  function copyFields(
    fields: Fields,
    changed: readonly unknown[] | undefined,
    includesOthers: boolean,
  ): Record<string, unknown> {
    const copy = emptyLike(fields);
    if (includesOthers)
      for (const name of Object.keys(fields)) if (!declared.has(name)) setField(copy, name, fields[name]);
    for (let i = 0; i < names.length; i++) {
      const name = names[i] as string;
      if (isInherited[i] && !Object.hasOwn(fields, name)) continue;
      const field = changed?.[i] ?? fields[name];
      if (field !== undefined) copy[name] = field;
    }
    return copy;
  }

  /** Checks the fields that only the index signature declares. Returns the object with all converted fields. */
  function checkOthers(
    fields: Fields,
    changed: readonly unknown[] | undefined,
    run: Run,
    mistakeCountBefore: number,
  ): unknown {
    const copy = copyFields(fields, changed, false);
    let differs = changed !== undefined;
    for (const name of Object.keys(fields)) {
      if (declared.has(name)) continue;
      if (numberIndexSchema !== undefined && !isNumberName(name)) {
        differs = true;
        continue;
      }
      const firstOwnMistake = run.mistakes.length;
      const converted = (otherCheck as Check)(fields[name], run);
      if (run.mistakes.length > firstOwnMistake) {
        run.prefixPointers(name, firstOwnMistake);
        if (run.hasMaxMistakes) return undefined;
      } else setField(copy, name, converted);
      differs ||= converted !== fields[name];
    }
    return run.mistakes.length > mistakeCountBefore ? undefined : differs ? copy : fields;
  }
}

/** Creates the object for a copy. A query or form has no prototype, and its copy gets none either. */
function emptyLike(fields: Fields): Record<string, unknown> {
  return Object.getPrototypeOf(fields) === null ? Object.setPrototypeOf({}, null) : {};
}

/** Sets a field with any name. An assignment to `__proto__` would replace the prototype of an object that has one. */
function setField(target: Record<string, unknown>, name: string, value: unknown): void {
  if (name === '__proto__')
    Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true });
  else target[name] = value;
}
