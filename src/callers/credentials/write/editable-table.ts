// Edits the text of the table. Only rows that are changed are parsed and written again, so a change of one row among
// many is cheap, and every other row keeps its text, its layout and fields that Gatefold does not read.
import { repeatedKeys } from '../../../base/json-keys.ts';
import type { Sliced } from '../table/slices.ts';
import { countBelow, endOfRow, rowText, type SplitText, splitTable, startOfRow } from '../table/split.ts';
import { splitChanges } from '../table/split-changes.ts';
import { parseJson, refuseRepeatedFields } from '../table/text.ts';

export interface EditableTable {
  /** The number of rows as they were read. New rows are not counted. */
  readonly length: number;
  /** Returns a row as it was read. */
  row(index: number): unknown;
  /** Returns the indexes of all rows that have a field with this text as its value, and perhaps of others. */
  find(text: string): readonly number[];
  append(row: object): void;
  /** Sets fields of the row with this index, which must be an object, and keeps its other fields. */
  change(index: number, fields: Readonly<Record<string, unknown>>): void;
  remove(index: number): void;
}

/** Why a copy of a store (a file with the member `store`) is not changed, and what to do. */
export const STORE_COPY = "a copy of a store's table; set STORE (and STORE_KEY) as the service has them";

export interface EditOptions {
  /** Whether the file may be a copy of a store, which undoes the change later. */
  readonly isCopyAllowed?: boolean | undefined;
  /** An older text whose rows are known to be JSON. Rows that are the same in both texts need no further check. */
  readonly known?: SplitText | undefined;
}

const ROWS_A_STEP = 256;

/**
 * @returns the new text, which is absent when nothing was changed; and the value that `changeRows` returned
 * @throws Error when the bytes are not a table, or are a copy of a store, or when a changed row has a field twice; any
 *   error of `changeRows`
 */
export function* editTableText<T>(
  bytes: Buffer,
  changeRows: (table: EditableTable) => T,
  { isCopyAllowed = false, known }: EditOptions = {},
): Sliced<{ text?: Buffer; result: T }> {
  const changes = known === undefined ? undefined : yield* splitChanges(bytes, known);
  const text = changes?.text ?? (yield* splitTable(bytes));
  const count = text.ends.length;
  // One row that is not JSON makes the table invalid, and no change of such a table would be live.
  for (let index = changes?.head ?? 0; index < count - (changes?.tail ?? 0); index++) {
    parseJson(rowText(text, index), bytes.length);
    if (index % ROWS_A_STEP === 0) yield;
  }
  const isCopy = text.members.store !== undefined;
  if (isCopy && !isCopyAllowed) throw new Error(`it is ${STORE_COPY}`);
  const { table, edits, newRows } = createEditableTable({
    length: count,
    row: (index) => parseJson(rowText(text, index), bytes.length),
    find: (value) => findRows(text, value),
    // JSON.parse keeps only the last of two fields with the same name, and so would the new text. A row that is
    // quarantined for a repeated field would become valid.
    repeatedField: (index, row) => {
      const repeated = repeatedKeys(rowText(text, index), row).at(-1);
      // In a copy, such a row must not stop the revocation of another one with its id.
      if (repeated !== undefined && !isCopy)
        refuseRepeatedFields([{ ...repeated, path: ['production', index, ...repeated.path] }]);
      return repeated?.key;
    },
  });
  const result = changeRows(table);
  return edits.size === 0 && newRows.length === 0 ? { result } : { text: writeEdits(text, edits, newRows), result };
}

interface Rows extends Pick<EditableTable, 'length' | 'row' | 'find'> {
  /** Returns the name of a field that the text of a row has twice. @throws Error when the row must not be changed */
  repeatedField(index: number, row: unknown): string | undefined;
}

/** Returns a table, the changed rows by their index (undefined for a removed one), and the new rows. */
export function createEditableTable({ length, row, find, repeatedField }: Rows) {
  const edits = new Map<number, unknown>();
  const newRows: object[] = [];
  function rowForEdit(index: number): object {
    if (edits.has(index)) return edits.get(index) as object;
    const original = row(index) as object;
    const repeated = repeatedField(index, original);
    return repeated === undefined ? original : { ...original, ...unusableFor(repeated) };
  }
  const table: EditableTable = {
    length,
    row,
    find,
    append: (newRow) => newRows.push(newRow),
    change: (index, fields) => edits.set(index, { ...rowForEdit(index), ...fields }),
    remove(index) {
      repeatedField(index, row(index));
      edits.set(index, undefined);
    },
  };
  return { table, edits, newRows };
}

/** Returns what keeps a row quarantined in a new text. The row had this field twice, and the new text has it once. */
export function unusableFor(repeatedField: string): { readonly unusable: string } {
  return { unusable: `it has the field ${JSON.stringify(repeatedField.slice(0, 100))} twice` };
}

/** A text value is in the text of its row as it is, or has an escape, which begins with a backslash. */
function findRows(text: SplitText, value: string): number[] {
  const indexes = new Set<number>();
  if (text.ends.length === 0) return [];
  for (const needle of [Buffer.from(value), Buffer.from('\\')]) {
    let offset = text.bytes.indexOf(needle, text.listStart);
    while (offset !== -1 && offset < text.listEnd) {
      const index = countBelow(text.ends, offset);
      indexes.add(index);
      offset = text.bytes.indexOf(needle, endOfRow(text, index) + 1);
    }
  }
  return [...indexes].sort((a, b) => a - b);
}

function writeEdits(text: SplitText, edits: ReadonlyMap<number, unknown>, newRows: readonly object[]): Buffer {
  const { bytes, listStart, listEnd } = text;
  const count = text.ends.length;
  const parts: Buffer[] = [];
  let next = 0;
  function keepUntil(index: number): void {
    if (index > next) parts.push(bytes.subarray(startOfRow(text, next), endOfRow(text, index - 1)));
    next = index + 1;
  }
  for (const index of [...edits.keys()].sort((a, b) => a - b)) {
    keepUntil(index);
    const row = edits.get(index);
    if (row !== undefined) parts.push(Buffer.from(`\n${JSON.stringify(row)}`));
  }
  keepUntil(count);
  // The space behind the last row stays behind the last one.
  const last = parts.at(-1);
  if (last !== undefined) parts[parts.length - 1] = last.subarray(0, endOfText(last));
  for (const row of newRows) parts.push(Buffer.from(`\n${JSON.stringify(row)}`));
  const comma = Buffer.from(',');
  const list = parts.flatMap((part, index) => (index === 0 ? [part] : [comma, part]));
  return Buffer.concat([bytes.subarray(0, listStart), ...list, Buffer.from('\n'), bytes.subarray(listEnd)]);
}

/** Returns the offset behind the last byte that is not space. */
function endOfText(bytes: Buffer): number {
  let end = bytes.length;
  while (end > 0 && (bytes[end - 1] as number) <= 0x20) end--;
  return end;
}
