// Parts of a signature that need no shape of a type: schemas from which annotations are inferred, names of parameters,
// and types that need no check.
import { type ContractSettings, dataIsQuery } from './check/library.ts';
import type { OperationContract } from './contract.ts';
import type { PartName, PartSchema } from './part-schemas.ts';
import type { OperationTools, RunTimeOperation } from './read-operation.ts';
import { Unsupported } from './source/source-error.ts';
import type { TypeNode } from './source/syntax.ts';
import type { FollowedFunction } from './types/follow.ts';
import { schemaOf } from './types/inferred.ts';
import { findType, type Scope } from './types/look-up.ts';
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

export function namesOfParams({ node: { params }, scope, at }: FollowedFunction): ReadonlySet<string> {
  const names = new Set<string>();
  let start = at;
  for (const [i, { name, typeEnd }] of params.entries()) {
    // A pattern without a type ends at the type of a later parameter at the latest.
    const end = params.slice(i).find(({ type }) => type !== undefined)?.type?.at;
    if (name !== '') names.add(name);
    else for (const word of scope.module.source.slice(start, end ?? start).match(/[\w$]+/g) ?? []) names.add(word);
    start = typeEnd ?? start;
  }
  return names;
}

/**
 * Adds the schema from which the type of a result is inferred, also for the body of a `Reply`, and for a list. When it
 * cannot be used, the document has the reason.
 */
export function withInferredResult(
  contract: OperationContract,
  settings: ContractSettings,
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
    return { contract: { ...contract, undocumentedReason: error.message }, inferred: {} };
  }
}

/** Returns what a name means, unless its type is inferred from a schema. */
function withoutName(shape: Shape): Shape {
  return shape.kind === 'named' && shape.inferredFrom === undefined ? withoutName(shape.target()) : shape;
}

/** True for types of rest arguments that need no check, such as `unknown[]` or `[any, ControllerParams]`. */
export function isListOfAnything(type: TypeNode, scope: Scope): boolean {
  const isAnyOrList = (item: TypeNode) => isAnything(item, scope) || isListOfAnything(item, scope);
  return type.kind === 'array'
    ? isAnything(type.element, scope)
    : type.kind === 'tuple' && type.items.every((item) => isAnyOrList(item.type));
}

function isAnything(type: TypeNode, scope: Scope): boolean {
  if (type.kind === 'word') return type.name === 'unknown' || type.name === 'any';
  if (type.kind !== 'name' || type.args.length > 0 || scope.typeParams.has(type.name)) return false;
  const target = findType(type.name, scope);
  return typeof target === 'object' && 'gatefoldName' in target && target.gatefoldName === 'ControllerParams';
}

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
