// Makes and parses tokens, `gfk_<id>_<secret>_<checksum>`, and hashes their secrets for the table. The checksum is not
// secret. With it, scanners recognise a token in a text, and a typing error is refused before the row is looked up.
// identify.ts checks tokens against the table.
import { crypto, hash } from '../base/builtins.ts';

export const ID_LENGTH = 12;
export const SECRET_LENGTH = 43;
const TOKEN_SHAPE = /^gfk_([0-9A-Za-z]{12})_([0-9A-Za-z]{43})_([0-9A-Za-z]{6})$/;
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

export interface Token {
  readonly id: string;
  readonly secret: string;
  /** The complete token, as a client sends it. */
  readonly token: string;
}

export type RandomBytes = (size: number) => Uint8Array;

/**
 * Makes a token with a new secret. The id is also new, unless the caller gives one. The 43 base62 characters of a
 * secret hold 256 bits.
 */
export function generateToken(random: RandomBytes = crypto().randomBytes, id = randomBase62(ID_LENGTH, random)): Token {
  const secret = randomBase62(SECRET_LENGTH, random);
  const body = `gfk_${id}_${secret}_`;
  return { id, secret, token: body + computeChecksum(body) };
}

/** Returns the id and the secret of a token; `undefined` when its shape or checksum is wrong. */
export function parseToken(text: string): Pick<Token, 'id' | 'secret'> | undefined {
  const match = TOKEN_SHAPE.exec(text);
  if (match === null) return undefined;
  const [, id, secret, checksum] = match as unknown as [string, string, string, string];
  return computeChecksum(text.slice(0, -checksum.length)) === checksum ? { id, secret } : undefined;
}

/** Whether the text has the shape of a token. Its checksum may be wrong. */
export function hasTokenShape(text: string): boolean {
  return TOKEN_SHAPE.test(text);
}

/** Returns the field `hash` of a row. A plain digest is enough: nobody can guess a secret of 256 random bits. */
export function hashSecret(secret: string): string {
  return `sha256:${sha256(secret).toString('base64url')}`;
}

export function sha256(data: string | Buffer): Buffer {
  return Buffer.from(hash('sha256', data, 'latin1'), 'latin1');
}

// Only bytes below 248 (4 * 62) are used, so that all characters are equally frequent. With the bytes from 248 on, the
// first eight characters would be more frequent.
function randomBase62(length: number, randomBytes: RandomBytes): string {
  let text = '';
  while (text.length < length) {
    for (const byte of randomBytes(length - text.length)) if (byte < 248) text += BASE62[byte % 62];
  }
  return text;
}

/** CRC-32 as six base62 characters. Node's own `zlib.crc32` is missing before 20.15. */
function computeChecksum(ascii: string): string {
  let crc = -1;
  for (let i = 0; i < ascii.length; i++) crc = (crc >>> 8) ^ (CRC_TABLE[(crc ^ ascii.charCodeAt(i)) & 0xff] as number);
  let rest = ~crc >>> 0;
  let text = '';
  for (let i = 0; i < 6; i++) {
    text = BASE62.charAt(rest % 62) + text;
    rest = Math.floor(rest / 62);
  }
  return text;
}

const CRC_TABLE = Int32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc;
});
