// Creates and checks session tokens, `gfs_<claims>.<mac>`. A token belongs to a row of the credentials table and is
// valid for an hour. The check needs only the session key, so every machine with the key accepts the token. The key is
// a setting or the file `session.key` in the data folder. The file is made when a key is first needed. identify.ts
// checks the row.
import {
  closeSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  statSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { crypto } from '../base/builtins.ts';
import { describeFailure, errorCode } from '../base/failure.ts';
import { replaceFile } from '../base/system.ts';

export const SESSION_LIFETIME_SECONDS = 3600;

const SESSION_PREFIX = 'gfs_';
const SESSION_SHAPE = /^gfs_([0-9A-Za-z_-]{1,4000})\.([0-9A-Za-z_-]{43})$/;

export interface Session {
  readonly token: string;
  /** Unix seconds. */
  readonly expiresAt: number;
}

/** The row and the expiry of the token (Unix milliseconds), or the reason of a refusal. */
export type SessionCheck = { readonly rowId: string; readonly expiresAt: number } | { readonly reason: string };

/**
 * Derives the MAC key from the text of the setting or of the key file. HKDF (RFC 5869) accepts a text of any form, and
 * its label makes the key useless for other purposes.
 */
export function deriveSessionKey(text: string): Buffer {
  return Buffer.from(crypto().hkdfSync('sha256', text, '', 'gatefold session token v1', 32));
}

/** @param now Unix milliseconds */
export function createSessionToken(key: Buffer, rowId: string, now: number): Session {
  const issuedAt = Math.floor(now / 1000);
  const expiresAt = issuedAt + SESSION_LIFETIME_SECONDS;
  const claims = Buffer.from(JSON.stringify({ row: rowId, iat: issuedAt, exp: expiresAt })).toString('base64url');
  return { token: `${SESSION_PREFIX}${claims}.${computeMac(key, claims).toString('base64url')}`, expiresAt };
}

export function hasSessionShape(token: string): boolean {
  return SESSION_SHAPE.test(token);
}

/** @param now Unix milliseconds */
export function checkSessionToken(key: Buffer, token: string, now: number): SessionCheck {
  const match = SESSION_SHAPE.exec(token);
  if (match === null) return { reason: 'it does not have the shape of a session token' };
  const [, claims, macText] = match as unknown as [string, string, string];
  const mac = Buffer.from(macText, 'base64url');
  // The MAC has 256 bits, but 43 characters hold 258. So four different texts decode to the same MAC, and only one of
  // them is accepted.
  const isGenuine = crypto().timingSafeEqual(mac, computeMac(key, claims)) && mac.toString('base64url') === macText;
  if (!isGenuine) return { reason: 'it is not signed with the session key' };
  const { row, exp } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { row: string; exp: number };
  return exp * 1000 > now ? { rowId: row, expiresAt: exp * 1000 } : { reason: 'the session is over' };
}

// Signs the text of the claims and not their values. So only one spelling of the same claims is accepted.
function computeMac(key: Buffer, claims: string): Buffer {
  return crypto().createHmac('sha256', key).update(SESSION_PREFIX).update(claims).digest();
}

/** Minimum length of the key's text in the file, in characters. */
const MIN_KEY_LENGTH = 32;

/**
 * Returns the text of the key file; `undefined` when there is no such file.
 *
 * @throws Error of one line, when the file cannot be read or is too short to be a key
 */
export function readSessionKey(dataDir: string): string | undefined {
  const path = join(dataDir, 'session.key');
  let text: string;
  try {
    // Opening a FIFO (a named pipe) could wait for a writer without end, so only a regular file is opened.
    if (!statSync(path).isFile()) throw new Error('it is not a regular file');
    text = readFileSync(path, 'utf8').replace(/[\r\n]+$/, '');
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw new Error(`Cannot read ${path}: ${describeFailure(error)}`);
  }
  if (text.length < MIN_KEY_LENGTH) {
    throw new Error(
      `Cannot use ${path}: it has ${text.length} characters, a key has ${MIN_KEY_LENGTH} or more; remove it to have one made`,
    );
  }
  return text;
}

/** Replaces the key file with the key that all machines share. @throws the error of a system call */
export function writeSessionKey(dataDir: string, text: string): void {
  const draft = join(dataDir, `.session.key.${process.pid}.tmp`);
  writeFileSync(draft, `${text}\n`, { mode: 0o600 });
  replaceFile(draft, join(dataDir, 'session.key'));
}

/**
 * Returns the text of the key file. When there is no file, makes it with a new key. Processes that do this at the same
 * time get the same key. Each of them writes a draft, and `link` gives the final name to exactly one draft.
 *
 * @throws Error of one line
 */
export function makeSessionKey(dataDir: string): string {
  const path = join(dataDir, 'session.key');
  const draft = join(dataDir, `.session.key.${process.pid}-${crypto().randomBytes(6).toString('hex')}.tmp`);
  try {
    const file = openSync(draft, 'wx', 0o600);
    try {
      writeSync(file, `${crypto().randomBytes(32).toString('base64url')}\n`);
      fsyncSync(file);
      linkSync(draft, path);
    } finally {
      closeSync(file);
      unlinkSync(draft);
    }
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw new Error(`Cannot make ${path}: ${describeFailure(error)}`);
  }
  const text = readSessionKey(dataDir);
  if (text === undefined) throw new Error(`Cannot make ${path}: the file was removed at the same time`);
  return text;
}
