// Reads a JSON Schema of the author, such as one of TypeBox, into the form that schema.ts writes. The check is made for
// this form, so a keyword that would have no effect is an error with the name of the keyword.
import { isObject, isPlainObject } from '../../base/values.ts';
import type { Schema } from '../contract.ts';
import { NOTE_FORMATS } from '../source/constraint-tags.ts';
import { FORMATS } from '../types/formats.ts';
import { checkPattern } from '../types/pattern.ts';
import { follow } from './bundle.ts';

type Raw = Readonly<Record<string, unknown>>;

const NUMBER_KEYWORDS = 'format minimum maximum exclusiveMinimum exclusiveMaximum multipleOf';
/** The keywords that apply to values of a type. */
const KEYWORDS: Readonly<Record<string, string>> = {
  string: 'minLength maxLength pattern format',
  number: NUMBER_KEYWORDS,
  integer: NUMBER_KEYWORDS,
  array: 'items prefixItems additionalItems minItems maxItems uniqueItems',
  object: 'properties required additionalProperties patternProperties',
  boolean: '',
  null: '',
};
const NOTES = /^(?:title|description|default|deprecated|examples)$/;
/** Keywords that say nothing about a value. `$id` and `$defs` are read for references. */
const SILENT = /^(?:\$schema|\$id|\$comment|\$defs|definitions)$/;
const COUNTS = /^(?:min|max)(?:Length|Items)$/;
/** The keys by which TypeBox marks what its JSON Schema does not say. */
const HIDDEN_CODE = /^(?:TypeBox\.Transform|~codec|~refine)$/;
/** The patterns that TypeBox writes for any name of a field. */
const ANY_NAME = /^(?:\^\(?\.\*\)?\$|\.\*)$/;

const MAX_NESTING = 200;

