// A shape is the meaning of a type: its names have been looked up, and `Partial<T>` or `A & B` have been computed. The
// types in the source are evaluated to shapes, and shapes are written as JSON Schema. A named shape is evaluated only
// when it is first needed, so the evaluation of a recursive type ends.
import { type CircularType, Unsupported, WRITE_OUT } from '../source/source-error.ts';

/** The constraints of a shape, as keywords of JSON Schema: `{ minLength: 1 }`. */
export type Keywords = Readonly<Record<string, unknown>>;
/** Keywords for readers of the OpenAPI document, which no check uses: `description`, `default`, `deprecated`, … */
export type Notes = Readonly<Record<string, unknown>>;

export type Shape =
  | { readonly kind: 'any' | 'never' | 'undefined' | 'null' | 'boolean' | 'object' | 'date' | 'file' | 'bytes' }
  | { readonly kind: 'events'; readonly data: Shape }
  | { readonly kind: 'string' | 'number'; readonly keywords?: Keywords }
  | { readonly kind: 'const'; readonly value: string | number | boolean }
  | { readonly kind: 'array'; readonly element: Shape; readonly keywords?: Keywords }
  | { readonly kind: 'tuple'; readonly items: readonly TupleShapeItem[]; readonly rest: Shape | undefined }
  | RecordShape
  | { readonly kind: 'union'; readonly parts: readonly Shape[] }
  | NamedShape
  | { readonly kind: 'reply'; readonly status: number; readonly body: Shape };

export interface RecordShape {
  readonly kind: 'record';
  readonly props: ReadonlyMap<string, Prop>;
  /** The value type of the index signature: `T` in `{ [key: string]: T }`. */
  readonly index: Shape | undefined;
  /** Whether the index signature is `[key: number]`, which declares only names that are numbers. */
  readonly isNumberIndex?: boolean | undefined;
  /** Whether the type is `{}`, which accepts every value except null and undefined. */
  readonly isOpen?: boolean;
}

export interface NamedShape {
  readonly kind: 'named';
  readonly name: string;
  /** The same for the same type with the same type arguments, and different for all others. */
  readonly id: string;
  readonly notes: Notes;
  /** Evaluates the type at the first call, and keeps the result. @throws Unsupported */
  readonly target: () => Shape;
  /** The schema from which the type is inferred. `target` of such a shape always throws. */
  readonly inferredFrom?: SchemaReference;
}

/** A schema in the code of the author: `NewUser` in `z.infer<typeof NewUser>`. */
export interface SchemaReference {
  /** The schema as written: `NewUser`, `schemas.NewUser`. */
  readonly name: string;
  /** The own file whose module exports the schema. */
  readonly path: string;
  /** The exported name, and the keys that lead from the exported value to the schema. */
  readonly keys: readonly string[];
  /** The `vendor` of the Standard Schema, `json` for a JSON Schema, or `any` for any Standard Schema. */
  readonly vendor: string;
  /** The place of the type that names the schema. */
  readonly from: string;
  readonly at: number;
}

export interface TupleShapeItem {
  readonly shape: Shape;
  readonly isOptional: boolean;
}

export interface Prop {
  readonly shape: Shape;
  readonly isOptional: boolean;
  readonly notes: Notes;
  /** Whether a request without the property gets the `default` of `notes`. */
  readonly fillsDefault?: boolean;
  /** Whether `keyof` gives the name as a number. */
  readonly isNumberKey?: boolean | undefined;
  /** Whether the property is the `user` of `ControllerParams<{ user: User }>`, which the server fills. */
  readonly isUser?: boolean;
}

/** Throws an error with the place of a type. @param cure what to write instead; default: a schema; '' for no cure */
export type Fail = (message: string, cure?: string) => never;

export const NO_LITERALS = 'this must be a union of literals';
const MAX_UNION_PARTS = 5000;
export const NO_NOTES: Notes = {};
export const STRING: Shape = { kind: 'string' };
export const NEVER: Shape = { kind: 'never' };
export const UNDEFINED: Shape = { kind: 'undefined' };
export const requiredProp = (shape: Shape): Prop => ({ shape, isOptional: false, notes: NO_NOTES });
export const recordOf = (props: Iterable<readonly [name: string, prop: Prop]>): RecordShape => {
  return { kind: 'record', props: new Map(props), index: undefined };
};

/** Returns a shape that throws when it is resolved. An unsupported type that no request needs is then no error. */
export function failingShape(error: Unsupported): NamedShape {
  const target = () => {
    throw error;
  };
  const id = `?${error.path}:${error.at}:${error.message}`;
  return { kind: 'named', name: 'unread', id, notes: NO_NOTES, target };
}

/** Returns a function that evaluates once. A call during the evaluation throws `circularError`. */
export function createLazy(evaluate: () => Shape, circularError: CircularType): () => Shape {
  let shape: Shape | undefined;
  let isRunning = false;
  return () => {
    if (shape !== undefined) return shape;
    if (isRunning) throw circularError;
    isRunning = true;
    try {
      shape = evaluate();
    } finally {
      isRunning = false;
    }
    return shape;
  };
}

