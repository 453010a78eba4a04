// A file that is written as a whole: its mode, its sync to disk, its draft.
import assert from 'node:assert/strict';
import fs, { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { writeNewFile, writeWholeFile } from '../../src/base/whole-file.ts';

function createFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatefold-whole-file-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test('a file gets the mode of the options, also when it or a left draft has another mode', (t) => {
  const folder = createFolder(t);
  const path = join(folder, 'a');
  const draft = join(folder, `.a.${process.pid}.tmp`);
  for (const mode of [0o600, 0o640]) {
    writeFileSync(draft, 'a longer text of a killed process', { mode: 0o644 });
    writeWholeFile(path, 'text', mode === 0o600 ? {} : { mode });
    assert.equal(readFileSync(path, 'utf8'), 'text');
    assert.equal(statSync(path).mode & 0o777, mode);
    assert.deepEqual(readdirSync(folder), ['a']);
  }
});

test('a durable file is synced before the rename, and its folder after it; another file is not synced', (t) => {
  const folder = createFolder(t);
  const path = join(folder, 'a');
  const { fsyncSync: sync } = fs;
  const seen: string[] = [];
  const handles: number[] = [];
  t.mock.method(fs, 'fsyncSync', (handle: number) => {
    handles.push(handle);
    const what = fs.fstatSync(handle).isDirectory() ? 'folder' : 'file';
    seen.push(`${what}: ${readdirSync(folder).includes('a') ? 'renamed' : 'draft'}`);
    sync(handle);
  });
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  writeWholeFile(path, 'text');
  assert.deepEqual(seen, ['file: draft', 'folder: renamed']);
  for (const handle of handles) assert.throws(() => fs.fstatSync(handle), { code: 'EBADF' }, 'a handle is still open');
  writeWholeFile(path, 'next', { isDurable: false });
  assert.equal(seen.length, 2);
  writeNewFile(join(folder, 'b'), 'text');
  assert.deepEqual(seen.slice(2), ['file: renamed']);
});

test('a write that fails throws the error of the system, and leaves no draft', (t) => {
  const folder = createFolder(t);
  mkdirSync(join(folder, 'taken'));
  assert.throws(() => writeWholeFile(join(folder, 'taken'), 'text'), { code: 'EISDIR' });
  assert.throws(() => writeWholeFile(join(folder, 'missing/a'), 'text'), { code: 'ENOENT' });
  writeFileSync(join(folder, 'file'), 'old');
  assert.throws(() => writeWholeFile(join(folder, 'file/a'), 'text'), { code: 'ENOTDIR' });
  assert.throws(() => writeNewFile(join(folder, 'file'), 'text'), { code: 'EEXIST' });
  assert.equal(readFileSync(join(folder, 'file'), 'utf8'), 'old');
  assert.deepEqual(readdirSync(folder).sort(), ['file', 'taken']);
});

test('a new file that could not be filled, as on a full disk, is removed', (t) => {
  const path = join(createFolder(t), 'a');
  const full = Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' });
  t.mock.method(fs, 'writeFileSync', () => {
    throw full;
  });
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  assert.throws(() => writeNewFile(path, 'text'), full);
  assert.equal(fs.existsSync(path), false);
});