/** @throws Error with a message of one line: a pointer, and the keyword or value that is not understood */
export function readJsonSchema(root: unknown): Schema {
  /**
   * By `$id`, and by the pointer of a schema that is read to another place, such as an entry of an old tuple: the
   * pointer to this place. TypeBox refers to a schema around by its `$id`.
   */
  const places = new Map<string, string>();
  const references: [pointer: string, reference: { $ref: string }][] = [];
  const schema = read(root, '#', 0);
  if (Object.keys(schema).every((keyword) => NOTES.test(keyword)))
    throw new Error('# says nothing about a value: write unchecked: true');
  // References by `$id` are replaced, and one that leads to no schema that was read is refused.
  for (const [pointer, reference] of references) {
    const target = reference.$ref;
    reference.$ref = places.get(target) ?? target;
    if (follow(schema, reference.$ref) === undefined)
      throw new Error(`${pointer} refers to ${target}, which is not found`);
  }
  return schema;

  function read(raw: unknown, pointer: string, depth: number, place = pointer): Schema {
    const fail = (message: string): never => {
      throw new Error(`${pointer} ${message}`);
    };
    if (depth > MAX_NESTING) fail('is nested without end');
    if (raw === true) return {};
    if (raw === false) return { not: {} };
    if (!isPlainObject(raw)) return fail('is no JSON Schema');
    for (const key of Reflect.ownKeys(raw)) {
      const name = typeof key === 'symbol' ? (key.description ?? '') : key;
      if (HIDDEN_CODE.test(name)) fail('has code of its library, which is not run: write a Standard Schema');
    }
    places.set(pointer, place);
    if (typeof raw.$id === 'string') places.set(raw.$id, place);
    const below: Read = (value, steps, placeSteps = steps) =>
      read(value, pointerBelow(pointer, steps), depth + 1, pointerBelow(place, placeSteps));
    const schemaMap: ReadMap = (value, keyword) => {
      if (!isObject(value)) return fail(`has a wrong ${keyword}`);
      if (Object.hasOwn(value, '__proto__')) fail('has a field named __proto__: give it another name');
      return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, below(inner, [keyword, name])]));
    };
    const common: Record<string, unknown> = {};
    const words: string[] = [];
    for (const [keyword, value] of Object.entries(raw)) {
      if (value === undefined) continue;
      if (keyword === '$defs' || keyword === 'definitions') common[keyword] = schemaMap(value, keyword);
      else if (NOTES.test(keyword)) common[keyword] = JSON.parse(JSON.stringify(value));
      else if (!SILENT.test(keyword)) words.push(keyword);
    }
    const only = (...allowed: string[]): void => {
      const word = words.find((keyword) => !allowed.includes(keyword));
      if (word !== undefined) fail(`has the keyword ${word}, which is not checked here`);
    };
    if (raw.$ref !== undefined) {
      only('$ref');
      if (typeof raw.$ref !== 'string') fail('has a wrong $ref');
      const reference = { ...common, $ref: raw.$ref as string };
      references.push([pointer, reference]);
      return reference;
    }
    if (raw.anyOf !== undefined) {
      only('anyOf');
      if (!Array.isArray(raw.anyOf) || raw.anyOf.length === 0) fail('has a wrong anyOf');
      return { ...common, anyOf: (raw.anyOf as unknown[]).map((part, i) => below(part, ['anyOf', i])) };
    }
    if (raw.enum !== undefined || raw.const !== undefined) {
      const keyword = raw.enum === undefined ? 'const' : 'enum';
      only(keyword, 'type');
      const literals = keyword === 'enum' ? raw.enum : [raw.const];
      if (!Array.isArray(literals) || literals.length === 0 || !literals.every(isLiteral))
        fail(`has a wrong ${keyword}: only texts, numbers, booleans and null are compared`);
      const types = raw.type === undefined ? undefined : [raw.type].flat();
      if (
        types !== undefined &&
        !(literals as unknown[]).every((literal) => types.some((type) => isOfType(literal, type)))
      )
        fail(`has a ${keyword} that is not of its type`);
      return { ...common, [keyword]: raw[keyword] };
    }
    if (raw.not !== undefined) {
      only('not');
      if (!isObject(raw.not) || Object.keys(raw.not).length > 0) fail('has the keyword not, which is not checked here');
      return { ...common, not: {} };
    }
    if (raw.type === undefined) {
      const [word] = words;
      return word === undefined ? common : fail(`has ${word} and no type: write its type`);
    }
    const types = [raw.type].flat() as string[];
    const unknownType = types.find((type) => typeof type !== 'string' || !Object.hasOwn(KEYWORDS, type));
    if (types.length === 0 || unknownType !== undefined)
      fail(`has the type ${String(unknownType)}, which JSON has not`);
    only('type', ...types.flatMap((type) => (KEYWORDS[type] as string).split(' ')));
    return {
      ...common,
      type: raw.type as string,
      ...scalars(raw, fail),
      ...list(raw, below, fail),
      ...fields(raw, below, schemaMap, fail),
    };
  }
}

type Steps = readonly (string | number)[];
/** @param placeSteps the steps in the schema that is read, where they differ */
type Read = (value: unknown, steps: Steps, placeSteps?: Steps) => Schema;
type ReadMap = (value: unknown, keyword: string) => Record<string, Schema>;
type Failing = (message: string) => never;

const pointerBelow = (pointer: string, steps: Steps): string =>
  [pointer, ...steps.map((step) => String(step).replaceAll('~', '~0').replaceAll('/', '~1'))].join('/');

const isLiteral = (value: unknown): boolean => value === null || /^(?:string|number|boolean)$/.test(typeof value);

function isOfType(literal: unknown, type: unknown): boolean {
  if (type === 'integer') return Number.isSafeInteger(literal);
  return literal === null ? type === 'null' : type === typeof literal;
}

