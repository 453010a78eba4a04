// How often something may be done, as people write it: `100/s`, `5000/h burst 200`. It counts nothing.

export interface Rate {
  /** So many in the long run … */
  readonly count: number;
  /** … in each of so many seconds. */
  readonly seconds: number;
  /** And so many at once, after a while without any. */
  readonly burst: number;
}

/** What `parseRate` takes, for messages. */
export const RATE_FORM = 'a rate such as 100/s, 5000/h or 100/s burst 500';

const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };
const RATE = /^([1-9]\d{0,8})\/([smhd])(?: burst ([1-9]\d{0,8}))?$/;

/**
 * Undefined for what is no rate. Without a burst it is the count: what a second, an hour allows may come all at once.
 */
export function parseRate(text: string): Rate | undefined {
  const [, count = '', unit = '', burst = count] = RATE.exec(text) ?? [];
  const seconds = SECONDS[unit];
  return seconds === undefined ? undefined : { count: Number(count), seconds, burst: Number(burst) };
}
