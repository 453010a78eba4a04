// Shapes made narrower: by intersection with another, and by the constraints of a doc comment.
import { CONSTRAINTS, type Family } from '../source/constraint-tags.ts';
import { FORMATS, isNumberName } from './formats.ts';
import { checkPattern } from './pattern.ts';
import {
  type Fail,
  idOf,
  type Keywords,
  NEVER,
  open,
  type Prop,
  type RecordShape,
  type Shape,
  unite,
} from './shape.ts';

export function intersect(a: Shape, b: Shape, fail: Fail): Shape {
  const x = open(a);
  const y = open(b);
  if (x.kind === 'any') return b;
  if (y.kind === 'any') return a;
  if (x.kind === 'union') return unite(x.of.map((part) => intersect(part, b, fail)));
  if (y.kind === 'union') return unite(y.of.map((part) => intersect(a, part, fail)));
  if (x.kind === 'record' && y.kind === 'record') return intersectRecords(x, y, fail);
  if (takesAnything(x, y)) return b;
  if (takesAnything(y, x)) return a;
  if (isScalar(x) && isScalar(y) && x.kind === y.kind) return withKeywords(x, y.keywords ?? {}, fail);
  if (x.kind === y.kind && idOf(x) === idOf(y)) return a;
  if (x.kind === 'object' && isStructure(y)) return b;
  if (y.kind === 'object' && isStructure(x)) return a;
  if (isBrandOf(y, x)) return a;
  if (isBrandOf(x, y)) return b;
  if (x.kind === 'const') return isValueOf(x, y) ? a : NEVER;
  if (y.kind === 'const') return isValueOf(y, x) ? b : NEVER;
  return isSimple(x) && isSimple(y) ? NEVER : fail('this intersection is not understood');
}

function intersectRecords(x: RecordShape, y: RecordShape, fail: Fail): Shape {
  const props = new Map(x.props);
  for (const [key, prop] of y.props) props.set(key, intersectProps(x.props.get(key), prop, indexFor(x, key), fail));
  for (const [key, prop] of x.props) {
    const index = indexFor(y, key);
    if (index !== undefined && !y.props.has(key)) props.set(key, { ...prop, of: intersect(prop.of, index, fail) });
  }
  if (x.index !== undefined && y.index !== undefined && (x.byNumber ?? false) !== (y.byNumber ?? false)) {
    fail('index signatures by string and by number together are not understood');
  }
  const index =
    x.index === undefined || y.index === undefined ? (x.index ?? y.index) : intersect(x.index, y.index, fail);
  return { kind: 'record', props, index, byNumber: x.index === undefined ? y.byNumber : x.byNumber };
}

const indexFor = ({ index, byNumber }: RecordShape, key: string): Shape | undefined =>
  byNumber && !isNumberName(key) ? undefined : index;

function intersectProps(before: Prop | undefined, prop: Prop, index: Shape | undefined, fail: Fail): Prop {
  const other = before?.of ?? index;
  if (other === undefined) return prop;
  const optional = prop.optional && (before?.optional ?? true);
  return { of: intersect(other, prop.of, fail), optional, notes: { ...before?.notes, ...prop.notes } };
}

type Scalar = Extract<Shape, { kind: 'string' | 'number' }>;
const isScalar = (shape: Shape): shape is Scalar => shape.kind === 'string' || shape.kind === 'number';
export const isStructure = (shape: Shape): boolean => /^(?:record|array|tuple|date|file)$/.test(shape.kind);
const isSimple = (shape: Shape): boolean => /^(?:null|undefined|string|number|boolean|never)$/.test(shape.kind);
const isNothing = (shape: Shape): boolean => shape.kind === 'null' || shape.kind === 'undefined';

/** `{}`, beside something that is there. */
function takesAnything(x: Shape, y: Shape): boolean {
  return x.kind === 'record' && x.props.size === 0 && x.index === undefined && !isNothing(y);
}

function isValueOf(literal: Extract<Shape, { kind: 'const' }>, of: Shape): boolean {
  if (of.kind === 'const') return of.value === literal.value;
  if (of.kind !== typeof literal.value) return false;
  const pattern = of.kind === 'string' ? of.keywords?.pattern : undefined;
  return pattern === undefined || new RegExp(pattern as string, 'u').test(literal.value as string);
}

/** A brand: `string & { readonly __brand: 'Id' }` is a string. No text and no number of a request has fields. */
function isBrandOf(brand: Shape, shape: Shape): boolean {
  if (brand.kind !== 'record' || brand.index !== undefined || shape.kind === 'record') return false;
  const isValue = isScalar(shape) || shape.kind === 'boolean' || shape.kind === 'const';
  return isValue || [...brand.props.keys()].every((key) => key.startsWith('_'));
}

/** The shape, with constraints. @param fail called when one of them can have no effect */
export function constrain(shape: Shape, keywords: Keywords, fail: Fail): Shape {
  let of = shape;
  for (const family of ['string', 'number', 'array'] as const) {
    const own = Object.fromEntries(Object.entries(keywords).filter(([tag]) => CONSTRAINTS[tag]?.for === family));
    const [tag] = Object.keys(own);
    if (tag === undefined) continue;
    const made = apply(of, family, own, fail);
    if (made === undefined) return fail(`@${tag} is for ${PLURAL[family]}, and this is none`);
    of = made;
  }
  return of;
}

const PLURAL: Readonly<Record<Family, string>> = { string: 'strings', number: 'numbers', array: 'lists' };

/** Undefined when it has no place there. */
function apply(shape: Shape, family: Family, keywords: Keywords, fail: Fail): Shape | undefined {
  const of = open(shape);
  if (of.kind === 'union') {
    const parts = of.of.map((part) => apply(part, family, keywords, fail));
    return parts.every((part) => part === undefined) ? undefined : unite(of.of.map((part, i) => parts[i] ?? part));
  }
  if (family === 'array' ? of.kind === 'array' : of.kind === family) return withKeywords(of as Scalar, keywords, fail);
  return undefined;
}

/** Where both say something, the stricter holds. */
function withKeywords<T extends Scalar | Extract<Shape, { kind: 'array' }>>(
  shape: T,
  keywords: Keywords,
  fail: Fail,
): T {
  const merged: Record<string, unknown> = { ...shape.keywords };
  for (const [key, value] of Object.entries(keywords)) {
    const before = merged[key];
    if (before === undefined || before === value) merged[key] = value;
    else if (/^(?:min|exclusiveMin)/.test(key)) merged[key] = Math.max(before as number, value as number);
    else if (/^(?:max|exclusiveMax)/.test(key)) merged[key] = Math.min(before as number, value as number);
    else fail(`there are two different ${key}s`);
  }
  if (merged.format !== undefined && FORMATS[merged.format as string] === undefined) {
    fail(`the format ${String(merged.format)} is not known; known are ${Object.keys(FORMATS).join(', ')}`);
  }
  if (typeof merged.pattern === 'string') {
    const mistake = checkPattern(merged.pattern);
    if (mistake !== undefined) fail(`@pattern ${merged.pattern}: ${mistake}`);
  }
  return Object.keys(merged).length === 0 ? shape : { ...shape, keywords: merged };
}
