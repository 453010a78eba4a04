// run.mjs runs several files in one process. It must still report a failure of each file.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';

const GOOD = `import { before, test } from 'node:test'; before(() => console.log('hook')); test('good', () => {});`;

const IMPORT_TEST = "import { test } from 'node:test';";

/** Files that run in one process, how many of them pass, and what the report has about the others. */
type Room = readonly [what: string, sources: readonly string[], passed: number, failure?: RegExp];

/** The exit code of these would say nothing in a run that has another failure. */
const ALONE: readonly Room[] = [
  ['files that pass, each with its own hooks', [GOOD, GOOD, GOOD], 3],
  ['a hook that fails', [GOOD, `${GOOD} import { after } from 'node:test'; after(() => { throw 1; });`], 1, /not ok/],
];

const TOGETHER: readonly Room[] = [
  ['a test that fails', [GOOD, `${IMPORT_TEST} test('bad', () => { throw 1; });`, GOOD], 2, /^ +not ok \d+ - bad$/m],
  ['a file that does not load', [GOOD, `throw new Error('early');`, GOOD], 2, /^ +error: .*early/m],
  ['a single file that does not load', [`import './none.mjs';`], 0, /^ +error: .*none\.mjs/m],
  [
    'a file that does not load after its first test',
    [`${GOOD} throw new Error('late');`, GOOD],
    1,
    /^ +error: .*late/m,
  ],
  [
    'a test that ends the process',
    [`${IMPORT_TEST} test('end', () => process.exit(0));`, GOOD],
    0,
    /^not ok \d+ - \S+-room4\.mjs$/m,
  ],
  [
    'a test that never ends',
    [GOOD, `${IMPORT_TEST} test('endless', () => new Promise(() => {}));`],
    1,
    /^ +not ok \d+ - endless$/m,
  ],
  [
    'an import that never ends',
    [GOOD, `await new Promise(() => {});`, GOOD],
    1,
    /^not ok \d+ - \S+\/room6\/1\.test\.mjs$/m,
  ],
];

const { NODE_TEST_CONTEXT: _, ...env } = process.env;

function runRooms(rooms: readonly Room[]) {
  const folder = mkdtempSync(join(tmpdir(), 'gatefold-run-test-'));
  try {
    const files = rooms.flatMap(([, sources], room) =>
      sources.map((source, index) => {
        mkdirSync(join(folder, `room${room}`), { recursive: true });
        const path = join(folder, `room${room}`, `${index}.test.mjs`);
        writeFileSync(path, source);
        return path;
      }),
    );
    const runner = resolve(import.meta.dirname, '../run.mjs');
    const words = [runner, '--test', '--test-reporter=tap', ...files];
    return spawnSync(process.execPath, words, { env, encoding: 'utf8' });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

let together: ReturnType<typeof runRooms> | undefined;
for (const rooms of [...ALONE.map((room) => [room]), TOGETHER]) {
  for (const [index, [what, sources, passed, failure]] of rooms.entries())
    test(`run.mjs reports ${what}`, () => {
      if (rooms === TOGETHER) together ??= runRooms(rooms);
      const { status, stdout } = (rooms === TOGETHER ? together : undefined) ?? runRooms(rooms);
      assert.equal(status, failure === undefined ? 0 : 1, stdout);
      assert.equal(stdout.match(RegExp(`^ok \\d+ - \\S+/room${index}/`, 'gm'))?.length ?? 0, passed, stdout);
      if (failure !== undefined) assert.match(stdout, failure);
      else assert.equal(stdout.match(/^# hook/gm)?.length, sources.length);
    });
}

test('run.mjs runs the tests of a folder, and no test when a path is missing', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatefold-run-test-'));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'one.test.mjs'), GOOD);
  writeFileSync(join(folder, 'two.slow.mjs'), GOOD);
  writeFileSync(join(folder, 'none.mjs'), GOOD);
  const run = (path: string) =>
    spawnSync(process.execPath, ['test/run.mjs', '--test-reporter=tap', path], { env, encoding: 'utf8' });
  const found = run(folder);
  const names = Array.from(found.stdout.matchAll(/^ok \d+ - \S+\/(\S+)$/gm), ([, name]) => name);
  assert.deepEqual([found.status, names.sort()], [0, ['one.test.mjs', 'two.slow.mjs']]);
  const missing = run(join(folder, 'missing.test.ts'));
  assert.deepEqual([missing.status, missing.stdout], [1, '']);
  assert.match(missing.stderr, /^There is no test .*missing\.test\.ts/);
});

test('run.mjs begins with the processes that take longest', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatefold-run-test-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const rooms = [
    ['a', 'quick.test.mjs'],
    ['b', 'long.slow.mjs'],
  ] as const;
  for (const [room, name] of rooms) {
    mkdirSync(join(folder, room));
    writeFileSync(join(folder, room, name), GOOD);
  }
  const words = ['test/run.mjs', '--test-reporter=tap', ...rooms.map(([room, name]) => join(folder, room, name))];
  const { stdout } = spawnSync(process.execPath, words, { env, encoding: 'utf8' });
  const names = Array.from(stdout.matchAll(/^ok \d+ - \S+\/(\S+)$/gm), ([, name]) => name);
  assert.deepEqual(names, ['long.slow.mjs', 'quick.test.mjs'], stdout);
});
