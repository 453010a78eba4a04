// Bytes of a body → the request data they stand for. Knows formats, not sockets: body.ts reads the bytes.
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

/** UTF-8, fatally. A byte order mark is dropped. */
function decodeText(kind: BodyKind, bytes: Buffer): string {
  const text = bytes.toString('utf8');
  // Bad bytes become U+FFFD in silence; but one may also have been sent. Most bodies are ASCII, whose text cannot hold any.
  if (text.includes('\ufffd') && !isUtf8(bytes))
    throw refusal(kind === 'json' ? 'MALFORMED_JSON' : 'MALFORMED_BODY', `Cannot read the body: byte ${firstBadByte(bytes)} is not UTF-8`);
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}

function firstBadByte(bytes: Buffer): number {
  // The longest sound beginning, by halving: a cut inside a character counts as sound up to that character.
  let sound = 0;
  for (let bad = bytes.length; sound < bad; ) {
    const middle = (sound + bad + 1) >> 1;
    if (isUtf8(bytes.subarray(0, middle)) || isCutCharacter(bytes, middle)) sound = middle;
    else bad = middle - 1;
  }
  return sound;
}

function isCutCharacter(bytes: Buffer, end: number): boolean {
  for (let missing = 1; missing <= 3; missing++) {
    if (isUtf8(bytes.subarray(0, end - missing)) && isUtf8(bytes.subarray(end - missing, end + 4 - missing))) return true;
  }
  return false;
}

function parseJson(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    const at = jsonErrorPosition(text);
    const what = at >= text.length ? 'it ends too early' : 'there is a character that does not belong';
    throw refusal('MALFORMED_JSON', `Cannot parse the body as JSON: ${what}, at position ${at}`);
  }
  // A reviver on every body costs more than half the parse; only a text that could hold such a key is looked through.
  if (text.includes('proto') || text.includes('\\u00')) checkKeys(value);
  return value;
}

/** Keys that set a prototype when the value is merged into another object (CWE-1321). */
function checkKeys(root: unknown): void {
  const queue: unknown[] = [root];
  for (let value = queue.pop(); queue.length > 0 || value !== undefined; value = queue.pop()) {
    if (typeof value !== 'object' || value === null) continue;
    const maker: unknown = Object.hasOwn(value, 'constructor') ? (value as { constructor: unknown }).constructor : undefined;
    const setsPrototype = typeof maker === 'object' && maker !== null && Object.hasOwn(maker, 'prototype');
    if (Object.hasOwn(value, '__proto__') || setsPrototype) {
      throw refusal('FORBIDDEN_KEY', `Cannot accept the body: it has the key ${setsPrototype ? 'constructor.prototype' : '__proto__'}`);
    }
    for (const child of Object.values(value)) if (typeof child === 'object' && child !== null) queue.push(child);
  }
}

const WHITE = /[\t\n\r ]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const LITERAL = /true|false|null/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})/y;

/**
 * Where a text stops being JSON (RFC 8259): characters before the first one that no JSON text could have there; the length when
 * it ends too early. V8's message sometimes has no position and sometimes quotes the text; a client needs the first and must
 * never see the second. Runs on refused bodies only; no recursion, so no depth limit.
 */
export function jsonErrorPosition(text: string): number {
  /** Open brackets, innermost last. */
  const open: ('{' | '[')[] = [];
  let at = 0;
  const skip = (pattern: RegExp): boolean => {
    pattern.lastIndex = at;
    if (!pattern.test(text)) return false;
    at = pattern.lastIndex;
    return true;
  };
  /** To behind the string, or to its mistake. A regular expression for all of it runs out of stack at 10 million characters. */
  const skipString = (): boolean => {
    if (text[at] !== '"') return false;
    for (at++; at < text.length; ) {
      const char = text.charCodeAt(at);
      if (char === QUOTE) return ++at > 0;
      if (char === BACKSLASH ? !skip(ESCAPE) : char < 0x20) return false;
      if (char !== BACKSLASH) at++;
    }
    return false;
  };
  let expected: 'value' | 'first' | 'key' | 'colon' | 'more' = 'value';
  for (;;) {
    skip(WHITE);
    const char = text[at];
    if (expected === 'colon') {
      if (char !== ':') return at;
      at++;
      expected = 'value';
    } else if (expected === 'key' || (expected === 'first' && open.at(-1) === '{' && char !== '}')) {
      if (!skipString()) return at;
      expected = 'colon';
    } else if ((expected === 'more' || expected === 'first') && char !== undefined && char === closerOf(open.at(-1))) {
      at++;
      open.pop();
      expected = 'more';
    } else if (expected === 'more') {
      if (open.length === 0 || char !== ',') return at;
      at++;
      expected = open.at(-1) === '{' ? 'key' : 'value';
    } else if (char === '{' || char === '[') {
      at++;
      open.push(char);
      expected = 'first';
    } else {
      if (char === '"' ? !skipString() : !skip(NUMBER) && !skip(LITERAL)) return at;
      expected = 'more';
    }
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

function closerOf(bracket: '{' | '[' | undefined): string | undefined {
  return bracket === '{' ? '}' : bracket === '[' ? ']' : undefined;
}

type Inflater = (bytes: Buffer, options: { maxOutputLength: number }, done: (error: Error | null, result: Buffer) => void) => void;

const gunzip: Inflater = (...body) => zlib().gunzip(...body);

const INFLATERS: ReadonlyMap<string, Inflater> = new Map<string, Inflater>([
  ['gzip', gunzip],
  ['x-gzip', gunzip],
  ['deflate', (...body) => (hasZlibHeader(body[0]) ? zlib().inflate(...body) : zlib().inflateRaw(...body))],
  ['br', (...body) => zlib().brotliDecompress(...body)],
]);

/** RFC 9110, 8.4.1.2: `deflate` is the zlib format; some senders leave its header away, whose first byte names method 8. */
function hasZlibHeader(bytes: Uint8Array): boolean {
  return ((bytes[0] ?? 0) & 0x0f) === 8;
}

/**
 * @returns undefined when the body is as it is
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
 * For a body that is not held in memory: what to pipe it through.
 *
 * @returns undefined when the body is as it is
 * @throws HttpError UNSUPPORTED_ENCODING
 */
export function inflateStreamOf(contentEncoding: string | undefined): Duplex | undefined {
  if (inflaterOf(contentEncoding) === undefined) return undefined;
  const coding = contentEncoding?.toLowerCase();
  if (coding === 'deflate') return Duplex.from(inflatePieces);
  return coding === 'br' ? zlib().createBrotliDecompress() : zlib().createGunzip();
}

/** The first piece tells which of the two formats it is. */
async function* inflatePieces(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const pieces = source[Symbol.asyncIterator]();
  const { done, value: first } = await pieces.next();
  if (done === true) return;
  const inflate = hasZlibHeader(first) ? zlib().createInflate() : zlib().createInflateRaw();
  async function* all(): AsyncGenerator<Buffer> {
    yield first;
    for (let next = await pieces.next(); next.done !== true; next = await pieces.next()) yield next.value;
  }
  // What goes wrong is thrown where the result is read.
  yield* pipeline(all, inflate, () => {});
}
