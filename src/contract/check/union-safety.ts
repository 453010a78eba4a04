// Refuses recursive unions whose parts can only be told apart by trying: a request could make each level try all parts
// again, which takes exponentially long in its depth.

import type { Schema } from '../contract.ts';
import { resolveReference } from './run.ts';
import { kindsOf, partsOf, tagOf } from './unions.ts';

/** One line about the first such union, undefined when there is none. */
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
    if (cure !== undefined) return `${nameOf(schema)} is a recursive union whose parts cannot be told apart: ${cure}`;
  }
  return undefined;

  /** What to write instead of a union whose parts are ambiguous and contain it. */
  function cureOf(union: Schema): string | undefined {
    const parts = partsOf(union.anyOf as Schema[], resolver);
    const objects = parts.filter((part) => kindsOf(part, resolver).has('object'));
    const lists = parts.filter((part) => kindsOf(part, resolver).has('array'));
    if (objects.length > 1 && tagOf(objects, resolver) === undefined && reaches(objects, union)) {
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
    const one = [items, additionalProperties].filter((child): child is Schema => typeof child === 'object');
    return [
      ...(schema.$ref === undefined ? [] : [resolve(schema)]),
      ...Object.values(properties),
      ...Object.values(patternProperties),
      ...prefixItems,
      ...anyOf,
      ...one,
    ];
  }

  function nameOf(schema: Schema): string {
    return Object.keys(defs).find((name) => defs[name] === schema) ?? 'this type';
  }
}
