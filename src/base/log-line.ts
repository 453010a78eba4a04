// Shortens a log line that is too long for one write, so that it is still one JSON object. If the line is still too
// long after its texts, lists and objects were cut, they are cut to half of that size, and so on.
import { withoutLoneSurrogates } from './json-text.ts';
import { parseObject } from './values.ts';

/** Characters that a text keeps at first. Each further try halves the number. */
const FIRST_TEXT_LENGTH = 2000;
const MIN_TEXT_LENGTH = 40;
/** How many items a list keeps for each character that a text keeps: at first 100 items and 2000 characters. */
const ITEMS_PER_CHARACTER = 1 / 20;
/** Values below this depth are cut, because JSON.stringify of deep values is slow. */
const MAX_DEPTH = 4;
const NUMBER = /^\d+$/;
/** The fields that identify a line and its request. When all tries fail, the line keeps only these fields. */
const IDENTITY_FIELDS = ['time', 'level', 'event', 'pid', 'request_id', 'trace_id', 'span_id'];

/** Shortens a line (a JSON object and a line feed) to `maxBytes`, and marks it with `"cut":true`. */
export function cutLine(line: string, maxBytes: number): string {
  const fields = parseObject(line) ?? {};
  for (let length = FIRST_TEXT_LENGTH; length >= MIN_TEXT_LENGTH; length /= 2) {
    const shortFields = { ...(shorten(fields, length, MAX_DEPTH) as object), cut: true };
    // A cut can divide a character.
    const shortLine = `${withoutLoneSurrogates(JSON.stringify(shortFields))}\n`;
    if (Buffer.byteLength(shortLine) <= maxBytes) return shortLine;
  }
  const identity = Object.fromEntries(
    IDENTITY_FIELDS.flatMap((name) => (name in fields ? [[name, shorten(fields[name], MIN_TEXT_LENGTH, 1)]] : [])),
  );
  return `${JSON.stringify({ ...identity, cut: true })}\n`;
}

/** @param length characters of a text; a list keeps a twentieth as many items @param depth levels that are kept */
function shorten(value: unknown, length: number, depth: number): unknown {
  if (typeof value === 'string') return value.length > length ? `${value.slice(0, length)}…` : value;
  if (typeof value !== 'object' || value === null) return value;
  if (depth === 0) return '…';
  const itemCount = Math.floor(length * ITEMS_PER_CHARACTER);
  if (Array.isArray(value)) {
    const keptItems = value.slice(0, itemCount).map((item) => shorten(item, length, depth - 1));
    return value.length > itemCount ? [...keptItems, `… and ${value.length - itemCount} more`] : keptItems;
  }
  // The fields that identify a line are among its first ones, so they are kept even when `itemCount` is small. But
  // JavaScript puts names that are numbers, such as ids of rows, before all others.
  const fields = Object.entries(value)
    .sort(([a], [b]) => Number(NUMBER.test(a)) - Number(NUMBER.test(b)))
    .slice(0, itemCount + IDENTITY_FIELDS.length);
  return Object.fromEntries(fields.map(([name, field]) => [name.slice(0, length), shorten(field, length, depth - 1)]));
}
