// Narrows shapes: by `A & B`, and by the constraints of a doc comment, such as `@minimum 1`.
import { CONSTRAINTS, type ConstrainedKind } from '../source/constraint-tags.ts';
import { FORMATS, isNumberName } from './formats.ts';
import { checkPattern } from './pattern.ts';
import {
  type Fail,
  idOf,
  includesKind,
  type Keywords,
  type NamedShape,
  NEVER,
  NO_NOTES,
  nameOf,
  type Prop,
  type RecordShape,
  resolve,
  type Shape,
  unite,
} from './shape.ts';

/**
 * Computes `A & B`. The order of the cases matters: a record is taken for a brand only when no earlier case fits.
 *
 * @param met the pairs of records that the outer intersections have met. In `A & B` of two recursive types, the fields
 *   can have the type `A & B` again, without end. So a pair that is met again is computed later
 */
export function intersect(a: Shape, b: Shape, fail: Fail, met: MetPairs = { texts: new Set(), laterCount: 0 }): Shape {
  if (idOf(a) === idOf(b)) return a;
  const left = resolve(a);
  const right = resolve(b);
  if (left.kind === 'any') return b;
  if (right.kind === 'any') return a;
  if (left.kind === 'union') return unite(left.parts.map((part) => intersect(part, b, fail, met)));
  if (right.kind === 'union') return unite(right.parts.map((part) => intersect(a, part, fail, met)));
  if (isNullish(left) || isNullish(right)) return left.kind === right.kind ? a : NEVER;
  if (left.kind === 'record' && right.kind === 'record') {
    const pair = `${idOf(a)} & ${idOf(b)}`;
    if (met.texts.has(pair)) {
      met.laterCount++;
      return intersectLater(a, b, pair, fail);
    }
    const laterCount = met.laterCount;
    met.texts.add(pair);
    const shape = intersectRecords(left, right, fail, met);
    // Nothing in this shape is recursive. If another field has the same pair, it gets the same shape, without a name.
    if (met.laterCount === laterCount) met.texts.delete(pair);
    return shape;
  }
  if (isEmptyRecord(left)) return b;
  if (isEmptyRecord(right)) return a;
  if (isScalar(left) && isScalar(right) && left.kind === right.kind)
    return mergeKeywords(left, right.keywords ?? {}, fail);
  if (left.kind === right.kind && idOf(left) === idOf(right)) return a;
  if (left.kind === 'object' && hasStructure(right)) return b;
  if (right.kind === 'object' && hasStructure(left)) return a;
  if (isBrandFor(right, left)) return a;
  if (isBrandFor(left, right)) return b;
  if (left.kind === 'const') return isValueOf(left, right, fail) ? a : NEVER;
  if (right.kind === 'const') return isValueOf(right, left, fail) ? b : NEVER;
  return isPrimitive(left) && isPrimitive(right) ? NEVER : fail('this intersection is not understood');
}

interface MetPairs {
  readonly texts: Set<string>;
  laterCount: number;
}

/** Returns a named shape that computes `A & B` when it is first needed. @param id the same for the same two types */
function intersectLater(a: Shape, b: Shape, id: string, fail: Fail): NamedShape {
  let shape: Shape | undefined;
  const target = () => {
    shape ??= intersect(a, b, fail);
    return shape;
  };
  return { kind: 'named', name: `${nameOf(a)}_${nameOf(b)}`, id, notes: NO_NOTES, target };
}

function intersectRecords(left: RecordShape, right: RecordShape, fail: Fail, met: MetPairs): Shape {
  const props = new Map(left.props);
  for (const [key, prop] of right.props) props.set(key, intersectProps(left, key, prop, fail, met));
  for (const [key, prop] of left.props) {
    const index = indexTypeOf(right, key);
    if (index !== undefined && !right.props.has(key))
      props.set(key, { ...prop, shape: intersect(prop.shape, index, fail, met) });
  }
  // As in TypeScript, no value has both of two tags: `{ kind: 'a' } & { kind: 'b' }`. A union then loses this part.
  const excludeEachOther = ([key, { shape, isOptional }]: [string, Prop]) =>
    shape === NEVER && !isOptional && [left, right].some(({ props }) => isLiteral(props.get(key)?.shape));
  if ([...props].some(excludeEachOther)) return NEVER;
  const { index, isNumberIndex } = intersectIndexes(left, right, fail, met);
  return { kind: 'record', props, index, isNumberIndex };
}

function isLiteral(shape: Shape | undefined): boolean {
  const resolved = shape && resolve(shape);
  const parts = resolved?.kind === 'union' ? resolved.parts.map(resolve) : [resolved];
  return parts.every((part) => /^(?:const|null|boolean)$/.test(part?.kind ?? ''));
}

/** Each of the two records may have no index signature. */
export function intersectIndexes(left: RecordShape, right: RecordShape, fail: Fail, met?: MetPairs): RecordShape {
  if (left.index === undefined || right.index === undefined) return left.index === undefined ? right : left;
  if (Boolean(left.isNumberIndex) !== Boolean(right.isNumberIndex))
    fail('index signatures by string and by number together are not understood');
  return { ...left, index: intersect(left.index, right.index, fail, met) };
}

/** Returns the type that an index signature gives to a field. `[key: number]` gives none to a field `name`. */
const indexTypeOf = ({ index, isNumberIndex }: RecordShape, key: string): Shape | undefined =>
  isNumberIndex && !isNumberName(key) ? undefined : index;

