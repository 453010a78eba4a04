// A token bucket: it fills at the rate up to the burst, a request takes one token, and it may owe some.
import type { Rate } from '../base/rate.ts';

export interface Bucket {
  tokens: number;
  /** Milliseconds of the clock in use, when `tokens` was right. */
  at: number;
}

/** Callers kept in a process; each is some 300 bytes with its name, so 30 MB at most. */
export const MOST_CALLERS = 100_000;
/** Characters of the name of one. */
export const LONGEST_CALLER = 200;

export function fullBucket({ burst }: Rate, now: number): Bucket {
  return { tokens: burst, at: now };
}

export function refill(bucket: Bucket, { count, seconds, burst }: Rate, now: number): void {
  const filled = bucket.tokens + (Math.max(0, now - bucket.at) * count) / (seconds * 1000);
  bucket.tokens = Math.min(burst, filled);
  bucket.at = now;
}
