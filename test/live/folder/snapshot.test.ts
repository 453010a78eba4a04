// Snapshots of the folder: their content, and the differences between two of them.
import assert from 'node:assert/strict';
import { realpathSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { ABSENT, firstDifference, takeSnapshot } from '../../../src/live/folder/snapshot.ts';
import { createFolder } from '../../support/folder.ts';

describe('takeSnapshot', () => {
  it('is undefined for a missing folder', () => {
    assert.equal(takeSnapshot({ dir: '/nowhere/at/all', paths: [], wholeTree: true }), undefined);
  });

  it('contains link targets, absent paths and code files, but no packages or data files', (test) => {
    const dir = createFolder(test, {
      'AController.js': '',
      'lib/a.js': '',
      'lib/data.db': '',
      'node_modules/p/index.js': '',
      '.git/x.js': '',
    });
    symlinkSync('lib/a.js', join(dir, 'link.js'));
    symlinkSync('nowhere', join(dir, 'dangling.js'));
    const seen = takeSnapshot({ dir, paths: [join(dir, 'missing.js')], wholeTree: true });
    assert.equal(seen?.get('folder'), realpathSync(dir));
    assert.equal(seen?.get('group:A'), 'AController.js');
    assert.equal(seen?.get(`link:${join(dir, 'link.js')}`), join(dir, 'lib/a.js'));
    assert.equal(seen?.get(`link:${join(dir, 'dangling.js')}`), ABSENT);
    assert.equal(seen?.get(`file:${join(dir, 'missing.js')}`), ABSENT);
    const names = [...(seen ?? new Map()).keys()].join('\n');
    assert.match(names, /file:\S+lib\/a\.js/);
    assert.doesNotMatch(names, /data\.db|node_modules|\.git/);
  });

  it('contains the code files of 16 levels of subfolders', (test) => {
    const [last, beyond] = [`${'a/'.repeat(16)}last.js`, `${'a/'.repeat(17)}beyond.js`];
    const dir = createFolder(test, { [last]: '', [beyond]: '' });
    const names = [...(takeSnapshot({ dir, paths: [], wholeTree: true })?.keys() ?? [])].join('\n');
    assert.ok(names.includes(last));
    assert.ok(!names.includes(beyond));
  });

  it('firstDifference returns the key that changed, and a new key only with `exact`', () => {
    const before = new Map([['file:/a', '1']]);
    assert.equal(firstDifference(before, new Map([['file:/a', '2']]), false), 'file:/a');
    assert.equal(firstDifference(before, new Map(), false), 'file:/a');
    const more = new Map([...before, ['file:/b', '1']]);
    assert.equal(firstDifference(before, more, false), undefined);
    assert.equal(firstDifference(before, more, true), 'file:/b');
  });
});
