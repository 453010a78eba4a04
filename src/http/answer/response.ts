// The only writer to the socket: every answer, with its headers, its envelope and its log line, leaves here.
import type { ServerResponse } from 'node:http';
import { performance } from 'node:perf_hooks';
import { envelope } from '../../base/envelope.ts';
import { type ErrorCode, type HttpError, isHttpError, refusal } from '../../base/errors.ts';
import { describeError, type Log } from '../../base/log.ts';
import { servingPage } from '../../base/page-name.ts';
import type { AccessLog } from '../access-log.ts';
import { unsentBytes } from '../connections.ts';
import type { Exchange } from '../exchange.ts';
import { EXPOSE, JSON_HEADERS, NO_STORE, ON_EVERY_ANSWER, ownedHeaders } from '../headers.ts';
import type { WatchStream } from '../open-streams.ts';
import { encode, isJson } from './json.ts';
import { createReplies } from './replies.ts';

export interface RequestObserver {
  /** @param duration milliseconds from the complete head to the last byte of the answer */
  answered(exchange: Exchange, status: number, bytes: number, duration: number): void;
}

export interface ResponderOptions {
  readonly log: Log;
  /** Undefined: requests have no lines. */
  readonly accessLog: AccessLog | undefined;
  readonly bodyLimit: number;
  /** A 500 tells the client its cause. */
  readonly development: boolean;
  /** HTTPS. */
  readonly isSecure: boolean;
  readonly observer?: RequestObserver | undefined;
  /** Told of every exchange once, when its answer has been given. */
  readonly onSettled: (exchange: Exchange) => void;
  /** Whether requests wait behind this one on its connection. */
  readonly isFollowed: (exchange: Exchange) => boolean;
  /** Told before, of an answer that takes its time: its head is out. */
  readonly onStreaming: (exchange: Exchange) => void;
  /** Called with each stream that is opened. */
  readonly watch: WatchStream;
}

export interface Responder {
  /** The result of an operation (decisions 3.6), status 200. */
  result(exchange: Exchange, result: unknown): void;
  /** A body as it is. It carries a secret, so no cache may keep it. */
  secret(exchange: Exchange, status: number, body: object): void;
  preflight(exchange: Exchange): void;
  /** Whatever was thrown: an HttpError reaches the client, anything else is a 500 whose cause goes to the log. */
  fail(exchange: Exchange, thrown: unknown): void;
  /** From now on every answer ends its connection, unless another request waits on it. */
  setDraining(): void;
}

const NONE: readonly string[] = [];
/** After these the connection cannot be trusted to hold another request, or is not worth reading on. */
const CLOSING: ReadonlySet<string> = new Set<ErrorCode>([
  'BODY_TOO_LARGE',
  'UNSUPPORTED_TRANSFER_CODING',
  'MALFORMED_REQUEST',
  'REQUEST_TIMEOUT',
  'HTTP_VERSION_NOT_SUPPORTED',
  'EXPECTATION_FAILED',
]);
/** Milliseconds that a client gets to read its refusal while it is still sending. */
const LINGER = 2000;

