// Changes rows in the store as a command changes them in the file. The rows are read, edited by a function, and written
// if nobody else has changed them meanwhile. If the answer to a write is lost, the write is repeated with the same id.
// So the write takes effect only once.
import { setTimeout as sleep } from 'node:timers/promises';
import { crypto } from '../base/builtins.ts';
import { createEditableTable, type EditableTable } from '../credentials/write/editable-table.ts';
import { createRowNames } from './entries.ts';
import { type Change, type Store, StoreAway } from './store.ts';

/** Milliseconds for which a change is tried. In this time, a standby may be promoted. */
const PATIENCE = 10_000;
const PAUSE = 100;

/**
 * Calls `work` again until it succeeds, the store refuses for good, or the time of `patience` is over.
 *
 * @throws StoreAway
 */
export async function retryWhileAway<T>(work: () => Promise<T>, patience = PATIENCE): Promise<T> {
  for (const end = performance.now() + patience; ; await sleep(PAUSE)) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof StoreAway) || error.isFinal || performance.now() > end) throw error;
    }
  }
}

/**
 * @param names the rows that `edit` needs. The store may have other rows, and `edit` may append new ones
 * @returns the value that `edit` returned
 * @throws StoreAway, or any error of `edit`
 */
export async function updateRows<T>(
  store: Store,
  names: readonly string[],
  edit: (table: EditableTable) => T,
  patience?: number,
): Promise<T> {
  for (;;) {
    const { entries } = await retryWhileAway(() => store.read('keys', names), patience);
    const present = [...entries].filter(([, { value }]) => value !== undefined);
    const { table, edited } = createEditableTable(
      present.map(([, { value }]) => JSON.parse(value as string) as unknown),
    );
    const result = edit(table);
    const nameOf = createRowNames();
    const changes = edited.flatMap((row, index): Change[] => {
      if (row === table.rows[index]) return [];
      const [name, entry] = present[index] ?? [nameOf(row), undefined];
      return [{ name, is: entry?.version ?? '', value: JSON.stringify(row) }];
    });
    const id = crypto().randomUUID();
    if (changes.length === 0 || (await retryWhileAway(() => store.write('keys', changes, id), patience))) return result;
  }
}
