// Tokens of signed-in users: JSON Web Tokens with the algorithm HS256.
import { createHmac, timingSafeEqual } from 'node:crypto';

const SECRET = process.env.TOKEN_SECRET;
if (!SECRET) throw new Error('TOKEN_SECRET is missing: set it to a long random text, such as openssl rand -hex 32');

const HEADER = encode({ alg: 'HS256', typ: 'JWT' });
const SECONDS = 60 * 24 * 3600;

/** @param now seconds since 1970 */
export function makeToken(userId: number, now = Math.floor(Date.now() / 1000)): string {
  const content = `${HEADER}.${encode({ sub: userId, iat: now, exp: now + SECONDS })}`;
  return `${content}.${sign(content).toString('base64url')}`;
}

/** @returns the id of the user; undefined when this service did not make the token, or the token has expired */
export function readToken(token: string): number | undefined {
  const [header, payload, signature, ...more] = token.split('.');
  if (header !== HEADER || payload === undefined || signature === undefined || more.length > 0) return undefined;
  const [sent, expected] = [Buffer.from(signature, 'base64url'), sign(`${header}.${payload}`)];
  if (sent.length !== expected.length || !timingSafeEqual(sent, expected)) return undefined;
  const { sub, exp } = JSON.parse(Buffer.from(payload, 'base64url').toString());
  return exp > Date.now() / 1000 ? sub : undefined;
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function sign(content: string): Buffer {
  return createHmac('sha256', SECRET as string)
    .update(content)
    .digest();
}
