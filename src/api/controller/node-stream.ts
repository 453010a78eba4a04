// The body of a request as a stream of Node, for libraries that take one.
import { Readable } from 'node:stream';
import type { ReadableStream as NodeReadableStream } from 'node:stream/web';

/**
 * Returns the `data` of an operation with `body: 'stream'` as a stream of Node.
 *
 * @example
 * await pipeline(toNodeStream(data), createWriteStream(path));
 */
export function toNodeStream(data: ReadableStream<Uint8Array>): Readable {
  return Readable.fromWeb(data as NodeReadableStream<Uint8Array>);
}
