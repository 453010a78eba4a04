// Shortens a log line that is too long for one write, so that it stays one JSON object. Texts, lists and objects in it
// are cut, a bit more in each try.

/** The characters that a text keeps in the first try. Each further try halves them. */
const LONGEST = 2000;
/** The characters that a text keeps in the last try. */
const SHORTEST = 40;
/** The characters of a text for which a list keeps one item: a list keeps 100 items in the first try. */
const CHARACTERS_PER_ITEM = 20;
/** The depth below which values are cut, because JSON.stringify of deep values is slow. */
const DEPTH = 4;
/** The fields that identify a line and its request. A line keeps these if all tries fail. */
const IDENTIFYING = ['time', 'level', 'event', 'pid', 'request_id'];

/**
 * Returns the line in at most so many bytes, with `"cut":true`.
 *
 * @param line a JSON object and a line feed; any other text is cut at its end
 * @param most bytes, with the line feed
 */
export function cutLine(line: string, most: number): string {
  const fields = parseObject(line);
  if (fields === undefined) return cutText(line, most);
  for (let length = LONGEST; length >= SHORTEST; length /= 2) {
    const cut = `${JSON.stringify({ ...(shorten(fields, length, Math.floor(length / CHARACTERS_PER_ITEM), DEPTH) as object), cut: true })}\n`;
    if (Buffer.byteLength(cut) <= most) return cut;
  }
  const identity = Object.fromEntries(
    IDENTIFYING.flatMap((name) => (name in fields ? [[name, shorten(fields[name], SHORTEST, 0, 1)]] : [])),
  );
  return `${JSON.stringify({ ...identity, cut: true })}\n`;
}

function parseObject(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * @param length characters that a text keeps
 * @param items items that a list keeps
 */
function shorten(value: unknown, length: number, items: number, depth: number): unknown {
  if (typeof value === 'string') return value.length > length ? `${value.slice(0, length)}…` : value;
  if (typeof value !== 'object' || value === null) return value;
  if (depth === 0) return '…';
  if (Array.isArray(value)) {
    const first = value.slice(0, items).map((item) => shorten(item, length, items, depth - 1));
    return value.length > items ? [...first, `… and ${value.length - items} more`] : first;
  }
  // The fields that identify a line come first, so they are among those that stay.
  const first = Object.entries(value).slice(0, items + IDENTIFYING.length);
  return Object.fromEntries(
    first.map(([name, field]) => [name.slice(0, length), shorten(field, length, items, depth - 1)]),
  );
}

function cutText(line: string, most: number): string {
  const end = '…\n';
  // A character that is cut in two decodes to U+FFFD, and is dropped.
  const text = Buffer.from(line)
    .subarray(0, most - Buffer.byteLength(end))
    .toString()
    .replace(/\uFFFD+$/, '');
  return text + end;
}