/** @param prop a field of the other record */
function intersectProps(left: RecordShape, key: string, prop: Prop, fail: Fail, met: MetPairs): Prop {
  const existing = left.props.get(key);
  const other = existing?.shape ?? indexTypeOf(left, key);
  if (other === undefined) return prop;
  const isOptional = prop.isOptional && (existing?.isOptional ?? true);
  const shape = intersect(other, prop.shape, fail, met);
  const fillsDefault = isOptional && (existing?.fillsDefault === true || prop.fillsDefault === true);
  const isNumberKey = existing?.isNumberKey ?? prop.isNumberKey;
  return { shape, isOptional, notes: { ...existing?.notes, ...prop.notes }, fillsDefault, isNumberKey };
}

type Scalar = Extract<Shape, { kind: 'string' | 'number' }>;
type Constrainable = Extract<Shape, { kind: ConstrainedKind }>;
const isScalar = (shape: Shape): shape is Scalar => shape.kind === 'string' || shape.kind === 'number';
export const hasStructure = (shape: Shape): boolean => includesKind(shape, 'record', 'array', 'tuple', 'date', 'file');
const isPrimitive = (shape: Shape): boolean => /^(?:string|number|boolean|never)$/.test(shape.kind);
const isNullish = (shape: Shape): boolean => shape.kind === 'null' || shape.kind === 'undefined';

/** Whether a shape is `{}`, which accepts every value except null and undefined. */
const isEmptyRecord = (shape: Shape): boolean =>
  shape.kind === 'record' && shape.props.size === 0 && shape.index === undefined;

/** Whether a shape accepts a literal. A pattern is the only constraint that is read: templates become patterns. */
function isValueOf(literal: Extract<Shape, { kind: 'const' }>, shape: Shape, fail: Fail): boolean {
  if (shape.kind === 'const') return shape.value === literal.value;
  if (shape.kind !== typeof literal.value) return false;
  const { pattern, ...others } = isScalar(shape) ? (shape.keywords ?? {}) : {};
  if (Object.keys(others).length > 0) fail('a literal beside a constrained type is not understood');
  return pattern === undefined || new RegExp(pattern as string, 'u').test(literal.value as string);
}

/**
 * Whether a record is only a brand of the shape. A brand exists in the type, and not in the value: a value of `string &
 * { readonly __brand: 'Id' }` is a plain string. Strings, numbers and booleans have no fields in JSON, so a record is a
 * brand if the other type is one of these. If the other type is a list or a date, a record is a brand if the names of
 * all its fields begin with an underscore.
 */
function isBrandFor(record: Shape, shape: Shape): boolean {
  if (record.kind !== 'record' || record.index !== undefined || shape.kind === 'record') return false;
  const hasNoFields = isScalar(shape) || shape.kind === 'boolean' || shape.kind === 'const';
  return hasNoFields || [...record.props.keys()].every((key) => key.startsWith('_'));
}

/** Fails for a constraint that applies to no part of the shape. */
export function constrain(shape: Shape, keywords: Keywords, fail: Fail): Shape {
  let constrained = shape;
  for (const kind of ['string', 'number', 'array'] as const) {
    const entries = Object.entries(keywords).filter(([tag]) => CONSTRAINTS[tag]?.constrains === kind);
    const [tag] = entries[0] ?? [];
    if (tag === undefined) continue;
    const result = applyKeywords(constrained, kind, Object.fromEntries(entries), fail);
    if (result === undefined) return fail(`@${tag} is for ${PLURAL[kind]}, and this type is not one`);
    constrained = result;
  }
  return constrained;
}

const PLURAL: Readonly<Record<ConstrainedKind, string>> = { string: 'strings', number: 'numbers', array: 'lists' };

/** Adds constraints for strings, for example, to the parts of a shape that are strings. Undefined when no part is. */
function applyKeywords(shape: Shape, kind: ConstrainedKind, keywords: Keywords, fail: Fail): Shape | undefined {
  const resolved = resolve(shape);
  if (resolved.kind === 'union') {
    const parts = resolved.parts.map((part) => applyKeywords(part, kind, keywords, fail));
    if (parts.every((part) => part === undefined)) return undefined;
    return unite(resolved.parts.map((part, i) => parts[i] ?? part));
  }
  return resolved.kind === kind ? mergeKeywords(resolved as Constrainable, keywords, fail) : undefined;
}

/** The stricter of two bounds is used. Two different values of any other keyword are an error. */
function mergeKeywords<T extends Constrainable>(shape: T, keywords: Keywords, fail: Fail): T {
  const merged: Record<string, unknown> = { ...shape.keywords };
  for (const [key, value] of Object.entries(keywords)) {
    const existing = merged[key];
    if (existing === undefined || existing === value) merged[key] = value;
    else if (/^(?:min|exclusiveMin)/.test(key)) merged[key] = Math.max(existing as number, value as number);
    else if (/^(?:max|exclusiveMax)/.test(key)) merged[key] = Math.min(existing as number, value as number);
    else fail(`there are two different ${key}s`);
  }
  if (merged.format !== undefined && FORMATS[merged.format as string] === undefined)
    fail(`the format ${String(merged.format)} is unknown: use one of ${Object.keys(FORMATS).join(', ')}`);
  if (typeof merged.pattern === 'string') {
    const mistake = checkPattern(merged.pattern);
    if (mistake !== undefined) fail(`@pattern ${merged.pattern}: ${mistake}`, '');
  }
  return Object.keys(merged).length === 0 ? shape : { ...shape, keywords: merged };
}
