// Compiles the schemas of objects and lists to checks. A check copies a value only when the result differs from it: a
// field is dropped, or a text becomes a `Date`. A field is undeclared when the type does not name the field.

import type { Fields } from '../../base/values.ts';
import type { Schema } from '../contract.ts';
import { FILLS_DEFAULT } from '../schema/schema.ts';
import { LIMITS } from '../types/check-cost.ts';
import { isNumberName } from '../types/formats.ts';
import { FAULTS } from './messages.ts';
import { type Check, CheckRun, type Compiler, PER_STEP } from './run.ts';

/** Whether a value is an object with fields. A Blob is not: it is a file of a form, or a body of bytes. */
const hasFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Blob);

export function compileArray(schema: Schema, { compile, parsesText }: Compiler): Check {
  const { minItems = 0, maxItems = Infinity, uniqueItems = false, prefixItems = [], items } = schema;
  const prefixChecks = prefixItems.map(compile);
  const restCheck = typeof items === 'object' ? compile(items) : undefined;
  const maxLength = items === false ? prefixChecks.length : maxItems;
  return (value, run) => {
    let list: readonly unknown[];
    if (Array.isArray(value)) list = value;
    // `?tag=a&tag=b` gives the list ['a', 'b'], but `?tag=a` gives the text 'a', which becomes the list ['a'] here.
    else if (parsesText && value !== undefined) list = [value];
    else return run.report(FAULTS.notList);
    if (list.length < minItems) return run.report(FAULTS.tooFew(minItems));
    if (list.length > maxLength) return run.report(FAULTS.tooMany(maxLength));
    run.spend(1 / PER_STEP.objects + list.length / PER_STEP.entries);
    const mistakesAtStart = run.mistakes.length;
    let copy: unknown[] | undefined;
    for (let i = 0; i < list.length; i++) {
      const check = i < prefixChecks.length ? prefixChecks[i] : restCheck;
      if (check === undefined) continue;
      const mistakesBefore = run.mistakes.length;
      const item = list[i];
      const converted = check(item, run);
      if (run.mistakes.length > mistakesBefore) {
        run.prefixPointers(i, mistakesBefore);
        if (run.hasMaxMistakes) return undefined;
      } else if (converted !== item) {
        copy ??= list.slice();
        copy[i] = converted;
      }
    }
    if (uniqueItems && run.mistakes.length === mistakesAtStart) reportDuplicates(copy ?? list, run);
    return copy ?? list;
  };
}

function reportDuplicates(list: readonly unknown[], run: CheckRun): void {
  const keys = list.map((item) => (item instanceof Blob ? item : canonicalText(item, 0, run)));
  if (keys.includes(undefined)) run.report(FAULTS.tooDeep);
  else if (new Set(keys).size < list.length) run.report(FAULTS.duplicate);
}

/** Writes a value as JSON with sorted fields, so equal values have equal texts. Undefined for too deep a value. */
function canonicalText(value: unknown, depth: number, run: CheckRun): string | undefined {
  const text = isPlain(value) ? String(JSON.stringify(value)) : canonicalStructure(value, depth, run);
  run.spend(1 + (text?.length ?? 0) / PER_STEP.characters);
  return text;
}

const isPlain = (value: unknown) => typeof value !== 'object' || value === null || value instanceof Date;

function canonicalStructure(value: unknown, depth: number, run: CheckRun): string | undefined {
  if (depth > LIMITS.depth) return undefined;
  const fields = Array.isArray(value) ? undefined : Object.entries(value as Fields);
  run.spend(2 + 2 * (fields?.length ?? 0));
  const parts = fields
    ? fields
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .flatMap(([name, item]) => [JSON.stringify(name), canonicalText(item, depth + 1, run)])
    : (value as unknown[]).map((item) => canonicalText(item, depth + 1, run));
  if (parts.includes(undefined)) return undefined;
  return fields ? `{${parts.join()}}` : `[${parts.join()}]`;
}

/** Returns undefined for a field without a default to fill in. @throws Error for a default that does not fit */
function compileDefault(field: Schema, { compile }: Compiler): (() => unknown) | undefined {
  if (!Object.hasOwn(field, FILLS_DEFAULT)) return undefined;
  const run = new CheckRun();
  const value = run.check(compile(field), field.default);
  const [mistake] = run.mistakes;
  const place = mistake?.pointer === '' ? '' : `${mistake?.pointer} `;
  if (mistake !== undefined) throw new Error(`@default ${JSON.stringify(field.default)} ${place}${mistake.message}`);
  return typeof value === 'object' ? () => structuredClone(value) : () => value;
}

/** The converted fields that differ from the sent fields, by the index of the field in the schema's properties. */
type Conversions = readonly unknown[] | undefined;

