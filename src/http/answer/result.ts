// What an operation returned → the answer that it stands for: status, header lines, and a body of one of five kinds.
// For whatever is no plain object; response.ts has a shorter way for those. It reads no request and writes to no
// socket.
import { type EventStream, isEventStream } from '../../controller/event-stream.ts';
import { isReply, type ReplyHeaders } from '../../controller/reply.ts';
import { isOnEveryAnswer, isServersOwn } from '../headers.ts';
import type { ByteSource } from './byte-stream.ts';
import type { Validators } from './conditional.ts';
import { encode, isJson, isStream, isWeb, nameOf, unencodable, whatInstead } from './json.ts';

export type AnswerBody =
  | { readonly kind: 'none' }
  /** JSON. */
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'stream'; readonly source: ByteSource; readonly length: number | undefined }
  | { readonly kind: 'events'; readonly events: EventStream };

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
  return {
    status: usualStatus,
    contentType: type,
    headers: [],
    dropped: [],
    body,
    etag: undefined,
    lastModified: undefined,
  };
}

function answerOfReply(status: number, value: unknown, given: ReplyHeaders | undefined): Answer {
  // The brand can be forged or be of another version.
  if (!Number.isInteger(status) || status < 200 || status > 399)
    throw unencodable(`a Reply whose status is ${String(status)}`, 'return one from 200 to 399');
  // Of these Object.entries() would make no headers at all, or others.
  if (given !== undefined && given !== null && (typeof given !== 'object' || Symbol.iterator in given))
    throw unencodable(
      `a Reply whose headers are ${nameOf(given)}`,
      'return a plain object of them, such as Object.fromEntries(headers)',
    );
  const lines = readHeaders(Object.entries(given ?? {}));
  if (value === undefined || NEVER_A_BODY.has(status))
    return { status, ...lines, contentType: undefined, body: NO_BODY };
  const { body, type } = bodyOf(value);
  return { status, ...lines, contentType: lines.contentType ?? type, body };
}

function answerOfResponse(response: Response): Answer {
  const { status, body: stream } = response;
  if (status < 200 || status > 599)
    throw unencodable(`a web Response of status ${status}`, 'return one from 200 to 599');
  const entries = [...response.headers].filter(([name]) => !(response.url !== '' && isHopByHop(name)));
  const lines = readHeaders(entries);
  if (stream === null || NEVER_A_BODY.has(status)) return { status, ...lines, contentType: undefined, body: NO_BODY };
  if (response.bodyUsed || stream.locked)
    throw unencodable('a web Response whose body has been read', 'return one that has not, such as response.clone()');
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
    else if (Array.isArray(value) && lower !== 'content-type')
      for (const one of value) headers.push(name, headerText(name, one));
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
  if (Array.isArray(value)) throw unencodable(`the header ${name} as a list of ${value.length}`, 'return one text');
  throw unencodable(`the header ${name} as ${nameOf(value)}`, 'return a text, or a list of texts');
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
    throw unencodable('bytes that have been transferred', 'return a copy of them that is kept');
  }
}

function bodyOfBlob(blob: Blob): { readonly body: AnswerBody; readonly type: string } {
  return {
    body: { kind: 'stream', source: blob.stream() as ReadableStream<Uint8Array>, length: blob.size },
    type: blob.type || OCTETS,
  };
}
