// Writes a shape as JSON Schema 2020-12. A named type is an entry of `$defs`, so a recursive type has a finite schema.

import type { Schema } from '../contract.ts';
import { Unsupported } from '../source/source-error.ts';
import { mayBeAbsent, type NamedShape, type Notes, type RecordShape, resolve, type Shape } from '../types/shape.ts';

/** Marks for the check: a text becomes a `Date`, a form has a `File`, a text is trimmed, a default is filled in. */
export const IS_DATE = Symbol('date');
export const IS_FILE = Symbol('file');
export const IS_TRIMMED = Symbol('trimmed');
export const FILLS_DEFAULT = Symbol('default');

/** Matches the media type of a text in JSON, such as HTML. */
const TEXT_TYPE = /^text\/|[/+](?:json|xml)$/;

/** Whether a schema is that of a file. The schema of `z.file()` has an encoding, and not always a media type. */
export function isFile({ type, contentMediaType: mediaType, contentEncoding: encoding }: Schema): boolean {
  const isBinary = encoding === undefined && mediaType !== undefined && !TEXT_TYPE.test(String(mediaType));
  return [type].flat().includes('string') && (isBinary || encoding === 'binary');
}

export type SchemaWriter = ReturnType<typeof createSchemaWriter>;

/** Maximum number of named types inside each other. The limit ends a type such as `interface G<T> { a?: G<T[]> }`. */
const MAX_NESTING = 200;

/** The pattern of the field names of `{ [id: number]: T }`, for the OpenAPI document. The check uses `isNumberName`. */
const NUMBER_NAMES = '^-?(?:0|[1-9]\\d*)(?:\\.\\d+)?$';

