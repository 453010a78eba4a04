// Sends the answers, and then reports each answer to the log and the metrics. An exchange (a request with its answer)
// is answered when the whole answer has been passed to Node. replies.ts prepares results that are not plain objects.
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { type ErrorCode, type HttpError, refusal } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { ServiceDefinition } from '../../service/definition.ts';
import type { AccessLog } from '../access-log.ts';
import { hasWaitingRequests } from '../connections/pipelining.ts';
import { unsentBytes } from '../connections/slow-readers.ts';
import type { Exchange } from '../exchange.ts';
import type { WatchStream } from '../open-streams.ts';
import { endEvent } from '../request-event.ts';
import { createHeaderSets, type HeaderSet, LAST_LINES, NO_STORE } from './answer-headers.ts';
import { encodeResult, isJson } from './json.ts';
import { createRefusals, isAnswerable } from './refusals.ts';
import { createReplies } from './replies.ts';

export interface RequestObserver {
  /**
   * @param status the status of the answer that was sent; 499 when the client has left
   * @param duration milliseconds since the head of the request
   */
  answered(exchange: Exchange, status: number, bytes: number, duration: number): void;
}

export interface ResponderOptions {
  readonly log: Log;
  /** Undefined when requests are not logged. */
  readonly accessLog: AccessLog | undefined;
  readonly bodyLimit: number;
  /** Whether the body of a 5xx has the cause of the error. */
  readonly showsCauses: boolean;
  readonly isSecure: boolean;
  readonly observer?: RequestObserver | undefined;
  /** Called once for each exchange, when its whole answer has been passed to Node. */
  readonly onAnswered: (exchange: Exchange) => void;
  /** Called when the head of a streamed answer has been sent. `onAnswered` follows later. */
  readonly onStreaming: (exchange: Exchange) => void;
  readonly watchStream: WatchStream;
}

export interface Responder {
  /** Sends the result of an operation with the status of the exchange. */
  result(exchange: Exchange, result: unknown): void;
  /** Sends a body that no cache may store, because it can contain a secret. */
  secret(exchange: Exchange, status: number, body: object): void;
  preflight(exchange: Exchange): void;
  /** Answers with an error. Anything but an HttpError becomes a 500, and is logged as its cause. */
  fail(exchange: Exchange, thrown: unknown): void;
  /** Returns the text of an answer to bytes that are no request. @param extra alternating header names and values */
  rawRefusal(error: HttpError, requestId: string, extra?: readonly string[]): string;
  /** Uses the headers and the error format of this service file from now on. */
  useService(service: Pick<ServiceDefinition, 'cors' | 'headers' | 'formatError'> | undefined): void;
  /** Makes each answer from now on end its connection, unless a pipelined request waits on the connection. */
  setDraining(): void;
}

const NO_HEADERS: readonly string[] = [];
/**
 * Errors after which the connection ends, because the start of the next request cannot be found, or because the rest of
 * the body is not worth reading.
 */
const CLOSING_CODES: ReadonlySet<string> = new Set<ErrorCode>([
  'BODY_TOO_LARGE',
  'UNSUPPORTED_TRANSFER_CODING',
  'MALFORMED_REQUEST',
  'REQUEST_TIMEOUT',
  'HTTP_VERSION_NOT_SUPPORTED',
  'EXPECTATION_FAILED',
]);
/** Maximum milliseconds for which the rest of a request is read, so that its client can read the answer meanwhile. */
const LINGER = 2000;

