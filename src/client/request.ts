// From the name and the arguments of a call to what fetch takes. The name decides: an operation of the verb table, a
// route (`PUT`, `GET {id}`), or any other operation, which is called by POST. base/route-name.ts reads it.
import { methodOf, type Segment, segmentsOf, splitRouteName } from '../base/route-name.ts';
import type { CallOptions } from './types.ts';

type Body = NonNullable<RequestInit['body']>;
type Values = Readonly<Record<string, unknown>>;

/** What a caller may give: the one argument of a quoted route; of any other operation the second. */
export interface Given extends CallOptions {
  readonly body?: unknown;
  readonly query?: Values | undefined;
  readonly path?: Values;
  readonly slugs?: readonly unknown[] | undefined;
  readonly method?: string | undefined;
}

export interface WireRequest {
  readonly url: string;
  readonly verb: string;
  /** What is to be the body; undefined: none. */
  readonly data: unknown;
}

/**
 * @param group the URL of the operation's group
 * @throws TypeError when a value cannot stand in a path
 */
export function requestOf(group: string, name: string, given: Given = {}): WireRequest {
  const { body: data } = given;
  const route = splitRouteName(name);
  const method = methodOf(name);
  const verb = given.method ?? route?.verb ?? method ?? 'POST';
  const path =
    route === undefined
      ? [...(method === undefined ? [name] : []), ...(given.slugs ?? []).map(encodeSegment)]
      : segmentsOf(route).flatMap((segment) => fillIn(segment, given.path ?? {}));
  // These have no body: their data is the query.
  const inQuery = verb === 'GET' || verb === 'HEAD' || verb === 'DELETE';
  const search = new URLSearchParams();
  addAll({ ...(inQuery ? (data as Values) : undefined), ...given.query }, (key, value) =>
    search.append(key, textOf(value)),
  );
  return {
    verb,
    url: [group, ...path].join('/') + (search.size > 0 ? `?${search}` : ''),
    data: inQuery ? undefined : data,
  };
}

function fillIn(segment: Segment, values: Values): string[] {
  if (segment.literal !== undefined) return [segment.literal];
  const value = values[segment.name];
  const parts = segment.isRest && !Array.isArray(value) ? textOf(value).split('/') : [value].flat();
  return parts.map(encodeSegment);
}

/** `..` would climb to another operation, and a URL has no way to quote it. */
function encodeSegment(value: unknown): string {
  const text = textOf(value ?? '');
  if (/^\.{0,2}$/.test(text)) throw new TypeError(`${JSON.stringify(value)} cannot stand in a path`);
  return encodeURIComponent(text);
}

/** A list is a repeated key; undefined and null are left out. */
function addAll(values: Values, add: (key: string, value: unknown) => void): void {
  for (const [key, value] of Object.entries(values)) {
    for (const one of [value].flat()) if (one !== undefined && one !== null) add(key, one);
  }
}

function textOf(value: unknown): string {
  return value instanceof Date ? value.toISOString() : String(value);
}

/** Bytes and forms as they are, an object with a file in it as a form, all else as JSON. */
export function encode(data: unknown, headers: Headers): Body | undefined {
  if (data === undefined || data instanceof FormData || data instanceof URLSearchParams) return data;
  const isBytes =
    data instanceof Blob || data instanceof ReadableStream || data instanceof ArrayBuffer || ArrayBuffer.isView(data);
  if (!isBytes && Object.values(Object(data)).flat().some(isBlob)) {
    const form = new FormData();
    addAll(data as Values, (key, value) => form.append(key, isBlob(value) ? value : textOf(value)));
    return form;
  }
  const type = isBytes ? (data as Blob).type || 'application/octet-stream' : 'application/json';
  if (!headers.has('content-type')) headers.set('content-type', type);
  return isBytes ? (data as Body) : JSON.stringify(data);
}

function isBlob(value: unknown): value is Blob {
  return value instanceof Blob;
}
