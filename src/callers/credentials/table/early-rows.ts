// Rows of a store that are revoked or new, until the table in memory has them. With a million rows, a machine takes
// some hundred milliseconds to write and to read its copy.
import type { IdentifyContext } from '../identify.ts';
import type { CredentialRow } from './row.ts';
import { type CredentialTable, parseTable } from './table.ts';

/** New rows that wait for the table. Beyond that, the table alone decides. */
const MAX_ADDED = 10_000;

export interface EarlyRows {
  /** @param table the table in memory */
  note(
    changed: { readonly revoked: readonly string[]; readonly added: readonly string[] },
    table: CredentialTable,
  ): void;
  revokes(id: string): boolean;
  /** An object that each revocation replaces; undefined when the table has all revocations. */
  latestRevocation(): object | undefined;
  /** Returns the table with the new rows that it lacks. */
  with(table: CredentialTable): IdentifyContext['table'];
  /** Forgets the rows that the table has now. */
  forget(table: CredentialTable): void;
}

export function createEarlyRows(): EarlyRows {
  const revoked = new Set<string>();
  const added = new Map<string, CredentialRow>();
  let latestRevocation: object | undefined;
  return {
    note(changed, { quarantined }) {
      for (const id of changed.revoked) {
        revoked.add(id);
        added.delete(id);
      }
      if (changed.revoked.length > 0) latestRevocation = {};
      for (const json of changed.added) {
        // A row with a mistake is quarantined by name when the table comes.
        const row = parseRow(json);
        if (row !== undefined && !quarantined.some(({ id }) => id === row.id)) added.set(row.id, row);
      }
      if (added.size > MAX_ADDED) added.clear();
    },
    revokes: (id) => revoked.has(id),
    latestRevocation: () => latestRevocation,
    with(table) {
      if (added.size === 0) return table;
      const get = (id: string) => table.rows.get(id) ?? added.get(id);
      return { literals: table.literals, rows: { get } };
    },
    forget({ rows, quarantined }) {
      for (const id of revoked) if (rows.get(id)?.revoked !== false) revoked.delete(id);
      if (revoked.size === 0) latestRevocation = undefined;
      if (added.size === 0) return;
      for (const { id } of quarantined) if (id !== undefined) added.delete(id);
      for (const id of added.keys()) if (rows.get(id) !== undefined) added.delete(id);
    },
  };
}

function parseRow(json: string): CredentialRow | undefined {
  try {
    const [row] = parseTable(`{"production":[${json}]}`).rows.values();
    return row;
  } catch {
    return undefined;
  }
}
