// The name, version and description of a service in its document.
import assert from 'node:assert/strict';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { readServiceInfo } from '../../src/documents/service-info.ts';
import { createFolder } from '../support/folder.ts';

test('a service has the facts of its package.json, and defaults for those that are blank or no text', (t) => {
  const rows: [manifest: object, title: string | undefined, version: string, description: string | undefined][] = [
    [{ name: 'shop', version: '1.2.3', description: 'Sells.' }, 'shop', '1.2.3', 'Sells.'],
    [{}, undefined, '0.0.0', undefined],
    [{ name: ' ', version: '', description: '\t' }, undefined, '0.0.0', undefined],
    [{ name: 7, version: null, description: ['a'] }, undefined, '0.0.0', undefined],
  ];
  for (const [manifest, title, version, description] of rows) {
    const root = createFolder(t, { 'package.json': JSON.stringify(manifest) });
    const info = { title: title ?? basename(root), version, description };
    assert.deepEqual(readServiceInfo(join(root, 'controllers')), info, JSON.stringify(manifest));
  }
  assert.equal(readServiceInfo('/controllers').title, 'API');
});
