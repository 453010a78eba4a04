// Collects a streamed answer for a tool, which gets its result as a whole. A longer stream is an error, and its source
// is cancelled.
import { Writable } from 'node:stream';
import { refusal } from '../../base/errors.ts';

/** Bytes of the result of a tool: no model reads more. */
export const MAX_TOOL_BYTES = 1024 * 1024;

/** The refusal of a result that is longer. */
export function tooLongForTool(): Error {
  const message = `The result is longer than ${MAX_TOOL_BYTES} bytes, the limit of a tool: ask for less`;
  return refusal('UNENCODABLE_RESULT', message);
}

export class Collector extends Writable {
  readonly #pieces: Buffer[] = [];
  #length = 0;

  override _write(piece: Buffer, _: BufferEncoding, done: (error?: Error) => void): void {
    this.#length += piece.length;
    if (this.#length > MAX_TOOL_BYTES) return done(tooLongForTool());
    this.#pieces.push(piece);
    done();
  }

  bytes(): Buffer {
    return Buffer.concat(this.#pieces);
  }
}
