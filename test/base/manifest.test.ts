// The package.json that applies to a folder.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { foldersAbove, nearestManifest } from '../../src/base/manifest.ts';
import { createFolder } from '../support/folder.ts';

test('foldersAbove lists the folders above a path, up to the root', () => {
  assert.deepEqual([...foldersAbove('/a/b/c.ts')], ['/a/b', '/a', '/']);
  assert.deepEqual([...foldersAbove('/')], []);
});

test('the nearest package.json applies, also when it is broken', (t) => {
  const root = createFolder(t, {
    'package.json': '{"name":"outer"}',
    'a/b/c.txt': '',
    'own/package.json': '{"name":"own"}',
    'broken/package.json': '{"name":',
    'text/package.json': '"a"',
  });
  const of = (folder: string) => nearestManifest(join(root, folder));
  const outer = { path: join(root, 'package.json'), fields: { name: 'outer' } };
  assert.deepEqual(of('.'), outer);
  assert.deepEqual(of('a/b'), outer);
  assert.deepEqual(of('gone/deep'), outer);
  assert.deepEqual(of('own'), { path: join(root, 'own/package.json'), fields: { name: 'own' } });
  assert.deepEqual(of('broken'), { path: join(root, 'broken/package.json'), fields: {} });
  assert.equal(of('text')?.fields.name, undefined);
});
