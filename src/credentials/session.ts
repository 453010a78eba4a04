// Session tokens, `gfs_<claims>.<mac>`: bound to a row, valid for an hour, checked with the session key alone, so every
// worker and every machine that has the key accepts them. Whether the row is live is identify.ts. The key is a setting,
// or the file `session.key` in the data folder, which is made once, when it is first needed.
import { closeSync, fsyncSync, linkSync, openSync, readFileSync, statSync, unlinkSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { crypto } from '../base/builtins.ts';
import { describeFailure, errorCode } from '../base/failure.ts';

export const SESSION_LIFETIME_SECONDS = 3600;

const PREFIX = 'gfs_';
const SHAPE = /^gfs_([0-9A-Za-z_-]{1,4000})\.([0-9A-Za-z_-]{43})$/;

export interface Session {
  readonly token: string;
  /** Unix seconds. */
  readonly expiresAt: number;
}

/** The result of a check. `expiresAt` is in Unix milliseconds. */
export type SessionCheck = { readonly rowId: string; readonly expiresAt: number } | { readonly reason: string };

/**
 * The key proper, out of the text of a setting or of the key file. HKDF (RFC 5869): any text will do, and it serves
 * this purpose alone.
 */
export function deriveSessionKey(text: string): Buffer {
  return Buffer.from(crypto().hkdfSync('sha256', text, '', 'gatefold session token v1', 32));
}

/** @param now Unix milliseconds */
export function createSessionToken(key: Buffer, rowId: string, now: number): Session {
  const issuedAt = Math.floor(now / 1000);
  const expiresAt = issuedAt + SESSION_LIFETIME_SECONDS;
  const claims = Buffer.from(JSON.stringify({ row: rowId, iat: issuedAt, exp: expiresAt })).toString('base64url');
  return { token: `${PREFIX}${claims}.${macOf(key, claims).toString('base64url')}`, expiresAt };
}

export function hasSessionShape(token: string): boolean {
  return SHAPE.test(token);
}

/** @param now Unix milliseconds */
export function checkSessionToken(key: Buffer, token: string, now: number): SessionCheck {
  const match = SHAPE.exec(token);
  if (match === null) return { reason: 'it has not the shape of a session token' };
  const [, claims, text] = match as unknown as [string, string, string];
  const mac = Buffer.from(text, 'base64url');
  // 43 characters hold 258 bits: without the second comparison four texts would pass for one MAC.
  const genuine = crypto().timingSafeEqual(mac, macOf(key, claims)) && mac.toString('base64url') === text;
  if (!genuine) return { reason: 'it is not signed with the session key' };
  const { row, exp } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { row: string; exp: number };
  return exp * 1000 > now ? { rowId: row, expiresAt: exp * 1000 } : { reason: 'the session is over' };
}

// Over the text, not over what it decodes to: no second spelling of the claims can pass.
function macOf(key: Buffer, claims: string): Buffer {
  return crypto().createHmac('sha256', key).update(PREFIX).update(claims).digest();
}

const MIN_KEY_LENGTH = 32;

/**
 * The text of the key file, `undefined` when there is none.
 *
 * @throws Error one line, when the file cannot be read or is too short to be a key
 */
export function readSessionKey(dataDir: string): string | undefined {
  const path = join(dataDir, 'session.key');
  let text: string;
  try {
    // To open a FIFO would wait for its writer for ever.
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

/**
 * The text of the key file, which is made when there is none. Processes that come here at once agree on one key: each
 * writes its own under a name of its own, and `link` lets exactly one of them have the real name, whole.
 *
 * @throws Error one line
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
  if (text === undefined) throw new Error(`Cannot make ${path}: it vanished as it was made`);
  return text;
}
