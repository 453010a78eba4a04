// Reads the kinds of answers of an operation from its result type, for the OpenAPI document. A controller with an
// unsupported result type still loads. The field `undocumentedReason` then says why the document has no type.
import { attempt } from '../base/failure.ts';
import { resolveReference } from './check/run.ts';
import type { Definitions, OperationContract, ResultContract, Schema } from './contract.ts';
import type { Reading } from './read-operation.ts';
import type { SchemaWriter } from './schema/schema.ts';
import { ASK, SourceError, Unsupported } from './source/source-error.ts';
import type { TypeNode } from './source/syntax.ts';
import { excludeKinds, includesKind, mayBeAbsent, partsOf, resolve, type Shape, unite } from './types/shape.ts';

export const UNKNOWN_RESULT: ResultContract = { status: 200, body: 'json' };
export const NO_RESULT_TYPE =
  'its result has no type in the source, so it is unknown: annotate it, or write a schema as result';
const BODILESS_STATUSES = new Set([204, 205, 304]);
const SCALAR_KINDS = ['string', 'number', 'boolean', 'const'] as const;

export function readResults(reading: Reading): Pick<OperationContract, 'results' | 'undocumentedReason'> {
  const { method, scope, evaluator, writer } = reading;
  const type = method.node.result;
  if (type === undefined) return { results: [UNKNOWN_RESULT], undocumentedReason: NO_RESULT_TYPE };
  try {
    return { results: writeResults(evaluator.evaluate(type, scope), writer) };
  } catch (error) {
    const isUnread = error instanceof SourceError || (error instanceof Unsupported && !error.isStale);
    if (!isUnread) throw error;
    const parts = writtenParts(type).map((part) => attempt(() => partsOf(evaluator.evaluate(part, scope)), undefined));
    return { results: unknownResults(parts.flat()), undocumentedReason: reasonOf(error) };
  }
}

/** Returns the parts of a union, also of one in a `Promise`. */
function writtenParts(type: TypeNode): readonly TypeNode[] {
  if (type.kind === 'union') return type.parts.flatMap(writtenParts);
  return type.kind === 'name' && type.name === 'Promise' ? type.args.flatMap(writtenParts) : [type];
}

/**
 * Returns results without types, first the one that is no reply. The statuses of replies are known, even if the type of
 * a body or of another part is not read.
 *
 * @param parts undefined for a part that is not read
 */
function unknownResults(parts: readonly (Shape | undefined)[]): ResultContract[] {
  const replies = parts.filter((part) => part?.kind === 'reply');
  const results = replies.map(({ status }): [number, ResultContract] => {
    return [status, { status, body: BODILESS_STATUSES.has(status) ? 'none' : 'json', isReplyWithBody: true }];
  });
  const others: [number, ResultContract][] = replies.length < parts.length ? [[200, UNKNOWN_RESULT]] : [];
  return [...new Map([...others, ...results]).values()];
}

/** Says what to write. `gatefold contracts` would not help, because it writes out the types of requests. */
export function reasonOf(error: Error): string {
  if (!(error instanceof Unsupported) || error.cure === '') return error.message;
  const cure =
    error.cure?.replace(new RegExp(`[,;] or ${ASK}$`), '') ?? 'write a type of your own, or a schema as result';
  return `${error.message}; ${cure}`;
}

function writeResults(shape: Shape, writer: SchemaWriter): ResultContract[] {
  const parts = listKindsApart(shape);
  const replies = parts.map(resolve).filter((part) => part.kind === 'reply');
  const results = replies.flatMap(({ status, body }): ResultContract[] =>
    BODILESS_STATUSES.has(status)
      ? [{ status, body: 'none' }]
      : writePlain(status, listKindsApart(body), writer).map((result) => ({ ...result, isReplyWithBody: true })),
  );
  const plainParts = parts.filter((part) => resolve(part).kind !== 'reply');
  return [...writePlain(200, plainParts, writer), ...results];
}

/** Writes a result for the JSON values among the parts, one for the event streams, and one for the bytes. */
function writePlain(status: number, parts: readonly Shape[], writer: SchemaWriter): ResultContract[] {
  const formOf = (part: Shape) => ({ bytes: 'bytes', file: 'bytes', events: 'events' })[resolve(part).kind as 'bytes'];
  return [undefined, 'events', 'bytes'].flatMap((form) => {
    const ofForm = parts.filter((part) => formOf(part) === form);
    return ofForm.length === 0 ? [] : [writeResult(status, unite(ofForm), writer)];
  });
}

