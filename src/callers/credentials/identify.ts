// Identifies the caller by the Authorization value. Reads no file: the table, the time and the session key are
// arguments. The reason of a refusal is logged and never sent.
import { crypto } from '../../base/builtins.ts';
import { checkSessionToken } from './session.ts';
import type { CredentialRow } from './table/row.ts';
import { type CredentialTable, literalKey } from './table/table.ts';
import { parseToken, sha256 } from './token.ts';

/** The answer of the table to an Authorization value, before the age of the table counts (kind `away`). */
export type Identification =
  /** The value belongs to a live row. The value is valid until `expiresAt` (Unix milliseconds, or `Infinity`). */
  | { readonly kind: 'row'; readonly row: CredentialRow; readonly expiresAt: number }
  /** The value is no Gatefold token and belongs to no row. The controllers decide what it means. */
  | { readonly kind: 'foreign' }
  /** The value looks like a Gatefold token, or a row that is not live has this value. The answer is 401. */
  | Refusal;

export interface Refusal {
  readonly kind: 'refused';
  readonly reason: string;
  readonly id?: string;
  /** True when the table in memory lacks the row or its secret, but the file may have got it since the last read. */
  readonly mayBeInFile?: true;
}

export interface IdentifyContext {
  readonly table: Pick<CredentialTable, 'literals'> & { readonly rows: Pick<CredentialTable['rows'], 'get'> };
  /** Unix milliseconds. */
  readonly now: number;
  readonly sessionKey: () => Buffer | undefined;
}

const FOREIGN: Identification = Object.freeze({ kind: 'foreign' });
/** When no row has the token's id, the secret is compared with this digest, so that the time reveals no ids. */
const NO_DIGEST = Buffer.alloc(32);

/** @param authorization the header value as it was received, without spaces and tabs around it */
export function identifyCaller(authorization: string, context: IdentifyContext): Identification {
  const caller = identifyGatefoldToken(authorization, context);
  if (caller.kind === 'row' || context.table.literals.size === 0) return caller;
  // Node decodes header values as Latin-1, so `Buffer.from` restores the bytes that were received.
  const key = literalKey(Buffer.from(authorization, 'latin1'));
  if (!context.table.literals.has(key)) return caller;
  const row = context.table.literals.get(key);
  return row === undefined ? refused('its row is quarantined') : liveOrRefused(row, context.now);
}

function identifyGatefoldToken(authorization: string, context: IdentifyContext): Identification {
  const token = authorization.replace(BEARER, '');
  if (token.startsWith('gfk_')) return identifyCredential(token, context);
  if (token.startsWith('gfs_')) return identifySession(token, context);
  // `Basic gfk_…`, `"gfk_…"` or `GFK_…` must not become an anonymous call.
  const looksDamaged = PREFIX_OF_WORD.test(authorization) || SHAPE_IN_WORD.test(authorization);
  return looksDamaged ? refused('it looks like a damaged token') : FOREIGN;
}

function identifyCredential(text: string, { table, now }: IdentifyContext): Identification {
  const token = parseToken(text);
  if (token === undefined) return refused('its shape or checksum is wrong');
  const { id } = token;
  const row = table.rows.get(id);
  const digest = sha256(token.secret);
  const { timingSafeEqual } = crypto();
  const isCurrentSecret = timingSafeEqual(digest, row?.digest ?? NO_DIGEST);
  if (row?.digest === undefined) return refusedAsMissing('no row has its id', id);
  if (isCurrentSecret) return liveOrRefused(row, now);
  const previous = row.previous.find((earlier) => timingSafeEqual(digest, earlier.digest));
  // The row may have got this secret by a rotation that this worker has not read yet.
  if (previous === undefined) return refusedAsMissing('its secret is not that of the row', id);
  if (previous.expiresAt <= now) return refused('its secret was rotated and the overlap is over', id);
  return liveOrRefused(row, now, previous.expiresAt);
}

function identifySession(token: string, { table, now, sessionKey }: IdentifyContext): Identification {
  const key = sessionKey();
  if (key === undefined) return refused('there is no session key');
  const check = checkSessionToken(key, token, now);
  if ('reason' in check) return refused(check.reason);
  const row = table.rows.get(check.rowId);
  if (row === undefined) return refusedAsMissing('its row is gone or quarantined', check.rowId);
  return liveOrRefused(row, now, check.expiresAt);
}

/** @param tokenExpiresAt Unix milliseconds; the row may expire earlier */
function liveOrRefused(row: CredentialRow, now: number, tokenExpiresAt = Number.POSITIVE_INFINITY): Identification {
  const reason = whyNotLive(row, now);
  if (reason !== undefined) return refused(reason, row.id);
  return { kind: 'row', row, expiresAt: Math.min(row.expiresAt, tokenExpiresAt) };
}

export function whyNotLive(row: CredentialRow, now: number): string | undefined {
  if (row.revoked) return 'its row is revoked';
  return row.expiresAt > now ? undefined : 'its row has expired';
}

function refused(reason: string, id?: string): Refusal {
  return id === undefined ? { kind: 'refused', reason } : { kind: 'refused', reason, id };
}

/** Refuses a caller until the file of the table has been read again. */
function refusedAsMissing(reason: string, id: string): Refusal {
  return { kind: 'refused', reason, id, mayBeInFile: true };
}

/** Matches `Bearer `. The scheme is case-insensitive, and several spaces may follow it (RFC 9110, 11.1 and 11.4). */
const BEARER = /^bearer +/i;

// Both patterns take time linear in the length of the value.
/** Matches a word that begins like a Gatefold token. */
const PREFIX_OF_WORD = /(?:^|[^0-9A-Za-z._~+/-])gf[ks]_/i;
/** Matches inside a word. More than `gfk_` must match, because about one JWT in some thousands has `gfk_` by chance. */
const SHAPE_IN_WORD = /gfk_[0-9A-Za-z]{12}_[0-9A-Za-z]{43}_|gfs_eyJ/i;
