// Writes and reads DER (X.690), as far as certificates (certificate-writer.ts, pair.ts) need it.

function element(tag: number, ...content: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(content);
  if (body.length < 0x80) return Buffer.concat([Buffer.of(tag, body.length), body]);
  const length: number[] = [];
  for (let rest = body.length; rest > 0; rest = Math.floor(rest / 256)) length.unshift(rest % 256);
  return Buffer.concat([Buffer.of(tag, 0x80 | length.length, ...length), body]);
}

export const sequence = (...items: readonly Uint8Array[]): Buffer => element(0x30, ...items);
export const set = (...items: readonly Uint8Array[]): Buffer => element(0x31, ...items);
export const bitString = (bytes: Uint8Array): Buffer => element(0x03, Buffer.of(0), bytes);
export const octetString = (bytes: Uint8Array): Buffer => element(0x04, bytes);
export const utf8String = (text: string): Buffer => element(0x0c, Buffer.from(text));
export const TRUE = element(0x01, Buffer.of(0xff));
/** Encodes `[n] EXPLICIT`: a tag around whole elements. */
export const explicit = (n: number, ...items: readonly Uint8Array[]): Buffer => element(0xa0 | n, ...items);
/** Encodes `[n] IMPLICIT`: a tag in place of the usual tag of a primitive type, such as a string. */
export const implicit = (n: number, bytes: Uint8Array): Buffer => element(0x80 | n, bytes);

/** Encodes a number that is not negative, from its big-endian bytes. */
export function integer(bytes: Uint8Array): Buffer {
  const first = bytes.findIndex((byte) => byte !== 0);
  const digits = first < 0 ? Buffer.of(0) : bytes.subarray(first);
  // A leading 1 bit would mean a negative number, so a zero byte is put before it.
  return (digits[0] as number) >= 0x80 ? element(0x02, Buffer.of(0), digits) : element(0x02, digits);
}

/** Encodes an object identifier. @param dotted for example 2.5.29.17 */
export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  // The first byte has the first two numbers. Each byte of another number has seven bits, and 0x80 on all but its last.
  const bytes = [first * 40 + second];
  for (const arc of rest) {
    const digits = [arc % 128];
    for (let high = Math.floor(arc / 128); high > 0; high = Math.floor(high / 128)) digits.unshift(0x80 | (high % 128));
    bytes.push(...digits);
  }
  return element(0x06, Buffer.from(bytes));
}

/** Encodes a time: UTCTime up to 2049, GeneralizedTime after (RFC 5280, section 4.1.2.5). */
export function time(date: Date): Buffer {
  const digits = date.toISOString().replace(/[-:T]|\.\d+/g, '');
  return date.getUTCFullYear() < 2050
    ? element(0x17, Buffer.from(digits.slice(2)))
    : element(0x18, Buffer.from(digits));
}

export interface Element {
  readonly tag: number;
  readonly content: Buffer;
}

/** Reads elements that follow each other. @throws Error when the last element is incomplete */
export function readElements(bytes: Buffer): Element[] {
  const elements: Element[] = [];
  for (let offset = 0; offset < bytes.length; ) {
    const tag = bytes[offset++] as number;
    let length = bytes[offset++] ?? Number.NaN;
    // From 0x80 on, the byte says how many bytes the length has.
    if (length >= 0x80) {
      const digits = length & 0x7f;
      if (digits === 0 || digits > 4 || offset + digits > bytes.length) throw new Error('the bytes are not DER');
      length = bytes.readUIntBE(offset, digits);
      offset += digits;
    }
    // The comparison with NaN, a missing length, is false.
    if (!(offset + length <= bytes.length)) throw new Error('the bytes are not DER');
    elements.push({ tag, content: bytes.subarray(offset, offset + length) });
    offset += length;
  }
  return elements;
}
