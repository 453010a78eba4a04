// Makes the ids of traces and spans: slices of one text of random hexadecimal digits, which is made anew when it is used
// up. A call of the generator for each id would cost more than the rest of a span.
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

export function newTraceId(): string {
  return take(TRACE);
}

export function newSpanId(): string {
  return take(SPAN);
}
