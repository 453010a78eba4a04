// `gatefold deploy` on the machine that it deploys to, without ssh: what goes and what stays.
import assert from 'node:assert/strict';
import { readdirSync, symlinkSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pruneCopies } from '../../src/cli/deploy/folders.ts';
import { createFolder } from '../support/folder.ts';

test('an old Gatefold goes, but none that is in use', (t) => {
  const names = ['released', 'next', 'running', 'unused', 'half.part7', 'left.gone'];
  const dir = createFolder(t, {
    ...Object.fromEntries([...names, 'young'].map((name) => [`runtime/${name}/package.json`, '{}'])),
    'releases/20200101T000000000Z/.gatefold-release.json': '{"before":null,"runtime":"released","packages":""}',
    'current/node_modules/tsx/package.json': '{}',
  });
  const runtime = join(dir, 'runtime');
  symlinkSync('next', join(runtime, 'current'));
  symlinkSync('../current/node_modules', join(runtime, 'node_modules'));
  for (const name of names) utimesSync(join(runtime, name), 0, 0);
  pruneCopies(dir, join(runtime, 'running'));
  assert.deepEqual(readdirSync(runtime).sort(), ['current', 'next', 'node_modules', 'released', 'running', 'young']);
  assert.deepEqual(readdirSync(join(dir, 'current/node_modules')), ['tsx']);
});
