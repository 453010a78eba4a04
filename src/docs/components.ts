// The named schemas of the document: those that its operations refer to, and no others. Two groups may use one name.
// Where both mean the same, the document has it once. Where they differ, each name gets the name of its group in front.

import { resolveReference } from '../contract/check/run.ts';
import type { Schema } from '../contract/contract.ts';

export interface Components {
  /** Returns the schema of an operation as the document has it. Each schema that it refers to becomes a component. */
  publish(group: SchemaGroup, schema: Schema): Schema;
  /** Returns all components by name, and completes the references to them. */
  finish(): Readonly<Record<string, Schema>>;
}

/** The group that a schema belongs to. */
export interface SchemaGroup {
  readonly page: string;
  readonly defs: Readonly<Record<string, Schema>>;
}

interface Component {
  readonly page: string;
  readonly name: string;
  /** The JSON of the schema as its group has it, to tell two meanings apart. */
  readonly text: string;
  /** The names that its schema refers to. */
  readonly uses: Set<string>;
  /** Every reference to the component. `finish` writes the name into each. */
  readonly references: { $ref: string }[];
  schema: Schema;
}

const DEFS = '#/$defs/';

/** @param taken names that belong to the document itself */
export function createComponents(taken: readonly string[]): Components {
  const reached = new Map<string, Component>();

  function publish(group: SchemaGroup, value: unknown, user?: Component): unknown {
    if (Array.isArray(value)) return value.map((item) => publish(group, item, user));
    if (typeof value !== 'object' || value === null) return value;
    const entries = Object.entries(value).map(([key, inner]): [string, unknown] => [key, publish(group, inner, user)]);
    const schema = asTheyKnowIt(Object.fromEntries(entries));
    if (isReference(schema)) refer(group, schema, user);
    return schema;
  }

  function refer(group: SchemaGroup, reference: { $ref: string }, user: Component | undefined): void {
    const { page, defs } = group;
    const name = reference.$ref.slice(DEFS.length);
    user?.uses.add(name);
    let component = reached.get(`${page} ${name}`);
    if (component === undefined) {
      component = { page, name, text: JSON.stringify(defs[name]), uses: new Set(), references: [], schema: {} };
      reached.set(`${page} ${name}`, component);
      component.schema = publish(group, defs[name], component) as Schema;
    }
    component.references.push(reference);
  }

  return {
    publish: (group, schema) => publish(group, schema) as Schema,
    finish() {
      const contested = findContested([...reached.values()], taken);
      const named = Array.from(reached.values(), ({ page, name, references, schema }): [string, Schema] => {
        const shown = contested.has(name) ? `${page}.${name}` : name;
        for (const reference of references) reference.$ref = `#/components/schemas/${shown}`;
        return [shown, schema];
      });
      return Object.fromEntries(named.sort(([a], [b]) => (a < b ? -1 : 1)));
    },
  };
}

/** Names under which two groups mean different things, and those whose schemas refer to such a name. */
function findContested(components: readonly Component[], taken: readonly string[]): ReadonlySet<string> {
  const contested = new Set(taken);
  const texts = new Map<string, string>();
  for (const { name, text } of components) {
    if ((texts.get(name) ?? text) !== text) contested.add(name);
    texts.set(name, text);
  }
  // A set may grow while it is walked: the walk comes to what is added.
  for (const name of contested)
    for (const component of components) if (component.uses.has(name)) contested.add(component.name);
  return contested;
}

function isReference(schema: Schema): schema is { $ref: string } {
  return typeof schema.$ref === 'string' && schema.$ref.startsWith(DEFS);
}

/**
 * Where JSON Schema leaves a choice, what the tools of others understand: the type of a constant, the older name of a
 * file.
 */
function asTheyKnowIt(schema: Schema): Schema {
  if (isFile(schema)) return { ...schema, format: 'binary' };
  const values = schema.const === undefined ? schema.enum : [schema.const];
  if (schema.type !== undefined || !Array.isArray(values)) return schema;
  const [type, ...others] = new Set(values.map((value) => typeof value));
  return others.length === 0 && type !== 'object' ? { type, ...schema } : schema;
}

export function isFile({ type, contentMediaType }: Schema): boolean {
  return type === 'string' && contentMediaType !== undefined;
}

/** Whether there is a file in an object, so that it comes as a form. */
export function hasFile(schema: Schema | undefined, defs: Readonly<Record<string, Schema>>, depth = 0): boolean {
  const found = resolveReference(schema, defs);
  if (depth > 8) return false;
  if (isFile(found)) return true;
  const inner = [
    found.items,
    ...Object.values((found.properties as object | undefined) ?? {}),
    ...((found.anyOf as unknown[] | undefined) ?? []),
  ];
  return inner.some((one) => typeof one === 'object' && one !== null && hasFile(one as Schema, defs, depth + 1));
}