/** Returns the shape with another target where its own throws an error. */
export function withFallback(shape: NamedShape, recover: (error: unknown) => Shape): NamedShape {
  const target = (): Shape => {
    try {
      return shape.target();
    } catch (error) {
      return resolve(recover(error));
    }
  };
  return { ...shape, target };
}

/** Follows named shapes to a shape without a name. @throws Unsupported when a type is unsupported or endless */
export function resolve(shape: Shape): Exclude<Shape, NamedShape> {
  let resolved = shape;
  for (let steps = 0; resolved.kind === 'named'; steps++) {
    if (steps > 100) throw new Unsupported('this type depends on itself', '', 0);
    resolved = resolved.target();
  }
  return resolved;
}

/** Returns the same shape. @throws Unsupported for a circle of names, such as `type A = B; type B = A` */
export function refuseEndless(shape: Shape): Shape {
  resolve(shape);
  return shape;
}

/** Returns the union of the parts, without duplicates and `never`. The union of `any` and other parts is `any`. */
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
  if (unique.length > MAX_UNION_PARTS)
    throw new Error(`a union of ${unique.length} parts is too large: at most ${MAX_UNION_PARTS} are read`);
  return unique.length === 0 ? NEVER : unique.length === 1 ? (unique[0] as Shape) : { kind: 'union', parts: unique };
}

/** Returns the parts of a union, also those of a named union inside it; for another type, the type alone. */
export function partsOf(shape: Shape): Exclude<Shape, NamedShape>[] {
  const resolved = resolve(shape);
  return resolved.kind === 'union' ? resolved.parts.flatMap(partsOf) : [resolved];
}

/** Returns the shape without its parts of these kinds, or `never` when no part remains. */
export function excludeKinds(shape: Shape, ...kinds: readonly Shape['kind'][]): Shape {
  const resolved = resolve(shape);
  if (resolved.kind === 'union') return unite(resolved.parts.map((part) => excludeKinds(part, ...kinds)));
  return kinds.includes(resolved.kind) ? NEVER : shape;
}

export function includesKind(shape: Shape, ...kinds: readonly Shape['kind'][]): boolean {
  const resolved = resolve(shape);
  if (resolved.kind === 'union') return resolved.parts.some((part) => includesKind(part, ...kinds));
  return kinds.includes(resolved.kind);
}

export const mayBeAbsent = (shape: Shape): boolean => includesKind(shape, 'undefined');

export function expectRecord(shape: Shape, fail: Fail): RecordShape {
  const resolved = resolve(shape);
  return resolved.kind === 'record' ? resolved : fail('this must be an object type');
}

/** Returns the fields of an object type; undefined for another type. */
export function propsOf(shape: Shape | undefined): RecordShape['props'] | undefined {
  const resolved = shape && resolve(shape);
  return resolved?.kind === 'record' ? resolved.props : undefined;
}

/** The error of a key such as `Uuid`. A constraint of names would not be checked. */
export const UNREAD_KEY = ['this kind of key is not understood', 'write Record<string, …>'] as const;

/** Lists the values of a union of literals, or of one literal. `never` has no values. */
export function listConstants(shape: Shape, fail: Fail): (string | number | boolean)[] {
  const resolved = resolve(shape);
  if (resolved.kind === 'never') return [];
  if (resolved.kind === 'const') return [resolved.value];
  if (resolved.kind === 'union') return resolved.parts.flatMap((part) => listConstants(part, fail));
  return fail(NO_LITERALS, WRITE_OUT);
}

/** Names a type argument: `UserList` for `User[]`. The document then has `Page_UserList` for `Page<User[]>`. */
export function nameOf(shape: Shape): string {
  if (shape.kind === 'named') return shape.name;
  if (shape.kind === 'array') return `${nameOf(shape.element)}List`;
  if (shape.kind === 'const') return String(shape.value).replace(/\W+/g, '_');
  return shape.kind;
}

/** Shapes with the same text are equal. Records with the same fields in another order have different texts. */
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
      return `[${shape.items.map((item) => idOf(item.shape) + (item.isOptional ? '?' : '')).join()}${shape.rest === undefined ? '' : `...${idOf(shape.rest)}`}]`;
    case 'union':
      return `(${shape.parts.map(idOf).sort().join('|')})`;
    case 'record': {
      const props = Array.from(shape.props, ([key, prop]) => {
        const notes = prop.notes === NO_NOTES ? '' : JSON.stringify(prop.notes);
        return `${JSON.stringify(key)}${prop.isNumberKey ? '#' : ''}${prop.isOptional ? '?' : ''}${prop.fillsDefault ? '=' : ''}:${idOf(prop.shape)}${notes}`;
      });
      return `{${props.join()}${shape.index === undefined ? '' : `${shape.isNumberIndex ? '#' : '*'}:${idOf(shape.index)}`}${shape.isOpen ? '+' : ''}}`;
    }
    case 'reply':
      return `reply<${shape.status},${idOf(shape.body)}>`;
    case 'events':
      return `events<${idOf(shape.data)}>`;
    default:
      return shape.kind;
  }
}
