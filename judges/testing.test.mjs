// The test runners of others run `gatefold/testing`: Jest, Vitest and `node --test`, each in a project of its own that
// has the same controllers and the same tests.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

const root = resolve(import.meta.dirname, '..');
const run = promisify(execFile);
const bin = (name) => join(import.meta.dirname, 'node_modules', '.bin', name);

const CONTROLLER = `
import { readFileSync } from 'node:fs';
import { HttpError, toNodeStream } from 'gatefold';
import { clock } from '../lib/clock.js';
export default class BookController {
  static operations = { red: { body: 'stream' } };
  created(data) { return { title: data.title, at: clock.now() }; }
  missing() { throw new HttpError(404, 'NO_BOOK', 'There is no such book'); }
  broken() { readFileSync('/does/not/exist'); }
  async red(data) { let size = 0; for await (const piece of toNodeStream(data)) size += piece.length; return { size }; }
}`;
const TYPED = `
export default class TypedController {
  index(query: { size?: number }): { size: number } { return { size: query.size ?? 0 }; }
}`;
/** Jest compiles TypeScript by a transformer of the project. */
const TRANSFORMER = `
const { transformSync } = require(${JSON.stringify(join(root, 'node_modules/esbuild'))});
exports.process = (text) => ({ code: transformSync(text, { loader: 'ts', format: 'esm' }).code });
exports.processAsync = async (text) => exports.process(text);`;
/** Node 20 cannot load TypeScript, but these runners can. */
const TYPED_TEST = `
test('a controller in TypeScript', async () => {
  same((await api.fetch('/typed?size=x')).status, 422);
  same(await (await api.fetch('/typed?size=3')).json(), { size: 3 });
});`;
const TESTS = `
const api = await startTest({ controllers: import.meta.dirname + '/../controllers', expectedErrors: ['request-failed'] });
end(() => api.close());
test('a book is made, and a spy reaches the controller', async () => {
  const original = clock.now;
  clock.now = () => 7;
  const response = await api.fetch('/book', { method: 'POST', json: { title: 'Emma' } });
  clock.now = original;
  same(await response.json(), { title: 'Emma', at: 7 });
});
test('a refusal', async () => {
  const response = await api.fetch('/book/missing');
  same([response.status, (await response.json()).error_code], [404, 'NO_BOOK']);
});
test('an error of Node is a 500 whose line names it', async () => {
  same((await api.fetch('/book/broken')).status, 500);
  const line = api.lines.find(({ event }) => event === 'request-failed');
  same([line.error_name, String(line.error).startsWith('ENOENT')], ['Error', true]);
});
test('a stream', async () => {
  same(await (await api.fetch('/book', { method: 'PUT', body: 'x'.repeat(1000) })).json(), { size: 1000 });
});
test('a controller that does not load says where and why', async () => {
  const folder = import.meta.dirname + '/../broken';
  const error = await startTest({ controllers: folder }).then(() => undefined, (thrown) => thrown);
  same(/BadController\\.js.*on purpose/s.test(error.message) || error.message, true);
});
test('a folder that is missing says so', async () => {
  const error = await startTest({ controllers: '/does/not/exist' }).then(() => undefined, (thrown) => thrown);
  same(/Cannot read the controllers folder .*: it does not exist/.test(error.message), true);
});
`;
const HEADS = {
  jest: `import { afterAll as end, expect, test } from '@jest/globals';\nconst same = (a, b) => expect(a).toEqual(b);`,
  vitest: `import { afterAll as end, expect, test } from 'vitest';\nconst same = (a, b) => expect(a).toEqual(b);`,
  node: `import assert from 'node:assert/strict';\nimport { after as end, test } from 'node:test';\nconst same = assert.deepEqual;`,
};

const JEST = {
  testMatch: ['**/*.test.js'],
  extensionsToTreatAsEsm: ['.ts'],
  transform: { '\\.ts$': './transformer.cjs' },
};

function makeProject(t, runner) {
  const folder = mkdtempSync(join(tmpdir(), 'gatefold-runner-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const files = {
    'package.json': JSON.stringify({ type: 'module', jest: JEST }),
    'vitest.config.js': "export default { test: { server: { deps: { inline: ['gatefold'] } } } };",
    'lib/clock.js': 'export const clock = { now: () => Date.now() };',
    'controllers/BookController.js': CONTROLLER,
    ...(runner !== 'node' && { 'controllers/TypedController.ts': TYPED, 'transformer.cjs': TRANSFORMER }),
    'broken/BadController.js': "throw new Error('on purpose');",
    'test/book.test.js': `${HEADS[runner]}\nimport { startTest } from 'gatefold/testing';\nimport { clock } from '../lib/clock.js';\n${TESTS}${runner === 'node' ? '' : TYPED_TEST}`,
  };
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  // A copy, as npm makes one: a runner can treat a link to a folder outside of node_modules as code of the project.
  for (const name of ['dist', 'package.json'])
    cpSync(join(root, name), join(folder, 'node_modules', 'gatefold', name), { recursive: true });
  for (const name of ['@jest', 'vitest', 'jest'])
    symlinkSync(join(import.meta.dirname, 'node_modules', name), join(folder, 'node_modules', name));
  return folder;
}

const RUNNERS = {
  jest: ['--experimental-vm-modules', bin('jest')],
  vitest: [bin('vitest'), 'run'],
  node: ['--test'],
};
for (const [runner, words] of Object.entries(RUNNERS))
  test(`gatefold/testing in ${runner}`, { timeout: 300_000 }, async (t) => {
    const env = { ...process.env, CI: '1', NO_COLOR: '1' };
    // A test runner below `node --test` would report to it.
    delete env.NODE_TEST_CONTEXT;
    const { stdout, stderr } = await run(process.execPath, words, { cwd: makeProject(t, runner), env });
    assert.match(stdout + stderr, runner === 'node' ? /pass 6\b/ : /Tests:? +7 passed/);
  });
