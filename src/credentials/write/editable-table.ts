// Edits the table's text: an added or changed row is written on a line of its own, and every other byte stays, so unknown rows
// and fields stay too. It does not know what the rows mean.
import { inSlices } from '../table/slices.ts';
import { isRawRow } from '../table/table.ts';
import { readTableText } from '../table/text.ts';

export interface EditableTable {
  /** The rows as they stand, parsed; changes made here do not show in it. */
  readonly rows: readonly unknown[];
  append(row: object): void;
  /** Sets fields of one row; at most one call a row. */
  change(index: number, fields: Readonly<Record<string, unknown>>): void;
}

export interface Edited<T> {
  /** The new text in pieces; `undefined`: nothing was changed. */
  readonly pieces: readonly Buffer[] | undefined;
  /** What `mutate` returned. */
  readonly result: T;
}

/** @throws Error when the bytes are not a table, and whatever `mutate` throws */
export async function editTable<T>(bytes: Buffer, mutate: (table: EditableTable) => T): Promise<Edited<T>> {
  const rows: unknown[] = [];
  const places: { readonly start: number; readonly end: number }[] = [];
  let listStart = 0;
  const begin = (at: number) => {
    listStart = at;
  };
  const row = (value: unknown, start: number, end: number) => {
    rows.push(value);
    places.push({ start, end });
  };
  await inSlices(readTableText(bytes, { begin, row }));

  const added: string[] = [];
  const changed = new Map<number, string>();
  const result = mutate({
    rows,
    append: (row) => added.push(JSON.stringify(row)),
    change(index, fields) {
      const row = rows[index];
      changed.set(index, JSON.stringify({ ...(isRawRow(row) ? row : {}), ...fields }));
    },
  });
  if (added.length === 0 && changed.size === 0) return { pieces: undefined, result };

  const pieces: Buffer[] = [];
  let done = 0;
  const copyTo = (end: number) => {
    pieces.push(bytes.subarray(done, end));
    done = end;
  };
  for (const [index, text] of [...changed].sort(([a], [b]) => a - b)) {
    const { start, end } = places[index] as { start: number; end: number };
    copyTo(start);
    pieces.push(Buffer.from(text));
    done = end;
  }
  if (added.length > 0) {
    const last = places.at(-1);
    copyTo(last?.end ?? listStart);
    pieces.push(Buffer.from(`${last === undefined ? '' : ','}\n${added.join(',\n')}${last === undefined ? '\n' : ''}`));
  }
  copyTo(bytes.length);
  return { pieces, result };
}
