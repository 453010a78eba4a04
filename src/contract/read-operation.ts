// Reads the signature of one operation. A controller with an unsupported request type is refused, so that no operation
// is unchecked by mistake.
import type { OperationSettings } from '../api/controller/operations.ts';
import { needsNoDataType } from './check/library.ts';
import { type OperationContract, type Schema, TYPE_IS_UNKNOWN } from './contract.ts';
import { ContractError, placeOf } from './contract-error.ts';
import type { PartSchema } from './part-schemas.ts';
import { readResults } from './results.ts';
import type { SchemaWriter } from './schema/schema.ts';
import { cureOf, type ReadOperation, readInferred, withInferredResult } from './signature-parts.ts';
import { findUnreadConstraint } from './source/constraint-tags.ts';
import { readDoc, summaryOf } from './source/doc-comment.ts';
import { isJavaScript, type SourceFiles } from './source/files.ts';
import { readOr } from './source/source-error.ts';
import type { Param, TypeNode, TypeParam } from './source/syntax.ts';
import type { Evaluator } from './types/evaluate.ts';
import type { FollowedFunction } from './types/follow.ts';
import { schemaOf } from './types/inferred.ts';
import type { Scope } from './types/look-up.ts';
import { failAt } from './types/members.ts';
import {
  excludeKinds,
  expectRecord,
  type Fail,
  mayBeAbsent,
  type Prop,
  resolve,
  type SchemaReference,
  type Shape,
} from './types/shape.ts';
import { isControllerParams } from './types/utility-types.ts';

export interface RunTimeOperation {
  readonly name: string;
  /** The level that has the method: 0 for the exported class or object, 1 for its parent, 2 for the parent's parent. */
  readonly depth: number;
  /** The names that the operation's route captures, such as `id` for `GET {id}`; undefined without a route. */
  readonly pathNames: readonly string[] | undefined;
  /** The operation's entry in `static operations` of the controller. It can replace types of the source. */
  readonly settings: OperationSettings;
}

export interface OperationTools {
  readonly evaluator: Evaluator;
  readonly writer: SchemaWriter;
  readonly files: SourceFiles;
  /** @throws Unsupported when the value of a schema cannot be used, and ModuleNeeded (part-schemas.ts) */
  readonly readSchema: (reference: SchemaReference) => PartSchema;
}

export interface Reading extends OperationTools {
  readonly operation: RunTimeOperation;
  readonly method: FollowedFunction;
  /** The scope of the signature: with the type parameters of the method itself. */
  readonly scope: Scope;
  /** `/path/UserController.ts:12:5` */
  readonly place: string;
}

export function readOperation(
  operation: RunTimeOperation,
  method: FollowedFunction,
  tools: OperationTools,
): ReadOperation {
  const { name, settings } = operation;
  const { at, doc, node } = method;
  // The type parameters of the method itself, as in `find<T extends Filter>(data: T)`, are a part of its scope.
  const scope: Scope = {
    ...method.scope,
    typeParams: tools.evaluator.bind(node.typeParams.map(constraintFirst), [], method.scope),
    params: new Set(node.params.flatMap(({ names }) => names)),
  };
  const place = placeOf(scope.path, at, tools.files);
  const reading: Reading = { ...tools, operation, method, scope, place };
  if (settings.unchecked === true) {
    const { contract, inferred } = describeWithoutRequest(reading);
    return { contract: { ...contract, uncheckedReason: 'static operations says so' }, inferred };
  }
  const [data, params, ...others] = node.params.filter((param) => param.name !== 'this');
  if (method.isOverloaded)
    throw new ContractError(place, `${name} is overloaded: write only the signature that is meant`, 'UNREAD_OPERATION');
  refuseUnreadTags([doc, ...[data, params, ...others].map((param) => param?.doc)], reading);
  const needsDataType = !needsNoDataType(name, settings);
  refuseInferred(needsDataType ? [data, params] : [params], reading);
  const typedRest = [data, params].find((param) => param?.isRest && !isListOfAnything(param.type));
  if (typedRest !== undefined) {
    const reason = 'the types of rest arguments are not read: write data and params';
    throw new ContractError(place, `${name}(...${typedRest.name}): ${reason}`);
  }
  const readArgument = <T>(
    part: 'data' | 'params',
    param: Param | undefined,
    read: (shape: Shape, fail: Fail) => T,
  ) => {
    const { type } = param ?? {};
    // After rest arguments (`...data`), no parameter has a type that can be read.
    if (param === undefined || type === undefined || param.isRest || data?.isRest) return undefined;
    const fail = failAt(scope, type.at);
    return withSignature(part, param, reading, () => {
      const shape = tools.evaluator.evaluate(type, scope);
      // `evaluate` leaves a named type for later. `resolve` evaluates it here, inside of `withSignature`.
      if (schemaOf(shape) === undefined && resolve(shape).kind === 'never')
        fail('this type is never, which no request fits');
      return read(shape, fail);
    });
  };
  const dataRead = needsDataType ? readArgument('data', data, (shape) => readData(shape, tools)) : undefined;
  const { schemas, ...pathAndQuery } =
    readArgument('params', params, (shape, fail) => readParams(shape, settings, fail, tools)) ?? {};
  const { contract, inferred } = describeWithoutRequest(reading);
  return {
    contract: {
      ...contract,
      data: dataRead?.schema,
      dataIsOptional: dataRead !== undefined && (data?.isOptional === true || dataRead.mayBeAbsent),
      ...pathAndQuery,
      uncheckedReason:
        (needsDataType ? uncheckedDataReason(data, dataRead) : undefined) ?? uncheckedParamsReason(params, reading),
    },
    inferred: { ...inferred, ...(dataRead?.body && { body: dataRead.body }), ...schemas },
  };
}

