// Bytes of a body → the request data they stand for. Knows formats, not sockets: body.ts reads the bytes.
import { isUtf8 } from 'node:buffer';
import { zlib } from '../base/builtins.ts';
import { refusal } from '../base/errors.ts';
import type { FormValue } from '../controller.ts';
import { jsonErrorPosition } from './json-position.ts';
import type { BodyKind } from './media-type.ts';
import { addValue, parseQuery, withoutPrototype } from './params.ts';

/** @throws HttpError MALFORMED_JSON, MALFORMED_BODY, FORBIDDEN_KEY */
export function decodeBody(kind: Exclude<BodyKind, 'multipart'>, bytes: Buffer): unknown {
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

/** @throws HttpError MALFORMED_BODY */
export async function decodeMultipart(contentType: string, bytes: Buffer): Promise<Record<string, FormValue>> {
  let form: FormData;
  try {
    form = await new Response(new Uint8Array(bytes), { headers: { 'content-type': contentType } }).formData();
  } catch (error) {
    throw refusal('MALFORMED_BODY', 'Cannot read the body as multipart/form-data', { cause: error });
  }
  const fields = withoutPrototype<FormValue>();
  for (const [name, value] of form as unknown as Iterable<[string, string | File]>) addValue(fields, name, value);
  return fields;
}

type Inflater = (bytes: Buffer, options: { maxOutputLength: number }, done: (error: Error | null, result: Buffer) => void) => void;

const gunzip: Inflater = (...body) => zlib().gunzip(...body);

const INFLATERS: ReadonlyMap<string, Inflater> = new Map<string, Inflater>([
  ['gzip', gunzip],
  ['x-gzip', gunzip],
  // RFC 9110, 8.4.1.2: zlib format; some senders leave its header away, which then does not begin with method 8.
  ['deflate', (...body) => (((body[0][0] ?? 0) & 0x0f) === 8 ? zlib().inflate(...body) : zlib().inflateRaw(...body))],
  ['br', (...body) => zlib().brotliDecompress(...body)],
]);

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
