// fingerprint: which changes of a file count.
import assert from 'node:assert/strict';
import { linkSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fingerprint } from '../../src/base/fingerprint.ts';
import { createFolder } from '../support/folder.ts';

for (const names of [1, 2])
  test(`fingerprint changes after a write that keeps size and mtime (hard links: ${names})`, async (t) => {
    const path = join(createFolder(t, { 'a.js': 'a' }), 'a.js');
    if (names === 2) linkSync(path, `${path}.second`);
    const { atime, mtime } = statSync(path);
    utimesSync(path, atime, mtime);
    const before = fingerprint(path);
    // File systems keep time in steps.
    for (const { ctimeMs } = statSync(path); statSync(path).ctimeMs === ctimeMs; await sleep(5)) {
      writeFileSync(path, 'b');
      utimesSync(path, atime, mtime);
    }
    assert.notEqual(fingerprint(path), before);
  });
