// The schemas of many groups in one place: each group names its own, so two may have the same name. What means the same is
// kept once under its name; what does not gets the group's name in front. It knows schemas and nothing of operations.
import type { Schema } from '../contract/contract.ts';

export interface GroupSchemas {
  readonly page: string;
  readonly defs: Readonly<Record<string, Schema>>;
}

export interface Components {
  readonly schemas: Readonly<Record<string, Schema>>;
  /** The schema of an operation of the group, as it stands in the document. */
  publish(page: string, schema: Schema): Schema;
}

const DEFS = '#/$defs/';

/** @param taken names that belong to the document itself */
export function createComponents(groups: readonly GroupSchemas[], taken: readonly string[]): Components {
  const contested = findContested(groups, taken);
  const nameOf = (page: string, name: string) => (contested.has(name) ? `${page}.${name}` : name);
  const publish = (page: string, schema: Schema) => published(schema, (name) => nameOf(page, name)) as Schema;
  const named = groups.flatMap(({ page, defs }) =>
    Object.entries(defs).map(([name, schema]): [string, Schema] => [nameOf(page, name), publish(page, schema)]),
  );
  return { schemas: Object.fromEntries(named.sort(([a], [b]) => (a < b ? -1 : 1))), publish };
}

/** Names under which two groups mean different things, and those whose schemas refer to such a name. */
function findContested(groups: readonly GroupSchemas[], taken: readonly string[]): ReadonlySet<string> {
  const contested = new Set(taken);
  const texts = new Map<string, string>();
  const users = new Map<string, Set<string>>();
  for (const { defs } of groups) {
    for (const [name, schema] of Object.entries(defs)) {
      const text = JSON.stringify(schema);
      if ((texts.get(name) ?? text) !== text) contested.add(name);
      texts.set(name, text);
      for (const used of namesIn(schema)) users.set(used, (users.get(used) ?? new Set()).add(name));
    }
  }
  // A set may grow while it is walked: the walk comes to what is added.
  for (const name of contested) for (const user of users.get(name) ?? []) contested.add(user);
  return contested;
}

function namesIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(namesIn);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    const isName = key === '$ref' && typeof inner === 'string' && inner.startsWith(DEFS);
    return isName ? [inner.slice(DEFS.length)] : namesIn(inner);
  });
}

/** Plain JSON, its references leading to the components. */
function published(value: unknown, nameOf: (name: string) => string): unknown {
  if (Array.isArray(value)) return value.map((item) => published(item, nameOf));
  if (typeof value !== 'object' || value === null) return value;
  const made: Record<string, unknown> = {};
  for (const [key, inner] of Object.entries(value)) {
    const isName = key === '$ref' && typeof inner === 'string' && inner.startsWith(DEFS);
    made[key] = isName ? `#/components/schemas/${nameOf(inner.slice(DEFS.length))}` : published(inner, nameOf);
  }
  return asTheyKnowIt(made);
}

/** Where JSON Schema leaves a choice, what the tools of others understand: the type of a constant, the older name of a file. */
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
  const found = follow(schema, defs);
  if (found === undefined || depth > 8) return false;
  if (isFile(found)) return true;
  const inner = [
    found.items,
    ...Object.values((found.properties as object | undefined) ?? {}),
    ...((found.anyOf as unknown[] | undefined) ?? []),
  ];
  return inner.some((one) => typeof one === 'object' && one !== null && hasFile(one as Schema, defs, depth + 1));
}

export function follow(schema: Schema | undefined, defs: Readonly<Record<string, Schema>>): Schema | undefined {
  let found = schema;
  for (let steps = 0; steps < 20 && typeof found?.$ref === 'string' && found.$ref.startsWith(DEFS); steps++) {
    found = defs[found.$ref.slice(DEFS.length)];
  }
  return found;
}