/** Lists the parts of a union. A union of JSON values alone stays one part, to keep its name in the document. */
function listKindsApart(shape: Shape): Shape[] {
  const target = resolve(shape);
  const isMixed = target.kind === 'union' && includesKind(target, 'reply', 'bytes', 'file', 'events');
  return isMixed ? target.parts.flatMap(listKindsApart) : [shape];
}

function writeResult(status: number, shape: Shape, writer: SchemaWriter): ResultContract {
  const { kind } = resolve(shape);
  if (includesKind(shape, 'bytes', 'file')) return { status, body: 'bytes' };
  const data = eventDataOf(shape);
  if (data !== undefined)
    return { status, body: 'events', returnedSchema: resolve(data).kind === 'any' ? undefined : writer.write(data) };
  if (kind === 'any') return { status, body: 'json' };
  const nonEmptyShape = excludeKinds(shape, 'undefined', 'null');
  const definedShape = excludeKinds(shape, 'undefined');
  const result: ResultContract = {
    status,
    body: 'json',
    returnedSchema: resolve(definedShape).kind === 'never' ? undefined : writer.write(definedShape),
    mayBeAbsent: mayBeAbsent(shape),
  };
  // The type allows only undefined, null or both. The service then sends its success message, which needs no schema.
  if (resolve(nonEmptyShape).kind === 'never') return result;
  return {
    ...result,
    ...(mayBeMessage(shape) && { mayBeSuccessMessage: true }),
    schema: writeSent(nonEmptyShape, writer),
  };
}

/** Writes the schema of what the service sends: `{ "data": 7 }` for 7, and a text alone for a `Date`. */
function writeSent(shape: Shape, writer: SchemaWriter): Schema {
  const scalars = partsOf(shape).filter(({ kind }) => SCALAR_KINDS.some((scalar) => scalar === kind));
  if (scalars.length === 0) return writer.write(shape);
  const others = excludeKinds(shape, ...SCALAR_KINDS);
  const hasOthers = others.kind !== 'never';
  const data = writer.write(hasOthers ? unite(scalars) : shape);
  return hasOthers ? { anyOf: [inData(data), writer.write(others)] } : inData(data);
}

const inData = (data: Schema): Schema => ({ type: 'object', properties: { data }, required: ['data'] });

/** Returns what is sent for a result with a schema of its own. A text that may be a `Date` stays alone. */
export function sentForm(schema: Schema, defs: Definitions): Pick<ResultContract, 'schema' | 'mayBeSuccessMessage'> {
  const keyword = schema.anyOf === undefined ? 'oneOf' : 'anyOf';
  const parts = (schema[keyword] as readonly Schema[] | undefined)?.map((part) => sentForm(part, defs));
  if (parts !== undefined)
    return {
      schema: { ...schema, [keyword]: parts.flatMap((part) => part.schema ?? []) },
      ...(parts.some((part) => part.mayBeSuccessMessage) && { mayBeSuccessMessage: true }),
    };
  const { type, format, enum: list, const: literal } = resolveReference(schema, defs);
  // A literal needs no type.
  const literals = literal === undefined ? list : [literal];
  const types = literals?.map((value) => (value === null ? 'null' : typeof value)) ?? [type].flat();
  const kinds = types.filter((kind) => kind !== 'null');
  const isScalar = kinds.every((kind) => /^(?:string|number|integer|boolean)$/.test(String(kind)));
  const own = Array.isArray(schema.type)
    ? { ...schema, type: (kinds.length > 1 ? kinds : kinds[0]) as string }
    : schema;
  return {
    ...(kinds.length > 0 && { schema: isScalar && format !== 'date-time' ? inData(own) : own }),
    ...(types.some((kind) => kind === 'null' || kind === 'boolean') && { mayBeSuccessMessage: true }),
  };
}

/** Returns the type of the events' data, when a type is an event stream or a union of those; else undefined. */
function eventDataOf(shape: Shape): Shape | undefined {
  const parts = partsOf(shape);
  const streams = parts.filter((part) => part.kind === 'events');
  return streams.length === parts.length ? unite(streams.map(({ data }) => data)) : undefined;
}

/** Whether the service may send its success message for the value: for undefined, null and true. */
const mayBeMessage = (shape: Shape): boolean =>
  includesKind(shape, 'undefined', 'null', 'boolean') ||
  partsOf(shape).some((part) => part.kind === 'const' && part.value === true);
