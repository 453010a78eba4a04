// The registered-credentials table: its text compiled to rows that a request can be checked against. A bad row is left
// out by name, the good ones go live. It does not know where the text comes from, nor what time it is.
import { parseRate, RATE_FORM, type Rate } from '../../base/rate.ts';
import type { CallingApplication } from '../../controller.ts';
import { sha256 } from '../token.ts';
import { parseTime } from './instant.ts';
import { atOnce, type Sliced } from './slices.ts';
import { parseTableText } from './text.ts';
import { type Meanings, unreadField } from './unread-fields.ts';

/** A row, compiled. Times are Unix milliseconds; `Infinity`: never. */
export interface CredentialRow {
  readonly id: string;
  readonly name: string;
  /** The handler group that its requests go to, whatever the URL says; `undefined`: the row has `groups`. */
  readonly handler: string | undefined;
  /** The groups it may call by URL, as they are named: `Orders`. */
  readonly groups: ReadonlySet<string> | '*' | undefined;
  /** The verbs allowed, upper case; `undefined`: all. */
  readonly methods: ReadonlySet<string> | undefined;
  /** How often it may call; `undefined`: as often as it likes. */
  readonly limit: Rate | undefined;
  /** SHA-256 of the secret; `undefined` for a row that carries a literal `authorization`. */
  readonly digest: Buffer | undefined;
  /** Secrets that a rotation left valid for a while. */
  readonly previous: readonly { readonly digest: Buffer; readonly expiresAt: number }[];
  readonly expiresAt: number;
  readonly revoked: boolean;
  /** What controllers see as `params.application`. */
  readonly application: CallingApplication;
}

export type Owner = NonNullable<CallingApplication['owner']>;

export interface Quarantined {
  /** The row's name, or else its id, or else `row 3`. */
  readonly name: string;
  readonly id?: string;
  readonly reason: string;
}

export interface CredentialTable {
  readonly rows: ReadonlyMap<string, CredentialRow>;
  /**
   * Rows by the digest of their literal header value; `undefined`: of a row that is quarantined, so the value is
   * refused, not anonymous.
   */
  readonly literals: ReadonlyMap<string, CredentialRow | undefined>;
  readonly quarantined: readonly Quarantined[];
}

export const EMPTY_TABLE: CredentialTable = { rows: new Map(), literals: new Map(), quarantined: [] };

/** A row takes a few microseconds: so many between two pauses. */
const ROWS_A_STEP = 64;

/** What makes a row bad; never leaves this file. */
class BadRow extends Error {}

/**
 * @param text the content of production.json
 * @throws Error one line, when the text is not a table at all
 */
export function parseTable(text: string): CredentialTable {
  return atOnce(compileTable(Buffer.from(text)));
}

/**
 * The same in slices. `onRow` gets what the file says of each good row, where somebody wants to know.
 *
 * @throws Error one line, when the bytes are not a table at all
 */
export function* compileTable(
  bytes: Buffer,
  onRow?: (row: CredentialRow, raw: RawRow) => void,
): Sliced<CredentialTable> {
  const rows = new Map<string, CredentialRow | undefined>();
  const literals = new Map<string, CredentialRow | undefined>();
  const quarantined: Quarantined[] = [];
  const sets: SharedSets = new Map();
  const meanings: Meanings = new Map();

  // A key that comes twice belongs to nobody: which row is meant cannot be told, and one of the two may be the revoked
  // one.
  const claim = (
    map: Map<string, CredentialRow | undefined>,
    key: string,
    row: CredentialRow | undefined,
    field: string,
  ) => {
    const isTaken = map.has(key);
    const losers = isTaken ? [map.get(key), row] : [];
    map.set(key, isTaken ? undefined : row);
    for (const loser of losers) {
      if (loser === undefined) continue;
      rows.set(loser.id, undefined);
      quarantined.push({
        name: loser.name.slice(0, 100),
        id: loser.id,
        reason: `its ${field} is in the table more than once`,
      });
    }
    return isTaken ? undefined : row;
  };

  const { rows: raws, repeated } = parseTableText(bytes);
  const twice = new Map(
    repeated.map(({ key, path: [list, index] }) => [list === 'production' ? index : undefined, key]),
  );

  function add(raw: unknown, index: number): void {
    let row: CredentialRow | undefined;
    try {
      if (twice.has(index))
        throw new BadRow(`it has the field ${JSON.stringify(twice.get(index)?.slice(0, 100))} twice`);
      const compiled = compileRow(raw, index, sets);
      // A revoked row has no rights that a field could take away.
      if (!compiled.revoked) checkUnread(raw as RawRow, meanings);
      row = compiled;
    } catch (error) {
      if (!(error instanceof BadRow)) throw error;
      const id = isRawRow(raw) && typeof raw.id === 'string' ? { id: raw.id.slice(0, 100) } : {};
      quarantined.push({ name: labelOf(raw, index), ...id, reason: error.message });
    }
    if (!isRawRow(raw)) return;
    const id = row?.id ?? raw.id;
    if (typeof id === 'string') row = claim(rows, id, row, 'id');
    if (typeof raw.authorization === 'string')
      claim(literals, literalKey(Buffer.from(raw.authorization)), row, '"authorization"');
    if (row !== undefined) onRow?.(row, raw);
  }

  for (const [index, raw] of raws.entries()) {
    add(raw, index);
    if (index % ROWS_A_STEP === 0) yield;
  }
  for (const [key, row] of literals) if (row !== undefined && rows.get(row.id) !== row) literals.set(key, undefined);
  yield;
  for (const [id, row] of rows) if (row === undefined) rows.delete(id);
  return { rows: rows as Map<string, CredentialRow>, literals, quarantined };
}

