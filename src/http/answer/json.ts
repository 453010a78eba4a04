// Encodes the result of an operation as JSON, or explains why that is not possible. JSON.stringify turns a Map, an
// Error or a promise into `{}`. Such an object is called lost. A result that contains a lost object at any depth is
// refused.
import { Readable } from 'node:stream';
import { refusal } from '../../base/errors.ts';
import { unixTime } from '../../base/time.ts';
import { isClass } from '../../base/values.ts';
import { isEventStream } from '../../controller/event-stream.ts';
import { isReply } from '../../controller/reply.ts';
import type { ByteSource } from './byte-stream.ts';

/** @throws HttpError UNENCODABLE_RESULT */
export function encodeResult(value: unknown): string {
  let json: string | undefined;
  try {
    json = JSON.stringify(wrapResult(value));
  } catch (error) {
    throw refusal('UNENCODABLE_RESULT', undefined, { cause: error });
  }
  if (json === undefined) throw unencodable(nameKind(value), 'return a value that has a JSON form');
  const lostObject = describeLostObject(value, json);
  if (lostObject !== undefined)
    throw refusal('UNENCODABLE_RESULT', undefined, { cause: new TypeError(`the result has ${lostObject}`) });
  return json;
}

/**
 * Describes the first lost object in a value, and says what to return instead. The value is searched only when its JSON
 * contains `{}`.
 *
 * @param json the JSON of the value
 * @returns undefined when no object is lost
 */
export function describeLostObject(value: unknown, json: string): string | undefined {
  if (typeof value !== 'object' || value === null || !json.includes('{}')) return undefined;
  let lost: LostObject | undefined;
  try {
    lost = findLostObject(value, json);
  } catch {
    // If a getter throws at this reading, the result is sent as it is.
  }
  if (lost === undefined) return undefined;
  const place = lost.pointer === '' ? '' : ` at ${lost.pointer}`;
  const instead = lost.value instanceof Error ? 'return its message' : adviseInstead(lost.value);
  return `${nameKind(lost.value)}${place}, which JSON shows as {}: ${instead}`;
}

interface LostObject {
  /** The JSON pointer (RFC 6901) to the object. */
  readonly pointer: string;
  readonly value: object;
}

/**
 * Finds the lost object that is nearest to the root. The value has been encoded before, so it has no cycle. The search
 * goes level by level, because a harmless `{}`, such as an empty query, is mostly near the root. It ends
 * when it has found a plain object for each `{}` of the JSON. The search of a whole body would cost a tenth of a POST.
 */
function findLostObject(root: object, json: string): LostObject | undefined {
  const queue: object[] = [];
  /** The index of each object's parent in the queue. */
  const parents: number[] = [];
  /** The position of each object among the children of its parent. */
  const places: number[] = [];
  /** The number of `{}` for which no plain object has been found yet. A text that contains `{}` counts, too. */
  let unexplained = json.split('{}').length - 1;

  function add(child: unknown, parent: number, place: number): void {
    if (typeof child !== 'object' || child === null) return;
    const { toJSON } = child as { toJSON?: unknown };
    let shown: unknown = child;
    // JSON.stringify() has encoded the result of toJSON() in the place of the object. A Date becomes a text.
    if (typeof toJSON === 'function') shown = child instanceof Date ? undefined : toJSON.call(child);
    if (typeof shown !== 'object' || shown === null) return;
    queue.push(shown);
    parents.push(parent);
    places.push(place);
  }

  function pointerTo(index: number): string {
    if (index === 0) return '';
    const [parent, place] = [parents[index] as number, places[index] as number];
    const value = queue[parent] as object;
    const name = Array.isArray(value) ? String(place) : (Object.keys(value)[place] as string);
    return `${pointerTo(parent)}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
  }

  add(root, 0, 0);
  for (let i = 0; i < queue.length && unexplained > 0; i++) {
    const value = queue[i] as object;
    const children: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
    for (let place = 0; place < children.length; place++) add(children[place], i, place);
    if (children.length > 0) continue;
    if (isPlain(value)) unexplained--;
    else if (isLost(value)) return { pointer: pointerTo(i), value };
  }
  return undefined;
}

/**
 * Says whether JSON shows an object as `{}` although it is more than an empty object, such as a Map. An empty typed
 * array has no content to lose.
 */
function isLost(value: object): boolean {
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
  if (isReply(value) || isEventStream(value) || isStream(value) || value instanceof Error) return false;
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

/** Says what to return in place of an object that can be sent neither as JSON nor as bytes. */
export function adviseInstead(value: object): string {
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
