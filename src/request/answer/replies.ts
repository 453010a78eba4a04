// Sends the results that are not plain objects: replies with a status and headers, bytes, streams, server-sent events.
// This file also decides between 200 and 304. response.ts sends the heads and the whole bodies.
import { type Readable, Writable } from 'node:stream';
import type { EventStream } from '../../api/controller/event-stream.ts';
import { isReply } from '../../api/controller/reply.ts';
import { refusal } from '../../base/errors.ts';
import { isFileBody } from '../../base/files/file-body.ts';
import { FileChangedError } from '../../base/files/open-file.ts';
import { describeError, type Log } from '../../base/log.ts';
import { resetOnClose } from '../../base/node-internals.ts';
import { DESCRIBES_CONTENT } from '../../base/own-headers.ts';
import type { WatchStream } from '../../callers/access/open-streams.ts';
import type { Exchange } from '../exchange.ts';
import type { ExchangeContexts } from '../exchange-contexts.ts';
import { addMissing } from './answer-headers.ts';
import { type StreamListener, sendStream } from './byte-stream.ts';
import { conditionalStatus, isRead } from './conditional.ts';
import { EVENT_HEADERS, endSource, sendEvents } from './event-stream.ts';
import { isJson } from './json.ts';
import { type Range, readRange } from './range.ts';
import { logBrokenStream, requestFacts } from './refusals.ts';
import type { Responder } from './response.ts';
import { type Answer, type AnswerBody, convertResult, type FileAnswer, NO_BODY, NO_RESPONSE_BODY } from './result.ts';

export interface ReplyParts {
  readonly log: Log;
  readonly respond: Pick<Responder, 'send' | 'sendHead' | 'complete' | 'fail'>;
  readonly watchStream: WatchStream;
  readonly run: ExchangeContexts['run'];
}

/** Maximum bytes of the result of a tool, which a language model has to read as a whole. */
export const MAX_TOOL_BYTES = 1024 * 1024;
export const TOO_LONG_FOR_TOOL = `The result is longer than ${MAX_TOOL_BYTES} bytes, the limit of a tool: ask for less`;

type WholeBody = Extract<AnswerBody, { readonly kind: 'whole' }>;
type LiveBody = Exclude<AnswerBody, { readonly kind: 'whole' | 'file' }>;

export type Replies = ReturnType<typeof createReplies>;

