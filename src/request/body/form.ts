// Parses query strings and urlencoded forms into fields. The number of fields is limited, and the time grows linearly
// with the size, so a form costs about as much time as a JSON body of the same size.
import { refusal } from '../../base/errors.ts';
import { unescapeBytes } from '../../base/node-internals.ts';

export type Query = Record<string, string | string[]>;

/** In a query string or an urlencoded form. */
const MAX_PAIRS = 10_000;

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

/** Decodes percent escapes, and `+` to a space. A stray `%` stays as it is. Bytes that are not UTF-8 become U+FFFD. */
function decode(text: string): string {
  // unescapeBytes() expects one character for each byte, so a text with other characters is first encoded as UTF-8.
  return /[%+]/.test(text) ? unescapeBytes(Buffer.from(text).toString('latin1')).toString() : text;
}

export function tooMany(unit: 'pairs' | 'parts', limit: number): Error {
  return refusal('TOO_MANY_FIELDS', `Cannot read the fields: there are more than ${limit} ${unit}`);
}

/**
 * Creates an empty object without a prototype, for fields that an operation may return in its result.
 * `Object.create(null)` is 20 times as fast, but V8 stores its object as a dictionary, a slower hash table. When
 * `JSON.stringify` of Node 22 and later finds a dictionary in a result, it starts over and takes twice as long.
 */
export function objectWithoutPrototype<V>(): Record<string, V> {
  return Object.setPrototypeOf({}, null);
}

export function addValue<V>(fields: Record<string, V | V[]>, key: string, value: V): void {
  const existing = fields[key];
  if (existing === undefined) fields[key] = value;
  else if (Array.isArray(existing)) existing.push(value);
  else fields[key] = [existing, value];
}
