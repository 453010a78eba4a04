// Narrows shapes (the meanings of types): by `A & B`, and by the constraints of a doc comment, such as `@minimum 1`.
import { CONSTRAINTS, type ConstrainedKind } from '../source/constraint-tags.ts';
import { FORMATS, isNumberName } from './formats.ts';
import { checkPattern } from './pattern.ts';
import {
  type Fail,
  idOf,
  type Keywords,
  NEVER,
  type Prop,
  type RecordShape,
  resolve,
  type Shape,
  unite,
} from './shape.ts';

export function intersect(a: Shape, b: Shape, fail: Fail): Shape {
  const left = resolve(a);
  const right = resolve(b);
  if (left.kind === 'any') return b;
  if (right.kind === 'any') return a;
  if (left.kind === 'union') return unite(left.parts.map((part) => intersect(part, b, fail)));
  if (right.kind === 'union') return unite(right.parts.map((part) => intersect(a, part, fail)));
  if (left.kind === 'record' && right.kind === 'record') return intersectRecords(left, right, fail);
  if (isEmptyRecordFor(left, right)) return b;
  if (isEmptyRecordFor(right, left)) return a;
  if (isScalar(left) && isScalar(right) && left.kind === right.kind)
    return mergeKeywords(left, right.keywords ?? {}, fail);
  if (left.kind === right.kind && idOf(left) === idOf(right)) return a;
  if (left.kind === 'object' && isStructure(right)) return b;
  if (right.kind === 'object' && isStructure(left)) return a;
  if (isBrandFor(right, left)) return a;
  if (isBrandFor(left, right)) return b;
  if (left.kind === 'const') return isValueOf(left, right) ? a : NEVER;
  if (right.kind === 'const') return isValueOf(right, left) ? b : NEVER;
  return isPrimitive(left) && isPrimitive(right) ? NEVER : fail('this intersection is not understood');
}

function intersectRecords(left: RecordShape, right: RecordShape, fail: Fail): Shape {
  const props = new Map(left.props);
  for (const [key, prop] of right.props)
    props.set(key, intersectProps(left.props.get(key), prop, indexTypeOf(left, key), fail));
  for (const [key, prop] of left.props) {
    const index = indexTypeOf(right, key);
    if (index !== undefined && !right.props.has(key))
      props.set(key, { ...prop, shape: intersect(prop.shape, index, fail) });
  }
  if (
    left.index !== undefined &&
    right.index !== undefined &&
    (left.isNumberIndex ?? false) !== (right.isNumberIndex ?? false)
  ) {
    fail('index signatures by string and by number together are not understood');
  }
  const index =
    left.index === undefined || right.index === undefined
      ? (left.index ?? right.index)
      : intersect(left.index, right.index, fail);
  return {
    kind: 'record',
    props,
    index,
    isNumberIndex: left.index === undefined ? right.isNumberIndex : left.isNumberIndex,
  };
}

const indexTypeOf = ({ index, isNumberIndex }: RecordShape, key: string): Shape | undefined =>
  isNumberIndex && !isNumberName(key) ? undefined : index;

function intersectProps(existing: Prop | undefined, prop: Prop, index: Shape | undefined, fail: Fail): Prop {
  const other = existing?.shape ?? index;
  if (other === undefined) return prop;
  const isOptional = prop.isOptional && (existing?.isOptional ?? true);
  return { shape: intersect(other, prop.shape, fail), isOptional, notes: { ...existing?.notes, ...prop.notes } };
}

type Scalar = Extract<Shape, { kind: 'string' | 'number' }>;
const isScalar = (shape: Shape): shape is Scalar => shape.kind === 'string' || shape.kind === 'number';
export const isStructure = (shape: Shape): boolean => /^(?:record|array|tuple|date|file)$/.test(shape.kind);
const isPrimitive = (shape: Shape): boolean => /^(?:null|undefined|string|number|boolean|never)$/.test(shape.kind);
const isNullish = (shape: Shape): boolean => shape.kind === 'null' || shape.kind === 'undefined';

