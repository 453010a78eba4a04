// Compiles the schemas of results to functions that copy a value and keep only its declared fields. Each function is
// generated as source text: V8 copies an object by a literal many times faster than by a loop over names. The texts
// contain no value of a request, only names and types that the controller declares. Each object is copied, because a
// look for undeclared fields costs more. A copy is no check: a value of another type than declared is copied, too, but
// an object where the type declares none loses all its fields.
import type { Definitions, Schema } from '../contract.ts';
import { isNumberName } from '../types/formats.ts';
import { resolveReference } from './run.ts';
import { setField } from './structures.ts';
import { findTag, flattenParts } from './unions.ts';

/**
 * Returns a value without its undeclared fields. Calls `toJSON` first, as JSON.stringify does.
 *
 * @param key the name or the index of the value in its parent, for `toJSON`; '' for the whole value
 */
export type Copy = (value: unknown, key: string | number) => unknown;

/** A copy that is set later, because recursive types refer to each other. */
interface Target {
  readonly id: number;
  copy: Copy;
}

/** The values that a generated function uses, by their names in its source. V8 inlines the calls of constants. */
type Constants = Record<string, unknown>;

/** Compiles the union of schemas. Returns undefined when every value is declared whole, as by `unknown`. */
export type CompileCopy = (schemas: readonly Schema[]) => Copy | undefined;

export function createCopyCompiler(defs: Definitions): CompileCopy {
  const resolver = { resolve: (schema: Schema): Schema => resolveReference(schema, defs) };
  const ids = new Map<Schema, number>();
  /** Key: the ids of the parts of a union. */
  const targets = new Map<string, Target>();

  const partsOf = (schemas: readonly Schema[]): Schema[] => [
    ...new Set(flattenParts(schemas, resolver).map(resolver.resolve)),
  ];

  function targetOf(parts: readonly Schema[]): Target {
    const partIds = parts.map((part) => ids.get(part) ?? ids.set(part, ids.size).get(part));
    const key = partIds.sort().join();
    const known = targets.get(key);
    if (known !== undefined) return known;
    const target: Target = { id: targets.size, copy: (value) => value };
    targets.set(key, target);
    target.copy = generate(parts);
    return target;
  }

  function generate(parts: readonly Schema[]): Copy {
    const constants: Constants = { ...TOOLS };
    const objects = parts.filter((part) => mayBe(part, 'object'));
    const source = `return function copy(v, k) {
      if (typeof v !== 'object' || v === null) return typeof v === 'function' ? undefined : v;
      if (typeof v.toJSON === 'function') {
        if (v.toJSON === dateToJSON && v instanceof Date) return v;
        v = v.toJSON(String(k));
        if (typeof v !== 'object' || v === null) return typeof v === 'function' ? undefined : v;
      }
      if (isArray(v)) { ${writeList(
        parts.filter((part) => mayBe(part, 'array')),
        constants,
      )} }
      const prototype = getPrototypeOf(v);
      if (prototype !== ObjectPrototype && prototype !== null) {
        if (isShownWhole(v)) return v;
        v = { ...v };
      }
      ${writeTag(objects, constants)}
      ${writeObject(objects, constants)}
    }`;
    return new Function(...Object.keys(constants), source)(...Object.values(constants)) as Copy;
  }

  /** Writes the choice of a part by its tag. Without a tag, the object gets the fields of all parts. */
  function writeTag(objects: readonly Schema[], constants: Constants): string {
    const tag = objects.length < 2 ? undefined : findTag(objects, resolver);
    if (tag === undefined) return '';
    constants.byTag = new Map(
      objects.flatMap((part) => {
        const field = resolver.resolve(part.properties?.[tag] as Schema);
        return (field.enum ?? [field.const]).map((value): [unknown, Target] => [value, targetOf([part])]);
      }),
    );
    return `const part = byTag.get(v[${JSON.stringify(tag)}]);
      if (part !== undefined) return part.copy(v, k);`;
  }

  function writeList(lists: readonly Schema[], constants: Constants): string {
    const prefixLength = Math.max(0, ...lists.map(({ prefixItems = [] }) => prefixItems.length));
    const isLimited = lists.length > 0 && lists.every(({ items }) => items === false);
    const schemasAt = (i: number) =>
      lists.flatMap(({ prefixItems, items }) => asSchemas(prefixItems?.[i] ?? items ?? true));
    const copyAt = (i: number) => writeCopy(schemasAt(i), 'item', 'i', constants);
    const prefix = Array.from({ length: prefixLength }, (_, i) => `if (i === ${i}) { ${copyAt(i)} } else `).join('');
    const length = isLimited ? `Math.min(v.length, ${prefixLength})` : 'v.length';
    return `const length = ${length};
      const list = [];
      for (let i = 0; i < length; i++) {
        let item = v[i];
        ${prefix}{ ${copyAt(prefixLength)} }
        list.push(item);
      }
      return list;`;
  }

  function writeObject(objects: readonly Schema[], constants: Constants): string {
    const declaredOf = ({ properties = {} }: Schema): string[] =>
      Object.keys(properties).filter((name) => !isNever(properties[name] as Schema));
    const names = [...new Set(objects.flatMap(declaredOf))];
    const schemasOf = (name: string) =>
      objects.flatMap((object) =>
        Object.hasOwn(object.properties ?? {}, name) ? [object.properties?.[name] as Schema] : othersOf(object),
      );
    const reads = names.map((name, i) => {
      const key = JSON.stringify(name);
      // A field such as `constructor` must be the object's own. All objects inherit another one.
      const value = name in Object.prototype ? `hasOwn(v, ${key}) ? v[${key}] : undefined` : `v[${key}]`;
      return `let value${i} = ${value}; ${writeCopy(schemasOf(name), `value${i}`, key, constants)}`;
    });
    // A field that is left out is not set, because JSON.stringify would spend time on it.
    const isRequired = (name: string) => objects.every(({ required = [] }) => required.includes(name));
    const setAll = names.map((name, i) => [JSON.stringify(name), `value${i}`, isRequired(name)] as const);
    const literal = setAll.flatMap(([key, value, required]) => (required ? `${key}: ${value}` : [])).join(', ');
    const optional = setAll.map(([key, value, required]) =>
      required ? '' : `if (${value} !== undefined) object[${key}] = ${value};`,
    );
    const copied = `const object = { ${literal} }; ${optional.join('')}`;
    const others = objects.flatMap(othersOf);
    const numbers = objects.flatMap(({ patternProperties = {} }) =>
      Object.values(patternProperties).flatMap(asSchemas),
    );
    if (others.length === 0 && numbers.length === 0)
      return `${reads.join('\n')}
        ${copied} return object;`;
    constants.declared = new Set(names);
    const condition = others.length === 0 ? ' && isNumberName(name)' : '';
    return `${reads.join('\n')}
      ${copied}
      for (const name of keys(v)) if (!declared.has(name)${condition}) {
        let value = v[name];
        ${writeCopy([...others, ...numbers], 'value', 'name', constants)}
        setField(object, name, value);
      }
      return object;`;
  }

  /** Writes the copy of a variable. Most values are scalars, which nothing has to copy. */
  function writeCopy(schemas: readonly Schema[], name: string, key: string, constants: Constants): string {
    const parts = partsOf(schemas);
    if (parts.some(isWhole)) return '';
    const target = targetOf(parts.filter((part) => mayBe(part, 'object') || mayBe(part, 'array')));
    constants[`target${target.id}`] = target;
    const kind = parts.map(scalarKindOf).find((kindOfPart) => kindOfPart !== undefined);
    const copy = `${name} = target${target.id}.copy(${name}, ${key});`;
    return kind === undefined ? copy : `if (typeof ${name} !== '${kind}') ${copy}`;
  }

  return (schemas) => {
    const parts = partsOf(schemas);
    return parts.some(isWhole) ? undefined : targetOf(parts).copy;
  };
}

