// Issues, rotates and revokes rows, in the form of the file (table-file.ts). Only the hash of a secret is kept.
import { isObject } from '../../../base/values.ts';
import { parseTime } from '../table/instant.ts';
import { idOfRow, isAbsent, type Owner, type RawRow } from '../table/row.ts';
import { parseTable } from '../table/table.ts';
import { generateToken, hashSecret, type Token } from '../token.ts';
import type { EditableTable } from './editable-table.ts';
import { ChangeRefused } from './table-file.ts';

export interface NewRow {
  readonly name: string;
  readonly description?: string | undefined;
  /** The handler group (controller) that gets all requests of the row, whatever their URL. */
  readonly handler?: string | undefined;
  /** The handler groups that the row may call by URL. A row cannot have both `groups` and `handler`. */
  readonly groups?: readonly string[] | '*' | undefined;
  readonly scopes?: readonly string[] | undefined;
  readonly methods?: readonly string[] | undefined;
  readonly limit?: string | undefined;
  readonly owner?: Owner | undefined;
  /** Unix milliseconds. */
  readonly expiresAt?: number | undefined;
}

/** Makes a token and its row, which the caller appends. @throws ChangeRefused when the row would be quarantined */
export function createRow(request: NewRow, now: number): { readonly token: Token; readonly row: RawRow } {
  const token = generateToken();
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
  return { token, row: JSON.parse(text) as RawRow };
}

/**
 * @param overlapMs how long the current secret stays valid; with 0, that secret and all earlier ones expire at once
 * @returns the new token, the name of the row, and the expiry of the previous secret in Unix milliseconds; `undefined`
 *   when that secret is no longer valid
 */
export function rotateRow(table: EditableTable, id: string, overlapMs: number, now: number) {
  const [index, ...others] = findIndexes(table, id);
  if (index === undefined) throw new ChangeRefused(`Cannot rotate ${id}: there is no such row`);
  if (others.length > 0) throw new ChangeRefused(`Cannot rotate ${id}: the table has several rows of this id`);
  const raw = table.row(index) as RawRow;
  const parsedTable = parseTable(JSON.stringify({ production: [raw] }));
  const row = parsedTable.rows.get(id);
  if (row === undefined)
    throw new ChangeRefused(`Cannot rotate ${id}: the row is quarantined, ${parsedTable.quarantined[0]?.reason}`);
  if (row.digest === undefined)
    throw new ChangeRefused(`Cannot rotate ${id}: the row carries a literal "authorization"; issue a new one`);
  if (row.revoked) throw new ChangeRefused(`Cannot rotate ${id}: the row is revoked; issue a new one`);
  if (row.expiresAt <= now) throw new ChangeRefused(`Cannot rotate ${id}: the row has expired; issue a new one`);
  const token = generateToken(undefined, id);
  const previousUntil = overlapMs > 0 ? now + overlapMs : undefined;
  const previous =
    previousUntil === undefined
      ? []
      : [...selectUnexpired(raw.previous, now), { hash: raw.hash, expires_at: toIso(previousUntil) }];
  const hasPrevious = raw.previous !== undefined || previous.length > 0;
  table.change(index, { hash: hashSecret(token.secret), ...(hasPrevious ? { previous } : {}) });
  return { token, name: row.name, previousUntil };
}

/** Returns the unexpired entries of the field `previous`. Their form was checked when the row was parsed. */
function selectUnexpired(previous: unknown, now: number): { expires_at: string }[] {
  return ((previous ?? []) as { expires_at: string }[]).filter((entry) => Date.parse(entry.expires_at) > now);
}

/** @returns the name of the row and the time of its revocation, which is earlier if the row was revoked before */
export function revokeRow(table: EditableTable, id: string, now: number): { name: string; revokedAt: string } {
  const indexes = findIndexes(table, id);
  if (indexes.length === 0) throw new ChangeRefused(`Cannot revoke ${id}: there is no such row`);
  let revokedAt = toIso(now);
  // A table that was edited by hand may have several rows with this id. All of them are revoked.
  for (const index of indexes) {
    const raw = table.row(index) as RawRow;
    if (isAbsent(raw.revoked_at)) table.change(index, { revoked_at: toIso(now) });
    else if (typeof raw.revoked_at === 'string') revokedAt = raw.revoked_at;
  }
  const { name } = table.row(indexes[0] as number) as RawRow;
  return { name: typeof name === 'string' ? name : id, revokedAt };
}

/**
 * Removes rows that were revoked before a time in Unix milliseconds. Some rows must stay, because a request with their
 * token would otherwise be accepted or anonymous: rows that share an id, and rows with a literal `authorization`.
 *
 * @returns how many rows were removed
 */
export function pruneRows(table: EditableTable, before: number): number {
  const counts = new Map<unknown, number>();
  const isOld = ({ revoked_at: time, authorization }: RawRow) =>
    typeof time === 'string' && (parseTime(time) ?? before) < before && authorization === undefined;
  // The name of a row with a literal is its id where it has none.
  const idOf = ({ id, name }: RawRow) => id ?? name;
  const oldRows = new Map<number, unknown>();
  for (let index = 0; index < table.length; index++) {
    const raw = table.row(index);
    if (!isObject(raw)) continue;
    counts.set(idOf(raw), (counts.get(idOf(raw)) ?? 0) + 1);
    if (isOld(raw)) oldRows.set(index, idOf(raw));
  }
  const indexes = [...oldRows].flatMap(([index, id]) => (counts.get(id) === 1 ? [index] : []));
  for (const index of indexes) table.remove(index);
  return indexes.length;
}

function findIndexes(table: EditableTable, id: string): number[] {
  return table.find(id).filter((index) => {
    const raw = table.row(index);
    return isObject(raw) && idOfRow(raw) === id;
  });
}

/** Maximum number of live rows of one owner. A live row is neither revoked nor expired. */
export const MAX_APPLICATIONS = 100;

/** @returns the code of the refusal; undefined when the owner may register a row with this name */
export function refuseRegistration(rows: readonly unknown[], owner: Owner, name: string, now: number) {
  const liveRows = rows.filter((raw): raw is RawRow => isLiveRowOf(raw, owner, now));
  if (liveRows.some((row) => row.name === name)) return 'ALREADY_REGISTERED';
  return liveRows.length >= MAX_APPLICATIONS ? 'TOO_MANY_APPLICATIONS' : undefined;
}

/** Returns whether a row is a live row of the owner. An invalid expiry does not lower the number of live rows. */
function isLiveRowOf(raw: unknown, owner: Owner, now: number): boolean {
  if (!isObject(raw) || !isObject(raw.owner)) return false;
  if (raw.owner.issuer !== owner.issuer || raw.owner.subject !== owner.subject) return false;
  return isAbsent(raw.revoked_at) && !(typeof raw.expires_at === 'string' && Date.parse(raw.expires_at) <= now);
}

function toIso(time: number): string {
  return new Date(time).toISOString();
}
