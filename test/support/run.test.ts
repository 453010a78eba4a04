// run.mjs runs several files in one process. It must still report a failure of each file.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { test } from 'node:test';

const GOOD = `import { before, test } from 'node:test'; before(() => console.log('hook')); test('good', () => {});`;

const rows: [what: string, sources: string[], code: number, passed: number][] = [
  ['files that pass, each with its own hooks', [GOOD, GOOD, GOOD], 0, 3],
  ['a test that fails', [GOOD, `import { test } from 'node:test'; test('bad', () => { throw 1; });`, GOOD], 1, 2],
  ['a file that does not load', [GOOD, `throw new Error('not loaded');`, GOOD], 1, 2],
  ['a single file that does not load', [`import './none.mjs';`], 1, 0],
  ['a file that does not load after its first test', [`${GOOD} throw new Error('late');`, GOOD], 1, 2],
  [
    'a test that ends the process',
    [`import { test } from 'node:test'; test('end', () => process.exit(0));`, GOOD],
    1,
    0,
  ],
  ['a hook that fails', [GOOD, `${GOOD} import { after } from 'node:test'; after(() => { throw 1; });`], 1, 2],
  [
    'a test that never ends',
    [GOOD, `import { test } from 'node:test'; test('end', () => new Promise(() => {}));`],
    1,
    1,
  ],
  ['an import that never ends', [GOOD, `await new Promise(() => {});`, GOOD], 1, 1],
];

for (const [what, sources, code, passed] of rows) {
  test(`run.mjs reports ${what}`, (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'gatefold-run-test-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const files = sources.map((source, index) => {
      const path = join(folder, `${index}.test.mjs`);
      writeFileSync(path, source);
      return path;
    });
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const runner = resolve(import.meta.dirname, '../run.mjs');
    const { status, stdout } = spawnSync(process.execPath, [runner, '--test', '--test-reporter=tap', ...files], {
      env,
      encoding: 'utf8',
    });
    assert.equal(status, code, stdout);
    assert.equal(stdout.match(/^ *ok \d+ - good/gm)?.length ?? 0, passed, stdout);
    if (code === 0) assert.equal(stdout.match(/^# hook/gm)?.length, sources.length);
  });
}

test('run.mjs runs the tests of a folder, and no test when a path is missing', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatefold-run-test-'));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'one.test.mjs'), GOOD);
  writeFileSync(join(folder, 'two.slow.mjs'), GOOD);
  writeFileSync(join(folder, 'none.mjs'), GOOD);
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const run = (path: string) =>
    spawnSync(process.execPath, ['test/run.mjs', '--test-reporter=tap', path], { env, encoding: 'utf8' });
  const found = run(folder);
  const names = Array.from(found.stdout.matchAll(/^ok \d+ - \S+\/(\S+)$/gm), ([, name]) => name);
  assert.deepEqual([found.status, names.sort()], [0, ['one.test.mjs', 'two.slow.mjs']]);
  const missing = run(join(folder, 'missing.test.ts'));
  assert.deepEqual([missing.status, missing.stdout], [1, '']);
  assert.match(missing.stderr, /^There is no test .*missing\.test\.ts/);
});
