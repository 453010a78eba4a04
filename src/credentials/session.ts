// Session tokens, `gfs_<claims>.<mac>`: bound to a row, good for an hour, checked with nothing but the session key, so
// every worker and every machine that has the key accepts them. Whether the row is live is asked afterwards, elsewhere.
import { crypto } from '../base/builtins.ts';

export const SESSION_LIFETIME_SECONDS = 3600;

const PREFIX = 'gfs_';
const SHAPE = /^gfs_([0-9A-Za-z_-]{1,4000})\.([0-9A-Za-z_-]{43})$/;

export interface Session {
  readonly token: string;
  /** Unix seconds. */
  readonly expiresAt: number;
}

export type SessionCheck = { readonly rowId: string } | { readonly reason: string };

/** The key proper, out of the text of a setting or of the key file. HKDF (RFC 5869): any text will do, and it serves this purpose alone. */
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
  return exp * 1000 > now ? { rowId: row } : { reason: 'the session is over' };
}

// Over the text, not over what it decodes to: no second spelling of the claims can pass.
function macOf(key: Buffer, claims: string): Buffer {
  return crypto().createHmac('sha256', key).update(PREFIX).update(claims).digest();
}
