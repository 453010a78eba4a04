// The JSON text of a value, or the reason why it has none. JSON shows a Map, an Error and a promise as `{}`. A value
// with such an object in it, at any depth, is refused. This file knows nothing of answers.
import { Readable } from 'node:stream';
import { refusal } from '../../base/errors.ts';
import { unixTime } from '../../base/time.ts';
import { isEventStream } from '../../controller/event-stream.ts';
import { isReply } from '../../controller/reply.ts';
import type { ByteSource } from './byte-stream.ts';

/** The JSON of a result. @throws HttpError UNENCODABLE_RESULT */
export function encode(value: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(jsonOf(value));
  } catch (error) {
    throw refusal('UNENCODABLE_RESULT', undefined, { cause: error });
  }
  if (text === undefined) throw unencodable(nameOf(value), 'return a value that has a JSON form');
  const lost = lostIn(value, text);
  if (lost !== undefined)
    throw refusal('UNENCODABLE_RESULT', undefined, { cause: new TypeError(`the result has ${lost}`) });
  return text;
}

/**
 * Names the first object within a value that JSON shows as `{}`, and says what to return instead. Undefined: there is
 * none. Only a text with `{}` in it needs a look at the value. The search costs next to nothing beside the encoding.
 */
export function lostIn(value: unknown, text: string): string | undefined {
  if (typeof value !== 'object' || value === null || !text.includes('{}')) return undefined;
  let lost: Lost | undefined;
  try {
    lost = findLost(value);
  } catch {
    // A getter throws at the second look, or the value is deeper than this walk can go.
  }
  if (lost === undefined) return undefined;
  const place = lost.pointer === '' ? '' : ` at ${lost.pointer}`;
  const instead = lost.value instanceof Error ? 'return its message' : whatInstead(lost.value);
  return `${nameOf(lost.value)}${place}, which JSON shows as {}: ${instead}`;
}

interface Lost {
  /** A JSON pointer (RFC 6901) into the value. */
  readonly pointer: string;
  readonly value: object;
}

/** Walks through the value as JSON does. The value has been encoded, so it has no cycle. */
function findLost(value: object): Lost | undefined {
  const { toJSON } = value as { toJSON?: unknown };
  if (typeof toJSON === 'function') {
    const shown: unknown = value instanceof Date ? undefined : toJSON.call(value);
    return typeof shown === 'object' && shown !== null ? findLost(shown) : undefined;
  }
  const inner: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
  if (inner.length === 0) return isLost(value) ? { pointer: '', value } : undefined;
  for (let i = 0; i < inner.length; i++) {
    const one = inner[i];
    const lost = typeof one === 'object' && one !== null ? findLost(one) : undefined;
    if (lost === undefined) continue;
    const name = Array.isArray(value) ? String(i) : (Object.keys(value)[i] as string);
    return { ...lost, pointer: `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}${lost.pointer}` };
  }
  return undefined;
}

/**
 * Says whether JSON shows the object as `{}` although it is more. A typed array shows its numbers, so an empty one
 * loses nothing.
 */
function isLost(value: object): boolean {
  if (isJson(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView))) return false;
  return JSON.stringify(value) === '{}';
}

/**
 * The body of a result. An object or array is the body itself, any other value is wrapped, and no value is a plain
 * success.
 */
export function jsonOf(value: unknown): unknown {
  if (typeof value === 'object' && value !== null) return value;
  if (value === undefined || value === null || value === true)
    return { status: 'success', message: 'Done', timestamp: unixTime() };
  return typeof value === 'function' || typeof value === 'symbol' ? undefined : { data: value };
}

/**
 * Says whether an object is sent as JSON. One that stands for another answer is not, nor one that JSON would show as
 * `{}`.
 */
export function isJson(value: object): boolean {
  const prototype: object | null = Object.getPrototypeOf(value);
  // Plain, of this realm or another; null is the prototype of what a query is parsed into.
  if (
    prototype === Object.prototype ||
    prototype === null ||
    Array.isArray(value) ||
    Object.getPrototypeOf(prototype) === null
  )
    return true;
  if (isReply(value) || isEventStream(value) || isStream(value) || value instanceof Error) return false;
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return !(value instanceof Uint8Array);
  if (value instanceof Map || value instanceof Set || ArrayBuffer.isView(value)) return false;
  // An instance of a class, with fields of its own.
  return !isWeb(value, 'Response') && !isWeb(value, 'Blob') && !isWeb(value, 'File') && Object.keys(value).length > 0;
}

/**
 * Looks at the tag of an object. A look at the class would load it (all of `fetch` for `Response`) in every service.
 */
export function isWeb(value: unknown, tag: 'Response' | 'Blob' | 'File' | 'ReadableStream'): boolean {
  return (
    typeof value === 'object' &&
    value !== null &&
    (value as { [Symbol.toStringTag]?: unknown })[Symbol.toStringTag] === tag
  );
}

export function isStream(value: object): value is ByteSource {
  return value instanceof Readable || isWeb(value, 'ReadableStream') || isForeignReadable(value);
}

/** Recognises a stream of another copy of Node's streams, as packages bring it. */
function isForeignReadable(value: object): boolean {
  const { pipe, on, destroy } = value as Record<string, unknown>;
  return typeof pipe === 'function' && typeof on === 'function' && typeof destroy === 'function';
}

/** The advice for an object that is neither JSON nor bytes. */
export function whatInstead(value: object): string {
  if (value instanceof Error) return 'throw it instead of returning it';
  if (typeof (value as { then?: unknown }).then === 'function') return 'await it';
  if (value instanceof Map) return 'return Object.fromEntries(map), or [...map]';
  if (value instanceof Set) return 'return [...set]';
  if (ArrayBuffer.isView(value)) return 'return Array.from(numbers) for JSON, or a Uint8Array for bytes';
  if (value instanceof ArrayBuffer) return 'return new Uint8Array(buffer)';
  if (Symbol.asyncIterator in value)
    return 'return eventStream(iterable) for events, or Readable.from(iterable) for bytes';
  if (Symbol.iterator in value) return 'return an array, such as [...iterable]';
  return 'return a plain object: it has no fields of its own that JSON could show';
}

export function unencodable(what: string, instead: string): Error {
  return refusal('UNENCODABLE_RESULT', undefined, {
    cause: new TypeError(`the operation returned ${what}: ${instead}`),
  });
}

export function nameOf(value: unknown): string {
  if (typeof value === 'function')
    return /^class\b/.test(Function.prototype.toString.call(value)) ? 'a class' : 'a function';
  if (typeof value !== 'object' || value === null) return `a ${typeof value}`;
  const maker: unknown = value.constructor;
  const name = typeof maker === 'function' ? maker.name : '';
  return name === '' ? 'an object' : `an object of class ${name}`;
}
