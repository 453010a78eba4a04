// Builds the request of a call from the operation's name and arguments. The name is one of these:
// - a name that stands for an HTTP method and is not part of the URL, such as `created` (POST)
// - a quoted route, such as `PUT` or `GET {id}`
// - any other name, which is a part of the URL and is called with POST
import { methodOf, type Segment, segmentsOf, splitRouteName } from '../base/route-name.ts';
import type { CallOptions } from './types.ts';

type Body = NonNullable<RequestInit['body']>;
type Values = Readonly<Record<string, unknown>>;

/**
 * The parts of a request that a call gives. A call of a quoted route can have `path`. A call of any other operation can
 * have `slugs` (the segments of the URL after the name of the operation) and `method` (the HTTP method).
 */
export interface RequestParts extends CallOptions {
  readonly body?: unknown;
  readonly query?: Values | undefined;
  readonly path?: Values;
  readonly slugs?: readonly unknown[] | undefined;
  readonly method?: string | undefined;
}

export interface WireRequest {
  readonly url: string;
  readonly method: string;
  /** The value to send as the body; undefined when the request has no body. */
  readonly data: unknown;
}

/**
 * @param groupUrl the URL of the group that has the operation
 * @throws TypeError when a value for the path is empty, `.` or `..`
 */
export function requestOf(groupUrl: string, name: string, parts: RequestParts = {}): WireRequest {
  const { body: data } = parts;
  const route = splitRouteName(name);
  const methodFromName = methodOf(name);
  const method = parts.method ?? route?.verb ?? methodFromName ?? 'POST';
  const path =
    route === undefined
      ? [...(methodFromName === undefined ? [name] : []), ...(parts.slugs ?? []).map(encodeSegment)]
      : segmentsOf(route).flatMap((segment) => fillSegment(segment, parts.path ?? {}));
  // A request with one of these methods has no body, so its data becomes the query.
  const dataIsQuery = method === 'GET' || method === 'HEAD' || method === 'DELETE';
  const search = new URLSearchParams();
  addEntries({ ...(dataIsQuery ? (data as Values) : undefined), ...parts.query }, (key, value) =>
    search.append(key, toText(value)),
  );
  return {
    method,
    url: [groupUrl, ...path].join('/') + (search.size > 0 ? `?${search}` : ''),
    data: dataIsQuery ? undefined : data,
  };
}

function fillSegment(segment: Segment, values: Values): string[] {
  if (segment.literal !== undefined) return [segment.literal];
  const value = values[segment.name];
  const parts = segment.isRest && !Array.isArray(value) ? toText(value).split('/') : [value].flat();
  return parts.map(encodeSegment);
}

/** Encodes a segment of a path. No escape of `..` exists in a URL, and `..` would lead to another operation. */
function encodeSegment(value: unknown): string {
  const text = toText(value ?? '');
  if (/^\.{0,2}$/.test(text))
    throw new TypeError(
      `${JSON.stringify(value)} cannot be a segment of a path: give a value that is not '', '.' or '..'`,
    );
  return encodeURIComponent(text);
}

/** Calls `add` for each value. A list becomes a repeated key; undefined and null are left out. */
function addEntries(values: Values, add: (key: string, value: unknown) => void): void {
  for (const [key, value] of Object.entries(values)) {
    for (const item of [value].flat()) if (item !== undefined && item !== null) add(key, item);
  }
}

function toText(value: unknown): string {
  return value instanceof Date ? value.toISOString() : String(value);
}

/**
 * Encodes a body and sets its `Content-Type`. Bytes and forms are sent as they are. An object that contains a file is
 * sent as a form. Any other value is sent as JSON.
 */
export function encodeBody(data: unknown, headers: Headers): Body | undefined {
  if (data === undefined || data instanceof FormData || data instanceof URLSearchParams) return data;
  const isBytes =
    data instanceof Blob || data instanceof ReadableStream || data instanceof ArrayBuffer || ArrayBuffer.isView(data);
  if (!isBytes && Object.values(Object(data)).flat().some(isBlob)) {
    const form = new FormData();
    addEntries(data as Values, (key, value) => form.append(key, isBlob(value) ? value : toText(value)));
    return form;
  }
  const type = isBytes ? (data as Blob).type || 'application/octet-stream' : 'application/json';
  if (!headers.has('content-type')) headers.set('content-type', type);
  return isBytes ? (data as Body) : JSON.stringify(data);
}

function isBlob(value: unknown): value is Blob {
  return value instanceof Blob;
}
