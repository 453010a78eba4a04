// Turns the value that an operation returned into an answer: a status, header lines and a body of one of three kinds.
// Plain objects do not come here, because response.ts sends them itself.

import { type EventStream, isEventStream } from '../../api/controller/event-stream.ts';
import { isReply, type Reply } from '../../api/controller/reply.ts';
import { JSON_TYPE } from '../../base/envelope.ts';
import { isFileBody } from '../../base/files/file-body.ts';
import type { FileContent } from '../../base/files/open-file.ts';
import { isCorsHeader, isOnEveryAnswer, isReservedHeader } from '../../base/server-headers.ts';
import { isBetween, isReplyStatus } from '../../base/values.ts';
import type { ByteSource } from './byte-stream.ts';
import type { Validators } from './conditional.ts';
import { adviseInstead, encodeResult, isBlob, isJson, isStream, isWebObject, nameKind, unencodable } from './json.ts';

export type AnswerBody =
  /** A `content` that is a text is JSON, the text of a Reply with another type, or '' when there is no body. */
  | { readonly kind: 'whole'; readonly content: string | Uint8Array }
  /** `length` is in bytes; undefined when it is not known before the end of the stream. */
  | { readonly kind: 'stream'; readonly source: ByteSource; readonly length: number | undefined }
  /** replies.ts makes it one of the others: the whole file, or a part of it. */
  | FileAnswer
  | { readonly kind: 'events'; readonly events: EventStream };

export interface FileAnswer {
  readonly kind: 'file';
  readonly content: FileContent;
  /** Finds the file once more, where it has changed before it is sent. */
  readonly findAgain?: () => Answer | undefined;
}

export interface Answer extends Validators {
  readonly status: number;
  /** The media type of the body; undefined without a body, and for a web Response without a Content-Type. */
  readonly contentType: string | undefined;
  /** Alternating names and values, without the headers that only the server may set. */
  readonly headers: readonly string[];
  readonly body: AnswerBody;
  /** Names of headers that the operation set and that only the server may set. */
  readonly droppedHeaders: readonly string[];
}

export const NO_BODY: AnswerBody = { kind: 'whole', content: '' };
/** A web Response without a body. To HEAD, a library answers so where GET has a body, so the length is unknown. */
export const NO_RESPONSE_BODY: AnswerBody = { kind: 'whole', content: '' };
/** Statuses that never have a body (RFC 9110, 15.3.5, 15.3.6 and 15.4.5). */
export const NEVER_A_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

/**
 * Converts a value that an operation returned. `status` is the status of a value that has none of its own.
 *
 * @param contentType the content type that the operation has set; a type of a `Reply` wins over it
 * @param keepsCors whether the CORS headers of a web Response are sent
 * @throws HttpError UNENCODABLE_RESULT, whose cause says what to return instead
 */
export function convertResult(value: object, status: number, contentType?: string, keepsCors = false): Answer {
  if (isReply(value)) return convertReply(value, contentType);
  if (isWebObject(value, 'Response')) return convertResponse(value as Response, keepsCors);
  const { body, type } = convertBody(value);
  return { status, ...readHeaders([]), contentType: contentType ?? type, body };
}

/** Matches `application/json` and types such as `application/problem+json`. */
const IS_JSON = /^\s*(?:(?:application|text)\/json|[^;]*\+json)\s*(?:;|$)/i;

function convertReply(reply: Reply, contentType: string | undefined): Answer {
  const { status, body: value } = reply;
  // The Reply can come from another version of Gatefold, or from code that imitates one. So its fields are checked.
  if (!isReplyStatus(status))
    throw unencodable(`a Reply whose status is ${String(status)}`, 'return one from 200 to 399');
  // Object.entries() would read a Headers object or a Map as empty, and an array as headers named 0, 1, 2.
  const headers: unknown = reply.headers ?? {};
  if (typeof headers !== 'object' || headers === null || Symbol.iterator in headers)
    throw unencodable(
      `a Reply whose headers are ${nameKind(headers)}`,
      'return a plain object of them, such as Object.fromEntries(headers)',
    );
  const lines = readHeaders(Object.entries(headers));
  if (value === undefined || NEVER_A_BODY.has(status))
    return { status, ...lines, contentType: undefined, body: NO_BODY };
  const ownType = lines.contentType ?? contentType;
  if (typeof value === 'string' && ownType !== undefined && !IS_JSON.test(ownType))
    return { status, ...lines, contentType: ownType, body: { kind: 'whole', content: value } };
  const { body, type } = convertBody(value);
  return { status, ...lines, contentType: ownType ?? type, body };
}

