// Reads the header section of a request once, and refuses malformed requests that node:http accepts (decisions 2.3 and
// 2.4 in docs/DECISIONS.md). Later steps get the few header values that they need from `RequestHead`.
import type { Socket } from 'node:net';
import { IncomingMessage } from '../base/builtins.ts';
import { type ErrorCode, refusal } from '../base/errors.ts';
import { overrideHeaders, stopParsingAfter } from '../base/node-internals.ts';

/** Maximum header lines. Node's own limit is off (server.ts): Node would silently drop lines, even `Authorization`. */
const MAX_HEADER_LINES = 1000;

/** The header values that the service reads, as sent. Node has trimmed the spaces and tabs around them. */
export class RequestHead {
  host: string | undefined;
  hostCount = 0;
  /** The header `Authorization`; undefined when it is absent or empty. */
  authorization: string | undefined;
  authorizationCount = 0;
  contentType: string | undefined;
  contentEncoding: string | undefined;
  contentLength: string | undefined;
  transferEncoding: string | undefined;
  requestId: string | undefined;
  expect: string | undefined;
  /** The header `Cookie`. Several such lines are one list, as for Node. */
  cookie: string | undefined;
  /** The header `Origin`. When a request has several such lines, the field is `null`, the origin of nobody. */
  origin: string | undefined;
  /** The header `traceparent`. When a request has several such lines, none counts, and the field is ''. */
  traceparent: string | undefined;
  /** The header `Upgrade`. Several such lines are one list. */
  upgrade: string | undefined;

  /**
   * Scans the header lines once. The length of a name is compared first, so most lines cost one comparison. Names are
   * case-insensitive (RFC 9110, 5.1). The two usual spellings match without a conversion.
   */
  constructor(rawHeaders: readonly string[]) {
    for (let i = 0; i < rawHeaders.length; i += 2) {
      const name = rawHeaders[i] as string;
      const value = rawHeaders[i + 1] as string;
      switch (name.length) {
        case 4:
          if (isName(name, 'Host', 'host')) {
            this.host = value;
            this.hostCount++;
          }
          break;
        case 6:
          if (isName(name, 'Origin', 'origin')) this.origin = this.origin === undefined ? value : 'null';
          else if (isName(name, 'Expect', 'expect')) this.expect = value;
          else if (isName(name, 'Cookie', 'cookie')) this.cookie = addToList(this.cookie, value, '; ');
          break;
        case 7:
          if (isName(name, 'Upgrade', 'upgrade')) this.upgrade = addToList(this.upgrade, value);
          break;
        case 11:
          if (isName(name, 'Traceparent', 'traceparent'))
            this.traceparent = this.traceparent === undefined ? value : '';
          break;
        case 12:
          if (isName(name, 'Content-Type', 'content-type')) this.contentType ??= value;
          else if (isName(name, 'X-Request-Id', 'x-request-id')) this.requestId ??= value;
          break;
        case 13:
          if (isName(name, 'Authorization', 'authorization')) {
            this.authorizationCount++;
            if (value !== '') this.authorization = value;
          }
          break;
        case 14:
          if (isName(name, 'Content-Length', 'content-length')) this.contentLength = value;
          break;
        case 16:
          if (isName(name, 'Content-Encoding', 'content-encoding'))
            this.contentEncoding = addToList(this.contentEncoding, value);
          break;
        case 17:
          if (isName(name, 'Transfer-Encoding', 'transfer-encoding'))
            this.transferEncoding = addToList(this.transferEncoding, value);
          break;
      }
    }
  }
}

function isName(name: string, capitalised: string, lower: string): boolean {
  return name === capitalised || name === lower || name.toLowerCase() === lower;
}

/** Two lines with the same name are one list (RFC 9110, 5.3). */
function addToList(list: string | undefined, value: string, separator = ', '): string {
  return list === undefined ? value : list + separator + value;
}

/**
 * A request whose header lines are read in one pass. Before a request is served, Node itself reads its `headers`, for
 * `Expect` and for the length of the body. To save time, `headers` is a substitute with only these values until
 * readHead() is called. From then on, `headers` is Node's object of all headers, which Node makes at its first use.
 */
export class Request extends IncomingMessage {
  head: RequestHead | undefined;
  isHeadRead: boolean;
  /** Found before the request is served: an unknown `Expect`, or a fault in the body of a request that waits. */
  earlyError: ErrorCode | undefined;
  /** The bytes that came behind a WebSocket handshake; undefined for all other requests. */
  upgradeHead: Buffer | undefined;

