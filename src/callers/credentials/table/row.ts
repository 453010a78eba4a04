// Compiles one row of the table. A row with a mistake is refused with a reason.

import type { CallingApplication } from '../../../api/controller.ts';
import { groupNameOf } from '../../../base/group-name.ts';
import { parseRate, RATE_FORM, type Rate } from '../../../base/rate.ts';
import { isObject, isScope } from '../../../base/values.ts';
import { parseTime } from './instant.ts';
import { findUnreadRestriction, type Meanings } from './unread-fields.ts';

/** A compiled row. Times are Unix milliseconds; `Infinity` is never. */
export interface CredentialRow {
  readonly id: string;
  readonly name: string;
  /** The handler group (controller) for all requests of the row, whatever their URL; `undefined` with `groups`. */
  readonly handler: string | undefined;
  /** The handler groups that the row may call by URL, such as `Orders`, or '*' for all; `undefined` with `handler`. */
  readonly groups: ReadonlySet<string> | '*' | undefined;
  /** The allowed methods in upper case; `undefined` for all methods. */
  readonly methods: ReadonlySet<string> | undefined;
  readonly limit: Rate | undefined;
  /** SHA-256 of the secret; `undefined` for a row with a literal, which is the complete value of the header. */
  readonly digest: Buffer | undefined;
  /** The secrets that rotations replaced. Each of them stays valid until its `expiresAt`. */
  readonly previous: readonly { readonly digest: Buffer; readonly expiresAt: number }[];
  /** A row without a known time counts as the newest. */
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly revoked: boolean;
  /** The value of `params.application` in controllers. */
  readonly application: CallingApplication;
}

export type Owner = NonNullable<CallingApplication['owner']>;

export type RawRow = Readonly<Record<string, unknown>>;

export class InvalidRow extends Error {}

export function nameRow(raw: unknown, index: number): string {
  const names = isObject(raw) ? [raw.name, raw.id] : [];
  const name = names.find((value): value is string => typeof value === 'string' && value !== '');
  return name?.slice(0, 100) ?? `row ${index + 1}`;
}

/** Returns the id that commands show and take. A row with a literal may lack its id, and its name is in its place. */
export function idOfRow(raw: RawRow): unknown {
  const hasNameForId = raw.id === undefined && raw.authorization !== undefined && typeof raw.name === 'string';
  return hasNameForId ? nameRow(raw, 0) : raw.id;
}

export function compileRow(raw: unknown, index: number, sets: SharedSets): CredentialRow {
  if (!isObject(raw)) throw new InvalidRow('it is not an object');
  if (typeof raw.unusable === 'string') throw new InvalidRow(raw.unusable.slice(0, 200));
  const hasLiteral = raw.authorization !== undefined;
  if (hasLiteral && raw.hash !== undefined) throw new InvalidRow('it has both "hash" and "authorization"');
  if (hasLiteral) checkLiteral(raw.authorization);
  // A row with a literal may lack its id or its name. The name is then used as the id, or the id as the name. A row
  // without both gets the name `row 3`.
  const id = hasLiteral ? parseText(raw.id === undefined ? nameRow(raw, index) : raw.id, 'id') : parseId(raw.id);
  const name = hasLiteral && raw.name === undefined ? id : parseText(raw.name, 'name');
  const application: { -readonly [K in keyof CallingApplication]: CallingApplication[K] } = { id, name };
  if (!isAbsent(raw.description)) application.description = parseText(raw.description, 'description');
  if (!isAbsent(raw.scopes)) application.scopes = parseScopes(raw.scopes);
  if (!isAbsent(raw.owner)) application.owner = parseOwner(raw.owner);
  const hasGroups = !isAbsent(raw.groups);
  if (hasGroups && !isAbsent(raw.handler)) throw new InvalidRow('it has both "handler" and "groups"');
  return {
    id,
    name,
    handler: hasGroups ? undefined : isAbsent(raw.handler) ? 'Sdk' : parseHandler(raw.handler),
    groups: hasGroups ? parseGroups(raw.groups, sets) : undefined,
    methods: isAbsent(raw.methods) ? undefined : parseMethods(raw.methods, sets),
    limit: isAbsent(raw.limit) ? undefined : parseLimit(raw.limit),
    digest: hasLiteral ? undefined : parseHash(raw.hash),
    previous: isAbsent(raw.previous) ? NO_PREVIOUS : parsePrevious(raw.previous),
    createdAt: (typeof raw.created_at === 'string' ? parseTime(raw.created_at) : undefined) ?? Number.MAX_VALUE,
    expiresAt: isAbsent(raw.expires_at) ? Number.POSITIVE_INFINITY : parseInstant(raw.expires_at, 'expires_at'),
    // A row is revoked even if the time is in the future, because the time may be of a machine whose clock is ahead.
    revoked: !isAbsent(raw.revoked_at),
    application: Object.freeze(application),
  };
}

/** All rows without earlier secrets share this list, which saves memory. */
const NO_PREVIOUS: CredentialRow['previous'] = [];

