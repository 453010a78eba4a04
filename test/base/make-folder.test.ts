// Makes a folder with its missing parents, or fails with an error when the disk has no room.
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { describeFailure } from '../../src/base/failure.ts';
import { makeFolder } from '../../src/base/make-folder.ts';

const root = mkdtempSync(join(tmpdir(), 'gatefold-'));
test.after(() => rmSync(root, { recursive: true, force: true }));

test('makeFolder creates a folder and its parents with the mode, and keeps the mode of an existing folder', () => {
  makeFolder(join(root, 'a/b/c'), 0o700);
  for (const name of ['a', 'a/b', 'a/b/c']) assert.equal(statSync(join(root, name)).mode & 0o777, 0o700);
  chmodSync(join(root, 'a/b'), 0o750);
  makeFolder(join(root, 'a/b'), 0o700);
  assert.equal(statSync(join(root, 'a/b')).mode & 0o777, 0o750);
});

test('makeFolder accepts a link to a folder as a folder', () => {
  mkdirSync(join(root, 'real'));
  symlinkSync('real', join(root, 'link'));
  makeFolder(join(root, 'link'));
  makeFolder(join(root, 'link/inside'));
  assert.ok(statSync(join(root, 'real/inside')).isDirectory());
});

writeFileSync(join(root, 'file'), '');
symlinkSync('nowhere', join(root, 'dangling'));
for (const [what, path, reason] of [
  ['a file has the name', 'file', /^something else has this name$/],
  ['a parent is a file', 'file/inside', /^a part of the path is not a folder$/],
  ['a parent is a link without a target', 'dangling/inside', /^something else has this name$/],
] as const) {
  test(`makeFolder throws where ${what}`, () =>
    assert.throws(
      () => makeFolder(join(root, path)),
      (error) => reason.test(describeFailure(error)),
    ));
}

// In this case Node's recursive mkdir never returns.
test('makeFolder throws where the file system refuses a new folder', { skip: process.platform !== 'linux' }, () => {
  for (const path of ['/proc/gatefold', '/proc/gatefold/data']) {
    assert.throws(
      () => makeFolder(path),
      (error) => describeFailure(error) === 'no folder can be made in /proc',
    );
  }
});