export function createReplies({ log, respond, watchStream, run }: ReplyParts) {
  /** One function for each open event stream and socket. */
  const endFunctions = new Set<() => void>();
  let isDraining = false;

  function answer(exchange: Exchange, value: object): void {
    let convertedAnswer: Answer | undefined;
    try {
      const { status, ownHeaders, ownsCors } = exchange.answer;
      convertedAnswer = convertResult(value, status, ownHeaders?.contentType, ownsCors);
      // A handler that is not written for this service cannot know which headers the service sets.
      const isMount = exchange.choice.operation.mount !== undefined;
      for (const name of isMount ? [] : convertedAnswer.droppedHeaders) {
        const header = name.slice(0, 100);
        log.warn('header-dropped', { ...requestFacts(exchange), header, reason: 'it belongs to the server' });
      }
      sendAnswer(exchange, convertedAnswer);
      // A status such as 204 has no body, but the result may hold one.
      if (convertedAnswer.body === NO_BODY) discardResult(value);
    } catch (error) {
      discardResult(value);
      if (convertedAnswer === undefined) return respond.fail(exchange, error);
      respond.fail(exchange, refusal('UNENCODABLE_RESULT', undefined, { cause: error }));
    }
  }

  function sendAnswer(exchange: Exchange, answer: Answer): void {
    if (exchange.response.destroyed && exchange.answer.capture === undefined) {
      cancelBody(answer.body);
      return respond.complete(exchange, answer.status, 0);
    }
    const status = conditionalStatus(exchange, answer);
    if (status === 412) return respond.fail(exchange, refusal('PRECONDITION_FAILED'));
    if (status === 304) {
      cancelBody(answer.body);
      return respond.send(exchange, 304, withoutContentHeaders(answer.headers), '');
    }
    if (answer.body.kind === 'file') return sendFile(exchange, answer, answer.body);
    sendBody(exchange, answer, answer.body);
  }

  /** Sends a file whole, or the part that the client has asked for. */
  function sendFile(exchange: Exchange, answer: Answer, { content, findAgain }: FileAnswer): void {
    const { status } = answer;
    const { size } = content;
    const headers = [...answer.headers];
    const mayBePart = status === 200 && exchange.answer.capture === undefined;
    let range: Range | undefined;
    let part: Buffer | Readable;
    try {
      if (mayBePart && isRead(exchange)) headers.push('Accept-Ranges', 'bytes');
      // A range has no meaning for HEAD (RFC 9110, 14.2).
      if (mayBePart && exchange.verb === 'GET') range = readRange(exchange.request.headers, size, answer);
      part = content.part(range?.start ?? 0, range?.end ?? size);
    } catch (error) {
      const present = error instanceof FileChangedError ? findAgain?.() : undefined;
      return present === undefined ? respond.fail(exchange, error) : sendAnswer(exchange, present);
    }
    if (range !== undefined) headers.push('Content-Range', `bytes ${range.start}-${range.end - 1}/${size}`);
    const body: LiveBody | WholeBody =
      part instanceof Uint8Array
        ? { kind: 'whole', content: part }
        : { kind: 'stream', source: part, length: range === undefined ? size : range.end - range.start };
    sendBody(exchange, { ...answer, status: range === undefined ? status : 206, headers }, body);
  }

  function sendBody(exchange: Exchange, answer: Omit<Answer, 'body'>, body: LiveBody | WholeBody): void {
    const { status, contentType } = answer;
    const headers = contentType === undefined ? [...answer.headers] : ['Content-Type', contentType, ...answer.headers];
    const length = exchange.verb === 'HEAD' && body === NO_RESPONSE_BODY ? undefined : contentLength(status, body);
    if (body.kind === 'events') addMissing(headers, EVENT_HEADERS);
    if (length !== undefined) headers.push('Content-Length', String(length));
    if (body.kind === 'whole') respond.send(exchange, status, headers, body.content);
    else if (exchange.verb === 'HEAD' && exchange.answer.capture === undefined) {
      cancelBody(body);
      respond.send(exchange, status, headers, '');
    } else run(exchange, () => sendLive(exchange, body, status, headers));
  }

  /** Called in a context of the exchange, because the source of the body is code of the author. */
  function sendLive(exchange: Exchange, body: LiveBody, status: number, headers: readonly string[]): void {
    exchange.watchClient();
    if (exchange.answer.capture !== undefined) collect(exchange, body, status, headers);
    else if (body.kind === 'stream') {
      const stream = sendStream(body.source, exchange.response, streamListener(exchange, status, headers, false));
      exchange.answer.live = stream;
      watchStream(exchange, (refusal) => {
        stream.fail(refusal);
        exchange.abort(credentialLost());
      });
    } else sendEventStream(exchange, body.events, status, headers);
  }

  /** Collects a stream as the result of a tool. The time limit of the operation applies until the stream ends. */
  function collect(exchange: Exchange, body: LiveBody, status: number, headers: readonly string[]): void {
    if (body.kind !== 'stream') {
      cancelBody(body);
      return respond.fail(
        exchange,
        refusal('UNENCODABLE_RESULT', 'The result is a stream of events, which no tool returns'),
      );
    }
    const pieces: Buffer[] = [];
    let length = 0;
    const collector = new Writable({
      write(piece: Buffer, _encoding, done) {
        length += piece.length;
        pieces.push(piece);
        done(length > MAX_TOOL_BYTES ? refusal('UNENCODABLE_RESULT', TOO_LONG_FOR_TOOL) : null);
      },
    });
    const stream = sendStream(body.source, collector, {
      begin: () => !exchange.answer.isComplete,
      end: () => respond.send(exchange, status, headers, Buffer.concat(pieces)),
      // The source can end before the event 'error' of the collector comes.
      clientLeft: () => respond.fail(exchange, collector.errored),
      fail: (error) => respond.fail(exchange, error),
    });
    collector.once('error', stream.fail);
    const cancel = (reason: Error) => {
      stream.cancel(reason);
      respond.fail(exchange, refusal('INTERNAL_ERROR'));
    };
    exchange.answer.live = { cancel, fail: stream.fail };
  }

  function sendEventStream(exchange: Exchange, events: EventStream, status: number, headers: readonly string[]): void {
    const stream = sendEvents(events, exchange.response, streamListener(exchange, status, headers, true));
    exchange.answer.live = stream;
    const end = (reason: Error) => {
      stream.end();
      exchange.abort(reason);
    };
    watchStream(exchange, (refusal) => {
      log.info('stream-ended-early', { ...requestFacts(exchange), ...describeError(refusal) });
      end(credentialLost());
    });
    onDrain(exchange, () => end(draining()));
  }

  function onDrain(exchange: Exchange, end: () => void): void {
    endFunctions.add(end);
    exchange.response.once('close', () => endFunctions.delete(end));
    if (isDraining) end();
  }

  function streamListener(
    exchange: Exchange,
    status: number,
    headers: readonly string[],
    endsConnection: boolean,
  ): StreamListener {
    return {
      begin() {
        if (exchange.answer.isComplete) return false;
        try {
          respond.sendHead(exchange, status, headers, endsConnection);
          return true;
        } catch (error) {
          respond.fail(exchange, refusal('UNENCODABLE_RESULT', undefined, { cause: error }));
          return false;
        }
      },
      end: (bytes) => respond.complete(exchange, status, bytes),
      clientLeft: (bytes) => respond.complete(exchange, status, bytes),
      fail(error, bytes, hasBegun) {
        if (!hasBegun) return respond.fail(exchange, error);
        logBrokenStream(log, exchange, error);
        respond.complete(exchange, status, bytes);
        resetConnection(exchange);
      },
    };
  }

  return {
    answer,
    /** Sends a file that no operation has returned. */
    file: sendAnswer,
    /** Ends what the handler of a mount writes when its key is lost, and aborts `signal` of a socket for a drain. */
    watchHandedOver(exchange: Exchange): void {
      watchStream(exchange, (refusal) => exchange.answer.live?.fail(refusal));
      // The handler has only just written the head, so it listens to the signal later.
      if (exchange.opensSocket) onDrain(exchange, () => void setImmediate(() => exchange.abort(draining())));
    },
    /** Ends all event streams, and each later one, because this worker exits. Clients reconnect to another worker. */
    drain(): void {
      isDraining = true;
      for (const end of endFunctions) end();
    },
  };
}

