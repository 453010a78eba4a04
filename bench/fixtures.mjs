// Creates the files that the servers read: folders of controllers, and tables of credentials with their tokens. The
// temporary folder is removed when the process ends.
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

export const scratch = mkdtempSync(join(tmpdir(), 'gatefold-bench-'));
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }));

export const controllers = fileURLToPath(new URL('./fixtures/controllers', import.meta.url));

export const typedControllers = fileURLToPath(new URL('./fixtures/typed', import.meta.url));

/** @type {Map<number, string>} */
const groupFolders = new Map();

/**
 * Returns a folder with the groups of `groupNames(count)`.
 *
 * @param {number} count
 */
export function groupFolder(count) {
  return once(groupFolders, count, () => {
    const folder = join(scratch, `groups-${count}`);
    mkdirSync(folder);
    copyFileSync(join(controllers, 'TestController.js'), join(folder, 'TestController.mjs'));
    for (const name of groupNames(count).slice(1)) {
      writeFileSync(
        join(folder, `${name.toUpperCase()}Controller.mjs`),
        `export default class {\n  index() {\n    return { status: 'success', message: 'Hello', timestamp: Math.floor(Date.now() / 1000), greeting: 'Hello, world' };\n  }\n}\n`,
      );
    }
    return folder;
  });
}

/** @param {number} count */
export function groupNames(count) {
  return ['test', ...Array.from({ length: count - 1 }, (_, i) => `g${i + 1}`)];
}

/** @typedef {{ folder: string, tokens: string[] }} Credentials */
/** @type {Map<number, Credentials>} */
const tables = new Map();

/**
 * Returns a data folder whose table has `rows` rows, with the tokens of all rows.
 *
 * @param {number} rows
 * @returns {Credentials}
 */
export function credentials(rows) {
  return once(tables, rows, () => {
    const folder = join(scratch, `data-${rows}`);
    mkdirSync(folder);
    const made = Array.from({ length: rows }, (_, i) => credential(i));
    writeFileSync(join(folder, 'production.json'), JSON.stringify({ production: made.map(({ row }) => row) }), {
      mode: 0o600,
    });
    writeFileSync(join(folder, 'identity-providers.json'), '[]');
    return { folder, tokens: made.map(({ token }) => token) };
  });
}

/** @type {Map<string, Record<string, string>>} */
const pairs = new Map();

/** Creates a certificate with a P-256 key, the default of Let's Encrypt, by openssl. Returns it as settings. */
export function tlsSettings() {
  return once(pairs, 'localhost', () => {
    const [cert, key] = ['cert.pem', 'key.pem'].map((name) => join(scratch, name));
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
    execFileSync(
      'openssl',
      ['req', '-x509', ...curve, '-keyout', key, '-out', cert, '-days', '2', '-subj', '/CN=localhost'],
      {
        stdio: 'ignore',
      },
    );
    return { TLS_CERT: cert, TLS_KEY: key };
  });
}

/** @param {number} number */
function credential(number) {
  const id = randomBase62(12);
  const secret = randomBase62(43);
  const head = `gfk_${id}_${secret}_`;
  const hash = `sha256:${createHash('sha256').update(secret).digest('base64url')}`;
  const row = { id, name: `bench-${number}`, hash, created_at: '2026-01-01T00:00:00Z' };
  return { token: head + base62(crc32(head)).padStart(6, '0'), row };
}

/** A well-formed token with an id that no table has. */
export function madeUpToken() {
  return credential(0).token;
}

/**
 * Returns random text. 256 is not a multiple of 62, so some letters are slightly more likely.
 *
 * @param {number} length
 */
function randomBase62(length) {
  return Array.from(randomBytes(length), (byte) => BASE62[byte % 62]).join('');
}

/** @param {number} value */
function base62(value) {
  let text = '';
  for (let rest = value; rest > 0; rest = Math.floor(rest / 62)) text = BASE62[rest % 62] + text;
  return text;
}

/** Computes zlib's CRC-32. node:zlib has it only from Node 20.15 on. @param {string} text */
function crc32(text) {
  let crc = 0xffffffff;
  for (const byte of Buffer.from(text)) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}

/**
 * @template K, V
 * @param {Map<K, V>} made
 * @param {K} key
 * @param {() => V} make
 * @returns {V}
 */
function once(made, key, make) {
  const known = made.get(key);
  if (known !== undefined) return known;
  const value = make();
  made.set(key, value);
  return value;
}
