// Lists every row with its state for the commands, also the quarantined ones, without hashes and header values.
import type { CallingApplication } from '../../../api/controller.ts';
import { whyNotLive } from '../identify.ts';
import { readTable } from './live-table.ts';
import { type CredentialRow, FIELDS, type RawRow } from './row.ts';
import type { CredentialTable, OnRow } from './table.ts';

export interface ListedRow extends Partial<CallingApplication> {
  readonly name: string;
  readonly state: 'live' | 'expired' | 'revoked' | 'quarantined';
  readonly reason?: string;
  readonly handler?: string;
  readonly groups?: readonly string[] | '*';
  readonly methods?: readonly string[];
  readonly created_at?: string;
  readonly expires_at?: string;
  readonly revoked_at?: string;
  /** The latest expiry of the secrets that rotations replaced; absent when all of them have expired. */
  readonly previous_expires_at?: string;
  /** True when the row has the complete value of an Authorization header instead of the hash of a secret. */
  readonly literal?: true;
  readonly other_fields?: readonly string[];
}

export interface ListedTable extends Pick<CredentialTable, 'isCopy'> {
  readonly rows: readonly ListedRow[];
}

/** @throws Error with a message of one line, when the table cannot be read */
export function listCredentials(path: string, now: number): ListedTable {
  return listTable((onRow) => readTable(path, onRow), now);
}

export function listTable(readTable: (onRow: OnRow) => CredentialTable, now: number): ListedTable {
  const rawRows = new Map<string, RawRow>();
  const table = readTable((row, raw) => void rawRows.set(row.id, raw));
  const rows = [...table.rows.values()].map((row) => listRow(row, rawRows.get(row.id) as RawRow, now));
  const quarantinedRows = table.quarantined.map((row) => ({ ...row, state: 'quarantined' as const }));
  return { rows: [...rows, ...quarantinedRows], isCopy: table.isCopy };
}

function listRow(row: CredentialRow, raw: RawRow, now: number): ListedRow {
  const otherFields = Object.keys(raw).filter((name) => !FIELDS.has(name));
  // Without earlier secrets, the result is -Infinity.
  const previousExpiry = Math.max(...row.previous.map((earlier) => earlier.expiresAt));
  return {
    ...row.application,
    state: row.revoked ? 'revoked' : whyNotLive(row, now) === undefined ? 'live' : 'expired',
    ...(row.handler === undefined ? {} : { handler: row.handler }),
    ...(row.groups === undefined ? {} : { groups: row.groups === '*' ? ('*' as const) : [...row.groups] }),
    ...(row.methods === undefined ? {} : { methods: [...row.methods] }),
    ...(typeof raw.created_at === 'string' ? { created_at: raw.created_at } : {}),
    ...(row.expiresAt === Number.POSITIVE_INFINITY ? {} : { expires_at: new Date(row.expiresAt).toISOString() }),
    ...(typeof raw.revoked_at === 'string' ? { revoked_at: raw.revoked_at } : {}),
    ...(previousExpiry > now ? { previous_expires_at: new Date(previousExpiry).toISOString() } : {}),
    ...(row.digest === undefined ? { literal: true as const } : {}),
    ...(otherFields.length === 0 ? {} : { other_fields: otherFields }),
  };
}
