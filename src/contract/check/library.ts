// Schemas of validation libraries (zod, valibot, arktype, …). A controller declares them in `static operations`, in
// place of types of its source. All of them have the interface of https://standardschema.dev. The library then checks
// the requests, and its schema is in the OpenAPI document. This file does not trust any value that a library returns.
import type { OperationSettings, StandardSchema as PlainSchema } from '../../api/controller/operations.ts';
import { methodOf, splitRouteName, verbOf } from '../../base/route-name.ts';
import { isObject, isPromise } from '../../base/values.ts';
import type { Problem, Schema } from '../contract.ts';
import { LIMITS } from '../types/check-cost.ts';
import { FAULTS } from './messages.ts';
import { cutPointer, escapeStep } from './run.ts';

/** A schema by the interface of standardschema.dev, also with what the document uses. */
export interface StandardSchema extends PlainSchema {
  readonly '~standard': PlainSchema['~standard'] & {
    readonly jsonSchema?: { readonly [Side in 'input' | 'output']?: (options: object) => unknown };
  };
}

/**
 * Which requests pass their query as the operation's `data`, after the library's schema has converted the query:
 * - `always`: all requests. A body is ignored.
 * - `without a body`: requests without a body. The body of a GET, HEAD or DELETE counts only when it has a schema.
 * - `never`: none, because `data` is the body
 */
export type QueryAsData = 'always' | 'without a body' | 'never';

export function queryAsData(name: string, { body, query }: OperationSettings): QueryAsData {
  if (query === undefined || body === 'stream') return 'never';
  if (dataIsQuery(name)) return body === undefined ? 'always' : 'without a body';
  const verb = splitRouteName(name)?.verb ?? methodOf(name) ?? '';
  return body !== undefined || /^(?:POST|PUT|PATCH)$/.test(verb) ? 'never' : 'without a body';
}

/** Methods whose body has no defined meaning (RFC 9110, 9.3.1), so that their data is the query. */
export const METHODS_WITHOUT_BODY: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE']);

export const dataIsQuery = (name: string): boolean => METHODS_WITHOUT_BODY.has(verbOf(name));

/** Whether the type of `data` in the source is not used: a library checks `data`, or `data` is a stream. */
export function needsNoDataType(name: string, settings: OperationSettings): boolean {
  return settings.body !== undefined || queryAsData(name, settings) === 'always';
}

export type Validated = { readonly value: unknown } | { readonly problems: readonly Problem[] };

/** @throws or rejects with the error of the library; with TypeError for no object, and for issues that are no list */
export function validate(schema: StandardSchema, value: unknown, part: Problem['in']): Validated | Promise<Validated> {
  const result = schema['~standard'].validate(value);
  return isPromise(result) ? result.then((resolved) => readResult(resolved, part)) : readResult(result, part);
}

function readResult(result: unknown, part: Problem['in']): Validated {
  if (typeof result !== 'object' || result === null)
    throw new TypeError('The schema of a library must return a value or issues');
  const { issues, value } = result as { issues?: unknown; value?: unknown };
  if (issues === undefined || issues === null) return { value };
  if (!Array.isArray(issues)) throw new TypeError('The issues that the schema of a library returns must be an array');
  // An empty list of issues refuses the value, too.
  const shownIssues = issues.length > 0 ? issues.slice(0, LIMITS.mistakes) : [{}];
  return { problems: shownIssues.map((issue) => problemOf(issue, part)) };
}

/** Reads an issue. Each step of its path is a key, or an object with the key. */
function problemOf(issue: unknown, part: Problem['in']): Problem {
  const { message, path } = (issue ?? {}) as { message?: unknown; path?: unknown };
  const steps = Array.isArray(path)
    ? path.map((step) => (typeof step === 'object' && step !== null ? (step as { key?: unknown }).key : step))
    : [];
  const pointer = cutPointer(steps.map((step) => escapeStep(String(step))).join(''));
  return { in: part, pointer, ...FAULTS.library(message) };
}

/**
 * Returns `{}` (any value) when the library makes no JSON Schema. zod throws for a place that JSON Schema cannot
 * express, such as a transform. With the options, only this place accepts any value, and `z.date()` is a date-time.
 *
 * @param onGap gets what the library cannot express
 */
export function jsonSchemaOf(
  schema: StandardSchema,
  side: 'input' | 'output',
  onGap: (message: string) => void,
): Schema {
  const write = (libraryOptions?: object): Schema => {
    const options = { target: 'draft-2020-12', ...(libraryOptions && { libraryOptions }) };
    const jsonSchema = schema['~standard'].jsonSchema?.[side]?.(options);
    return isObject(jsonSchema) ? (JSON.parse(JSON.stringify(jsonSchema)) as Schema) : {};
  };
  let gap: string | undefined;
  if (schema['~standard'].jsonSchema === undefined) onGap('its library gives none');
  try {
    return write();
  } catch (error) {
    gap = String((error as Error | undefined)?.message).split('\n', 1)[0];
  }
  /** Called by zod for each schema, the inner ones first. */
  const override = ({ zodSchema, jsonSchema = {} }: { zodSchema?: unknown; jsonSchema?: object }): void => {
    const { _zod: internals } = Object(zodSchema) as { _zod?: { def?: { type?: unknown } } };
    const type = internals?.def?.type;
    if (type === 'date') Object.assign(jsonSchema, { type: 'string', format: 'date-time' });
    else if (Object.keys(jsonSchema).length === 0 && type !== 'any' && type !== 'unknown') gaps.push(String(type));
  };
  const gaps: string[] = [];
  try {
    const schema = write({ unrepresentable: 'any', override });
    [gap] = gaps;
    return schema;
  } catch {
    return {};
  } finally {
    if (gap !== undefined) onGap(gap);
  }
}
