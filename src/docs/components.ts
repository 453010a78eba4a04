// The named schemas of the document: those that its operations refer to, and no others. Two groups can have schemas of
// one name. Equal schemas become one component. If they differ, each gets its group's name in front of its own.

import { resolveReference } from '../contract/check/run.ts';
import type { Schema } from '../contract/contract.ts';

export interface Components {
  /** Returns a schema in the form of the document. Each schema that it refers to becomes a component. */
  publish(group: SchemaGroup, schema: Schema): Schema;
  /** Returns all components by name, and completes the references to them. */
  finish(): Readonly<Record<string, Schema>>;
}

/** The group that a schema belongs to. */
export interface SchemaGroup {
  /** The name of the group as the URL spells it, such as `order` for `Order`. */
  readonly groupInUrl: string;
  readonly defs: Readonly<Record<string, Schema>>;
}

interface Component {
  readonly groupInUrl: string;
  readonly name: string;
  /** The group's schema as JSON, for the comparison with other groups. */
  readonly text: string;
  /** Every reference to the component. `finish` writes the name into each. */
  readonly references: { $ref: string }[];
  schema: Schema;
}

const DEFS = '#/$defs/';

/** @param reserved names that belong to the document itself */
export function createComponents(reserved: readonly string[]): Components {
  /** The components, each with the key `${groupInUrl} ${name}`. */
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
    const name = reference.$ref.slice(DEFS.length);
    let component = components.get(`${groupInUrl} ${name}`);
    if (component === undefined) {
      component = { groupInUrl, name, text: JSON.stringify(defs[name] ?? {}), references: [], schema: {} };
      components.set(`${groupInUrl} ${name}`, component);
      component.schema = publish(group, defs[name]) as Schema;
    }
    component.references.push(reference);
  }

  return {
    publish: (group, schema) => publish(group, schema) as Schema,
    finish() {
      const contested = findContested([...components.values()], reserved);
      const named = Array.from(components.values(), ({ groupInUrl, name, references, schema }): [string, Schema] => {
        const publicName = contested.has(name) ? `${groupInUrl}.${name}` : name;
        for (const reference of references) reference.$ref = `#/components/schemas/${publicName}`;
        return [publicName, schema];
      });
      return Object.fromEntries(named.sort(([a], [b]) => (a < b ? -1 : 1)));
    },
  };
}

/**
 * Finds the names that two groups give to different schemas, and the names whose schemas refer to one of these.
 *
 * @param types each schema of each group, as JSON in `text`
 */
export function findContested(
  types: readonly Pick<Component, 'name' | 'text'>[],
  reserved: Iterable<string>,
): ReadonlySet<string> {
  const contested = new Set(reserved);
  const textByName = new Map<string, string>();
  for (const { name, text } of types) {
    if ((textByName.get(name) ?? text) !== text) contested.add(name);
    textByName.set(name, text);
  }
  // The loop adds to the set that it iterates. A Set also visits the names that are added meanwhile.
  for (const name of contested)
    for (const type of types) if (type.text.includes(`"${DEFS}${name}"`)) contested.add(type.name);
  return contested;
}

function isReference(schema: Schema): schema is { $ref: string } {
  return typeof schema.$ref === 'string' && schema.$ref.startsWith(DEFS);
}

/** Adds keywords that only tools for OpenAPI need: the type of literals, and `format: binary` of a file. */
function adaptForTools(schema: Schema): Schema {
  if (isFile(schema)) return { ...schema, format: 'binary' };
  const values = schema.const === undefined ? schema.enum : [schema.const];
  if (schema.type !== undefined || !Array.isArray(values)) return schema;
  const [type, ...others] = new Set(values.map((value) => typeof value));
  return others.length === 0 && type !== 'object' ? Object.assign({ type }, schema) : schema;
}

export function isFile({ type, contentMediaType }: Schema): boolean {
  return type === 'string' && contentMediaType !== undefined;
}

/** Whether a value of the schema can contain a file. A body with a file is sent as a form. */
export function hasFile(schema: Schema | undefined, defs: Readonly<Record<string, Schema>>, depth = 0): boolean {
  const target = resolveReference(schema, defs);
  // Without the limit, a recursive type would never end.
  if (depth > 8) return false;
  if (isFile(target)) return true;
  const children = [target.items, ...Object.values(target.properties ?? {}), ...(target.anyOf ?? [])];
  return children.some((child) => typeof child === 'object' && child !== null && hasFile(child, defs, depth + 1));
}
