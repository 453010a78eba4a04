// Creates and checks session tokens, `gfs_<claims>.<mac>`: the id of a row and two times, valid for an hour. The check
// here needs only the session key, so every machine with the key accepts the token. identify.ts also checks the row.
// The key is made when it is first needed.
import { linkSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { crypto } from '../../base/builtins.ts';
import { describeFailure, errorCode } from '../../base/failure.ts';
import { readContent } from '../../base/polled-file.ts';
import { unixTime } from '../../base/time.ts';
import { writeNewFile, writeWholeFile } from '../../base/whole-file.ts';

const SESSION_LIFETIME_SECONDS = 3600;

const SESSION_PREFIX = 'gfs_';
const SESSION_SHAPE = /^gfs_([0-9A-Za-z_-]{1,4000})\.([0-9A-Za-z_-]{43})$/;

export interface Session {
  readonly token: string;
  /** Unix seconds. */
  readonly expiresAt: number;
}

/** For a valid token: the id of its row, and its expiry in Unix milliseconds. Otherwise: the reason of the refusal. */
type SessionCheck = { readonly rowId: string; readonly expiresAt: number } | { readonly reason: string };

/** HKDF (RFC 5869) accepts any text, and its label makes the key useless for other purposes. */
export function deriveSessionKey(text: string): Buffer {
  return Buffer.from(crypto().hkdfSync('sha256', text, '', 'gatefold session token v1', 32));
}

/** @param now Unix milliseconds */
export function createSessionToken(key: Buffer, rowId: string, now: number): Session {
  const issuedAt = unixTime(now);
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
  // The MAC has 256 bits, but 43 characters of base64url hold 258. So four texts decode to the same MAC. Only the text
  // that comes from encoding the MAC is accepted.
  const isGenuine = crypto().timingSafeEqual(mac, computeMac(key, claims)) && mac.toString('base64url') === macText;
  if (!isGenuine) return { reason: 'it is not signed with the session key' };
  const { row, exp } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { row: string; exp: number };
  return exp * 1000 > now ? { rowId: row, expiresAt: exp * 1000 } : { reason: 'the session is over' };
}

/** Signs the encoded text of the claims. So only the spelling that this service has written is accepted. */
function computeMac(key: Buffer, claims: string): Buffer {
  return crypto().createHmac('sha256', key).update(SESSION_PREFIX).update(claims).digest();
}

const MIN_KEY_LENGTH = 32;

/** Returns the text of the key file; undefined without a file. @throws Error of one line when the text is no key */
export function readSessionKey(dataDir: string): string | undefined {
  const path = join(dataDir, 'session.key');
  const content = readContent([path], Number.POSITIVE_INFINITY);
  if (content.files === undefined && !content.isMissing) throw new Error(`Cannot read ${path}: ${content.reason}`);
  const text = content.files?.[0]?.toString().replace(/[\r\n]+$/, '');
  if (text !== undefined && text.length < MIN_KEY_LENGTH)
    throw new Error(
      `Cannot use ${path}: it has ${text.length} characters, a key has ${MIN_KEY_LENGTH} or more; remove it to have one made`,
    );
  return text;
}

/** Replaces the key file, for a key that several machines share. @throws the error of a system call */
export function writeSessionKey(dataDir: string, text: string): void {
  writeWholeFile(join(dataDir, 'session.key'), `${text}\n`);
}

/**
 * Returns the text of the key file, and makes one when there is none. Processes that do so at the same time get the
 * same key: the final name can be linked to only one of their drafts. @throws Error with a message of one line
 */
export function makeSessionKey(dataDir: string): string {
  const path = join(dataDir, 'session.key');
  const draft = join(dataDir, `.session.key.${process.pid}-${crypto().randomBytes(6).toString('hex')}.tmp`);
  try {
    try {
      writeNewFile(draft, `${crypto().randomBytes(32).toString('base64url')}\n`);
      linkSync(draft, path);
    } finally {
      rmSync(draft, { force: true });
    }
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw new Error(`Cannot make ${path}: ${describeFailure(error)}`);
  }
  const text = readSessionKey(dataDir);
  if (text === undefined) throw new Error(`Cannot make ${path}: the file was removed at the same time`);
  return text;
}
