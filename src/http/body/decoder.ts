// Decodes the bytes of a body, which body.ts and stream.ts read: inflates, decodes UTF-8, parses JSON.
import { isUtf8 } from 'node:buffer';
import { Duplex, pipeline } from 'node:stream';
import { zlib } from '../../base/builtins.ts';
import { refusal } from '../../base/errors.ts';
import { parseQuery } from './form.ts';
import type { BodyKind } from './media-type.ts';

/** @throws HttpError MALFORMED_JSON, MALFORMED_BODY, FORBIDDEN_KEY, TOO_MANY_FIELDS */
export function decodeBody(kind: Exclude<BodyKind, 'multipart' | 'blob'>, bytes: Buffer): unknown {
  const text = decodeText(kind, bytes);
  if (kind === 'json') return parseJson(text);
  return kind === 'form' ? parseQuery(text) : text;
}

/** Decodes UTF-8 and refuses bad bytes. A byte order mark is dropped. */
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
 * Finds the first bad byte. The text has U+FFFD in its place. So when the text is encoded again, the result first
 * differs from `bytes` at the bad byte, or at a character that is cut off at the end of the body.
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
  // Checking each key by a reviver of JSON.parse() would cost more than half of the parse. So the value is searched
  // only when its text suggests a forbidden key.
  if (text.includes('proto') || text.includes('\\u00')) checkKeys(value);
  return value;
}

/** Refuses keys that set a prototype when the value is merged into another object (CWE-1321). */
function checkKeys(root: unknown): void {
  const queue: unknown[] = [root];
  for (let value = queue.pop(); queue.length > 0 || value !== undefined; value = queue.pop()) {
    if (typeof value !== 'object' || value === null) continue;
    const ownConstructor: unknown = Object.hasOwn(value, 'constructor')
      ? (value as { constructor: unknown }).constructor
      : undefined;
    const setsPrototype =
      typeof ownConstructor === 'object' && ownConstructor !== null && Object.hasOwn(ownConstructor, 'prototype');
    if (Object.hasOwn(value, '__proto__') || setsPrototype) {
      throw refusal(
        'FORBIDDEN_KEY',
        `Cannot accept the body: it has the key ${setsPrototype ? 'constructor.prototype' : '__proto__'}`,
      );
    }
    for (const child of Object.values(value)) if (typeof child === 'object' && child !== null) queue.push(child);
  }
}

/** Matches white space, and one JSON token if one follows. The text must have no escapes in its strings. */
const TOKEN = /[\t\n\r ]*("[^"]*"|[[\]{}:,]|-?\d[\d.eE+-]*|true|false|null)?/y;

/**
 * Finds where the JSON is wrong. A client needs the position, but must not see V8's message, which can quote the body.
 * When a value is missing, as in `[1,]`, V8's message has no position. Then this function reads the tokens until it
 * finds one in the place of a value: the `]` of the example.
 */
function jsonErrorPosition(text: string, message: string): number {
  const position = / at position (\d+)(?: \(line \d+ column \d+\))?$/.exec(message)?.[1];
  if (position !== undefined) return Number(position);
  if (!message.endsWith(' is not valid JSON')) return text.length;
  // In a string with 10 million escapes, TOKEN would overflow the stack. So the escapes are replaced first.
  const unescaped = text.replace(/\\./g, '__');
  TOKEN.lastIndex = 0;
  for (let previous = ',', token: string | undefined; ; previous = token) {
    token = TOKEN.exec(unescaped)?.[1];
    if (token === undefined) return TOKEN.lastIndex;
    const isValueMissing = '[,:'.includes(previous) && ']},:'.includes(token) && previous + token !== '[]';
    if (isValueMissing) return TOKEN.lastIndex - 1;
  }
}

/** A content coding: two ways to inflate a body. */
export interface Coding {
  inflate(
    bytes: Buffer,
    options: { maxOutputLength: number },
    done: (error: Error | null, result: Buffer) => void,
  ): void;
  /** Creates a stream that inflates a body piece by piece. */
  createStream(): Duplex;
}

const GZIP: Coding = {
  inflate: (...body) => zlib().gunzip(...body),
  createStream: () => zlib().createGunzip(),
};
const DEFLATE: Coding = {
  inflate: (...body) => (hasZlibHeader(body[0]) ? zlib().inflate(...body) : zlib().inflateRaw(...body)),
  createStream: () => Duplex.from(inflateChunks),
};
const BROTLI: Coding = {
  inflate: (...body) => zlib().brotliDecompress(...body),
  createStream: () => zlib().createBrotliDecompress(),
};
const CODINGS: ReadonlyMap<string, Coding> = new Map([
  ['gzip', GZIP],
  ['x-gzip', GZIP],
  ['deflate', DEFLATE],
  ['br', BROTLI],
]);

/**
 * Says whether the bytes begin with a zlib header, whose first byte names method 8. `deflate` means the zlib format
 * (RFC 9110, 8.4.1.2), but some senders omit the header.
 */
function hasZlibHeader(bytes: Uint8Array): boolean {
  return ((bytes[0] ?? 0) & 0x0f) === 8;
}

/** Creates the refusal of a body that cannot be inflated. */
export function malformedEncoding(): Error {
  return refusal('MALFORMED_BODY', 'Cannot inflate the body: its bytes do not match its Content-Encoding');
}

/**
 * @returns undefined when the body is not compressed
 * @throws HttpError UNSUPPORTED_ENCODING
 */
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
  // The callback ignores an error, because the reader of the result gets it, too.
  yield* pipeline(allChunks, inflate, () => {});
}
