// The files that are read as source, and the messages for all others.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { checkSource, readSource } from '../../src/base/source-file.ts';

const root = mkdtempSync(join(tmpdir(), 'gatefold-'));
test.after(() => rmSync(root, { recursive: true, force: true }));
mkdirSync(join(root, 'node_modules/x'), { recursive: true });
const LIMIT = 4 * 1024 * 1024;

for (const [name, size] of [
  ['empty.ts', 0],
  ['large.ts', LIMIT],
  ['cities.json', LIMIT + 1],
  ['node_modules/x/bundle.js', LIMIT + 1],
] as const) {
  test(`readSource reads ${name} of ${size} bytes`, () => {
    const path = join(root, name);
    writeFileSync(path, '');
    truncateSync(path, size);
    checkSource(path);
    assert.equal(readSource(path).length, size);
  });
}

const TOO_LARGE =
  /many\.\w+ has 4,194,305 bytes and is not read: a source file may have 4,194,304; split it, or make a package of it$/;

const rows: Record<string, readonly [make: (path: string) => void, reason: RegExp]> = {
  'many.ts': [tooLarge, TOO_LARGE],
  'many.mjs': [tooLarge, TOO_LARGE],
  'many.cjs': [tooLarge, TOO_LARGE],
  'many.js': [tooLarge, TOO_LARGE],
  'pipe.ts': [
    (path) => execFileSync('mkfifo', [path]),
    /pipe\.ts is a named pipe and is not read: put a file in its place$/,
  ],
  'link.ts': [(path) => symlinkSync('pipe.ts', path), /link\.ts is a named pipe/],
  'zeros.ts': [(path) => symlinkSync('/dev/zero', path), /zeros\.ts is a device/],
  'folder.ts': [(path) => mkdirSync(path), /folder\.ts is a folder/],
};
for (const [name, [make, reason]] of Object.entries(rows)) {
  test(`checkSource and readSource refuse ${name}`, () => {
    const path = join(root, name);
    make(path);
    assert.throws(() => checkSource(path), reason);
    assert.throws(() => readSource(path), reason);
  });
}

test('readSource refuses a socket', async () => {
  const path = join(root, 'socket.ts');
  const server = createServer();
  await new Promise<void>((listening) => server.listen(path, listening));
  assert.throws(() => readSource(path), /socket\.ts is a socket/);
  server.close();
});

test('checkSource accepts a missing file, for which readSource throws ENOENT', () => {
  checkSource(join(root, 'absent.ts'));
  assert.throws(() => readSource(join(root, 'absent.ts')), { code: 'ENOENT' });
});

function tooLarge(path: string): void {
  writeFileSync(path, '');
  truncateSync(path, LIMIT + 1);
}
