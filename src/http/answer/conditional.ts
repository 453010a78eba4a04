// Conditional requests (RFC 9110, 13): whether a client has already what a GET would bring it.
import type { IncomingHttpHeaders } from 'node:http';
import { parseEntityTags } from '../../base/entity-tags.ts';

export interface Validators {
  readonly etag: string | undefined;
  /** An HTTP date. */
  readonly lastModified: string | undefined;
}

/** If-None-Match is the one that counts where both are sent (13.2.2). A condition that cannot be read is none. */
export function isNotModified(headers: IncomingHttpHeaders, { etag, lastModified }: Validators): boolean {
  const noneMatch = headers['if-none-match'];
  if (noneMatch !== undefined) return matches(noneMatch, etag);
  const since = headers['if-modified-since'];
  if (since === undefined || lastModified === undefined) return false;
  return Date.parse(lastModified) <= parseDate(since);
}

/**
 * RFC 9110, 5.6.7: the form of today, and the two that clients must not send any more. JavaScript reads many others,
 * each in its own way.
 */
const HTTP_DATE =
  /^(?:[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT|[A-Z][a-z]+day, \d\d-[A-Z][a-z]{2}-\d\d \d\d:\d\d:\d\d GMT|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})$/;

/** NaN: it is no HTTP date. */
function parseDate(text: string): number {
  if (!HTTP_DATE.test(text)) return Number.NaN;
  return Date.parse(text.endsWith('GMT') ? text : `${text} GMT`);
}

/** Weak comparison: W/"a" and "a" stand for the same. */
function matches(header: string, etag: string | undefined): boolean {
  const tags = parseEntityTags(header);
  if (tags === undefined) return false;
  return tags === '*' || (etag !== undefined && tags.some((tag) => opaque(tag) === opaque(etag)));
}

function opaque(tag: string): string {
  return tag.startsWith('W/') ? tag.slice(2) : tag;
}
