// Creates the check of an operation's requests. The check reports the mistakes of path, query and body together.
import type { OperationSettings } from '../../api/controller/operations.ts';
import { verbOf } from '../../base/route-name.ts';
import type { Definitions, OperationContract, Problem, Schema } from '../contract.ts';
import type { PartSchema, PartSchemas } from '../part-schemas.ts';
import { LIMITS } from '../types/check-cost.ts';
import { createCompiler } from './compile.ts';
import { METHODS_WITHOUT_BODY, needsNoDataType, type Validated, validate } from './library.ts';
import { CheckRun } from './run.ts';
import { flattenParts } from './unions.ts';

/** The check replaces each part by its converted value. */
export interface RequestParts {
  data: unknown;
  query: unknown;
  path: unknown;
  headers: unknown;
}

type Validate = (value: unknown, part: Problem['in']) => Validated | Promise<Validated>;

/** Returns a check of texts in the form of a library's schema. */
function validateTexts(schema: Schema, { texts }: Compilers, isClosed: boolean): Validate {
  const check = texts.compile(schema);
  return (value, part) => {
    const run = new CheckRun();
    run.alsoDeclared = isClosed ? NOTHING : undefined;
    const parts: RequestParts = { data: undefined, query: value, path: undefined, headers: undefined };
    run.checkPart(check, parts, 'query', part);
    return run.problems.length === 0 ? { value: parts.query } : { problems: run.problems };
  };
}

export type Compilers = Readonly<ReturnType<typeof createCompilers>>;

/** Creates the compilers of a controller: `values` for JSON, `texts` for the strings of a query, a path or a form. */
export function createCompilers(defs: Definitions) {
  const values = createCompiler(defs, false, true);
  return { values, texts: createCompiler(defs, true, values) };
}

/** Where `data` comes from. The values of a `form` are texts. `nothing`: no body was sent, and `data` is `{}`. */
export type DataSource = 'body' | 'form' | 'query' | 'nothing';

type Problems = readonly Problem[] | undefined;

/** @returns undefined for a request without mistakes. The result is a promise when a library's schema checks a part */
export type RequestCheck = (parts: RequestParts, dataSource: DataSource, verb: string) => Problems | Promise<Problems>;

const validatorOf = (schema: PartSchema | undefined): Validate | undefined =>
  schema === undefined || 'json' in schema ? undefined : (value, part) => validate(schema.standard, value, part);

/** A closed operation that declares no query takes none. */
const NO_FIELDS: Schema = { type: 'object', properties: {} };

/**
 * A Standard Schema replaces the type in the source, and its library does the check. The JSON Schema in the contract is
 * then only for the document. A JSON Schema of the author is checked like a type, unless it is of a query as data.
 */
export function createRequestCheck(
  contract: OperationContract,
  settings: OperationSettings,
  schemas: PartSchemas,
  compilers: Compilers,
): RequestCheck | undefined {
  const { name, dataIsOptional } = contract;
  const { queryAsData } = schemas;
  const isClosed = settings.closed === true;
  const hasBody = schemas.body !== undefined;
  const isJsonQuery = schemas.query !== undefined && 'json' in schemas.query && queryAsData !== 'never';
  const body = validatorOf(schemas.body);
  const query = isJsonQuery ? validateTexts(contract.query as Schema, compilers, isClosed) : validatorOf(schemas.query);
  const path = validatorOf(schemas.path);
  const checksData = body === undefined && (hasBody || !needsNoDataType(name, settings));
  const ownTypes = {
    ...contract,
    data: checksData ? contract.data : undefined,
    query: query === undefined ? (contract.query ?? (isClosed ? NO_FIELDS : undefined)) : undefined,
    path: path === undefined ? contract.path : undefined,
  };
  const checkTypes = createTypeCheck(ownTypes, isClosed, compilers);
  if (body === undefined && query === undefined && path === undefined) return checkTypes;
  return async (parts, dataSource, verb) => {
    // Whether the operation gets the query as its `data`. GET, HEAD and DELETE have no body to check, so without a
    // schema for the body they get the query, too.
    const dataIsQuery =
      queryAsData === 'always' ||
      (queryAsData !== 'never' && (dataSource === 'query' || (!hasBody && METHODS_WITHOUT_BODY.has(verb))));
    const problems = [...(checkTypes?.(parts, dataIsQuery ? undefined : dataSource, verb) ?? [])];
    const convert = async (part: keyof RequestParts, validation: Validated | Promise<Validated>) => {
      const outcome = await validation;
      if ('problems' in outcome) problems.push(...outcome.problems);
      else parts[part] = outcome.value;
    };
    const dataBeforeSchemas = parts.data;
    if (path !== undefined) await convert('path', path(parts.path, 'path'));
    if (query !== undefined) await convert('query', query(parts.query, 'query'));
    if (dataIsQuery) parts.data = parts.query;
    else if (body !== undefined && dataIsOptional && isLeftOut(dataSource, dataBeforeSchemas)) parts.data = undefined;
    else if (body !== undefined)
      await convert('data', body(dataBeforeSchemas, dataSource === 'query' ? 'query' : 'body'));
    return problems.length === 0 ? undefined : problems.slice(0, LIMITS.mistakes);
  };
}

