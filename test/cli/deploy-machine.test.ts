// The part of `gatefold deploy` that runs on the machine, without ssh: which files are removed and which are kept.
import assert from 'node:assert/strict';
import { readdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pruneCopies, removeRelease } from '../../src/cli/deploy/folders.ts';
import { createFolder } from '../support/folder.ts';

test('pruneCopies removes old copies of Gatefold and keeps each copy in use', (t) => {
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

test('an interrupted removal does not stop a later removal of the same name', (t) => {
  const dir = createFolder(t, {
    'runtime/0.1.0/package.json': '{}',
    'runtime/0.1.0.gone/dist/cli.js': '',
    'releases/20200101T000000000Z/a.js': '',
    'releases/.20200101T000000000Z.gone/a.js': '',
  });
  utimesSync(join(dir, 'runtime/0.1.0'), 0, 0);
  removeRelease(dir, '20200101T000000000Z');
  pruneCopies(dir, join(dir, 'runtime/0.2.0'));
  assert.deepEqual([readdirSync(join(dir, 'runtime')), readdirSync(join(dir, 'releases'))], [[], []]);
});

test('pruneCopies keeps every copy of Gatefold while a release has no valid note of its copy', (t) => {
  const note = 'releases/20200101T000000000Z/.gatefold-release.json';
  for (const text of ['{', 'null', '{"before":null}', undefined]) {
    const dir = createFolder(t, { 'runtime/0.1.0/package.json': '{}', 'releases/20200101T000000000Z/a.js': '' });
    if (text !== undefined) writeFileSync(join(dir, note), text);
    utimesSync(join(dir, 'runtime/0.1.0'), 0, 0);
    pruneCopies(dir, join(dir, 'runtime/0.2.0'));
    assert.deepEqual(readdirSync(join(dir, 'runtime')), ['0.1.0'], `note: ${text}`);
  }
});
