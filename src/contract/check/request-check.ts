// The check of an operation's requests. Its schemas are compiled when the controller loads, so a schema that does not
// compile never reaches a request. The check reports the mistakes of path, query and body together.

import type { Problem, Schema } from '../contract.ts';
import { LIMITS } from '../types/limits.ts';
import { createCompiler } from './compile.ts';
import { type QueryAsData, type StandardSchema, type Validated, validate } from './library.ts';
import { type Check, type Compiler, cutPointer, Run } from './run.ts';

/** The parts of a request that an operation receives. A check replaces the parts that it converts. */
export interface RequestParts {
  data: unknown;
  query: unknown;
  path: unknown;
}

export interface RequestSchemas {
  readonly data: Schema | undefined;
  /** Whether a request without data is valid: `data` is then undefined. */
  readonly optional: boolean;
  readonly query: Schema | undefined;
  readonly path: Schema | undefined;
  readonly compilers: Compilers;
  /** The schemas of validation libraries. Each schema replaces the source's schema of the same part. */
  readonly given: {
    readonly body?: StandardSchema | undefined;
    readonly query?: StandardSchema | undefined;
    readonly queryAsData?: QueryAsData;
  };
}

/** The compilers of a group: one for JSON values, one for the texts of a query, a path or a form. */
export interface Compilers {
  readonly values: Compiler;
  readonly texts: Compiler;
}

export function createCompilers(defs: Readonly<Record<string, Schema>>): Compilers {
  return { values: createCompiler(defs, false), texts: createCompiler(defs, true) };
}

/**
 * Where `data` comes from:
 * - `body`: the body of the request
 * - `form`: a body whose values are texts
 * - `query`: the query
 * - `nothing`: no body was sent, and `data` is `{}`
 */
export type DataSource = 'body' | 'form' | 'query' | 'nothing';

type Problems = readonly Problem[] | undefined;

/**
 * @returns the mistakes of the request, or undefined when it has none. The result is a promise when a library's schema
 * checks a part.
 */
export type RequestCheck = (parts: RequestParts, dataSource: DataSource, verb: string) => Problems | Promise<Problems>;

/** Methods whose body has no defined meaning (RFC 9110, 9.3.1). */
const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE']);

/** Whether `createRequestCheck` returns a check. */
export function declaresCheck({ data, query, path, given }: RequestSchemas): boolean {
  return [data, query, path, given.body, given.query].some((schema) => schema !== undefined);
}

/** Creates the check of an operation. Returns undefined when the operation declares nothing to check. */
export function createRequestCheck(schemas: RequestSchemas): RequestCheck | undefined {
  const checkTypes = createTypeCheck(schemas);
  const { body, query, queryAsData = 'never' } = schemas.given;
  if (body === undefined && query === undefined) return checkTypes;
  return async (parts, dataSource, verb) => {
    const dataIsQuery =
      queryAsData === 'always' ||
      (queryAsData !== 'never' && (dataSource === 'query' || (body === undefined && BODILESS.has(verb))));
    const problems = [...(checkTypes?.(parts, dataIsQuery ? undefined : dataSource) ?? [])];
    const convert = async (part: keyof RequestParts, validation: Validated | Promise<Validated>) => {
      const validated = await validation;
      if ('problems' in validated) problems.push(...validated.problems);
      else parts[part] = validated.value;
    };
    const sent = parts.data;
    if (query !== undefined) await convert('query', validate(query, parts.query, 'query'));
    if (dataIsQuery) parts.data = parts.query;
    else if (body !== undefined) await convert('data', validate(body, sent, dataSource === 'query' ? 'query' : 'body'));
    return problems.length === 0 ? undefined : problems.slice(0, LIMITS.mistakes);
  };
}

/**
 * Creates the check for the types that were read from the source. A call without a `dataSource` does not check `data`.
 */
function createTypeCheck({
  data,
  optional,
  query,
  path,
  compilers,
}: RequestSchemas): ((parts: RequestParts, dataSource?: DataSource) => Problems) | undefined {
  if (data === undefined && query === undefined && path === undefined) return undefined;
  const checkBody = data && compilers.values.compile(data);
  const checkTexts = data && compilers.texts.compile(data);
  const checkQuery = query && compilers.texts.compile(query);
  const checkPath = path && compilers.texts.compile(path);

  return (parts, dataSource) => {
    let problems: Problem[] | undefined;
    if (checkPath !== undefined) problems = checkPart(parts, 'path', 'path', checkPath, problems);
    if (checkQuery !== undefined) problems = checkPart(parts, 'query', 'query', checkQuery, problems);
    if (optional && dataSource === 'nothing') parts.data = undefined;
    else if (checkBody !== undefined && (dataSource === 'body' || dataSource === 'nothing'))
      problems = checkPart(parts, 'data', 'body', checkBody, problems);
    else if (checkTexts !== undefined && dataSource !== undefined) {
      const problemsBefore = problems;
      problems = checkPart(parts, 'data', dataSource === 'query' ? 'query' : 'body', checkTexts, problems);
      // An empty query is treated as data that was not sent.
      if (optional && problems !== problemsBefore && dataSource === 'query' && isEmpty(parts.data))
        [parts.data, problems] = [undefined, problemsBefore];
    }
    return problems?.slice(0, LIMITS.mistakes);
  };
}

const isEmpty = (query: unknown): boolean => Object.keys(query as object).length === 0;

/** @returns `problems` itself when the part has no mistakes, else a longer list */
function checkPart(
  parts: RequestParts,
  part: keyof RequestParts,
  publicName: Problem['in'],
  check: Check,
  problems: Problem[] | undefined,
): Problem[] | undefined {
  const run = new Run();
  const converted = check(parts[part], run);
  const { mistakes } = run;
  if (mistakes.length === 0) {
    parts[part] = converted;
    return problems;
  }
  return [
    ...(problems ?? []),
    ...mistakes.map(({ pointer, message }) => ({ in: publicName, pointer: cutPointer(pointer), message })),
  ];
}
