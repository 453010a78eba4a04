// The watch over a folder: which differences are a change, and when the folder is stable.
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { mkdirSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { fingerprint } from '../../../src/base/fingerprint.ts';
import { createFolderWatch } from '../../../src/live/folder/watch.ts';
import { createFolder, write } from '../../support/folder.ts';
import { createMemoryLog } from '../../support/memory-log.ts';

describe('createFolderWatch', () => {
  const file = (dir: string, name: string) => ({ path: join(dir, name), fingerprint: fingerprint(join(dir, name)) });
  const group = (name: string, ok = true) => ({ group: name, file: `${name}Controller.js`, ok });

  function watched(test: TestContext, files: Record<string, string>) {
    const dir = createFolder(test, files);
    const events = new EventEmitter();
    const { log, lines } = createMemoryLog(() => events.emit('line'));
    // The watch reads its clock at each poll.
    const now = () => {
      events.emit('poll');
      return performance.now();
    };
    const watch = createFolderWatch({ dir, log, onChange: (what) => events.emit('change', what), now });
    test.after(() => watch.stop());
    const changed = () => new Promise<string>((resolve) => events.once('change', resolve));
    const logged = () => new Promise((resolve) => events.once('line', resolve));
    const polled = () => new Promise((resolve) => events.once('poll', resolve));
    return { dir, watch, lines, changed, logged, polled };
  }

  it('reports a change of a loaded file, but not of other files', async (test) => {
    const { dir, watch, changed } = watched(test, { 'AController.js': '1', 'lib/a.js': '1', 'lib/other.js': '1' });
    const before = watch.takeSnapshot() ?? new Map();
    watch.endLoad({
      snapshot: before,
      begunAt: Date.now(),
      groups: [group('A')],
      files: [file(dir, 'AController.js'), file(dir, 'lib/a.js')],
      broken: false,
    });
    watch.start();
    const change = changed();
    write(dir, 'lib/other.js', '22');
    write(dir, 'BController.js', 'new');
    write(dir, 'lib/a.js', '22');
    assert.equal(await change, join(dir, 'lib/a.js'));
  });

  it('reports a file that changed during the load', async (test) => {
    const { dir, watch, changed } = watched(test, { 'AController.js': '1' });
    const before = watch.takeSnapshot() ?? new Map();
    const read = file(dir, 'AController.js');
    write(dir, 'AController.js', '22');
    watch.endLoad({
      snapshot: before,
      begunAt: Date.now(),
      groups: [group('A')],
      files: [read, file(dir, 'AController.js')],
      broken: false,
    });
    assert.equal(watch.hasSameFiles([read]), false);
    watch.start();
    assert.equal(await changed(), join(dir, 'AController.js'));
  });

  it('reports a file that is newer than the load and missing in the snapshot', async (test) => {
    const { dir, watch, changed } = watched(test, { 'AController.js': '1' });
    const before = watch.takeSnapshot() ?? new Map();
    const outside = join(dir, '..', 'outside.js');
    writeFileSync(outside, '1');
    const files = [file(dir, 'AController.js'), { path: outside, fingerprint: fingerprint(outside) }];
    watch.endLoad({ snapshot: before, begunAt: Date.now() - 1000, groups: [group('A')], files, broken: false });
    watch.start();
    assert.equal(await changed(), outside);
  });

  it('watches a new group after its import, and any file of the tree after a broken load', async (test) => {
    const { dir, watch, changed, polled } = watched(test, { 'AController.js': '1' });
    const look = () => watch.takeSnapshot() ?? new Map();
    watch.endLoad({
      snapshot: look(),
      begunAt: Date.now(),
      groups: [group('A')],
      files: [file(dir, 'AController.js')],
      broken: false,
    });
    watch.start();
    write(dir, 'BController.js', '1');
    watch.addGroup(group('B'), [file(dir, 'BController.js')]);
    let change = changed();
    write(dir, 'BController.js', '22');
    assert.equal(await change, join(dir, 'BController.js'));
    watch.endLoad({
      snapshot: look(),
      begunAt: Date.now(),
      groups: [group('A'), group('B', false)],
      files: [],
      broken: true,
    });
    change = changed();
    // The first request for its group imports a new controller.
    write(dir, 'CController.js', '1');
    for (let polls = 0; polls < 8; polls++) await polled();
    mkdirSync(join(dir, 'lib'));
    write(dir, 'lib/missing.js', '1');
    assert.match(await change, /lib\/missing\.js/);
  });

  it('has no change after the last state of a new file, which was not whole at first', (test) => {
    const { dir, watch } = watched(test, {});
    const endLoad = () =>
      watch.endLoad({ snapshot: watch.takeSnapshot() ?? new Map(), begunAt: 0, groups: [], files: [], broken: false });
    endLoad();
    write(dir, 'BController.js', '1');
    const half = file(dir, 'BController.js');
    watch.addGroup(group('B', false), [half]);
    assert.equal(watch.changeSinceLoad(), undefined, 'a file that does not load is not compared');
    write(dir, 'BController.js', '22');
    watch.addGroup(group('B'), [half, file(dir, 'BController.js')]);
    assert.equal(watch.changeSinceLoad('BController.js'), undefined);
    watch.addGroup(group('B'), [half]);
    assert.equal(watch.changeSinceLoad('BController.js'), join(dir, 'BController.js'), 'a worker has other code');
  });

  it('has a change as long as the newest load has found no folder', (test) => {
    const { watch } = watched(test, { 'AController.js': '1' });
    watch.beginLoad(new Map());
    assert.equal(watch.changeSinceLoad(), 'folder');
  });

  it('counts a file that no worker has read as other code, but not a path without a file', (test) => {
    const { dir, watch } = watched(test, { 'AController.js': '1', 'lib/a.js': '1' });
    const files = [file(dir, 'AController.js')];
    const snapshot = watch.takeSnapshot() ?? new Map();
    watch.endLoad({ snapshot, begunAt: Date.now(), groups: [group('A')], files, broken: false });
    assert.equal(watch.hasSameFiles([...files, file(dir, 'lib/missing.js')]), true);
    assert.equal(watch.hasSameFiles([...files, file(dir, 'lib/a.js')]), false);
  });

  it('compares a link outside of the folder by its target', (test) => {
    const { dir, watch } = watched(test, { 'AController.js': '1' });
    const path = join(dir, '..', 'lib');
    symlinkSync('v1', path);
    for (const version of ['v1', 'v2']) mkdirSync(join(dir, '..', version));
    const link = { path, fingerprint: realpathSync(path), link: true as const };
    const files = [file(dir, 'AController.js'), link];
    const endLoad = () => {
      const snapshot = watch.takeSnapshot() ?? new Map();
      watch.endLoad({ snapshot, begunAt: Date.now(), groups: [group('A')], files, broken: false });
    };
    endLoad();
    assert.equal(watch.changeSinceLoad(), undefined);
    rmSync(path);
    symlinkSync('v2', path);
    assert.equal(watch.changeSinceLoad(), path);
    endLoad();
    assert.equal(watch.changeSinceLoad(), path, 'the load has read by the old target');
  });

  for (const broken of [false, true]) {
    const beside = broken ? ', also beside a group that does not load' : '';
    it(`reports a service file of the folder that no worker has loaded${beside}`, (test) => {
      const { dir, watch } = watched(test, { 'AController.js': '1', 'service.js': '1' });
      const snapshot = watch.takeSnapshot() ?? new Map();
      watch.beginLoad(snapshot);
      assert.equal(watch.changeSinceLoad(), undefined, 'while the folder loads, nothing is missed');
      const load = { snapshot, begunAt: Date.now(), files: [file(dir, 'AController.js')], broken };
      watch.endLoad({ ...load, groups: [group('A', !broken)] });
      assert.equal(watch.changeSinceLoad(), 'service');
      watch.endLoad({ ...load, groups: [group('A', !broken), { group: 'service', file: 'service.js', ok: false }] });
      assert.equal(watch.changeSinceLoad(), undefined);
    });
  }

  it('reports a file beside controllers that may set rules, but no other new file', async (test) => {
    const files = { 'AController.js': '1', 'service.ts': '1', 'old.ts': "'gatefold' defineService" };
    const { dir, watch, changed, polled } = watched(test, files);
    const load = () => {
      const snapshot = watch.takeSnapshot() ?? new Map();
      const groups = [group('A'), { group: 'service', file: 'service.ts', ok: true }];
      watch.endLoad({ snapshot, begunAt: 0, groups, files: [], broken: false });
    };
    load();
    watch.start();
    const other = changed().then((what) => assert.fail(what));
    other.catch(() => {});
    for (const [name, text] of [
      ['helper.ts', '1'],
      ['BController.js', "'gatefold' defineService"],
      ['rules.test.ts', "'gatefold' defineService"],
      ['lib/rules.ts', "'gatefold' defineService"],
    ] as const)
      write(dir, name, text);
    symlinkSync('AController.js', join(dir, 'CController.js'));
    for (let polls = 0; polls < 8; polls++) await polled();
    assert.equal(await Promise.race([other, 'no change']), 'no change');
    write(dir, 'v2/DController.js', '1');
    for (const name of ['services.ts', 'service.js', 'helper.ts', 'v2/service.ts']) {
      load();
      const change = changed();
      write(dir, name, "'gatefold' defineService");
      assert.equal(await change, join(dir, name));
    }
    load();
    const change = changed();
    rmSync(join(dir, 'services.ts'));
    assert.equal(await change, join(dir, 'services.ts'));
  });

  it('reports a file that keeps changing after one second', async (test) => {
    const { dir, watch, changed } = watched(test, { 'AController.js': '1' });
    watch.endLoad({
      snapshot: watch.takeSnapshot() ?? new Map(),
      begunAt: Date.now(),
      groups: [group('A')],
      files: [file(dir, 'AController.js')],
      broken: false,
    });
    watch.start();
    const begun = performance.now();
    const writing = setInterval(() => writeFileSync(join(dir, 'AController.js'), `${performance.now()}`), 5);
    test.after(() => clearInterval(writing));
    assert.equal(await changed(), join(dir, 'AController.js'));
    assert.ok(performance.now() - begun >= 1000, 'the file is reported only after one second');
  });

  it('does not log a folder that is missing in one poll, as when a link is swapped', (test) => {
    test.mock.timers.enable({ apis: ['setTimeout'] });
    const dir = createFolder(test, { 'AController.js': '1' });
    const { log, lines } = createMemoryLog();
    const watch = createFolderWatch({ dir, log, onChange() {}, now: () => 0 });
    test.after(() => watch.stop());
    const snapshot = watch.takeSnapshot() ?? new Map();
    watch.endLoad({ snapshot, begunAt: 0, groups: [group('A')], files: [], broken: false });
    watch.start();
    for (const pause of [20, 20]) test.mock.timers.tick(pause);
    for (const polls of [1, 2]) {
      renameSync(dir, `${dir}.away`);
      for (const pause of [400, 40].slice(0, polls)) test.mock.timers.tick(pause);
      renameSync(`${dir}.away`, dir);
      test.mock.timers.tick(polls === 1 ? 40 : 400);
      const events = lines.map(({ event }) => event);
      assert.deepEqual(events, polls === 1 ? [] : ['folder-missing', 'folder-restored']);
    }
  });

  it('logs a missing folder once, and reports a change when the folder returns', async (test) => {
    const { dir, watch, lines, changed, logged, polled } = watched(test, { 'AController.js': '1' });
    const load = {
      snapshot: watch.takeSnapshot() ?? new Map(),
      begunAt: Date.now(),
      groups: [group('A')],
      files: [file(dir, 'AController.js')],
      broken: false,
    };
    watch.endLoad(load);
    watch.start();
    const line = logged();
    rmSync(dir, { recursive: true });
    await line;
    // Another load ends meanwhile, as when no worker is left.
    watch.endLoad(load);
    for (let poll = 0; poll < 5; poll++) await polled();
    const change = changed();
    write(dir, 'AController.js', '22');
    assert.equal(await change, join(dir, 'AController.js'));
    assert.deepEqual(
      lines.map(({ event, reason, effect }) => [event, reason, effect]),
      [
        ['folder-missing', 'it does not exist', 'the last generation serves on'],
        ['folder-restored', undefined, undefined],
      ],
    );
  });
});
