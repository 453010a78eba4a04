// Writes spans as the body of the request that brings them to the collector. All spans of a batch are written in one
// go, because the code is fast then. Between two requests, other code would take its place in the caches of the
// processor. The memory of the body is used again, because new memory would cost as much as the spans.

/** A span that has ended, and is not written yet. */
export interface EndedSpan {
  /** The characters of the text, nearly. */
  readonly size: number;
  /** Returns the span as JSON. */
  encode(): string;
}

const FIRST_SIZE = 64 * 1024;
/** The most bytes of memory that is used again. */
const MAX_KEPT_SIZE = 2 * 1024 * 1024;
/** The most bytes that one character of a text can take in UTF-8. */
const MAX_CHARACTER = 3;
const COMMA = 0x2c;

/**
 * @param envelope the texts before and after the spans
 * @returns a function that writes spans. Its result is valid until the next call
 */
export function createBatchWriter([before, behind]: readonly [before: string, behind: string]): (
  spans: readonly EndedSpan[],
) => Buffer {
  let bytes = Buffer.allocUnsafeSlow(0);
  let length = 0;

  function write(text: string): void {
    const end = length + MAX_CHARACTER * text.length;
    if (end > bytes.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(end, 2 * bytes.length, FIRST_SIZE));
      bytes.copy(larger, 0, 0, length);
      bytes = larger;
    }
    length += bytes.write(text, length);
  }

  return (spans) => {
    if (bytes.length > MAX_KEPT_SIZE) bytes = Buffer.allocUnsafeSlow(0);
    length = 0;
    write(before);
    const start = length;
    for (const span of spans) {
      if (length > start) bytes[length++] = COMMA;
      write(span.encode());
    }
    write(behind);
    return bytes.subarray(0, length);
  };
}
