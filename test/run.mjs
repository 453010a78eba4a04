// Runs `node --test`, but several test files of a room in one process. A process takes as long to start and to load src
// as the tests of a usual file take. Each file becomes a suite, so it keeps its own hooks. All processes run the
// JavaScript that compile.mjs makes once. A run with coverage compiles nothing, because its report shows the sources.
//
//   node test/run.mjs [flags of node] [files and folders of test]      Default: all tests but the slow ones
//
// All temporary files of the run are in one folder, which the run removes. This folder also has the cache of `tsx`,
// which reads the names of all cached files at each start. On a machine that tests all day, these would be 100,000.
//
// A process that hangs before its first test had a result is run a second time, but only if none of its tests had begun. On
// Node 20 such a process once made a key and exported it (acme/certificate-writer.ts has the cause).
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

/**
 * Maximum weight of the files of one process. A process loads src once for all its files: with 8, a run takes a seventh
 * more processor time. With more than this, the last process would run alone for longer.
 */
const MAX_WEIGHT = 24;
/** Milliseconds after which a test is long. The time limits that tests have are longer. */
const LONG_TEST_MS = 50_000;
/** A test file that imports one of these starts whole services or commands, which takes most of its time. */
const STARTS_PROCESSES =
  /support\/(cluster-server|command-bench|credentials-bench|deployed|store-machines|task-notes)\.ts/;

/**
 * The source of a process that runs several test files. Node 22 reports no suite whose import fails, so `fail` adds a
 * failing test. When a test ends the process, the remaining files do not run, so the process must then fail.
 */
const GROUP = `
import { describe, test } from 'node:test';
process.setSourceMapsEnabled(true);
let isOver = false;
process.on('exit', () => {
  if (!isOver) process.exitCode = 1;
});
const fail = (error) => void test('the file loads', () => { throw error; });
for (const [name, url] of files) await describe(name, () => import(url).then(() => {}, fail));
isOver = true;
`;

const args = process.argv.slice(2);
const isFlag = (/** @type {string} */ arg) => arg.startsWith('-');
const paths = args.filter((arg) => !isFlag(arg));
for (const path of paths.filter((path) => !existsSync(path))) {
  console.error(`There is no test ${path}. Name files and folders of test; the value of a flag follows its "=".`);
  process.exit(1);
}
const files = paths.length === 0 ? allTests() : paths.flatMap(filesOf);
// The slowest process of quick tests takes a minute on two cores.
const timeout = files.every((file) => isQuick(file) && !isJudge(file)) ? 300_000 : 600_000;
// A process waits a third of its time, so five of them keep two cores busy.
const flags = ['--test', '--test-concurrency=5', `--test-timeout=${timeout}`, ...args.filter(isFlag)];
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'gatefold-run-')));
const compiled = join(folder, 'compiled');
const hasJudge = files.some(isJudge);
const hasTypeScript = hasJudge || files.some((file) => file.endsWith('.ts'));
const isCompiled = hasTypeScript && !hasJudge && process.env.NODE_V8_COVERAGE === undefined;
if (hasTypeScript && !isCompiled && !process.features.typescript) flags.unshift('--import', 'tsx');
// No test needs certificates of this machine. With them, Node reads 150 certificates at each start, which takes half as
// long again as the start itself.
const { NODE_EXTRA_CA_CERTS: _, ...variables } = process.env;
const env = { ...variables, TMPDIR: join(folder, 'tmp') };
try {
  // A database server runs as another user and reads files in this folder.
  chmodSync(folder, 0o755);
  mkdirSync(env.TMPDIR);
  chmodSync(env.TMPDIR, 0o1777);
  if (isCompiled) await (await import('./compile.mjs')).compile(compiled);
  process.exitCode = run(groupFiles(files));
} finally {
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
}

/** @returns {string[]} the tests of `npm test`: those of test itself and of each room */
function allTests() {
  return filesOf('test').filter(isQuick);
}

