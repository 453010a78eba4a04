// Computes the types that TypeScript provides (`Partial`, `Pick`, …) and those of `gatefold` (`Int`, `Email`, …).

import { isReplyStatus } from '../../base/values.ts';
import { Unsupported, WRITE_OUT } from '../source/source-error.ts';
import type { PackageType } from './look-up.ts';
import {
  excludeKinds,
  expectRecord,
  type Fail,
  failingShape,
  includesKind,
  listConstants,
  type NamedShape,
  NEVER,
  NO_LITERALS,
  type Prop,
  partsOf,
  type RecordShape,
  recordOf,
  requiredProp,
  resolve,
  type Shape,
  STRING,
  UNDEFINED,
  UNREAD_KEY,
  unite,
} from './shape.ts';

const GLOBAL_TYPES: Readonly<Record<string, Shape | undefined>> = Object.assign(Object.create(null), {
  Date: { kind: 'date' },
  File: { kind: 'file' },
  Blob: { kind: 'file' },
  // Results of these types are sent unchanged.
  Uint8Array: { kind: 'bytes' },
  Buffer: { kind: 'bytes' },
  ReadableStream: { kind: 'bytes' },
  Response: { kind: 'bytes' },
} satisfies Record<string, Shape>);

/** Returns the type of a module of Node, such as `Readable` of node:stream; undefined for all but bytes and files. */
export function nodeType({ packageName, exportedName }: PackageType): Shape | undefined {
  const name = exportedName === 'Readable' ? 'ReadableStream' : exportedName;
  return packageName.startsWith('node:') ? GLOBAL_TYPES[name] : undefined;
}

const formatted = (format: string): Shape => ({ kind: 'string', keywords: { format } });

const GATEFOLD_ALIASES: Readonly<Record<string, Shape | undefined>> = Object.assign(Object.create(null), {
  Int: { kind: 'number', keywords: { integer: true } },
  Email: formatted('email'),
  Uuid: formatted('uuid'),
  DateTime: formatted('date-time'),
  DateOnly: formatted('date'),
  Uri: formatted('uri'),
} satisfies Record<string, Shape>);

export function gatefoldType(name: string, args: readonly Shape[], fail: Fail): Shape | undefined {
  const alias = GATEFOLD_ALIASES[name];
  if (alias !== undefined) return alias;
  if (name === 'ControllerParams' || name === 'Params') return controllerParams(args[0], fail);
  if (name === 'Reply') return reply(args, fail);
  if (name === 'ErrorReply') return args[0] ?? { kind: 'any' };
  if (name === 'FormValue')
    return unite([STRING, { kind: 'file' }, { kind: 'array', element: unite([STRING, { kind: 'file' }]) }]);
  return name === 'EventStream' ? { kind: 'events', data: args[0] ?? { kind: 'any' } } : undefined;
}

/** Fields of ControllerParams that the server fills, so no request is checked against them. */
const SERVER_FIELDS =
  'page method verb slugs requestId application base bytes log trace address waitUntil lastEventId request signal cookies setHeader appendHeader setCookie toRequest'.split(
    ' ',
  );
/** The shape of the fields that the server fills. It fails when an operation declares ControllerParams as its data. */
const SERVER_FIELD_SHAPE = failingShape(
  new Unsupported('a ControllerParams is the second argument', '', 0, 'write (data: unknown, params: …)'),
);

/** Whether a record has all fields of ControllerParams that the server fills, as by `&` and `extends`. */
export const isControllerParams = (props: ReadonlyMap<string, Prop>): boolean =>
  SERVER_FIELDS.every((name) => props.has(name));

const PARAMS_PARTS = ['path', 'query', 'headers', 'user'];

/** Returns the record of `ControllerParams<{ path, query, headers, user }>`. Each part that is left out is `any`. */
function controllerParams(arg: Shape | undefined, fail: Fail): Shape {
  const argProps = arg === undefined ? new Map<string, Prop>() : expectRecord(arg, fail).props;
  for (const name of argProps.keys())
    if (!PARAMS_PARTS.includes(name)) fail(`ControllerParams takes path, query, headers and user, and no ${name}`);
  const props = new Map(SERVER_FIELDS.map((name) => [name, requiredProp(SERVER_FIELD_SHAPE)]));
  for (const name of PARAMS_PARTS) props.set(name, argProps.get(name) ?? requiredProp({ kind: 'any' }));
  const user = argProps.get('user');
  if (user !== undefined) props.set('user', { ...user, isUser: true });
  return recordOf(props);
}

/** Returns the shape of `Reply<201, T>`, or a union for `Reply<201 | 202, T>`. Any other type gives the status 200. */
function reply([type, body = { kind: 'any' }]: readonly Shape[], fail: Fail): Shape {
  const parts = type === undefined ? [undefined] : partsOf(type);
  const statuses = parts.map((part) => (part?.kind === 'const' && typeof part.value === 'number' ? part.value : 200));
  if (!statuses.every(isReplyStatus)) fail('the status of a Reply is from 200 to 399');
  return unite(statuses.map((status): Shape => ({ kind: 'reply', status, body })));
}

