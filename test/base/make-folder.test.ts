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

test('makes a folder and those above it, each with the mode, and leaves one that is there as it is', () => {
  makeFolder(join(root, 'a/b/c'), 0o700);
  for (const name of ['a', 'a/b', 'a/b/c']) assert.equal(statSync(join(root, name)).mode & 0o777, 0o700);
  chmodSync(join(root, 'a/b'), 0o750);
  makeFolder(join(root, 'a/b'), 0o700);
  assert.equal(statSync(join(root, 'a/b')).mode & 0o777, 0o750);
});

test('takes a link to a folder for one', () => {
  mkdirSync(join(root, 'real'));
  symlinkSync('real', join(root, 'link'));
  makeFolder(join(root, 'link'));
  makeFolder(join(root, 'link/inside'));
  assert.ok(statSync(join(root, 'real/inside')).isDirectory());
});

writeFileSync(join(root, 'file'), '');
symlinkSync('nowhere', join(root, 'dangling'));
for (const [what, path, reason] of [
  ['a file is', 'file', /^something else has this name$/],
  ['a file is above', 'file/inside', /^a part of the path is not a folder$/],
  ['a link leads nowhere', 'dangling/inside', /^something else has this name$/],
] as const) {
  test(`throws where ${what}`, () =>
    assert.throws(
      () => makeFolder(join(root, path)),
      (error) => reason.test(describeFailure(error)),
    ));
}

// In this case Node's recursive mkdir never returns.
test('throws where the system has no room for a folder', { skip: process.platform !== 'linux' }, () => {
  for (const path of ['/proc/gatefold', '/proc/gatefold/data']) {
    assert.throws(
      () => makeFolder(path),
      (error) => describeFailure(error) === 'no folder can be made in /proc',
    );
  }
});
