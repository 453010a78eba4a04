// Tests which tasks a service file may have. A task that is not understood refuses its file.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createGroups } from '../../../src/live/load/registry.ts';
import { readTasks } from '../../../src/live/tasks/task.ts';
import { createFolder } from '../../support/folder.ts';
import { createMemoryLog } from '../../support/memory-log.ts';
import { GATEFOLD } from '../../support/service.ts';

const run = () => {};

test('readTasks reads each form', () => {
  const tasks = readTasks({
    consume: run,
    report: { every: '5m', run },
    nightly: { at: '03:00', timeZone: 'Europe/Berlin', run, catchUp: false },
    daily: { at: '23:59', run },
  });
  assert.deepEqual(
    Array.from(tasks.values(), ({ name, plan, catchUp }) => [name, plan, catchUp]),
    [
      ['consume', undefined, true],
      ['report', { every: 300_000 }, true],
      ['nightly', { at: 180, timeZone: 'Europe/Berlin' }, false],
      ['daily', { at: 1439, timeZone: 'UTC' }, true],
    ],
  );
});

for (const [what, task, reason] of [
  ['a number', 5, /^t: it must be a function, \{ every/],
  ['a class', class {}, /^t: it must be a function/],
  ['a generator', function* () {}, /^t: it must be a function/],
  ['no time', { run }, /^t: write either every or at/],
  ['two times', { every: '5m', at: '03:00', run }, /^t: write either every or at/],
  ['no run', { every: '5m' }, /^t: run must be a function/],
  ['an unknown key', { every: '5m', run, retries: 3 }, /^t: retries is no property/],
  ['a misspelt key', { every: '5m', run, catchup: false }, /^t: catchup is no property/],
  [
    'a value that is undefined',
    { at: '03:00', timeZone: undefined, run },
    /^t: timeZone is no property, or it has no value/,
  ],
  ['an interval that is a number', { every: 5000, run }, /^t: every must be a time such as '30s'/],
  ['an interval of 0', { every: '0s', run }, /^t: every must be a time/],
  ['an interval of a year', { every: '365d', run }, /^t: every must be a time/],
  ['cron', { every: '*/5 * * * *', run }, /^t: every must be a time/],
  ['an hour of 24', { at: '24:00', run }, /^t: at must be a time such as '03:00'/],
  ['seconds', { at: '03:00:00', run }, /^t: at must be a time/],
  ['an unknown zone', { at: '03:00', timeZone: 'Europe/Atlantis', run }, /^t: timeZone must be a name of the IANA/],
  ['an empty zone', { at: '03:00', timeZone: '', run }, /^t: timeZone must be/],
  ['a zone beside every', { every: '5m', timeZone: 'UTC', run }, /^t: timeZone belongs to at/],
  ['catchUp that is a text', { every: '5m', run, catchUp: 'no' }, /^t: catchUp must be true or false/],
] as const)
  test(`readTasks refuses ${what}`, () => {
    assert.throws(
      () => readTasks({ t: task }),
      (error: Error) => reason.test(error.message) || assert.fail(error.message),
    );
  });

for (const name of ['start', '1st', 'a b', 'ä', ''])
  test(`readTasks refuses the name ${JSON.stringify(name)}`, () => {
    assert.throws(() => readTasks({ [name]: run }), /a name has up to 64 letters/);
  });

test('a service file with a wrong task does not load, and the reason has its line', async (t) => {
  const file = `import { defineService } from '${GATEFOLD}';
export default defineService({
  background: {
    nightly: { at: '3 am', run() {} },
  },
});
`;
  const dir = createFolder(t, { 'service.js': file });
  const groups = createGroups({ dir, log: createMemoryLog().log });
  const [load] = await groups.loadAll({ skip: new Map(), onLoading: () => {} });
  assert.equal(load?.ok, false);
  assert.equal(load?.code, 'INVALID_SERVICE_FILE');
  assert.match(load?.error ?? '', /service\.js:4: background: nightly: at must be a time such as '03:00'/);
});
