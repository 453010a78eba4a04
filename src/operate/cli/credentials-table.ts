// Reads and changes the table for the commands: in the store with STORE, else in the data folder.
import type { Settings } from '../../base/settings.ts';
import { type ListedTable, listCredentials, listTable } from '../../callers/credentials/table/listing.ts';
import { readTable } from '../../callers/credentials/table/live-table.ts';
import { type CredentialTable, parseTable } from '../../callers/credentials/table/table.ts';
import { type EditableTable, STORE_COPY } from '../../callers/credentials/write/editable-table.ts';
import { ChangeRefused, tablePath, updateTable } from '../../callers/credentials/write/table-file.ts';
import type { PostgresStore } from '../store/postgres.ts';
import { CommandError } from './command.ts';

type TableSettings = Pick<Settings, 'dataDir' | 'controllersDir' | 'store'>;

/** @param ids the rows that `edit` may change, or undefined for all. From a file, `edit` always gets all rows. */
export async function editTable<T>(
  settings: TableSettings,
  ids: readonly string[] | undefined,
  edit: (table: EditableTable) => T,
): Promise<T> {
  if (settings.store === undefined) return updateTable(settings.dataDir, edit);
  const { updateRows } = await import('../store/update.ts');
  return withStore(settings, (store) =>
    updateRows(store, ids, edit).catch((error: unknown) => {
      // A row without an id of ours has another name in the store (entries.ts), so all rows are read.
      if (ids === undefined || !(error instanceof ChangeRefused)) throw error;
      return updateRows(store, undefined, edit);
    }),
  );
}

export async function listRows(settings: TableSettings, now: number): Promise<ListedTable> {
  if (settings.store === undefined) return listCredentials(tablePath(settings.dataDir), now);
  const text = await readStoredTable(settings);
  return listTable((onRow) => parseTable(text, onRow), now);
}

export async function loadTable(settings: TableSettings): Promise<CredentialTable> {
  if (settings.store === undefined) return readTable(tablePath(settings.dataDir));
  return parseTable(await readStoredTable(settings));
}

/** Returns a warning when the commands have read a copy of a store. A table that was read from a store is no copy. */
export function copyWarnings({ isCopy }: Pick<CredentialTable, 'isCopy'>, { dataDir }: TableSettings): string[] {
  return isCopy ? [`${tablePath(dataDir)} is ${STORE_COPY}`] : [];
}

/** Returns the rows as the text of a table file, so that the file and the store have one parser. */
async function readStoredTable(settings: TableSettings): Promise<string> {
  const { tableText } = await import('../store/entries.ts');
  const { retryWhileAway } = await import('../store/update.ts');
  const { entries } = await withStore(settings, (store) => retryWhileAway(() => store.read('keys')));
  return tableText(Array.from(entries.values(), ({ value }) => value));
}

/** Opens the store, calls `work`, and closes the store. @throws CommandError when STORE is not set, or has no answer */
export async function withStore<T>(
  { controllersDir, store: address }: Pick<Settings, 'controllersDir' | 'store'>,
  work: (store: PostgresStore) => Promise<T>,
): Promise<T> {
  if (address === undefined)
    throw new CommandError('STORE is not set, so the files of the data folder are used; set it to postgres://…');
  const { createPostgresStore } = await import('../store/postgres.ts');
  const { loadPostgres } = await import('../store/connection.ts');
  const { StoreAway } = await import('../store/store.ts');
  const loadDriver = () => loadPostgres([controllersDir, process.cwd()]);
  const store = createPostgresStore({ address, load: loadDriver, name: 'gatefold command' });
  try {
    return await work(store);
  } catch (error) {
    throw error instanceof StoreAway ? new CommandError(`The store is away: ${error.message}`) : error;
  } finally {
    await store.close();
  }
}
