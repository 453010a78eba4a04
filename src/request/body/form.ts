// Parses query strings, urlencoded forms and multipart forms into fields. The number of fields is limited, and the time
// grows linearly with the size, so a form costs about as much time as a JSON body of the same size.

import type { FormValue } from '../../api/controller.ts';
import { refusal } from '../../base/errors.ts';
import { unescapeBytes } from '../../base/node-internals.ts';
import { parseMediaType } from './media-type.ts';

export type Query = Record<string, string | string[]>;

/** In a query string or an urlencoded form. */
const MAX_PAIRS = 10_000;
/** In a multipart body. Node's parser needs about 10 µs for each part. */
const MAX_PARTS = 1000;
/** Maximum bytes of the headers of all parts of a body together. Node's parser needs about 0.2 µs for each byte. */
const MAX_PART_HEADER_BYTES = 128 * 1024;
/** Maximum characters of a boundary (RFC 2046, 5.1.1). */
const MAX_BOUNDARY_LENGTH = 70;

/**
 * Parses a query string or an urlencoded form by the URL standard (section 5.1). The values of a repeated key become an
 * array. The result has no prototype, so `__proto__` is a key like any other. Node's own parsers are slow on hostile
 * input: for 1 MiB of `a&a&…`, URLSearchParams needs seconds on Node 24 and later. For 1 MiB of plus signs,
 * querystring.parse() needs 0.1 s.
 *
 * @param query an empty object without a prototype, which is filled and returned
 * @throws HttpError TOO_MANY_FIELDS
 */
export function parseQuery(text: string, query: Query = Object.create(null)): Query {
  let pairs = 0;
  for (let start = 0, end: number; start < text.length; start = end + 1) {
    end = text.indexOf('&', start);
    if (end < 0) end = text.length;
    if (end === start) continue;
    if (++pairs > MAX_PAIRS) throw tooMany('pairs', MAX_PAIRS);
    const pair = text.slice(start, end);
    const equals = pair.indexOf('=');
    if (equals < 0) addValue(query, decode(pair), '');
    else addValue(query, decode(pair.slice(0, equals)), decode(pair.slice(equals + 1)));
  }
  return query;
}

/**
 * Decodes percent escapes, and decodes `+` to a space. A `%` without two hex digits stays as it is. Bytes that are not
 * UTF-8 become U+FFFD.
 */
function decode(text: string): string {
  // unescapeBytes() expects one character for each byte, so a text with other characters is first encoded as UTF-8.
  return /[%+]/.test(text) ? unescapeBytes(Buffer.from(text).toString('latin1'), true).toString() : text;
}

/** Parses a multipart form. A repeated name becomes an array. @throws HttpError MALFORMED_BODY, TOO_MANY_FIELDS */
export async function decodeMultipart(contentType: string, bytes: Buffer): Promise<Record<string, FormValue>> {
  const type = parseMediaType(contentType);
  checkParts(type?.params.get('boundary') ?? '', bytes);
  let form: FormData;
  try {
    // The header is written again from `type`, so that Node's parser uses the boundary that checkParts() used.
    form = await new Response(new Uint8Array(bytes), { headers: { 'content-type': String(type) } }).formData();
  } catch (error) {
    throw refusal('MALFORMED_BODY', 'Cannot read the body as multipart/form-data', { cause: error });
  }
  const fields = objectWithoutPrototype<FormValue>();
  for (const [name, value] of form as unknown as Iterable<[string, string | File]>) addValue(fields, name, value);
  return fields;
}

/** Refuses too many parts and too long part headers, because Node's parser is slow with them and has no limit. */
function checkParts(boundary: string, bytes: Buffer): void {
  if (boundary === '' || boundary.length > MAX_BOUNDARY_LENGTH)
    throw refusal(
      'MALFORMED_BODY',
      `Cannot read the body: send a Content-Type with a boundary of 1 to ${MAX_BOUNDARY_LENGTH} characters`,
    );
  const delimiter = Buffer.from(`--${boundary}`, 'latin1');
  let parts = 0;
  let headerBytes = 0;
  for (let start = bytes.indexOf(delimiter), next: number; start >= 0; start = next) {
    next = bytes.indexOf(delimiter, start + delimiter.length);
    // Each delimiter but the last begins a part.
    if (next >= 0 && ++parts > MAX_PARTS) throw tooMany('parts', MAX_PARTS);
    const part = bytes.subarray(start, next < 0 ? bytes.length : next);
    const headerEnd = part.indexOf('\r\n\r\n');
    headerBytes += headerEnd < 0 ? part.length : headerEnd;
    if (headerBytes > MAX_PART_HEADER_BYTES)
      throw refusal(
        'TOO_MANY_FIELDS',
        `Cannot read the body: the headers of its parts have more than ${MAX_PART_HEADER_BYTES} bytes`,
      );
  }
}

function tooMany(unit: 'pairs' | 'parts', limit: number): Error {
  return refusal('TOO_MANY_FIELDS', `Cannot read the fields: there are more than ${limit} ${unit}`);
}

/**
 * Creates an empty object without a prototype, for fields that an operation may return in its result.
 * `Object.create(null)` is 20 times as fast, but V8 stores its object as a dictionary, a slower hash table. When
 * `JSON.stringify` of Node 22 and later finds a dictionary in a result, `JSON.stringify` starts over and takes twice as
 * long.
 */
export function objectWithoutPrototype<V>(): Record<string, V> {
  return Object.setPrototypeOf({}, null);
}

function addValue<V>(fields: Record<string, V | V[]>, key: string, value: V): void {
  const existing = fields[key];
  if (existing === undefined) fields[key] = value;
  else if (Array.isArray(existing)) existing.push(value);
  else fields[key] = [existing, value];
}
