// One operation: the types of its data, query, path and result, as its source says. A request type that is not
// understood is an error with its place, never an operation without a check.

import { type GivenSchemas, isDataGiven } from './check/library.ts';
import type { OperationContract, Schema } from './contract.ts';
import { ContractError, placeOf } from './contract-error.ts';
import { readResults } from './results.ts';
import type { SchemaWriter } from './schema/schema.ts';
import { findUnreadConstraint } from './source/constraint-tags.ts';
import { readDoc, summaryOf } from './source/doc-comment.ts';
import { type TypeFiles, UnreadableFile } from './source/files.ts';
import { docResult, withDocTypes } from './source/js-types.ts';
import { lineOf, SourceError, Unsupported } from './source/source-error.ts';
import type { Param, TypeNode, TypeParam } from './source/syntax.ts';
import type { Evaluator } from './types/evaluate.ts';
import type { FollowedFunction } from './types/follow.ts';
import { findType, type Scope } from './types/look-up.ts';
import { excludeKinds, expectRecord, mayBeAbsent, resolve, type Shape } from './types/shape.ts';

/** An operation as run time has it. */
export interface RunTimeOperation {
  readonly name: string;
  readonly method: (...args: never[]) => unknown;
  /** The level that has the method: 0 is the exported class or object itself, 1 its parent. */
  readonly depth: number;
  /** The names that its route captures; undefined: it has no route. */
  readonly pathNames: readonly string[] | undefined;
  /** What `static operations` says in the place of annotations. */
  readonly given: GivenSchemas;
}

export interface Tools {
  readonly evaluator: Evaluator;
  readonly writer: SchemaWriter;
  readonly files: TypeFiles;
}

export function readOperation(
  { name, given, pathNames }: RunTimeOperation,
  method: FollowedFunction,
  tools: Tools,
): OperationContract {
  const { at, doc, node } = method;
  const scope: Scope = {
    ...method.scope,
    typeParams: tools.evaluator.bind(node.typeParams.map(constraintFirst), [], method.scope),
  };
  const place = placeOf(scope.path, at, tools.files);
  const isScript = /\.[mc]?js$/.test(scope.path);
  const said = () => describe(name, method, isScript, scope, place, tools);
  if (given.unchecked === true) return { ...said(), unchecked: 'static operations says so' };
  const [data, second, ...others] = (isScript ? docTypes(name, method, place) : node.params).filter(
    (param) => param.name !== 'this',
  );
  if (method.isOverloaded) {
    throw new ContractError(place, `${name} is overloaded, and it is not clear which signature is meant: write one`);
  }
  refuseIdleTags(name, [doc, ...[data, second, ...others].map((param) => param?.doc)], isScript, place);
  const rest = [data, second].find(
    (param) => param?.rest && param.type !== undefined && !isListOfAnything(param.type, scope, tools),
  );
  if (rest !== undefined)
    throw new ContractError(
      place,
      `${name}(...${rest.name}): the types of rest arguments are not read: write data and params`,
    );
  const shapeOf = (param: Param | undefined) =>
    param === undefined || param.rest || data?.rest ? undefined : requestShape(name, param, scope, tools);
  const asked = isDataGiven(name, given) ? undefined : shapeOf(data);
  const around = writeParams(name, second, shapeOf(second), given.query === undefined, scope, tools);
  refuseForeignPath(name, around.path, pathNames, place);
  const schema =
    asked === undefined || isUnchecked(asked) ? undefined : write(name, data as Param, asked, scope, tools);
  return {
    ...said(),
    data: schema,
    optional: asked !== undefined && (data?.optional === true || mayBeAbsent(asked)),
    ...around,
    unchecked:
      (isDataGiven(name, given) ? undefined : whyUnchecked(data, asked)) ?? whyParamsUnchecked(second, isScript),
  };
}

/** A method is called with whatever its type parameters allow. */
const constraintFirst = (param: TypeParam): TypeParam => ({ ...param, fallback: param.constraint ?? param.fallback });

/** All but the request. */
function describe(
  name: string,
  { node, doc, at }: FollowedFunction,
  isScript: boolean,
  scope: Scope,
  place: string,
  { evaluator, writer }: Tools,
): OperationContract {
  const { text, tags } = readDoc(doc);
  const result = node.result ?? (isScript ? docResult(doc, at) : undefined);
  return {
    name,
    ...summaryOf(text),
    deprecated: tags.some(([tag]) => tag === 'deprecated'),
    data: undefined,
    optional: false,
    path: undefined,
    query: undefined,
    unchecked: undefined,
    ...readResults(result, scope, evaluator, writer),
    at: place,
  };
}

/** Constraints belong to a property or an alias. */
function refuseIdleTags(name: string, docs: readonly (string | undefined)[], isScript: boolean, place: string): void {
  for (const doc of docs) {
    const idle = findUnreadConstraint(doc, isScript);
    if (idle !== undefined) throw new ContractError(place, `${name}: ${idle}`);
  }
}

function refuseForeignPath(
  name: string,
  path: Schema | undefined,
  names: readonly string[] | undefined,
  place: string,
): void {
  const foreign = Object.keys((path?.properties ?? {}) as object).find((one) => names?.includes(one) !== true);
  if (foreign === undefined) return;
  throw new ContractError(
    place,
    `${name}: ${names === undefined ? 'it has no route, so its path is empty' : `its route has no {${foreign}}`}`,
  );
}

