// Decides conditional requests (RFC 9110, 13): whether the client already has the content that a GET would send.
import type { IncomingHttpHeaders } from 'node:http';
import { parseEntityTags } from '../../base/entity-tags.ts';

export interface Validators {
  readonly etag: string | undefined;
  /** The value of `Last-Modified`, an HTTP date. */
  readonly lastModified: string | undefined;
}

/**
 * Says whether the client already has the content. If-None-Match wins over If-Modified-Since (13.2.2). A condition that
 * cannot be parsed is ignored.
 */
export function isNotModified(headers: IncomingHttpHeaders, { etag, lastModified }: Validators): boolean {
  const noneMatch = headers['if-none-match'];
  if (noneMatch !== undefined) return matches(noneMatch, etag);
  const since = headers['if-modified-since'];
  if (since === undefined || lastModified === undefined) return false;
  return Date.parse(lastModified) <= parseDate(since);
}

/**
 * Matches the current date format of HTTP and the two obsolete ones (RFC 9110, 5.6.7). `Date.parse` alone would accept
 * many more formats.
 */
const HTTP_DATE =
  /^(?:[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT|[A-Z][a-z]+day, \d\d-[A-Z][a-z]{2}-\d\d \d\d:\d\d:\d\d GMT|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})$/;

/** @returns NaN when the text is not an HTTP date; a comparison with NaN is false */
function parseDate(text: string): number {
  if (!HTTP_DATE.test(text)) return Number.NaN;
  // The third format has no zone, and is always in GMT.
  return Date.parse(text.endsWith('GMT') ? text : `${text} GMT`);
}

/** Compares entity tags weakly: W/"a" matches "a". */
function matches(header: string, etag: string | undefined): boolean {
  const tags = parseEntityTags(header);
  if (tags === undefined) return false;
  return tags === '*' || (etag !== undefined && tags.some((tag) => opaqueTag(tag) === opaqueTag(etag)));
}

function opaqueTag(tag: string): string {
  return tag.startsWith('W/') ? tag.slice(2) : tag;
}
