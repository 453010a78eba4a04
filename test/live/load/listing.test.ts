// The listing of the process that serves, on a disk with coarse times.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { createListing } from '../../../src/live/load/listing.ts';
import { createFolder, write } from '../../support/folder.ts';
import { createMemoryLog } from '../../support/memory-log.ts';

test('a file that comes 1.9 s after another one is listed where the times of a disk are two seconds', async (t) => {
  const dir = createFolder(t, { 'FirstController.mjs': '' });
  const { statSync } = fs;
  const now = t.mock.method(performance, 'now', () => 0);
  t.mock.method(fs, 'statSync', (...args: Parameters<typeof statSync>) =>
    Object.assign(statSync(...args) ?? {}, { mtimeMs: 2000, ctimeMs: 2000 }),
  );
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  const list = createListing(dir, createMemoryLog().log);
  assert.deepEqual([...list().keys()], ['First']);
  await turn();
  write(dir, 'SecondController.mjs', '');
  now.mock.mockImplementation(() => 1900);
  assert.deepEqual([...list().keys()].sort(), ['First', 'Second']);
});
