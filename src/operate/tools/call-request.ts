// Turns the arguments of a tool, `{ path, query, body }`, into a request, or lists the mistakes in the arguments. The
// types of the values are checked later, by the check that each request to the operation passes. A value such as `..`
// in a path is safe: the router does not resolve it, and request/tool-calls.ts checks where the path leads.
import type { ErrorDetail } from '../../base/errors.ts';
import { pathOfGroup } from '../../base/group-name.ts';
import type { Segment } from '../../base/route-name.ts';
import { type Fields, isObject } from '../../base/values.ts';
import { escapeStep } from '../../contract/check/run.ts';
import type { Tool } from './tool-list.ts';

/** `target` is the path with its query. `body` is JSON. */
export type CallRequest =
  | { readonly target: string; readonly body: string | undefined }
  | { readonly problems: readonly ErrorDetail[] };

/** Maximum characters of a path with its query. The head of an HTTP request has the same limit. */
const MAX_TARGET_LENGTH = 16 * 1024;
/** Maximum number of mistakes in a refusal, and of field names in one mistake. */
const MAX_PROBLEMS = 20;

/** @param basePath the base path of the service; empty for the root */
export function createCallRequest(tool: Tool, toolArguments: unknown, basePath: string): CallRequest {
  const problems: ErrorDetail[] = [];
  const report = (pointer: string, message: string): void => {
    if (problems.length < MAX_PROBLEMS) problems.push({ pointer, message });
  };
  const parts = tool.definition.inputSchema.properties as Readonly<Record<string, Part>>;
  const fields = fieldsOf(toolArguments ?? {}, '', report);
  for (const name of Object.keys(fields))
    if (!Object.hasOwn(parts, name)) report(escapeStep(name), adviseOn(name, parts));
  for (const [name, part] of Object.entries(parts)) reportUnknown(name, part, ownField(fields, name), report);
  const pathFields = fieldsOf(ownField(fields, 'path'), '/path', report);
  const path = tool.segments.map((segment) => pathPartOf(segment, pathFields, report));
  const query = queryOf(fieldsOf(ownField(fields, 'query'), '/query', report), report);
  const target =
    ([pathOfGroup(basePath, tool.groupInUrl), ...path].join('/') || '/') + (query === '' ? '' : `?${query}`);
  if (target.length > MAX_TARGET_LENGTH) report('', `path and query have more than ${MAX_TARGET_LENGTH} characters`);
  const body = bodyOf(ownField(fields, 'body'), report);
  return problems.length > 0 ? { problems } : { target, body };
}

/** The schema of `path`, `query` or `body`. */
interface Part {
  readonly properties?: object;
  readonly additionalProperties?: unknown;
}

/** Returns advice about an unknown argument. If a part has a field of this name, the advice names that part. */
function adviseOn(name: string, parts: Readonly<Record<string, Part>>): string {
  const names = Object.keys(parts);
  const [rightPart] = Object.entries(parts).find(([, { properties = {} }]) => Object.hasOwn(properties, name)) ?? [];
  if (rightPart !== undefined) return `belongs to ${rightPart}: write { "${rightPart}": { "${name}": … } }`;
  return names.length === 0
    ? 'is unknown: the tool takes no arguments'
    : `is unknown: the arguments are ${names.join(', ')}`;
}

/** Reports each unknown field of a part. The operation would ignore such a field in silence: a misspelt filter. */
function reportUnknown(
  part: string,
  { properties = {}, additionalProperties }: Part,
  value: unknown,
  report: Report,
): void {
  if (additionalProperties !== false || !isObject(value)) return;
  const knownNames = Object.keys(properties);
  for (const name of Object.keys(value))
    if (!knownNames.includes(name))
      report(
        `/${part}${escapeStep(name)}`,
        `is unknown: ${part} takes ${knownNames.slice(0, MAX_PROBLEMS).join(', ')}`,
      );
}

type Report = (pointer: string, message: string) => void;

function ownField(fields: Fields, name: string): unknown {
  return Object.hasOwn(fields, name) ? fields[name] : undefined;
}

function fieldsOf(value: unknown, pointer: string, report: Report): Fields {
  if (value === undefined || value === null) return {};
  if (isObject(value)) return value;
  report(pointer, 'must be an object');
  return {};
}

function pathPartOf(segment: Segment, fields: Fields, report: Report): string {
  if (segment.literal !== undefined) return encodeURIComponent(segment.literal);
  const pointer = `/path${escapeStep(segment.name)}`;
  const value = ownField(fields, segment.name);
  const text = scalarText(value);
  if (text === undefined || text === '') {
    report(pointer, value === undefined ? 'is missing' : 'must be a text or a number');
    return '';
  }
  const parts = segment.isRest ? text.split('/') : [text];
  return parts.map((part) => encode(part + segment.suffix, pointer, report)).join('/');
}

/** Returns the query string. A list becomes a repeated name. A field with the value null is left out. */
function queryOf(fields: Fields, report: Report): string {
  const pairs: string[] = [];
  for (const [name, value] of Object.entries(fields)) {
    const pointer = `/query${escapeStep(name)}`;
    if (value === null) continue;
    for (const item of Array.isArray(value) ? value : [value]) {
      const text = scalarText(item);
      if (text === undefined) report(pointer, 'must be a text, a number, true, false or a list of these');
      else pairs.push(`${encode(name, pointer, report)}=${encode(text, pointer, report)}`);
    }
  }
  return pairs.join('&');
}

/** @returns undefined for a value that has no form in a URL: an object, a list or null */
function scalarText(value: unknown): string | undefined {
  return ['string', 'number', 'boolean'].includes(typeof value) ? String(value) : undefined;
}

function encode(text: string, pointer: string, report: Report): string {
  try {
    return encodeURIComponent(text);
  } catch {
    report(pointer, 'has half of a character (a lone surrogate)');
    return '';
  }
}

function bodyOf(value: unknown, report: Report): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    // Parsed JSON has no cycle, so the stack was too small.
    report('/body', 'is nested too deeply');
    return undefined;
  }
}
