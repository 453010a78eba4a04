// Keeping contracts.gen.ts in `gatefold dev`, with a script in place of the command.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { createTypeMaker } from '../../../src/live/supervisor/type-maker.ts';
import { entryPath } from '../../../src/own-files.ts';
import { createFolder } from '../../support/folder.ts';
import { createMemoryLog } from '../../support/memory-log.ts';

/** Run number N of the script writes run N of the list. */
type Run = readonly [out: string, err?: string];

const SCRIPT = `#!/bin/sh
read count < "$0.count"
count=$((count + 1))
echo "$count" > "$0.count"
printf '%s\\n' "$*" >> "$0.calls"
. "$0.$count"
`;

/** @param gate the name of a file beside the folder that each run waits for */
function createBench(test: TestContext, runs: readonly Run[], files: Readonly<Record<string, string>> = {}, gate = '') {
  const dir = createFolder(test, files);
  const script = join(dir, '../command');
  writeFileSync(script, SCRIPT, { mode: 0o755 });
  writeFileSync(`${script}.count`, '0\n');
  const wait = gate === '' ? '' : `while [ -e ${script} ] && [ ! -e ${join(dir, '..', gate)} ]; do sleep 0.01; done; `;
  for (const [index, [out, err = '']] of runs.entries())
    writeFileSync(`${script}.${index + 1}`, `${wait}printf '%s' '${out}'; printf '%s' '${err}' >&2\n`);
  const { execPath } = process;
  test.after(() => {
    process.execPath = execPath;
  });
  process.execPath = script;
  let check = () => {};
  const { log, lines } = createMemoryLog(() => check());
  return {
    dir,
    lines,
    makeTypes: createTypeMaker(dir, log),
    calls: () => (existsSync(`${script}.calls`) ? readFileSync(`${script}.calls`, 'utf8').trimEnd().split('\n') : []),
    logged: () =>
      new Promise<void>((resolve) => {
        check = resolve;
        if (lines.length > 0) resolve();
      }),
  };
}

it('runs gatefold contracts for the folder, and resolves to whether it has written the file', async (test) => {
  const runs: Run[] = [['Wrote a/contracts.gen.ts: 12 types\n'], ['Nothing has changed\n'], ['Wrote b: 3\n']];
  const { dir, lines, makeTypes, calls } = createBench(test, runs);
  assert.deepEqual([await makeTypes(), await makeTypes(), await makeTypes()], [true, false, true]);
  assert.ok(calls().every((call) => call.endsWith(`${entryPath('cli')} contracts --controllers-dir ${dir}`)));
  assert.deepEqual(
    lines.map(({ event, types }) => [event, types]),
    [
      ['contracts-written', 12],
      ['contracts-written', 3],
    ],
  );
  // Only the call after the start makes the file, when there is none yet.
  assert.equal(calls().length, 3);
});

it('makes the file at once when there is one, because the types of a package can have changed', async (test) => {
  const files = { 'contracts.gen.ts': '' };
  const { calls, logged } = createBench(test, [['Wrote a: 1\n']], files);
  await logged();
  assert.equal(calls().length, 1);
});

it('makes calls one after the other, and a call that waits tells that the file was written before', async (test) => {
  const { makeTypes, calls } = createBench(test, [['Wrote a: 1\n'], [''], [''], ['']]);
  assert.deepEqual(await Promise.all([makeTypes(), makeTypes(), makeTypes()]), [true, true, true]);
  assert.deepEqual([await makeTypes(), calls().length], [false, 4]);
});

it('logs each line of the warnings, and not the same warnings again', async (test) => {
  const both = 'one: no type\ntwo: no type\n';
  const { lines, makeTypes } = createBench(test, [
    ['Wrote a: 1\n', both],
    ['', both],
    ['', ''],
    ['', 'two: no type\n'],
  ]);
  const warnings = async () => {
    lines.length = 0;
    await makeTypes();
    return lines.flatMap(({ event, warning }) => (event === 'contracts-warning' ? [warning] : []));
  };
  assert.deepEqual(await warnings(), ['one: no type', 'two: no type']);
  assert.deepEqual(await warnings(), []);
  await warnings();
  assert.deepEqual(await warnings(), ['two: no type']);
});

it('says once why nothing happens, while a run takes more than four seconds', async (test) => {
  test.mock.timers.enable({ apis: ['setTimeout'] });
  const { dir, lines, makeTypes } = createBench(test, [['Wrote a: 1\n'], ['Wrote a: 1\n']], {}, 'command.go');
  const events = () => lines.map(({ event }) => event);
  const go = join(dir, '../command.go');
  const begun = () => new Promise(setImmediate);
  const first = makeTypes();
  await begun();
  test.mock.timers.tick(3999);
  assert.deepEqual(events(), []);
  test.mock.timers.tick(1);
  assert.deepEqual(events(), ['contracts-running']);
  writeFileSync(go, '');
  await first;
  rmSync(go);
  const second = makeTypes();
  await begun();
  test.mock.timers.tick(4000);
  writeFileSync(go, '');
  await second;
  test.mock.timers.tick(4000);
  assert.deepEqual(events(), ['contracts-running', 'contracts-written', 'contracts-written']);
});
