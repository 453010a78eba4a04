// Tests `start` and the tasks of the built service, with real processes. test/slow/tasks.slow.ts has kills and more.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { ask } from '../../support/cluster-client.ts';
import { controller, createFolder, startService, write } from '../../support/cluster-server.ts';
import { watchLoadedFiles } from '../../support/loaded-files.ts';
import { CONSUME, head, noted, notedTimes, notesOf, readNotes, startWithTasks } from '../../support/task-notes.ts';

/** Names of files of live/tasks/. */
const TASK_FILES = ['runner', 'task', 'task-host', 'lease'];

test('start runs once in each worker, its stop before close, and a background task in one worker', async (t) => {
  const { service, notes } = await startWithTasks(
    t,
    `start({ log }) { note('start'); log.info('warm', { task: 'x' }); return () => note('stop'); },
     close() { note('close'); },
     background: { ${CONSUME} }`,
  );
  await noted(notes, (list) => list.length >= 3);
  service.process.kill('SIGTERM');
  await service.exited;
  const list = readNotes(notes);
  const count = (what: string) => list.filter((note) => note.what === what).length;
  assert.deepEqual(['start', 'stop', 'close', 'consume', 'consume-end'].map(count), [2, 2, 2, 1, 1]);
  for (const { pid } of list.filter(({ what }) => what === 'start'))
    assert.deepEqual(
      list.filter((note) => note.pid === pid && /^st|^cl/.test(note.what)).map(({ what }) => what),
      ['start', 'stop', 'close'],
    );
  const line = service.lines.find(({ event }) => event === 'task-info');
  assert.deepEqual([line?.message, line?.task], ['warm', 'start']);
});

test('an edit moves a task to the new code when the old run has ended; a refused edit runs nothing', async (t) => {
  const { service, notes, edit } = await startWithTasks(t, `background: { ${CONSUME} }`, { WORKERS: '1' });
  await notedTimes(notes, 'consume', 1);
  edit(
    `start() { note('refused'); }, background: { t: { every: '5 minutes', run() { note('refused'); } },
     other() { note('refused'); }, ${CONSUME} }`,
  );
  await service.logged('generation-rejected', ({ error }) => String(error).includes('every must be a time'));
  assert.deepEqual(
    readNotes(notes).map(({ what }) => what),
    ['consume'],
  );
  edit(`background: { ${CONSUME}, async more({ signal }) { note('more'); await aborted(signal); } }`);
  const list = await notedTimes(notes, 'consume', 2);
  assert.deepEqual(
    list.filter(({ what }) => what.startsWith('consume')).map(({ what }) => what),
    ['consume', 'consume-end', 'consume'],
  );
  await notedTimes(notes, 'more', 1);
  edit('');
  await notedTimes(notes, 'consume-end', 2);
});

test('where the state cannot be kept, no task begins, and the log says why', async (t) => {
  const dir = createFolder(t, { 'TestController.js': controller('test') });
  const notes = notesOf(dir);
  write(dir, 'service.js', `${head(notes)}export default defineService({ background: { ${CONSUME} } });\n`);
  write(dirname(dir), 'data/tasks.json', '{ broken');
  const files = watchLoadedFiles(join(createFolder(t), 'loaded'));
  const service = await startService(t, { dir, env: { NODE_OPTIONS: files.nodeOptions, WORKERS: '1' } });
  const paused = await service.logged('tasks-paused');
  assert.match(String(paused.reason), /remove it \(tasks\.json\)/);
  assert.equal((await ask(service.port, '/api/test')).status, 200);
  assert.deepEqual(readNotes(notes), []);
  write(dirname(dir), 'data/tasks.json', '');
  await service.logged('tasks-resumed');
  await notedTimes(notes, 'consume', 1);
  assert.match(readFileSync(join(dirname(dir), 'data/tasks.json'), 'utf8'), /"consume"/);
  assert.ok(files.named(...TASK_FILES).length > 0, 'the next test looks for the right files');
  service.process.kill('SIGTERM');
  await service.exited;
});

test('a service without tasks loads no file of live/tasks/, and keeps no state', async (t) => {
  const files = watchLoadedFiles(join(createFolder(t), 'loaded'));
  const env = { NODE_OPTIONS: files.nodeOptions, WORKERS: '1' };
  const { service, dir } = await startWithTasks(t, `headers: { 'X-A': '1' }`, env);
  assert.equal((await ask(service.port, '/api/test')).status, 200);
  service.process.kill('SIGTERM');
  await service.exited;
  assert.deepEqual(files.named(...TASK_FILES), []);
  assert.equal(existsSync(join(dirname(dir), 'data/tasks.json')), false);
});

test('a worker that serves has loaded what runs a task, because npm may replace the package before the first run', async (t) => {
  const files = watchLoadedFiles(join(createFolder(t), 'loaded'));
  const env = { NODE_OPTIONS: files.nodeOptions, WORKERS: '1' };
  const { service } = await startWithTasks(t, `background: { daily: { every: '1d', run() {} } }`, env);
  assert.equal((await ask(service.port, '/api/test')).status, 200);
  assert.equal(files.named('task-host').length, 1);
});
