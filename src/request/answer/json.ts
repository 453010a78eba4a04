// Encodes the result of an operation as JSON, or explains why that is not possible. JSON.stringify turns a Map, an
// Error or a promise into `{}`. Such an object is called lost. A result with a lost object at any depth is refused.

import { Readable } from 'node:stream';
import { isEventStream } from '../../api/controller/event-stream.ts';
import { isReply } from '../../api/controller/reply.ts';
import { isErrorReply } from '../../api/controller/service.ts';
import { refusal } from '../../base/errors.ts';
import { attempt } from '../../base/failure.ts';
import { isFileBody } from '../../base/files/file-body.ts';
import { unixTime } from '../../base/time.ts';
import { isClass } from '../../base/values.ts';
import type { ByteSource } from './byte-stream.ts';

export function encodeResult(value: unknown): string {
  let json: string | undefined;
  try {
    json = JSON.stringify(wrapResult(value));
  } catch (error) {
    const bigInt = findInJson(value, (part): part is bigint => typeof part === 'bigint');
    if (bigInt === undefined) throw refusal('UNENCODABLE_RESULT', undefined, { cause: error });
    throw unencodable(
      `a BigInt${placeOf(bigInt.pointer)}, which JSON has not`,
      'return String(value) or Number(value)',
    );
  }
  if (json === undefined) throw unencodable(nameKind(value), 'return a value that has a JSON form');
  const lostObject = describeLostObject(value, json);
  if (lostObject !== undefined)
    throw refusal('UNENCODABLE_RESULT', undefined, { cause: new TypeError(`the result has ${lostObject}`) });
  return json;
}

/**
 * Describes the first lost object in a value, and says what to return instead; undefined when none is lost. The value
 * is searched only when its JSON contains `{}`.
 */
export function describeLostObject(value: unknown, json: string): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  // If a getter throws at this reading, the result is sent as it is.
  const lost = attempt(() => (mayLoseObject(value, json) ? findInJson(value, isLost) : undefined), undefined);
  if (lost === undefined) return undefined;
  const instead = lost.value instanceof Error ? 'return its message' : adviseInstead(lost.value);
  return `${nameKind(lost.value)}${placeOf(lost.pointer)}, which JSON shows as {}: ${instead}`;
}

const placeOf = (pointer: string): string => (pointer === '' ? '' : ` at ${pointer}`);

