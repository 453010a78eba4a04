// Parses the times of a table and the options of the command: ISO 8601 in UTC, and spans such as `90d`.
import { TIME_UNITS } from '../../../base/time.ts';

const ISO_UTC = /^\d{4}-\d{2}-(\d{2})(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?Z)?$/;

/** Returns the Unix milliseconds of `2030-01-31T12:00:00Z` or `2030-01-31` (midnight UTC). */
export function parseTime(text: string): number | undefined {
  const match = ISO_UTC.exec(text);
  const time = match === null ? Number.NaN : Date.parse(text);
  // Date.parse reads 30 February as 2 March, and 24:00 as the next day, so the day of the result must be that of the
  // text. When the text has another form, both days are NaN, which equals nothing.
  return new Date(time).getUTCDate() === Number(match?.[1]) ? time : undefined;
}

const CENTURY_MS = 36_525 * 86_400_000;

/** Returns the milliseconds of `45s`, `30m`, `12h`, `90d` or `2w`; undefined for other forms and over a century. */
export function parseSpan(text: string): number | undefined {
  const match = /^([1-9]\d{0,7})([smhdw])$/.exec(text);
  const span = match === null ? Number.NaN : Number(match[1]) * (TIME_UNITS[match[2] as string] as number);
  return span <= CENTURY_MS ? span : undefined;
}