/** Returns undefined for an unknown name, and for a name without type arguments. */
export function globalType(name: string, args: readonly Shape[], fail: Fail): Shape | undefined {
  const [first, second] = args as [Shape, Shape];
  const apply = UTILITIES[name];
  if (apply === undefined || args.length === 0) return GLOBAL_TYPES[name];
  // A function with three parameters needs two type arguments.
  if (apply.length > 2 && second === undefined) return fail(`${name} needs two type arguments`);
  return apply(fail, first, second);
}

type Utility = (fail: Fail, first: Shape, second: Shape) => Shape;

const arrayOf: Utility = (_, element) => ({ kind: 'array', element });
const unwrap: Utility = (_, type) => type;

const UTILITIES: Readonly<Record<string, Utility | undefined>> = Object.assign(Object.create(null), {
  Array: arrayOf,
  ReadonlyArray: arrayOf,
  Promise: unwrap,
  PromiseLike: unwrap,
  Awaited: unwrap,
  Readonly: unwrap,
  NoInfer: unwrap,
  Partial: (fail, type) => mapProps(type, fail, (prop) => ({ ...prop, isOptional: true, fillsDefault: false })),
  Required: (fail, type) =>
    mapProps(type, fail, (prop) => ({
      ...prop,
      isOptional: false,
      fillsDefault: false,
      shape: prop.isOptional ? excludeKinds(prop.shape, 'undefined') : prop.shape,
    })),
  // Pick and Omit are not distributive: they know only the fields that all parts of a union have.
  Pick: (fail, type, names) => filterProps(commonRecord(type, fail), names, true, fail),
  Omit: (fail, type, names) => filterProps(commonRecord(type, fail), names, false, fail),
  Record: (fail, keys, value) => {
    const keyShape = resolve(keys);
    if (keyShape.kind === 'string' || keyShape.kind === 'number') {
      if (keyShape.keywords !== undefined) return fail(...UNREAD_KEY);
      return { kind: 'record', props: new Map(), index: value, isNumberIndex: keyShape.kind === 'number' };
    }
    return recordOf(
      listConstants(keyShape, fail).map((key) => [
        String(key),
        { ...requiredProp(value), isNumberKey: typeof key === 'number' },
      ]),
    );
  },
  Exclude: (fail, type, excluded) => filterConstants(type, excluded, fail, false),
  Extract: (fail, type, wanted) => filterConstants(type, wanted, fail, true),
  NonNullable: (_, type) =>
    resolve(type).kind === 'any' ? { ...recordOf([]), isOpen: true } : excludeKinds(type, 'null', 'undefined'),
  Uppercase: (fail, type) => mapConstants(type, fail, (text) => text.toUpperCase()),
  Lowercase: (fail, type) => mapConstants(type, fail, (text) => text.toLowerCase()),
  Capitalize: (fail, type) => mapConstants(type, fail, (text) => text.charAt(0).toUpperCase() + text.slice(1)),
  Uncapitalize: (fail, type) => mapConstants(type, fail, (text) => text.charAt(0).toLowerCase() + text.slice(1)),
  Set: (fail) => fail('a Set has no JSON form'),
  Map: (fail) => fail('a Map has no JSON form'),
  AsyncIterable: (fail) => fail('a stream has no JSON form'),
} satisfies Record<string, Utility>);

function mapConstants(shape: Shape, fail: Fail, change: (text: string) => string): Shape {
  return unite(listConstants(shape, fail).map((value): Shape => ({ kind: 'const', value: change(String(value)) })));
}

/** Keeps the fields with the names (`Pick`), or the other fields (`Omit`). */
function filterProps(record: RecordShape, named: Shape, keepsNamed: boolean, fail: Fail): Shape {
  const names = new Set<unknown>(listConstants(named, fail));
  if (keepsNamed && [...names].some((name) => !record.props.has(String(name)))) fail('there is no such field');
  // `keyof` a record with an index signature is `string`, so `Omit` removes all fields and keeps only the signature.
  if (record.index !== undefined && !keepsNamed && !record.isNumberIndex) return { ...record, props: new Map() };
  const props = new Map([...record.props].filter(([name, prop]) => names.has(keyOf(name, prop)) === keepsNamed));
  return { kind: 'record', props, index: keepsNamed ? undefined : record.index, isNumberIndex: record.isNumberIndex };
}

function mapProps(shape: Shape, fail: Fail, change: (prop: Prop) => Prop): Shape {
  const resolved = resolve(shape);
  if (resolved.kind === 'union') return unite(resolved.parts.map((part) => mapProps(part, fail, change)));
  if (resolved.kind === 'array' || resolved.kind === 'tuple')
    return fail('Partial or Required of a list is not understood');
  if (resolved.kind !== 'record') return resolved;
  return { ...resolved, props: new Map(Array.from(resolved.props, ([name, prop]) => [name, change(prop)])) };
}

