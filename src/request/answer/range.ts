// Decides which part of a file the client gets (RFC 9110, 14). A request for several parts gets the whole file.
import type { IncomingHttpHeaders } from 'node:http';
import { refusal } from '../../base/errors.ts';
import type { Validators } from './conditional.ts';

export interface Range {
  readonly start: number;
  /** The offset behind the last byte. */
  readonly end: number;
}

/** One part: `bytes=0-99`, `bytes=100-`, or the last bytes: `bytes=-100`. The unit is not case-sensitive. */
const ONE_PART = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i;

/**
 * @returns undefined for the whole file: no range, one that cannot be read, or a file that has changed since
 * @throws HttpError RANGE_NOT_SATISFIABLE
 */
export function readRange(headers: IncomingHttpHeaders, size: number, validators: Validators): Range | undefined {
  const { range = '', 'if-range': ifRange } = headers as Record<string, string | undefined>;
  const [, first = '', last = ''] = ONE_PART.exec(range) ?? [];
  if ((first === '' && last === '') || !isStillValid(ifRange, validators)) return undefined;
  if (first !== '' && last !== '' && Number(last) < Number(first)) return undefined;
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === '' || last === '' ? size : Math.min(size, Number(last) + 1);
  if (start >= end)
    throw refusal('RANGE_NOT_SATISFIABLE', undefined, { headers: { 'Content-Range': `bytes */${size}` } });
  return { start, end };
}

/** Compares strongly: a weak tag never matches, and a date must be the very date (RFC 9110, 13.1.5). */
function isStillValid(ifRange: string | undefined, { etag, lastModified }: Validators): boolean {
  if (ifRange === undefined) return true;
  return ifRange === lastModified || (ifRange === etag && !ifRange.startsWith('W/'));
}
