// Shortens a log line that is too long for one write. The result is still one JSON object. Each try allows texts, lists
// and objects half the size that the try before has allowed.
import { parseObject } from './values.ts';

/** Characters that a text keeps in the first try. Each further try halves the number. */
const FIRST_TEXT_LENGTH = 2000;
/** No try allows a text fewer characters. */
const MIN_TEXT_LENGTH = 40;
/** In the first try, a text keeps 2000 characters, and a list keeps 100 items. */
const ITEMS_PER_CHARACTER = 1 / 20;
/** Values below this depth are cut, because JSON.stringify of deep values is slow. */
const MAX_DEPTH = 4;
/** The fields that identify a line and its request. When all tries fail, the line keeps only these fields. */
const IDENTITY_FIELDS = ['time', 'level', 'event', 'pid', 'request_id', 'trace_id', 'span_id'];

/**
 * Returns the line, shortened to `maxBytes` and marked with `"cut":true`.
 *
 * @param line a JSON object and a line feed; any other text is cut at its end
 * @param maxBytes including the line feed
 */
export function cutLine(line: string, maxBytes: number): string {
  const fields = parseObject(line);
  if (fields === undefined) return cutText(line, maxBytes);
  for (let length = FIRST_TEXT_LENGTH; length >= MIN_TEXT_LENGTH; length /= 2) {
    const shortLine = `${JSON.stringify({ ...(shorten(fields, length, MAX_DEPTH) as object), cut: true })}\n`;
    if (Buffer.byteLength(shortLine) <= maxBytes) return shortLine;
  }
  const identity = Object.fromEntries(
    IDENTITY_FIELDS.flatMap((name) => (name in fields ? [[name, shorten(fields[name], MIN_TEXT_LENGTH, 1)]] : [])),
  );
  return `${JSON.stringify({ ...identity, cut: true })}\n`;
}

/**
 * @param length characters that a text keeps; a list keeps a twentieth as many items
 * @param depth levels of lists and objects that are kept
 */
function shorten(value: unknown, length: number, depth: number): unknown {
  if (typeof value === 'string') return value.length > length ? `${value.slice(0, length)}…` : value;
  if (typeof value !== 'object' || value === null) return value;
  if (depth === 0) return '…';
  const items = Math.floor(length * ITEMS_PER_CHARACTER);
  if (Array.isArray(value)) {
    const keptItems = value.slice(0, items).map((item) => shorten(item, length, depth - 1));
    return value.length > items ? [...keptItems, `… and ${value.length - items} more`] : keptItems;
  }
  // The fields that identify a line are among its first ones, so they are kept even when `items` is small.
  const fields = Object.entries(value).slice(0, items + IDENTITY_FIELDS.length);
  return Object.fromEntries(fields.map(([name, field]) => [name.slice(0, length), shorten(field, length, depth - 1)]));
}

function cutText(line: string, maxBytes: number): string {
  const ellipsis = '…\n';
  // The cut may split a character of several bytes. The bytes before the cut are then decoded to U+FFFD and removed.
  const text = Buffer.from(line)
    .subarray(0, maxBytes - Buffer.byteLength(ellipsis))
    .toString()
    .replace(/\uFFFD+$/, '');
  return text + ellipsis;
}
