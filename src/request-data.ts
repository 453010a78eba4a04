// Request data: the body when there is one, else the query (decisions 4). Reads the bytes, with their limit, and hands
// them to body-decoder.ts. Nothing is read before it is sure that an operation will want it.
import { decodeBody, decodeMultipart, inflaterOf } from './body-decoder.ts';
import { refusal } from './errors.ts';
import type { Exchange } from './exchange.ts';
import { bodyKindOf } from './media-type.ts';

export interface DataSink {
  /** `undefined`: the body was empty, which is none. */
  readonly done: (data: unknown) => void;
  readonly fail: (error: unknown) => void;
}

/**
 * Reads and decodes the body. Refusals come by `fail`, like everything that goes wrong later.
 *
 * @param limit bytes, counted after inflating
 */
export function readBody(exchange: Exchange, limit: number, { done, fail }: DataSink): void {
  const { head } = exchange;
  const kind = bodyKindOf(head.contentType);
  const inflater = inflaterOf(head.contentEncoding);
  if (head.contentLength !== undefined && Number(head.contentLength) > limit) throw tooLarge(limit, Number(head.contentLength));
  if (exchange.expectsContinue) exchange.response.writeContinue();

  const decode = (bytes: Buffer): void => {
    if (bytes.length === 0) return done(undefined);
    if (kind === 'multipart') {
      decodeMultipart(head.contentType as string, bytes).then(done, fail);
      return;
    }
    let data: unknown;
    try {
      data = decodeBody(kind, bytes);
    } catch (error) {
      return fail(error);
    }
    done(data);
  };

  const inflateThenDecode = (bytes: Buffer): void => {
    if (inflater === undefined || bytes.length === 0) return decode(bytes);
    inflater(bytes, { maxOutputLength: limit }, (error, inflated) => {
      if (error === null) return decode(inflated);
      const tooMuch = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
      fail(tooMuch ? tooLarge(limit) : refusal('MALFORMED_BODY', 'Cannot inflate the body: it is not what its content encoding says'));
    });
  };

  collect(exchange, limit, inflateThenDecode, fail);
}

function collect(exchange: Exchange, limit: number, done: (bytes: Buffer) => void, fail: (error: unknown) => void): void {
  const { request } = exchange;
  /** Nearly every body is one chunk, which then is not copied. */
  let first: Buffer | undefined;
  let more: Buffer[] | undefined;
  let size = 0;
  const lost = () => fail(refusal('MALFORMED_REQUEST', undefined, { cause: new Error('its client left before the end of the body') }));
  // While its group was being imported.
  if (request.destroyed) return lost();
  exchange.onLost = lost;
  request.on('data', (chunk: Buffer) => {
    // What comes after a refusal is read and thrown away, so that the client can read its answer.
    if (exchange.settled) return;
    size += chunk.length;
    if (size > limit) {
      first = undefined;
      more = undefined;
      fail(tooLarge(limit));
    } else if (first === undefined) first = chunk;
    else if (more === undefined) more = [first, chunk];
    else more.push(chunk);
  });
  request.on('end', () => {
    exchange.onLost = undefined;
    if (exchange.settled) return;
    const bytes = more === undefined ? (first ?? Buffer.alloc(0)) : Buffer.concat(more, size);
    // The connection keeps the request until the next one comes, and these functions with it.
    first = undefined;
    more = undefined;
    done(bytes);
  });
}

function tooLarge(limit: number, size?: number): Error {
  return refusal(
    'BODY_TOO_LARGE',
    `Cannot read the body: ${size === undefined ? 'it is larger' : `${size} bytes announced`}, the limit is ${limit}`,
  );
}
