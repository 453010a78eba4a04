// Forms and query strings → fields. Every step is linear in what a client sends, and the number of fields is bounded: a
// body within BODY_LIMIT costs about as much time as a JSON body of that size. This file knows no sockets, and one
// header.
import querystring from 'node:querystring';
import { refusal } from '../../base/errors.ts';
import type { FormValue } from '../../controller.ts';
import { parseMediaType } from './media-type.ts';

export type Query = Record<string, string | string[]>;

/** The most pairs of a query string or an urlencoded form. */
export const MOST_PAIRS = 10_000;
/** The most parts of a multipart body: Node's parser needs about 10 µs for one. */
export const MOST_PARTS = 1000;
/** The most bytes in the headers of all parts: Node's parser needs about 0.2 µs for a byte. */
export const MOST_PART_HEADERS = 128 * 1024;
/** The most characters of a boundary (RFC 2046, 5.1.1). */
const LONGEST_BOUNDARY = 70;

/**
 * Parses a query string or an urlencoded form by the URL standard (section 5.1). A repeated key becomes an array. The
 * object has no prototype, so `__proto__` is a key like any other. Node's parsers are slow at hostile texts:
 * URLSearchParams needs seconds for 1 MiB of `a&a&…` on Node 24 and later, and querystring.parse() 0.1 s for 1 MiB of
 * plus signs.
 *
 * @param query an object without prototype, to be filled and returned
 * @throws HttpError TOO_MANY_FIELDS
 */
export function parseQuery(text: string, query: Query = Object.create(null)): Query {
  let pairs = 0;
  for (let from = 0, end: number; from < text.length; from = end + 1) {
    end = text.indexOf('&', from);
    if (end < 0) end = text.length;
    if (end === from) continue;
    if (++pairs > MOST_PAIRS) throw tooMany('pairs', MOST_PAIRS);
    const pair = text.slice(from, end);
    const cut = pair.indexOf('=');
    if (cut < 0) addValue(query, decode(pair), '');
    else addValue(query, decode(pair.slice(0, cut)), decode(pair.slice(cut + 1)));
  }
  return query;
}

/**
 * A plus is a space, a percent sign without two hexadecimal digits stays, and bytes that are not UTF-8 become U+FFFD.
 */
function decode(text: string): string {
  // The parser works on bytes, a character for each.
  return /[%+]/.test(text) ? unescapeBuffer(Buffer.from(text).toString('latin1'), true).toString() : text;
}

/**
 * The part of `querystring.unescape()` that never throws: an exception for each malformed field takes 0.2 s for 100 KB.
 */
const { unescapeBuffer } = querystring as unknown as { unescapeBuffer(text: string, plusIsSpace: boolean): Buffer };

/** @throws HttpError MALFORMED_BODY, TOO_MANY_FIELDS */
export async function decodeMultipart(contentType: string, bytes: Buffer): Promise<Record<string, FormValue>> {
  const type = parseMediaType(contentType);
  checkParts(type?.params.get('boundary') ?? '', bytes);
  let form: FormData;
  try {
    // The header is written anew: the parts must be counted by the boundary that the parser finds.
    form = await new Response(new Uint8Array(bytes), { headers: { 'content-type': String(type) } }).formData();
  } catch (error) {
    throw refusal('MALFORMED_BODY', 'Cannot read the body as multipart/form-data', { cause: error });
  }
  const fields = withoutPrototype<FormValue>();
  for (const [name, value] of form as unknown as Iterable<[string, string | File]>) addValue(fields, name, value);
  return fields;
}

/** Refuses too many parts and part headers, for which Node's parser needs long and has no bounds. */
function checkParts(boundary: string, bytes: Buffer): void {
  if (boundary === '' || boundary.length > LONGEST_BOUNDARY)
    throw refusal(
      'MALFORMED_BODY',
      `Cannot read the body: its content type needs a boundary of 1 to ${LONGEST_BOUNDARY} characters`,
    );
  const delimiter = Buffer.from(`--${boundary}`, 'latin1');
  let parts = 0;
  let headers = 0;
  for (let at = bytes.indexOf(delimiter), next: number; at >= 0; at = next) {
    next = bytes.indexOf(delimiter, at + delimiter.length);
    if (next >= 0 && ++parts > MOST_PARTS) throw tooMany('parts', MOST_PARTS);
    const part = bytes.subarray(at, next < 0 ? bytes.length : next);
    const end = part.indexOf('\r\n\r\n');
    headers += end < 0 ? part.length : end;
    if (headers > MOST_PART_HEADERS)
      throw refusal(
        'TOO_MANY_FIELDS',
        `Cannot read the body: the headers of its parts have more than ${MOST_PART_HEADERS} bytes`,
      );
  }
}

function tooMany(what: string, most: number): Error {
  return refusal('TOO_MANY_FIELDS', `Cannot read the fields: there are more than ${most} ${what}`);
}

/**
 * An empty object of the engine's usual kind, for fields that an operation may return beside much else.
 * `Object.create(null)` takes a twentieth of the time but is a dictionary. One dictionary in a result makes
 * `JSON.stringify` of Node 22 and later start over, and the whole result takes twice as long.
 */
export function withoutPrototype<V>(): Record<string, V> {
  return Object.setPrototypeOf({}, null);
}

function addValue<V>(into: Record<string, V | V[]>, key: string, value: V): void {
  const before = into[key];
  if (before === undefined) into[key] = value;
  else if (Array.isArray(before)) before.push(value);
  else into[key] = [before, value];
}
