// The format of tokens and of session tokens, and the session key.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { crc32 } from 'node:zlib';
import { describeFailure } from '../../../src/base/failure.ts';
import {
  checkSessionToken,
  createSessionToken,
  deriveSessionKey,
  hasSessionShape,
  makeSessionKey,
  readSessionKey,
} from '../../../src/callers/credentials/session.ts';
import { parseSpan, parseTime } from '../../../src/callers/credentials/table/instant.ts';
import { generateToken, hashSecret, hasTokenShape, parseToken } from '../../../src/callers/credentials/token.ts';
import { createFolder } from '../../support/credentials-bench.ts';
import { LOADER, modulePath } from '../../support/own-modules.ts';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

test('generateToken returns gfk_ with id, secret and checksum in base62, which parseToken reads back', () => {
  for (let i = 0; i < 200; i++) {
    const { id, secret, token } = generateToken();
    assert.match(token, /^gfk_[0-9A-Za-z]{12}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}$/);
    assert.deepEqual(parseToken(token), { id, secret });
  }
});

test('generateToken keeps the id of a rotated token', () => {
  assert.match(generateToken(undefined, 'abcdefghijkl').token, /^gfk_abcdefghijkl_/);
});

test('generateToken drops random bytes that would favour some characters', () => {
  const bytes = [255, 248, 0, 61, 62, 247];
  let at = 0;
  const { id } = generateToken((size) => Uint8Array.from({ length: size }, () => bytes[at++ % bytes.length] as number));
  // 255 and 248 are dropped; 0, 61, 62, 247 are '0', 'z', '0', 'z'.
  assert.equal(id, '0z0z0z0z0z0z');
});

test('the checksum of a token is the CRC-32 of the characters before it, in base62', () => {
  const { token } = generateToken();
  let rest = crc32(token.slice(0, -6));
  let expected = '';
  for (let i = 0; i < 6; i++) {
    expected = BASE62.charAt(rest % 62) + expected;
    rest = Math.floor(rest / 62);
  }
  assert.equal(token.slice(-6), expected);
});

test('parseToken refuses every token with one character changed, dropped, doubled or swapped', () => {
  const { token } = generateToken();
  for (let i = 0; i < token.length; i++) {
    const other = token[i] === 'x' ? 'y' : 'x';
    const damaged = [
      token.slice(0, i) + other + token.slice(i + 1),
      token.slice(0, i) + token.slice(i + 1),
      token.slice(0, i) + token[i] + token.slice(i),
    ];
    if (token[i] !== token[i + 1] && i + 1 < token.length)
      damaged.push(token.slice(0, i) + token[i + 1] + token[i] + token.slice(i + 2));
    for (const text of damaged) assert.equal(parseToken(text), undefined, `position ${i}`);
  }
});

test('hasTokenShape accepts a token with a typo, and refuses other texts', () => {
  const { token } = generateToken();
  const typo = token.slice(0, -1) + (token.endsWith('0') ? '1' : '0');
  assert.deepEqual([hasTokenShape(token), hasTokenShape(typo)], [true, true]);
  const others = [
    `${token}\n`,
    '',
    // Characters just outside the three ranges, misplaced separators, and characters outside ASCII.
    ...[...'/:@[`{_\x7fé\u0130'].flatMap((odd) =>
      [4, 15, 16, 17, 30, 59, 60, 61, 66]
        .filter((at) => token[at] !== odd)
        .map((at) => `${token.slice(0, at)}${odd}${token.slice(at + 1)}`),
    ),
  ];
  for (const text of others)
    assert.deepEqual([hasTokenShape(text), parseToken(text)], [false, undefined], JSON.stringify(text));
});

test('hashSecret returns sha256: and the digest in base64url', () => {
  assert.equal(hashSecret('secret'), `sha256:${createHash('sha256').update('secret').digest('base64url')}`);
});

const KEY = deriveSessionKey('a key of thirty-two characters, at least');
const NOW = Date.parse('2026-11-21T12:00:00.700Z');

