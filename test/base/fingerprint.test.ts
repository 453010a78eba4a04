// fingerprint: which changes of a file count.
import assert from 'node:assert/strict';
import { linkSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { changeTime, fingerprint } from '../../src/base/fingerprint.ts';
import { createFolder } from '../support/folder.ts';

/** Does something to a file until its ctime is another one: file systems keep time in steps. */
async function changed(path: string, work: () => void): Promise<void> {
  for (const { ctimeMs } = statSync(path); statSync(path).ctimeMs === ctimeMs; await sleep(5)) work();
}

test('a file with several names has not changed when a name comes or goes', async (t) => {
  const dir = createFolder(t, { 'a.js': 'a' });
  const path = join(dir, 'a.js');
  linkSync(path, join(dir, 'second'));
  const before = fingerprint(path);
  await changed(path, () => {
    rmSync(join(dir, 'third'), { force: true });
    linkSync(path, join(dir, 'third'));
  });
  assert.equal(fingerprint(path), before);
  assert.equal(changeTime(statSync(path)), statSync(path).mtimeMs);
  await changed(path, () => rmSync(join(dir, 'third')));
  assert.equal(fingerprint(path), before);
  writeFileSync(path, 'longer');
  assert.notEqual(fingerprint(path), before);
});

test('a file with one name has changed when size and time are the same', async (t) => {
  const path = join(createFolder(t, { 'a.js': 'a' }), 'a.js');
  const { atime, mtime } = statSync(path);
  utimesSync(path, atime, mtime);
  const before = fingerprint(path);
  await changed(path, () => {
    writeFileSync(path, 'b');
    utimesSync(path, atime, mtime);
  });
  assert.notEqual(fingerprint(path), before);
});
