// Makes the ids of traces and spans. The ids are slices of a long text of random hexadecimal digits, except for the
// last 13 digits of a trace id, which the caller determines. When the text is used up, a new text is made. A call of
// the random generator for each id would cost more than all other work for a span.
import { crypto } from '../../base/builtins.ts';

const TRACE_DIGITS = 32;
const SPAN_DIGITS = 16;
const POOL_BYTES = 8192;

/** An id of zeros is invalid. So a text with this many zeros in a row is not used. */
const ZEROS = '0'.repeat(SPAN_DIGITS);

let digits = '';
let offset = 0;

function takeDigits(length: number): string {
  if (offset + length > digits.length) {
    do digits = crypto().randomBytes(POOL_BYTES).toString('hex');
    while (digits.includes(ZEROS));
    offset = 0;
  }
  const id = digits.slice(offset, offset + length);
  offset += length;
  return id;
}

/** The number of digits at the end of a trace id by which samplers decide. */
const RANDOM_DIGITS = 13;
/** How many values these 13 digits can have. */
const RANGE = 2 ** 52;
/** How many values the first seven of these digits can have. */
const HIGH_RANGE = 2 ** 28;
/** All texts of three hexadecimal digits. Without them, `toString(16)` would be the most expensive part of a span. */
const TRIPLES = Array.from({ length: 4096 }, (_, i) => i.toString(16).padStart(3, '0'));

/**
 * Makes a trace id that ends with the digits of `randomness`. All services with the same sampling ratio decide by these
 * digits, so they choose the same traces.
 *
 * @param randomness a number from 0 to 1, and less than 1
 */
export function newTraceId(randomness: number): string {
  const shifted = randomness * HIGH_RANGE;
  const high = Math.floor(shifted);
  const low = Math.floor((shifted - high) * (RANGE / HIGH_RANGE));
  const firstDigit = (high >>> 24).toString(16);
  return takeDigits(TRACE_DIGITS - RANDOM_DIGITS) + firstDigit + sixDigits(high & 0xffffff) + sixDigits(low);
}

function sixDigits(value: number): string {
  return `${TRIPLES[value >>> 12]}${TRIPLES[value & 0xfff]}`;
}

/** Returns the number from 0 to less than 1 that the last digits of a trace id stand for. */
export function randomnessOf(traceId: string): number {
  return Number.parseInt(traceId.slice(TRACE_DIGITS - RANDOM_DIGITS), 16) / RANGE;
}

export function newSpanId(): string {
  return takeDigits(SPAN_DIGITS);
}
