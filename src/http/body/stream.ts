// The body of a request as a stream, for operations that declare it (`body: 'stream'`): inflated, no faster than it is
// read, and never held in memory. This file knows no formats.
import { refusal } from '../../base/errors.ts';
import type { Exchange } from '../exchange.ts';
import { tooLarge } from './body.ts';
import { inflateStreamOf } from './decoder.ts';

/**
 * A client that waits for `100 Continue` gets it with the first read.
 *
 * @param limit bytes, counted after inflating; beyond it the stream fails with 413
 * @throws HttpError UNSUPPORTED_ENCODING, BODY_TOO_LARGE
 */
export function streamBody(exchange: Exchange, limit: number): ReadableStream<Uint8Array> {
  const { request, response, head } = exchange;
  if (!exchange.hasBody) return new ReadableStream({ start: (controller) => controller.close() });
  exchange.streamsBody = true;
  const inflate = inflateStreamOf(head.contentEncoding);
  if (head.contentLength !== undefined && Number(head.contentLength) > limit)
    throw tooLarge(limit, Number(head.contentLength));
  const source = inflate === undefined ? request : request.pipe(inflate);
  let size = 0;
  let isOver = false;

  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const over = (then: () => void) => {
          if (isOver) return;
          isOver = true;
          exchange.onLost = undefined;
          then();
        };
        const fail = (error: unknown) =>
          over(() => {
            controller.error(error);
            source.pause();
          });
        source.on('data', (chunk: Buffer) => {
          // After an answer, or when the reader has cancelled, the rest is read and thrown away.
          if (isOver || exchange.settled) return;
          size += chunk.length;
          if (size > limit) return fail(tooLarge(limit));
          controller.enqueue(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.length));
          if ((controller.desiredSize ?? 0) <= 0) source.pause();
        });
        source.on('end', () => over(() => controller.close()));
        inflate?.on('error', () =>
          fail(refusal('MALFORMED_BODY', 'Cannot inflate the body: it is not what its content encoding says')),
        );
        // Unread bytes must not block the next request of the connection.
        response.once('close', () => {
          fail(new Error('the request has its answer'));
          if (inflate !== undefined) request.unpipe(inflate);
          request.resume();
        });
        const lost = () => fail(refusal('MALFORMED_REQUEST', 'The client left before the end of the body'));
        if (request.destroyed && !request.complete) lost();
        else exchange.onLost = lost;
        source.pause();
      },
      pull() {
        if (exchange.expectsContinue && !response.headersSent) {
          exchange.expectsContinue = false;
          response.writeContinue();
        }
        source.resume();
      },
      cancel() {
        isOver = true;
        exchange.onLost = undefined;
      },
    },
    { highWaterMark: 0 },
  );
}