/** Returns the fields that all parts of a union have. A record is returned as it is. */
function commonRecord(shape: Shape, fail: Fail): RecordShape {
  const [first, ...others] = partsOf(shape).map((part) => expectRecord(part, fail)) as [RecordShape, ...RecordShape[]];
  if (others.length === 0) return first;
  if ([first, ...others].some(({ index }) => index !== undefined))
    fail('the key of a union with an index signature is not understood');
  const props = new Map<string, Prop>();
  for (const [name, prop] of first.props) {
    const sameName = others.map((other) => other.props.get(name)).filter((other) => other !== undefined);
    if (sameName.length < others.length) continue;
    props.set(name, {
      shape: unite([prop.shape, ...sameName.map((other) => other.shape)]),
      isOptional: prop.isOptional || sameName.some((other) => other.isOptional),
      notes: prop.notes,
      isNumberKey: prop.isNumberKey,
    });
  }
  return recordOf(props);
}

/** Computes `Exclude` and `Extract` for literals, null and undefined. Objects would need a type checker. */
function filterConstants(shape: Shape, filter: Shape, fail: Fail, keepsMatches: boolean): Shape {
  const withoutEmpty = excludeKinds(filter, 'null', 'undefined');
  const values = new Set(listConstants(withoutEmpty, fail));
  const matches = (part: Exclude<Shape, NamedShape>): boolean => {
    if (part.kind === 'null' || part.kind === 'undefined') return includesKind(filter, part.kind);
    // Without literals, the filter is null or undefined, and no other part is one of these.
    return part.kind === 'const' ? values.has(part.value) : values.size > 0 && fail(NO_LITERALS, WRITE_OUT);
  };
  const select = (part: Shape): Shape => {
    const resolved = resolve(part);
    if (resolved.kind === 'union') return unite(resolved.parts.map(select));
    if (resolved.kind === 'any') return fail(NO_LITERALS, WRITE_OUT);
    return matches(resolved) === keepsMatches ? part : NEVER;
  };
  return select(shape);
}

const keyOf = (name: string, { isNumberKey }: Prop): string | number => (isNumberKey === true ? Number(name) : name);

export function keysOf(shape: Shape, fail: Fail): Shape {
  const resolved = resolve(shape);
  if (resolved.kind === 'union') return keysOf(commonRecord(resolved, fail), fail);
  if (resolved.kind !== 'record') return fail('keyof of something that is not an object is not understood');
  if (resolved.index !== undefined && !resolved.isNumberIndex) return STRING;
  const names = Array.from(resolved.props, ([name, prop]): Shape => ({ kind: 'const', value: keyOf(name, prop) }));
  return unite(resolved.isNumberIndex ? [{ kind: 'number' }, ...names] : names);
}

/** `T['key']`. For a union of keys, and for a union `T`, returns the union of the fields' types. */
export function propertyOf(object: Shape, key: Shape, fail: Fail): Shape {
  const resolved = resolve(object);
  const resolvedKey = resolve(key);
  if (resolved.kind === 'any') return resolved;
  if (resolved.kind === 'union') return unite(resolved.parts.map((part) => propertyOf(part, resolvedKey, fail)));
  if (resolvedKey.kind === 'union') return unite(resolvedKey.parts.map((part) => propertyOf(resolved, part, fail)));
  const isPosition =
    resolvedKey.kind === 'number' || (resolvedKey.kind === 'const' && /^\d+$/.test(String(resolvedKey.value)));
  if (resolved.kind === 'array' && isPosition) return resolved.element;
  if (resolved.kind === 'tuple') {
    const { items, rest = NEVER } = resolved;
    const shapes = [...items.map(({ shape, isOptional }) => (isOptional ? unite([shape, UNDEFINED]) : shape)), rest];
    if (resolvedKey.kind === 'number') return unite(shapes);
    const place = resolvedKey.kind === 'const' && isPosition ? (shapes[Number(resolvedKey.value)] ?? rest) : NEVER;
    return place === NEVER ? fail('there is no such place in the tuple') : place;
  }
  if (resolved.kind !== 'record') return fail('there is no such field');
  const prop = resolvedKey.kind === 'const' ? resolved.props.get(String(resolvedKey.value)) : undefined;
  if (prop !== undefined) return prop.isOptional ? unite([prop.shape, UNDEFINED]) : prop.shape;
  return resolved.index ?? fail('there is no such field');
}

/** The shapes of the built-in types with a JSON form. `undefined` has none, but says that a field may be left out. */
export const BUILTIN_SHAPES: Readonly<Record<string, Shape | undefined>> = {
  unknown: { kind: 'any' },
  any: { kind: 'any' },
  void: UNDEFINED,
  undefined: UNDEFINED,
  never: NEVER,
  string: STRING,
  number: { kind: 'number' },
  boolean: { kind: 'boolean' },
  object: { kind: 'object' },
};
