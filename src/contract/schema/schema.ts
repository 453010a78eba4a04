// A shape, written down as JSON Schema 2020-12. Named types become `$defs`, so that recursion costs nothing.

import type { Schema } from '../contract.ts';
import { Unsupported } from '../source/source-error.ts';
import {
  excludeKinds,
  mayBeAbsent,
  type NamedShape,
  type Notes,
  type Prop,
  type RecordShape,
  resolve,
  type Shape,
} from '../types/shape.ts';
import type { Definitions } from './bundle.ts';

/** On a schema of a text that reaches the operation as a `Date`. A symbol, so that what is published is plain JSON. */
export const IS_DATE = Symbol('date');
/** On the schema of a `File` of a form. */
export const IS_FILE = Symbol('file');

export interface SchemaWriter extends Definitions {
  /** @throws Unsupported */
  write(shape: Shape): Schema;
  /** What the written ones refer to. */
  readonly defs: Readonly<Record<string, Schema>>;
}

/** Named types within named types: `interface G<T> { a?: G<T[]> }` has no end. */
const MOST_NESTED = 200;

/** What the document says of an index by number. The check drops other spellings of a number, like `07`. */
const NUMBER_NAMES = '^-?(?:0|[1-9]\\d*)(?:\\.\\d+)?$';

type Draft = { [keyword: string | symbol]: unknown };

export function createSchemaWriter(): SchemaWriter {
  const defs: Record<string, Schema> = Object.create(null);
  const names = new Map<string, string>();
  let depth = 0;

  function write(shape: Shape): Schema {
    switch (shape.kind) {
      case 'never':
      case 'undefined':
        return { not: {} };
      case 'null':
      case 'boolean':
        return { type: shape.kind };
      case 'string':
      case 'number':
        return scalar(shape);
      case 'object':
        return { type: ['object', 'array'] };
      case 'date':
        return { type: 'string', format: 'date-time', [IS_DATE]: true } as Schema;
      case 'file':
        return { type: 'string', contentMediaType: 'application/octet-stream', [IS_FILE]: true } as Schema;
      case 'const':
        return { const: shape.value };
      case 'array':
        return { type: 'array', items: write(shape.element), ...shape.keywords };
      case 'tuple':
        return tuple(shape);
      case 'record':
        return record(shape);
      case 'union':
        return union(shape.parts);
      case 'named':
        return { $ref: `#/$defs/${defOf(shape)}` };
      case 'any':
        return {};
      default:
        throw new Unsupported(`${NAMES[shape.kind]} has no JSON form`, '', 0);
    }
  }

  function tuple({ items, rest }: Extract<Shape, { kind: 'tuple' }>): Schema {
    const required = items.filter(({ optional }) => !optional).length;
    return {
      type: 'array',
      ...(items.length === 0
        ? {}
        : { prefixItems: items.map(({ shape: of, optional }) => write(optional ? withoutUndefined(of) : of)) }),
      items: rest === undefined ? false : write(rest),
      ...(required === 0 ? {} : { minItems: required }),
    };
  }

  function record({ props, index, byNumber, open: isOpen }: RecordShape): Schema {
    const required: string[] = [];
    const properties: Record<string, Schema> = {};
    for (const [name, prop] of props) {
      if (!prop.optional && resolve(prop.shape).kind === 'never')
        throw new Unsupported(
          `the field ${name} is never, which no value fits; write ${name}?: never for one that must be left out`,
          '',
          0,
        );
      if (!prop.optional && !mayBeAbsent(prop.shape)) required.push(name);
      properties[name] = property(prop);
    }
    return {
      type: 'object',
      ...(isOpen || (props.size === 0 && index !== undefined) ? {} : { properties }),
      ...(required.length === 0 ? {} : { required }),
      ...(index === undefined ? {} : indexed(index, byNumber)),
    };
  }

  function indexed(index: Shape, byNumber: boolean | undefined): Schema {
    if (byNumber) return { patternProperties: { [NUMBER_NAMES]: write(withoutUndefined(index)) } };
    return { additionalProperties: index.kind === 'any' ? true : write(withoutUndefined(index)) };
  }

  function property({ shape, notes }: Prop): Schema {
    return noted(write(withoutUndefined(shape)), notes);
  }

  function union(parts: readonly Shape[]): Schema {
    const values: unknown[] = [];
    const others: Draft[] = [];
    for (const part of parts) {
      if (part.kind === 'const') values.push(part.value);
      else if (part.kind === 'null') values.push(null);
      else if (part.kind !== 'undefined') others.push(write(part));
    }
    if (values.includes(true) && values.includes(false)) {
      others.push({ type: 'boolean' });
      values.splice(0, values.length, ...values.filter((value) => typeof value !== 'boolean'));
    }
    const isNullOnly = values.length === 1 && values[0] === null;
    const [only] = others;
    // `string | null`
    if (isNullOnly && others.length === 1 && typeof only?.type === 'string')
      return { ...only, type: [only.type, 'null'] };
    if (isNullOnly) others.push({ type: 'null' });
    else if (values.length === 1) others.push({ const: values[0] });
    else if (values.length > 1) others.unshift({ enum: values });
    return others.length === 1 ? (others[0] as Schema) : { anyOf: others };
  }

  function defOf(shape: NamedShape): string {
    const known = names.get(shape.id);
    if (known !== undefined) return known;
    const name = reserve(shape.name);
    names.set(shape.id, name);
    if (++depth > MOST_NESTED) throw new Unsupported('this type grows without end', '', 0);
    const target = shape.target();
    // Whether the whole may be left out is said where the name is used.
    defs[name] = noted(write(mayBeAbsent(target) ? withoutUndefined(target) : target), shape.notes);
    depth--;
    return name;
  }

  function reserve(like: string): string {
    const plain = like.replace(/[^\w.-]+/g, '_').slice(0, 100);
    let name = plain;
    for (let i = 2; name in defs; i++) name = `${plain}${i}`;
    defs[name] = {};
    return name;
  }

  function define(name: string, schema: Schema): void {
    defs[name] = schema;
  }

  return { write, defs, reserve, define };
}

const NAMES = { bytes: 'a stream or a piece of bytes', events: 'a stream of events', reply: 'a Reply' };

function scalar({ kind, keywords }: Extract<Shape, { kind: 'string' | 'number' }>): Schema {
  if (keywords?.integer !== true) return { type: kind, ...keywords };
  const { integer: _, ...rest } = keywords;
  return { type: 'integer', ...rest };
}

/** `$ref` may have neighbours in 2020-12. */
function noted(schema: Schema, notes: Notes): Schema {
  return Object.keys(notes).length === 0 ? schema : { ...schema, ...notes };
}

/** A name stays one, unless undefined is in it. */
function withoutUndefined(shape: Shape): Shape {
  return mayBeAbsent(shape) ? excludeKinds(resolve(shape), 'undefined') : shape;
}
