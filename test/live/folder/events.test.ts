// File events start the next poll of the folder earlier. They are tested on Linux.
import assert from 'node:assert/strict';
import { mkdirSync, renameSync, rmSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, mock, type TestContext } from 'node:test';
import { fingerprint } from '../../../src/base/fingerprint.ts';
import { createLog } from '../../../src/base/log.ts';
import { createFolderEvents } from '../../../src/live/folder/events.ts';
import { createFolderWatch } from '../../../src/live/folder/watch.ts';
import { createFolder } from '../../support/folder.ts';

const skip = process.platform === 'linux' ? false : 'file events differ on other systems';

function followed(test: TestContext) {
  const dir = createFolder(test, { 'AController.js': '1' });
  let wake = () => {};
  let count = 0;
  const events = createFolderEvents(() => {
    count++;
    wake();
  });
  // Watching a folder keeps no process alive.
  const alive = setInterval(() => {}, 1000);
  test.after(() => {
    clearInterval(alive);
    events.close();
  });
  return { dir, events, count: () => count, event: () => new Promise<void>((resolve) => (wake = resolve)) };
}

describe('createFolderEvents', { skip }, () => {
  it('reports a code file written in place, but not a data file', async (test) => {
    const { dir, events, count, event } = followed(test);
    assert.equal(events.follow(new Set([dir])), true);
    // This watcher was created later than the service's, so it gets the event later.
    const data = new Promise<void>((resolve) => {
      const watcher = watch(dir, (_, name) => name === 'data.sqlite' && resolve());
      test.after(() => watcher.close());
    });
    writeFileSync(join(dir, 'data.sqlite'), '1');
    await data;
    assert.equal(count(), 0);
    const told = event();
    writeFileSync(join(dir, 'AController.js'), '22');
    await told;
  });

  it('returns whether a folder is new or has replaced another folder', (test) => {
    const { dir, events } = followed(test);
    assert.equal(events.follow(new Set([dir])), true);
    assert.equal(events.follow(new Set([dir])), false);
    mkdirSync(`${dir}-next`);
    test.after(() => rmSync(`${dir}-old`, { recursive: true, force: true }));
    renameSync(dir, `${dir}-old`);
    renameSync(`${dir}-next`, dir);
    assert.equal(events.follow(new Set([dir])), true);
  });

  it('follows a folder that was created again, even with the same inode number', (test) => {
    const { dir, events } = followed(test);
    const lib = join(dir, 'lib');
    for (let round = 0; round < 20; round++) {
      mkdirSync(lib);
      assert.equal(events.follow(new Set([lib])), true);
      rmSync(lib, { recursive: true });
    }
  });

  it('does without events of a missing folder, and of more folders than the limit', async (test) => {
    const { dir, events, count, event } = followed(test);
    const folders = new Set(Array.from({ length: 1001 }, (_, i) => `${dir}${'/.'.repeat(i)}`)).add(join(dir, 'absent'));
    assert.equal(events.follow(folders), true);
    assert.equal(events.follow(folders), false);
    const told = event();
    rmSync(join(dir, 'AController.js'));
    await told;
    await new Promise(setImmediate);
    assert.equal(count(), 1000);
  });
});

describe('createFolderWatch with events', { skip }, () => {
  it('polls soon after an event, and not before', { timeout: 60_000 }, async (test) => {
    mock.timers.enable({ apis: ['setTimeout'] });
    test.after(() => mock.timers.reset());
    const dir = createFolder(test, { 'AController.js': '1' });
    const path = join(dir, 'AController.js');
    const log = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });
    const changes: string[] = [];
    let time = 0;
    let polls = 0;
    const now = () => {
      polls++;
      return time;
    };
    const pass = (milliseconds: number) => {
      const before = polls;
      time += milliseconds;
      mock.timers.tick(milliseconds);
      return polls > before;
    };
    const folderWatch = createFolderWatch({ dir, log, onChange: (what) => changes.push(what), now });
    test.after(() => folderWatch.stop());
    const snapshot = folderWatch.takeSnapshot() ?? new Map();
    const groups = [{ group: 'A', file: 'AController.js', ok: true }];
    const files = [{ path, fingerprint: fingerprint(path) }];
    folderWatch.endLoad({ snapshot, begunAt: Date.now(), groups, files, broken: false });
    folderWatch.start();
    // The first poll finds the folder, and the second one comes soon, for the changes before the folder was followed.
    assert.deepEqual([pass(20), pass(20), pass(399)], [true, true, false]);
    // This watcher was created later than the service's, so it gets the event later.
    const seen = new Promise<void>((resolve) => {
      const watcher = watch(dir, () => resolve());
      test.after(() => watcher.close());
    });
    writeFileSync(path, '22');
    await seen;
    assert.deepEqual([pass(20), pass(40)], [true, true]);
    assert.deepEqual(changes, [path]);
  });
});
