// The bytes of one body that comes in many pieces. Small pieces are copied together: otherwise a client that sends a
// byte at a time would cost some 300 bytes of memory for each.

/** Bytes. A piece of at least this length is kept without a copy. */
const SMALL = 4 * 1024;
const TAIL = 16 * 1024;

export class Pieces {
  size = 0;
  readonly #pieces: Buffer[] = [];
  #tail: Buffer | undefined;
  #filled = 0;

  add(piece: Buffer): void {
    this.size += piece.length;
    if (piece.length >= SMALL) {
      this.#closeTail();
      this.#pieces.push(piece);
      return;
    }
    if (this.#filled + piece.length > TAIL) this.#closeTail();
    this.#tail ??= Buffer.allocUnsafeSlow(TAIL);
    this.#filled += piece.copy(this.#tail, this.#filled);
  }

  joined(): Buffer {
    this.#closeTail();
    return Buffer.concat(this.#pieces, this.size);
  }

  #closeTail(): void {
    if (this.#tail === undefined) return;
    this.#pieces.push(this.#tail.subarray(0, this.#filled));
    this.#tail = undefined;
    this.#filled = 0;
  }
}
