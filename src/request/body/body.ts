// Reads the body of a request up to its limit, inflates the body, and passes its bytes to decoder.ts or multipart.ts.
// stream.ts serves operations that read the body as a stream.
import { refusal } from '../../base/errors.ts';
import type { Exchange } from '../exchange.ts';
import type { BodyBudget } from './budget.ts';
import { codingOf, decodeBody, malformedEncoding } from './decoder.ts';
import type { Query } from './form.ts';
import { type BodyKind, bodyKindOf } from './media-type.ts';
import { decodeMultipart } from './multipart.ts';
import { Pieces } from './pieces.ts';
import type { StreamedUploads } from './streamed-uploads.ts';

/** Receives the outcome of each body. One sink serves all requests: a sink for each would cost 2 percent of a POST. */
export interface DataSink {
  /** @param data undefined for an empty body @param bytes inflated, for operations that read them raw */
  done(exchange: Exchange, data: unknown, query: Query, bytes: Buffer | undefined): void;
  /** Can be called again for the same exchange, and then has no effect. */
  fail(exchange: Exchange, error: unknown): void;
}

export interface ProcessLimits {
  readonly budget: BodyBudget;
  readonly streamedUploads: StreamedUploads;
  readonly isFull: () => boolean;
}

export interface BodyRules {
  /** Maximum bytes of the body, both as it is sent and after inflating. */
  readonly limit: number;
  /** The setting `accepts` of the operation. */
  readonly accepts: readonly string[] | undefined;
}

/**
 * Reads and decodes the body. A refusal that depends only on the head is thrown. Later failures go to `sink.fail`.
 *
 * @throws HttpError UNSUPPORTED_MEDIA_TYPE, UNSUPPORTED_CHARSET, UNSUPPORTED_ENCODING, BODY_TOO_LARGE
 */
export function readBody(
  exchange: Exchange,
  { limit, accepts }: BodyRules,
  { budget, isFull }: ProcessLimits,
  sink: DataSink,
  query: Query,
): void {
  const { request, head } = exchange;
  const kind = bodyKindOf(head.contentType, accepts);
  const coding = codingOf(head.contentEncoding);
  // A body in chunks has the length NaN, which is larger than nothing and equals nothing.
  const announcedLength = Number(head.contentLength);
  if (announcedLength > limit) throw tooLarge(limit, announcedLength);
  budget.beginUpload(exchange, announcedLength || limit);
  if (exchange.body.expectsContinue) exchange.response.writeContinue();

  const failIncomplete = () => {
    const cause = new Error('the client closed the connection before the end of the body');
    sink.fail(exchange, refusal('MALFORMED_REQUEST', undefined, { cause }));
  };
  // The client may have left while the request waited for the import of its group.
  if (request.destroyed) return failIncomplete();
  exchange.body.onLost = failIncomplete;
  let size = 0;
  request.on('data', (chunk: Buffer) => {
    // After a refusal, the rest of the body is still read, and dropped here, so that the client can read the answer.
    if (exchange.answer.isComplete) return;
    size += chunk.length;
    if (size > limit) return sink.fail(exchange, tooLarge(limit));
    // Two kinds of chunks are not counted: one that is the whole body, as Content-Length says, and those that Node had
    // buffered when the end of the body came. They are few, and MAX_IN_FLIGHT limits their requests.
    if (!request.complete && chunk.length !== announcedLength && !budget.reserve(exchange, chunk.length))
      return sink.fail(exchange, overloaded());
    keepChunk(exchange, chunk);
  });
  request.on('end', () => {
    exchange.body.onLost = undefined;
    if (exchange.answer.isComplete) return;
    budget.completeUpload(exchange);
    const { received } = exchange.body;
    // The connection refers to this exchange until its next request comes, and would keep the body in memory so long.
    exchange.body.received = undefined;
    if (received === undefined) return sink.done(exchange, undefined, query, undefined);
    if (isFull()) return sink.fail(exchange, overloaded());
    const bytes = received instanceof Pieces ? received.join() : received;
    if (coding === undefined) return decode(exchange, kind, bytes, sink, query);
    budget.whenMayInflate((done) =>
      coding.inflate(bytes, { maxOutputLength: limit }, (error, inflated) => {
        if (exchange.answer.isComplete) return done();
        budget.hold(exchange, error === null ? inflated.length : 0);
        done();
        if (error !== null) sink.fail(exchange, inflateFailure(error, limit));
        else if (inflated.length === 0) sink.done(exchange, undefined, query, undefined);
        else decode(exchange, kind, inflated, sink, query);
      }),
    );
  });
}

/** Keeps a chunk of the body. Nearly every body is one chunk, and such a chunk is not copied. */
function keepChunk(exchange: Exchange, chunk: Buffer): void {
  const { received } = exchange.body;
  if (received === undefined) exchange.body.received = chunk;
  else if (received instanceof Pieces) received.add(chunk);
  else {
    const pieces = new Pieces();
    pieces.add(received);
    pieces.add(chunk);
    exchange.body.received = pieces;
  }
}

export function overloaded(): Error {
  return refusal('OVERLOADED', undefined, { headers: { 'Retry-After': '1' } });
}

function decode(exchange: Exchange, kind: BodyKind, bytes: Buffer, sink: DataSink, query: Query): void {
  if (kind === 'multipart') {
    decodeMultipart(exchange.head.contentType as string, bytes).then(
      (data) => sink.done(exchange, data, query, bytes),
      (error) => sink.fail(exchange, error),
    );
    return;
  }
  let data: unknown;
  try {
    data =
      kind === 'blob'
        ? new Blob([new Uint8Array(bytes)], { type: exchange.head.contentType as string })
        : decodeBody(kind, bytes);
  } catch (error) {
    return sink.fail(exchange, error);
  }
  sink.done(exchange, data, query, bytes);
}

function inflateFailure(error: Error, limit: number): Error {
  return (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE' ? tooLarge(limit) : malformedEncoding();
}

/** @param size the number of bytes that Content-Length announces, if any */
export function tooLarge(limit: number, size?: number): Error {
  return refusal(
    'BODY_TOO_LARGE',
    `Cannot read the body: it ${size === undefined ? 'is larger than' : `has ${size} bytes, which is over`} the limit of ${limit} bytes`,
  );
}