export const FIELDS: ReadonlySet<string> = new Set(
  `id name hash groups handler scopes methods created_at limit expires_at revoked_at previous owner description
  authorization`.split(/\s+/),
);
const PREVIOUS_FIELDS = new Set(['hash', 'expires_at']);

export function checkUnreadFields(row: RawRow, meanings: Meanings): void {
  const previous = (row.previous ?? []) as readonly RawRow[];
  const previousReasons = previous.map((item) => findUnreadRestriction(item, PREVIOUS_FIELDS, meanings));
  for (const reason of [findUnreadRestriction(row, FIELDS, meanings), ...previousReasons])
    if (reason !== undefined) throw new InvalidRow(reason);
}

export function isAbsent(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}

function parseId(value: unknown): string {
  if (typeof value !== 'string' || !/^[0-9A-Za-z]{12}$/.test(value))
    throw new InvalidRow('"id" is not 12 letters and digits');
  return value;
}

function parseText(value: unknown, field: string): string {
  if (typeof value !== 'string' || value === '') throw new InvalidRow(`"${field}" is not a text`);
  if (value.length > 1000) throw new InvalidRow(`"${field}" is longer than 1,000 characters`);
  return value;
}

function parseOwner(value: unknown): Owner {
  if (!isObject(value)) throw new InvalidRow('"owner" is not an object');
  return Object.freeze({
    issuer: parseText(value.issuer, 'owner.issuer'),
    subject: parseText(value.subject, 'owner.subject'),
  });
}

function parseHandler(value: unknown): string {
  if (!isHandlerName(value)) throw new InvalidRow('"handler" is not the name of a handler group');
  return value;
}

export function isHandlerName(value: unknown): value is string {
  return typeof value === 'string' && value.length <= 200 && groupNameOf(value) !== undefined;
}

/** Content, such as `methods GET POST` → the set of groups or methods. Rows with equal sets share one set. */
export type SharedSets = Map<string, ReadonlySet<string>>;

function shareSet(sets: SharedSets, kind: string, items: readonly string[]): ReadonlySet<string> {
  const key = `${kind} ${items.join(' ')}`;
  const set = sets.get(key) ?? new Set(items);
  sets.set(key, set);
  return set;
}

function isMethod(value: unknown): value is string {
  return typeof value === 'string' && /^[A-Za-z][A-Za-z-]{0,31}$/.test(value);
}

/** Also accepts methods in lower case. Methods are case-sensitive (RFC 9110, 9.1), but who writes "get" means GET. */
function parseMethods(value: unknown, sets: SharedSets): ReadonlySet<string> {
  if (!Array.isArray(value) || !value.every(isMethod)) throw new InvalidRow('"methods" is not a list of HTTP methods');
  const methods = value.map((method) => method.toUpperCase());
  return shareSet(sets, 'methods', methods);
}

function parseGroups(value: unknown, sets: SharedSets): ReadonlySet<string> | '*' {
  if (value === '*') return '*';
  if (!Array.isArray(value) || !value.every(isHandlerName))
    throw new InvalidRow('"groups" is neither "*" nor a list of handler groups');
  const names = value.map((name) => groupNameOf(name) as string);
  return shareSet(sets, 'groups', names);
}

function parseLimit(value: unknown): Rate {
  const rate = typeof value === 'string' ? parseRate(value) : undefined;
  if (rate === undefined) throw new InvalidRow(`"limit" is not ${RATE_FORM}`);
  return rate;
}

function parseScopes(value: unknown): readonly string[] {
  if (!Array.isArray(value) || !value.every(isScope)) throw new InvalidRow('"scopes" is not a list of scopes');
  return Object.freeze(value);
}

// 43 characters of base64url hold two bits more than a digest. The pattern demands a last character in which these two
// bits are zero, so each digest has one spelling.
const HASH = /^sha256:[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;

function parseHash(value: unknown): Buffer {
  if (typeof value !== 'string' || !HASH.test(value))
    throw new InvalidRow('"hash" is not "sha256:" and 43 characters of base64url');
  return Buffer.from(value.slice(7), 'base64url');
}

function parsePrevious(value: unknown): CredentialRow['previous'] {
  if (!Array.isArray(value) || !value.every(isObject)) throw new InvalidRow('"previous" is not a list of objects');
  return value.map((item) => ({
    digest: parseHash(item.hash),
    expiresAt: parseInstant(item.expires_at, 'previous.expires_at'),
  }));
}

function parseInstant(value: unknown, field: string): number {
  const time = typeof value === 'string' ? parseTime(value) : undefined;
  if (time === undefined) throw new InvalidRow(`"${field}" is not a time such as 2030-01-31T12:00:00Z`);
  return time;
}

function checkLiteral(value: unknown): void {
  if (typeof value !== 'string' || value === '') throw new InvalidRow('"authorization" is not a text');
  if (/^[ \t]|[ \t]$|[\0-\x08\x0a-\x1f\x7f]/.test(value))
    throw new InvalidRow(
      '"authorization" begins or ends with space, or has control characters: no request can carry it',
    );
}
