// Changes rows in the store as a command changes them in the file: reads, lets a function edit, and writes if nobody
// else has changed the same rows meanwhile. If an answer is lost, the write is repeated
// with the same id, so it is done once.
import { setTimeout as sleep } from 'node:timers/promises';
import { crypto } from '../base/builtins.ts';
import { type EditableTable, recordEdits } from '../credentials/write/editable-table.ts';
import { createRowNames } from './entries.ts';
import { type Change, type Store, StoreAway } from './store.ts';

/** Milliseconds for which a change is tried: a standby may be promoted meanwhile. */
const PATIENCE = 10_000;
const PAUSE = 100;

/**
 * Calls until it succeeds, the store refuses for good, or the patience is over.
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
 * @param names the rows that `edit` needs. The store has other rows, too, and `edit` may append further ones
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
    const { table, edited } = recordEdits(present.map(([, { value }]) => JSON.parse(value as string) as unknown));
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
