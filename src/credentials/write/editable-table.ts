// Edits the table: parses its text, lets a function change the rows, and writes the text anew, a row a line. Unknown
// rows and fields stay. What the rows mean is changes.ts.
import { isRawRow } from '../table/table.ts';
import { parseTableText } from '../table/text.ts';

export interface EditableTable {
  /** The rows as the file has them; changes do not show here. */
  readonly rows: readonly unknown[];
  append(row: object): void;
  /** Sets fields of one row. */
  change(index: number, fields: Readonly<Record<string, unknown>>): void;
}

export interface Edited<T> {
  /** The new text; `undefined`: `mutate` changed nothing. */
  readonly text: string | undefined;
  /** What `mutate` returned. */
  readonly result: T;
}

/** @throws Error when the bytes are not a table, and whatever `mutate` throws */
export function editTable<T>(bytes: Buffer, mutate: (table: EditableTable) => T): Edited<T> {
  const { members, rows, repeated } = parseTableText(bytes);
  const edited = [...rows];
  const result = mutate({
    rows,
    append: (row) => edited.push(row),
    change(index, fields) {
      const row = edited[index];
      edited[index] = { ...(isRawRow(row) ? row : {}), ...fields };
    },
  });
  if (edited.length === rows.length && edited.every((row, index) => row === rows[index]))
    return { text: undefined, result };
  const [twice] = repeated;
  // JSON.parse kept one of the two: to write it would bring to life a row that is bad.
  if (twice !== undefined) {
    const place = ['the table', ...twice.path].join('/').slice(0, 100);
    throw new Error(`${place} has the field ${JSON.stringify(twice.key.slice(0, 100))} twice; take one out`);
  }
  const list = `[\n${edited.map((row) => JSON.stringify(row)).join(',\n')}\n]`;
  const texts = Object.entries(members).map(
    ([key, value]) => `${JSON.stringify(key)}:${value === rows ? list : JSON.stringify(value)}`,
  );
  return { text: `{${texts.join(',\n')}}\n`, result };
}
