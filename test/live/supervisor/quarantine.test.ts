// Files that ended or hung their process are skipped until a file changes.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { takeSnapshot } from '../../../src/live/folder/snapshot.ts';
import { createQuarantine } from '../../../src/live/supervisor/quarantine.ts';
import { createFolder, write } from '../../support/folder.ts';

describe('createQuarantine', () => {
  it('keeps a file until the file itself changes', (test) => {
    const dir = createFolder(test, { 'AController.js': '1', 'lib.js': '1' });
    const look = () => takeSnapshot({ dir, paths: [], wholeTree: true }) ?? new Map();
    const quarantine = createQuarantine(dir);
    quarantine.add('AController.js', 'it hangs', look());
    assert.deepEqual([...quarantine.releaseChanged()], [['AController.js', 'it hangs']]);
    assert.equal(quarantine.hasRetryable(look()), false);
    write(dir, 'lib.js', '22');
    assert.equal(quarantine.hasRetryable(look()), true);
    write(dir, 'AController.js', '22');
    assert.equal(quarantine.releaseChanged().size, 0);
  });
});
