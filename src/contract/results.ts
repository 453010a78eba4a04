// Reads the kinds of answers of an operation from the annotation of its result, for the document. A controller with a
// result type that is not understood still loads. The field `undocumented` then has the reason.
import type { OperationContract, ResultContract } from './contract.ts';
import type { SchemaWriter } from './schema/schema.ts';
import { UnreadableFile } from './source/files.ts';
import { Unsupported } from './source/source-error.ts';
import type { TypeNode } from './source/syntax.ts';
import type { Evaluator } from './types/evaluate.ts';
import type { Scope } from './types/look-up.ts';
import { excludeKinds, mayBeAbsent, resolve, type Shape, unite } from './types/shape.ts';

export const UNKNOWN_RESULT: ResultContract = { status: 200, body: 'json' };
const BODILESS = new Set([204, 205, 304]);

export function readResults(
  type: TypeNode | undefined,
  scope: Scope,
  evaluator: Evaluator,
  writer: SchemaWriter,
): Pick<OperationContract, 'results' | 'undocumented'> {
  if (type === undefined) return { results: [UNKNOWN_RESULT] };
  try {
    return { results: writeResults(evaluator.evaluate(type, scope), writer) };
  } catch (error) {
    if (!(error instanceof Unsupported || error instanceof UnreadableFile)) throw error;
    return { results: [UNKNOWN_RESULT], undocumented: error.message };
  }
}

function writeResults(shape: Shape, writer: SchemaWriter): ResultContract[] {
  const target = resolve(shape);
  const parts = target.kind === 'union' ? target.parts : [shape];
  const isReply = (part: Shape) => resolve(part).kind === 'reply';
  const plainParts = parts.filter((part) => !isReply(part));
  const replies = parts.map(resolve).filter((part) => part.kind === 'reply');
  const results = replies.map(
    ({ status, body }): ResultContract =>
      BODILESS.has(status) ? { status, body: 'none' } : { ...writeResult(status, body, writer), isReply: true },
  );
  // Without a `Reply` the type is written unchanged, so that a named type keeps its name in the document.
  if (plainParts.length > 0)
    results.unshift(writeResult(200, replies.length === 0 ? shape : unite(plainParts), writer));
  return results;
}

function writeResult(status: number, shape: Shape, writer: SchemaWriter): ResultContract {
  const { kind } = resolve(shape);
  if (kind === 'bytes' || kind === 'file') return { status, body: 'bytes' };
  const data = eventDataOf(shape);
  if (data !== undefined)
    return { status, body: 'events', returned: resolve(data).kind === 'any' ? undefined : writer.write(data) };
  if (kind === 'any') return { status, body: 'json' };
  const valueShape = excludeKinds(shape, 'undefined', 'null');
  const definedShape = excludeKinds(shape, 'undefined');
  const isNeverDefined = resolve(definedShape).kind === 'never';
  const returned = {
    returned: isNeverDefined ? undefined : writer.write(definedShape),
    mayBeAbsent: mayBeAbsent(shape),
  };
  // The body of an answer without a value is the success message of the service.
  if (resolve(valueShape).kind === 'never') return { status, body: 'json', ...returned };
  const schema = writer.write(valueShape);
  return {
    ...(mayBeEmpty(shape) && { mayBeEmpty: true }),
    status,
    body: 'json',
    ...returned,
    // The service sends `{ "data": 7 }` for 7.
    schema: isScalar(valueShape) ? { type: 'object', properties: { data: schema }, required: ['data'] } : schema,
  };
}

/** Returns the data of the events, when the type is an event stream or a union of event streams. */
function eventDataOf(shape: Shape): Shape | undefined {
  const target = resolve(shape);
  const parts = (target.kind === 'union' ? target.parts : [target]).map(resolve);
  const streams = parts.filter((part) => part.kind === 'events');
  return streams.length === parts.length ? unite(streams.map(({ data }) => data)) : undefined;
}

function mayBeEmpty(shape: Shape): boolean {
  const target = resolve(shape);
  if (target.kind === 'union') return target.parts.some(mayBeEmpty);
  return target.kind === 'undefined' || target.kind === 'null';
}

function isScalar(shape: Shape): boolean {
  const target = resolve(shape);
  if (target.kind === 'union') return target.parts.every(isScalar);
  return /^(?:string|number|boolean|const|date)$/.test(target.kind);
}
