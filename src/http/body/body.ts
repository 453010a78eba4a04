// Request data: the body when there is one, else the query (decisions 4). This file reads the bytes up to their limit
// and hands them to decoder.ts. Reading begins only when an operation is sure to need the body.

import { refusal } from '../../base/errors.ts';
import type { Exchange } from '../exchange.ts';
import type { BodyBudget } from './budget.ts';
import { decodeBody, inflaterOf } from './decoder.ts';
import { decodeMultipart } from './form.ts';
import { type BodyKind, bodyKindOf } from './media-type.ts';
import { Pieces } from './pieces.ts';

/** The receiver of request data. One sink serves all requests: functions made for each cost 2 percent of a POST. */
export interface DataSink<Call> {
  /**
   * @param data `undefined`: the body was empty, which counts as no body
   * @param call the argument of readBody()
   * @param bytes the inflated body
   */
  done(exchange: Exchange, data: unknown, call: Call, bytes: Buffer | undefined): void;
  fail(exchange: Exchange, error: unknown): void;
}

export interface Intake {
  readonly budget: BodyBudget;
  /** Whether more requests are under way than MAX_IN_FLIGHT allows. */
  readonly isFull: () => boolean;
}

/** The bodies that an operation accepts. */
export interface BodyRules {
  /** The most bytes, counted after inflating. */
  readonly limit: number;
  /** Media types and ranges accepted beside those that are decoded; such a body is a `Blob`. */
  readonly accepts: readonly string[] | undefined;
}

/**
 * Reads and decodes the body. Refusals of its head are thrown; every later failure goes to `sink.fail`.
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
  const inflater = inflaterOf(head.contentEncoding);
  const length = head.contentLength === undefined ? -1 : Number(head.contentLength);
  if (length > limit) throw tooLarge(limit, length);
  budget.begin(exchange);
  if (exchange.expectsContinue) exchange.response.writeContinue();

  const lost = () => sink.fail(exchange, refusal('MALFORMED_REQUEST', undefined, { cause: new Error(LOST) }));
  // The client left while the group was being imported.
  if (request.destroyed) return lost();
  exchange.onLost = lost;
  let size = 0;
  request.on('data', (chunk: Buffer) => {
    // After a refusal the rest is read and thrown away, so that the client can read its answer.
    if (exchange.settled) return;
    size += chunk.length;
    if (size > limit) return sink.fail(exchange, tooLarge(limit));
    // A complete body, in one piece or because it had come before the first read, takes no room that another upload
    // waits for.
    if (!request.complete && chunk.length !== length && !budget.take(exchange, chunk.length))
      return sink.fail(exchange, overloaded());
    receive(exchange, chunk);
  });
  request.on('end', () => {
    exchange.onLost = undefined;
    if (exchange.settled) return;
    budget.complete(exchange);
    const { received } = exchange;
    // The connection keeps the request, and all that it refers to, until the next one comes.
    exchange.received = undefined;
    if (received === undefined) return sink.done(exchange, undefined, call, undefined);
    if (isFull()) return sink.fail(exchange, overloaded());
    const bytes = received instanceof Pieces ? received.joined() : received;
    if (inflater === undefined) return decode(exchange, kind, bytes, sink, call);
    budget.inflate((done) =>
      inflater(bytes, { maxOutputLength: limit }, (error, inflated) => {
        if (exchange.settled) return done();
        budget.add(exchange, error === null ? inflated.length : 0);
        done();
        if (error !== null) sink.fail(exchange, notInflated(error, limit));
        else if (inflated.length === 0) sink.done(exchange, undefined, call, undefined);
        else decode(exchange, kind, inflated, sink, call);
      }),
    );
  });
}

const LOST = 'its client left before the end of the body';

/** Keeps a piece of the body. Nearly every body is one piece, which then is not copied. */
function receive(exchange: Exchange, chunk: Buffer): void {
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

function notInflated(error: Error, limit: number): Error {
  if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') return tooLarge(limit);
  return refusal('MALFORMED_BODY', 'Cannot inflate the body: it is not what its content encoding says');
}

export function tooLarge(limit: number, size?: number): Error {
  return refusal(
    'BODY_TOO_LARGE',
    `Cannot read the body: ${size === undefined ? 'it is larger' : `${size} bytes announced`}, the limit is ${limit}`,
  );
}
