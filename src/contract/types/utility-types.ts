// The types that TypeScript and `gatefold` bring along: Partial, Pick, Record, …; Int, Email, ControllerParams, ….

import { Unsupported } from '../source/source-error.ts';
import {
  constants,
  type Fail,
  NEVER,
  NO_NOTES,
  open,
  type Prop,
  poison,
  type RecordShape,
  recordOf,
  type Shape,
  STRING,
  UNDEFINED,
  unite,
  without,
} from './shape.ts';

export const GLOBALS: Readonly<Record<string, Shape | undefined>> = Object.assign(Object.create(null), {
  Date: { kind: 'date' },
  File: { kind: 'file' },
  Blob: { kind: 'file' },
  // As results: sent as they are.
  Uint8Array: { kind: 'bytes' },
  Buffer: { kind: 'bytes' },
  ReadableStream: { kind: 'bytes' },
  Response: { kind: 'bytes' },
} satisfies Record<string, Shape>);

const formatted = (format: string): Shape => ({ kind: 'string', keywords: { format } });

const ALIASES: Readonly<Record<string, Shape | undefined>> = Object.assign(Object.create(null), {
  Int: { kind: 'number', keywords: { integer: true } },
  Email: formatted('email'),
  Uuid: formatted('uuid'),
  DateTime: formatted('date-time'),
  DateOnly: formatted('date'),
  Uri: formatted('uri'),
} satisfies Record<string, Shape>);

/** What `gatefold` exports for use in types; undefined for what no request or result can be. */
export function OWN(name: string, args: readonly Shape[], fail: Fail): Shape | undefined {
  const alias = ALIASES[name];
  if (alias !== undefined) return alias;
  if (name === 'ControllerParams' || name === 'Params') return controllerParams(args[0], fail);
  if (name === 'Reply') return reply(args, fail);
  if (name === 'FormValue')
    return unite([STRING, { kind: 'file' }, { kind: 'array', of: unite([STRING, { kind: 'file' }]) }]);
  return name === 'EventStream' || name === 'ServerSentEvents' ? { kind: 'events' } : undefined;
}

/** The server gives these; no part of a request is checked against them. */
const SERVER_FIELDS =
  `page method verb slugs requestId application bytes log address waitUntil lastEventId request signal`.split(' ');
const NO_DATA = poison(new Unsupported('a ControllerParams is the second argument, the first is the data', '', 0));

/** An interface like any other, with a path and a query that are unchecked as long as nothing is said of them. */
function controllerParams(arg: Shape | undefined, fail: Fail): Shape {
  const given = arg === undefined ? new Map<string, Prop>() : recordOf(arg, fail).props;
  for (const name of given.keys())
    if (name !== 'path' && name !== 'query') fail(`ControllerParams takes path and query, and no ${name}`);
  const unsaid: Prop = { of: { kind: 'any' }, optional: false, notes: NO_NOTES };
  const props = new Map<string, Prop>(
    SERVER_FIELDS.map((name) => [name, { of: NO_DATA, optional: false, notes: NO_NOTES }]),
  );
  for (const name of ['path', 'query']) props.set(name, given.get(name) ?? unsaid);
  return { kind: 'record', props, index: undefined };
}

function reply([status, of]: readonly Shape[], fail: Fail): Shape {
  if (status === undefined) return { kind: 'reply', status: 200, of: { kind: 'any' } };
  const value = open(status);
  if (value.kind !== 'const' || typeof value.value !== 'number')
    return { kind: 'reply', status: 200, of: of ?? { kind: 'any' } };
  if (value.value < 200 || value.value > 399) return fail('the status of a Reply is from 200 to 399');
  return { kind: 'reply', status: value.value, of: of ?? { kind: 'any' } };
}

/** Undefined when there is no such type. */
export function utilityType(name: string, args: readonly Shape[], fail: Fail): Shape | undefined {
  const [first, second] = args as [Shape, Shape];
  const work = UTILITIES[name];
  if (work === undefined || args.length === 0) return undefined;
  if (work.length > 2 && second === undefined) return fail(`${name} needs two type arguments`);
  return work(fail, first, second);
}

type Work = (fail: Fail, first: Shape, second: Shape) => Shape;

const arrayOf: Work = (_, of) => ({ kind: 'array', of });
const itself: Work = (_, of) => of;
const noJson =
  (name: string): Work =>
  (fail) =>
    fail(`a ${name} has no JSON form`);

const UTILITIES: Readonly<Record<string, Work | undefined>> = Object.assign(Object.create(null), {
  Array: arrayOf,
  ReadonlyArray: arrayOf,
  Promise: itself,
  PromiseLike: itself,
  Awaited: itself,
  Readonly: itself,
  NoInfer: itself,
  Partial: (fail, of) => eachRecord(of, fail, (prop) => ({ ...prop, optional: true })),
  Required: (fail, of) =>
    eachRecord(of, fail, (prop) => ({
      ...prop,
      optional: false,
      of: prop.optional ? without(prop.of, 'undefined') : prop.of,
    })),
  Pick: (fail, of, names) => pick(recordOf(of, fail), namesOf(names, fail), true),
  // Omit is not distributive: of a union it keeps what all parts have.
  Omit: (fail, of, names) => pick(common(of, fail), namesOf(names, fail), false),
  Record: (fail, keys, of) => {
    const plain = open(keys);
    if (plain.kind === 'string' || plain.kind === 'number') {
      if (plain.keywords !== undefined) return fail('this kind of key is not understood');
      return { kind: 'record', props: new Map(), index: of, byNumber: plain.kind === 'number' };
    }
    const props = constants(plain, fail).map((key) => [String(key), { of, optional: false, notes: NO_NOTES }] as const);
    return { kind: 'record', props: new Map(props), index: undefined };
  },
  Exclude: (fail, of, values) => filterConstants(of, values, fail, false),
  Extract: (fail, of, values) => filterConstants(of, values, fail, true),
  NonNullable: (_, of) => without(of, 'null', 'undefined'),
  Uppercase: (fail, of) => eachText(of, fail, (text) => text.toUpperCase()),
  Lowercase: (fail, of) => eachText(of, fail, (text) => text.toLowerCase()),
  Capitalize: (fail, of) => eachText(of, fail, (text) => text.charAt(0).toUpperCase() + text.slice(1)),
  Uncapitalize: (fail, of) => eachText(of, fail, (text) => text.charAt(0).toLowerCase() + text.slice(1)),
  Set: noJson('Set'),
  Map: noJson('Map'),
  ReadableStream: () => ({ kind: 'bytes' }),
  Uint8Array: () => ({ kind: 'bytes' }),
  AsyncIterable: noJson('stream'),
} satisfies Record<string, Work>);

