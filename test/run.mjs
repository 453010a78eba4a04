// `node --test` with these arguments, where one process runs several files of a room. A start and the load of src cost
// as much as the tests of a usual file do. Each file becomes a suite, which has hooks of its own. All processes
// run the JavaScript that compile.mjs makes once. A run with coverage compiles nothing: its report is of the sources.
//
// All temporary files of the run are in one folder, which the run removes. `tsx` reads the names of its whole cache in
// each process that it starts in. The cache of a machine where tests write controllers all day has 100,000 names.
//
// On Node 20 a process with a loader once stood still before the first module of its test file was loaded, until its
// time was over; nodejs/node#50948 tells of the like, and what it was is not known. A process that stood still so, with
// no test begun, is run once more. Nothing that began a test ever is.
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

/** The weight of the files of one process. More would pass the time limit of a process on a slow machine. */
const MAX_WEIGHT = 6;
/** A file that imports one of these starts whole services or commands, which takes most of its time. */
const STARTS_PROCESSES = /support\/(cluster-server|command-bench|credentials-bench|deployed|store-machines)\.ts/;

/**
 * The source of a group. Node 22 does not report a suite whose import fails. A test that ends the process would hide
 * the files after its own.
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
const flags = args.filter((arg) => !/\.test\.|\.slow\./.test(arg));
const files = args.filter((arg) => !flags.includes(arg));
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'gatefold-run-')));
const compiled = join(folder, 'compiled');
const hasTypeScript = files.some((file) => file.endsWith('.ts'));
const isCompiled = hasTypeScript && process.env.NODE_V8_COVERAGE === undefined;
if (hasTypeScript && !isCompiled && !process.features.typescript) flags.unshift('--import', 'tsx');
const env = { ...process.env, TMPDIR: join(folder, 'tmp') };
try {
  // A database server runs as another user, and reads files below.
  chmodSync(folder, 0o755);
  mkdirSync(env.TMPDIR);
  chmodSync(env.TMPDIR, 0o1777);
  if (isCompiled) await (await import('./compile.mjs')).compile(compiled);
  process.exitCode = run(groupFiles(files));
} finally {
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
}

/**
 * Writes a file for each process, that imports its test files one after the other.
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
  // The heavy groups begin first, so that no core waits for one of them at the end.
  groups.sort((a, b) => b.weight / b.files.length - a.weight / a.files.length);
  return groups.map(({ room, files }, index) => {
    const path = join(folder, `${relative('.', room).replaceAll(/[\\/]/g, '-')}-${index + 1}.mjs`);
    const urls = files.map((file) => [file, pathToFileURL(runnablePath(file)).href]);
    writeFileSync(path, `const files = ${JSON.stringify(urls)};\n${GROUP}`);
    return path;
  });
}

/** @param {string} file */
function runnablePath(file) {
  return isCompiled ? join(compiled, file.replace(/\.ts$/, '.js')) : resolve(file);
}

/** @param {string} file */
function weightOf(file) {
  if (file.endsWith('.slow.ts')) return MAX_WEIGHT;
  return STARTS_PROCESSES.test(readFileSync(file, 'utf8')) ? MAX_WEIGHT / 2 : 1;
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
  const { stuck, failed } = JSON.parse(readFileSync(report, 'utf8'));
  // Node 22 exits with 0 when a suite fails outside of its tests, as in a hook.
  if (status === 0) return failed > 0 ? 1 : 0;
  if (isSecond) return status ?? 1;
  if (failed > 0 || stuck.length === 0) return status ?? 1;
  console.log(`\nNo test of these had begun when their time was over; once more:\n${stuck.join('\n')}\n`);
  return run(stuck, true);
}