export function createResponder(options: ResponderOptions): Responder {
  const { log, accessLog, bodyLimit, showsCauses, isSecure, observer, onAnswered, onStreaming, watchStream } = options;
  let isDraining = false;
  let headerSets = createHeaderSets(undefined);
  const refusals = createRefusals({ log, showsCauses });

  /**
   * @param usual an array that ends in LAST_LINES. This function replaces the request id and the length in the array,
   *   which can be shared, because writeHead() has read the array when it returns
   * @param extra more headers: alternating names and values
   * @param endsConnection whether the connection ends with this answer; Node then adds the header `Connection`
   */
  function sendText(
    exchange: Exchange,
    status: number,
    body: string,
    usual: string[],
    extra: readonly string[] = NO_HEADERS,
    endsConnection = false,
  ): void {
    if (exchange.capture !== undefined) return deliver(exchange, status, usual, body);
    const { response } = exchange;
    const bytes = Buffer.byteLength(body);
    if (endsConnection || (isDraining && !hasWaitingRequests(exchange))) response.shouldKeepAlive = false;
    usual[usual.length - 3] = exchange.requestId;
    usual[usual.length - 1] = String(bytes);
    response.writeHead(status, extra === NO_HEADERS ? usual : headerSetOf(exchange).extended(usual, extra));
    end(exchange, body);
    complete(exchange, status, exchange.verb === 'HEAD' || response.destroyed ? 0 : bytes);
  }

  const headerSetOf = (exchange: Exchange): HeaderSet => headerSets(exchange.head.origin);

  function end(exchange: Exchange, body: string | Uint8Array): void {
    const { response } = exchange;
    if (!response.shouldKeepAlive && isStillSending(exchange)) endAfterRequest(exchange, body);
    else endWith(response, body, isSecure);
  }

  const replies = createReplies({
    log,
    fail,
    send(exchange, status, headers, body) {
      if (exchange.capture !== undefined) return deliver(exchange, status, headers, body);
      writeHead(exchange, status, headers, false);
      end(exchange, body);
      complete(exchange, status, exchange.verb === 'HEAD' ? 0 : Buffer.byteLength(body));
    },
    sendHead(exchange, status, headers, endsConnection) {
      writeHead(exchange, status, headers, endsConnection);
      clearTimeout(exchange.timeLimitTimer);
      exchange.isStreamingAnswer = true;
      onStreaming(exchange);
    },
    complete(exchange, status, bytes) {
      if (!exchange.isAnswered) complete(exchange, status, bytes);
    },
    watchStream,
  });

  /** @param headers the header lines of the operation; this function adds those of the server */
  function writeHead(exchange: Exchange, status: number, headers: readonly string[], endsConnection: boolean): void {
    const { response, requestId } = exchange;
    if (endsConnection || hasLongRest(exchange) || (isDraining && !hasWaitingRequests(exchange)))
      response.shouldKeepAlive = false;
    response.writeHead(status, [...headerSetOf(exchange).addTo(headers), 'X-Request-Id', requestId]);
  }

  /** Passes the answer to a tool call to the code in mcp/, and sends nothing on the connection. */
  function deliver(exchange: Exchange, status: number, headers: readonly string[], body: string | Uint8Array): void {
    complete(exchange, status, Buffer.byteLength(body));
    exchange.capture?.({ status, headers, body });
  }

  /**
   * Marks the exchange as answered. The report (log line and metrics) follows now, or when the kernel has taken the
   * whole answer.
   */
  function complete(exchange: Exchange, status: number, bytes: number): void {
    exchange.isAnswered = true;
    if (exchange.timeLimitTimer !== undefined) clearTimeout(exchange.timeLimitTimer);
    onAnswered(exchange);
    if (accessLog === undefined && observer === undefined && exchange.event === undefined) return;
    const { response } = exchange;
    // If the client has left, the log says 499, as nginx does.
    if (response.destroyed) return report(exchange, 499, bytes);
    const { socket } = response;
    exchange.unsentBytes = socket === null ? 0 : unsentBytes(socket);
    if (exchange.unsentBytes === 0) return report(exchange, status, bytes);
    // The kernel has not taken the whole answer yet, so the report waits. Node also emits 'finish' after a failed
    // write, so the listeners check the socket, too.
    let isFinished = false;
    response.on('finish', () => {
      isFinished = socket?.destroyed === false;
    });
    response.on('close', () => {
      if (isFinished && socket?.errored === null) report(exchange, status, bytes);
      else report(exchange, 499, Math.max(0, bytes - exchange.unsentBytes));
    });
  }

  /** Called when the last byte is sent, or when the client has left. */
  function report(exchange: Exchange, status: number, bytes: number): void {
    if (accessLog !== undefined || observer !== undefined) {
      const now = performance.now();
      accessLog?.(exchange, status, bytes, now);
      observer?.answered(exchange, status, bytes, now - exchange.startedAt);
    }
    endEvent(exchange, status, bytes);
  }

  function result(exchange: Exchange, value: unknown): void {
    if (exchange.isAnswered) return;
    // Nearly all results are plain objects. For them, this check is the only cost of the other kinds of results.
    if (
      typeof value === 'object' &&
      value !== null &&
      Object.getPrototypeOf(value) !== Object.prototype &&
      !isJson(value)
    )
      return replies.answer(exchange, value);
    let body: string;
    try {
      body = encodeResult(value);
    } catch (error) {
      return fail(exchange, error);
    }
    const endsConnection = exchange.streamsBody && hasLongRest(exchange);
    sendText(exchange, exchange.status, body, headerSetOf(exchange).json, NO_HEADERS, endsConnection);
  }

  function secret(exchange: Exchange, status: number, body: object): void {
    if (!exchange.isAnswered) sendText(exchange, status, JSON.stringify(body), headerSetOf(exchange).uncached);
  }

  function preflight(exchange: Exchange): void {
    const requested = exchange.request.headers['access-control-request-headers'];
    const headers = headerSetOf(exchange).preflight(requested);
    sendText(exchange, 200, '', [...headers, ...LAST_LINES], NO_HEADERS, hasLongRest(exchange));
  }

  /**
   * Answers any value that is thrown. To read the value can throw, too (a getter, a proxy), and Node can reject a
   * header. The answer to such a second error is a 500.
   */
  function fail(exchange: Exchange, thrown: unknown): void {
    if (exchange.isAnswered || exchange.isStreamingAnswer) return;
    try {
      refuse(exchange, isAnswerable(thrown) ? thrown : refusal('INTERNAL_ERROR', undefined, { cause: thrown }), thrown);
    } catch (secondError) {
      if (exchange.isAnswered) return;
      if (!exchange.response.headersSent)
        return refuse(exchange, refusal('INTERNAL_ERROR', undefined, { cause: secondError }), secondError);
      // A head has been sent, so no error can be sent any more.
      complete(exchange, 500, 0);
      exchange.response.destroy();
    }
  }

  function refuse(exchange: Exchange, error: HttpError, thrown: unknown): void {
    const { status, text, contentType, headers } = refusals.answerTo(exchange, error, thrown);
    const endsConnection =
      CLOSING_CODES.has(error.code) ||
      hasLongRest(exchange) ||
      (error.code === 'OVERLOADED' && isStillSending(exchange));
    const set = headerSetOf(exchange);
    if (contentType === undefined) return sendText(exchange, status, text, set.uncached, headers, endsConnection);
    const lines = set.addTo(['Content-Type', contentType, ...NO_STORE, ...headers]);
    sendText(exchange, status, text, [...lines, ...LAST_LINES], NO_HEADERS, endsConnection);
  }

  /** Says whether the rest of the body can be so long that it is better to end the connection than to read the rest. */
  function hasLongRest(exchange: Exchange): boolean {
    const { transferEncoding, contentLength } = exchange.head;
    return isStillSending(exchange) && (transferEncoding !== undefined || Number(contentLength) > bodyLimit);
  }

  return {
    result,
    secret,
    preflight,
    fail,
    rawRefusal: (error, requestId, extra) => refusals.rawAnswer(error, requestId, headerSets(undefined), extra),
    useService(service) {
      headerSets = createHeaderSets(service);
      refusals.useFormat(service?.formatError);
    },
    setDraining() {
      isDraining = true;
      replies.drain();
    },
  };
}

