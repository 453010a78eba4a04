// Makes the ids of traces and spans. Each id is a slice of one long text of random hexadecimal digits. When all digits
// are used, a new text is made. One call of the random generator for each id would cost more than the rest of a span.
import { crypto } from '../base/builtins.ts';

/** The number of digits in a trace id. */
const TRACE = 32;
/** The number of digits in a span id. */
const SPAN = 16;
/** The number of random bytes that one call of the generator makes. */
const POOL = 8192;

/** The specification does not allow an id of zeros. So no id comes from a text with as many zeros in a row. */
const ZEROS = '0'.repeat(SPAN);

let digits = '';
let at = 0;

function take(length: number): string {
  if (at + length > digits.length) {
    do digits = crypto().randomBytes(POOL).toString('hex');
    while (digits.includes(ZEROS));
    at = 0;
  }
  const id = digits.slice(at, at + length);
  at += length;
  return id;
}

/** The number of values that the last 13 digits of a trace id can have. */
const RANGE = 2 ** 52;
/** The number of values that the first seven of those 13 digits can have. */
const HIGH_RANGE = 2 ** 28;
/** The number of digits in a trace id that carry its randomness. */
const RANDOM_DIGITS = 13;
/**
 * The texts of all numbers with three hexadecimal digits. With them, no large number needs `toString(16)`, which would
 * be the most expensive part of a span.
 */
const TRIPLES = Array.from({ length: 4096 }, (_, i) => i.toString(16).padStart(3, '0'));

/**
 * Makes a trace id. Its last digits are the randomness. All services with the same sampling ratio decide by these
 * digits, so they choose the same traces.
 *
 * @param randomness from 0 to 1
 */
export function newTraceId(randomness: number): string {
  const shifted = randomness * HIGH_RANGE;
  const high = Math.floor(shifted);
  const low = Math.floor((shifted - high) * (RANGE / HIGH_RANGE));
  const first = (high >>> 24).toString(16);
  return take(TRACE - RANDOM_DIGITS) + first + triples(high & 0xffffff) + triples(low);
}

/** Returns six hexadecimal digits. @param number of 24 bits */
function triples(number: number): string {
  return `${TRIPLES[number >>> 12]}${TRIPLES[number & 0xfff]}`;
}

/** Returns the randomness from which `newTraceId` made the id. */
export function randomnessOf(traceId: string): number {
  return Number.parseInt(traceId.slice(TRACE - RANDOM_DIGITS), 16) / RANGE;
}

export function newSpanId(): string {
  return take(SPAN);
}
