// Sends the answers, and then reports each answer to the log and the metrics. An exchange is answered when the whole
// answer has been passed to Node. replies.ts prepares results that are not plain objects.
import { isReply, Reply } from '../../api/controller/reply.ts';
import { isErrorReply } from '../../api/controller/service.ts';
import { JSON_TYPE } from '../../base/envelope.ts';
import { type ErrorCode, type HttpError, refusal } from '../../base/errors.ts';
import { attempt } from '../../base/failure.ts';
import type { Log } from '../../base/log.ts';
import type { ServiceDefinition } from '../../callers/access/definition.ts';
import type { WatchStream } from '../../callers/access/open-streams.ts';
import type { AccessLog } from '../access-log.ts';
import { hasWaitingRequests } from '../connections/pipelining.ts';
import type { Exchange } from '../exchange.ts';
import type { ExchangeContexts } from '../exchange-contexts.ts';
import {
  createHeaderSets,
  createOwnCorsSet,
  type HeaderSet,
  LAST_LINES,
  NO_LINES,
  NO_STORE,
  type ServiceHeaders,
  uniteVary,
} from './answer-headers.ts';
import { type Compress, createCompression } from './compression.ts';
import { closeAfterRequest, endAnswer, hasLongRest, isStillSending } from './end-answer.ts';
import { encodeResult, isJson, isWebObject, nameKind } from './json.ts';
import { createRefusals, isAnswerable, type Refusals } from './refusals.ts';
import { createReplies, type Replies } from './replies.ts';
import { createReport, type Report, type RequestObserver } from './report.ts';
import { type Answer, NEVER_A_BODY } from './result.ts';

export interface ResponderOptions {
  readonly log: Log;
  /** Undefined when requests are not logged. */
  readonly accessLog: AccessLog | undefined;
  readonly bodyLimit: number;
  /** Whether the body of a 5xx has the cause of the error. */
  readonly showsCauses: boolean;
  readonly isSecure: boolean;
  readonly compresses: boolean;
  readonly observer?: RequestObserver | undefined;
  readonly basePath: string;
  /** Called once for each exchange, when its whole answer has been passed to Node. */
  readonly onAnswered: (exchange: Exchange) => void;
  /** Called when the head of a streamed answer has been sent. `onAnswered` follows later. */
  readonly onStreaming: (exchange: Exchange) => void;
  readonly watchStream: WatchStream;
  readonly contexts: ExchangeContexts;
}

/** Errors that end the connection: the next request cannot be found, or the body's rest is not worth reading. */
const CLOSING_CODES: ReadonlySet<string> = new Set<ErrorCode>([
  'BODY_TOO_LARGE',
  'UNSUPPORTED_TRANSFER_CODING',
  'MALFORMED_REQUEST',
  'REQUEST_TIMEOUT',
  'HTTP_VERSION_NOT_SUPPORTED',
  'EXPECTATION_FAILED',
]);

export class Responder {
  readonly #options: ResponderOptions;
  readonly #refusals: Refusals;
  readonly #replies: Replies;
  readonly #report: Report;
  /** Undefined unless COMPRESSION is on. */
  readonly #compress: Compress | undefined;
  #headerSets = createHeaderSets(undefined);
  #ownCorsSet = createOwnCorsSet();
  #preflightStatus: 200 | 204 = 200;
  #isDraining = false;

  constructor(options: ResponderOptions) {
    const { log, showsCauses, watchStream, contexts } = options;
    this.#options = options;
    this.#refusals = createRefusals({ log, showsCauses });
    this.#report = createReport(options);
    this.#compress = options.compresses
      ? createCompression((exchange, error) => this.fail(exchange, error))
      : undefined;
    this.#replies = createReplies({ log, respond: this, watchStream, run: contexts.run });
  }

  /** Sends the result of an operation with the status of the exchange. */
  result(exchange: Exchange, value: unknown): void {
    if (exchange.answer.isComplete) return;
    // Nearly all results are plain objects. For them, this check is the only cost of the other kinds of results.
    if (
      typeof value === 'object' &&
      value !== null &&
      Object.getPrototypeOf(value) !== Object.prototype &&
      !isJson(value)
    )
      return this.#replies.answer(exchange, value);
    // A Reply without a value has no body, and `true` has the success message.
    const { status, ownHeaders } = exchange.answer;
    if (ownHeaders !== undefined) return this.#replies.answer(exchange, new Reply(status, value ?? true));
    let body: string;
    try {
      body = encodeResult(value);
    } catch (error) {
      return this.fail(exchange, error);
    }
    const endsConnection = exchange.body.isStreamed && this.#hasLongRest(exchange);
    const set = this.#headerSetOf(exchange);
    const lines = exchange.caller.user === undefined ? set.json : set.personal;
    if (this.#compress === undefined || exchange.answer.capture !== undefined)
      return this.#sendText(exchange, status, body, lines, NO_LINES, endsConnection);
    this.#compress(exchange, lines, body, (content, extra) =>
      this.#sendText(exchange, status, content, lines, extra, endsConnection),
    );
  }

