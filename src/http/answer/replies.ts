// Answers whatever an operation returns that is no plain object: replies with a status and headers, bytes, streams,
// server-sent events. It decides between 200 and 304, and when a stream's answer has begun; the head goes out through
// response.ts.
import type { Socket } from 'node:net';
import { isHttpError, refusal } from '../../base/errors.ts';
import { describeError, type Log } from '../../base/log.ts';
import { isReply } from '../../controller/reply.ts';
import type { Exchange } from '../exchange.ts';
import type { WatchStream } from '../open-streams.ts';
import { type StreamEvents, sendStream } from './byte-stream.ts';
import { isNotModified } from './conditional.ts';
import { EVENT_HEADERS, sendEvents } from './event-stream.ts';
import { isJson } from './json.ts';
import { type Answer, type AnswerBody, answerOf } from './result.ts';

export interface ReplyParts {
  readonly log: Log;
  /** Sends a whole answer. @throws when a header cannot be sent, and then nothing has been */
  readonly send: (exchange: Exchange, status: number, headers: readonly string[], body: string | Uint8Array) => void;
  /** Sends the head of an answer that takes its time. @param last the connection ends with it @throws as `send` does */
  readonly open: (exchange: Exchange, status: number, headers: readonly string[], last: boolean) => void;
  /** What `open` began is over, or was never begun. */
  readonly close: (exchange: Exchange, status: number, bytes: number) => void;
  readonly fail: (exchange: Exchange, error: unknown) => void;
  readonly watch: WatchStream;
}

const NOT_ALLOWED = 'its credential does not allow it any more';

export interface Replies {
  answer(exchange: Exchange, value: unknown): void;
  /** Ends every event stream, now and as it comes: its client reconnects, to a worker that stays. */
  drain(): void;
}

export function createReplies({ log, send, open, close, fail, watch }: ReplyParts): Replies {
  /** Of the event streams under way. */
  const live = new Set<() => void>();
  let draining = false;

  function answer(exchange: Exchange, value: unknown): void {
    let made: Answer | undefined;
    try {
      made = answerOf(value, exchange.status);
      for (const header of made.dropped) drop(exchange, header);
      give(exchange, made);
      if (made.body.kind === 'none') letGo(value);
    } catch (error) {
      letGo(value);
      if (made === undefined) return fail(exchange, error);
      fail(exchange, refusal('UNENCODABLE_RESULT', undefined, { cause: error }));
    }
  }

  function drop(exchange: Exchange, header: string): void {
    log.warn('header-dropped', {
      ...factsOf(exchange),
      header: header.slice(0, 100),
      reason: 'it belongs to the server',
    });
  }

  function give(exchange: Exchange, made: Answer): void {
    const { status, body, contentType } = made;
    if (exchange.response.destroyed) {
      cancel(body);
      return close(exchange, status, 0);
    }
    if (isKnownToClient(exchange, made)) {
      cancel(body);
      return send(exchange, 304, withoutContent(made.headers), '');
    }
    const headers = contentType === undefined ? made.headers.slice() : ['Content-Type', contentType, ...made.headers];
    const length = lengthOf(status, body);
    if (body.kind === 'events') addMissing(headers, EVENT_HEADERS);
    if (length !== undefined) headers.push('Content-Length', String(length));
    if (body.kind === 'none') send(exchange, status, headers, '');
    else if (body.kind === 'text') send(exchange, status, headers, body.text);
    else if (body.kind === 'bytes') send(exchange, status, headers, body.bytes);
    else if (exchange.verb === 'HEAD') {
      cancel(body);
      send(exchange, status, headers, '');
    } else if (body.kind === 'stream') {
      exchange.watchClient();
      const stream = sendStream(body.source, exchange.response, eventsOf(exchange, status, headers, false));
      exchange.cancelBody = stream.cancel;
      watch(exchange, (refusal) => {
        stream.fail(refusal);
        exchange.abort(new Error(NOT_ALLOWED));
      });
    } else giveEvents(exchange, body, status, headers);
  }

  function giveEvents(
    exchange: Exchange,
    { events }: AnswerBody & { kind: 'events' },
    status: number,
    headers: readonly string[],
  ): void {
    exchange.watchClient();
    const stream = sendEvents(events, exchange.response, eventsOf(exchange, status, headers, true));
    exchange.cancelBody = stream.cancel;
    const leave = (reason: string) => {
      stream.end();
      exchange.abort(new Error(reason));
    };
    const makeRoom = () => leave('the worker makes room for another');
    live.add(makeRoom);
    exchange.response.once('close', () => live.delete(makeRoom));
    watch(exchange, (refusal) => {
      log.info('stream-refused', { ...factsOf(exchange), ...describeError(refusal) });
      leave(NOT_ALLOWED);
    });
    if (draining) makeRoom();
  }

  function eventsOf(exchange: Exchange, status: number, headers: readonly string[], last: boolean): StreamEvents {
    return {
      begin() {
        if (exchange.settled) return false;
        try {
          open(exchange, status, headers, last);
          return true;
        } catch (error) {
          fail(exchange, refusal('UNENCODABLE_RESULT', undefined, { cause: error }));
          return false;
        }
      },
      end: (bytes) => close(exchange, status, bytes),
      left: (bytes) => close(exchange, status, bytes),
      fail(error, bytes, hasBegun) {
        if (!hasBegun) return fail(exchange, error);
        const facts = { ...factsOf(exchange), ...describeError(error) };
        // A body that is refused under way fails the answer that is made of it.
        if (isHttpError(error) && error.status < 500) log.info('stream-refused', facts);
        else log.error('stream-failed', facts);
        close(exchange, status, bytes);
        cut(exchange);
      },
    };
  }

  return {
    answer,
    drain() {
      draining = true;
      for (const leave of live) leave();
    },
  };
}

