// One operation: the types of its data, query, path and result, as its source says. A request type that is not understood is an
// error with its place, never an operation without a check.
import type { FoundMethod } from './class-levels.ts';
import type { OperationContract, Schema } from './contract.ts';
import { ContractError, placeOf } from './contract-error.ts';
import { CONSTRAINTS, readDoc, summaryOf } from './doc-comment.ts';
import type { Evaluator } from './evaluate.ts';
import { type GivenSchemas, isDataGiven } from './given.ts';
import { docResult, withDocTypes } from './js-types.ts';
import type { Scope } from './look-up.ts';
import { paramsType } from './params-type.ts';
import { readResults } from './results.ts';
import type { SchemaWriter } from './schema.ts';
import { mayBeAbsent, open, recordOf, type Shape, without } from './shape.ts';
import { lineOf, SourceError, Unsupported } from './source-error.ts';
import type { Param, TypeNode } from './syntax.ts';
import { type TypeFiles, UnreadableFile } from './type-files.ts';

/** An operation as run time has it. */
export interface RunTimeOperation {
  readonly name: string;
  readonly method: (...args: never[]) => unknown;
  /** It stands in the exported class or object itself. */
  readonly own: boolean;
  /** What its route captures; undefined: it has none. */
  readonly pathNames: readonly string[] | undefined;
  /** What `static operations` says in the place of annotations. */
  readonly given: GivenSchemas;
}

export interface Tools {
  readonly evaluator: Evaluator;
  readonly writer: SchemaWriter;
  readonly files: TypeFiles;
}

export function readOperation({ name, given, pathNames }: RunTimeOperation, method: FoundMethod, tools: Tools): OperationContract {
  const { scope, at, doc } = method;
  const place = placeOf(scope.path, at, tools.files);
  const isScript = /\.[mc]?js$/.test(scope.path);
  const params = (isScript ? docTypes(name, method, place) : method.params).filter((param) => param.name !== 'this');
  const [data, second] = params;
  if (method.isOverloaded) {
    throw new ContractError(place, `${name} is overloaded, and it is not clear which signature is meant: write one`);
  }
  refuseIdleTags(name, [doc, ...params.map((param) => param.doc)], place);
  const rest = params.slice(0, 2).find((param) => param.rest && param.type !== undefined && !isListOfAnything(param.type));
  if (rest !== undefined)
    throw new ContractError(place, `${name}(...${rest.name}): the types of rest arguments are not read: write data and params`);
  const of = (param: Param | undefined) =>
    param === undefined || param.rest || data?.rest ? undefined : requestShape(name, param, scope, tools);
  const asked = isDataGiven(name, given) ? undefined : of(data);
  refuseParamsAsData(name, asked, place);
  const around = writeParams(
    name,
    second,
    of(
      second === undefined
        ? undefined
        : { ...second, type: paramsType(second.type, given.query === undefined, scope, tools.evaluator.load) },
    ),
    scope,
    tools,
  );
  refuseForeignPath(name, around.path, pathNames, place);
  const { summary, description } = summaryOf(readDoc(doc).text);
  const result = method.result ?? (isScript ? docResult(doc, at) : undefined);
  return {
    name,
    summary,
    description,
    deprecated: readDoc(doc).tags.some(([tag]) => tag === 'deprecated'),
    data: asked === undefined || isUnchecked(asked) ? undefined : write(name, data as Param, asked, scope, tools),
    path: around.path,
    query: given.query === undefined ? around.query : undefined,
    unchecked: isDataGiven(name, given) ? undefined : whyUnchecked(data, asked),
    ...readResults(result, scope, tools.evaluator, tools.writer),
    at: place,
  };
}

/** Constraints belong to a property or an alias. */
function refuseIdleTags(name: string, docs: readonly (string | undefined)[], place: string): void {
  const [tag] = docs.flatMap((doc) => readDoc(doc).tags).find(([one]) => CONSTRAINTS[one] !== undefined) ?? [];
  if (tag === undefined) return;
  throw new ContractError(place, `${name}: @${tag} can have no effect here: it stands before a property or a type alias`);
}