test('createSessionToken returns a token that names its row and is valid for exactly an hour', () => {
  const { token, expiresAt } = createSessionToken(KEY, 'abcdefghijkl', NOW);
  assert.equal(expiresAt, Math.floor(NOW / 1000) + 3600);
  assert.equal(hasSessionShape(token), true);
  const genuine = { rowId: 'abcdefghijkl', expiresAt: expiresAt * 1000 };
  assert.deepEqual(checkSessionToken(KEY, token, NOW), genuine);
  assert.deepEqual(checkSessionToken(KEY, token, expiresAt * 1000 - 1), genuine);
  assert.deepEqual(checkSessionToken(KEY, token, expiresAt * 1000), { reason: 'the session is over' });
});

test('checkSessionToken refuses a forged, respelled or damaged token, and a token of another key', () => {
  const { token } = createSessionToken(KEY, 'abcdefghijkl', NOW);
  const [head = '', mac = ''] = token.split('.');
  const forged = Buffer.from(JSON.stringify({ row: 'zzzzzzzzzzzz', iat: 0, exp: 9_999_999_999 })).toString('base64url');
  // The last character of a MAC holds four bits: three other characters decode to the same bytes.
  const twins = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_']
    .map((char) => mac.slice(0, -1) + char)
    .filter((text) => text !== mac && Buffer.from(text, 'base64url').equals(Buffer.from(mac, 'base64url')));
  assert.equal(twins.length, 3);
  const rows: [string, string][] = [
    ['other claims', `gfs_${forged}.${mac}`],
    ['no MAC', `${head}.`],
    ['a MAC of zeros', `${head}.${'A'.repeat(43)}`],
    ['padding', `${token}=`],
    ['a line feed', `${token}\n`],
    ['standard base64', token.replaceAll('-', '+').replaceAll('_', '/')],
    ['prefix in capitals', token.replace('gfs', 'GFS')],
    ['a second part', `${token}.${mac}`],
    ['5,000 characters', `gfs_${'a'.repeat(5000)}.${mac}`],
    ...twins.map((text): [string, string] => ['another spelling of the MAC', `${head}.${text}`]),
  ];
  for (const [name, text] of rows) assert.ok('reason' in checkSessionToken(KEY, text, NOW), name);
  assert.ok('reason' in checkSessionToken(deriveSessionKey('another key of thirty-two characters'), token, NOW));
});