const draining = () => new Error('the worker is draining');
const credentialLost = () => new Error('the credential does not allow the stream any more');

/** Removes the headers `Content-…` that describe a body, because a 304 has none (RFC 9110, 15.4.5). */
function withoutContentHeaders(headers: readonly string[]): string[] {
  return headers.filter((_, i) => !DESCRIBES_CONTENT.test(headers[i - (i % 2)] as string));
}

/** @returns undefined for streams of unknown length, and for 204 and 304, which have no such header (RFC 9110, 8.6) */
function contentLength(status: number, body: WholeBody | LiveBody): number | undefined {
  if (body.kind !== 'whole') return body.kind === 'stream' ? body.length : undefined;
  if (status === 204 || status === 304) return undefined;
  return typeof body.content === 'string' ? Buffer.byteLength(body.content) : body.content.length;
}

/** Discards a result that is not sent: closes its files and connections, and ignores its later errors. */
export function discardResult(value: unknown): void {
  try {
    const content = isReply(value) ? value.body : value;
    if (isFileBody(content)) return;
    if (typeof content !== 'object' || content === null || isJson(content)) return;
    if ('then' in content) Promise.resolve(content).catch(() => {});
    else cancelBody(convertResult(content, 200).body);
  } catch {
    // If the result cannot be converted to an answer, this code does not know what to close.
  }
}

/** Cancels the source of a body that is not sent, because the source may hold a file or a database connection. */
function cancelBody(body: AnswerBody): void {
  if (body.kind === 'events') void endSource(() => body.events.source[Symbol.asyncIterator]());
  else if (body.kind === 'stream') {
    const { source } = body;
    if ('getReader' in source) source.cancel().catch(() => {});
    else source.on('error', () => {}).destroy();
  }
}

/**
 * Cuts the connection, so that the client does not take the broken body for complete. In HTTP/1.0, which has no chunks,
 * a body may end with its connection. So there, only a reset of the connection shows the error.
 */
function resetConnection({ request, response }: Exchange): void {
  const { socket } = response;
  if (request.httpVersionMinor === 0 && socket !== null) resetOnClose(socket);
  response.destroy();
}