function eachText(shape: Shape, fail: Fail, change: (text: string) => string): Shape {
  return unite(constants(shape, fail).map((value): Shape => ({ kind: 'const', value: change(String(value)) })));
}

function namesOf(names: Shape, fail: Fail): ReadonlySet<string> {
  return new Set(constants(names, fail).map(String));
}

function pick(of: RecordShape, names: ReadonlySet<string>, wanted: boolean): Shape {
  // With an index signature every name is a key, and what is left of the fields is the signature.
  if (of.index !== undefined && !wanted && !of.byNumber) return { kind: 'record', props: new Map(), index: of.index };
  const props = new Map([...of.props].filter(([name]) => names.has(name) === wanted));
  return { kind: 'record', props, index: wanted ? undefined : of.index, byNumber: of.byNumber };
}

function eachRecord(shape: Shape, fail: Fail, change: (prop: Prop) => Prop): Shape {
  const of = open(shape);
  if (of.kind === 'union') return unite(of.of.map((part) => eachRecord(part, fail, change)));
  if (of.kind === 'array' || of.kind === 'tuple') return fail('Partial or Required of a list is not understood');
  if (of.kind !== 'record') return of;
  return { ...of, props: new Map(Array.from(of.props, ([name, prop]) => [name, change(prop)])) };
}

function common(shape: Shape, fail: Fail): RecordShape {
  const of = open(shape);
  if (of.kind !== 'union') return recordOf(of, fail);
  const [first, ...others] = of.of.map((part) => recordOf(part, fail)) as [RecordShape, ...RecordShape[]];
  const props = new Map<string, Prop>();
  for (const [name, prop] of first.props) {
    const all = others.map((other) => other.props.get(name));
    if (all.some((one) => one === undefined)) continue;
    const same = all as Prop[];
    props.set(name, {
      of: unite([prop.of, ...same.map((one) => one.of)]),
      optional: prop.optional || same.some((one) => one.optional),
      notes: prop.notes,
    });
  }
  return { kind: 'record', props, index: undefined };
}

/** Both given and asked for must be literals; `Extract<Shape, { kind: 'a' }>` asks for tsc itself. */
function filterConstants(of: Shape, values: Shape, fail: Fail, wanted: boolean): Shape {
  const given = new Set(constants(values, fail));
  const kept = constants(of, fail).filter((value) => given.has(value) === wanted);
  return unite(kept.map((value): Shape => ({ kind: 'const', value })));
}

export function keysOf(shape: Shape, fail: Fail): Shape {
  const of = open(shape);
  if (of.kind === 'union') return keysOf(common(of, fail), fail);
  if (of.kind !== 'record') return fail('keyof of something that is no object is not understood');
  if (of.index !== undefined && !of.byNumber) return STRING;
  const names = Array.from(of.props.keys(), (value): Shape => ({ kind: 'const', value }));
  return unite(of.byNumber ? [{ kind: 'number' }, ...names] : names);
}

/** `T['key']` */
export function propertyOf(object: Shape, key: Shape, fail: Fail): Shape {
  const of = open(object);
  const by = open(key);
  if (of.kind === 'any') return of;
  if (of.kind === 'union') return unite(of.of.map((part) => propertyOf(part, by, fail)));
  if (by.kind === 'union') return unite(by.of.map((part) => propertyOf(of, part, fail)));
  const isPlace = by.kind === 'number' || (by.kind === 'const' && typeof by.value === 'number');
  if (of.kind === 'array' && isPlace) return of.of;
  if (of.kind === 'tuple' && by.kind === 'number')
    return unite([...of.items.map((item) => item.of), ...(of.rest === undefined ? [] : [of.rest])]);
  if (of.kind === 'tuple' && by.kind === 'const')
    return of.items[Number(by.value)]?.of ?? of.rest ?? fail('there is no such place in the tuple');
  if (of.kind !== 'record') return fail('there is no such field');
  const prop = by.kind === 'const' ? of.props.get(String(by.value)) : undefined;
  if (prop !== undefined) return prop.optional ? unite([prop.of, UNDEFINED]) : prop.of;
  return of.index ?? fail('there is no such field');
}

/** `string`, `unknown`, …; undefined for one that JSON has no form for. */
export function word(name: string): Shape | undefined {
  switch (name) {
    case 'unknown':
    case 'any':
      return { kind: 'any' };
    case 'void':
      return UNDEFINED;
    case 'string':
      return STRING;
    case 'never':
      return NEVER;
    case 'bigint':
    case 'symbol':
      return undefined;
    default:
      return { kind: name as 'number' | 'boolean' | 'undefined' | 'object' };
  }
}