function scalars(raw: Raw, fail: Failing): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const keyword of `${KEYWORDS.string} ${KEYWORDS.number} minItems maxItems`.split(' ')) {
    const value = raw[keyword];
    if (value === undefined) continue;
    const isText = keyword === 'pattern' || keyword === 'format';
    const isRight = isText
      ? typeof value === 'string'
      : Number.isFinite(value) && (!COUNTS.test(keyword) || (Number.isInteger(value) && (value as number) >= 0));
    if (!isRight || (keyword === 'multipleOf' && (value as number) <= 0)) fail(`has a wrong ${keyword}`);
    const refusal = keyword === 'pattern' ? checkPattern(value as string) : undefined;
    if (refusal !== undefined) fail(`has the pattern ${String(value)}: ${refusal}`);
    const isChecked = FORMATS[value as string] !== undefined && [raw.type].flat().includes('string');
    if (keyword === 'format' && !NOTE_FORMATS.has(value as string) && !isChecked)
      fail(`has the format ${String(value)}, which is not checked here`);
    result[keyword] = value;
  }
  return result;
}

function list(raw: Raw, below: Read, fail: Failing): Record<string, unknown> {
  const { items, prefixItems, additionalItems, uniqueItems } = raw;
  const result: Record<string, unknown> = {};
  if (uniqueItems !== undefined && typeof uniqueItems !== 'boolean') fail('has a wrong uniqueItems');
  if (uniqueItems === true) result.uniqueItems = true;
  // Before draft 2020-12, a list of `items` was what `prefixItems` is now. TypeBox writes it so.
  const isOldTuple = Array.isArray(items);
  if (additionalItems !== undefined && !isOldTuple) fail('has additionalItems without a list of items');
  if (isOldTuple && prefixItems !== undefined) fail('has a list of items beside prefixItems');
  const prefix = isOldTuple ? items : prefixItems;
  const rest = isOldTuple ? additionalItems : items;
  if (prefix !== undefined && (!Array.isArray(prefix) || prefix.length === 0)) fail('has a wrong prefixItems');
  if (prefix !== undefined)
    result.prefixItems = (prefix as unknown[]).map((item, i) =>
      below(item, [isOldTuple ? 'items' : 'prefixItems', i], ['prefixItems', i]),
    );
  if (rest === false) {
    // The check of a list that ends after its prefix does not look at `maxItems`.
    if (raw.maxItems !== undefined && raw.maxItems !== ((prefix as unknown[] | undefined)?.length ?? 0))
      fail('has a maxItems that differs from the number of its items');
    result.items = false;
  } else if (rest !== undefined) result.items = below(rest, [isOldTuple ? 'additionalItems' : 'items'], ['items']);
  return result;
}

function fields(raw: Raw, below: Read, schemaMap: ReadMap, fail: Failing): Record<string, unknown> {
  const { properties, required, additionalProperties, patternProperties } = raw;
  const result: Record<string, unknown> = {};
  if (properties !== undefined) result.properties = schemaMap(properties, 'properties');
  if (required !== undefined) {
    const names: unknown[] = Array.isArray(required) ? required : [undefined];
    const unknownName = names.find((name) => typeof name !== 'string' || !Object.hasOwn(Object(properties), name));
    if (unknownName !== undefined || names.includes(undefined))
      fail(`requires ${String(unknownName)}, which is not in its properties`);
    result.required = required;
  }
  let others = additionalProperties;
  let keyword: string[] = ['additionalProperties'];
  if (patternProperties !== undefined) {
    const [pattern = '', ...more] = Object.keys(Object(patternProperties) as object);
    const isRecord = ANY_NAME.test(pattern) && more.length === 0 && properties === undefined;
    if (!isRecord || (others !== undefined && others !== false))
      fail('has the keyword patternProperties, which is checked only for records of any name');
    others = (patternProperties as Raw)[pattern];
    keyword = ['patternProperties', pattern];
  }
  // The check reads `false` as a word about the document. A schema that no value fits refuses each other field.
  if (others === false) result.additionalProperties = { not: {} };
  else if (others !== undefined)
    result.additionalProperties = others === true ? true : below(others, keyword, ['additionalProperties']);
  return result;
}
