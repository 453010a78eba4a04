// A batch of spans, as the bytes of the request that brings them to the collector. Each span is written when it ends.
// Texts that wait would cost more than all the rest of a span: they survive several collections of garbage, are joined,
// and are then encoded.

/** The bytes of a new batch. */
const FIRST_SIZE = 64 * 1024;
/** The most bytes that one character of a text can take in UTF-8. */
const MAX_CHARACTER = 3;
const COMMA = 0x2c;

export class Batch {
  /** The number of spans. */
  count = 0;
  #bytes: Buffer;
  #length: number;
  /** The length of the text before the first span, which stays when the batch is emptied. */
  readonly #start: number;
  readonly #behind: string;

  /** @param envelope the texts before and after the spans */
  constructor([before, behind]: readonly [before: string, behind: string]) {
    this.#start = Buffer.byteLength(before);
    this.#bytes = Buffer.allocUnsafeSlow(Math.max(FIRST_SIZE, 2 * this.#start));
    this.#length = this.#bytes.write(before);
    this.#behind = behind;
  }

  /** The bytes of the spans. */
  get size(): number {
    return this.#length - this.#start;
  }

  /** The bytes that the batch occupies. */
  get capacity(): number {
    return this.#bytes.length;
  }

  /** @param span as JSON */
  add(span: string): void {
    this.#makeRoom(span);
    if (this.count++ > 0) this.#bytes[this.#length++] = COMMA;
    this.#length += this.#bytes.write(span, this.#length);
  }

  /** Returns the whole body. The body is valid until `clear` is called. */
  body(): Buffer {
    this.#makeRoom(this.#behind);
    return this.#bytes.subarray(0, this.#length + this.#bytes.write(this.#behind, this.#length));
  }

  clear(): void {
    this.count = 0;
    this.#length = this.#start;
  }

  #makeRoom(text: string): void {
    const end = this.#length + 1 + MAX_CHARACTER * text.length;
    if (end <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(end, 2 * this.#bytes.length));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}
