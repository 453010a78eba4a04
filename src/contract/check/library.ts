// Schemas of libraries (zod, valibot, arktype, …) that `static operations` names in the place of types: the convention
// of https://standardschema.dev. A library may throw or answer anything: the outcome is a list of mistakes or a value.

import type { OperationContract, Problem, Schema } from '../contract.ts';
import type { Bundle } from '../schema/bundle.ts';
import { LIMITS } from '../types/limits.ts';
import { cutPointer, stepOf } from './run.ts';

/** The convention, as far as it is used here. */
export interface StandardSchema {
  readonly '~standard': {
    readonly validate: (value: unknown) => unknown;
    readonly jsonSchema?: {
      readonly input?: (options: { target: string }) => unknown;
      readonly output?: (options: { target: string }) => unknown;
    };
  };
}

export interface GivenSchemas {
  /** The types of the request are not read. */
  readonly unchecked?: boolean | undefined;
  readonly body?: StandardSchema | 'stream' | undefined;
  readonly query?: StandardSchema | undefined;
  readonly result?: StandardSchema | undefined;
  readonly status?: number | undefined;
  readonly summary?: string | undefined;
}

/** What `static operations` says wins over the annotations. */
export function withGiven(
  read: OperationContract,
  { body, query, result, status, summary }: GivenSchemas,
  bundle: Bundle,
): OperationContract {
  const document = (schema: StandardSchema, part: 'body' | 'query' | 'result'): Schema =>
    bundle(documentOf(schema, part === 'result' ? 'output' : 'input'), `${read.name}_${part}`);
  const results = read.results.map((one, i) => {
    if (i > 0) return one;
    // A reply has a status of its own.
    const answered = one.status === 200 ? (status ?? 200) : one.status;
    return { ...one, status: answered, schema: result === undefined ? one.schema : document(result, 'result') };
  });
  const isSchema = body !== undefined && body !== 'stream';
  const dataIsQuery = queryAsData(read.name, { body, query }) === 'always';
  return {
    ...read,
    summary: summary ?? read.summary,
    data: isSchema ? document(body, 'body') : query !== undefined && dataIsQuery ? document(query, 'query') : read.data,
    query: query === undefined ? read.query : document(query, 'query'),
    unchecked: isDataGiven(read.name, { body, query }) ? undefined : read.unchecked,
    results,
    undocumented: result === undefined ? read.undocumented : undefined,
  };
}

/**
 * When `data` is what the schema of the query makes of it. `always`: also where a body is sent. `without a body`: a
 * body is the data, but that of a GET, HEAD or DELETE is only where it has a schema of its own.
 */
export type QueryAsData = 'always' | 'without a body' | 'never';

export function queryAsData(name: string, { body, query }: GivenSchemas): QueryAsData {
  if (query === undefined || body === 'stream') return 'never';
  if (/^(?:index|deleted)$|^(?:GET|HEAD|DELETE) /.test(name)) return body === undefined ? 'always' : 'without a body';
  return body !== undefined || /^(?:created|red|patch)$|^(?:POST|PUT|PATCH) /.test(name) ? 'never' : 'without a body';
}

/** Whether the annotation of `data` checks nothing: schemas do, or it is a stream. */
export function isDataGiven(name: string, given: GivenSchemas): boolean {
  return given.body !== undefined || queryAsData(name, given) === 'always';
}

export type Validated = { readonly value: unknown } | { readonly problems: readonly Problem[] };

/** @throws what the library throws, and TypeError on an answer that is neither a value nor issues */
export function validate(schema: StandardSchema, value: unknown, from: Problem['in']): Validated | Promise<Validated> {
  const answer = schema['~standard'].validate(value);
  return answer instanceof Promise ? answer.then((late) => read(late, from)) : read(answer, from);
}

function read(answer: unknown, from: Problem['in']): Validated {
  if (typeof answer !== 'object' || answer === null)
    throw new TypeError('the schema answered neither a value nor issues');
  const { issues, value } = answer as { issues?: unknown; value?: unknown };
  if (issues === undefined || issues === null) return { value };
  if (!Array.isArray(issues)) throw new TypeError('the schema answered issues that are no list');
  const problems = issues.slice(0, LIMITS.mistakes).map((issue) => problemOf(issue, from));
  return {
    problems: problems.length > 0 ? problems : [{ in: from, pointer: '', message: 'is not what it should be' }],
  };
}

function problemOf(issue: unknown, from: Problem['in']): Problem {
  const { message, path } = (issue ?? {}) as { message?: unknown; path?: unknown };
  const steps = Array.isArray(path)
    ? path.map((step) => (typeof step === 'object' && step !== null ? (step as { key?: unknown }).key : step))
    : [];
  const pointer = cutPointer(steps.map((step) => stepOf(String(step))).join(''));
  return { in: from, pointer, message: typeof message === 'string' ? message : 'is not what it should be' };
}

/** The JSON Schema of a library's schema; `{}` (anything) where the library cannot say it. */
function documentOf(schema: StandardSchema, side: 'input' | 'output'): Schema {
  try {
    const made = schema['~standard'].jsonSchema?.[side]?.({ target: 'draft-2020-12' });
    if (typeof made !== 'object' || made === null || Array.isArray(made)) return {};
    const { $schema: _, ...plain } = JSON.parse(JSON.stringify(made)) as Record<string, unknown>;
    return plain;
  } catch {
    // zod throws for what JSON Schema cannot say, such as z.date().
    return {};
  }
}
