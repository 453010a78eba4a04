// Parses rate limits: `100/s`, `20/15m`, `5000/h burst 200`. The folder callers/rates/ counts requests against them.
import { TIME_UNITS } from './time.ts';

export interface Rate {
  /** The number of requests in each period of `seconds`, in the long run. */
  readonly count: number;
  readonly seconds: number;
  /** The number of requests that may come at once after a pause. */
  readonly burst: number;
}

export const RATE_FORM = 'a rate such as 100/s, 5000/h, 20/15m or 100/s burst 500';

const RATE = /^([1-9]\d{0,8})\/([1-9]\d{0,3})?([smhd])(?: burst ([1-9]\d{0,8}))?$/;

/** Without `burst`, the requests of a whole period may come at once. */
export function parseRate(text: string): Rate | undefined {
  const match = RATE.exec(text);
  if (match === null) return undefined;
  const [, count, units = 1, unit = '', burst = count] = match;
  const seconds = (Number(units) * (TIME_UNITS[unit] as number)) / 1000;
  return { count: Number(count), seconds, burst: Number(burst) };
}
