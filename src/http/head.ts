// Reads the header section once, and refuses malformed requests that node:http accepts (decisions 2.3 and 2.4). Later
// steps get from here the few header values that they need.
import type { Socket } from 'node:net';
import { IncomingMessage } from '../base/builtins.ts';
import { type ErrorCode, refusal } from '../base/errors.ts';
import { overrideHeaders, stopParsingAfter } from '../base/node-internals.ts';

/**
 * The header values that the service reads, as sent. Node has already trimmed spaces and tabs, and no other code trims
 * them.
 */
export interface RequestHead {
  readonly host: string | undefined;
  /** The number of `Host` lines. */
  readonly hosts: number;
  /** The header `Authorization`; undefined when it is absent or empty. */
  readonly authorization: string | undefined;
  /** The number of `Authorization` lines. */
  readonly authorizations: number;
  readonly contentType: string | undefined;
  readonly contentEncoding: string | undefined;
  readonly contentLength: string | undefined;
  readonly transferEncoding: string | undefined;
  readonly requestId: string | undefined;
  readonly expect: string | undefined;
  readonly origin: string | undefined;
  /** The header `traceparent`. The value is '' when the request has two such lines, because then neither counts. */
  readonly traceparent: string | undefined;
  /** True when the client asks for another protocol by the header `Upgrade`. */
  readonly hasUpgrade: boolean;
}

/**
 * Maximum header lines of a request. A request with more lines is refused, because Node 20 drops the lines past 1,000
 * in silence, even an `Authorization`.
 */
const MAX_HEADER_LINES = 1000;

/**
 * Scans the header lines once. The length of a name is compared first, so most lines cost one comparison. Names are
 * case-insensitive (RFC 9110, 5.1). The two usual spellings match without a conversion.
 */
export function scanHead(raw: readonly string[]): RequestHead {
  let host: string | undefined;
  let hosts = 0;
  let authorization: string | undefined;
  let authorizations = 0;
  let contentType: string | undefined;
  let contentEncoding: string | undefined;
  let contentLength: string | undefined;
  let transferEncoding: string | undefined;
  let requestId: string | undefined;
  let expect: string | undefined;
  let origin: string | undefined;
  let traceparent: string | undefined;
  let hasUpgrade = false;
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string;
    const value = raw[i + 1] as string;
    switch (name.length) {
      case 4:
        if (isName(name, 'Host', 'host')) {
          host = value;
          hosts++;
        }
        break;
      case 6:
        if (isName(name, 'Origin', 'origin')) origin ??= value;
        else if (isName(name, 'Expect', 'expect')) expect = value;
        break;
      case 7:
        if (isName(name, 'Upgrade', 'upgrade')) hasUpgrade = true;
        break;
      case 11:
        if (isName(name, 'Traceparent', 'traceparent')) traceparent = traceparent === undefined ? value : '';
        break;
      case 12:
        if (isName(name, 'Content-Type', 'content-type')) contentType ??= value;
        else if (isName(name, 'X-Request-Id', 'x-request-id')) requestId ??= value;
        break;
      case 13:
        if (isName(name, 'Authorization', 'authorization')) {
          authorizations++;
          if (value !== '') authorization = value;
        }
        break;
      case 14:
        if (isName(name, 'Content-Length', 'content-length')) contentLength = value;
        break;
      case 16:
        if (isName(name, 'Content-Encoding', 'content-encoding')) contentEncoding = join(contentEncoding, value);
        break;
      case 17:
        if (isName(name, 'Transfer-Encoding', 'transfer-encoding')) transferEncoding = join(transferEncoding, value);
        break;
    }
  }
  return {
    host,
    hosts,
    authorization,
    authorizations,
    contentType,
    contentEncoding,
    contentLength,
    transferEncoding,
    requestId,
    expect,
    origin,
    traceparent,
    hasUpgrade,
  };
}

function isName(name: string, capitalised: string, lower: string): boolean {
  return name === capitalised || name === lower || name.toLowerCase() === lower;
}

function join(before: string | undefined, value: string): string {
  return before === undefined ? value : `${before}, ${value}`;
}

/**
 * A request whose headers are read in one pass. Node itself reads `headers` of every request, for `Expect` and for the
 * framing of the body. Until receive() is called, `headers` has only the scanned values. After that call, readers such
 * as a controller get Node's complete object.
 */
