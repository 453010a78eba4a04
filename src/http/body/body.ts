// Reads the body of a request up to its limit, inflates it and hands the bytes to decoder.ts. The dispatcher calls this
// only when the operation needs the body. This file knows no formats.

import { refusal } from '../../base/errors.ts';
import type { Exchange } from '../exchange.ts';
import type { BodyBudget } from './budget.ts';
import { decodeBody, inflaterFor, malformedEncoding } from './decoder.ts';
import { decodeMultipart } from './form.ts';
import { type BodyKind, bodyKindOf } from './media-type.ts';
import { Pieces } from './pieces.ts';

/**
 * Receives the request data. All requests share one sink, because creating new functions for each request would cost 2
 * percent of the time of a POST.
 */
export interface DataSink<Call> {
  /**
   * @param data undefined when the body is empty, which counts as no body
   * @param call the `call` that readBody() was given
   * @param bytes the inflated body, for operations that read it raw
   */
  done(exchange: Exchange, data: unknown, call: Call, bytes: Buffer | undefined): void;
  fail(exchange: Exchange, error: unknown): void;
}

/** The limits of the whole process that a body has to pass. */
export interface Intake {
  readonly budget: BodyBudget;
  /** Says whether more requests are under way than MAX_IN_FLIGHT allows. */
  readonly isFull: () => boolean;
}

export interface BodyRules {
  /** Maximum size in bytes, counted after inflating. */
  readonly limit: number;
  /** Media types and ranges that the operation accepts undecoded, as a `Blob`. */
  readonly accepts: readonly string[] | undefined;
}

/**
 * Reads and decodes the body. A refusal that depends only on the head of the request is thrown. Every later failure
 * goes to `sink.fail`.
 *
 * @throws HttpError UNSUPPORTED_MEDIA_TYPE, UNSUPPORTED_CHARSET, UNSUPPORTED_ENCODING, BODY_TOO_LARGE
 */
export function readBody<Call>(
  exchange: Exchange,
  { limit, accepts }: BodyRules,
  { budget, isFull }: Intake,
  sink: DataSink<Call>,
  call: Call,
): void {
  const { request, head } = exchange;
  const kind = bodyKindOf(head.contentType, accepts);
  const inflater = inflaterFor(head.contentEncoding);
  const length = head.contentLength === undefined ? -1 : Number(head.contentLength);
  if (length > limit) throw tooLarge(limit, length);
  budget.begin(exchange);
  if (exchange.expectsContinue) exchange.response.writeContinue();

  const failIncomplete = () => {
    const cause = new Error('the client closed the connection before the end of the body');
    sink.fail(exchange, refusal('MALFORMED_REQUEST', undefined, { cause }));
  };
  // The client can leave while the group is imported, before this function runs.
  if (request.destroyed) return failIncomplete();
  exchange.onLost = failIncomplete;
  let size = 0;
  request.on('data', (chunk: Buffer) => {
    // After a refusal, the server still reads the rest of the body and drops it, so that the client can read the
    // answer.
    if (exchange.isAnswered) return;
    size += chunk.length;
    if (size > limit) return sink.fail(exchange, tooLarge(limit));
    // A body that has arrived completely reserves no room in the budget, so no other upload has to wait because of it.
    if (!request.complete && chunk.length !== length && !budget.reserve(exchange, chunk.length))
      return sink.fail(exchange, overloaded());
    keepChunk(exchange, chunk);
  });
  request.on('end', () => {
    exchange.onLost = undefined;
    if (exchange.isAnswered) return;
    budget.complete(exchange);
    const { received } = exchange;
    // The connection refers to this exchange until its next request comes. Without this line, the body would stay in
    // memory until then.
    exchange.received = undefined;
    if (received === undefined) return sink.done(exchange, undefined, call, undefined);
    if (isFull()) return sink.fail(exchange, overloaded());
    const bytes = received instanceof Pieces ? received.join() : received;
    if (inflater === undefined) return decode(exchange, kind, bytes, sink, call);
    budget.inflate((done) =>
      inflater(bytes, { maxOutputLength: limit }, (error, inflated) => {
        if (exchange.isAnswered) return done();
        budget.add(exchange, error === null ? inflated.length : 0);
        done();
        if (error !== null) sink.fail(exchange, inflateFailure(error, limit));
        else if (inflated.length === 0) sink.done(exchange, undefined, call, undefined);
        else decode(exchange, kind, inflated, sink, call);
      }),
    );
  });
}

/** Keeps a chunk of the body. Nearly every body is one chunk, which is then not copied. */
function keepChunk(exchange: Exchange, chunk: Buffer): void {
  const { received } = exchange;
  if (received === undefined) exchange.received = chunk;
  else if (received instanceof Pieces) received.add(chunk);
  else {
    const pieces = new Pieces();
    pieces.add(received);
    pieces.add(chunk);
    exchange.received = pieces;
  }
}

/** The refusal of a request for which the process has no room. */
export function overloaded(): Error {
  return refusal('OVERLOADED', undefined, { headers: { 'Retry-After': '1' } });
}

function decode<Call>(exchange: Exchange, kind: BodyKind, bytes: Buffer, sink: DataSink<Call>, call: Call): void {
  if (kind === 'multipart') {
    decodeMultipart(exchange.head.contentType as string, bytes).then(
      (data) => sink.done(exchange, data, call, bytes),
      (error) => sink.fail(exchange, error),
    );
    return;
  }
  let data: unknown;
  try {
    data =
      kind === 'blob'
        ? new Blob([new Uint8Array(bytes)], { type: exchange.head.contentType ?? '' })
        : decodeBody(kind, bytes);
  } catch (error) {
    return sink.fail(exchange, error);
  }
  sink.done(exchange, data, call, bytes);
}

function inflateFailure(error: Error, limit: number): Error {
  return (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE' ? tooLarge(limit) : malformedEncoding();
}

/** @param size the announced length in bytes, when the client sent one */
export function tooLarge(limit: number, size?: number): Error {
  return refusal(
    'BODY_TOO_LARGE',
    `Cannot read the body: it ${size === undefined ? 'is larger than' : `has ${size} bytes, which is over`} the limit of ${limit} bytes`,
  );
}
