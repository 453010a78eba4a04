// The changes to the credentials table: issues, rotates and revokes rows. The rows have the field names of the table's
// file. A quarantined row is a row with a mistake, which is not used. A new token is returned once, and only its hash
// is stored. store.ts reads and writes the file.
import { isObject } from '../../base/values.ts';
import { type Owner, parseTable, type RawRow } from '../table/table.ts';
import { generateToken, hashSecret, type RandomBytes, type Token } from '../token.ts';
import type { EditableTable } from './editable-table.ts';
import { ChangeRefused } from './store.ts';

export interface NewRow {
  readonly name: string;
  readonly description?: string | undefined;
  readonly handler?: string | undefined;
  /** The handler groups that the row may call by URL. A row cannot have both `groups` and `handler`. */
  readonly groups?: readonly string[] | '*' | undefined;
  readonly scopes?: readonly string[] | undefined;
  readonly methods?: readonly string[] | undefined;
  /** A rate such as `100/s`. */
  readonly limit?: string | undefined;
  readonly owner?: Owner | undefined;
  /** Unix milliseconds. */
  readonly expiresAt?: number | undefined;
}

export interface Issued {
  readonly token: Token;
  /** The row as it is written to the file, with its hash. */
  readonly row: Readonly<Record<string, unknown>>;
}

/**
 * Makes a token and its row. The caller appends the row to the table.
 *
 * @throws ChangeRefused when the row would be quarantined
 */
export function createRow(request: NewRow, now: number, randomBytes?: RandomBytes): Issued {
  const token = generateToken(randomBytes);
  const fields = {
    id: token.id,
    name: request.name,
    hash: hashSecret(token.secret),
    handler: request.handler ?? (request.groups === undefined ? 'Sdk' : undefined),
    groups: request.groups,
    scopes: request.scopes,
    methods: request.methods,
    limit: request.limit,
    created_at: toIso(now),
    expires_at: request.expiresAt === undefined ? undefined : toIso(request.expiresAt),
    owner: request.owner,
    description: request.description,
  };
  const text = JSON.stringify(fields);
  const reason = parseTable(`{"production":[${text}]}`).quarantined[0]?.reason;
  if (reason !== undefined) throw new ChangeRefused(`Cannot make the row: ${reason}`);
  return { token, row: JSON.parse(text) as Record<string, unknown> };
}

export interface Rotation {
  readonly token: Token;
  readonly name: string;
  /** The expiry of the previous secret in Unix milliseconds; `undefined` when that secret has already expired. */
  readonly previousUntil: number | undefined;
}

/** Makes a new secret for a row. Without an overlap, the secrets of all earlier rotations expire now, too. */
export function rotateRow(
  table: EditableTable,
  id: string,
  overlapMs: number,
  now: number,
  randomBytes?: RandomBytes,
): Rotation {
  const [index, ...others] = findIndexes(table, id);
  if (index === undefined) throw new ChangeRefused(`Cannot rotate ${id}: there is no such row`);
  if (others.length > 0) throw new ChangeRefused(`Cannot rotate ${id}: the table has several rows of this id`);
  const raw = table.rows[index] as RawRow;
  const parsed = parseTable(JSON.stringify({ production: [raw] }));
  const row = parsed.rows.get(id);
  if (row === undefined)
    throw new ChangeRefused(`Cannot rotate ${id}: the row is quarantined, ${parsed.quarantined[0]?.reason}`);
  if (row.digest === undefined)
    throw new ChangeRefused(`Cannot rotate ${id}: the row carries a literal "authorization"; issue a new one`);
  if (row.revoked) throw new ChangeRefused(`Cannot rotate ${id}: the row is revoked; issue a new one`);
  if (row.expiresAt <= now) throw new ChangeRefused(`Cannot rotate ${id}: the row has expired; issue a new one`);
  const token = generateToken(randomBytes, id);
  const previousUntil = overlapMs > 0 ? now + overlapMs : undefined;
  const previous =
    previousUntil === undefined
      ? []
      : [...selectUnexpired(raw.previous, now), { hash: raw.hash, expires_at: toIso(previousUntil) }];
  const hasPrevious = raw.previous !== undefined || previous.length > 0;
  table.change(index, { hash: hashSecret(token.secret), ...(hasPrevious ? { previous } : {}) });
  return { token, name: row.name, previousUntil };
}

/** Returns the unexpired entries of `previous`. Each is valid, because the row has been compiled before. */
function selectUnexpired(previous: unknown, now: number): { expires_at: string }[] {
  return ((previous ?? []) as { expires_at: string }[]).filter((entry) => Date.parse(entry.expires_at) > now);
}

/** Revokes a row. @returns the time of its revocation, which is an earlier time when the row was revoked before */
export function revokeRow(
  table: EditableTable,
  id: string,
  now: number,
): { readonly name: string; readonly revokedAt: string } {
  const indexes = findIndexes(table, id);
  if (indexes.length === 0) throw new ChangeRefused(`Cannot revoke ${id}: there is no such row`);
  let revokedAt = toIso(now);
  // A table that was edited by hand may have several rows with this id. All of them are revoked.
  for (const index of indexes) {
    const raw = table.rows[index] as RawRow;
    if (raw.revoked_at === undefined || raw.revoked_at === null) table.change(index, { revoked_at: toIso(now) });
    else if (typeof raw.revoked_at === 'string') revokedAt = raw.revoked_at;
  }
  const { name } = table.rows[indexes[0] as number] as RawRow;
  return { name: typeof name === 'string' ? name : id, revokedAt };
}

function findIndexes(table: EditableTable, id: string): number[] {
  const indexes: number[] = [];
  table.rows.forEach((raw, index) => {
    if (isObject(raw) && raw.id === id) indexes.push(index);
  });
  return indexes;
}

/** Maximum number of live applications that one identity can register. Live: neither revoked nor expired. */
export const MAX_APPLICATIONS = 100;

/** @returns the code of the refusal; undefined when the identity may register an application of this name */
export function refuseRegistration(
  rows: readonly unknown[],
  owner: Owner,
  name: string,
  now: number,
): 'ALREADY_REGISTERED' | 'TOO_MANY_APPLICATIONS' | undefined {
  const live = rows.filter((raw): raw is RawRow => isLiveRowOf(raw, owner, now));
  if (live.some((row) => row.name === name)) return 'ALREADY_REGISTERED';
  return live.length >= MAX_APPLICATIONS ? 'TOO_MANY_APPLICATIONS' : undefined;
}

/** Whether a row is live and belongs to the owner. A row with an invalid expiry counts as live. */
function isLiveRowOf(raw: unknown, owner: Owner, now: number): boolean {
  if (!isObject(raw) || !isObject(raw.owner)) return false;
  if (raw.owner.issuer !== owner.issuer || raw.owner.subject !== owner.subject) return false;
  const isRevoked = raw.revoked_at !== undefined && raw.revoked_at !== null;
  return !isRevoked && !(typeof raw.expires_at === 'string' && Date.parse(raw.expires_at) <= now);
}

function toIso(time: number): string {
  return new Date(time).toISOString();
}
