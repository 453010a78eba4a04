// What an operation returned → the answer that it stands for: status, header lines, and a body of one of five kinds. For
// whatever is no plain object; response.ts has a shorter way for those. It reads no request and writes to no socket.
import { Readable } from 'node:stream';
import { refusal } from '../../base/errors.ts';
import { type EventStream, isEventStream } from '../../controller/event-stream.ts';
import { isReply, type ReplyHeaders } from '../../controller/reply.ts';
import { isOnEveryAnswer, isServersOwn } from '../headers.ts';
import type { Validators } from './conditional.ts';

export type AnswerBody =
  | { readonly kind: 'none' }
  /** JSON. */
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'stream'; readonly source: ByteSource; readonly length: number | undefined }
  | { readonly kind: 'events'; readonly events: EventStream };

export type ByteSource = Readable | ReadableStream<Uint8Array>;

export interface Answer extends Validators {
  readonly status: number;
  /** Undefined: there is no body, or it says nothing. */
  readonly contentType: string | undefined;
  /** Name, value, name, value. None is the server's own. */
  readonly headers: readonly string[];
  readonly body: AnswerBody;
  /** What it brought of the server's own headers. */
  readonly dropped: readonly string[];
}

const JSON_TYPE = 'application/json; charset=UTF-8';
const NO_BODY: AnswerBody = { kind: 'none' };
/** RFC 9110, 15.3.5, 15.3.6 and 15.4.5. */
const NEVER_A_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/**
 * @param usualStatus that of what is no reply and no web response
 * @throws HttpError UNENCODABLE_RESULT, whose cause says what to return instead
 */
export function answerOf(value: unknown, usualStatus: number): Answer {
  if (isReply(value)) return answerOfReply(value.status, value.body, value.headers);
  if (isWeb(value, 'Response')) return answerOfResponse(value as Response);
  const { body, type } = bodyOf(value);
  return { status: usualStatus, contentType: type, headers: [], dropped: [], body, etag: undefined, lastModified: undefined };
}

function answerOfReply(status: number, value: unknown, given: ReplyHeaders | undefined): Answer {
  // The brand can be forged or be of another version.
  if (!Number.isInteger(status) || status < 200 || status > 399)
    throw unencodable(`a Reply whose status is ${String(status)}`, 'one from 200 to 399');
  // Of these Object.entries() would make no headers at all, or others.
  if (given !== undefined && given !== null && (typeof given !== 'object' || Symbol.iterator in given))
    throw unencodable(`a Reply whose headers are ${nameOf(given)}`, 'a plain object of them, such as Object.fromEntries(headers)');
  const lines = readHeaders(Object.entries(given ?? {}));
  if (value === undefined || NEVER_A_BODY.has(status)) return { status, ...lines, contentType: undefined, body: NO_BODY };
  const { body, type } = bodyOf(value);
  return { status, ...lines, contentType: lines.contentType ?? type, body };
}

function answerOfResponse(response: Response): Answer {
  const { status, body: stream } = response;
  if (status < 200 || status > 599) throw unencodable(`a web Response of status ${status}`, 'one from 200 to 599');
  const entries = [...response.headers].filter(([name]) => !(response.url !== '' && isHopByHop(name)));
  const lines = readHeaders(entries);
  if (stream === null || NEVER_A_BODY.has(status)) return { status, ...lines, contentType: undefined, body: NO_BODY };
  if (response.bodyUsed || stream.locked)
    throw unencodable('a web Response whose body has been read', 'one that has not, such as response.clone()');
  const body: AnswerBody = { kind: 'stream', source: stream as ReadableStream<Uint8Array>, length: undefined };
  return { status, ...lines, body };
}

/** Of a Response that `fetch` brought: these were about that connection, and its body has been inflated. */
function isHopByHop(name: string): boolean {
  return (
    name === 'content-encoding' ||
    name === 'content-length' ||
    name === 'transfer-encoding' ||
    name === 'connection' ||
    name === 'keep-alive'
  );
}

/** @throws HttpError UNENCODABLE_RESULT */
function readHeaders(entries: readonly (readonly [name: string, value: unknown])[]): Omit<Answer, 'status' | 'body'> {
  const headers: string[] = [];
  const dropped: string[] = [];
  let contentType: string | undefined;
  let etag: string | undefined;
  let lastModified: string | undefined;
  for (const [name, given] of entries) {
    const lower = name.toLowerCase();
    if (given === undefined || isOnEveryAnswer(lower)) continue;
    const value: unknown = Array.isArray(given) && given.length === 1 ? given[0] : given;
    if (isServersOwn(lower)) dropped.push(name);
    else if (Array.isArray(value) && lower !== 'content-type') for (const one of value) headers.push(name, headerText(name, one));
    else {
      const text = headerText(name, value);
      if (lower === 'content-type') contentType = text;
      else headers.push(name, text);
      if (lower === 'etag') etag = text;
      else if (lower === 'last-modified') lastModified = text;
    }
  }
  return { headers, dropped, contentType, etag, lastModified };
}

function headerText(name: string, value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return String(value);
  if (Array.isArray(value)) throw unencodable(`the header ${name} as a list of ${value.length}`, 'one text');
  throw unencodable(`the header ${name} as ${nameOf(value)}`, 'a text, or a list of texts');
}