/** Whether the first shape is `{}` and accepts the other one: `{}` accepts every value except null and undefined. */
function isEmptyRecordFor(empty: Shape, other: Shape): boolean {
  return empty.kind === 'record' && empty.props.size === 0 && empty.index === undefined && !isNullish(other);
}

function isValueOf(literal: Extract<Shape, { kind: 'const' }>, shape: Shape): boolean {
  if (shape.kind === 'const') return shape.value === literal.value;
  if (shape.kind !== typeof literal.value) return false;
  const pattern = shape.kind === 'string' ? shape.keywords?.pattern : undefined;
  return pattern === undefined || new RegExp(pattern as string, 'u').test(literal.value as string);
}

/**
 * Whether a record is only a brand of the shape. A brand exists in the type, and not in the value: a value of `string &
 * { readonly __brand: 'Id' }` is a plain string. Beside a string, a number or a boolean, every record is a brand,
 * because these have no fields in JSON. Beside a list or a date, all names in the brand begin with an underscore.
 */
function isBrandFor(brand: Shape, shape: Shape): boolean {
  if (brand.kind !== 'record' || brand.index !== undefined || shape.kind === 'record') return false;
  const hasNoFields = isScalar(shape) || shape.kind === 'boolean' || shape.kind === 'const';
  return hasNoFields || [...brand.props.keys()].every((key) => key.startsWith('_'));
}

/** Adds constraints to a shape. Fails for a constraint that applies to no part of the shape. */
export function constrain(shape: Shape, keywords: Keywords, fail: Fail): Shape {
  let constrained = shape;
  for (const kind of ['string', 'number', 'array'] as const) {
    const entries = Object.entries(keywords).filter(([tag]) => CONSTRAINTS[tag]?.constrains === kind);
    const ownKeywords = Object.fromEntries(entries);
    const [tag] = Object.keys(ownKeywords);
    if (tag === undefined) continue;
    const result = applyKeywords(constrained, kind, ownKeywords, fail);
    if (result === undefined) return fail(`@${tag} is for ${PLURAL[kind]}, and this type is not one`);
    constrained = result;
  }
  return constrained;
}

const PLURAL: Readonly<Record<ConstrainedKind, string>> = { string: 'strings', number: 'numbers', array: 'lists' };

/** Adds the constraints to each part of a shape that is of their kind. Returns undefined when no part is. */
function applyKeywords(shape: Shape, kind: ConstrainedKind, keywords: Keywords, fail: Fail): Shape | undefined {
  const resolved = resolve(shape);
  if (resolved.kind === 'union') {
    const parts = resolved.parts.map((part) => applyKeywords(part, kind, keywords, fail));
    return parts.every((part) => part === undefined)
      ? undefined
      : unite(resolved.parts.map((part, i) => parts[i] ?? part));
  }
  if (resolved.kind === kind) return mergeKeywords(resolved as Scalar, keywords, fail);
  return undefined;
}

/** Merges constraints. The stricter of two bounds is used. Two values of any other keyword are an error. */
function mergeKeywords<T extends Scalar | Extract<Shape, { kind: 'array' }>>(
  shape: T,
  keywords: Keywords,
  fail: Fail,
): T {
  const merged: Record<string, unknown> = { ...shape.keywords };
  for (const [key, value] of Object.entries(keywords)) {
    const existing = merged[key];
    if (existing === undefined || existing === value) merged[key] = value;
    else if (/^(?:min|exclusiveMin)/.test(key)) merged[key] = Math.max(existing as number, value as number);
    else if (/^(?:max|exclusiveMax)/.test(key)) merged[key] = Math.min(existing as number, value as number);
    else fail(`there are two different ${key}s`);
  }
  if (merged.format !== undefined && FORMATS[merged.format as string] === undefined) {
    fail(`the format ${String(merged.format)} is unknown: use one of ${Object.keys(FORMATS).join(', ')}`);
  }
  if (typeof merged.pattern === 'string') {
    const mistake = checkPattern(merged.pattern);
    if (mistake !== undefined) fail(`@pattern ${merged.pattern}: ${mistake}`);
  }
  return Object.keys(merged).length === 0 ? shape : { ...shape, keywords: merged };
}