/** Checks the parts that have types in the source. @param dataSource undefined when `data` is not checked */
type TypeCheck = (parts: RequestParts, dataSource: DataSource | undefined, verb: string) => Problems;

function createTypeCheck(contract: OperationContract, isClosed: boolean, compilers: Compilers): TypeCheck | undefined {
  const { name, data, dataIsOptional, query, path, headers } = contract;
  if ([data, query, path, headers].every((schema) => schema === undefined)) return undefined;
  const checkDataAsValues = data && compilers.values.compile(data);
  const checkDataAsTexts = data && compilers.texts.compile(data);
  const checkQuery = query && compilers.texts.compile(query);
  const checkPath = path && compilers.texts.compile(path);
  const checkHeaders = headers && compilers.texts.compile(headers);
  // Both `data` and `params.query` may declare fields of one query.
  const queryNames = isClosed ? namesIn([data, query], compilers) : undefined;
  // `patch` changes what is there, so a field that is left out must stay as it is.
  const isPatch = verbOf(name) === 'PATCH';

  return (parts, dataSource, verb) => {
    const run = new CheckRun();
    const { problems } = run;
    run.checkPart(checkPath, parts, 'path', 'path');
    run.checkPart(checkHeaders, parts, 'headers', 'header');
    const alsoDeclared = dataSource === 'query' ? queryNames : NOTHING;
    run.alsoDeclared = isClosed ? alsoDeclared : undefined;
    run.checkPart(checkQuery, parts, 'query', 'query');
    if (checkQuery !== undefined && dataSource === 'query') run.alsoDeclared = undefined;
    run.fillsDefaults = !isPatch && verb !== 'PATCH';
    if (dataIsOptional && dataSource === 'nothing') parts.data = undefined;
    else if (dataSource === 'body' || dataSource === 'nothing') run.checkPart(checkDataAsValues, parts, 'data', 'body');
    else if (dataSource !== undefined) {
      const problemsBefore = problems.length;
      run.checkPart(checkDataAsTexts, parts, 'data', dataSource === 'query' ? 'query' : 'body');
      // For `data?: { a: number }`, a request without a query is valid, and its data is undefined. The mistake that `a`
      // is missing is dropped.
      if (dataIsOptional && problems.length > problemsBefore && dataSource === 'query' && isEmpty(parts.data)) {
        parts.data = undefined;
        problems.length = problemsBefore;
      }
    }
    return problems.length === 0 ? undefined : problems.slice(0, LIMITS.mistakes);
  };
}

/** Returns the names of the fields in the schemas of a query; undefined when a schema declares any other field. */
function namesIn(schemas: readonly (Schema | undefined)[], { texts }: Compilers): ReadonlySet<string> | undefined {
  const parts = flattenParts(
    schemas.filter((schema) => schema !== undefined),
    texts,
  ).map(texts.resolve);
  const isOpen = (part: Schema) => !part.properties || part.additionalProperties || part.patternProperties;
  return parts.some(isOpen) ? undefined : new Set(parts.flatMap(({ properties = {} }) => Object.keys(properties)));
}

const NOTHING: ReadonlySet<string> = new Set();
/** Whether a request has no data, so that optional data is undefined, and its schema is not called. */
const isLeftOut = (dataSource: DataSource, data: unknown): boolean =>
  dataSource === 'nothing' || (dataSource === 'query' && isEmpty(data));
const isEmpty = (query: unknown): boolean => Object.keys(query as object).length === 0;