/** By the rules of every result, or bytes as they are. */
function bodyOf(value: unknown): { readonly body: AnswerBody; readonly type: string | undefined } {
  if (typeof value === 'object' && value !== null && !isJson(value)) {
    if (value instanceof Uint8Array) return { body: { kind: 'bytes', bytes: attached(value) }, type: OCTETS };
    if (isWeb(value, 'Blob') || isWeb(value, 'File')) return bodyOfBlob(value as Blob);
    if (isStream(value)) return { body: { kind: 'stream', source: value, length: undefined }, type: OCTETS };
    if (isEventStream(value)) return { body: { kind: 'events', events: value }, type: 'text/event-stream' };
    throw unencodable(nameOf(value), whatInstead(value));
  }
  return { body: { kind: 'text', text: encode(value) }, type: JSON_TYPE };
}

const OCTETS = 'application/octet-stream';

/** Bytes that have been transferred, as to a thread, have no length and cannot be read any more. */
function attached(bytes: Uint8Array): Uint8Array {
  if (bytes.length > 0) return bytes;
  try {
    return new Uint8Array(bytes.buffer, 0, 0);
  } catch {
    throw unencodable('bytes that have been transferred', 'a copy of them that is kept');
  }
}

function bodyOfBlob(blob: Blob): { readonly body: AnswerBody; readonly type: string } {
  return { body: { kind: 'stream', source: blob.stream() as ReadableStream<Uint8Array>, length: blob.size }, type: blob.type || OCTETS };
}

/** By its tag: asking for the class would load it (all of `fetch` for `Response`), in services that never see one. */
function isWeb(value: unknown, tag: 'Response' | 'Blob' | 'File' | 'ReadableStream'): boolean {
  return typeof value === 'object' && value !== null && (value as { [Symbol.toStringTag]?: unknown })[Symbol.toStringTag] === tag;
}

function isStream(value: object): value is ByteSource {
  return value instanceof Readable || isWeb(value, 'ReadableStream') || isForeignReadable(value);
}

/** Of another copy of Node's streams, as packages bring it. */
function isForeignReadable(value: object): boolean {
  const { pipe, on, destroy } = value as Record<string, unknown>;
  return typeof pipe === 'function' && typeof on === 'function' && typeof destroy === 'function';
}

/** An object or array is the body as it is; any other value is wrapped; no value at all is a plain success. */
export function jsonOf(value: unknown): unknown {
  if (typeof value === 'object' && value !== null) return value;
  if (value === undefined || value === null || value === true)
    return { status: 'success', message: 'Done', timestamp: Math.floor(Date.now() / 1000) };
  return typeof value === 'function' || typeof value === 'symbol' ? undefined : { data: value };
}

/** @throws HttpError UNENCODABLE_RESULT */
export function encode(value: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(jsonOf(value));
  } catch (error) {
    throw refusal('UNENCODABLE_RESULT', undefined, { cause: error });
  }
  if (text === undefined) throw unencodable(nameOf(value), 'a value that has a JSON form');
  return text;
}

/** Whether an object is sent as JSON: not one that stands for another answer, nor one that JSON would make `{}` of. */
export function isJson(value: object): boolean {
  const prototype: object | null = Object.getPrototypeOf(value);
  // Plain, of this realm or another; null is the prototype of what a query is parsed into.
  if (prototype === Object.prototype || prototype === null || Array.isArray(value) || Object.getPrototypeOf(prototype) === null)
    return true;
  if (isReply(value) || isEventStream(value) || isStream(value) || value instanceof Error) return false;
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return !(value instanceof Uint8Array);
  if (value instanceof Map || value instanceof Set || ArrayBuffer.isView(value)) return false;
  // An instance of a class, with fields of its own.
  return !isWeb(value, 'Response') && !isWeb(value, 'Blob') && !isWeb(value, 'File') && Object.keys(value).length > 0;
}

/** For what is neither JSON nor bytes. */
export function whatInstead(value: object): string {
  if (value instanceof Error) return 'throw it instead of returning it';
  if (typeof (value as { then?: unknown }).then === 'function') return 'await it';
  if (value instanceof Map) return 'return Object.fromEntries(map), or [...map]';
  if (value instanceof Set) return 'return [...set]';
  if (ArrayBuffer.isView(value)) return 'return Array.from(numbers) for JSON, or a Uint8Array for bytes';
  if (value instanceof ArrayBuffer) return 'return new Uint8Array(buffer)';
  if (Symbol.asyncIterator in value) return 'return eventStream(iterable) for events, or Readable.from(iterable) for bytes';
  if (Symbol.iterator in value) return 'return an array, such as [...iterable]';
  return 'return a plain object: it has no fields of its own that JSON could show';
}

function unencodable(what: string, instead: string): Error {
  return refusal('UNENCODABLE_RESULT', undefined, {
    cause: new TypeError(`the operation returned ${what}: ${/^(?:throw|return|await)/.test(instead) ? instead : `return ${instead}`}`),
  });
}

export function nameOf(value: unknown): string {
  if (typeof value === 'function') return /^class\b/.test(Function.prototype.toString.call(value)) ? 'a class' : 'a function';
  if (typeof value !== 'object' || value === null) return `a ${typeof value}`;
  const maker: unknown = value.constructor;
  const name = typeof maker === 'function' ? maker.name : '';
  return name === '' ? 'an object' : `an object of class ${name}`;
}
