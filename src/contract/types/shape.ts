// What a type means, worked out: the form between TypeScript's syntax and JSON Schema. Named shapes stay lazy, so that
// recursion costs nothing.

import { type CircularType, Unsupported } from '../source/source-error.ts';

export type Keywords = Readonly<Record<string, unknown>>;
/** `description`, `default`, `deprecated`, `title`, `examples`: what the document says and no check reads. */
export type Notes = Readonly<Record<string, unknown>>;

export type Shape =
  | {
      readonly kind:
        | 'any'
        | 'never'
        | 'undefined'
        | 'null'
        | 'boolean'
        | 'object'
        | 'date'
        | 'file'
        | 'bytes'
        | 'events';
    }
  | { readonly kind: 'string' | 'number'; readonly keywords?: Keywords }
  | { readonly kind: 'const'; readonly value: string | number | boolean }
  | { readonly kind: 'array'; readonly element: Shape; readonly keywords?: Keywords }
  | { readonly kind: 'tuple'; readonly items: readonly TupleShapeItem[]; readonly rest: Shape | undefined }
  | RecordShape
  | { readonly kind: 'union'; readonly parts: readonly Shape[] }
  | NamedShape
  /** `Reply<201, T>` */
  | { readonly kind: 'reply'; readonly status: number; readonly body: Shape };

export interface RecordShape {
  readonly kind: 'record';
  readonly props: ReadonlyMap<string, Prop>;
  readonly index: Shape | undefined;
  /** The index is by number: it declares the names that are numbers, and no others. */
  readonly byNumber?: boolean | undefined;
  /** `{}` as it was written: any object, all of it. */
  readonly open?: boolean;
}

export interface NamedShape {
  readonly kind: 'named';
  readonly name: string;
  /** Equal for what is the same type with the same arguments. */
  readonly id: string;
  readonly notes: Notes;
  readonly target: () => Shape;
}

export interface TupleShapeItem {
  readonly shape: Shape;
  readonly optional: boolean;
}

export interface Prop {
  readonly shape: Shape;
  readonly optional: boolean;
  readonly notes: Notes;
}

/** @param cure what to write instead; empty where `what` says it */
export type Fail = (what: string, cure?: string) => never;

const MAX_PARTS = 5000;
export const NO_NOTES: Notes = {};
export const STRING: Shape = { kind: 'string' };
export const NEVER: Shape = { kind: 'never' };
export const UNDEFINED: Shape = { kind: 'undefined' };

/** A shape that is not understood: an error for whoever looks into it, and for nobody else. */
export function failingShape(error: Unsupported): NamedShape {
  const fail = () => {
    throw error;
  };
  return {
    kind: 'named',
    name: 'unread',
    id: `?${error.path}:${error.at}:${error.message}`,
    notes: NO_NOTES,
    target: fail,
  };
}

/** A shape that is worked out at the first call. @param circular thrown when that asks for itself */
export function createLazy(work: () => Shape, circular: CircularType): () => Shape {
  let shape: Shape | undefined;
  let isRunning = false;
  return () => {
    if (shape !== undefined) return shape;
    if (isRunning) throw circular;
    isRunning = true;
    try {
      shape = work();
    } finally {
      isRunning = false;
    }
    return shape;
  };
}

/** The shape behind a name. @throws Unsupported */
export function resolve(shape: Shape): Exclude<Shape, NamedShape> {
  let resolved = shape;
  for (let i = 0; resolved.kind === 'named'; i++) {
    if (i > 100) throw new Unsupported('this type needs itself to be known', '', 0);
    resolved = resolved.target();
  }
  return resolved;
}

/** As it is; names that stand for one another in a circle show when they are followed. */
export function refuseEndless(shape: Shape): Shape {
  resolve(shape);
  return shape;
}

export function unite(parts: readonly Shape[]): Shape {
  const unique: Shape[] = [];
  const seen = new Set<string>();
  for (const part of parts) {
    for (const member of part.kind === 'union' ? part.parts : [part]) {
      if (member.kind === 'any') return member;
      const id = idOf(member);
      if (member.kind === 'never' || seen.has(id)) continue;
      seen.add(id);
      unique.push(member);
    }
  }
  if (unique.length > MAX_PARTS) throw new Error(`a union of ${unique.length} parts is more than is read`);
  return unique.length === 0 ? NEVER : unique.length === 1 ? (unique[0] as Shape) : { kind: 'union', parts: unique };
}

/** Without its parts of these kinds. */
export function excludeKinds(shape: Shape, ...kinds: readonly Shape['kind'][]): Shape {
  const resolved = resolve(shape);
  if (resolved.kind === 'union') return unite(resolved.parts.map((part) => excludeKinds(part, ...kinds)));
  return kinds.includes(resolved.kind) ? NEVER : shape;
}

export function mayBeAbsent(shape: Shape): boolean {
  const resolved = resolve(shape);
  return resolved.kind === 'undefined' || (resolved.kind === 'union' && resolved.parts.some(mayBeAbsent));
}

export function expectRecord(shape: Shape, fail: Fail): RecordShape {
  const resolved = resolve(shape);
  return resolved.kind === 'record' ? resolved : fail('an object type is needed here');
}

/** The names or values of a union of literals. */
export function listConstants(shape: Shape, fail: Fail): (string | number | boolean)[] {
  const resolved = resolve(shape);
  if (resolved.kind === 'never') return [];
  if (resolved.kind === 'const') return [resolved.value];
  if (resolved.kind === 'union') return resolved.parts.flatMap((part) => listConstants(part, fail));
  return fail('names or values that are literals are needed here');
}

export function nameOf(shape: Shape): string {
  if (shape.kind === 'named') return shape.name;
  if (shape.kind === 'array') return `${nameOf(shape.element)}List`;
  if (shape.kind === 'const') return String(shape.value).replace(/\W+/g, '_');
  return shape.kind;
}

/** Equal for shapes that mean the same, as far as that is cheap to say. */
export function idOf(shape: Shape): string {
  switch (shape.kind) {
    case 'named':
      return shape.id;
    case 'const':
      return JSON.stringify(shape.value);
    case 'string':
    case 'number':
      return shape.keywords === undefined ? shape.kind : shape.kind + JSON.stringify(shape.keywords);
    case 'array':
      return `${idOf(shape.element)}[]${shape.keywords === undefined ? '' : JSON.stringify(shape.keywords)}`;
    case 'tuple':
      return `[${shape.items.map((item) => idOf(item.shape) + (item.optional ? '?' : '')).join()}${shape.rest === undefined ? '' : `...${idOf(shape.rest)}`}]`;
    case 'union':
      return `(${shape.parts.map(idOf).sort().join('|')})`;
    case 'record': {
      const props = Array.from(shape.props, ([key, prop]) => {
        const notes = prop.notes === NO_NOTES ? '' : JSON.stringify(prop.notes);
        return `${JSON.stringify(key)}${prop.optional ? '?' : ''}:${idOf(prop.shape)}${notes}`;
      });
      return `{${props.join()}${shape.index === undefined ? '' : `${shape.byNumber ? '#' : '*'}:${idOf(shape.index)}`}${shape.open ? '+' : ''}}`;
    }
    case 'reply':
      return `reply<${shape.status},${idOf(shape.body)}>`;
    default:
      return shape.kind;
  }
}