export function compileObject(schema: Schema, { compile, parsesText, forDefaults }: Compiler): Check {
  const { properties, additionalProperties, patternProperties } = schema;
  // schema.ts writes `patternProperties` only for an index signature by number, `{ [id: number]: T }`.
  const [numberIndexSchema] = Object.values(patternProperties ?? {});
  const undeclaredSchema = numberIndexSchema ?? additionalProperties;
  const names = Object.keys(properties ?? {});
  const checks = Object.values(properties ?? {}).map(compile);
  const defaults = Object.values(properties ?? {}).map(
    (property) => forDefaults && compileDefault(property, forDefaults),
  );
  const required = new Set(schema.required);
  const isRequired = names.map((name) => required.has(name));
  // A declared field can have the name of a property that every object inherits, such as `toString`. Such a field
  // counts as sent only when it is an own property of the object.
  const isInherited = names.map((name) => name in Object.prototype);
  const declared = new Set(names);
  const refuse: Check = (_, run) => run.report(FAULTS.undeclared);
  const compileOthers = (others: Schema): Check => (others.not ? refuse : compile(others));
  const undeclaredCheck = typeof undeclaredSchema === 'object' ? compileOthers(undeclaredSchema) : undefined;
  // A schema without `properties` allows any fields.
  const keepsUndeclared = undeclaredSchema !== undefined || properties === undefined;
  const alwaysCopies = parsesText && !keepsUndeclared;

  return (fields, run) => {
    if (!hasFields(fields)) return run.report(FAULTS.notObject);
    run.spend(1 / PER_STEP.objects + names.length / PER_STEP.entries);
    const mistakesAtStart = run.mistakes.length;
    // Nearly every field of a query or a form is converted, so the object is copied from the start. LIMITS.properties
    // is not checked for a copy, because the parser of the query or the form has its own limit.
    const copy: Record<string, unknown> | undefined = alwaysCopies ? Object.create(null) : undefined;
    let conversions: unknown[] | undefined;
    let declaredCount = 0;
    for (let i = 0; i < names.length; i++) {
      const name = names[i] as string;
      const field = isInherited[i] && !Object.hasOwn(fields, name) ? undefined : fields[name];
      if (field === undefined) {
        if (isRequired[i]) run.reportField(name, FAULTS.missing);
        const createDefault = run.fillsDefaults ? defaults[i] : undefined;
        if (createDefault === undefined) continue;
        if (copy !== undefined) copy[name] = createDefault();
        else {
          conversions ??= [];
          conversions[i] = createDefault();
        }
        continue;
      }
      declaredCount++;
      const mistakesBefore = run.mistakes.length;
      const converted = (checks[i] as Check)(field, run);
      if (run.mistakes.length > mistakesBefore) run.prefixPointers(name, mistakesBefore);
      else if (copy !== undefined) copy[name] = converted;
      else if (converted !== field) {
        conversions ??= [];
        conversions[i] = converted;
      }
    }
    if (run.alsoDeclared !== undefined && !keepsUndeclared) reportUndeclared(fields, run, run.alsoDeclared);
    if (copy !== undefined) return copy;
    let sentCount = 0;
    for (const _ in fields) if (++sentCount > LIMITS.properties) return run.report(FAULTS.tooManyFields);
    run.spend(sentCount / (sentCount > 128 ? PER_STEP.fieldsOfLargeObject : PER_STEP.entries));
    if (sentCount === declaredCount && conversions === undefined) return fields;
    if (sentCount > declaredCount && undeclaredCheck !== undefined)
      return checkUndeclared(fields, conversions, run, mistakesAtStart);
    if (sentCount > declaredCount && keepsUndeclared && conversions === undefined) return fields;
    run.spend(1);
    return run.mistakes.length > mistakesAtStart ? undefined : copyFields(fields, conversions, keepsUndeclared);
  };

  function reportUndeclared(fields: Fields, run: CheckRun, alsoDeclared: ReadonlySet<string>): void {
    for (const name of Object.keys(fields)) {
      run.spend(1 / PER_STEP.entries);
      if (!declared.has(name) && !alsoDeclared.has(name)) run.reportField(name, FAULTS.undeclared);
      if (run.hasMaxMistakes) return;
    }
  }

  function copyFields(fields: Fields, conversions: Conversions, includesUndeclared: boolean): Record<string, unknown> {
    const copy = emptyLike(fields);
    if (includesUndeclared)
      for (const name of Object.keys(fields)) if (!declared.has(name)) setField(copy, name, fields[name]);
    for (let i = 0; i < names.length; i++) {
      const name = names[i] as string;
      const converted = conversions?.[i];
      if (converted === undefined && isInherited[i] && !Object.hasOwn(fields, name)) continue;
      const field = converted === undefined ? fields[name] : converted;
      if (field !== undefined) copy[name] = field;
    }
    return copy;
  }

  /** Checks the undeclared fields by the index signature. @returns the object with all converted fields */
  function checkUndeclared(fields: Fields, conversions: Conversions, run: CheckRun, mistakesAtStart: number): unknown {
    const copy = copyFields(fields, conversions, false);
    run.spend(Object.keys(fields).length);
    let differs = conversions !== undefined;
    for (const name of Object.keys(fields)) {
      if (declared.has(name)) continue;
      if (numberIndexSchema !== undefined && !isNumberName(name)) {
        differs = true;
        continue;
      }
      const mistakesBefore = run.mistakes.length;
      const converted = (undeclaredCheck as Check)(fields[name], run);
      if (run.mistakes.length > mistakesBefore) {
        run.prefixPointers(name, mistakesBefore);
        if (run.hasMaxMistakes) return undefined;
      } else setField(copy, name, converted);
      differs ||= converted !== fields[name];
    }
    return run.mistakes.length > mistakesAtStart ? undefined : differs ? copy : fields;
  }
}

/** Creates an empty object for a copy. A query or a form has no prototype, and then its copy has none either. */
export function emptyLike(fields: Fields): Record<string, unknown> {
  return Object.getPrototypeOf(fields) === null ? Object.setPrototypeOf({}, null) : {};
}

/** Sets a field of any name. A plain assignment to `__proto__` would replace the object's prototype instead. */
export function setField(target: Record<string, unknown>, name: string, value: unknown): void {
  if (name === '__proto__')
    Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true });
  else target[name] = value;
}
