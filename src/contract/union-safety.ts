// Refuses recursive unions whose parts can only be told apart by trying: a request could make each level try all parts again,
// which takes exponentially long in its depth.
import { kindsOf, partsOf, tagOf } from './check-unions.ts';
import type { Schema } from './contract.ts';

/** One line about the first such union, undefined when there is none. */
export function findAmbiguity(schemas: readonly Schema[], defs: Readonly<Record<string, Schema>>): string | undefined {
  const resolver = { resolve };
  const seen = new Set<Schema>();
  const queue = [...schemas];
  for (let schema = queue.pop(); schema !== undefined; schema = queue.pop()) {
    if (seen.has(schema)) continue;
    seen.add(schema);
    queue.push(...childrenOf(schema));
    if (schema.anyOf !== undefined && reaches(ambiguousParts(schema.anyOf as Schema[]), schema)) {
      return `${nameOf(schema)} is a recursive union whose parts cannot be told apart: give them a field of different literals, like kind: 'a' and kind: 'b'`;
    }
  }
  return undefined;

  function resolve(schema: Schema): Schema {
    let of = schema;
    for (let i = 0; typeof of.$ref === 'string' && i < 100; i++) of = defs[of.$ref.slice('#/$defs/'.length)] as Schema;
    return of;
  }

  function ambiguousParts(union: readonly Schema[]): Schema[] {
    const parts = partsOf(union, resolver);
    const objects = parts.filter((part) => kindsOf(part, resolver).has('object'));
    const lists = parts.filter((part) => kindsOf(part, resolver).has('array'));
    return [...(objects.length > 1 && tagOf(objects, resolver) === undefined ? objects : []), ...(lists.length > 1 ? lists : [])];
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
    } = schema as {
      properties?: Record<string, Schema>;
      items?: Schema | false;
      prefixItems?: Schema[];
      anyOf?: Schema[];
      additionalProperties?: Schema | true;
    };
    const one = [items, additionalProperties].filter((child): child is Schema => typeof child === 'object');
    return [...(schema.$ref === undefined ? [] : [resolve(schema)]), ...Object.values(properties), ...prefixItems, ...anyOf, ...one];
  }

  function nameOf(schema: Schema): string {
    return Object.keys(defs).find((name) => defs[name] === schema) ?? 'this type';
  }
}
