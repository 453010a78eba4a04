// Parts of a signature beside its types: schemas from which annotations are inferred, and the advice of an error.
import type { OperationSettings } from '../api/controller/operations.ts';
import { dataIsQuery } from './check/library.ts';
import type { OperationContract } from './contract.ts';
import type { PartName, PartSchema } from './part-schemas.ts';
import type { OperationTools, RunTimeOperation } from './read-operation.ts';
import { reasonOf } from './results.ts';
import { Unsupported } from './source/source-error.ts';
import type { TypeNode } from './source/syntax.ts';
import { schemaOf } from './types/inferred.ts';
import type { Scope } from './types/look-up.ts';
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
export function withInferredResult(
  contract: OperationContract,
  settings: OperationSettings,
  type: TypeNode | undefined,
  scope: Scope,
  tools: OperationTools,
): ReadOperation {
  if (contract.undocumentedReason === undefined || type === undefined || settings.result !== undefined)
    return { contract, inferred: {} };
  try {
    const whole = withoutName(tools.evaluator.evaluate(type, scope));
    const reply = whole.kind === 'reply' ? whole : undefined;
    const body = reply === undefined ? whole : withoutName(reply.body);
    const isList = body.kind === 'array' && body.keywords === undefined;
    const schema = readInferred(isList ? body.element : body, tools);
    if (schema === undefined) return { contract, inferred: {} };
    const results = reply && [{ status: reply.status, body: 'json' as const, isReplyWithBody: true }];
    return { contract: { ...contract, ...(results && { results }) }, inferred: { result: { ...schema, isList } } };
  } catch (error) {
    if (!(error instanceof Unsupported)) throw error;
    return { contract: { ...contract, undocumentedReason: reasonOf(error) }, inferred: {} };
  }
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
