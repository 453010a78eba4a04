// Collects the named schemas that the operations refer to, as components of the OpenAPI document. If two groups have
// the same schema `Book`, it becomes one component. Different schemas become `order.Book` and `shop.Book`.

import { sortedBy } from '../base/sorted-by.ts';
import { isObject } from '../base/values.ts';
import { resolveReference } from '../contract/check/run.ts';
import type { Definitions, Schema } from '../contract/contract.ts';
import { isFile } from '../contract/schema/schema.ts';

export type Components = ReturnType<typeof createComponents>;

export interface SchemaGroup {
  /** The name of the group as the URL spells it, such as `order` for `Order`. */
  readonly groupInUrl: string;
  readonly defs: Definitions;
}

interface Component {
  readonly groupInUrl: string;
  readonly name: string;
  readonly text: string;
  readonly references: { $ref: string }[];
  schema: Schema;
}

const DEFS_PREFIX = '#/$defs/';

export function createComponents(reservedNames: readonly string[]) {
  /** Key: the group and the name, such as `order Book`. */
  const components = new Map<string, Component>();

  function publish(group: SchemaGroup, value: unknown): unknown {
    if (Array.isArray(value)) return value.map((item) => publish(group, item));
    if (typeof value !== 'object' || value === null) return value;
    const entries = Object.entries(value).map(([key, inner]): [string, unknown] => [key, publish(group, inner)]);
    const schema = adaptForTools(Object.fromEntries(entries));
    if (isReference(schema)) addReference(group, schema);
    return schema;
  }

  function addReference(group: SchemaGroup, reference: { $ref: string }): void {
    const { groupInUrl, defs } = group;
    const name = reference.$ref.slice(DEFS_PREFIX.length);
    let component = components.get(`${groupInUrl} ${name}`);
    if (component === undefined) {
      // The component is in the map before its schema is published, because the schema can refer to itself.
      component = { groupInUrl, name, text: JSON.stringify(defs[name] ?? {}), references: [], schema: {} };
      components.set(`${groupInUrl} ${name}`, component);
      component.schema = publish(group, defs[name]) as Schema;
    }
    component.references.push(reference);
  }

  return {
    /** Returns a copy of a schema, adapted to the document. The schemas that it refers to become components. */
    publish: (group: SchemaGroup, schema: Schema) => publish(group, schema) as Schema,
    /** Returns the components by name. Only this call completes the references in the published schemas. */
    finish(): Definitions {
      const ambiguousNames = findAmbiguousNames([...components.values()], reservedNames);
      const entries = Array.from(components.values(), ({ groupInUrl, name, references, schema }): [string, Schema] => {
        const publicName = ambiguousNames.has(name) ? `${groupInUrl}.${name}` : name;
        for (const reference of references) reference.$ref = `#/components/schemas/${publicName}`;
        return [publicName, schema];
      });
      return Object.fromEntries(sortedBy(entries, ([name]) => name));
    },
  };
}

/**
 * Finds the names that stand for different schemas: the reserved names, the names that two groups give to different
 * schemas, and the names of all schemas that refer to such a name.
 */
export function findAmbiguousNames(
  schemas: readonly Pick<Component, 'name' | 'text'>[],
  reservedNames: Iterable<string>,
): ReadonlySet<string> {
  const ambiguousNames = new Set(reservedNames);
  const textByName = new Map<string, string>();
  for (const { name, text } of schemas) {
    if ((textByName.get(name) ?? text) !== text) ambiguousNames.add(name);
    textByName.set(name, text);
  }
  // The loop also visits the names that it adds.
  for (const name of ambiguousNames)
    for (const schema of schemas) if (schema.text.includes(`"${DEFS_PREFIX}${name}"`)) ambiguousNames.add(schema.name);
  return ambiguousNames;
}

function isReference(schema: Schema): schema is { $ref: string } {
  return typeof schema.$ref === 'string' && schema.$ref.startsWith(DEFS_PREFIX);
}

/** Adds keywords for the tools of OpenAPI: `type: string` beside `enum: ['a']`, and `format: binary` of a file. */
function adaptForTools(schema: Schema): Schema {
  if (isFile(schema)) return { ...schema, format: 'binary' };
  const values = schema.const === undefined ? schema.enum : [schema.const];
  if (schema.type !== undefined || !Array.isArray(values)) return schema;
  const [type, ...others] = new Set(values.map((value) => typeof value));
  return others.length === 0 && type !== 'object' ? Object.assign({ type }, schema) : schema;
}

export function hasFile(schema: Schema | undefined, defs: Definitions, seen = new Set<Schema>()): boolean {
  const target = resolveReference(schema, defs);
  if (seen.has(target)) return false;
  seen.add(target);
  const { items, additionalProperties, properties = {}, prefixItems, anyOf, oneOf, allOf } = target;
  const lists = [prefixItems, anyOf, oneOf, allOf].filter(Array.isArray);
  const children: unknown[] = [items, additionalProperties, ...Object.values(properties), ...lists.flat()];
  return isFile(target) || children.some((child) => isObject(child) && hasFile(child, defs, seen));
}