test('makeSessionKey creates one file of mode 0600 for concurrent processes', async (t) => {
  const folder = createFolder(t);
  const module = modulePath('src/callers/credentials/session');
  const script = `const { makeSessionKey } = await import(${JSON.stringify(module)}); process.stdout.write(makeSessionKey(${JSON.stringify(folder)}));`;
  const outputs = await Promise.all(
    Array.from({ length: 5 }, async () => {
      const child = spawn(process.execPath, [...LOADER, '--input-type=module', '-e', script], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const chunks: Buffer[] = [];
      child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
      await once(child, 'close');
      return Buffer.concat(chunks).toString();
    }),
  );
  assert.equal(new Set(outputs).size, 1);
  assert.match(outputs[0] as string, /^[A-Za-z0-9_-]{43}$/);
  assert.equal(makeSessionKey(folder), outputs[0]);
  assert.equal(statSync(join(folder, 'session.key')).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(folder), ['session.key']);
});

test('readSessionKey accepts a key of 32 characters, and refuses a short or unreadable key with one line', (t) => {
  const folder = createFolder(t);
  const path = join(folder, 'session.key');
  assert.equal(readSessionKey(folder), undefined);
  writeFileSync(path, `${'k'.repeat(32)}\r\n`);
  assert.equal(readSessionKey(folder), 'k'.repeat(32));
  writeFileSync(path, 'k'.repeat(31));
  assert.throws(() => readSessionKey(folder), {
    message: `Cannot use ${path}: it has 31 characters, a key has 32 or more; remove it to have one made`,
  });
  assert.throws(() => makeSessionKey(folder), /it has 31 characters/);
  assert.equal(readFileSync(path, 'utf8'), 'k'.repeat(31));
  assert.throws(() => readSessionKey(path), {
    message: `Cannot read ${path}/session.key: a part of the path is not a folder`,
  });
  rmSync(path);
  assert.equal(spawnSync('mkfifo', [path]).status, 0);
  assert.throws(() => readSessionKey(folder), { message: `Cannot read ${path}: it is not a regular file` });
  assert.throws(() => makeSessionKey(join(folder, 'none')), {
    message: `Cannot make ${folder}/none/session.key: it does not exist`,
  });
});

test('readSessionKey reports a file without read permission', {
  skip: process.getuid?.() === 0 && 'root may read everything',
}, (t) => {
  const folder = createFolder(t);
  writeFileSync(join(folder, 'session.key'), 'k'.repeat(43));
  chmodSync(join(folder, 'session.key'), 0);
  assert.throws(() => readSessionKey(folder), /: permission denied$/);
});

test('parseTime accepts only ISO 8601 in UTC', () => {
  const good: [string, string][] = [
    ['2030-01-31', '2030-01-31T00:00:00.000Z'],
    ['2030-01-31T12:00Z', '2030-01-31T12:00:00.000Z'],
    ['2030-01-31T12:00:01Z', '2030-01-31T12:00:01.000Z'],
    ['2030-01-31T12:00:01.123456789Z', '2030-01-31T12:00:01.123Z'],
    ['2028-02-29', '2028-02-29T00:00:00.000Z'],
  ];
  for (const [text, iso] of good) assert.equal(parseTime(text), Date.parse(iso), text);
  const bad = [
    '',
    'soon',
    '2030',
    '2030-1-1',
    '2030-02-30',
    '2027-02-29',
    '2030-13-01',
    '2030-01-31T12:00:00',
    '2030-01-31T12:00:00+02:00',
  ];
  for (const text of [
    ...bad,
    '2030-01-31T24:00:00Z',
    '2030-01-31T25:00:00Z',
    ' 2030-01-31',
    '2030-01-31\n',
    '+010000-01-01T00:00:00Z',
  ]) {
    assert.equal(parseTime(text), undefined, JSON.stringify(text));
  }
});

test('parseSpan accepts seconds, minutes, hours, days and weeks up to a century', () => {
  const rows: [string, number | undefined][] = [
    ['45s', 45_000],
    ['30m', 1_800_000],
    ['12h', 43_200_000],
    ['90d', 7_776_000_000],
    ['2w', 1_209_600_000],
    ['36525d', 3_155_760_000_000],
    ['36526d', undefined],
    ['0d', undefined],
    ['-1d', undefined],
    ['1.5d', undefined],
    ['1y', undefined],
    ['d', undefined],
    ['90', undefined],
    ['90D', undefined],
  ];
  for (const [text, span] of rows) assert.equal(parseSpan(text), span, text);
});

/** Returns an error as Node makes it for a number of the kernel: it has no name for -116, which is ESTALE. */
function systemError(errno: number): Error {
  return Object.assign(new Error('x'), { errno, code: `Unknown system error ${errno}` });
}

test('describeFailure returns one line for any thrown value', () => {
  const rows: [unknown, string][] = [
    [Object.assign(new Error('x'), { code: 'ENOSPC' }), 'no space is left on the disk'],
    [Object.assign(new Error('x'), { code: 'EDQUOT' }), 'the disk quota is used up'],
    [Object.assign(new Error('x'), { code: 'EMFILE' }), 'too many files are open'],
    [Object.assign(new Error('x'), { code: 'EPERM' }), 'not permitted'],
    [systemError(-116), 'its network disk was replaced: mount it again'],
    [Object.assign(new Error('x'), { code: 'EXOTIC' }), 'EXOTIC'],
    [Object.assign(new Error('x'), { code: 5 }), 'x'],
    [new Error('first\nsecond'), 'first'],
    [Object.assign(new Error('Use --allow-fs-write\nnow'), { code: 'ERR_ACCESS_DENIED' }), 'Use --allow-fs-write'],
    ['text', 'an unknown failure'],
  ];
  for (const [thrown, text] of rows) assert.equal(describeFailure(thrown), text);
  for (const code of 'EACCES ENOENT ENOTDIR EEXIST EISDIR ELOOP EROFS EADDRINUSE EADDRNOTAVAIL EFBIG'.split(' '))
    assert.match(describeFailure(Object.assign(new Error('x'), { code })), /^[a-z].*[a-z]{3}$/, code);
});
