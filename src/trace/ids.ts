// Makes the ids of traces and spans from random bytes, many at a time.
import { crypto } from '../base/builtins.ts';

/** Bytes of a trace id and of a span id. */
const TRACE = 16;
const SPAN = 8;
/** Bytes that one call of the generator fills. */
const POOL = 4096;

const pool = Buffer.allocUnsafe(POOL);
let at = POOL;

function take(bytes: number): string {
  if (at + bytes > POOL) {
    crypto().randomFillSync(pool);
    at = 0;
  }
  const id = pool.toString('hex', at, at + bytes);
  at += bytes;
  // An id of zeros is no id. One of 2^64 is.
  return /[1-9a-f]/.test(id) ? id : take(bytes);
}

export function newTraceId(): string {
  return take(TRACE);
}

export function newSpanId(): string {
  return take(SPAN);
}
