// Holds the bytes of one body that comes in many pieces. A Buffer costs some 300 bytes in addition to its content, so a
// client could fill the memory by sending single bytes. Small pieces are therefore copied into one Buffer, the tail.

/** Minimum bytes of a piece that is stored without a copy. */
const LARGE_PIECE = 4 * 1024;
const TAIL_SIZE = 16 * 1024;

export class Pieces {
  size = 0;
  readonly #pieces: Buffer[] = [];
  #tail: Buffer | undefined;
  #tailLength = 0;

  add(piece: Buffer): void {
    this.size += piece.length;
    if (piece.length >= LARGE_PIECE) {
      this.#closeTail();
      this.#pieces.push(piece);
      return;
    }
    if (this.#tailLength + piece.length > TAIL_SIZE) this.#closeTail();
    this.#tail ??= Buffer.allocUnsafeSlow(TAIL_SIZE);
    this.#tailLength += piece.copy(this.#tail, this.#tailLength);
  }

  join(): Buffer {
    this.#closeTail();
    return Buffer.concat(this.#pieces, this.size);
  }

  #closeTail(): void {
    if (this.#tail === undefined) return;
    this.#pieces.push(this.#tail.subarray(0, this.#tailLength));
    this.#tail = undefined;
    this.#tailLength = 0;
  }
}
