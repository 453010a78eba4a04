// Identifies the caller of a request: checks its Authorization value against the table. Synchronous and pure: the
// table, the clock and the session key are arguments. A row is live when it is neither revoked nor expired. The reasons
// of a refusal are for the log, never for the client.
import { crypto } from '../base/builtins.ts';
import { checkSessionToken, hasSessionShape } from './session.ts';
import { type CredentialRow, type CredentialTable, literalKey } from './table/table.ts';
import { parseToken, sha256 } from './token.ts';

export type Caller =
  /** The value matches a live row, until `expiresAt` (Unix milliseconds). */
  | { readonly kind: 'row'; readonly row: CredentialRow; readonly expiresAt: number }
  /** The value is no Gatefold token and matches no row. So the controllers decide about the authorization. */
  | { readonly kind: 'foreign' }
  /** The value is a Gatefold token or the literal value of a row, but no live row accepts it: the answer is 401. */
  | Refusal;

export interface Refusal {
  readonly kind: 'refused';
  readonly reason: string;
  /** The row's id, when the token contains one. */
  readonly id?: string;
  /** The table in memory does not have this row or secret, but the file may already have it. */
  readonly isUnknown?: true;
}

export interface IdentifyContext {
  readonly table: CredentialTable;
  /** Unix milliseconds. */
  readonly now: number;
  readonly sessionKey: () => Buffer | undefined;
}

const FOREIGN: Caller = Object.freeze({ kind: 'foreign' });
/** A digest to compare with when no row has the id. With it, the check of an unknown id takes the same time. */
const NO_DIGEST = Buffer.alloc(32);

/** @param authorization the header value as it was received, without spaces and tabs around it */
export function identifyCaller(authorization: string, context: IdentifyContext): Caller {
  const caller = identifyOwnShape(authorization, context);
  if (caller.kind === 'row' || context.table.literals.size === 0) return caller;
  // Node decodes header values as Latin-1, so this restores the bytes that were received.
  const key = literalKey(Buffer.from(authorization, 'latin1'));
  if (!context.table.literals.has(key)) return caller;
  const row = context.table.literals.get(key);
  return row === undefined ? refused('its row is quarantined') : liveOrRefused(row, row.id, context.now);
}

function identifyOwnShape(authorization: string, context: IdentifyContext): Caller {
  const token = authorization.replace(BEARER, '');
  if (token.startsWith('gfk_')) return identifyToken(token, context);
  if (token.startsWith('gfs_')) return identifySession(token, context);
  return looksDamaged(authorization) ? refused('it looks like a damaged token') : FOREIGN;
}

function identifyToken(text: string, { table, now }: IdentifyContext): Caller {
  const token = parseToken(text);
  if (token === undefined) return refused('its shape or checksum is wrong');
  const { id } = token;
  const row = table.rows.get(id);
  const digest = sha256(token.secret);
  const { timingSafeEqual } = crypto();
  // The digests are compared even when the id is unknown. So response times do not reveal which ids exist.
  const isCurrentSecret = timingSafeEqual(digest, row?.digest ?? NO_DIGEST);
  if (row?.digest === undefined) return refusedUntilRead(id, 'no row has its id');
  if (isCurrentSecret) return liveOrRefused(row, id, now);
  const previous = row.previous.find((earlier) => timingSafeEqual(digest, earlier.digest));
  // The secret may come from a rotation that this worker has not read yet.
  if (previous === undefined) return refusedUntilRead(id, 'its secret is not that of the row');
  if (previous.expiresAt <= now) return refused('its secret was rotated and the overlap is over', id);
  return liveOrRefused(row, id, now, previous.expiresAt);
}

function identifySession(token: string, { table, now, sessionKey }: IdentifyContext): Caller {
  if (!hasSessionShape(token)) return refused('it does not have the shape of a session token');
  const key = sessionKey();
  if (key === undefined) return refused('there is no session key');
  const check = checkSessionToken(key, token, now);
  if ('reason' in check) return refused(check.reason);
  const row = table.rows.get(check.rowId);
  if (row === undefined) return refusedUntilRead(check.rowId, 'its row is gone or quarantined');
  return liveOrRefused(row, check.rowId, now, check.expiresAt);
}

/** @param tokenExpiresAt Unix milliseconds; the row may expire earlier */
function liveOrRefused(row: CredentialRow, id: string, now: number, tokenExpiresAt = Number.POSITIVE_INFINITY): Caller {
  const reason = whyNotLive(row, now);
  if (reason !== undefined) return refused(reason, id);
  return { kind: 'row', row, expiresAt: Math.min(row.expiresAt, tokenExpiresAt) };
}

/** Returns the reason why a row is not live; `undefined` for a live row. */
export function whyNotLive(row: CredentialRow, now: number): string | undefined {
  if (row.revoked) return 'its row is revoked';
  return row.expiresAt > now ? undefined : 'its row has expired';
}

function refused(reason: string, id?: string): Refusal {
  return id === undefined ? { kind: 'refused', reason } : { kind: 'refused', reason, id };
}

/** Refuses a caller by the table in memory. A new read of the file may lead to another result. */
function refusedUntilRead(id: string, reason: string): Refusal {
  return { kind: 'refused', reason, id, isUnknown: true };
}

/** Matches the scheme Bearer, which is case-insensitive, and the spaces after it (RFC 9110, 11.1 and 11.4). */
const BEARER = /^bearer +/i;

// A request with a damaged Gatefold token must not become an anonymous call. Examples of damage are another scheme,
// quotes, U+00A0 and wrong case. But a foreign token may contain "gfk_" by chance, as one JWT in some thousands does.
// So the prefix alone is enough only at the beginning of a word. Inside a word, more of the shape must match. Both
// patterns take time linear in the length.
const PREFIX_OF_WORD = /(?:^|[^0-9A-Za-z._~+/-])gf[ks]_/i;
const SHAPE_IN_WORD = /gfk_[0-9A-Za-z]{12}_[0-9A-Za-z]{43}_|gfs_eyJ/i;

function looksDamaged(value: string): boolean {
  return PREFIX_OF_WORD.test(value) || SHAPE_IN_WORD.test(value);
}