export function createResponder({
  log,
  accessLog,
  bodyLimit,
  development,
  isSecure,
  observer,
  onSettled,
  isFollowed,
  onStreaming,
  watch,
}: ResponderOptions): Responder {
  let draining = false;
  // One array for every usual answer, its last two values rewritten in place: an array or an object for each costs 4 to
  // 19 percent of a request (bench/NOTES.md). Safe because writeHead() has read it when it returns.
  const success = [...JSON_HEADERS, 'X-Request-Id', '', 'Content-Length', ''];
  const uncached = [...JSON_HEADERS, ...NO_STORE, 'X-Request-Id', '', 'Content-Length', ''];

  /**
   * @param extra further header lines, flat
   * @param last the connection ends with this answer; Node adds the header line that says so
   */
  function send(
    exchange: Exchange,
    status: number,
    body: string,
    usual: string[],
    extra: readonly string[] = NONE,
    last = false,
  ): void {
    const { response } = exchange;
    const bytes = Buffer.byteLength(body);
    if (last || (draining && !isFollowed(exchange))) response.shouldKeepAlive = false;
    usual[usual.length - 3] = exchange.requestId;
    usual[usual.length - 1] = String(bytes);
    response.writeHead(status, extra === NONE ? usual : [...usual, ...extra]);
    end(exchange, body);
    settle(exchange, status, exchange.verb === 'HEAD' || response.destroyed ? 0 : bytes);
  }

  function end(exchange: Exchange, body: string | Uint8Array): void {
    const { response } = exchange;
    if (!response.shouldKeepAlive && isStillSending(exchange)) endAfterRequest(exchange, body);
    else endWith(response, body, isSecure);
  }

  const replies = createReplies({
    log,
    fail,
    send(exchange, status, headers, body) {
      open(exchange, status, headers, false);
      end(exchange, body);
      settle(exchange, status, exchange.verb === 'HEAD' ? 0 : Buffer.byteLength(body));
    },
    open(exchange, status, headers, last) {
      open(exchange, status, headers, last);
      clearTimeout(exchange.timer);
      exchange.streaming = true;
      onStreaming(exchange);
    },
    close,
    watch,
  });

  /** The head of an answer to which the operation has brought the rest of the headers. */
  function open(exchange: Exchange, status: number, headers: readonly string[], last: boolean): void {
    const { response, requestId } = exchange;
    if (last || isUnread(exchange) || (draining && !isFollowed(exchange))) response.shouldKeepAlive = false;
    response.writeHead(status, [...headers, ...ON_EVERY_ANSWER, ...EXPOSE, 'X-Request-Id', requestId]);
  }

  function close(exchange: Exchange, status: number, bytes: number): void {
    if (!exchange.settled) settle(exchange, status, bytes);
  }

  function settle(exchange: Exchange, answered: number, bytes: number): void {
    exchange.settled = true;
    if (exchange.timer !== undefined) clearTimeout(exchange.timer);
    onSettled(exchange);
    if (accessLog === undefined && observer === undefined) return;
    const { response } = exchange;
    // Nobody was left to take it: the log says 499, as nginx does.
    if (response.destroyed) return report(exchange, 499, bytes);
    const { socket } = response;
    exchange.unsent = socket === null ? 0 : unsentBytes(socket);
    if (exchange.unsent === 0) return report(exchange, answered, bytes);
    // Listeners for the few whose client does not take the whole answer at once. A write that failed counts as
    // finished.
    let finished = false;
    response.on('finish', () => {
      finished = socket?.destroyed === false;
    });
    response.on('close', () => {
      if (finished && socket?.errored === null) report(exchange, answered, bytes);
      else report(exchange, 499, Math.max(0, bytes - exchange.unsent));
    });
  }

  /** The last byte is out, or none will be any more. */
  function report(exchange: Exchange, status: number, bytes: number): void {
    const now = performance.now();
    accessLog?.write(exchange, status, bytes, now);
    observer?.answered(exchange, status, bytes, now - exchange.startedAt);
  }

  function result(exchange: Exchange, value: unknown): void {
    if (exchange.settled || exchange.streaming) return;
    // Nearly every result is a plain object, and this is all that the other kinds cost it.
    if (
      typeof value === 'object' &&
      value !== null &&
      Object.getPrototypeOf(value) !== Object.prototype &&
      !isJson(value)
    )
      return replies.answer(exchange, value);
    let body: string;
    try {
      body = encode(value);
    } catch (error) {
      return fail(exchange, error);
    }
    send(exchange, exchange.status, body, success, NONE, exchange.streamsBody && isUnread(exchange));
  }

  function secret(exchange: Exchange, status: number, body: object): void {
    if (!exchange.settled) send(exchange, status, JSON.stringify(body), uncached);
  }

  function preflight(exchange: Exchange): void {
    const headers = [...ON_EVERY_ANSWER, 'Access-Control-Max-Age', '86400', 'X-Request-Id', '', 'Content-Length', ''];
    send(exchange, 200, '', headers, NONE, isUnread(exchange));
  }

  /**
   * Whatever is thrown gets an answer: a getter may throw, a proxy may throw at anything, and Node may not take a
   * header.
   */
  function fail(exchange: Exchange, thrown: unknown): void {
    if (exchange.settled || exchange.streaming) return;
    try {
      refuse(exchange, isAnswerable(thrown) ? thrown : refusal('INTERNAL_ERROR', undefined, { cause: thrown }));
    } catch (odd) {
      if (exchange.settled) return;
      if (!exchange.response.headersSent) return refuse(exchange, refusal('INTERNAL_ERROR', undefined, { cause: odd }));
      // The head of another answer is out: nothing more can be said.
      settle(exchange, 500, 0);
      exchange.response.destroy();
    }
  }

  function refuse(exchange: Exchange, error: HttpError): void {
    const headers = error.headers === undefined ? NONE : ownedHeaders(error, log);
    const detail =
      development && error.status >= 500 && error.cause !== undefined ? describeError(error.cause) : undefined;
    const body = envelope(error, exchange.requestId, detail);
    logRefusal(exchange, error);
    const last =
      CLOSING.has(error.code) || isUnread(exchange) || (error.code === 'OVERLOADED' && isStillSending(exchange));
    send(exchange, error.status, body, uncached, headers, last);
  }

  /** More of the body may come than is worth reading for the sake of the connection. */
  function isUnread(exchange: Exchange): boolean {
    const { transferEncoding, contentLength } = exchange.head;
    return isStillSending(exchange) && (transferEncoding !== undefined || Number(contentLength) > bodyLimit);
  }

  function logRefusal(exchange: Exchange, error: HttpError): void {
    exchange.isClientsDoing = isClientsDoing(exchange, error);
    if (error.cause === undefined) return;
    const facts = {
      request_id: exchange.requestId,
      page: servingPage(exchange),
      operation: exchange.operation,
      ...(exchange.credential !== '' && { credential: exchange.credential }),
      status: error.status,
      error_code: error.code,
    };
    if (error.status >= 500 && !exchange.isClientsDoing)
      log.error('request-failed', { ...facts, ...describeError(error.cause) });
    else log.info('request-refused', { ...facts, reason: describeError(error.cause).error });
  }

  return {
    result,
    secret,
    preflight,
    fail,
    setDraining() {
      draining = true;
      replies.drain();
    },
  };
}

