// Bytes of a body → the request data they stand for. This file knows formats and no sockets: body.ts reads the bytes.
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
  // Bad bytes become U+FFFD in silence, but a client may also send that character. Most bodies are ASCII and have none.
  if (text.includes('\ufffd') && !isUtf8(bytes))
    throw refusal(
      kind === 'json' ? 'MALFORMED_JSON' : 'MALFORMED_BODY',
      `Cannot read the body: byte ${firstBadByte(bytes, text)} is not UTF-8`,
    );
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}

/**
 * The text encoded again differs from the bytes first where a byte is bad, or behind a character that is cut off at the
 * end.
 */
function firstBadByte(bytes: Buffer, text: string): number {
  return Buffer.from(text).findIndex((byte, at) => byte !== bytes[at]);
}

function parseJson(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const at = jsonErrorPosition(text, (error as Error).message);
    const what = at >= text.length ? 'it ends too early' : 'there is a character that does not belong';
    throw refusal('MALFORMED_JSON', `Cannot parse the body as JSON: ${what}, at position ${at}`);
  }
  // A reviver on every body costs more than half the parse, so only a text that could have such a key is searched.
  if (text.includes('proto') || text.includes('\\u00')) checkKeys(value);
  return value;
}

/** Refuses keys that set a prototype when the value is merged into another object (CWE-1321). */
function checkKeys(root: unknown): void {
  const queue: unknown[] = [root];
  for (let value = queue.pop(); queue.length > 0 || value !== undefined; value = queue.pop()) {
    if (typeof value !== 'object' || value === null) continue;
    const maker: unknown = Object.hasOwn(value, 'constructor')
      ? (value as { constructor: unknown }).constructor
      : undefined;
    const setsPrototype = typeof maker === 'object' && maker !== null && Object.hasOwn(maker, 'prototype');
    if (Object.hasOwn(value, '__proto__') || setsPrototype) {
      throw refusal(
        'FORBIDDEN_KEY',
        `Cannot accept the body: it has the key ${setsPrototype ? 'constructor.prototype' : '__proto__'}`,
      );
    }
    for (const child of Object.values(value)) if (typeof child === 'object' && child !== null) queue.push(child);
  }
}

/** White space, then a piece that JSON is made of, or none. Escapes in its strings have been replaced. */
const TOKEN = /[\t\n\r ]*("[^"]*"|[[\]{}:,]|-?\d[\d.eE+-]*|true|false|null)?/y;

/**
 * A client needs the position and must never see the text, which some of V8's messages quote. Where a value is missing,
 * V8 quotes and gives no position. The text before that place is sound JSON, so the tokens lead to it.
 */
function jsonErrorPosition(text: string, message: string): number {
  const position = / at position (\d+)(?: \(line \d+ column \d+\))?$/.exec(message)?.[1];
  if (position !== undefined) return Number(position);
  if (!message.endsWith(' is not valid JSON')) return text.length;
  // A regular expression for strings with escapes runs out of stack at 10 million of them.
  const plain = text.replace(/\\./g, '__');
  TOKEN.lastIndex = 0;
  for (let before = ',', token: string | undefined; ; before = token) {
    token = TOKEN.exec(plain)?.[1];
    if (token === undefined) return TOKEN.lastIndex;
    const isValueMissing = '[,:'.includes(before) && ']},:'.includes(token) && before + token !== '[]';
    if (isValueMissing) return TOKEN.lastIndex - 1;
  }
}

type Inflater = (
  bytes: Buffer,
  options: { maxOutputLength: number },
  done: (error: Error | null, result: Buffer) => void,
) => void;

const gunzip: Inflater = (...body) => zlib().gunzip(...body);

const INFLATERS: ReadonlyMap<string, Inflater> = new Map<string, Inflater>([
  ['gzip', gunzip],
  ['x-gzip', gunzip],
  ['deflate', (...body) => (hasZlibHeader(body[0]) ? zlib().inflate(...body) : zlib().inflateRaw(...body))],
  ['br', (...body) => zlib().brotliDecompress(...body)],
]);

/** RFC 9110, 8.4.1.2: `deflate` is the zlib format. Some senders omit its header, whose first byte names method 8. */
function hasZlibHeader(bytes: Uint8Array): boolean {
  return ((bytes[0] ?? 0) & 0x0f) === 8;
}

/**
 * @returns undefined when the body is not compressed
 * @throws HttpError UNSUPPORTED_ENCODING
 */
export function inflaterOf(contentEncoding: string | undefined): Inflater | undefined {
  const coding = contentEncoding?.toLowerCase();
  if (coding === undefined || coding === '' || coding === 'identity') return undefined;
  const inflater = INFLATERS.get(coding);
  if (inflater === undefined)
    throw refusal('UNSUPPORTED_ENCODING', 'Cannot inflate the body: gzip, deflate and br are supported, one at a time');
  return inflater;
}

/**
 * The stream that inflates a body which is not held in memory.
 *
 * @returns undefined when the body is not compressed
 * @throws HttpError UNSUPPORTED_ENCODING
 */
export function inflateStreamOf(contentEncoding: string | undefined): Duplex | undefined {
  if (inflaterOf(contentEncoding) === undefined) return undefined;
  const coding = contentEncoding?.toLowerCase();
  if (coding === 'deflate') return Duplex.from(inflatePieces);
  return coding === 'br' ? zlib().createBrotliDecompress() : zlib().createGunzip();
}

/** Chooses between the two formats of `deflate` by the first piece. */
async function* inflatePieces(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const pieces = source[Symbol.asyncIterator]();
  const { done, value: first } = await pieces.next();
  if (done === true) return;
  const inflate = hasZlibHeader(first) ? zlib().createInflate() : zlib().createInflateRaw();
  async function* all(): AsyncGenerator<Buffer> {
    yield first;
    for (let next = await pieces.next(); next.done !== true; next = await pieces.next()) yield next.value;
  }
  // An error is thrown where the result is read.
  yield* pipeline(all, inflate, () => {});
}
