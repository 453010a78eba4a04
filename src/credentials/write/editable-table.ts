// Edits the text of the credentials table: parses the text, lets a function change the rows, and formats all rows
// again, one on a line. Rows and fields that Gatefold does not know stay in the text. changes.ts contains the functions
// that change rows.
import { isObject } from '../../base/values.ts';
import { parseTableText } from '../table/text.ts';

export interface EditableTable {
  /** The rows of the file, without the changes. */
  readonly rows: readonly unknown[];
  append(row: object): void;
  /** Sets fields of the row with this index. */
  change(index: number, fields: Readonly<Record<string, unknown>>): void;
}

export interface Edited<T> {
  /** The new text; `undefined` when `mutate` changed nothing. */
  readonly text: string | undefined;
  readonly result: T;
}

/**
 * @param mutate changes the rows
 * @throws Error when the bytes are not a table, or when rows were changed although a field is repeated; also any error
 *   of `mutate`
 */
export function editTable<T>(bytes: Buffer, mutate: (table: EditableTable) => T): Edited<T> {
  const { members, rows, repeated } = parseTableText(bytes);
  const { table, edited } = createEditableTable(rows);
  const result = mutate(table);
  if (edited.length === rows.length && edited.every((row, index) => row === rows[index]))
    return { text: undefined, result };
  const [duplicate] = repeated;
  // When two fields have the same name, JSON.parse keeps only the last one. The new text would lack the first one, and
  // a row that is ignored because of its repeated field would become valid.
  if (duplicate !== undefined) {
    const path = ['the table', ...duplicate.path].join('/').slice(0, 100);
    throw new Error(`${path} has the field ${JSON.stringify(duplicate.key.slice(0, 100))} twice; remove one of them`);
  }
  const list = `[\n${edited.map((row) => JSON.stringify(row)).join(',\n')}\n]`;
  const lines = Object.entries(members).map(
    ([key, value]) => `${JSON.stringify(key)}:${value === rows ? list : JSON.stringify(value)}`,
  );
  return { text: `{${lines.join(',\n')}}\n`, result };
}

/**
 * Returns a table that can be edited, and the list of the rows with the edits. In the list, changed rows keep their
 * places, and new rows are at the end.
 */
export function createEditableTable(rows: readonly unknown[]): {
  readonly table: EditableTable;
  readonly edited: unknown[];
} {
  const edited = [...rows];
  const table: EditableTable = {
    rows,
    append: (row) => edited.push(row),
    change(index, fields) {
      const row = edited[index];
      edited[index] = { ...(isObject(row) ? row : {}), ...fields };
    },
  };
  return { table, edited };
}
