// Hashes and checks passwords. The database has `salt:hash`, by scrypt.
import { randomBytes, scrypt as scryptCallback, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';

const scrypt = promisify<string, string, number, Buffer>(scryptCallback);
/** A hash that no password has. */
const NOBODYS = `nobody:${'0'.repeat(64)}`;

export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(16).toString('hex');
  return `${salt}:${(await scrypt(password, salt, 32)).toString('hex')}`;
}

/** @param stored undefined when there is no such user; the check takes the same time then */
export async function isPassword(password: string, stored = NOBODYS): Promise<boolean> {
  const [salt = '', hash = ''] = stored.split(':');
  return timingSafeEqual(await scrypt(password, salt, 32), Buffer.from(hash, 'hex'));
}
