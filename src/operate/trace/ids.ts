// Makes the ids of traces and spans: slices of a long text of random hexadecimal digits. A call of the random generator
// for each id would cost more than all other work for a span.
import { crypto } from '../../base/builtins.ts';

const POOL_BYTES = 8192;

/** An id of zeros is invalid. So a text with as many zeros in a row as a span id has is not used. */
const ZEROS = '0'.repeat(16);

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

export const newTraceId = (): string => takeDigits(32);

export const newSpanId = (): string => takeDigits(16);
