// Collects a streamed answer to a tool call of the Model Context Protocol, because the result of a tool is sent as a
// whole. A stream that is longer than MAX_TOOL_BYTES fails.
import { Writable } from 'node:stream';
import { refusal } from '../../base/errors.ts';

/** Maximum bytes of the result of a tool, which a language model has to read as a whole. */
export const MAX_TOOL_BYTES = 1024 * 1024;

export class Collector extends Writable {
  readonly #pieces: Buffer[] = [];
  #length = 0;

  override _write(piece: Buffer, _: BufferEncoding, done: (error?: Error) => void): void {
    this.#length += piece.length;
    this.#pieces.push(piece);
    if (this.#length <= MAX_TOOL_BYTES) return done();
    const message = `The result is longer than ${MAX_TOOL_BYTES} bytes, the limit of a tool: ask for less`;
    done(refusal('UNENCODABLE_RESULT', message));
  }

  bytes(): Buffer {
    return Buffer.concat(this.#pieces);
  }
}
