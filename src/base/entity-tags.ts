// Lists of entity tags, as If-Match and If-None-Match have them (RFC 9110, 8.8.3). In one pass, whatever a client
// sends.

/** `"a", W/"b"`, or `*`; undefined: it is no such list. The tags keep their quotes and their `W/`. */
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
    if (end < 0 || /[^\x21\x23-\x7e\x80-\xff]/.test(header.slice(i + 1, end))) return undefined;
    tags.push(header.slice(start, end + 1));
    i = end + 1;
    while (header[i] === ' ' || header[i] === '\t') i++;
    if (i < header.length && header[i] !== ',') return undefined;
  }
}