function convertResponse(response: Response, keepsCors: boolean): Answer {
  const { status, body: stream } = response;
  if (!isBetween(status, 200, 599))
    throw unencodable(`a web Response of status ${status}`, 'return one from 200 to 599');
  const entries = [...response.headers].filter(([name]) => !(response.url !== '' && CONNECTION_HEADERS.test(name)));
  const lines = readHeaders(entries, keepsCors);
  if (NEVER_A_BODY.has(status)) return { status, ...lines, contentType: undefined, body: NO_BODY };
  if (stream === null) return { status, ...lines, body: NO_RESPONSE_BODY };
  if (response.bodyUsed || stream.locked)
    throw unencodable('a web Response whose body has been read', 'return one that has not, such as response.clone()');
  const body: AnswerBody = { kind: 'stream', source: stream as ReadableStream<Uint8Array>, length: undefined };
  return { status, ...lines, body };
}

/** A fetched Response has a URL. These of its headers describe its connection, or its body before inflating. */
const CONNECTION_HEADERS = /^(?:content-encoding|content-length|transfer-encoding|connection|keep-alive)$/;

/** @throws HttpError UNENCODABLE_RESULT for a value that is neither a text nor a number */
export function readHeaders(
  entries: readonly (readonly [name: string, value: unknown])[],
  keepsCors = false,
): Omit<Answer, 'status' | 'body'> {
  const headers: string[] = [];
  const droppedHeaders: string[] = [];
  let contentType: string | undefined;
  let etag: string | undefined;
  let lastModified: string | undefined;
  for (const [name, rawValue] of entries) {
    const lower = name.toLowerCase();
    if (rawValue === undefined || isOnEveryAnswer(lower)) continue;
    const value: unknown = Array.isArray(rawValue) && rawValue.length === 1 ? rawValue[0] : rawValue;
    if (isReservedHeader(lower) && !(keepsCors && isCorsHeader(lower))) droppedHeaders.push(name);
    else if (Array.isArray(value) && lower !== 'content-type')
      for (const line of value) headers.push(name, encodeHeader(name, line));
    else {
      const text = encodeHeader(name, value);
      if (lower === 'content-type') contentType = text;
      else headers.push(name, text);
      if (lower === 'etag') etag = text;
      else if (lower === 'last-modified') lastModified = text;
    }
  }
  return { headers, droppedHeaders, contentType, etag, lastModified };
}

function encodeHeader(name: string, value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return String(value);
  if (Array.isArray(value)) throw unencodable(`the header ${name} as a list of ${value.length}`, 'return one string');
  throw unencodable(`the header ${name} as ${nameKind(value)}`, 'return a string or an array of strings');
}

function convertBody(value: unknown): { readonly body: AnswerBody; readonly type: string | undefined } {
  if (isFileBody(value)) return { body: { kind: 'file', content: value.content }, type: value.type };
  if (typeof value === 'object' && value !== null && !isJson(value)) {
    if (value instanceof Uint8Array)
      return { body: { kind: 'whole', content: refuseTransferred(value) }, type: OCTETS };
    if (isBlob(value)) {
      const source = value.stream() as ReadableStream<Uint8Array>;
      return { body: { kind: 'stream', source, length: value.size }, type: value.type || OCTETS };
    }
    if (isStream(value)) return { body: { kind: 'stream', source: value, length: undefined }, type: OCTETS };
    if (isEventStream(value)) return { body: { kind: 'events', events: value }, type: 'text/event-stream' };
    throw unencodable(nameKind(value), adviseInstead(value));
  }
  return { body: { kind: 'whole', content: encodeResult(value) }, type: JSON_TYPE };
}

const OCTETS = 'application/octet-stream';

/** Refuses a Uint8Array whose bytes were transferred to a thread, because its content is gone. */
function refuseTransferred(bytes: Uint8Array): Uint8Array {
  if (bytes.length > 0) return bytes;
  try {
    // This throws if the buffer has been transferred.
    return new Uint8Array(bytes.buffer, 0, 0);
  } catch {
    throw unencodable('bytes that have been transferred', 'return a copy of them');
  }
}
