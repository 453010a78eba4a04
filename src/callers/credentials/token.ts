// Makes and parses tokens, `gfk_<id>_<secret>_<checksum>`, and hashes their secrets. By the checksum, a scanner
// recognises leaked tokens, and a typing error is found without the table.
import { crypto, hash } from '../../base/builtins.ts';

const ID_LENGTH = 12;
const SECRET_LENGTH = 43;
const TOKEN_SHAPE = /^gfk_([0-9A-Za-z]{12})_([0-9A-Za-z]{43})_([0-9A-Za-z]{6})$/;
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

export interface Token {
  readonly id: string;
  readonly secret: string;
  readonly token: string;
}

type RandomBytes = (size: number) => Uint8Array;

/** Makes a token with a new secret, whose 43 base62 characters hold 256 bits. @param id the id of a rotated row */
export function generateToken(
  randomBytes: RandomBytes = crypto().randomBytes,
  id = randomBase62(ID_LENGTH, randomBytes),
): Token {
  const secret = randomBase62(SECRET_LENGTH, randomBytes);
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

/** Does not check the checksum. */
export function hasTokenShape(text: string): boolean {
  return TOKEN_SHAPE.test(text);
}

/** Returns the field `hash` of a row. No slow password hash is needed, because the secret has 256 random bits. */
export function hashSecret(secret: string): string {
  return `sha256:${sha256(secret).toString('base64url')}`;
}

export function sha256(data: string | Buffer): Buffer {
  return Buffer.from(hash('sha256', data, 'latin1'), 'latin1');
}

// Uses only bytes below 248, which is 4 * 62, so that all characters are equally frequent. The remainders of the bytes
// 248 to 255 would make the first eight characters more frequent.
function randomBase62(length: number, randomBytes: RandomBytes): string {
  let text = '';
  while (text.length < length) {
    for (const byte of randomBytes(length - text.length)) if (byte < 248) text += BASE62[byte % 62];
  }
  return text;
}

/** Returns the CRC-32 as six base62 characters. `zlib.crc32` is not used: Node 20.14 and older have none. */
function computeChecksum(ascii: string): string {
  let crc = -1;
  for (let i = 0; i < ascii.length; i++) crc = (crc >>> 8) ^ (CRC_TABLE[(crc ^ ascii.charCodeAt(i)) & 0xff] as number);
  let quotient = ~crc >>> 0;
  let text = '';
  for (let i = 0; i < 6; i++) {
    text = BASE62.charAt(quotient % 62) + text;
    quotient = Math.floor(quotient / 62);
  }
  return text;
}

/** Byte → its CRC-32, with the polynomial of zlib. */
const CRC_TABLE = Int32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc;
});
