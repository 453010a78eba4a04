// Runs tests again when a file of src or test changes: those of the file's room, and those that import it themselves.
//
//   npm run watch
import { spawnSync } from 'node:child_process';
import { statSync, watch } from 'node:fs';
import { join, sep } from 'node:path';
import { testsOf } from './importers.mjs';

const root = join(import.meta.dirname, '..');
/** Milliseconds without a change after which the tests run. An editor writes a file in several steps. */
const QUIET = 200;
/** @type {Set<string>} */
const changed = new Set();
/** @type {Map<string, number>} the time of each file in its last run; Node 20 also reports that a file was read */
const times = new Map();
/** @type {NodeJS.Timeout | undefined} */
let timer;

for (const tree of ['src', 'test'])
  watch(join(root, tree), { recursive: true }, (_, name) => {
    if (name === null || !/\.(?:ts|mjs|js|css|html)$/.test(name)) return;
    changed.add(`${tree}/${name.replaceAll(sep, '/')}`);
    clearTimeout(timer);
    timer = setTimeout(runTests, QUIET);
  });
console.log('Watching src and test.');

function runTests() {
  const files = [...changed].filter(isNew);
  changed.clear();
  const tests = [...new Set(files.flatMap((file) => nearTests(file)))];
  if (tests.length === 0) return;
  console.log(`\n${files.join(' ')}: ${tests.length === 1 ? tests[0] : `${tests.length} test files`}`);
  const run = (/** @type {string[]} */ ...words) =>
    spawnSync(process.execPath, words, { cwd: root, stdio: 'inherit' }).status === 0;
  if (run('build.mjs', '--if-stale')) run('test/run.mjs', '--test-reporter=dot', ...tests);
}

/** @param {string} file @returns {boolean} whether the file exists and has changed since its tests ran */
function isNew(file) {
  const time = statSync(join(root, file), { throwIfNoEntry: false })?.mtimeMs;
  if (time === undefined || time === times.get(file)) return false;
  times.set(file, time);
  return true;
}

/** @param {string} file */
function nearTests(file) {
  const { room, direct } = testsOf(root, file);
  return [...direct, ...room];
}
