// Changes to the table's text that leave every other byte of it alone: rows and fields that the program does not know
// stay as they are, down to numbers that JSON.parse would round. It does not know what the rows mean.
import { parseRows, withoutByteOrderMark } from '../table.ts';

export interface EditableTable {
  /** The rows as they stand, parsed; changes made here do not show in it. */
  readonly rows: readonly unknown[];
  append(row: object): void;
  /** Sets fields of one row; at most one call a row. */
  change(index: number, fields: Readonly<Record<string, unknown>>): void;
}

interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** A member of an object or an element of an array: where it begins (with its key), and its value. */
interface Span {
  readonly start: number;
  readonly key: string | undefined;
  readonly valueStart: number;
  readonly end: number;
}

/**
 * @returns the new text, or `undefined` when `mutate` changed nothing; and what `mutate` returned
 * @throws Error when the text is not a table, and whatever `mutate` throws
 */
export function editTable<T>(original: string, mutate: (table: EditableTable) => T): { text: string | undefined; result: T } {
  const text = withoutByteOrderMark(original);
  const rows = parseRows(text);
  const list = findList(text);
  const elements = spansOf(text, list.valueStart);
  const added: object[] = [];
  const edits: Edit[] = [];
  const result = mutate({
    rows,
    append: (row) => added.push(row),
    change: (index, fields) => edits.push(...changeFields(text, (elements[index] as Span).valueStart, fields)),
  });
  if (added.length > 0) edits.push(appendRows(text, list, elements, added));
  return { text: edits.length === 0 ? undefined : applyEdits(text, edits), result };
}

function applyEdits(text: string, edits: readonly Edit[]): string {
  let done = 0;
  let output = '';
  for (const edit of [...edits].sort((a, b) => a.start - b.start)) {
    output += text.slice(done, edit.start) + edit.text;
    done = edit.end;
  }
  return output + text.slice(done);
}

/** In the style of the rows that are there; the first row of a table stands on a line of its own. */
function appendRows(text: string, list: Span, elements: readonly Span[], added: readonly object[]): Edit {
  const last = elements.at(-1);
  if (last === undefined) {
    return { start: list.valueStart + 1, end: list.end - 1, text: `\n${added.map((row) => JSON.stringify(row)).join(',\n')}\n` };
  }
  const before = elements.at(-2)?.end ?? list.valueStart;
  const gap = /\s*$/.exec(text.slice(before, last.start))?.[0] ?? '';
  const isSpread = text.slice(last.start, last.end).includes('\n');
  const indent = gap.slice(gap.lastIndexOf('\n') + 1);
  const written = added.map((row) => (isSpread ? JSON.stringify(row, null, 2).replaceAll('\n', `\n${indent}`) : JSON.stringify(row)));
  return { start: last.end, end: last.end, text: written.map((row) => `,${gap}${row}`).join('') };
}

function changeFields(text: string, rowStart: number, fields: Readonly<Record<string, unknown>>): Edit[] {
  const members = spansOf(text, rowStart);
  const last = members.at(-1) as Span;
  const before = members.at(-2)?.end ?? rowStart;
  const gap = /\s*$/.exec(text.slice(before, last.start))?.[0] ?? '';
  return Object.entries(fields).map(([key, value]) => {
    // Of a repeated key JSON.parse takes the last.
    const member = members.findLast((span) => span.key === key);
    const written = JSON.stringify(value);
    if (member !== undefined) return { start: member.valueStart, end: member.end, text: written };
    return { start: last.end, end: last.end, text: `,${gap}${JSON.stringify(key)}:${gap === '' ? '' : ' '}${written}` };
  });
}

function findList(text: string): Span {
  return spansOf(text, skipSpace(text, 0)).findLast((span) => span.key === 'production') as Span;
}

/** The members of the object, or the elements of the array, that begins at `start`. The text is known to be valid JSON. */
function spansOf(text: string, start: number): Span[] {
  const isObject = text[start] === '{';
  const spans: Span[] = [];
  let at = skipSpace(text, start + 1);
  while (text[at] !== '}' && text[at] !== ']') {
    const spanStart = at;
    let key: string | undefined;
    if (isObject) {
      const keyEnd = skipString(text, at);
      key = JSON.parse(text.slice(at, keyEnd)) as string;
      at = skipSpace(text, skipSpace(text, keyEnd) + 1);
    }
    const end = skipValue(text, at);
    spans.push({ start: spanStart, key, valueStart: at, end });
    at = skipSpace(text, end);
    if (text[at] === ',') at = skipSpace(text, at + 1);
  }
  return spans;
}

function skipValue(text: string, start: number): number {
  let depth = 0;
  let at = start;
  do {
    const char = text[at];
    if (char === '"') at = skipString(text, at);
    else if (char === '{' || char === '[') {
      depth++;
      at++;
    } else if (char === '}' || char === ']') {
      depth--;
      at++;
    } else if (depth > 0) at++;
    else at = skipScalar(text, at);
  } while (depth > 0);
  return at;
}

function skipString(text: string, start: number): number {
  let at = start + 1;
  while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at + 1;
}

function skipScalar(text: string, start: number): number {
  let at = start;
  while (at < text.length && !' \t\r\n,]}'.includes(text[at] as string)) at++;
  return at;
}

function skipSpace(text: string, start: number): number {
  let at = start;
  while (at < text.length && ' \t\r\n'.includes(text[at] as string)) at++;
  return at;
}