export function createSchemaWriter() {
  const defs: Record<string, Schema> = Object.create(null);
  const namesById = new Map<string, string>();
  let depth = 0;

  /** @throws Unsupported when a type has no JSON form. The writer can then still be used for other types */
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
        return writeScalar(shape);
      case 'object':
        return { type: ['object', 'array'] };
      case 'date':
        return { type: 'string', format: 'date-time', [IS_DATE]: true };
      case 'file':
        return { type: 'string', contentMediaType: 'application/octet-stream', [IS_FILE]: true };
      case 'const':
        return { const: shape.value };
      case 'array':
        return { type: 'array', items: write(shape.element), ...shape.keywords };
      case 'tuple':
        return writeTuple(shape);
      case 'record':
        return writeRecord(shape);
      case 'union':
        return writeUnion(shape.parts);
      case 'named':
        return { $ref: `#/$defs/${defineNamed(shape)}` };
      case 'any':
        return {};
      default:
        return fail(`${RESULT_KINDS[shape.kind]} has no JSON form`);
    }
  }

  function writeTuple({ items, rest }: Extract<Shape, { kind: 'tuple' }>): Schema {
    const required = items.findLastIndex(({ isOptional }) => !isOptional) + 1;
    const prefixItems = items.map(({ shape }) => write(shape));
    return {
      type: 'array',
      ...(items.length === 0 ? {} : { prefixItems }),
      items: rest === undefined ? false : write(rest),
      ...(required === 0 ? {} : { minItems: required }),
    };
  }

  function writeRecord({ props, index, isNumberIndex, isOpen }: RecordShape): Schema {
    if (isOpen) return { type: ['object', 'array', 'string', 'number', 'boolean'] };
    const required: string[] = [];
    const properties: Record<string, Schema> = {};
    for (const [name, prop] of props) {
      if (name === '__proto__') fail('a field named __proto__ is not supported: give it another name');
      if (!prop.isOptional && resolve(prop.shape).kind === 'never')
        fail(`the field ${name} is never, which no value fits; write ${name}?: never for one that must be left out`);
      if (!prop.isOptional && !mayBeAbsent(prop.shape)) required.push(name);
      const schema = addNotes(write(prop.shape), prop.notes);
      properties[name] = prop.fillsDefault === true ? { ...schema, [FILLS_DEFAULT]: true } : schema;
    }
    return {
      type: 'object',
      ...(props.size === 0 && index !== undefined ? {} : { properties }),
      ...(required.length === 0 ? {} : { required }),
      ...(index === undefined ? {} : writeIndex(index, isNumberIndex)),
    };
  }

  function writeIndex(index: Shape, isNumberIndex: boolean | undefined): Schema {
    if (isNumberIndex) return { patternProperties: { [NUMBER_NAMES]: write(index) } };
    return { additionalProperties: index.kind === 'any' ? true : write(index) };
  }

  function writeUnion(parts: readonly Shape[]): Schema {
    const literals: unknown[] = [];
    const schemas: Schema[] = [];
    for (const part of parts) {
      // A schema cannot express undefined. Instead, a property of this type is not in `required`.
      if (part.kind === 'const') literals.push(part.value);
      else if (part.kind === 'null') literals.push(null);
      else if (part.kind !== 'undefined') schemas.push(write(part));
    }
    if (literals.includes(true) && literals.includes(false)) {
      schemas.push({ type: 'boolean' });
      literals.splice(0, literals.length, ...literals.filter((literal) => typeof literal !== 'boolean'));
    }
    const isNullOnly = literals.length === 1 && literals[0] === null;
    const [first] = schemas;
    // `string | null` is written as `type: ['string', 'null']`.
    if (isNullOnly && schemas.length === 1 && typeof first?.type === 'string')
      return { ...first, type: [first.type, 'null'] };
    if (isNullOnly) schemas.push({ type: 'null' });
    else if (literals.length === 1) schemas.push({ const: literals[0] });
    else if (literals.length > 1) schemas.unshift({ enum: literals });
    return schemas.length === 1 ? (schemas[0] as Schema) : { anyOf: schemas };
  }

  /** Writes a named type into `defs` at its first use, and returns its name there. */
  function defineNamed(shape: NamedShape): string {
    const definedName = namesById.get(shape.id);
    if (definedName !== undefined) return definedName;
    const { size } = namesById;
    const name = reserve(shape.name);
    namesById.set(shape.id, name);
    try {
      if (++depth > MAX_NESTING) fail('this type grows without end');
      defs[name] = addNotes(write(shape.target()), shape.notes);
      return name;
    } catch (error) {
      // A result type that fails is only left out of the document, and the writer is used again. A request with the
      // same type must fail, too. So this type, and all types that were begun after it, are not kept as definitions.
      for (const [id, incompleteName] of [...namesById].slice(size)) {
        namesById.delete(id);
        delete defs[incompleteName];
      }
      throw error;
    } finally {
      depth--;
    }
  }

  /** Reserves a name in `defs`: `User2` when `User` is in use. */
  function reserve(requestedName: string): string {
    const baseName = requestedName.replace(/[^\w.-]+/g, '_').slice(0, 100);
    let name = baseName;
    for (let i = 2; name in defs; i++) name = `${baseName}${i}`;
    defs[name] = {};
    return name;
  }

  return { write, defs, reserve };
}

function fail(message: string): never {
  throw new Unsupported(message, '', 0);
}

/** The kinds of shapes that only a result can have. A request type of such a kind is an error. */
const RESULT_KINDS = { bytes: 'a stream or a piece of bytes', events: 'a stream of events', reply: 'a Reply' };

function writeScalar({ kind, keywords }: Extract<Shape, { kind: 'string' | 'number' }>): Schema {
  const { integer, trim, ...rest } = keywords ?? {};
  return { type: integer === true ? 'integer' : kind, ...rest, ...(trim === true && { [IS_TRIMMED]: true }) };
}

/** JSON Schema 2020-12 allows notes (`description`, `default`, …) beside `$ref`. */
function addNotes(schema: Schema, notes: Notes): Schema {
  if (Object.keys(notes).length === 0) return schema;
  // A format that is only a note does not replace a format that is checked.
  return { ...schema, ...notes, ...(schema.format !== undefined && { format: schema.format }) };
}
