// Who calls: checks an Authorization value against a table. Synchronous and pure: the table, the clock and the session
// key are arguments. It does not know what the gateway does with the answer; the reasons it gives are for the log
// alone.
import { crypto } from '../base/builtins.ts';
import { checkSessionToken, hasSessionShape } from './session.ts';
import { type CredentialRow, type CredentialTable, literalKey } from './table/table.ts';
import { parseToken, sha256 } from './token.ts';

export type Caller =
  /** The value matches a live row. `expiresAt`, in Unix milliseconds, is when it ceases to. */
  | { readonly kind: 'row'; readonly row: CredentialRow; readonly expiresAt: number }
  /** It matches no row and is not of our making: the gateway delegates. */
  | { readonly kind: 'foreign' }
  /** It is of our making, or a row's literal value, and that row is not live: 401. */
  | Refusal;

export interface Refusal {
  readonly kind: 'refused';
  readonly reason: string;
  /** Of the row, when the shape of the token told it. */
  readonly id?: string;
  /** No row has the id: the file may have one since the table was read. */
  readonly isUnknown?: true;
}

export interface IdentifyContext {
  readonly table: CredentialTable;
  /** Unix milliseconds. */
  readonly now: number;
  readonly sessionKey: () => Buffer | undefined;
}

const FOREIGN: Caller = Object.freeze({ kind: 'foreign' });
const NOBODY = Buffer.alloc(32);

/** @param authorization the header value as it came, SP and HTAB trimmed by the HTTP layer and nothing else */
export function identifyCaller(authorization: string, context: IdentifyContext): Caller {
  const caller = identifyOwnShape(authorization, context);
  if (caller.kind === 'row' || context.table.literals.size === 0) return caller;
  // Node decodes header values as Latin-1: back to the bytes that were on the wire.
  const key = literalKey(Buffer.from(authorization, 'latin1'));
  if (!context.table.literals.has(key)) return caller;
  const row = context.table.literals.get(key);
  return row === undefined ? refused('its row is quarantined') : liveOrRefused(row, row.id, context.now);
}

function identifyOwnShape(authorization: string, context: IdentifyContext): Caller {
  const token = authorization.replace(BEARER, '');
  if (token.startsWith('gfk_')) return identifyToken(token, context);
  if (token.startsWith('gfs_')) return identifySession(token, context);
  return isMangled(authorization) ? refused('it looks like a damaged token') : FOREIGN;
}

function identifyToken(text: string, { table, now }: IdentifyContext): Caller {
  const token = parseToken(text);
  if (token === undefined) return refused('its shape or checksum is wrong');
  const { id } = token;
  const row = table.rows.get(id);
  const digest = sha256(token.secret);
  const { timingSafeEqual } = crypto();
  // An id that nobody has costs the same comparison, so the time tells no one which ids exist.
  const isCurrent = timingSafeEqual(digest, row?.digest ?? NOBODY);
  if (row?.digest === undefined) return unknown(id, 'no row has its id');
  if (isCurrent) return liveOrRefused(row, id, now);
  const previous = row.previous.find((earlier) => timingSafeEqual(digest, earlier.digest));
  // A rotation that has not been read yet looks the same.
  if (previous === undefined) return unknown(id, 'its secret is not that of the row');
  if (previous.expiresAt <= now) return refused('its secret was rotated and the overlap is over', id);
  return liveOrRefused(row, id, now, previous.expiresAt);
}

function identifySession(token: string, { table, now, sessionKey }: IdentifyContext): Caller {
  if (!hasSessionShape(token)) return refused('it has not the shape of a session token');
  const key = sessionKey();
  if (key === undefined) return refused('there is no session key');
  const check = checkSessionToken(key, token, now);
  if ('reason' in check) return refused(check.reason);
  const row = table.rows.get(check.rowId);
  if (row === undefined) return unknown(check.rowId, 'its row is gone or quarantined');
  return liveOrRefused(row, check.rowId, now, check.expiresAt);
}

/** @param until when the token itself expires, in Unix milliseconds */
function liveOrRefused(row: CredentialRow, id: string, now: number, until = Number.POSITIVE_INFINITY): Caller {
  const reason = whyNotLive(row, now);
  return reason === undefined ? { kind: 'row', row, expiresAt: Math.min(row.expiresAt, until) } : refused(reason, id);
}

export function whyNotLive(row: CredentialRow, now: number): string | undefined {
  if (row.revoked) return 'its row is revoked';
  return row.expiresAt > now ? undefined : 'its row has expired';
}

function refused(reason: string, id?: string): Refusal {
  return id === undefined ? { kind: 'refused', reason } : { kind: 'refused', reason, id };
}

function unknown(id: string, reason: string): Refusal {
  return { kind: 'refused', reason, id, isUnknown: true };
}

/**
 * The scheme is case-insensitive and one or more SP follow it (RFC 9110, 11.1 and 11.4); the token is case-sensitive.
 */
const BEARER = /^bearer +/i;

// A damaged token of ours must not become an anonymous call: another scheme in front, quotes, U+00A0, wrong case. But a
// foreign token may hold "gfk_" by chance (one JWT in some thousands does), so the prefix counts only where a token of
// anybody's can begin, and inside a longer word only the whole shape counts. Both patterns look at a bounded stretch
// per position: linear in the length.
const BEGINS_LIKE_OURS = /(?:^|[^0-9A-Za-z._~+/-])gf[ks]_/i;
const HOLDS_ONE_OF_OURS = /gfk_[0-9A-Za-z]{12}_[0-9A-Za-z]{43}_|gfs_eyJ/i;

function isMangled(value: string): boolean {
  return BEGINS_LIKE_OURS.test(value) || HOLDS_ONE_OF_OURS.test(value);
}