/** @param {string} path a test, or a folder of tests @returns {string[]} */
function filesOf(path) {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(?:test|slow)\.m?[jt]s$/.test(name))
    .map((name) => `${path.replace(/\/$/, '')}/${name}`);
}

/** @param {string} file */
function isQuick(file) {
  return !file.includes('.slow.');
}

/** A judge imports the TypeScript of an example. @param {string} file */
function isJudge(file) {
  return file.startsWith('judges/');
}

/**
 * Writes one file for each process. The file imports the test files of the process one after the other.
 *
 * @param {readonly string[]} files
 * @returns {string[]} the written files
 */
function groupFiles(files) {
  /** @type {Map<string, { room: string, weight: number, files: string[] }>} the open group of each room */
  const open = new Map();
  const groups = [];
  for (const file of files) {
    const room = dirname(file);
    const weight = weightOf(file);
    let group = open.get(room);
    if (group === undefined || group.weight + weight > MAX_WEIGHT) {
      group = { room, weight: 0, files: [] };
      open.set(room, group);
      groups.push(group);
    }
    group.weight += weight;
    group.files.push(file);
  }
  // Heavy groups begin first. Otherwise the run would end with one heavy group on one core. The number comes first in the
  // name, because `node --test` sorts the names.
  groups.sort((a, b) => b.weight - a.weight);
  const reports = pathToFileURL(join(import.meta.dirname, 'support/long-tests.mjs')).href;
  // c8 cannot separate the coverage of dist, whose files are bundles. So coverage is that of the tests, without the
  // processes that they start. Node has read this variable at the start of the process.
  const head = `import { reportLongTests } from '${reports}';\nreportLongTests(${LONG_TEST_MS});\ndelete process.env.NODE_V8_COVERAGE;`;
  return groups.map(({ room, files }, index) => {
    const number = String(index + 1).padStart(3, '0');
    const path = join(folder, `${number}-${relative('.', room).replaceAll(/[\\/]/g, '-')}.mjs`);
    const urls = files.map((file) => [file, pathToFileURL(runnablePath(file)).href]);
    writeFileSync(path, `${head}\nconst files = ${JSON.stringify(urls)};\n${GROUP}`);
    return path;
  });
}

/** @param {string} file */
function runnablePath(file) {
  return isCompiled ? join(compiled, file.replace(/\.ts$/, '.js')) : resolve(file);
}

/** A file that starts services takes six times as long as another. @param {string} file */
function weightOf(file) {
  if (!isQuick(file) || isJudge(file)) return MAX_WEIGHT;
  return STARTS_PROCESSES.test(readFileSync(file, 'utf8')) ? MAX_WEIGHT / 4 : 1;
}

/** @param {readonly string[]} files @param {boolean} isSecond @returns {number} the exit code */
function run(files, isSecond = false) {
  const report = join(folder, `report-${isSecond}`);
  const reporter = [
    '--test-reporter',
    join(import.meta.dirname, 'support/stuck-files.mjs'),
    '--test-reporter-destination',
    report,
  ];
  const first = flags.some((flag) => flag.startsWith('--test-reporter=')) ? [] : ['--test-reporter=spec'];
  const { status } = spawnSync(
    process.execPath,
    [...flags, ...first, '--test-reporter-destination=stdout', ...reporter, ...files],
    { stdio: 'inherit', env },
  );
  const { stuck, unended, failed } = JSON.parse(readFileSync(report, 'utf8'));
  if (unended.length > 0) console.log(`\nHad begun when the time of its process was over:\n${unended.join('\n')}\n`);
  // Node 22 exits with 0 when a suite fails outside its tests, for example in a hook.
  if (status === 0) return failed > 0 ? 1 : 0;
  if (isSecond) return status ?? 1;
  if (failed > 0 || stuck.length === 0) return status ?? 1;
  console.log(`\nNo test of these had begun when their time was over; once more:\n${stuck.join('\n')}\n`);
  return run(stuck, true);
}
