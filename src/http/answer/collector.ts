// Collects a streamed answer for a tool of the Model Context Protocol, because a tool gets its result as a whole. A
// stream that is longer than MAX_TOOL_BYTES is an error, and its source is cancelled.
import { Writable } from 'node:stream';
import { refusal } from '../../base/errors.ts';

/** Maximum bytes of the result of a tool. No model reads more. */
export const MAX_TOOL_BYTES = 1024 * 1024;

/** Creates the refusal of a result that is longer than MAX_TOOL_BYTES. */
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
