// Who calls: an Authorization value held against a table. Synchronous and pure; the table, the clock and the session key
// are brought. It does not know what the gateway does with the answer, and its reasons are for the log alone.
import { crypto } from '../base/builtins.ts';
import { digestOf } from './secret-digest.ts';
import { checkSessionToken, hasSessionShape } from './session.ts';
import { type CredentialRow, type CredentialTable, literalKey } from './table.ts';
import { parseToken } from './token.ts';

export type Caller =
  /** It matches a live row: SDK mode. */
  | { readonly kind: 'row'; readonly row: CredentialRow }
  /** It matches no row and is not of our making: the gateway delegates. */
  | { readonly kind: 'foreign' }
  /** It is of our making, or a row's literal value, and that row is not live: 401. */
  | { readonly kind: 'refused'; readonly reason: string };

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
  return context.table.literals.has(key) ? liveOrRefused(context.table.literals.get(key), context.now) : caller;
}

function identifyOwnShape(authorization: string, context: IdentifyContext): Caller {
  const start = tokenStart(authorization);
  if (authorization.startsWith('gfk_', start)) return identifyToken(authorization, start, context);
  if (authorization.startsWith('gfs_', start)) return identifySession(authorization.slice(start), context);
  return isMangled(authorization) ? refused('it looks like a token of ours, damaged') : FOREIGN;
}

function identifyToken(authorization: string, start: number, { table, now }: IdentifyContext): Caller {
  const token = parseToken(authorization, start);
  if (token === undefined) return refused('its shape or checksum is wrong');
  const row = table.rows.get(token.id);
  const digest = digestOf(token.secret);
  const { timingSafeEqual } = crypto();
  // An id that nobody has costs the same comparison, so the time tells no one which ids exist.
  const isCurrent = timingSafeEqual(digest, row?.digest ?? NOBODY);
  if (row?.digest === undefined) return refused('no row has its id');
  if (isCurrent) return liveOrRefused(row, now);
  const previous = row.previous.find((earlier) => timingSafeEqual(digest, earlier.digest));
  if (previous === undefined) return refused('its secret is not that of the row');
  return previous.expiresAt > now ? liveOrRefused(row, now) : refused('its secret was rotated and the overlap is over');
}

function identifySession(token: string, { table, now, sessionKey }: IdentifyContext): Caller {
  if (!hasSessionShape(token)) return refused('it has not the shape of a session token');
  const key = sessionKey();
  if (key === undefined) return refused('there is no session key');
  const check = checkSessionToken(key, token, now);
  return 'reason' in check ? refused(check.reason) : liveOrRefused(table.rows.get(check.rowId), now);
}

function liveOrRefused(row: CredentialRow | undefined, now: number): Caller {
  if (row === undefined) return refused('its row is gone or quarantined');
  const reason = whyNotLive(row, now);
  return reason === undefined ? { kind: 'row', row } : refused(reason);
}

export function whyNotLive(row: CredentialRow, now: number): string | undefined {
  if (row.revoked) return 'its row is revoked';
  return row.expiresAt > now ? undefined : 'its row has expired';
}

function refused(reason: string): Caller {
  return { kind: 'refused', reason };
}

/**
 * Behind the scheme, if it is Bearer: that is case-insensitive and one or more SP follow it (RFC 9110, 11.1 and 11.4), while
 * the token is case-sensitive. A place and no copy, which would be read through a pointer for each character.
 */
function tokenStart(value: string): number {
  // As everybody writes it.
  if (value.startsWith('Bearer gf')) return 7;
  if (value.charCodeAt(6) !== 0x20 || value.slice(0, 6).toLowerCase() !== 'bearer') return 0;
  let start = 7;
  while (value.charCodeAt(start) === 0x20) start++;
  return start;
}

// A damaged token of ours must not become an anonymous call: another scheme in front, quotes, U+00A0, wrong case. But a foreign token may
// hold "gfk_" by chance (one JWT in some thousands does), so the prefix counts only where a token of anybody's can begin, and inside
// a longer word only the whole shape counts. Both patterns look at a bounded stretch per position: linear in the length.
const BEGINS_LIKE_OURS = /(?:^|[^0-9A-Za-z._~+/-])gf[ks]_/i;
const HOLDS_ONE_OF_OURS = /gfk_[0-9A-Za-z]{12}_[0-9A-Za-z]{43}_|gfs_eyJ/i;

function isMangled(value: string): boolean {
  return BEGINS_LIKE_OURS.test(value) || HOLDS_ONE_OF_OURS.test(value);
}
