// A token bucket, and the key of the caller that it belongs to. With a rate of 100 requests in 60 seconds, a bucket
// gains 100 tokens in 60 seconds, and holds at most `burst` tokens. A request takes one token. The number of tokens can
// be negative. The caller then has a debt, and has to wait for longer.
import { type BoundedMap, createBoundedMap } from '../../base/bounded-map.ts';
import { hash } from '../../base/builtins.ts';
import type { Rate } from '../../base/rate.ts';

export interface Bucket {
  tokens: number;
  /** When `tokens` was computed, in milliseconds of a clock that never goes back. */
  updatedAt: number;
}

/** Maximum number of callers whose tokens a process keeps. A caller takes some 300 bytes, so all take 30 MB at most. */
export const MAX_CALLERS = 100_000;
/** Maximum number of values of `by` whose tokens a process keeps, apart from callers, because clients choose values. */
export const MAX_VALUES = 10_000;
/** Maximum characters of a caller's key. The end of a longer key is replaced by a digest of the complete key. */
const MAX_KEY_LENGTH = 200;
/** Matches NUL and half of a surrogate pair. PostgreSQL stores neither, so one such key would fail a whole report. */
const UNSTORABLE = /[\0\p{Surrogate}]/gu;
/** Characters of a SHA-256 digest in base64url. */
const DIGEST_LENGTH = 43;

/** Returns the key of a caller, such as `credential shop` or `address 192.0.2.1`. */
export function callerKey(kind: string, name: string): string {
  const key = `${kind} ${name}`;
  if (key.length <= MAX_KEY_LENGTH && key.search(UNSTORABLE) < 0) return key;
  // The cut can leave half of a surrogate pair.
  const start = key.slice(0, MAX_KEY_LENGTH - DIGEST_LENGTH).replaceAll(UNSTORABLE, '');
  return start + hash('sha256', key, 'base64url');
}

/** Whether a key has a value of `by`, which a client can choose. */
export const isValue = (key: string): boolean => key.startsWith('by ');

/** Returns a map by the keys of callers. A key of the kind `by` never drops the entry of another kind. */
export function createCallerMap<V>(): BoundedMap<V> {
  const callers = createBoundedMap<V>(MAX_CALLERS);
  const values = createBoundedMap<V>(MAX_VALUES);
  const mapOf = (key: string): BoundedMap<V> => (isValue(key) ? values : callers);
  return {
    get: (key) => mapOf(key).get(key),
    set: (key, value) => mapOf(key).set(key, value),
    *entries(): Generator<[string, V]> {
      yield* callers.entries();
      yield* values.entries();
    },
    size: () => callers.size() + values.size(),
  };
}

export function fullBucket({ burst }: Rate, now: number): Bucket {
  return { tokens: burst, updatedAt: now };
}

/** Adds the tokens that the bucket has gained since `updatedAt`. */
export function refill(bucket: Bucket, { count, seconds, burst }: Rate, now: number): void {
  const gained = (Math.max(0, now - bucket.updatedAt) * count) / (seconds * 1000);
  bucket.tokens = Math.min(burst, bucket.tokens + gained);
  bucket.updatedAt = now;
}
