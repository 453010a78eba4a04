// Changes rows in the store for a command. If a row has changed in the store since it was read, the edit is repeated. A
// write whose answer is lost is sent again with the same id, so the store makes its changes only once.
import { setTimeout as sleep } from 'node:timers/promises';
import { crypto } from '../../base/builtins.ts';
import { repeatedKeys } from '../../base/json-keys.ts';
import {
  createEditableTable,
  type EditableTable,
  unusableFor,
} from '../../callers/credentials/write/editable-table.ts';
import { createRowNames } from './entries.ts';
import { type Change, type Store, StoreAway } from './store.ts';

/** Milliseconds for which a failed call is retried. A standby of the database can be promoted in this time. */
const PATIENCE_MS = 10_000;
const PAUSE_MS = 100;

/**
 * Calls `work` until it succeeds, until a retry is useless, or until `patience` milliseconds have passed.
 *
 * @throws StoreAway, or at once any other error of `work`
 */
export async function retryWhileAway<T>(work: () => Promise<T>, patience = PATIENCE_MS): Promise<T> {
  for (const deadline = performance.now() + patience; ; await sleep(PAUSE_MS)) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof StoreAway) || error.needsOperator || performance.now() > deadline) throw error;
    }
  }
}

/**
 * @param names the names of the rows that `edit` gets and can change, or undefined for all rows. `edit` can also
 *   append new rows, and is called again when the rows have changed before the write
 * @param patience milliseconds for which each failed call of the store is retried
 * @returns the value that `edit` returned
 * @throws StoreAway, or any error of `edit`
 */
export async function updateRows<T>(
  store: Store,
  names: readonly string[] | undefined,
  edit: (table: EditableTable) => T,
  patience?: number,
): Promise<T> {
  for (;;) {
    const { entries } = await retryWhileAway(() => store.read('keys', names), patience);
    const existing = [...entries];
    const { table, edits, newRows } = createEditableTable(rowsOf(existing.map(([, { value }]) => value)));
    const result = edit(table);
    const nameOf = createRowNames();
    const changes: Change[] = [];
    for (const [index, row] of edits) {
      const [name, { version }] = existing[index] as (typeof existing)[number];
      changes.push({ name, expectedVersion: version, value: row === undefined ? row : JSON.stringify(row) });
    }
    for (const row of newRows) changes.push({ name: nameOf(row), expectedVersion: '', value: JSON.stringify(row) });
    const id = crypto().randomUUID();
    if (changes.length === 0 || (await retryWhileAway(() => store.write('keys', changes, id), patience))) return result;
  }
}

function rowsOf(values: readonly string[]): Parameters<typeof createEditableTable>[0] {
  const rows = values.map(parseRow);
  const indexes = Array.from(rows.keys());
  return { length: rows.length, row: (index) => rows[index], find: () => indexes, repeatedField: () => undefined };
}

/** Parses the value of an entry. A row that has a field twice is quarantined, and an edit keeps it so. */
function parseRow(value: string): unknown {
  const row: unknown = JSON.parse(value);
  const [repeated] = repeatedKeys(value, row);
  return repeated === undefined ? row : { ...(row as object), ...unusableFor(repeated.key) };
}
