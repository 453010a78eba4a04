// Rows of a store that are revoked or new, until the table in memory has them. With a million rows, a machine takes
// some hundred milliseconds to write and to read its copy.
import { attempt } from '../../../base/failure.ts';
import type { IdentifyContext } from '../identify.ts';
import type { CredentialRow } from './row.ts';
import { type CredentialTable, parseTable } from './table.ts';

/** New rows that wait for the table. Beyond that, the table alone decides. */
const MAX_ADDED = 10_000;

export interface ChangedRows {
  /** The ids of rows that were revoked or removed. */
  readonly revoked: readonly string[];
  /** The JSON of new rows. */
  readonly added: readonly string[];
}

export function createEarlyRows() {
  const revoked = new Set<string>();
  // A table that is read now can be older than a new row, and the next one is not. So a row waits for two tables. A row
  // that a failover of the store has lost is in neither.
  let added = new Map<string, CredentialRow>();
  let addedBefore = new Map<string, CredentialRow>();
  let lastTable: CredentialTable | undefined;
  let latestRevocation: object | undefined;
  return {
    note(changed: ChangedRows, table: CredentialTable): void {
      if (added.size + addedBefore.size === 0) lastTable = table;
      for (const id of changed.revoked) {
        revoked.add(id);
        added.delete(id);
        addedBefore.delete(id);
      }
      if (changed.revoked.length > 0) latestRevocation = {};
      for (const json of changed.added) {
        // A row with a mistake is quarantined by name when the table comes.
        const [row] = attempt(() => [...parseTable(`{"production":[${json}]}`).rows.values()], []);
        if (row === undefined || table.quarantined.some(({ id }) => id === row.id)) continue;
        // The row was removed, and came again before the table was read.
        revoked.delete(row.id);
        added.set(row.id, row);
      }
      if (added.size > MAX_ADDED) added.clear();
    },
    revokes: (id: string) => revoked.has(id),
    /** An object that each revocation replaces; undefined when the table has all revocations. */
    latestRevocation: () => latestRevocation,
    /** Returns the table with the new rows that it lacks. */
    with(table: CredentialTable): IdentifyContext['table'] {
      if (added.size + addedBefore.size === 0) return table;
      const get = (id: string) => table.rows.get(id) ?? added.get(id) ?? addedBefore.get(id);
      return { literals: table.literals, rows: { get } };
    },
    /** Forgets what the table has now. */
    forget(table: CredentialTable): void {
      const { rows, quarantined } = table;
      for (const id of revoked) if (rows.get(id)?.revoked !== false) revoked.delete(id);
      if (revoked.size === 0) latestRevocation = undefined;
      if (table === lastTable) return;
      lastTable = table;
      addedBefore = added;
      added = new Map();
      for (const { id } of quarantined) if (id !== undefined) addedBefore.delete(id);
    },
  };
}
