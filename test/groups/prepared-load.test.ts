// A process reads the sources and the caches of a large folder before the order to load the folder. A file that has
// changed since must be loaded as it is at the time of the order.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import module from 'node:module';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fingerprint } from '../../src/base/fingerprint.ts';
import { type PreparedLoad, prepareLoad, readEarly } from '../../src/groups/prepared-load.ts';
import { createGroups } from '../../src/groups/registry.ts';
import { controller, createFolder, write } from '../support/folder.ts';
import { createMemoryLog } from '../support/memory-log.ts';

/** Milliseconds after which a file is certainly old enough to be read early. */
const SETTLED = 150;

/** Gives the test its own folder of caches. */
function useOwnCaches(t: TestContext): void {
  const before = process.env.TMPDIR;
  const parent = createFolder(t);
  process.env.TMPDIR = parent;
  t.after(() => {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
  });
}

const files = (value: string) =>
  Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`G${i}Controller.js`, controller(value)]));

/** Loads the folder. Returns the names of the files for which an early text was used. */
async function loadAll(dir: string, prepared: PreparedLoad | undefined) {
  const { log } = createMemoryLog();
  const early: string[] = [];
  const recorded: PreparedLoad | undefined = prepared && {
    ...prepared,
    findText(path, fingerprint) {
      const text = prepared.findText(path, fingerprint);
      if (text !== undefined) early.push(path);
      return text;
    },
  };
  const groups = createGroups({ dir, log, prepared: recorded });
  const loads = await groups.loadAll({ skip: new Map(), onLoading: () => {} });
  assert.deepEqual(
    loads.filter(({ ok }) => !ok),
    [],
  );
  const answerOf = async (group: string) => {
    const { controller } = (await groups.find(group)) as { controller: { index(): { value: unknown } } };
    return controller.index().value;
  };
  return { early, answerOf };
}

test('a file that changed after its early read is loaded with its new text', async (t) => {
  useOwnCaches(t);
  const dir = createFolder(t, files('old'));
  await sleep(SETTLED);
  const prepared = await prepareLoad(dir);
  write(dir, 'G7Controller.js', controller('new'));
  rmSync(join(dir, 'G8Controller.js'));
  write(dir, 'NewController.js', controller('new'));
  const { early, answerOf } = await loadAll(dir, prepared);
  assert.equal(await answerOf('g7'), 'new');
  assert.equal(await answerOf('new'), 'new');
  assert.equal(await answerOf('g9'), 'old');
  assert.ok(!early.some((path) => /G[78]Controller/.test(path)));
  if (typeof module.registerHooks === 'function') assert.equal(early.length, 28);
  const unchanged = join(dir, 'G9Controller.js');
  assert.equal(prepared?.findText(unchanged, fingerprint(unchanged)), undefined, 'the load frees the texts');
});

test('an early read skips a file that was just written, a folder and a missing file', async (t) => {
  const dir = createFolder(t, { 'OldController.js': controller('old') });
  mkdirSync(join(dir, 'FolderController.js'));
  await sleep(SETTLED);
  write(dir, 'NewController.js', controller('new'));
  const paths = ['Old', 'Folder', 'Missing', 'New'].map((name) => join(dir, `${name}Controller.js`));
  const texts = Array.from(readEarly(paths).values(), ({ text }) => text);
  assert.deepEqual(texts, [controller('old')]);
});

test('a prepared load uses contracts that another process wrote after the preparation', async (t) => {
  useOwnCaches(t);
  const dir = createFolder(t, files('old'));
  const first = await prepareLoad(dir);
  const second = await prepareLoad(dir);
  assert.equal(second?.contracts()?.find(join(dir, 'G1Controller.js')), undefined);
  await loadAll(dir, first);
  second?.contracts()?.refresh();
  assert.match(second?.contracts()?.find(join(dir, 'G1Controller.js')) ?? '', /index/);
});

test('a link moved after the preparation loads the new folder with its own caches', async (t) => {
  useOwnCaches(t);
  const [oldRelease, newRelease] = ['old', 'new'].map((value) => createFolder(t, files(value))) as [string, string];
  const dir = join(createFolder(t), 'current');
  symlinkSync(oldRelease, dir);
  await sleep(SETTLED);
  const prepared = await prepareLoad(dir);
  symlinkSync(newRelease, `${dir}.next`);
  renameSync(`${dir}.next`, dir);
  const { early, answerOf } = await loadAll(dir, prepared);
  assert.equal(await answerOf('g1'), 'new');
  assert.deepEqual(early, []);
  const again = await prepareLoad(newRelease);
  assert.match(again?.contracts()?.find(join(newRelease, 'G1Controller.js')) ?? '', /index/);
});

test('a controller of a large folder can be a link', async (t) => {
  useOwnCaches(t);
  const dir = createFolder(t, files('plain'));
  const elsewhere = join(createFolder(t), 'elsewhere.js');
  writeFileSync(elsewhere, `import value from './value.js';\n${controller('x').replace('"x"', 'value')}`);
  writeFileSync(join(elsewhere, '../value.js'), `export default 'linked';`);
  symlinkSync(elsewhere, join(dir, 'LinkController.js'));
  assert.ok(existsSync(join(dir, 'LinkController.js')), readdirSync(dir).join());
  const { answerOf } = await loadAll(dir, await prepareLoad(dir));
  assert.equal(await answerOf('link'), 'linked');
});
