// Generates JSON values for a type from TypeScript's checker (not from our own parser), and broken copies of them.
import ts from '../../support/typescript.mjs';

export type Random = () => number;

/** A random generator that gives the same numbers for the same seed. */
export function createRandom(seed: number): Random {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return state / 0x7fffffff;
  };
}

export const JUNK: readonly unknown[] = [
  'zzz',
  '',
  7,
  -1,
  0,
  true,
  false,
  null,
  [],
  {},
  ['q'],
  [1],
  { q: 1 },
  'a',
  'b',
  1.5,
];
const F = ts.TypeFlags;

export function createValues(checker: ts.TypeChecker, random: Random) {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;

  /** Generates a value; undefined for a type without a JSON value. */
  function make(type: ts.Type, depth = 0): unknown {
    if (type.flags & (F.Any | F.Unknown)) return pick(JUNK);
    if (type.flags & (F.StringLiteral | F.NumberLiteral)) return (type as ts.LiteralType).value;
    if (type.flags & F.BooleanLiteral) return checker.typeToString(type) === 'true';
    if (type.flags & F.TemplateLiteral) return templateValue(type);
    if (type.flags & F.String) return pick(['s', '', 'x y']);
    if (type.flags & F.Number) return pick([0, 1, -2.5]);
    if (type.flags & F.Null) return null;
    if (type.flags & (F.Undefined | F.Void | F.Never)) return undefined;
    if (type.flags & F.Enum) return pick([0, 1, 5]);
    if (type.isUnion()) return unionValue(type, depth);
    if (checker.isTupleType(type)) return tupleValue(type as ts.TypeReference, depth);
    if (checker.isArrayType(type))
      return listOf(checker.getTypeArguments(type as ts.TypeReference)[0] as ts.Type, depth);
    if (type.symbol?.name === 'Date') return '2020-01-02T03:04:05Z';
    if (type.flags & (F.Object | F.Intersection | F.NonPrimitive)) return objectValue(type, depth);
    return pick(JUNK);
  }

  function templateValue(type: ts.Type): string {
    const text = checker
      .typeToString(type)
      .slice(1, -1)
      .replace(/\$\{number\}/g, () => pick(['12', '0', '1.5', '-3', '1e3', '007', '5-5', '1.2.3', '']))
      .replace(/\$\{string\}/g, () => pick(['foo', '', 'a-b', '1.2', 'x,y', 'a[]', 'x']));
    const at = Math.floor(random() * text.length);
    return pick([
      text,
      text,
      text.slice(0, at) + text.slice(at + 1),
      text.slice(0, at) + text.slice(at - 1),
      'id-x',
      'a/',
      'v1.2',
    ]);
  }

  function unionValue(type: ts.UnionType, depth: number): unknown {
    const parts = type.types.filter((part) => !(part.flags & F.Undefined));
    const flat = parts.filter((part) => !(part.flags & F.Object));
    const list = depth > 3 && flat.length > 0 ? flat : parts;
    return list.length === 0 ? undefined : make(pick(list), depth);
  }

  function listOf(type: ts.Type, depth: number): unknown[] {
    const length = depth < 4 ? Math.floor(random() * 3) : 0;
    return Array.from({ length }, () => make(type, depth + 1) ?? null);
  }

  function tupleValue(type: ts.TypeReference, depth: number): unknown[] {
    const { elementFlags } = type.target as ts.TupleType;
    return checker.getTypeArguments(type).flatMap((item, i) => {
      const flag = elementFlags[i] as ts.ElementFlags;
      if (flag & ts.ElementFlags.Rest) return listOf(item, depth);
      return flag & ts.ElementFlags.Optional && random() < 0.5 ? [] : [make(item, depth + 1) ?? null];
    });
  }

  function objectValue(type: ts.Type, depth: number): unknown {
    if (type.getCallSignatures().length > 0) return {};
    const made: Record<string, unknown> = {};
    const put = (name: string, value: unknown) => {
      if (value !== undefined)
        Object.defineProperty(made, name, { value, enumerable: true, writable: true, configurable: true });
    };
    for (const property of checker.getPropertiesOfType(type)) {
      if (property.flags & ts.SymbolFlags.Method) continue;
      if (property.flags & ts.SymbolFlags.Optional && (depth > 3 || random() < 0.4)) continue;
      put(property.name, make(checker.getTypeOfSymbol(property), depth + 1));
    }
    const [index] = checker.getIndexInfosOfType(type);
    if (index !== undefined && depth < 4)
      put(index.keyType.flags & F.Number ? pick(['3', '-1.5', '07', 'k']) : 'k', make(index.type, depth + 1));
    return made;
  }

  /** A copy with one place changed: a field gone, another type, null, an extra field, another literal. */
  function broken(value: unknown): unknown {
    const box: Record<string, unknown> = { root: structuredClone(value) };
    const places: [holder: Record<string, unknown>, key: string][] = [];
    const walk = (holder: Record<string, unknown>, key: string) => {
      places.push([holder, key]);
      const inner = holder[key];
      if (typeof inner === 'object' && inner !== null)
        for (const one of Object.keys(inner)) walk(inner as Record<string, unknown>, one);
    };
    walk(box, 'root');
    const [holder, key] = pick(places);
    const what = random();
    const inner = holder[key];
    if (what < 0.25 && holder !== box && !Array.isArray(holder)) delete holder[key];
    else if (what < 0.35 && typeof inner === 'object' && inner !== null && !Array.isArray(inner))
      Object.assign(inner, { extra_field: pick(JUNK) });
    else if (what < 0.45 && Array.isArray(inner)) inner.push(pick(JUNK));
    else holder[key] = structuredClone(pick(JUNK));
    return box.root;
  }

  return {
    /** Returns fitting values, broken copies and junk, without duplicates. */
    some(type: ts.Type, count: number): unknown[] {
      const found = new Map<string, unknown>();
      const add = (value: unknown) => value !== undefined && found.set(JSON.stringify(value), value);
      for (let i = 0; i < count; i++) {
        const value = make(type);
        add(value);
        add(broken(random() < 0.5 ? broken(value) : value));
      }
      for (const value of JUNK) add(value);
      return [...found.values()];
    },
  };
}

/** The literal type that has this value alone. */
export function typeTextOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(typeTextOf).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{ ${Object.entries(value)
    .map(([key, inner]) => `${JSON.stringify(key)}: ${typeTextOf(inner)}`)
    .join('; ')} }`;
}