function refuseParamsAsData(name: string, asked: Shape | undefined, place: string): void {
  const shape = asked === undefined ? undefined : open(asked);
  if (shape?.kind !== 'params' || (shape.path === undefined && shape.query === undefined)) return;
  throw new ContractError(place, `${name}: a ControllerParams is the second argument, the first is the data`);
}

function refuseForeignPath(name: string, path: Schema | undefined, names: readonly string[] | undefined, place: string): void {
  const foreign = Object.keys((path?.properties ?? {}) as object).find((one) => names?.includes(one) !== true);
  if (foreign === undefined) return;
  throw new ContractError(
    place,
    `${name}: ${names === undefined ? 'it has no route, so its path is empty' : `its route has no {${foreign}}`}`,
  );
}

function docTypes(name: string, { params, doc, at }: FoundMethod, place: string): readonly Param[] {
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
        // What a name stands for is worked out when it is asked for: now, where a mistake has its place.
        open(shape);
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
      throw new ContractError(`${error.path}:${lineOf(error.source, error.at)}`, `${error.message}: the types in this file cannot be read`);
    if (!(error instanceof Unsupported)) throw error;
    const text = param.type === undefined ? '' : annotationOf(param, scope);
    const signature = `${name}(${param.name || '…'}${text === '' ? '' : `: ${text}`})`;
    const [path, at] = error.path === '' ? [scope.path, param.type?.at ?? 0] : [error.path, error.at];
    throw new ContractError(placeOf(path, at, files), `${signature}: ${error.message}; write unknown and check it yourself`);
  }
}

function annotationOf({ type, end }: Param, { module }: Scope): string {
  const text = module.source
    .slice(type?.at, end)
    .replace(/[,=)\s]+$/, '')
    .replace(/\s+/g, ' ');
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

/** `_: undefined` takes nothing, and `unknown` anything. */
function isUnchecked(shape: Shape): boolean {
  const of = open(shape);
  return (
    of.kind === 'any' ||
    of.kind === 'undefined' ||
    of.kind === 'never' ||
    of.kind === 'params' ||
    (of.kind === 'union' && of.of.every(({ kind }) => kind === 'undefined'))
  );
}

function whyUnchecked(param: Param | undefined, shape: Shape | undefined): string | undefined {
  if (param === undefined || param.rest) return undefined;
  if (shape === undefined) return 'it has no annotation';
  return open(shape).kind === 'any' ? 'its type is unknown or any' : undefined;
}

/** `ControllerParams<{ path, query }>`, or an object type of one's own with such fields. */
function writeParams(
  name: string,
  param: Param | undefined,
  shape: Shape | undefined,
  scope: Scope,
  tools: Tools,
): Pick<OperationContract, 'path' | 'query'> {
  const of = shape === undefined ? undefined : open(without(shape, 'undefined', 'null'));
  const parts =
    of?.kind === 'params' ? of : of?.kind === 'record' ? { path: of.props.get('path')?.of, query: of.props.get('query')?.of } : {};
  if (of !== undefined && of.kind !== 'params' && of.kind !== 'record' && of.kind !== 'any' && of.kind !== 'object') {
    const text = param === undefined ? '' : annotationOf(param, scope);
    throw new ContractError(
      placeOf(scope.path, param?.type?.at ?? 0, tools.files),
      `${name}(…, ${param?.name || '…'}: ${text}): the second argument is a ControllerParams`,
    );
  }
  const schemaOf = (part: Shape | undefined): Schema | undefined => {
    if (part === undefined || open(part).kind === 'any' || mayBeAbsent(part)) return undefined;
    return within(name, param as Param, scope, tools, () => {
      const record = recordOf(part, (what) => {
        throw new Unsupported(what, scope.path, param?.type?.at ?? 0);
      });
      return tools.writer.write(record);
    });
  };
  return { path: schemaOf(parts.path), query: schemaOf(parts.query) };
}

function isListOfAnything(type: TypeNode): boolean {
  return type.kind === 'array'
    ? isAnything(type.of)
    : type.kind === 'tuple' && type.items.every((item) => isAnything(item.type) || isListOfAnything(item.type));
}

const isAnything = (type: TypeNode): boolean =>
  (type.kind === 'word' && (type.name === 'unknown' || type.name === 'any')) ||
  (type.kind === 'name' && type.name === 'ControllerParams' && type.args.length === 0);