/** Finds the first value that the function accepts, in the order of the JSON, and the JSON pointer (RFC 6901) to it. */
function findInJson<T>(root: unknown, accepts: (value: unknown) => value is T) {
  const pointers = new Map<unknown, string>();
  let found: { readonly value: T; readonly pointer: string } | undefined;
  const visit = function (this: unknown, name: string, value: unknown): unknown {
    const parent = pointers.get(this);
    const pointer = parent === undefined ? '' : `${parent}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    if (accepts(value)) found ??= { value, pointer };
    else if (typeof value === 'object') pointers.set(value, pointer);
    return value;
  };
  // JSON.stringify() ends at the first BigInt, or at another mistake, such as a cycle.
  attempt(() => JSON.stringify(root, visit), undefined);
  return found;
}

/**
 * Says whether a value can have a lost object. The value has been encoded before, so it has no cycle. The search goes
 * level by level, because a harmless `{}`, such as an empty query, is mostly near the root. It ends when it has found a
 * plain object for each `{}` of the JSON. The search of a whole body would cost a tenth of a POST.
 */
function mayLoseObject(root: object, json: string): boolean {
  /** The number of `{}` for which no plain object has been found yet. A text that contains `{}` counts, too. */
  let unexplained = 0;
  for (let i = json.indexOf('{}'); i >= 0; i = json.indexOf('{}', i + 2)) unexplained++;
  if (unexplained === 0) return false;
  const first = shownObject(root);
  if (first === undefined || json === '{}') return isLost(first);
  const parents = [first];
  for (const parent of parents) {
    for (const child of Array.isArray(parent) ? parent : Object.values(parent)) {
      const value = shownObject(child);
      if (value === undefined) continue;
      if (hasChildren(value)) parents.push(value);
      else if (isPlain(value)) {
        if (--unexplained === 0) return false;
      } else if (isLost(value)) return true;
    }
  }
  return false;
}

/** Returns the object that JSON.stringify() has encoded for a child; undefined when it has encoded no object. */
function shownObject(child: unknown): object | undefined {
  if (typeof child !== 'object' || child === null) return undefined;
  const { toJSON } = child as { toJSON?: unknown };
  if (typeof toJSON !== 'function') return child;
  // A Date becomes a text.
  const shown: unknown = child instanceof Date ? undefined : toJSON.call(child);
  return typeof shown === 'object' && shown !== null ? shown : undefined;
}

/** `Object.keys(value).length > 0` would make a list of each object's keys, and cost 1 percent of a POST. */
function hasChildren(value: object): boolean {
  if (Array.isArray(value)) return value.length > 0;
  for (const key in value) if (Object.hasOwn(value, key)) return true;
  return false;
}

/** Says whether JSON shows an object as `{}` that is not empty, such as a Map. An empty typed array is empty. */
function isLost(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  if (isJson(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView))) return false;
  return JSON.stringify(value) === '{}';
}

/**
 * Wraps a result for the body:
 * - An object or array is the body itself.
 * - `undefined`, `null` and `true` become a success message.
 * - A function and a symbol become `undefined`, because they have no JSON form.
 * - Any other value becomes `{ data }`.
 */
function wrapResult(value: unknown): unknown {
  if (typeof value === 'object' && value !== null) return value;
  if (value === undefined || value === null || value === true)
    return { status: 'success', message: 'Done', timestamp: unixTime() };
  return typeof value === 'function' || typeof value === 'symbol' ? undefined : { data: value };
}

/** Parsed queries and forms have no prototype. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Says whether an object is sent as JSON. Replies, streams, bytes and lost objects are not. */
export function isJson(value: object): boolean {
  if (isPlain(value) || Array.isArray(value)) return true;
  // Plain objects of another realm (a vm context) have another Object.prototype.
  if (Object.getPrototypeOf(Object.getPrototypeOf(value)) === null) return true;
  if (isReply(value) || isEventStream(value) || isFileBody(value) || isStream(value)) return false;
  if (value instanceof Error || isErrorReply(value)) return false;
  // A Buffer has toJSON(), too, but its bytes are sent.
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return !(value instanceof Uint8Array);
  if (value instanceof Map || value instanceof Set || ArrayBuffer.isView(value)) return false;
  // An instance of a class is sent as JSON when it has fields of its own.
  return !isWebObject(value, 'Response') && !isBlob(value) && Object.keys(value).length > 0;
}

/** Recognises a web object by its tag. `instanceof Response` would load all of `fetch` in every service. */
export function isWebObject(value: object, tag: 'Response' | 'Blob' | 'File' | 'ReadableStream'): boolean {
  return (value as { [Symbol.toStringTag]?: unknown })[Symbol.toStringTag] === tag;
}

export function isBlob(value: object): value is Blob {
  return isWebObject(value, 'Blob') || isWebObject(value, 'File');
}

export function isStream(value: object): value is ByteSource {
  return value instanceof Readable || isWebObject(value, 'ReadableStream') || isOtherReadable(value);
}

/** Recognises a stream of another library, such as the package `readable-stream`. */
function isOtherReadable(value: object): boolean {
  const { pipe, on, destroy } = value as Record<string, unknown>;
  return typeof pipe === 'function' && typeof on === 'function' && typeof destroy === 'function';
}

export function adviseInstead(value: object): string {
  if (value instanceof Error) return 'throw it instead of returning it';
  if (isErrorReply(value)) return 'throw an HttpError, because an ErrorReply is for formatError alone';
  if (isReply(value) || isWebObject(value, 'Response')) return 'return it alone, and not as a body';
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

/** Creates the refusal of a result. @param kind names the result: `a Map` @param instead says what to return */
export function unencodable(kind: string, instead: string): Error {
  const cause = new TypeError(`the operation returned ${kind}: ${instead}`);
  return refusal('UNENCODABLE_RESULT', undefined, { cause });
}

/** Returns a text for an error message: `a function`, `an object of class Map`. */
export function nameKind(value: unknown): string {
  if (typeof value === 'function') return isClass(value) ? 'a class' : 'a function';
  if (typeof value !== 'object' || value === null) return `a ${typeof value}`;
  const ownClass: unknown = value.constructor;
  const name = typeof ownClass === 'function' ? ownClass.name : '';
  return name === '' ? 'an object' : `an object of class ${name}`;
}
