// Decodes the bytes of a body, which body.ts and stream.ts read: inflates, decodes UTF-8, parses JSON.
import { isUtf8 } from 'node:buffer';
import { Duplex, pipeline } from 'node:stream';
import { zlib } from '../../base/builtins.ts';
import { refusal } from '../../base/errors.ts';
import { isObject } from '../../base/values.ts';
import { parseQuery } from './form.ts';
import type { BodyKind } from './media-type.ts';

/** @throws HttpError MALFORMED_JSON, MALFORMED_BODY, FORBIDDEN_KEY, TOO_MANY_FIELDS */
export function decodeBody(kind: Exclude<BodyKind, 'multipart' | 'blob'>, bytes: Buffer): unknown {
  const text = decodeText(kind, bytes);
  if (kind === 'json') return parseJson(text);
  return kind === 'form' ? parseQuery(text) : text;
}

/** Decodes UTF-8, and refuses bytes that are not UTF-8. A byte order mark is dropped. */
function decodeText(kind: BodyKind, bytes: Buffer): string {
  const text = bytes.toString('utf8');
  // toString() replaces bad bytes by U+FFFD. A client can also send that character itself, so isUtf8() decides.
  if (text.includes('\ufffd') && !isUtf8(bytes))
    throw refusal(
      kind === 'json' ? 'MALFORMED_JSON' : 'MALFORMED_BODY',
      `Cannot read the body: byte ${firstBadByte(bytes, text)} is not UTF-8`,
    );
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}

/**
 * Returns the index of the first bad byte, or of a character that is cut off at the end of the body. `text` has U+FFFD
 * there. So when `text` is encoded again, the result first differs from `bytes` at that index.
 */
function firstBadByte(bytes: Buffer, text: string): number {
  return Buffer.from(text).findIndex((byte, index) => byte !== bytes[index]);
}

function parseJson(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const position = jsonErrorPosition(text, (error as Error).message);
    const problem = position >= text.length ? 'it ends too early' : 'there is a character that does not belong';
    throw refusal('MALFORMED_JSON', `Cannot parse the body as JSON: ${problem}, at position ${position}`);
  }
  // A reviver of JSON.parse() that checks each key would cost more than half of the parse. So the value is searched
  // only if its text has `proto`, as both forbidden keys do, or `\u00`, with which the escapes of ASCII letters begin.
  if (typeof value === 'object' && value !== null && (text.includes('proto') || text.includes('\\u00')))
    checkKeys(value);
  return value;
}

/** Refuses keys that set a prototype when the value is merged into another object (CWE-1321). */
function checkKeys(root: object): void {
  const stack: object[] = [root];
  for (let value = stack.pop(); value !== undefined; value = stack.pop()) {
    const ownConstructor: unknown = Object.hasOwn(value, 'constructor') ? value.constructor : undefined;
    const setsPrototype = isObject(ownConstructor) && Object.hasOwn(ownConstructor, 'prototype');
    if (Object.hasOwn(value, '__proto__') || setsPrototype) {
      const key = setsPrototype ? 'constructor.prototype' : '__proto__';
      throw refusal('FORBIDDEN_KEY', `Cannot accept the body: it has the key ${key}`);
    }
    for (const child of Object.values(value)) if (typeof child === 'object' && child !== null) stack.push(child);
  }
}

/** Matches white space and the JSON token after it, if any. The strings of the text must have no escapes. */
const TOKEN = /[\t\n\r ]*("[^"]*"|[[\]{}:,]|-?\d[\d.eE+-]*|true|false|null)?/y;

/**
 * Returns the index at which the JSON is wrong, or the length of the text if it ends too early. A client needs the
 * position, but must not see V8's message, which can quote the body. When a value is missing, as in `[1,]`, V8's
 * message has no position. Then this function reads the tokens up to the one in the place of the value: the `]`.
 */
function jsonErrorPosition(text: string, message: string): number {
  const position = / at position (\d+)(?: \(line \d+ column \d+\))?$/.exec(message)?.[1];
  if (position !== undefined) return Number(position);
  // The other message without a position says that the text ends too early.
  if (!message.endsWith(' is not valid JSON')) return text.length;
  // In a string with 10 million escapes, TOKEN would overflow the stack. So each escape becomes a text of its length.
  const unescaped = text.replace(/\\./g, '__');
  TOKEN.lastIndex = 0;
  // A value must come at the beginning, as after a comma.
  for (let previous = ',', token: string | undefined; ; previous = token) {
    token = TOKEN.exec(unescaped)?.[1];
    if (token === undefined) return TOKEN.lastIndex;
    const isValueMissing = '[,:'.includes(previous) && ']},:'.includes(token) && previous + token !== '[]';
    if (isValueMissing) return TOKEN.lastIndex - 1;
  }
}

type WhenInflated = (error: Error | null, result: Buffer) => void;

/** A content coding, such as gzip: inflates a body as a whole, or by a stream. */
export interface Coding {
  inflate(bytes: Buffer, options: { maxOutputLength: number }, done: WhenInflated): void;
  createStream(): Duplex;
}

const GZIP: Coding = {
  inflate: (...args) => zlib().gunzip(...args),
  createStream: () => zlib().createGunzip(),
};
const DEFLATE: Coding = {
  inflate: (...args) => (hasZlibHeader(args[0]) ? zlib().inflate(...args) : zlib().inflateRaw(...args)),
  createStream: () => Duplex.from(inflateChunks),
};
const BROTLI: Coding = {
  inflate: (...args) => zlib().brotliDecompress(...args),
  createStream: () => zlib().createBrotliDecompress(),
};
const CODINGS: ReadonlyMap<string, Coding> = new Map([
  ['gzip', GZIP],
  ['x-gzip', GZIP],
  ['deflate', DEFLATE],
  ['br', BROTLI],
]);

/**
 * Says whether the bytes begin with a zlib header: the low four bits of the first byte are 8. The coding `deflate` is
 * the zlib format (RFC 9110, 8.4.1.2), but some senders omit the header.
 */
function hasZlibHeader(bytes: Uint8Array): boolean {
  return ((bytes[0] as number) & 0x0f) === 8;
}

export function malformedEncoding(): Error {
  return refusal('MALFORMED_BODY', 'Cannot inflate the body: its bytes do not match its Content-Encoding');
}

/** @returns undefined when the body is not compressed. @throws HttpError UNSUPPORTED_ENCODING */
export function codingOf(contentEncoding: string | undefined): Coding | undefined {
  const name = contentEncoding?.toLowerCase();
  if (name === undefined || name === '' || name === 'identity') return undefined;
  const coding = CODINGS.get(name);
  if (coding === undefined)
    throw refusal('UNSUPPORTED_ENCODING', 'Cannot inflate the body: gzip, deflate and br are supported, one at a time');
  return coding;
}

/** Inflates either format of `deflate`: the first chunk shows which one it is. */
async function* inflateChunks(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const chunks = source[Symbol.asyncIterator]();
  const { done, value: first } = await chunks.next();
  if (done === true) return;
  const inflate = hasZlibHeader(first) ? zlib().createInflate() : zlib().createInflateRaw();
  async function* allChunks(): AsyncGenerator<Buffer> {
    yield first;
    for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) yield next.value;
  }
  // The callback ignores an error, because the reader of this generator gets the same error.
  yield* pipeline(allChunks, inflate, () => {});
}
