// Parses the lists of entity tags in If-Match and If-None-Match (RFC 9110, 8.8.3). A client chooses the length of the
// list, so the parsing time is linear in this length.

/**
 * Matches a list, which may have empty elements (RFC 9110, 5.6.1). An entity tag has no quote, space or control
 * character. The header has a character for each byte (latin1).
 */
const LIST = /^[ \t,]*(?:(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"[ \t]*(?:,[ \t,]*|$))+$/;
const TAG = /(?:W\/)?"[^"]*"/g;

/**
 * Returns `'*'` for the header `*`, or else the tags with their quotes and `W/`: `"a"`, `W/"b"`. Returns undefined when
 * the header is not such a list, or when the list is empty.
 */
export function parseEntityTags(header: string): readonly string[] | '*' | undefined {
  if (header.trim() === '*') return '*';
  return LIST.test(header) ? (header.match(TAG) as string[]) : undefined;
}