  /** Sends a body that no cache may store, because it can contain a secret. */
  secret(exchange: Exchange, status: number, body: object): void {
    if (!exchange.answer.isComplete)
      this.#sendText(exchange, status, JSON.stringify(body), this.#headerSetOf(exchange).uncached);
  }

  /** Sends a whole answer. @throws Error when a header cannot be sent; then, nothing has been sent */
  send(exchange: Exchange, status: number, headers: readonly string[], body: string | Uint8Array): void {
    if (exchange.answer.capture !== undefined) return this.#deliver(exchange, status, headers, body);
    const lines = this.#allLines(exchange, status, headers);
    if (this.#compress === undefined) return this.#sendWhole(exchange, status, lines, body);
    this.#compress(exchange, lines, body, (content, extra) => {
      // The value of another field can be the same text.
      const length = lines.findIndex((line, i) => i % 2 === 0 && line === 'Content-Length');
      if (content !== body) lines[length + 1] = String(content.length);
      this.#sendWhole(exchange, status, uniteVary([...lines, ...extra]), content);
    });
  }

  /** Sends the head of a streamed answer. `endsConnection` ends the connection with the answer. @throws like `send` */
  sendHead(exchange: Exchange, status: number, headers: readonly string[], endsConnection: boolean): void {
    this.#writeLines(exchange, status, this.#allLines(exchange, status, headers), endsConnection);
    this.#beginStreaming(exchange);
  }

  /** Sends a file that no operation has returned. */
  file(exchange: Exchange, answer: Answer): void {
    this.#replies.file(exchange, answer);
  }

  preflight(exchange: Exchange): void {
    const requested = exchange.request.headers['access-control-request-headers'];
    const headers = this.#headerSetOf(exchange).preflight(requested);
    if (this.#preflightStatus === 200)
      return this.#sendText(exchange, 200, '', [...headers, ...LAST_LINES], NO_LINES, this.#hasLongRest(exchange));
    // A 204 has no `Content-Length` (RFC 9110, 8.6).
    this.#sendWhole(exchange, 204, headers, '');
  }

  /**
   * Answers any value that is thrown. Anything but an HttpError becomes a 500, and is logged as its cause. To read the
   * value can throw, too (a getter, a proxy), and Node can reject a header. The answer to such a second error is a 500.
   * An answer that streams has sent its status, so its connection is cut.
   */
  fail(exchange: Exchange, thrown: unknown): void {
    if (exchange.answer.isComplete) return;
    if (exchange.answer.isStreaming) return exchange.answer.live?.fail(thrown);
    exchange.answer.takeBack?.();
    try {
      this.#refuse(
        exchange,
        isAnswerable(thrown) ? thrown : refusal('INTERNAL_ERROR', undefined, { cause: causeOf(thrown) }),
        thrown,
      );
    } catch (secondError) {
      if (exchange.answer.isComplete) return;
      if (!exchange.response.headersSent)
        return this.#refuse(exchange, refusal('INTERNAL_ERROR', undefined, { cause: secondError }), secondError);
      // A head has been sent, so no error can be sent any more.
      this.complete(exchange, 500, 0);
      exchange.response.destroy();
    }
  }

  /** Returns the text of an answer to bytes that are no request. @param extra alternating header names and values */
  rawRefusal(error: HttpError, requestId: string, extra?: readonly string[]): string {
    return this.#refusals.rawAnswer(error, requestId, this.#headerSets(undefined), extra);
  }

  /** Uses the headers and the error format of this service file from now on. */
  useService(service: (ServiceHeaders & Pick<ServiceDefinition, 'formatError'>) | undefined): void {
    this.#headerSets = createHeaderSets(service);
    this.#ownCorsSet = createOwnCorsSet(service?.headers);
    this.#preflightStatus = service?.cors?.preflightStatus ?? 200;
    this.#refusals.useFormat(service?.formatError);
  }

  /** Makes each answer from now on end its connection, unless a pipelined request waits on the connection. */
  setDraining(): void {
    this.#isDraining = true;
    this.#replies.drain();
  }

  /** Returns the lines that an answer has before the handler of a mount writes it. */
  linesOf(exchange: Exchange): readonly string[] {
    return [...this.#allLines(exchange, 200, []), 'X-Request-Id', exchange.requestId];
  }

  /** Sends the head of such an answer by `writeHead`. A handler on a socket sends its head itself. */
  handOverHead(exchange: Exchange, writeHead: () => void): void {
    if (this.#isDraining && !hasWaitingRequests(exchange)) exchange.response.shouldKeepAlive = false;
    writeHead();
    if (exchange.answer.isComplete || exchange.answer.isStreaming) return;
    this.#beginStreaming(exchange);
    this.#replies.watchHandedOver(exchange);
  }

  /** Marks an answer as complete: it was sent, or its client left before the head was sent. */
  complete(exchange: Exchange, status: number, bytes: number): void {
    if (exchange.answer.isComplete) return;
    exchange.answer.isComplete = true;
    if (exchange.answer.giveBack !== undefined && status < 400) exchange.answer.giveBack();
    exchange.timeLimit?.end();
    this.#options.onAnswered(exchange);
    this.#report(exchange, status, bytes);
  }

  #beginStreaming(exchange: Exchange): void {
    exchange.timeLimit?.end();
    exchange.answer.isStreaming = true;
    if (isStillSending(exchange)) closeAfterRequest(exchange);
    this.#options.onStreaming(exchange);
  }

  #refuse(exchange: Exchange, error: HttpError, thrown: unknown): void {
    const { status, text, contentType, headers } = this.#refusals.answerTo(exchange, error, thrown);
    const endsConnection =
      CLOSING_CODES.has(error.code) ||
      this.#hasLongRest(exchange) ||
      (error.code === 'OVERLOADED' && isStillSending(exchange));
    // A refusal is the service's own answer, also where a mount sets the CORS headers of its answers.
    exchange.answer.ownsCors = false;
    // Node keeps the reason phrase of a head that had an invalid header: `500 OK`.
    if (exchange.response.statusMessage) exchange.response.statusMessage = '';
    const set = this.#headerSetOf(exchange);
    const { ownHeaders } = exchange.answer;
    if (contentType === undefined && ownHeaders === undefined)
      return this.#sendText(exchange, status, text, set.uncached, headers, endsConnection);
    const lines = ['Content-Type', contentType ?? JSON_TYPE, ...NO_STORE, ...headers];
    const allLines = [...set.addTo(ownHeaders?.addTo(lines, false) ?? lines), ...LAST_LINES];
    this.#sendText(exchange, status, text, allLines, NO_LINES, endsConnection);
  }

  /**
   * @param usual an array that ends in LAST_LINES. This function replaces the request id and the length in the array,
   *   which can be shared, because writeHead() has read the array when it returns
   * @param extra more headers: alternating names and values
   * @param endsConnection whether the connection ends with this answer; Node then adds the header `Connection`
   */
  #sendText(
    exchange: Exchange,
    status: number,
    body: string | Uint8Array,
    usual: string[],
    extra: readonly string[] = NO_LINES,
    endsConnection = false,
  ): void {
    if (exchange.answer.capture !== undefined) return this.#deliver(exchange, status, usual, body);
    const { response } = exchange;
    const bytes = Buffer.byteLength(body);
    if (endsConnection || (this.#isDraining && !hasWaitingRequests(exchange))) response.shouldKeepAlive = false;
    usual[usual.length - 3] = exchange.requestId;
    usual[usual.length - 1] = String(bytes);
    response.writeHead(status, extra.length === 0 ? usual : this.#headerSetOf(exchange).extended(usual, extra));
    endAnswer(exchange, body, this.#options.isSecure);
    this.complete(exchange, status, exchange.verb === 'HEAD' || response.destroyed ? 0 : bytes);
  }

  #headerSetOf(exchange: Exchange): HeaderSet {
    return exchange.answer.ownsCors ? this.#ownCorsSet : this.#headerSets(exchange.head.origin, exchange.request);
  }

  #sendWhole(exchange: Exchange, status: number, lines: readonly string[], body: string | Uint8Array): void {
    this.#writeLines(exchange, status, lines, false);
    endAnswer(exchange, body, this.#options.isSecure);
    this.complete(exchange, status, exchange.verb === 'HEAD' ? 0 : Buffer.byteLength(body));
  }

  /** Adds the header lines of the server to those of an operation, all but the request id. */
  #allLines(exchange: Exchange, status: number, headers: readonly string[]): string[] {
    const lines = exchange.answer.ownHeaders?.addTo(headers, !NEVER_A_BODY.has(status)) ?? headers;
    return this.#headerSetOf(exchange).addTo(lines, exchange.caller.user !== undefined);
  }

  /** @param lines all header lines but the request id */
  #writeLines(exchange: Exchange, status: number, lines: readonly string[], endsConnection: boolean): void {
    const { response, requestId } = exchange;
    if (endsConnection || this.#hasLongRest(exchange) || (this.#isDraining && !hasWaitingRequests(exchange)))
      response.shouldKeepAlive = false;
    response.writeHead(status, [...lines, 'X-Request-Id', requestId]);
  }

  /** Passes the answer to a tool call to the code in operate/tools/, and sends nothing on the connection. */
  #deliver(exchange: Exchange, status: number, headers: readonly string[], body: string | Uint8Array): void {
    this.complete(exchange, status, Buffer.byteLength(body));
    exchange.answer.capture?.({ status, headers, body });
  }

  #hasLongRest(exchange: Exchange): boolean {
    return hasLongRest(exchange, this.#options.bodyLimit);
  }
}

/** Without a cause, the log would say nothing of a promise that is rejected with nothing. */
function causeOf(thrown: unknown): unknown {
  const isAnswer = () => isReply(thrown) || isErrorReply(thrown) || isWebObject(Object(thrown), 'Response');
  // Other frameworks send an answer that is thrown.
  if (attempt(isAnswer, false))
    return new TypeError(`${nameKind(thrown)} was thrown: return a Reply or a Response, or throw an HttpError`);
  return thrown ?? String(thrown);
}
