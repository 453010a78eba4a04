// What a token looks like: `gfk_<id>_<secret>_<checksum>`. It makes one, takes one apart and hashes its secret for the table.
// It does not know the table: whether a token is live is identify.ts and table.ts.
// The checksum is no secret; it lets a scanner tell a token from noise, and a typo be refused without a look-up.
// Taking one apart is done on every request of an application, so it is plain loops over little data: a regular expression
// and a table of 256 entries cost several times as much where their code and data have left the processor's caches.
import { crypto, hash } from '../base/builtins.ts';

export const ID_LENGTH = 12;
export const SECRET_LENGTH = 43;
const CHECKSUM_LENGTH = 6;
const PREFIX = 'gfk_';
/** Where the two underscores between its parts are. */
const ID_END = PREFIX.length + ID_LENGTH;
const SECRET_END = ID_END + 1 + SECRET_LENGTH;
const TOKEN_LENGTH = SECRET_END + 1 + CHECKSUM_LENGTH;

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const CHECKSUM = /[0-9A-Za-z]{6}$/;
const UNDERSCORE = 0x5f;

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

/**
 * The parts of a token whose shape and checksum are right, else `undefined`.
 *
 * @param start where in the text it begins; it ends with the text
 */
export function parseToken(text: string, start = 0): Pick<Token, 'id' | 'secret'> | undefined {
  if (tokenFault(text, start) !== undefined) return undefined;
  return { id: text.slice(start + PREFIX.length, start + ID_END), secret: text.slice(start + ID_END + 1, start + SECRET_END) };
}

/** What is wrong with it: it is no token at all, or one with a typo. A right one takes one pass, and no copy. */
export function tokenFault(text: string, start = 0): 'shape' | 'checksum' | undefined {
  if (text.length - start !== TOKEN_LENGTH || !text.startsWith(PREFIX, start)) return 'shape';
  if (text.charCodeAt(start + ID_END) !== UNDERSCORE || text.charCodeAt(start + SECRET_END) !== UNDERSCORE) return 'shape';
  let crc = CRC_OF_PREFIX;
  let outside = 0;
  for (let i = PREFIX.length; i <= SECRET_END; i++) {
    const code = text.charCodeAt(start + i);
    const letter = code | 0x20;
    // Negative where it is neither from 0 to 9 nor, in either case, from a to z: no branch, for the processor could not foresee it.
    if (i !== ID_END && i !== SECRET_END) outside |= ((code - 0x30) | (0x39 - code)) & ((letter - 0x61) | (0x7a - letter));
    crc = addToCrc(crc, code);
  }
  if (outside < 0) return 'shape';
  let rest = ~crc >>> 0;
  for (let i = TOKEN_LENGTH - 1; i > SECRET_END; i--) {
    if (text.charCodeAt(start + i) !== BASE62.charCodeAt(rest % 62)) return CHECKSUM.test(text) ? 'checksum' : 'shape';
    rest = Math.floor(rest / 62);
  }
  return undefined;
}

/** The `hash` column of a row. A plain digest is enough: the secret has 256 random bits, so there is nothing to guess. */
export function hashSecret(secret: string): string {
  return `sha256:${sha256(secret).toString('base64url')}`;
}

export function sha256(data: string | Buffer): Buffer {
  return Buffer.from(hash('sha256', data, 'latin1'), 'latin1');
}

// 248 = 4 * 62: a byte from 248 on is thrown away, else the first eight characters would come up more often.
function randomBase62(length: number, randomBytes: RandomBytes): string {
  let text = '';
  while (text.length < length) {
    for (const byte of randomBytes(length - text.length)) if (byte < 248) text += BASE62[byte % 62];
  }
  return text;
}

// zlib.crc32 came with Node 20.15 and 22.2; half a byte at a time, a table of one cache line runs on every Node 20.
const CRC_TABLE = Int32Array.from({ length: 16 }, (_, half) => {
  let crc = half;
  for (let bit = 0; bit < 4; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc;
});

/** CRC-32 (the one of zip and zlib), before its last step, with one more character of ASCII. */
function addToCrc(crc: number, code: number): number {
  const half = ((crc ^ code) >>> 4) ^ (CRC_TABLE[(crc ^ code) & 0xf] as number);
  return (half >>> 4) ^ (CRC_TABLE[half & 0xf] as number);
}

function crcOf(ascii: string): number {
  let crc = -1;
  for (let i = 0; i < ascii.length; i++) crc = addToCrc(crc, ascii.charCodeAt(i));
  return crc;
}

const CRC_OF_PREFIX = crcOf(PREFIX);

/** As six base62 characters. */
function checksumOf(ascii: string): string {
  let rest = ~crcOf(ascii) >>> 0;
  let text = '';
  for (let i = 0; i < CHECKSUM_LENGTH; i++) {
    text = BASE62.charAt(rest % 62) + text;
    rest = Math.floor(rest / 62);
  }
  return text;
}