function factsOf({ requestId, page, operation }: Exchange): object {
  return { request_id: requestId, page, operation };
}

/** Only of what would have been sent in full (RFC 9110, 13.2.1). */
function isKnownToClient({ verb, request }: Exchange, made: Answer): boolean {
  if (made.status !== 200 || (made.etag === undefined && made.lastModified === undefined)) return false;
  return (verb === 'GET' || verb === 'HEAD') && isNotModified(request.headers, made);
}

/** A 304 has what a cache keeps up to date, and nothing that describes a body (RFC 9110, 15.4.5). */
function withoutContent(headers: readonly string[]): string[] {
  return headers.filter((_, i) => !/^content-(?!location$|security-policy)/i.test(headers[i - (i % 2)] as string));
}

/** A 204 and a 304 must not say one (RFC 9110, 8.6); of a stream it is not known. */
function lengthOf(status: number, body: AnswerBody): number | undefined {
  if (body.kind === 'none') return status === 204 || status === 304 ? undefined : 0;
  if (body.kind === 'text') return Buffer.byteLength(body.text);
  if (body.kind === 'bytes') return body.bytes.length;
  return body.kind === 'stream' ? body.length : undefined;
}

function addMissing(headers: string[], further: readonly string[]): void {
  const names = new Set(headers.filter((_, i) => i % 2 === 0).map((name) => name.toLowerCase()));
  for (let i = 0; i < further.length; i += 2) {
    if (!names.has((further[i] as string).toLowerCase())) headers.push(...further.slice(i, i + 2));
  }
}

/**
 * A result that nobody is sent, or whose status never has a body: what it holds must not stay open, and must not fail
 * unheard.
 */
export function letGo(value: unknown): void {
  try {
    const content = isReply(value) ? value.body : value;
    if (typeof content !== 'object' || content === null || isJson(content)) return;
    if ('then' in content) Promise.resolve(content).catch(() => {});
    else cancel(answerOf(content, 200).body);
  } catch {
    // It stands for no answer, so it holds nothing that is known here.
  }
}

/** What is not read must not stay open: a file, a connection to a database. */
function cancel(body: AnswerBody): void {
  if (body.kind === 'events') {
    try {
      Promise.resolve(body.events.source[Symbol.asyncIterator]().return?.()).catch(() => {});
    } catch {
      // Its own affair: nobody waits for it.
    }
  } else if (body.kind === 'stream') {
    const { source } = body;
    if ('getReader' in source) source.cancel().catch(() => {});
    else source.on('error', () => {}).destroy();
  }
}

/**
 * Nobody may take it for a whole body. Without chunks (HTTP/1.0) only a reset tells this end from the good one, and
 * `resetAndDestroy()` says a FIN first where nothing is left to write; so what it sets for that is set here. A TLS
 * socket cannot be reset, and the one that it stands on is closed with it.
 */
function cut({ request, response }: Exchange): void {
  const { socket } = response;
  if (request.httpVersionMinor === 0 && socket !== null)
    Object.assign((socket as { _parent?: Socket | null })._parent ?? socket, { resetAndClosing: true });
  response.destroy();
}