/** A brand can be forged or be of another version; what does not look like an answer is a 500 like any other. */
function isAnswerable(thrown: unknown): thrown is HttpError {
  if (!isHttpError(thrown)) return false;
  const { status, code, message } = thrown;
  return (
    Number.isInteger(status) &&
    status >= 400 &&
    status <= 599 &&
    typeof code === 'string' &&
    typeof message === 'string'
  );
}

/**
 * What `end(body)` does, in one piece: that call gives the socket the answer and then an empty string, and Node 20 and
 * 22 gather the two in a `writev`, which costs up to a fifth of a request more than the `write` of one. With TLS no
 * write is done at once, and an `end` right behind it would have the empty string written, too; so there the end waits
 * for the write.
 */
function endWith(response: ServerResponse, body: string | Uint8Array, isSecure: boolean): void {
  const { socket } = response;
  // A pipelined request has no socket before those ahead of it have their answers.
  if (socket === null) {
    response.end(body);
    return;
  }
  socket.cork();
  if (isSecure) response.write(body, () => response.end());
  else response.write(body);
  socket.uncork();
  if (!isSecure) response.end();
}

/** A 500 by the reference, but nothing is wrong with the service: the request asked for what is not there. */
function isClientsDoing({ caller }: Exchange, { code }: HttpError): boolean {
  // With a credential of ours it is the row that names a group that is not there.
  return code === 'OPERATION_NOT_FOUND' || (code === 'DELEGATED_GROUP_NOT_FOUND' && caller === undefined);
}

function isStillSending({ request, hasBody }: Exchange): boolean {
  return hasBody && !request.complete;
}

/**
 * Closing a socket with unread bytes resets it, and the reset can overtake the answer. So the answer goes out whole
 * (its length is known to the client), the rest of the request is read and thrown away for a while, and only then comes
 * the end.
 */
function endAfterRequest({ request, response }: Exchange, body: string | Uint8Array): void {
  response.write(body);
  const end = () => {
    clearTimeout(timer);
    response.end();
  };
  const timer = setTimeout(end, LINGER).unref();
  // body/budget.ts may have stopped it.
  request.socket.resume();
  request.once('end', end);
  request.once('close', end);
  request.on('error', () => {});
  request.resume();
}
