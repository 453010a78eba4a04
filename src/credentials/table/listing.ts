// The table as a person may see it: every row with its state, quarantined rows too, without hashes and literal header
// values. How it is printed is the command's business.
import { whyNotLive } from '../identify.ts';
import { readTable } from './live-table.ts';
import { type CredentialRow, FIELDS, type Owner, type RawRow } from './table.ts';

export interface Listed {
  readonly id?: string;
  readonly name: string;
  readonly state: 'live' | 'expired' | 'revoked' | 'quarantined';
  /** Why it is quarantined. */
  readonly reason?: string;
  readonly handler?: string;
  readonly groups?: readonly string[] | '*';
  readonly scopes?: readonly string[];
  /** Absent: all. */
  readonly methods?: readonly string[];
  readonly created_at?: string;
  readonly expires_at?: string;
  readonly revoked_at?: string;
  /** Until when a secret before the current one is good. */
  readonly previous_expires_at?: string;
  readonly owner?: Owner;
  readonly description?: string;
  /** It carries a literal header value instead of a hash. */
  readonly literal?: true;
  /** Fields that nothing reads: the author's own. */
  readonly other_fields?: readonly string[];
}

/** @throws Error one line, when the table cannot be read */
export function listCredentials(path: string, now: number): Listed[] {
  const raws = new Map<string, RawRow>();
  const table = readTable(path, (row, raw) => raws.set(row.id, raw));
  const rows = [...table.rows.values()].map((row) => listRow(row, raws.get(row.id) ?? {}, now));
  return [...rows, ...table.quarantined.map((row) => ({ ...row, state: 'quarantined' as const }))];
}

function listRow(row: CredentialRow, raw: RawRow, now: number): Listed {
  const others = Object.keys(raw).filter((name) => !FIELDS.has(name));
  const overlap = Math.max(...row.previous.map((earlier) => earlier.expiresAt));
  return {
    ...row.application,
    state: row.revoked ? 'revoked' : whyNotLive(row, now) === undefined ? 'live' : 'expired',
    ...(row.handler === undefined ? {} : { handler: row.handler }),
    ...(row.groups === undefined ? {} : { groups: row.groups === '*' ? ('*' as const) : [...row.groups] }),
    ...(row.methods === undefined ? {} : { methods: [...row.methods] }),
    ...(typeof raw.created_at === 'string' ? { created_at: raw.created_at } : {}),
    ...(row.expiresAt === Number.POSITIVE_INFINITY ? {} : { expires_at: new Date(row.expiresAt).toISOString() }),
    ...(typeof raw.revoked_at === 'string' ? { revoked_at: raw.revoked_at } : {}),
    ...(overlap > now ? { previous_expires_at: new Date(overlap).toISOString() } : {}),
    ...(row.digest === undefined ? { literal: true as const } : {}),
    ...(others.length === 0 ? {} : { other_fields: others }),
  };
}