  /** An implicit constructor would pass the arguments by a spread, and V8 does not inline such a call. */
  constructor(socket: Socket) {
    super(socket);
    this.head = undefined;
    this.isHeadRead = false;
    this.earlyError = undefined;
    this.upgradeHead = undefined;
    // A connection that brings too many requests is cut. The bytes that Node is still parsing can hold a thousand more
    // requests, so the parser is stopped.
    if (socket.destroyed) stopParsingAfter(this);
  }

  /** From this call on, `headers` is Node's object. */
  readHead(): RequestHead {
    this.isHeadRead = true;
    this.head ??= new RequestHead(this.rawHeaders);
    return this.head;
  }
}

overrideHeaders(Request.prototype, (request) => {
  if (request.isHeadRead) return undefined;
  request.head ??= new RequestHead(request.rawHeaders);
  const { expect, contentLength, transferEncoding } = request.head;
  // Node 24 expects a body if the object has one of the two hyphenated names below, even with the value undefined. So
  // without a body, RequestHead itself is the substitute: of the three names, it has only `expect`.
  if (contentLength === undefined && transferEncoding === undefined) return request.head;
  return { expect, 'content-length': contentLength, 'transfer-encoding': transferEncoding };
});

/** Recognises a WebSocket handshake (RFC 6455, 4.1). A request with several protocols or with a body is none. */
export function isHandshake(request: Request): boolean {
  const { upgrade, contentLength = '0', transferEncoding, expect } = request.readHead();
  if (request.method !== 'GET' || upgrade?.toLowerCase() !== 'websocket' || request.httpVersion !== '1.1') return false;
  return contentLength === '0' && transferEncoding === undefined && expect === undefined;
}

/**
 * @throws HttpError MALFORMED_HOST, DUPLICATE_AUTHORIZATION, TOO_MANY_HEADERS, UNSUPPORTED_TRANSFER_CODING,
 *   HTTP_VERSION_NOT_SUPPORTED
 */
export function checkHead(request: Request, head: RequestHead): void {
  if (request.httpVersionMajor !== 1) throw refusal('HTTP_VERSION_NOT_SUPPORTED');
  if (head.hostCount !== 1 || head.host !== lastValidHost) checkHost(request, head);
  if (head.authorizationCount > 1) throw refusal('DUPLICATE_AUTHORIZATION');
  if (request.rawHeaders.length > 2 * MAX_HEADER_LINES) throw refusal('TOO_MANY_HEADERS');
  if (head.transferEncoding !== undefined) checkTransferCoding(request, head.transferEncoding);
}

/** Nearly every request has the Host of the request before, so nearly none is checked again. */
let lastValidHost: string | undefined;

function checkHost(request: Request, { host, hostCount }: RequestHead): void {
  // HTTP/1.1 demands exactly one Host (RFC 9112, 3.2). HTTP/1.0 demands none.
  if (hostCount === 0 && request.httpVersionMinor === 0) return;
  if (hostCount !== 1 || !HOST.test(host as string)) throw refusal('MALFORMED_HOST');
  lastValidHost = host;
}

/**
 * Matches the value of Host: a name, an IPv4 address or a bracketed IPv6 address, and perhaps a port. A comma, a user
 * or a path does not match (RFC 3986, 3.2.2). No name of DNS has 1,000 characters, and the class `URL` needs 0.1 s for
 * 16 KiB of escaped accents.
 */
const HOST = /^(?!.{1001})(?:\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9._~!$&'()*+;=-]|%[0-9A-Fa-f]{2})+)(?::\d{0,5})?$/;

/** Refuses an unknown coding with 501, and any coding in HTTP/1.0 with 400 as a faulty framing (RFC 9112, 6.1). */
function checkTransferCoding(request: Request, coding: string): void {
  // The parser of Node 20 accepts an empty coding.
  if (coding === '') throw refusal('MALFORMED_REQUEST', 'The request has an empty transfer coding');
  if (coding.toLowerCase() !== 'chunked') throw refusal('UNSUPPORTED_TRANSFER_CODING');
  if (request.httpVersionMinor === 0)
    throw refusal('MALFORMED_REQUEST', 'The request has a transfer coding, which HTTP/1.0 does not know');
}

/** Matches an id of the client that is safe in a header, a log line and a file name. */
const WELL_FORMED_ID = /^[\w.-]{1,128}$/;

/** Returns a function that chooses the id of a request: a well-formed `X-Request-Id`, or a prefix and a count. */
export function createRequestIds(): (sent?: string) => string {
  // An id is not a secret, so this process need not load node:crypto (builtins.ts).
  const prefix = Array.from({ length: 12 }, () => Math.floor(Math.random() * 16).toString(16)).join('');
  let count = 0;
  return (sent) => (sent !== undefined && WELL_FORMED_ID.test(sent) ? sent : `${prefix}-${(count++).toString(36)}`);
}
