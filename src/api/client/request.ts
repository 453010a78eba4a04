// Builds the request of a call. The name of the operation is one of these:
// - a name that stands for an HTTP method and is not part of the URL, such as `created` (POST)
// - a route, which controllers write in quotes: `'PUT'`, `'GET {id}'`
// - any other name, which is a segment of the URL and is called with POST
import { ANY_VERB, methodOf, type Segment, segmentsOf, splitRouteName } from '../../base/route-name.ts';
import type { CallOptions } from './types.ts';

type Body = NonNullable<RequestInit['body']>;
type ValuesByName = Readonly<Record<string, unknown>>;

export interface RequestParts extends CallOptions {
  /** The data of the operation. Requests by GET, HEAD and DELETE have no body and send the data as the query. */
  readonly body?: unknown;
  readonly query?: ValuesByName | undefined;
  /** The values of a route's `{name}` segments. Operations without a route ignore this field. */
  readonly path?: ValuesByName;
  /** The segments of the URL after the operation. Routes ignore this field. */
  readonly slugs?: readonly unknown[] | undefined;
  /** Replaces the method that the name of the operation stands for. */
  readonly method?: string | undefined;
}

/**
 * @param groupUrl the URL of the group that has the operation
 * @returns also the method in upper case, and as `data` the value to send as the body, if the request has a body
 * @throws TypeError when the path or the query cannot express a value
 */
export function requestOf(groupUrl: string, name: string, parts: RequestParts = {}) {
  const { body, query, path = {}, slugs = [] } = parts;
  const route = splitRouteName(name);
  const methodFromName = methodOf(name);
  const method = (parts.method ?? route?.verb ?? methodFromName ?? 'POST').toUpperCase().replace(ANY_VERB, 'POST');
  const segments =
    route === undefined
      ? [...(methodFromName === undefined ? [name] : []), ...slugs.map(encodeSegment)]
      : segmentsOf(route).flatMap((segment) => fillSegment(segment, path));
  const hasBody = method !== 'GET' && method !== 'HEAD' && method !== 'DELETE';
  const search = new URLSearchParams();
  const queryValues = { ...(hasBody ? {} : expectObject(body)), ...expectObject(query) };
  addEntries(queryValues, (key, value) => search.append(key, toText(value)));
  // Not `search.size`, which Safari 16 lacks: there, the request would lose its query.
  const url = [groupUrl, ...segments].join('/') + (String(search) && `?${search}`);
  return { method, url, data: hasBody ? body : undefined };
}

/** @throws TypeError for a form, bytes, a list or a text */
function expectObject(values: unknown = {}): ValuesByName {
  if (values !== null && Object.prototype.toString.call(values) !== '[object Object]')
    throw new TypeError('This value cannot be sent as a query: give an object with a value for each key');
  return values as ValuesByName;
}

/** Returns encoded segments. Only the rest of a path, `{name*}`, can become several. */
function fillSegment(segment: Segment, values: ValuesByName): string[] {
  if (segment.literal !== undefined) return [segment.literal];
  const value = values[segment.name] ?? '';
  if (!segment.isRest) return [encodeSegment(value) + segment.suffix];
  // `toText` refuses an empty list. Without a segment, the URL would lead to another operation.
  return (Array.isArray(value) && value.length > 0 ? value : toText(value).split('/')).map(encodeSegment);
}

/** @throws TypeError for '', '.' and '..', which a URL resolves to another operation, even when they are escaped */
function encodeSegment(value: unknown): string {
  const text = toText(value ?? '');
  if (!/^\.{0,2}$/.test(text)) return encodeURIComponent(text);
  const cure = "give a value that is not '', '.' or '..'";
  throw new TypeError(`${JSON.stringify(value)} cannot be a segment of a path: ${cure}`);
}

/** Repeats the key for each element of a list, and leaves out undefined and null. */
function addEntries(values: ValuesByName, add: (key: string, value: unknown) => void): void {
  for (const [key, value] of Object.entries(values)) {
    for (const item of [value].flat()) if (item !== undefined && item !== null) add(key, item);
  }
}

/** Writes a value for a URL or a form. @throws TypeError for a list and for an object without a text of its own */
function toText(value: unknown): string {
  if (value instanceof Date) return value.toISOString();
  const text = String(value);
  if (Array.isArray(value) || (typeof value === 'object' && text.startsWith('[object ')))
    throw new TypeError(`${JSON.stringify(value)} cannot be sent in a URL or beside a file: give a text or a number`);
  return text;
}

/**
 * Encodes a body: bytes and forms as they are, an object that contains a file as a form, any other value as JSON. Sets
 * the `Content-Type` of bytes and JSON, unless the caller has set it.
 *
 * @throws TypeError when a form or JSON cannot express a value
 */
export function encodeBody(data: unknown, headers: Headers): Body | undefined {
  if (data === undefined || data instanceof URLSearchParams) return data;
  // React Native has no class `ReadableStream`.
  const isStream = typeof Object(data).getReader === 'function';
  const isBytes = isStream || data instanceof Blob || data instanceof ArrayBuffer || ArrayBuffer.isView(data);
  // Firefox would send the text `[object ReadableStream]`.
  if (isStream && !('duplex' in Request.prototype))
    throw new TypeError('This browser cannot send a stream: give a File or a Blob');
  const hasFile = !isBytes && Object.values(Object(data)).flat().some(isBlob);
  if (hasFile || data instanceof FormData) {
    // `fetch` sets the type of a form, because the type contains a boundary that only `fetch` can choose.
    headers.delete('content-type');
    if (!hasFile) return data as FormData;
    const form = new FormData();
    addEntries(data as ValuesByName, (key, value) => form.append(key, isBlob(value) ? value : toText(value)));
    return form;
  }
  const type = isBytes ? (data as Blob).type || 'application/octet-stream' : 'application/json';
  if (!headers.has('content-type')) headers.set('content-type', type);
  return isBytes ? (data as Body) : JSON.stringify(data, refuseBlob);
}

const isBlob = (value: unknown): value is Blob => value instanceof Blob;

/** A replacer for `JSON.stringify`, which would write a file as `{}`. */
function refuseBlob(key: string, value: unknown): unknown {
  if (!isBlob(value)) return value;
  throw new TypeError(`${key} is a file inside of another value: give it as a field of the data itself`);
}