const TOOLS = {
  dateToJSON: Date.prototype.toJSON,
  isArray: Array.isArray,
  getPrototypeOf: Object.getPrototypeOf,
  ObjectPrototype: Object.prototype,
  hasOwn: Object.hasOwn,
  keys: Object.keys,
  isNumberName,
  isShownWhole,
  setField,
};

/**
 * Whether an object has no fields that JSON could show, such as a Map or an Error. It is not copied, so that the answer
 * is the same as without a filter: a 500 that names the object. The entries of a typed array are numbers.
 */
function isShownWhole(value: object): boolean {
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return false;
  return ArrayBuffer.isView(value) || Object.keys(value).length === 0;
}

const mayBe = ({ type }: Schema, name: string): boolean => [type].flat().includes(name);
/** Whether no value fits a schema, so that a field with it is none that the type declares. */
const isNever = ({ not }: Schema): boolean => not !== undefined;
const asSchemas = (schema: Schema | boolean | undefined): Schema[] => {
  if (typeof schema === 'object') return isNever(schema) ? [] : [schema];
  return schema === true ? [{}] : [];
};

/** Returns the schemas of the fields without a name of their own. `{ "type": "object" }` declares all fields. */
const othersOf = ({ properties, patternProperties, additionalProperties }: Schema): Schema[] =>
  asSchemas(additionalProperties ?? (properties === undefined && patternProperties === undefined));

/** Whether a schema declares objects with any fields: `unknown`, `object` and `{}`. */
function isWhole({ type, enum: literals, not, ...schema }: Schema): boolean {
  if (Array.isArray(type)) return type.includes('object') && type.includes('array');
  return type === undefined && literals === undefined && not === undefined && !('const' in schema);
}

/** Returns the `typeof` of the values of a schema; undefined when they are objects, lists or null. */
function scalarKindOf({ type, enum: literals, ...schema }: Schema): string | undefined {
  const [name] = type === undefined ? (literals ?? [schema.const]).map((value) => typeof value) : [type].flat();
  if (name === 'integer') return 'number';
  return name === 'string' || name === 'number' || name === 'boolean' ? name : undefined;
}
