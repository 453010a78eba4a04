// `node --test` with these arguments. On Node 20 a process with a loader once stood still before the first module of
// its test file was loaded, until its time was over; nodejs/node#50948 tells of the like, and what it was is not known.
// A file that stood still so, with no test begun, is run once more. Nothing that began a test ever is.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const args = process.argv.slice(2);
const flags = args.filter((arg) => !/\.test\.|\.slow\./.test(arg));
const folder = mkdtempSync(join(tmpdir(), 'gatefold-run-'));
try {
  process.exitCode = run(args.filter((arg) => !flags.includes(arg)));
} finally {
  rmSync(folder, { recursive: true });
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
    {
      stdio: 'inherit',
    },
  );
  if (status === 0 || isSecond) return status ?? 1;
  const { stuck, failed } = JSON.parse(readFileSync(report, 'utf8'));
  if (failed > 0 || stuck.length === 0) return status ?? 1;
  console.log(`\nNo test of these had begun when their time was over; once more:\n${stuck.join('\n')}\n`);
  return run(stuck, true);
}