/** Whether rest arguments have no type, or `unknown[]` or `any[]`, which need no check. */
function isListOfAnything(type: TypeNode | undefined): boolean {
  if (type?.kind !== 'array') return type === undefined;
  return type.element.kind === 'word' && /^(?:unknown|any)$/.test(type.element.name);
}

/** Makes the constraint of a type parameter its fallback, because a request may have any value that fits it. */
const constraintFirst = (param: TypeParam): TypeParam => ({ ...param, fallback: param.constraint ?? param.fallback });

/** Returns a contract with the doc comment and the result, but without the types of the request. */
function describeWithoutRequest(reading: Reading): ReadOperation {
  const { text, tags } = readDoc(reading.method.doc);
  const contract = {
    name: reading.operation.name,
    ...summaryOf(text),
    isDeprecated: tags.some(({ name }) => name === 'deprecated'),
    dataIsOptional: false,
    ...readResults(reading),
    at: reading.place,
  };
  return withInferredResult(contract, reading);
}

function refuseUnreadTags(docs: readonly (string | undefined)[], { operation, scope, place }: Reading): void {
  for (const doc of docs) {
    const message = findUnreadConstraint(doc, isJavaScript(scope.path));
    if (message !== undefined) throw new ContractError(place, `${operation.name}: ${message}`, 'TAG_WITHOUT_EFFECT');
  }
}

/** Refuses a parameter that has a type from elsewhere and no annotation, as in `const f: Handler = (data) => data`. */
function refuseInferred(params: readonly (Param | undefined)[], { operation, method, place }: Reading): void {
  const inferred = params.find((param) => param !== undefined && param.type === undefined);
  if (inferred === undefined || !method.hasOuterType) return;
  const reason = 'its type is inherited or inferred, which is not read';
  const cure = `write ${inferred.name || '{ … }'}: T in the parentheses`;
  throw new ContractError(place, `${operation.name}(${inferred.name || '…'}): ${reason}; ${cure}`);
}

/** Turns the error Unsupported of `read` into a ContractError with the signature and the place of the type. */
function withSignature<T>(part: 'data' | 'params', param: Param, reading: Reading, read: () => T): T {
  return readOr(read, (error) => {
    const { operation, scope, files } = reading;
    const signature = `${operation.name}(${param.name || '…'}: ${annotationOf(param, scope)})`;
    const [path, offset] = error.path === '' ? [scope.path, param.type?.at ?? 0] : [error.path, error.at];
    const cure = error.cure === '' ? '' : `; ${error.cure ?? cureOf(operation, part)}`;
    const message = `${signature}: ${error.message}${cure}`;
    throw new ContractError(placeOf(path, offset, files), message, error.code, error.wanted);
  });
}

