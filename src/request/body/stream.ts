// Gives the body of a request to the operation as a stream (the setting `body: 'stream'`). The stream inflates the
// body, and reads from the client only as fast as the operation reads. So the whole body is never in memory.
import { refusal } from '../../base/errors.ts';
import type { Exchange } from '../exchange.ts';
import { tooLarge } from './body.ts';
import { codingOf, malformedEncoding } from './decoder.ts';
import type { StreamedUploads } from './streamed-uploads.ts';

/**
 * Creates the stream. A client that waits for `100 Continue` gets it when the operation reads for the first time.
 *
 * @param limit maximum bytes, counted after inflating; a longer body makes the stream fail with 413
 * @param refuse for a mount: the body is not inflated, and `refuse` answers a request whose body is too long, because
 *   the handler could hide the failure of the stream
 * @throws HttpError UNSUPPORTED_ENCODING, BODY_TOO_LARGE, OVERLOADED
 */
export function streamBody(
  exchange: Exchange,
  limit: number,
  uploads: StreamedUploads,
  refuse?: (error: Error) => void,
): ReadableStream<Uint8Array> {
  const { request, response, head } = exchange;
  if (!exchange.hasBody) return new ReadableStream({ start: (controller) => controller.close() });
  exchange.body.isStreamed = true;
  const coding = refuse === undefined ? codingOf(head.contentEncoding) : undefined;
  const announcedLength = Number(head.contentLength);
  if (announcedLength > limit) throw tooLarge(limit, announcedLength);
  let fail: (error: unknown) => void = () => {};
  uploads.begin(exchange, (error) => fail(error));
  const inflate = coding?.createStream();
  const source = inflate === undefined ? request : request.pipe(inflate);
  let size = 0;
  let isOver = false;
  const endUpload = () => {
    isOver = true;
    exchange.body.onLost = undefined;
    uploads.end(exchange);
  };

  exchange.body.stream = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const finish = (close: () => void) => {
          if (isOver) return;
          endUpload();
          close();
        };
        fail = (error) =>
          finish(() => {
            controller.error(error);
            source.pause();
          });
        source.on('data', (chunk: Buffer) => {
          uploads.endWait(exchange);
          // Bytes that come after the answer or the end of the stream are dropped.
          if (isOver) return;
          // Without the error, a stream that lacks bytes would look complete to work that outlasts the answer.
          if (exchange.answer.isComplete) return finish(() => controller.error(answered()));
          size += chunk.length;
          if (size > limit) {
            refuse?.(tooLarge(limit));
            return fail(tooLarge(limit));
          }
          controller.enqueue(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.length));
          source.pause();
        });
        source.on('end', () => finish(() => controller.close()));
        inflate?.on('error', () => fail(malformedEncoding()));
        // Unread bytes would block the next request of the connection. So after the answer, they are read and dropped.
        response.once('close', () => {
          fail(answered());
          if (inflate !== undefined) request.unpipe(inflate);
          request.resume();
        });
        const failIncomplete = () =>
          fail(refusal('MALFORMED_REQUEST', 'The client closed the connection before the end of the body'));
        if (request.destroyed) failIncomplete();
        else exchange.body.onLost = failIncomplete;
        source.pause();
      },
      pull() {
        if (exchange.body.expectsContinue && !response.headersSent) {
          exchange.body.expectsContinue = false;
          response.writeContinue();
        }
        uploads.beginWait(exchange);
        source.resume();
      },
      cancel: endUpload,
    },
    { highWaterMark: 0 },
  );
  return exchange.body.stream;
}

const answered = () => new Error('the request has already been answered');
