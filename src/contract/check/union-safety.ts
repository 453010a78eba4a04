// Finds recursive unions whose check would have to try every part, because no field distinguishes the parts:
// `type Tree = { left: Tree } | { right: Tree }`. All parts would be tried again at each depth of a value, so the time
// would grow exponentially with the depth. A controller with such a union is refused.

import type { Definitions, Schema } from '../contract.ts';
import { resolveReference } from './run.ts';
import { findTag, flattenParts, kindsOf } from './unions.ts';

/** Returns a line that describes the first such union, and says what to write instead. */
export function findAmbiguity(schemas: readonly Schema[], defs: Definitions): string | undefined {
  const resolver = { resolve: (schema: Schema): Schema => resolveReference(schema, defs) };
  for (const schema of reachableFrom(schemas)) {
    const cure = schema.anyOf === undefined ? undefined : cureOf(schema);
    if (cure !== undefined)
      return `${nameOf(schema)} is a recursive union whose parts cannot be distinguished: ${cure}`;
  }
  return undefined;

  /** Returns what to write instead of a recursive union with indistinguishable parts; undefined for a safe union. */
  function cureOf(union: Schema): string | undefined {
    const parts = flattenParts(union.anyOf ?? [], resolver);
    const objects = parts.filter((part) => kindsOf(part, resolver).has('object'));
    const lists = parts.filter((part) => kindsOf(part, resolver).has('array'));
    if (objects.length > 1 && findTag(objects, resolver) === undefined && reachableFrom(objects).has(union))
      return "give them a field of different literals, like kind: 'a' and kind: 'b'";
    return lists.length > 1 && reachableFrom(lists).has(union)
      ? 'write one list of all entries instead of several lists'
      : undefined;
  }

  /** Returns the schemas, and all schemas that they contain or refer to, at any depth. */
  function reachableFrom(schemas: readonly Schema[]): ReadonlySet<Schema> {
    const reached = new Set(schemas);
    // The set grows while the loop runs, and the loop also visits what was added.
    for (const schema of reached) {
      const { $ref, items, additionalProperties, properties, patternProperties, prefixItems, anyOf } = schema;
      const listed = [properties, patternProperties, prefixItems, anyOf].flatMap((list) => Object.values(list ?? {}));
      const target = $ref === undefined ? undefined : resolver.resolve(schema);
      for (const child of [target, ...listed, items, additionalProperties])
        if (typeof child === 'object') reached.add(child);
    }
    return reached;
  }

  function nameOf(schema: Schema): string {
    return Object.keys(defs).find((name) => defs[name] === schema) ?? 'this type';
  }
}