/**
 * The rows of an identity, live or not. A scan: it serves sign-in, which costs a signature anyway, and an index would
 * cost every load.
 */
export function findByOwner(table: CredentialTable, { issuer, subject }: Owner): CredentialRow[] {
  const found: CredentialRow[] = [];
  for (const row of table.rows.values()) {
    const { owner } = row.application;
    if (owner !== undefined && owner.subject === subject && owner.issuer === issuer) found.push(row);
  }
  return found;
}

/** A row as the file has it. */
export type RawRow = Readonly<Record<string, unknown>>;

export function isRawRow(value: unknown): value is RawRow {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What a row is called in the log and in `list`. */
function labelOf(raw: unknown, index: number): string {
  const names = isRawRow(raw) ? [raw.name, raw.id] : [];
  const name = names.find((value): value is string => typeof value === 'string' && value !== '');
  return name?.slice(0, 100) ?? `row ${index + 1}`;
}

/**
 * The key of `literals`, from the bytes of the header value on the wire. A digest, so that no look-up compares secrets.
 */
export function literalKey(bytes: Buffer): string {
  return sha256(bytes).toString('latin1');
}

function compileRow(raw: unknown, index: number, sets: SharedSets): CredentialRow {
  if (!isRawRow(raw)) throw new BadRow('it is not an object');
  const hasLiteral = raw.authorization !== undefined;
  if (hasLiteral && raw.hash !== undefined) throw new BadRow('it has both "hash" and "authorization"');
  if (hasLiteral) checkLiteral(raw.authorization);
  // Tables brought from elsewhere may have no ids and no names: one stands in for the other.
  const id = hasLiteral ? parseText(raw.id === undefined ? labelOf(raw, index) : raw.id, 'id') : parseId(raw.id);
  const name = hasLiteral && raw.name === undefined ? id : parseText(raw.name, 'name');
  const application: { -readonly [K in keyof CallingApplication]: CallingApplication[K] } = { id, name };
  if (!isAbsent(raw.description)) application.description = parseText(raw.description, 'description');
  if (!isAbsent(raw.scopes)) application.scopes = parseScopes(raw.scopes);
  if (!isAbsent(raw.owner)) application.owner = parseOwner(raw.owner);
  const hasGroups = !isAbsent(raw.groups);
  if (hasGroups && !isAbsent(raw.handler)) throw new BadRow('it has both "handler" and "groups"');
  return {
    id,
    name,
    handler: hasGroups ? undefined : isAbsent(raw.handler) ? 'Sdk' : parseHandler(raw.handler),
    groups: hasGroups ? parseGroups(raw.groups, sets) : undefined,
    methods: isAbsent(raw.methods) ? undefined : parseMethods(raw.methods, sets),
    limit: isAbsent(raw.limit) ? undefined : parseLimit(raw.limit),
    digest: hasLiteral ? undefined : parseHash(raw.hash),
    previous: isAbsent(raw.previous) ? NONE : parsePrevious(raw.previous),
    expiresAt: isAbsent(raw.expires_at) ? Number.POSITIVE_INFINITY : parseInstant(raw.expires_at, 'expires_at'),
    // Whatever its date: the clock of the machine that revoked may be ahead of ours.
    revoked: !isAbsent(raw.revoked_at),
    application: Object.freeze(application),
  };
}

const NONE: CredentialRow['previous'] = [];

/** Those of a row that are read. */
export const FIELDS: ReadonlySet<string> = new Set(
  'id name hash groups handler scopes methods created_at limit expires_at revoked_at previous owner description authorization'.split(
    ' ',
  ),
);
const PREVIOUS_FIELDS = new Set(['hash', 'expires_at']);

function checkUnread(row: RawRow, meanings: Meanings): void {
  const previous = isAbsent(row.previous) ? [] : (row.previous as readonly RawRow[]);
  const reasons = [
    unreadField(row, FIELDS, meanings),
    ...previous.map((item) => unreadField(item, PREVIOUS_FIELDS, meanings)),
  ];
  for (const reason of reasons) if (reason !== undefined) throw new BadRow(reason);
}

function isAbsent(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}

function parseId(value: unknown): string {
  if (typeof value !== 'string' || !/^[0-9A-Za-z]{12}$/.test(value))
    throw new BadRow('"id" is not 12 letters and digits');
  return value;
}

function parseText(value: unknown, field: string): string {
  if (typeof value !== 'string' || value === '') throw new BadRow(`"${field}" is not a text`);
  if (value.length > 1000) throw new BadRow(`"${field}" is longer than 1,000 characters`);
  return value;
}

function parseOwner(value: unknown): Owner {
  if (!isRawRow(value)) throw new BadRow('"owner" is not an object');
  return Object.freeze({
    issuer: parseText(value.issuer, 'owner.issuer'),
    subject: parseText(value.subject, 'owner.subject'),
  });
}

function parseHandler(value: unknown): string {
  if (!isHandlerName(value)) throw new BadRow('"handler" is not the name of a handler group');
  return value;
}

export function isHandlerName(value: unknown): value is string {
  return typeof value === 'string' && /^[A-Za-z][A-Za-z0-9_-]{0,199}$/.test(value);
}

/** Few combinations, many rows: they share their sets. */
type SharedSets = Map<string, ReadonlySet<string>>;

function shareSet(sets: SharedSets, kind: string, items: readonly string[]): ReadonlySet<string> {
  const key = `${kind} ${items.join(' ')}`;
  const set = sets.get(key) ?? new Set(items);
  sets.set(key, set);
  return set;
}

// A method is a token of RFC 9110 (5.6.2) and case-sensitive, but "get" is never meant as a method of its own.
function parseMethods(value: unknown, sets: SharedSets): ReadonlySet<string> {
  const isMethod = (item: unknown): item is string =>
    typeof item === 'string' && /^[A-Za-z][A-Za-z-]{0,31}$/.test(item);
  if (!Array.isArray(value) || !value.every(isMethod)) throw new BadRow('"methods" is not a list of HTTP methods');
  return shareSet(
    sets,
    'methods',
    value.map((method) => method.toUpperCase()),
  );
}

function parseGroups(value: unknown, sets: SharedSets): ReadonlySet<string> | '*' {
  if (value === '*') return '*';
  if (!Array.isArray(value) || !value.every(isHandlerName))
    throw new BadRow('"groups" is neither "*" nor a list of handler groups');
  return shareSet(
    sets,
    'groups',
    value.map((name) => name.charAt(0).toUpperCase() + name.slice(1)),
  );
}

function parseLimit(value: unknown): Rate {
  const rate = typeof value === 'string' ? parseRate(value) : undefined;
  if (rate === undefined) throw new BadRow(`"limit" is not ${RATE_FORM}`);
  return rate;
}

function parseScopes(value: unknown): readonly string[] {
  if (!Array.isArray(value) || !value.every(isScope)) throw new BadRow('"scopes" is not a list of scopes');
  return Object.freeze(value);
}

/** RFC 6749, 3.3: printable, without space, quote and backslash. */
export function isScope(value: unknown): value is string {
  return typeof value === 'string' && /^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/.test(value);
}

// The last of 43 characters holds two bits too many, which must be zero: else two texts would be one digest.
const HASH = /^sha256:[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;

function parseHash(value: unknown): Buffer {
  if (typeof value !== 'string' || !HASH.test(value))
    throw new BadRow('"hash" is not "sha256:" and 43 characters of base64url');
  return Buffer.from(value.slice(7), 'base64url');
}

function parsePrevious(value: unknown): CredentialRow['previous'] {
  if (!Array.isArray(value) || !value.every(isRawRow)) throw new BadRow('"previous" is not a list of objects');
  return value.map((item) => ({
    digest: parseHash(item.hash),
    expiresAt: parseInstant(item.expires_at, 'previous.expires_at'),
  }));
}

function parseInstant(value: unknown, field: string): number {
  const time = typeof value === 'string' ? parseTime(value) : undefined;
  if (time === undefined) throw new BadRow(`"${field}" is not a time such as 2030-01-31T12:00:00Z`);
  return time;
}

function checkLiteral(value: unknown): void {
  if (typeof value !== 'string' || value === '') throw new BadRow('"authorization" is not a text');
  if (/^[ \t]|[ \t]$|[\0-\x08\x0a-\x1f\x7f]/.test(value)) {
    throw new BadRow('"authorization" begins or ends with space, or has control characters: no request can carry it');
  }
}
