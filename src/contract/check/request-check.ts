// The check of an operation's requests: its schemas, compiled when its file is loaded, so that no request meets a
// schema that does not compile. All mistakes are reported at once, wherever they are.

import type { Problem, Schema } from '../contract.ts';
import { LIMITS } from '../types/limits.ts';
import { createCompiler } from './compile.ts';
import { type QueryAsData, type StandardSchema, type Validated, validate } from './library.ts';
import { type Check, type Compiler, cutPointer, Run } from './run.ts';

/** What an operation is about to get; a check replaces what it has changed. */
export interface RequestParts {
  data: unknown;
  query: unknown;
  path: unknown;
}

export interface RequestSchemas {
  readonly data: Schema | undefined;
  /** Where nothing was sent, `data` is undefined. */
  readonly optional: boolean;
  readonly query: Schema | undefined;
  readonly path: Schema | undefined;
  readonly compilers: Compilers;
  /** Of a library; they stand in the place of the others. */
  readonly given: {
    readonly body?: StandardSchema | undefined;
    readonly query?: StandardSchema | undefined;
    readonly queryAsData?: QueryAsData;
  };
}

/** What compiles the schemas of a group: for values, and for the texts of a query, a path or a form. */
export interface Compilers {
  readonly values: Compiler;
  readonly texts: Compiler;
}

export function createCompilers(defs: Readonly<Record<string, Schema>>): Compilers {
  return { values: createCompiler(defs, false), texts: createCompiler(defs, true) };
}

/** A form is a body whose values are texts. `nothing`: an empty object in the place of a body that was not sent. */
export type DataSource = 'body' | 'form' | 'query' | 'nothing';

type Problems = readonly Problem[] | undefined;

/** @returns what is wrong, undefined when nothing is; a promise when a library's schema takes its time */
export type RequestCheck = (parts: RequestParts, dataIs: DataSource, verb: string) => Problems | Promise<Problems>;

/** Methods whose body has no meaning of its own (RFC 9110, 9.3.1). */
const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE']);

/** Undefined for an operation that has nothing to check. */
export function createRequestCheck(schemas: RequestSchemas): RequestCheck | undefined {
  const own = ownCheck(schemas);
  const { body, query, queryAsData = 'never' } = schemas.given;
  if (body === undefined && query === undefined) return own;
  return async (parts, dataIs, verb) => {
    const dataIsQuery =
      queryAsData === 'always' ||
      (queryAsData !== 'never' && (dataIs === 'query' || (body === undefined && BODILESS.has(verb))));
    const problems = [...(own?.(parts, dataIsQuery ? undefined : dataIs) ?? [])];
    const take = async (part: keyof RequestParts, work: Validated | Promise<Validated>) => {
      const made = await work;
      if ('problems' in made) problems.push(...made.problems);
      else parts[part] = made.value;
    };
    const sent = parts.data;
    if (query !== undefined) await take('query', validate(query, parts.query, 'query'));
    if (dataIsQuery) parts.data = parts.query;
    else if (body !== undefined) await take('data', validate(body, sent, dataIs === 'query' ? 'query' : 'body'));
    return problems.length === 0 ? undefined : problems.slice(0, LIMITS.mistakes);
  };
}

/** The check by types. It leaves `data` alone where it is called without a source. */
function ownCheck({
  data,
  optional,
  query,
  path,
  compilers,
}: RequestSchemas): ((parts: RequestParts, dataIs?: DataSource) => Problems) | undefined {
  if (data === undefined && query === undefined && path === undefined) return undefined;
  const checkBody = data && compilers.values.compile(data);
  const checkTexts = data && compilers.texts.compile(data);
  const checkQuery = query && compilers.texts.compile(query);
  const checkPath = path && compilers.texts.compile(path);

  return (parts, dataIs) => {
    let problems: Problem[] | undefined;
    if (checkPath !== undefined) problems = checkPart(parts, 'path', 'path', checkPath, problems);
    if (checkQuery !== undefined) problems = checkPart(parts, 'query', 'query', checkQuery, problems);
    if (optional && dataIs === 'nothing') parts.data = undefined;
    else if (checkBody !== undefined && (dataIs === 'body' || dataIs === 'nothing'))
      problems = checkPart(parts, 'data', 'body', checkBody, problems);
    else if (checkTexts !== undefined && dataIs !== undefined) {
      const others = problems;
      problems = checkPart(parts, 'data', dataIs === 'query' ? 'query' : 'body', checkTexts, problems);
      // A query that is empty was not sent either.
      if (optional && problems !== others && dataIs === 'query' && isEmpty(parts.data))
        [parts.data, problems] = [undefined, others];
    }
    return problems?.slice(0, LIMITS.mistakes);
  };
}

const isEmpty = (query: unknown): boolean => Object.keys(query as object).length === 0;

function checkPart(
  parts: RequestParts,
  part: keyof RequestParts,
  from: Problem['in'],
  check: Check,
  before: Problem[] | undefined,
): Problem[] | undefined {
  const run = new Run();
  const made = check(parts[part], run);
  const { mistakes } = run;
  if (mistakes.length === 0) {
    parts[part] = made;
    return before;
  }
  return [
    ...(before ?? []),
    ...mistakes.map(({ pointer, message }) => ({ in: from, pointer: cutPointer(pointer), message })),
  ];
}
