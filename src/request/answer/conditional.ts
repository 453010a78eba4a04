// Decides conditional requests (RFC 9110, 13): whether the client already has the content that a GET would send, or
// wants the content only if it is still the one that the client knows.
import type { IncomingHttpHeaders } from 'node:http';
import { parseEntityTags } from '../../base/entity-tags.ts';
import type { Exchange } from '../exchange.ts';
import type { Answer } from './result.ts';

export interface Validators {
  readonly etag: string | undefined;
  /** The value of `Last-Modified`, an HTTP date. */
  readonly lastModified: string | undefined;
}

/**
 * Returns the status of an answer to GET or HEAD that the conditions of the client replace. If-Match wins over
 * If-Unmodified-Since, and If-None-Match over If-Modified-Since (13.2.2). Without the 412 for a file, a client could
 * join parts of two versions.
 */
export function conditionalStatus(exchange: Exchange, answer: Answer): 304 | 412 | undefined {
  if (answer.status !== 200 || (answer.etag === undefined && answer.lastModified === undefined)) return undefined;
  if (!isRead(exchange)) return undefined;
  const { headers } = exchange.request;
  if (answer.body.kind === 'file' && failsPrecondition(headers, answer)) return 412;
  return isNotModified(headers, answer) ? 304 : undefined;
}

export function isRead({ verb }: Pick<Exchange, 'verb'>): boolean {
  return verb === 'GET' || verb === 'HEAD';
}

/** Compares entity tags strongly: a weak tag never matches. A date that cannot be parsed is ignored. */
function failsPrecondition(headers: IncomingHttpHeaders, { etag, lastModified }: Validators): boolean {
  const match = headers['if-match'];
  if (match !== undefined) {
    const tags = parseEntityTags(match);
    return tags !== '*' && (etag === undefined || etag.startsWith('W/') || tags?.includes(etag) !== true);
  }
  const since = headers['if-unmodified-since'];
  return since !== undefined && lastModified !== undefined && Date.parse(lastModified) > parseDate(since);
}

/** Says whether the client already has the content. A condition that cannot be parsed is ignored. */
function isNotModified(headers: IncomingHttpHeaders, { etag, lastModified }: Validators): boolean {
  const noneMatch = headers['if-none-match'];
  if (noneMatch !== undefined) return matches(noneMatch, etag);
  const since = headers['if-modified-since'];
  if (since === undefined || lastModified === undefined) return false;
  return Date.parse(lastModified) <= parseDate(since);
}

/** Matches the date format of HTTP and the two obsolete ones (RFC 9110, 5.6.7). `Date.parse` takes many more. */
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

const opaqueTag = (tag: string): string => tag.replace(/^W\//, '');
