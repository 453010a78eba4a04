// What an operation answers, by the annotation of its result. It documents; what is not understood is left out with a
// word.
import type { OperationContract, ResultContract } from './contract.ts';
import type { SchemaWriter } from './schema/schema.ts';
import { UnreadableFile } from './source/files.ts';
import { Unsupported } from './source/source-error.ts';
import type { TypeNode } from './source/syntax.ts';
import type { Evaluator } from './types/evaluate.ts';
import type { Scope } from './types/look-up.ts';
import { excludeKinds, resolve, type Shape, unite } from './types/shape.ts';

export const UNKNOWN_RESULT: ResultContract = { status: 200, body: 'json', schema: undefined };
const BODILESS = new Set([204, 205, 304]);

export function readResults(
  type: TypeNode | undefined,
  scope: Scope,
  evaluator: Evaluator,
  writer: SchemaWriter,
): Pick<OperationContract, 'results' | 'undocumented'> {
  if (type === undefined) return { results: [UNKNOWN_RESULT], undocumented: undefined };
  try {
    return { results: resultsOf(evaluator.evaluate(type, scope), writer), undocumented: undefined };
  } catch (error) {
    if (!(error instanceof Unsupported || error instanceof UnreadableFile)) throw error;
    return { results: [UNKNOWN_RESULT], undocumented: error.message };
  }
}

function resultsOf(shape: Shape, writer: SchemaWriter): ResultContract[] {
  const of = resolve(shape);
  const parts = of.kind === 'union' ? of.parts : [shape];
  const isReply = (part: Shape) => resolve(part).kind === 'reply';
  const plain = parts.filter((part) => !isReply(part));
  const replies = parts.map(resolve).filter((part) => part.kind === 'reply');
  const found = replies.map(
    ({ status, body }): ResultContract =>
      BODILESS.has(status) ? { status, body: 'none', schema: undefined } : resultOf(status, body, writer),
  );
  if (plain.length > 0) found.unshift(resultOf(200, plain.length === parts.length ? shape : unite(plain), writer));
  return found;
}

function resultOf(status: number, shape: Shape, writer: SchemaWriter): ResultContract {
  const of = resolve(shape);
  if (of.kind === 'bytes' || of.kind === 'file') return { status, body: 'bytes', schema: undefined };
  if (of.kind === 'events') return { status, body: 'events', schema: undefined };
  const value = excludeKinds(shape, 'undefined', 'null');
  const isDone = resolve(value).kind === 'never' || of.kind === 'any';
  // Nothing becomes the plain success envelope, and a value that is no object or list is wrapped (decisions 3.6).
  if (isDone) return { status, body: 'json', schema: undefined };
  const schema = writer.write(value);
  const isWrapped = isScalar(value);
  return {
    status,
    body: 'json',
    schema: isWrapped ? { type: 'object', properties: { data: schema }, required: ['data'] } : schema,
  };
}

function isScalar(shape: Shape): boolean {
  const of = resolve(shape);
  if (of.kind === 'union') return of.parts.every(isScalar);
  return /^(?:string|number|boolean|const|date)$/.test(of.kind);
}