export class Request extends IncomingMessage {
  scanned: RequestHead | undefined;
  received: boolean;
  /** The error that was found in the body of the request while the request waited for its turn. */
  broken: ErrorCode | undefined;

  /**
   * The constructor is explicit for speed. An implicit one would pass its arguments by a spread, and V8 does not inline
   * such a call.
   */
  constructor(socket: Socket) {
    super(socket);
    this.scanned = undefined;
    this.received = false;
    this.broken = undefined;
    // The connection has been cut because it brought too many requests. One read may bring a thousand more, so parsing
    // stops.
    if (socket.destroyed) stopParsingAfter(this);
  }

  /** Returns the scanned values. From now on `headers` is the object of Node. */
  receive(): RequestHead {
    this.received = true;
    this.scanned ??= scanHead(this.rawHeaders);
    return this.scanned;
  }
}

overrideHeaders(Request.prototype, (request) => {
  if (request.received) return undefined;
  request.scanned ??= scanHead(request.rawHeaders);
  const { expect, contentLength, transferEncoding } = request.scanned;
  if (contentLength === undefined && transferEncoding === undefined) return request.scanned;
  // Node 24 tests with `in` whether the object has these two names. So a request without a body gets an object without
  // them (see the line above).
  return { expect, 'content-length': contentLength, 'transfer-encoding': transferEncoding };
});

/**
 * @throws HttpError MALFORMED_HOST, DUPLICATE_AUTHORIZATION, TOO_MANY_HEADERS, UNSUPPORTED_TRANSFER_CODING,
 *   HTTP_VERSION_NOT_SUPPORTED
 */
export function checkHead(request: Request, head: RequestHead): void {
  if (request.httpVersionMajor !== 1) throw refusal('HTTP_VERSION_NOT_SUPPORTED');
  if (head.hosts !== 1 || head.host !== lastHost) checkHost(request, head);
  if (head.authorizations > 1) throw refusal('DUPLICATE_AUTHORIZATION');
  if (request.rawHeaders.length > 2 * MAX_HEADER_LINES) throw refusal('TOO_MANY_HEADERS');
  if (head.transferEncoding !== undefined) checkTransferCoding(request, head.transferEncoding);
}

/** The last valid Host. Nearly every request has the same Host, which is then not checked again. */
let lastHost: string | undefined;

function checkHost(request: Request, { host, hosts }: RequestHead): void {
  // HTTP/1.1 demands exactly one Host (RFC 9112, 3.2). HTTP/1.0 has none.
  if (hosts === 0 && request.httpVersionMinor === 0) return;
  if (hosts !== 1 || host === undefined || !HOST.test(host)) throw refusal('MALFORMED_HOST');
  lastHost = host;
}

/**
 * Matches the value of Host: a name, an IPv4 address or a bracketed IPv6 address, and perhaps a port. A comma, a user
 * or a path does not match (RFC 3986, 3.2.2).
 */
const HOST = /^(?:\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9._~!$&'()*+;=-]|%[0-9A-Fa-f]{2})+)(?::\d{0,5})?$/;

function checkTransferCoding(request: Request, coding: string): void {
  // An unknown coding is 501, and any coding in HTTP/1.0 is a faulty framing (RFC 9112, 6.1).
  if (coding === '') throw refusal('MALFORMED_REQUEST', 'The request has an empty transfer coding');
  if (coding.toLowerCase() !== 'chunked') throw refusal('UNSUPPORTED_TRANSFER_CODING');
  if (request.httpVersionMinor === 0)
    throw refusal('MALFORMED_REQUEST', 'The request has a transfer coding, which HTTP/1.0 does not know');
}

/** Matches an id of the client that is safe in a header, a log line and a file name. */
const WELL_FORMED_ID = /^[\w.-]{1,128}$/;

/**
 * @returns a function that chooses the id of a request: a well-formed id of the client, or else a new one, made of a
 *   prefix of the process and a count. `sent` is the value of `X-Request-Id`
 */
export function createRequestIds(): (sent?: string) => string {
  // An id is not a secret, so this process need not load node:crypto (builtins.ts).
  const prefix = Array.from({ length: 12 }, () => Math.floor(Math.random() * 16).toString(16)).join('');
  let count = 0;
  return (sent) => (sent !== undefined && WELL_FORMED_ID.test(sent) ? sent : `${prefix}-${(count++).toString(36)}`);
}
