// A token bucket: it fills at the rate up to the burst, a request takes one token, and it may owe some. And whose it
// is.
import { hash } from '../base/builtins.ts';
import type { Rate } from '../base/rate.ts';

export interface Bucket {
  tokens: number;
  /** Milliseconds of the clock in use, when `tokens` was right. */
  at: number;
}

/** Callers kept in a process; each is some 300 bytes with its name, so 30 MB at most. */
export const MOST_CALLERS = 100_000;
/** Characters of the name of one; the end of a longer one is a digest of the whole. */
const LONGEST_CALLER = 200;
const DIGEST_LENGTH = 43;

export function callerName(kind: string, who: string): string {
  const name = `${kind} ${who}`;
  if (name.length <= LONGEST_CALLER) return name;
  return name.slice(0, LONGEST_CALLER - DIGEST_LENGTH) + hash('sha256', name, 'base64url');
}

export function fullBucket({ burst }: Rate, now: number): Bucket {
  return { tokens: burst, at: now };
}

export function refill(bucket: Bucket, { count, seconds, burst }: Rate, now: number): void {
  const filled = bucket.tokens + (Math.max(0, now - bucket.at) * count) / (seconds * 1000);
  bucket.tokens = Math.min(burst, filled);
  bucket.at = now;
}