/**
 * Does the same as `response.end(body)`, but faster. On Node 20 and 22, `end(body)` writes the answer and an empty
 * string by one `writev`, which costs up to a fifth of a request more than a `write` and then an `end()`. With TLS, a
 * write is asynchronous, and `end()` before its end would write the empty string, too. So with TLS, `end()` follows in
 * the callback of the write.
 */
function endWith(response: ServerResponse, body: string | Uint8Array, isSecure: boolean): void {
  const socket = response.socket as Socket;
  socket.cork();
  if (isSecure) response.write(body, () => response.end());
  else response.write(body);
  socket.uncork();
  if (!isSecure) response.end();
}

function isStillSending({ request, hasBody }: Exchange): boolean {
  return hasBody && !request.complete;
}

/**
 * Sends an answer while the client is still sending its request. To close a socket with unread bytes would reset the
 * connection, and the client could lose the answer. So first, the rest of the request is read and dropped, for LINGER
 * at most.
 */
function endAfterRequest({ request, response }: Exchange, body: string | Uint8Array): void {
  response.write(body);
  const end = () => {
    clearTimeout(timer);
    response.end();
  };
  const timer = setTimeout(end, LINGER).unref();
  request.once('end', end);
  request.once('close', end);
  // An error is followed by 'close'.
  request.on('error', () => {});
  request.resume();
}
