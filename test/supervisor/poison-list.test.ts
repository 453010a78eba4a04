// Files that ended or hung their process are left out until something changes.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { takeSnapshot } from '../../src/supervisor/folder/snapshot.ts';
import { createPoisonList } from '../../src/supervisor/poison-list.ts';
import { createFolder, write } from '../support/folder.ts';

describe('createPoisonList', () => {
  it('holds a file for as long as it stays as it was', (test) => {
    const dir = createFolder(test, { 'AController.js': '1', 'lib.js': '1' });
    const look = () => takeSnapshot({ dir, paths: [], wholeTree: true }) ?? new Map();
    const poison = createPoisonList(dir);
    poison.add('AController.js', 'it hangs', look());
    assert.deepEqual([...poison.active()], [['AController.js', 'it hangs']]);
    assert.equal(poison.suspect(look()), undefined);
    write(dir, 'lib.js', '22');
    assert.equal(poison.suspect(look()), 'AController.js');
    write(dir, 'AController.js', '22');
    assert.equal(poison.active().size, 0);
  });
});
