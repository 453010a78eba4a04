// Finds recursive unions whose check has to try every part, because no field distinguishes the parts. On each level of
// a value all parts would be tried again, so the time would grow exponentially with the depth. Such a controller is
// refused.

import type { Schema } from '../contract.ts';
import { resolveReference } from './run.ts';
import { findTag, flattenParts, kindsOf } from './unions.ts';

/**
 * Describes the first recursive union whose parts no field distinguishes, in one line and with its cure. Returns
 * undefined when the schemas have no such union.
 */
export function findAmbiguity(schemas: readonly Schema[], defs: Readonly<Record<string, Schema>>): string | undefined {
  const resolve = (schema: Schema): Schema => resolveReference(schema, defs);
  const resolver = { resolve };
  const seen = new Set<Schema>();
  const queue = [...schemas];
  for (let schema = queue.pop(); schema !== undefined; schema = queue.pop()) {
    if (seen.has(schema)) continue;
    seen.add(schema);
    queue.push(...childrenOf(schema));
    const cure = schema.anyOf === undefined ? undefined : cureOf(schema);
    if (cure !== undefined)
      return `${nameOf(schema)} is a recursive union whose parts cannot be distinguished: ${cure}`;
  }
  return undefined;

  /**
   * Returns what to write instead of a union that is ambiguous and contains itself. Returns undefined when the union is
   * safe.
   */
  function cureOf(union: Schema): string | undefined {
    const parts = flattenParts(union.anyOf as Schema[], resolver);
    const objects = parts.filter((part) => kindsOf(part, resolver).has('object'));
    const lists = parts.filter((part) => kindsOf(part, resolver).has('array'));
    if (objects.length > 1 && findTag(objects, resolver) === undefined && reaches(objects, union)) {
      return "give them a field of different literals, like kind: 'a' and kind: 'b'";
    }
    return lists.length > 1 && reaches(lists, union)
      ? 'write one list of all entries instead of several lists'
      : undefined;
  }

  function reaches(from: readonly Schema[], target: Schema): boolean {
    const visited = new Set<Schema>();
    const stack = [...from];
    for (let schema = stack.pop(); schema !== undefined; schema = stack.pop()) {
      if (schema === target) return true;
      if (visited.has(schema)) continue;
      visited.add(schema);
      stack.push(...childrenOf(schema));
    }
    return false;
  }

  function childrenOf(schema: Schema): Schema[] {
    const {
      properties = {},
      items,
      prefixItems = [],
      anyOf = [],
      additionalProperties,
      patternProperties = {},
    } = schema as {
      properties?: Record<string, Schema>;
      items?: Schema | false;
      prefixItems?: Schema[];
      anyOf?: Schema[];
      additionalProperties?: Schema | true;
      patternProperties?: Record<string, Schema>;
    };
    const single = [items, additionalProperties].filter((child): child is Schema => typeof child === 'object');
    return [
      ...(schema.$ref === undefined ? [] : [resolve(schema)]),
      ...Object.values(properties),
      ...Object.values(patternProperties),
      ...prefixItems,
      ...anyOf,
      ...single,
    ];
  }

  function nameOf(schema: Schema): string {
    return Object.keys(defs).find((name) => defs[name] === schema) ?? 'this type';
  }
}