function annotationOf({ span = [0, 0] }: Param, { module }: Scope): string {
  const text = module.source
    .slice(...span)
    .replace(/[,=)\s]+$/, '')
    .replace(/\s+/g, ' ');
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

/** True for `unknown`, which allows any data, and for `undefined`: the operation uses no data. */
function needsNoCheck(shape: Shape): boolean {
  const { kind } = resolve(excludeKinds(shape, 'undefined'));
  return kind === 'any' || kind === 'never';
}

function readData(shape: Shape, tools: OperationTools) {
  const body = readInferred(shape, tools);
  if (body !== undefined) return { body, mayBeAbsent: false };
  const schema = needsNoCheck(shape) ? undefined : tools.writer.write(shape);
  return { schema, mayBeAbsent: mayBeAbsent(shape), isUnknown: resolve(shape).kind === 'any' };
}

function uncheckedDataReason(
  param: Param | undefined,
  read: ReturnType<typeof readData> | undefined,
): string | undefined {
  if (param === undefined) return undefined;
  if (param.isRest) return 'it is a rest argument';
  if (read === undefined) return 'it has no annotation';
  return read.isUnknown ? TYPE_IS_UNKNOWN : undefined;
}

/** A type that TypeScript infers, as from `satisfies Api`, is not read. */
function uncheckedParamsReason(param: Param | undefined, { scope }: Reading): string | undefined {
  const isUnread = param !== undefined && !param.isRest && param.type === undefined && !isJavaScript(scope.path);
  return isUnread ? 'its params have no annotation' : undefined;
}

/**
 * Writes the schemas of the second parameter: `ControllerParams<{ path, query, headers }>`, or another object type with
 * these fields. The server always passes them, so `path?: T` is read as `path: T`, and so are the others.
 */
function readParams(shape: Shape, settings: OperationSettings, fail: Fail, tools: OperationTools) {
  const target = resolve(excludeKinds(shape, 'undefined', 'null'));
  if (!/^(?:record|any|object)$/.test(target.kind))
    fail('the second argument must be a ControllerParams', 'write params: ControllerParams');
  const props = target.kind === 'record' ? target.props : new Map<string, Prop>();
  const schemas: ReadOperation['inferred'] = {};
  const writePart = (prop: Prop | undefined): Schema | undefined => {
    const partShape = prop && excludeKinds(prop.shape, 'undefined', 'null');
    return partShape === undefined || resolve(partShape).kind === 'any'
      ? undefined
      : tools.writer.write(expectRecord(partShape, fail));
  };
  const writeOrInfer = (part: 'path' | 'query'): Schema | undefined => {
    // A schema in `static operations` takes the place of the type.
    const prop = settings[part] === undefined ? props.get(part) : undefined;
    const inferred = prop && readInferred(prop.shape, tools);
    if (inferred === undefined) return writePart(prop);
    schemas[part] = inferred;
    return undefined;
  };
  const headers = writePart(props.get('headers'));
  if (headers?.additionalProperties !== undefined || headers?.patternProperties !== undefined)
    fail('the type of headers must name each header', "write headers: { 'idempotency-key'?: string }, or no type");
  const name = Object.keys(headers?.properties ?? {}).find((header) => !/^[!#$%&'*+.^`|~0-9a-z_-]+$/.test(header));
  if (name !== undefined) fail(`${name} is no name of a header in lower case`, `write '${name.toLowerCase()}'`);
  return { path: writeOrInfer('path'), query: writeOrInfer('query'), headers, user: readUser(props), schemas };
}

/**
 * Reads whether the type of `params.user` includes undefined. Any type is allowed, also one of a package. The user can
 * also be written beside ControllerParams: `ControllerParams & { user: User }`.
 */
function readUser(props: ReadonlyMap<string, Prop>): OperationContract['user'] {
  const user = props.get('user');
  if (user === undefined || !(user.isUser || isControllerParams(props))) return undefined;
  if (user.isOptional) return 'optional';
  const readType = () => {
    // Without a type of its own, the user is `any`.
    if (!user.isUser && resolve(user.shape).kind === 'any') return undefined;
    return mayBeAbsent(user.shape) ? 'optional' : 'required';
  };
  return readOr(readType, () => 'required');
}
