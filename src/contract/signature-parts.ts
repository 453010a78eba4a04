// Parts of a signature beside its types: schemas from which annotations are inferred, and the advice of an error.
import { dataIsQuery } from './check/library.ts';
import type { OperationContract } from './contract.ts';
import type { PartName, PartSchema } from './part-schemas.ts';
import type { OperationTools, Reading, RunTimeOperation } from './read-operation.ts';
import { reasonOf } from './results.ts';
import { readOr } from './source/source-error.ts';
import { schemaOf } from './types/inferred.ts';
import type { Shape } from './types/shape.ts';

export interface ReadOperation {
  readonly contract: OperationContract;
  /** The schemas from which annotations are inferred. Such a part has no schema in the contract. */
  readonly inferred: Partial<Record<PartName, PartSchema>>;
}

export function readInferred(shape: Shape, { readSchema }: OperationTools): PartSchema | undefined {
  const reference = schemaOf(shape);
  return reference && readSchema(reference);
}

/**
 * Adds the schema from which the type of a result is inferred, also for the body of a `Reply`, and for a list. When it
 * cannot be used, the document has the reason.
 */
export function withInferredResult(contract: OperationContract, reading: Reading): ReadOperation {
  const { result: type } = reading.method.node;
  if (
    contract.undocumentedReason === undefined ||
    type === undefined ||
    reading.operation.settings.result !== undefined
  )
    return { contract, inferred: {} };
  const readSchema = (): ReadOperation => {
    const whole = withoutName(reading.evaluator.evaluate(type, reading.scope));
    const reply = whole.kind === 'reply' ? whole : undefined;
    const body = reply === undefined ? whole : withoutName(reply.body);
    const isList = body.kind === 'array' && body.keywords === undefined;
    const schema = readInferred(isList ? body.element : body, reading);
    if (schema === undefined) return { contract, inferred: {} };
    const results = reply && [{ status: reply.status, body: 'json' as const, isReplyWithBody: true }];
    return { contract: { ...contract, ...(results && { results }) }, inferred: { result: { ...schema, isList } } };
  };
  return readOr(readSchema, (error) => {
    return { contract: { ...contract, undocumentedReason: reasonOf(error) }, inferred: {} };
  });
}

/** Returns what a name means, unless its type is inferred from a schema. */
function withoutName(shape: Shape): Shape {
  return shape.kind === 'named' && shape.inferredFrom === undefined ? withoutName(shape.target()) : shape;
}

/** Returns the advice for a type that is not read. */
export function cureOf({ name, pathNames, settings }: RunTimeOperation, part: 'data' | 'params'): string {
  const schemaPart = part === 'data' && !dataIsQuery(name) ? 'body' : 'query';
  const key = /^\w+$/.test(name) ? name : `'${name}'`;
  const parts = [
    ...(part === 'params' && settings.query !== undefined ? [] : [`${schemaPart}: schema`]),
    ...(part === 'params' && pathNames !== undefined ? ['path: schema'] : []),
  ];
  const entry = `static operations = { ${key}: { ${parts.join(', ')} } }`;
  return `declare the schema of a library, ${entry}, or write a type of your own`;
}
