// Reads the header section once and refuses what node:http lets through (decisions 2.3 and 2.4). Nothing here decides
// anything: it hands on the few header values that later steps ask for.
import type { Socket } from 'node:net';
import { IncomingMessage } from '../base/builtins.ts';
import { type ErrorCode, refusal } from '../base/errors.ts';
import { overrideHeaders, stopParsingAfter } from '../base/node-internals.ts';

/** The header values the service reads, as sent: Node has trimmed SP and HTAB, and nothing else is ever trimmed. */
export interface RequestHead {
  readonly host: string | undefined;
  readonly hosts: number;
  /** Undefined when absent or empty. */
  readonly authorization: string | undefined;
  readonly authorizations: number;
  readonly contentType: string | undefined;
  readonly contentEncoding: string | undefined;
  readonly contentLength: string | undefined;
  readonly transferEncoding: string | undefined;
  readonly requestId: string | undefined;
  readonly expect: string | undefined;
  readonly origin: string | undefined;
  /** It asks for another protocol. */
  readonly hasUpgrade: boolean;
}

/** More lines than this are refused: Node 20 drops those past 1,000 in silence, and an `Authorization` with them. */
const MAX_HEADER_LINES = 1000;

/**
 * Every name by its length, so that a line of no interest costs one comparison. Header names are case-insensitive
 * (RFC 9110, 5.1); the two usual spellings are compared as they are.
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
  let hasUpgrade = false;
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] as string;
    const value = raw[i + 1] as string;
    switch (name.length) {
      case 4:
        if (is(name, 'Host', 'host')) {
          host = value;
          hosts++;
        }
        break;
      case 6:
        if (is(name, 'Origin', 'origin')) origin ??= value;
        else if (is(name, 'Expect', 'expect')) expect = value;
        break;
      case 7:
        if (is(name, 'Upgrade', 'upgrade')) hasUpgrade = true;
        break;
      case 12:
        if (is(name, 'Content-Type', 'content-type')) contentType ??= value;
        else if (is(name, 'X-Request-Id', 'x-request-id')) requestId ??= value;
        break;
      case 13:
        if (is(name, 'Authorization', 'authorization')) {
          authorizations++;
          if (value !== '') authorization = value;
        }
        break;
      case 14:
        if (is(name, 'Content-Length', 'content-length')) contentLength = value;
        break;
      case 16:
        if (is(name, 'Content-Encoding', 'content-encoding')) contentEncoding = joined(contentEncoding, value);
        break;
      case 17:
        if (is(name, 'Transfer-Encoding', 'transfer-encoding')) transferEncoding = joined(transferEncoding, value);
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
    hasUpgrade,
  };
}

function is(name: string, capitalised: string, lower: string): boolean {
  return name === capitalised || name === lower || name.toLowerCase() === lower;
}

function joined(before: string | undefined, value: string): string {
  return before === undefined ? value : `${before}, ${value}`;
}

/**
 * A request whose headers are read in one pass. Node itself asks for `headers` on every request, for `Expect` and to
 * know whether a body comes: until the request is in our hands it gets the scanned values, and only whoever asks later,
 * such as a controller, pays for the whole object.
 */
export class Request extends IncomingMessage {
  scanned: RequestHead | undefined;
  received: boolean;
  /** What is wrong with its body, noticed while it waited for its turn. */
  broken: ErrorCode | undefined;

  /**
   * Spelt out: the implicit one hands on its arguments by a spread, which the engine cannot compile into its caller.
   */
  constructor(socket: Socket) {
    super(socket);
    this.scanned = undefined;
    this.received = false;
    this.broken = undefined;
    // The connection has been cut because its requests are too many: one read may bring a thousand more.
    if (socket.destroyed) stopParsingAfter(this);
  }

  /** The first look at the head by us; from here on `headers` is Node's own. */
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
  // Node 24 asks by `in` whether one of the two is there.
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

/** The last Host found sound: nearly every request brings the same. */
let lastHost: string | undefined;

function checkHost(request: Request, { host, hosts }: RequestHead): void {
  // RFC 9112, 3.2: exactly one, in HTTP/1.1; HTTP/1.0 knows no Host.
  if (hosts === 0 && request.httpVersionMinor === 0) return;
  if (hosts !== 1 || host === undefined || !HOST.test(host)) throw refusal('MALFORMED_HOST');
  lastHost = host;
}

/** A reg-name, an IPv4 or a bracketed IPv6 address, and a port: no comma, no user part, no path (RFC 3986, 3.2.2). */
const HOST = /^(?:\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9._~!$&'()*+;=-]|%[0-9A-Fa-f]{2})+)(?::\d{0,5})?$/;

function checkTransferCoding(request: Request, coding: string): void {
  // RFC 9112, 6.1: a coding that is not understood gets 501; with HTTP/1.0 the framing is taken for faulty.
  if (coding === '') throw refusal('MALFORMED_REQUEST', 'The request has an empty transfer coding');
  if (coding.toLowerCase() !== 'chunked') throw refusal('UNSUPPORTED_TRANSFER_CODING');
  if (request.httpVersionMinor === 0)
    throw refusal('MALFORMED_REQUEST', 'The request has a transfer coding, which HTTP/1.0 does not know');
}
