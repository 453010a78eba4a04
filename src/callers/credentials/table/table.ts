// Compiles the text of the table into rows that requests are checked against. A row with a mistake is quarantined, so
// that it harms no other row. identify.ts checks requests, and whether a row has expired.

import { repeatedKeys } from '../../../base/json-keys.ts';
import { isObject } from '../../../base/values.ts';
import { sha256 } from '../token.ts';
import { createRowIndex, type IndexedRows } from './indexed-rows.ts';
import {
  type CredentialRow,
  checkUnreadFields,
  compileRow,
  InvalidRow,
  nameRow,
  type RawRow,
  type SharedSets,
} from './row.ts';
import { runAtOnce, type Sliced } from './slices.ts';
import { rowText, type SplitText, splitTable } from './split.ts';
import { splitChanges } from './split-changes.ts';
import { parseJson } from './text.ts';
import type { Meanings } from './unread-fields.ts';

export interface QuarantinedRow {
  /** The row's name, or else its id, or else `row 3`. */
  readonly name: string;
  readonly id?: string;
  readonly reason: string;
}

export interface CredentialTable {
  /** Valid rows by id. */
  readonly rows: IndexedRows;
  /**
   * The digest of a literal header value (`literalKey`) → its row. The value of a quarantined row leads to `undefined`:
   * a request with that header value is refused, and not anonymous.
   */
  readonly literals: ReadonlyMap<string, CredentialRow | undefined>;
  readonly quarantined: readonly QuarantinedRow[];
  /** Whether the file is this machine's copy of the rows in a store. */
  readonly isCopy: boolean;
  readonly text: SplitText;
}

export interface CompileOptions {
  readonly onRow?: OnRow | undefined;
  readonly previous?: CredentialTable | undefined;
}

/** The number of rows that are compiled in one step. One row takes a few microseconds. */
const ROWS_A_STEP = 64;

/** Compiles a table without a pause. @throws Error with a message of one line, when the text is not a table */
export function parseTable(text: string, onRow?: OnRow): CredentialTable {
  return runAtOnce(compileTable(Buffer.from(text), { onRow }));
}

/** Receives each valid row, both compiled and as it is in the file. */
export type OnRow = (row: CredentialRow, raw: RawRow) => void;

/**
 * Compiles each row of a table once, to check it, and remembers where it is in the text. Pauses after every few rows,
 * so that a worker can serve requests between two steps (slices.ts).
 *
 * @param options.previous a table whose rows need no further check where the new text has them, too
 * @throws Error with a message of one line, when the bytes are not a table
 */
export function* compileTable(bytes: Buffer, { previous, onRow }: CompileOptions = {}): Sliced<CredentialTable> {
  const changes = previous === undefined ? undefined : yield* splitChanges(bytes, previous.text);
  const text = changes?.text ?? (yield* splitTable(bytes));
  const count = text.ends.length;
  const sets: SharedSets = new Map();
  const rows = createRowIndex(count, (index) => compileRow(JSON.parse(rowText(text, index)), index, sets));
  // A quarantined row keeps its key, with the value undefined.
  const literals = new Map<string, CredentialRow | undefined>();
  const quarantined: QuarantinedRow[] = [];
  const meanings: Meanings = new Map();

  // Two rows with the same key are both quarantined: nothing shows which of them is meant, and one may be revoked.
  function quarantineRepeated({ id, name }: CredentialRow, field: string): void {
    rows.quarantine(id);
    quarantined.push({ name: name.slice(0, 100), id, reason: `its ${field} is in the table more than once` });
  }

  /** @returns the row; undefined when it is quarantined */
  function claimId(id: string, row: CredentialRow | undefined, index: number): CredentialRow | undefined {
    if (row !== undefined && !rows.has(id)) {
      rows.add(row, index);
      return row;
    }
    for (const duplicate of [rows.get(id), row]) if (duplicate !== undefined) quarantineRepeated(duplicate, 'id');
    rows.quarantine(id);
    return undefined;
  }

  function claimLiteral(key: string, row: CredentialRow | undefined): void {
    const isRepeated = literals.has(key);
    // The earlier row can already be quarantined for its id.
    for (const duplicate of isRepeated ? [literals.get(key), row] : [])
      if (duplicate !== undefined && rows.get(duplicate.id) !== undefined)
        quarantineRepeated(duplicate, '"authorization"');
    literals.set(key, isRepeated ? undefined : row);
  }

  function addRow(index: number): void {
    const json = rowText(text, index);
    const raw = parseJson(json, bytes.length);
    let row: CredentialRow | undefined;
    try {
      const repeated = repeatedKeys(json, raw).at(-1);
      if (repeated !== undefined)
        throw new InvalidRow(`it has the field ${JSON.stringify(repeated.key.slice(0, 100))} twice`);
      const compiled = compileRow(raw, index, sets);
      // A revoked row has no rights that an unread field could restrict.
      if (!compiled.revoked) checkUnreadFields(raw as RawRow, meanings);
      row = compiled;
    } catch (error) {
      if (!(error instanceof InvalidRow)) throw error;
      const id = isObject(raw) && typeof raw.id === 'string' ? { id: raw.id.slice(0, 100) } : {};
      quarantined.push({ name: nameRow(raw, index), ...id, reason: error.message });
    }
    if (!isObject(raw)) return;
    const id = row?.id ?? raw.id;
    if (typeof id === 'string') row = claimId(id, row, index);
    if (typeof raw.authorization === 'string') claimLiteral(literalKey(Buffer.from(raw.authorization)), row);
    if (row !== undefined) onRow?.(row, raw);
  }

  if (previous !== undefined && changes !== undefined) {
    const { columns } = previous.rows;
    yield* rows.keep(columns, 0, 0, changes.head);
    yield* rows.keep(columns, columns.ids.length - changes.tail, count - changes.tail, changes.tail);
  }
  // Kept rows have different ids, so only the other rows are checked, also against the kept ones.
  const keptIds = rows.columns.ids.slice();
  let added = 0;
  for (let index = 0; index < count; index++) {
    if (keptIds[index] !== 0) continue;
    addRow(index);
    if (added++ % ROWS_A_STEP === 0) yield;
  }
  // A row that a later row has quarantined can still be in `literals`.
  for (const [key, row] of literals)
    if (row !== undefined && rows.get(row.id) === undefined) literals.set(key, undefined);
  return { rows, literals, quarantined, text, isCopy: text.members.store !== undefined };
}

/** The table of a missing file. */
export const EMPTY_TABLE = parseTable('{"production":[]}');

/** Returns the digest of a header value, the key in `literals`: to look up the value itself would compare secrets. */
export function literalKey(bytes: Buffer): string {
  return sha256(bytes).toString('latin1');
}
