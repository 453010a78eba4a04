// File events start the next poll of the folder earlier, on systems where they are reliable. That is only Linux.
import assert from 'node:assert/strict';
import { mkdirSync, renameSync, rmSync, statSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { fingerprint } from '../../src/base/fingerprint.ts';
import { createLog } from '../../src/base/log.ts';
import { createFolderEvents } from '../../src/supervisor/folder/events.ts';
import { outlinePathsOf, takeOutline } from '../../src/supervisor/folder/outline.ts';
import { takeSnapshot } from '../../src/supervisor/folder/snapshot.ts';
import { createFolderWatch } from '../../src/supervisor/folder/watch.ts';
import { createFolder, write } from '../support/folder.ts';

const skip = process.platform === 'linux' ? false : 'file events are trusted on Linux alone';

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
  const identity = () => new Map([[dir, String(statSync(dir).ino)]]);
  return { dir, events, identity, count: () => count, event: () => new Promise<void>((resolve) => (wake = resolve)) };
}

describe('createFolderEvents', { skip }, () => {
  it('reports a code file written in place, but not a data file', async (test) => {
    const { dir, events, identity, count, event } = followed(test);
    assert.equal(events.follow(identity()), true);
    assert.equal(events.isTrusted(), true);
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
    const { dir, events, identity } = followed(test);
    assert.equal(events.follow(identity()), true);
    assert.equal(events.follow(identity()), false);
    mkdirSync(`${dir}-next`);
    test.after(() => rmSync(`${dir}-old`, { recursive: true, force: true }));
    renameSync(dir, `${dir}-old`);
    renameSync(`${dir}-next`, dir);
    assert.equal(events.follow(identity()), true);
  });

  const UNTRUSTED: readonly (readonly [name: string, folders: (dir: string) => string[]])[] = [
    ['no folder', () => []],
    ['a missing folder', (dir) => [dir, join(dir, 'absent')]],
    ['a folder in /proc', (dir) => [dir, '/proc/self']],
    ['more folders than the limit', (dir) => Array.from({ length: 1001 }, (_, i) => `${dir}${'/.'.repeat(i)}`)],
  ];
  for (const [name, folders] of UNTRUSTED) {
    it(`is not trusted with ${name}`, (test) => {
      const { dir, events } = followed(test);
      events.follow(new Map(folders(dir).map((path) => [path, path])));
      assert.equal(events.isTrusted(), false);
    });
  }
});

describe('takeOutline', () => {
  const CHANGES: readonly (readonly [name: string, change: (dir: string) => void, isSeen: boolean])[] = [
    ['an unchanged folder', () => {}, false],
    ['a file written in place', (dir) => writeFileSync(join(dir, 'lib/a.js'), '22'), false],
    ['a new file', (dir) => write(dir, 'lib/new.js', '1'), true],
    ['a file renamed over another', (dir) => renameSync(join(dir, 'lib/b.js'), join(dir, 'lib/a.js')), true],
    ['a missing file that appears', (dir) => write(dir, '../wanted.js', '1'), true],
  ];
  for (const [name, change, isSeen] of CHANGES) {
    it(`${isSeen ? 'changes with' : 'does not change with'} ${name}`, (test) => {
      const dir = join(
        createFolder(test, { 'deep/AController.js': '1', 'deep/lib/a.js': '1', 'deep/lib/b.js': '1' }),
        'deep',
      );
      const wanted = join(dir, '../wanted.js');
      const places = outlinePathsOf(takeSnapshot({ dir, paths: [wanted], wholeTree: true }) ?? new Map());
      const before = takeOutline(dir, places);
      change(dir);
      assert.equal(takeOutline(dir, places).text !== before.text, isSeen);
    });
  }
});

describe('a folder that is removed and created again', () => {
  it('has a new identity, even with the same inode number', (test) => {
    const dir = createFolder(test, { 'AController.js': '1', 'lib/a.js': '1' });
    const lib = join(dir, 'lib');
    const places = { folders: [lib], links: [], missing: [] };
    for (let i = 0; i < 20; i++) {
      const before = takeOutline(dir, places).folders.get(lib);
      rmSync(lib, { recursive: true });
      mkdirSync(lib);
      assert.notEqual(takeOutline(dir, places).folders.get(lib), before);
    }
  });
});

describe('createFolderWatch with events', { skip }, () => {
  // On this clock a snapshot takes a quarter of an hour, so the next one is due long after the end of the test.
  it('reports a file written in place before the next snapshot is due', {
    timeout: 20_000,
  }, async (test) => {
    const dir = createFolder(test, { 'AController.js': '1', 'lib/a.js': '1' });
    let time = 0;
    const log = createLog({ level: 'silent', sink: { write: () => {}, flush: () => {} } });
    let told = (_: string) => {};
    const change = new Promise<string>((resolve) => (told = resolve));
    let isTrusted = () => {};
    const polls = new Promise<void>((resolve) => (isTrusted = resolve));
    const now = () => {
      time += 1e6;
      // Each snapshot reads the clock twice. The first poll finds the folders, the second one watches them, and the
      // third needs no snapshot.
      if (time === 5e6) isTrusted();
      return time;
    };
    const watch = createFolderWatch({ dir, log, onChange: (what) => told(what), now });
    test.after(() => watch.stop());
    const files = ['AController.js', 'lib/a.js'].map((name) => ({
      path: join(dir, name),
      fingerprint: fingerprint(join(dir, name)),
    }));
    const before = watch.takeSnapshot() ?? new Map();
    watch.endLoad({
      snapshot: before,
      begunAt: Date.now(),
      groups: [{ group: 'A', file: 'AController.js', ok: true }],
      files,
      broken: false,
    });
    watch.start();
    await polls;
    writeFileSync(join(dir, 'lib/a.js'), '22');
    assert.equal(await change, join(dir, 'lib/a.js'));
  });
});
