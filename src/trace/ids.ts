// Makes the ids of traces and spans: slices of one text of random hexadecimal digits, which is made anew when it is
// used up. A call of the generator for each id would cost more than the rest of a span.
import { crypto } from '../base/builtins.ts';

/** Digits of a trace id and of a span id. */
const TRACE = 32;
const SPAN = 16;
/** Bytes that one call of the generator makes. */
const POOL = 8192;

let digits = '';
let at = 0;

function take(length: number): string {
  if (at + length > digits.length) {
    digits = crypto().randomBytes(POOL).toString('hex');
    at = 0;
  }
  const id = digits.slice(at, at + length);
  at += length;
  // An id of zeros is no id.
  return id === '0'.repeat(length) ? take(length) : id;
}

/** The number of values that the last digits of a trace id have, and that the first seven of these have. */
const RANGE = 2 ** 52;
const HIGH_RANGE = 2 ** 28;
const RANDOM_DIGITS = 13;
/** Three hexadecimal digits: `toString(16)` of so large a number would be the dearest part of a span. */
const TRIPLES = Array.from({ length: 4096 }, (_, i) => i.toString(16).padStart(3, '0'));

/** @param randomness from 0 to 1: the last digits of the id, by which all services with one ratio choose alike */
export function newTraceId(randomness: number): string {
  const shifted = randomness * HIGH_RANGE;
  const high = Math.floor(shifted);
  const low = Math.floor((shifted - high) * (RANGE / HIGH_RANGE));
  const first = (high >>> 24).toString(16);
  return take(TRACE - RANDOM_DIGITS) + first + triples(high & 0xffffff) + triples(low);
}

/** @param number of 24 bits */
function triples(number: number): string {
  return `${TRIPLES[number >>> 12]}${TRIPLES[number & 0xfff]}`;
}

/** The inverse of `newTraceId`. */
export function randomnessOf(traceId: string): number {
  return Number.parseInt(traceId.slice(TRACE - RANDOM_DIGITS), 16) / RANGE;
}

export function newSpanId(): string {
  return take(SPAN);
}
