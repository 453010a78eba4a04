// Tests `api.run` of the test kit, `gatefold tasks`, and the first example of docs/TASKS.md.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { startTest } from '../../../src/api/testing.ts';
import { processName } from '../../../src/base/folder-lock.ts';
import { runGatefold } from '../../../src/operate/cli/commands.ts';
import { makeProject, runHere } from '../../support/command-bench.ts';
import { GATEFOLD } from '../../support/service.ts';

const PAGE = readFileSync(resolve(import.meta.dirname, '../../../docs/TASKS.md'), 'utf8');
const EXAMPLE = (/```ts\n\/\/ controllers\/service\.ts\n([\s\S]*?)```/.exec(PAGE)?.[1] ?? '').replace(
  "'gatefold'",
  `'${GATEFOLD}'`,
);

test('the example of TASKS.md loads; a test runs its tasks, and nothing else does', async (t) => {
  const root = makeProject(t, { 'controllers/service.ts': EXAMPLE });
  const api = await startTest({ controllers: join(root, 'controllers') });
  const messages = () => api.lines.flatMap(({ event, message }) => (event === 'task-info' ? [message] : []));
  assert.deepEqual(messages(), []);
  const dueAt = new Date('2026-11-24T02:00:00Z');
  await api.run('nightly', { dueAt });
  const line = api.lines.find(({ event }) => event === 'task-info');
  assert.deepEqual([line?.task, line?.of], ['nightly', dueAt.toISOString()]);
  await assert.rejects(api.run('weekly'), /No task weekly: the service file has consume, report, nightly/);
  const running = api.run('consume');
  await api.close();
  await running;
  assert.deepEqual(messages(), ['night', 'looks for work']);
});

test('api.run rejects with what the task throws', async (t) => {
  const source = `import { defineService } from '${GATEFOLD}';
    export default defineService({ background: { bad: { every: '5m', run() { throw new Error('boom'); } } } });`;
  const root = makeProject(t, { 'controllers/service.js': source });
  const api = await startTest({ controllers: join(root, 'controllers') });
  await assert.rejects(api.run('bad'), /boom/);
  await api.close();
});

test('gatefold tasks, routes and doctor run neither start nor a task', async (t) => {
  const source = `import { writeFileSync } from 'node:fs';
    import { defineService } from '${GATEFOLD}';
    const ran = () => writeFileSync(new URL('../ran', import.meta.url), '');
    export default defineService({ start: ran, background: { all: ran,
      nightly: { at: '03:00', timeZone: 'Europe/Berlin', run: ran },
      bad: { every: '5m', run: ran }, lost: { every: '1d', run: ran }, far: { every: '1d', run: ran } } });`;
  const root = makeProject(t, { 'controllers/service.js': source });
  const run = (...words: string[]) => runHere(runGatefold, words, { cwd: root });
  const listed = await run('tasks', '--json');
  assert.equal(listed.code, 0, listed.err);
  const { tasks } = JSON.parse(listed.out) as { tasks: Record<string, unknown>[] };
  assert.deepEqual(
    tasks.map(({ task, plan, state }) => [task, plan, state]),
    [
      ['all', 'all the time', 'new'],
      ['nightly', 'at 03:00 Europe/Berlin', 'new'],
      ['bad', 'every 300 s', 'new'],
      ['lost', 'every 86400 s', 'new'],
      ['far', 'every 86400 s', 'new'],
    ],
  );
  assert.match(String(tasks[1]?.next), /T0[12]:00:00\.000Z$/);
  assert.deepEqual(Object.keys(tasks[0] ?? {}), ['task', 'plan', 'state']);
  const DAY = 86_400_000;
  const worker = { process: processName(), machine: 'vm', pid: 7, startedAt: 0 };
  const records = {
    all: { running: worker },
    nightly: { last: { ...worker, startedAt: 1000, endedAt: 2000 } },
    bad: { last: { ...worker, endedAt: 3000, dueAt: 0, error: 'boom' } },
    lost: { running: { ...worker, process: '' }, accounted: 50_000 * DAY },
    // This machine cannot see whether the process of another one has ended.
    far: { running: { ...worker, process: '1-1-elsewhere' } },
  };
  writeFileSync(join(root, 'data/tasks.json'), JSON.stringify({ holder: '', tasks: records }));
  const { out } = await run('tasks');
  const lines = out
    .trimEnd()
    .split('\n')
    .map((line) => line.replaceAll(/ +/g, ' '));
  assert.deepEqual(
    lines.map((line) => line.replace(/next (?!2106)\S+/, 'next …')),
    [
      'all all the time runs began 1970-01-01T00:00:00.000Z vm/7',
      'nightly at 03:00 Europe/Berlin done began 1970-01-01T00:00:01.000Z next … vm/7',
      'bad every 300 s failed began 1970-01-01T00:00:00.000Z next … vm/7',
      'lost every 86400 s interrupted began 1970-01-01T00:00:00.000Z next 2106-11-25T00:00:00.000Z vm/7',
      'far every 86400 s runs began 1970-01-01T00:00:00.000Z next … vm/7',
    ],
  );
  const { tasks: again } = JSON.parse((await run('tasks', '--json')).out) as { tasks: Record<string, unknown>[] };
  const time = (ms: number) => new Date(ms).toISOString();
  assert.deepEqual(
    again.map(({ began, ended, due, where, error }) => [began, ended, due, where, error]),
    [
      [time(0), undefined, undefined, 'vm/7', undefined],
      [time(1000), time(2000), undefined, 'vm/7', undefined],
      [time(0), time(3000), time(0), 'vm/7', 'boom'],
      [time(0), undefined, undefined, 'vm/7', undefined],
      [time(0), undefined, undefined, 'vm/7', undefined],
    ],
  );
  await run('routes');
  await run('doctor');
  assert.ok(!existsSync(join(root, 'ran')));
});

test('gatefold tasks says that there are none, and refuses a service file that does not load', async (t) => {
  const root = makeProject(t);
  const run = () => runHere(runGatefold, ['tasks'], { cwd: root });
  assert.deepEqual(await run(), { code: 0, out: 'The service file has no tasks\n', err: '' });
  writeFileSync(join(root, 'controllers/service.js'), '\nthrow new Error("no luck");');
  const { code, out, err } = await run();
  assert.deepEqual([code, out], [1, '']);
  assert.match(err, /^gatefold tasks: \S+service\.js:2 does not load: Error: no luck\n$/);
});