function docTypes(name: string, { node: { params }, doc, at }: FollowedFunction, place: string): readonly Param[] {
  try {
    return withDocTypes(params, doc, at);
  } catch (error) {
    if (error instanceof SourceError) throw new ContractError(place, `${name}: ${error.message}`);
    throw error;
  }
}

function requestShape(name: string, param: Param | undefined, scope: Scope, tools: Tools): Shape | undefined {
  const { type } = param ?? {};
  return type === undefined
    ? undefined
    : within(name, param as Param, scope, tools, () => {
        const shape = tools.evaluator.evaluate(type, scope);
        // A name is worked out when it is asked for: now, where a mistake has its place.
        if (resolve(shape).kind === 'never')
          throw new Unsupported('this type is never, which no request fits', scope.path, type.at);
        return shape;
      });
}

function write(name: string, param: Param, shape: Shape, scope: Scope, tools: Tools): Schema {
  return within(name, param, scope, tools, () => tools.writer.write(shape));
}

/** Makes a place and a sentence of what was not understood. */
function within<T>(name: string, param: Param, scope: Scope, { files }: Tools, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof UnreadableFile)
      throw new ContractError(
        `${error.path}:${lineOf(error.source, error.at)}`,
        `${error.message}: the types in this file cannot be read`,
      );
    if (!(error instanceof Unsupported)) throw error;
    const text = param.type === undefined ? '' : annotationOf(param, scope);
    const signature = `${name}(${param.name || '…'}${text === '' ? '' : `: ${text}`})`;
    const [path, at] = error.path === '' ? [scope.path, param.type?.at ?? 0] : [error.path, error.at];
    throw new ContractError(
      placeOf(path, at, files),
      [`${signature}: ${error.message}`, ...(error.cure === '' ? [] : [error.cure])].join('; '),
    );
  }
}

function annotationOf({ type, typeEnd }: Param, { module }: Scope): string {
  const text = module.source
    .slice(type?.at, typeEnd)
    .replace(/[,=)\s]+$/, '')
    .replace(/\s+/g, ' ');
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

/** `_: undefined` takes nothing, and `unknown` anything. */
function isUnchecked(shape: Shape): boolean {
  const { kind } = resolve(excludeKinds(shape, 'undefined'));
  return kind === 'any' || kind === 'never';
}

function whyUnchecked(param: Param | undefined, shape: Shape | undefined): string | undefined {
  if (param === undefined) return undefined;
  if (param.rest) return 'it is a rest argument';
  if (shape === undefined) return 'it has no annotation';
  return resolve(shape).kind === 'any' ? 'its type is unknown or any' : undefined;
}

/**
 * In TypeScript, params without an annotation may have a type from elsewhere: `satisfies Api`, `const index: Handler =
 * …`.
 */
function whyParamsUnchecked(param: Param | undefined, isScript: boolean): string | undefined {
  return param === undefined || param.rest || param.type !== undefined || isScript
    ? undefined
    : 'its params have no annotation';
}

/**
 * `ControllerParams<{ path, query }>`, or an object type of one's own with such fields. The server always gives both.
 */
function writeParams(
  name: string,
  param: Param | undefined,
  shape: Shape | undefined,
  readsQuery: boolean,
  scope: Scope,
  tools: Tools,
): Pick<OperationContract, 'path' | 'query'> {
  if (param === undefined || shape === undefined) return { path: undefined, query: undefined };
  const fail = (what: string): never => {
    throw new Unsupported(what, scope.path, param.type?.at ?? 0);
  };
  return within(name, param, scope, tools, () => {
    const whole = resolve(excludeKinds(shape, 'undefined', 'null'));
    if (!/^(?:record|any|object)$/.test(whole.kind)) fail('the second argument is a ControllerParams');
    const schemaOf = (part: string): Schema | undefined => {
      const prop = whole.kind === 'record' ? whole.props.get(part) : undefined;
      const given = prop === undefined ? undefined : excludeKinds(prop.shape, 'undefined', 'null');
      return given === undefined || resolve(given).kind === 'any'
        ? undefined
        : tools.writer.write(expectRecord(given, fail));
    };
    return { path: schemaOf('path'), query: readsQuery ? schemaOf('query') : undefined };
  });
}

function isListOfAnything(type: TypeNode, scope: Scope, tools: Tools): boolean {
  const isAnyOrList = (one: TypeNode) => isAnything(one, scope, tools) || isListOfAnything(one, scope, tools);
  return type.kind === 'array'
    ? isAnything(type.element, scope, tools)
    : type.kind === 'tuple' && type.items.every((item) => isAnyOrList(item.type));
}

function isAnything(type: TypeNode, scope: Scope, { evaluator }: Tools): boolean {
  if (type.kind === 'word') return type.name === 'unknown' || type.name === 'any';
  if (type.kind !== 'name' || type.args.length > 0 || scope.typeParams.has(type.name)) return false;
  const found = findType(type, scope, evaluator.load);
  return typeof found === 'object' && 'gatefoldName' in found && found.gatefoldName === 'ControllerParams';
}
