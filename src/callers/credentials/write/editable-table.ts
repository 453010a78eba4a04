// Edits the text of the table and formats all rows again, one on a line. Fields that Gatefold does not read stay.
import { isObject } from '../../../base/values.ts';
import { parseTableText, refuseRepeatedFields } from '../table/text.ts';

export interface EditableTable {
  /** The rows as they were read. `append` and `change` do not alter this list. */
  readonly rows: readonly unknown[];
  append(row: object): void;
  /** Sets fields of the row with this index, which must be an object, and keeps its other fields. */
  change(index: number, fields: Readonly<Record<string, unknown>>): void;
  remove(index: number): void;
}

/** Why a copy of a store (a file with the member `store`) is not changed, and what to do. */
export const STORE_COPY = "a copy of a store's table; set STORE (and STORE_KEY) as the service has them";

/**
 * @param isCopyAllowed whether the file may be a copy of a store, which undoes the change later
 * @returns the new text, which is absent when nothing was changed; and the value that `changeRows` returned
 * @throws Error when the bytes are not a table, or are a copy of a store; Error when a row was changed and an object in
 *   the text, or in that of a copy outside of its rows, has a field twice; any error of `changeRows`
 */
export function editTableText<T>(
  bytes: Buffer,
  changeRows: (table: EditableTable) => T,
  isCopyAllowed = false,
): { text?: string; result: T } {
  const { members, rows, repeatedFields } = parseTableText(bytes);
  if (members.store !== undefined && !isCopyAllowed) throw new Error(`it is ${STORE_COPY}`);
  const { table, editedRows } = createEditableTable(rows);
  const result = changeRows(table);
  if (editedRows.length === rows.length && editedRows.every((row, index) => row === rows[index])) return { result };
  // JSON.parse keeps only the last of two fields with the same name, and so would the new text. A row that is
  // quarantined for a repeated field would become valid.
  // In a copy, such a row must not stop the revocation of another row. So it stays quarantined by the field `unusable`.
  const isCopy = members.store !== undefined;
  refuseRepeatedFields(repeatedFields.filter(({ path: [member] }) => !isCopy || member !== 'production'));
  for (const { key, path } of repeatedFields) {
    const index = Number(path[1]);
    const row = editedRows[index];
    if (isObject(row)) editedRows[index] = { ...row, ...unusableFor(key) };
  }
  const rowTexts = editedRows.flatMap((row) => (row === undefined ? [] : [JSON.stringify(row)]));
  const rowList = `[\n${rowTexts.join(',\n')}\n]`;
  const memberTexts = Object.entries(members).map(
    ([key, value]) => `${JSON.stringify(key)}:${value === rows ? rowList : JSON.stringify(value)}`,
  );
  return { text: `{${memberTexts.join(',\n')}}\n`, result };
}

/** Returns a table, and its rows with all edits. Rows keep their index, new rows are last, removed ones undefined. */
export function createEditableTable(rows: readonly unknown[]) {
  const editedRows: unknown[] = [...rows];
  const table: EditableTable = {
    rows,
    append: (row) => editedRows.push(row),
    change(index, fields) {
      editedRows[index] = { ...(editedRows[index] as object), ...fields };
    },
    remove(index) {
      editedRows[index] = undefined;
    },
  };
  return { table, editedRows };
}

/** Returns what keeps a row quarantined in a new text. The row had this field twice, and the new text has it once. */
export function unusableFor(repeatedField: string): { readonly unusable: string } {
  return { unusable: `it has the field ${JSON.stringify(repeatedField.slice(0, 100))} twice` };
}
