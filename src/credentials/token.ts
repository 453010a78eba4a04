// What a token looks like: `gfk_<id>_<secret>_<checksum>`. It makes one, takes one apart and digests its secret.
// It does not know the table: whether a token is live is identify.ts and table.ts.
// The checksum is no secret; it lets a scanner tell a token from noise, and a typo be refused without a look-up.
import { crypto, hash } from '../node-modules.ts';

export const ID_LENGTH = 12;
export const SECRET_LENGTH = 43;
const CHECKSUM_LENGTH = 6;
const PREFIX = 'gfk_';
const SECRET_START = PREFIX.length + ID_LENGTH + 1;
const CHECKSUM_START = SECRET_START + SECRET_LENGTH + 1;
const TOKEN_LENGTH = CHECKSUM_START + CHECKSUM_LENGTH;

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const SHAPE = /^gfk_[0-9A-Za-z]{12}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}$/;

export interface Token {
  readonly id: string;
  readonly secret: string;
  /** The whole, as a client sends it. */
  readonly token: string;
}

export type RandomBytes = (size: number) => Uint8Array;

/** A new token; with an `id`, a new secret under that id. 43 base62 characters hold 256 random bits. */
export function generateToken(random: RandomBytes = crypto().randomBytes, id = randomBase62(ID_LENGTH, random)): Token {
  const secret = randomBase62(SECRET_LENGTH, random);
  const body = `${PREFIX}${id}_${secret}_`;
  return { id, secret, token: body + checksumOf(body) };
}

/** The parts of a token whose shape and checksum are right, else `undefined`. */
export function parseToken(text: string): Pick<Token, 'id' | 'secret'> | undefined {
  return hasTokenShape(text) && hasTokenChecksum(text) ? partsOf(text) : undefined;
}

export function hasTokenShape(text: string): boolean {
  return text.length === TOKEN_LENGTH && SHAPE.test(text);
}

/** Of a text that has the shape: whether the checksum is that of all characters before it. Compared in place: it is done on every request. */
export function hasTokenChecksum(text: string): boolean {
  let rest = crc32(text, CHECKSUM_START);
  for (let i = TOKEN_LENGTH - 1; i >= CHECKSUM_START; i--) {
    if (text.charCodeAt(i) !== BASE62.charCodeAt(rest % 62)) return false;
    rest = Math.floor(rest / 62);
  }
  return true;
}

function partsOf(text: string): Pick<Token, 'id' | 'secret'> {
  return { id: text.slice(PREFIX.length, SECRET_START - 1), secret: text.slice(SECRET_START, CHECKSUM_START - 1) };
}

/** The `hash` column of a row. A plain digest is enough: the secret has 256 random bits, so there is nothing to guess. */
export function hashSecret(secret: string): string {
  return `sha256:${sha256(secret).toString('base64url')}`;
}

export function sha256(data: string | Buffer): Buffer {
  return Buffer.from(hash('sha256', data, 'latin1'), 'latin1');
}

const digest = Buffer.alloc(32);

/** The digest of a secret that was sent, to be compared at once: every call has the same Buffer, as a new one costs more than to fill it. */
export function digestOf(secret: string): Buffer {
  digest.write(hash('sha256', secret, 'latin1'), 'latin1');
  return digest;
}

// 248 = 4 * 62: a byte from 248 on is thrown away, else the first eight characters would come up more often.
function randomBase62(length: number, randomBytes: RandomBytes): string {
  let text = '';
  while (text.length < length) {
    for (const byte of randomBytes(length - text.length)) if (byte < 248) text += BASE62[byte % 62];
  }
  return text;
}

// zlib.crc32 came with Node 20.15 and 22.2; a table of our own runs on every Node 20.
const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc >>> 0;
});

/** CRC-32 (the one of zip and zlib) of the first `end` characters of an ASCII text. */
function crc32(ascii: string, end: number): number {
  let crc = 0xffffffff;
  for (let i = 0; i < end; i++) crc = (crc >>> 8) ^ (CRC_TABLE[(crc ^ ascii.charCodeAt(i)) & 0xff] as number);
  return (crc ^ 0xffffffff) >>> 0;
}

/** As six base62 characters. */
function checksumOf(ascii: string): string {
  let rest = crc32(ascii, ascii.length);
  let text = '';
  for (let i = 0; i < CHECKSUM_LENGTH; i++) {
    text = BASE62.charAt(rest % 62) + text;
    rest = Math.floor(rest / 62);
  }
  return text;
}
