// Parses the lists of entity tags in If-Match and If-None-Match (RFC 9110, 8.8.3). A client chooses the length of the
// list, so the parsing time is linear in this length.

/**
 * Returns `'*'` for the header `*`, or else the tags with their quotes and `W/`: `"a"`, `W/"b"`. Returns undefined when
 * the header is not such a list, or when the list is empty.
 */
export function parseEntityTags(header: string): readonly string[] | '*' | undefined {
  if (header.trim() === '*') return '*';
  const tags: string[] = [];
  for (let i = 0; ; ) {
    // A list may have empty elements (RFC 9110, 5.6.1).
    while (header[i] === ' ' || header[i] === '\t' || header[i] === ',') i++;
    if (i >= header.length) return tags.length === 0 ? undefined : tags;
    const start = i;
    if (header.startsWith('W/', i)) i += 2;
    const end = header[i] === '"' ? header.indexOf('"', i + 1) : -1;
    // An entity tag has no quote, space or control character. The header has a character for each byte (latin1).
    if (end < 0 || /[^\x21\x23-\x7e\x80-\xff]/.test(header.slice(i + 1, end))) return undefined;
    tags.push(header.slice(start, end + 1));
    i = end + 1;
    while (header[i] === ' ' || header[i] === '\t') i++;
    if (i < header.length && header[i] !== ',') return undefined;
  }
}
