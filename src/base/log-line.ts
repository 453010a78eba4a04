// Cuts a log line that is too long to be written in one piece, so that it stays one JSON object: long texts first, then
// long lists. It knows nothing of what the fields mean, but for those that say which line this is.

/**
 * Characters that a text keeps in the first try, and in the last. Each try halves them; a list keeps an item for 20 of
 * them.
 */
const LONGEST = 2000;
const SHORTEST = 40;
/** JSON.stringify of anything deeper takes longer than it is worth. */
const DEPTH = 4;
/** What every line begins with, and what leads from a line to its request. */
const NAMING = ['time', 'level', 'event', 'pid', 'request_id'];

/**
 * @param line a JSON object and a line feed; any other text is cut at its end
 * @param most bytes, the line feed among them
 */
export function cutLine(line: string, most: number): string {
  const fields = parseObject(line);
  if (fields === undefined) return cutText(line, most);
  for (let text = LONGEST; text >= SHORTEST; text /= 2) {
    const cut = `${JSON.stringify({ ...(shorten(fields, text, Math.floor(text / 20), DEPTH) as object), cut: true })}\n`;
    if (Buffer.byteLength(cut) <= most) return cut;
  }
  const named = Object.fromEntries(
    NAMING.flatMap((name) => (name in fields ? [[name, shorten(fields[name], SHORTEST, 0, 1)]] : [])),
  );
  return `${JSON.stringify({ ...named, cut: true })}\n`;
}

function parseObject(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function shorten(value: unknown, text: number, list: number, depth: number): unknown {
  if (typeof value === 'string') return value.length > text ? `${value.slice(0, text)}…` : value;
  if (typeof value !== 'object' || value === null) return value;
  if (depth === 0) return '…';
  if (Array.isArray(value)) {
    const kept = value.slice(0, list).map((item) => shorten(item, text, list, depth - 1));
    return value.length > list ? [...kept, `… and ${value.length - list} more`] : kept;
  }
  // A line has a dozen fields, so the first of a great many are those that every line has.
  const kept = Object.entries(value).slice(0, list + NAMING.length);
  return Object.fromEntries(kept.map(([name, field]) => [name.slice(0, text), shorten(field, text, list, depth - 1)]));
}

function cutText(line: string, most: number): string {
  const end = '…\n';
  // A character that is cut in two is dropped: it is decoded to U+FFFD, at the end alone.
  const text = Buffer.from(line)
    .subarray(0, most - Buffer.byteLength(end))
    .toString()
    .replace(/\uFFFD+$/, '');
  return text + end;
}
