// Tests the tasks of the built service: kills of its processes, edits during runs, and tasks that misbehave.
import assert from 'node:assert/strict';
import { renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { ask } from '../support/cluster-client.ts';
import { controller, createFolder, startService, write } from '../support/cluster-server.ts';
import { CONSUME, head, mostAtOnce, notedTimes, notesOf, readNotes, startWithTasks } from '../support/task-notes.ts';

// Each test has a service of its own, and waits for most of its time.
describe('tasks of a service', { concurrency: 4 }, () => {
  it('a start that throws is logged and made again, and the service serves', async (t) => {
    const { service, notes } = await startWithTasks(
      t,
      `start() { note('start'); if (globalThis.again === undefined) { globalThis.again = true; throw new Error('no database'); } }`,
    );
    assert.equal((await ask(service.port, '/api/test')).status, 200);
    await notedTimes(notes, 'start', 4);
    const failed = await service.logged('start-failed');
    assert.equal(failed.error, 'no database');
    assert.equal(failed.retry_in_ms, 1000);
  });

  it('a task that ignores its signal is killed at the end of the drain, and only then the new code starts it', async (t) => {
    const deaf = (n: number) =>
      `background: { async deaf() { note('deaf'); await new Promise((r) => setTimeout(r, 600_000)); }, v${n}() { return new Promise(() => {}); } }`;
    const { service, notes, edit } = await startWithTasks(t, deaf(1), { DRAIN_TIMEOUT: '3s' });
    const [first] = await notedTimes(notes, 'deaf', 1);
    edit(deaf(2));
    const interrupted = await service.logged('task-interrupted', ({ task }) => task === 'deaf');
    assert.equal(interrupted.worker, first?.pid);
    const [, second] = await notedTimes(notes, 'deaf', 2);
    assert.notEqual(second?.pid, first?.pid);
    assert.throws(() => process.kill(first?.pid ?? 0, 0), 'the old worker is gone');
  });

  it('after a kill -9 of its worker, a task starts in another', async (t) => {
    const { service, notes } = await startWithTasks(t, `background: { ${CONSUME} }`);
    const [first] = await notedTimes(notes, 'consume', 1);
    process.kill(first?.pid ?? 0, 'SIGKILL');
    const list = await notedTimes(notes, 'consume', 2);
    assert.notEqual(list[1]?.pid, first?.pid);
    await service.logged('task-interrupted', ({ task }) => task === 'consume');
  });

  it('after a kill -9 of the supervisor, the next service waits for the run of the orphaned worker', async (t) => {
    const text = `background: { async slow({ signal }) { note('slow'); await aborted(signal); await new Promise((r) => setTimeout(r, 3000)); note('slow-end'); } }`;
    const { service, notes, dir } = await startWithTasks(t, text);
    await notedTimes(notes, 'slow', 1);
    service.process.kill('SIGKILL');
    await service.exited;
    const again = await startService(t, { dir });
    const list = await notedTimes(notes, 'slow', 2);
    again.process.kill('SIGTERM');
    await again.exited;
    assert.equal(mostAtOnce(list, 'slow'), 1);
    assert.deepEqual(
      list.map(({ what }) => what),
      ['slow', 'slow-end', 'slow'],
    );
  });

  it('a run of a time that a kill interrupts is made again with its dueAt, and an edit repeats none', async (t) => {
    const slow = `every: '3s', async run({ dueAt }) { note('tick', dueAt); await new Promise((r) => setTimeout(r, 1200)); note('tick-end', dueAt); }`;
    const { service, notes, edit } = await startWithTasks(t, `background: { tick: { ${slow} } }`);
    const [first] = await notedTimes(notes, 'tick', 1);
    process.kill(first?.pid ?? 0, 'SIGKILL');
    const again = await notedTimes(notes, 'tick', 2);
    assert.ok(again[1]?.due === first?.due || (again[1]?.due ?? '') > (first?.due ?? ''));
    await service.logged('task-interrupted');
    const ends = () => readNotes(notes).filter(({ what }) => what === 'tick-end');
    for (let edits = 1; edits <= 3; edits++) {
      const seen = readNotes(notes).filter(({ what }) => what === 'tick').length;
      await notedTimes(notes, 'tick', seen + 1);
      edit(`background: { tick: { ${slow} } }, headers: { 'X-Edit': '${edits}' }`);
      await service.logged('generation-serving', ({ generation }) => Number(generation) > edits);
    }
    await notedTimes(notes, 'tick-end', ends().length + 2);
    const dues = ends().map(({ due }) => due);
    assert.equal(new Set(dues).size, dues.length, 'no time has ended twice');
    assert.equal(mostAtOnce(readNotes(notes).slice(1), 'tick') <= 1, true);
  });

  it('tasks that throw, hang or flood the log leave the service and other tasks alone', async (t) => {
    const { service, notes } = await startWithTasks(
      t,
      `background: {
      bad: { every: '1s', run() { throw new Error('boom'); } },
      reject: { every: '1s', async run() { throw undefined; } },
      hang: { every: '1s', run() { note('hang'); return new Promise(() => {}); } },
      early() { note('early'); },
      flood: { every: '1s', run({ log }) { for (let i = 0; i < 5000; i++) log.info('x'.repeat(500), { i }); note('flood'); } },
      tick: { every: '1s', run({ dueAt }) { note('tick', dueAt); } },
    }`,
    );
    await notedTimes(notes, 'tick', 5);
    await notedTimes(notes, 'flood', 2);
    await notedTimes(notes, 'early', 3);
    const list = readNotes(notes);
    assert.equal(list.filter(({ what }) => what === 'hang').length, 1);
    assert.equal((await ask(service.port, '/api/test')).status, 200);
    const failed = await service.logged('task-failed', ({ task }) => task === 'bad');
    assert.equal(failed.error, 'boom');
    await service.logged('task-failed', ({ task }) => task === 'reject');
    await service.logged(
      'task-failed',
      ({ task, error }) => task === 'early' && String(error).startsWith('it has returned'),
    );
    assert.equal(service.lines.filter(({ event, task }) => event === 'task-skipped' && task === 'hang').length, 1);
    assert.equal(service.lines.filter(({ event }) => event === 'worker-died').length, 0);
  });

  it('a task that blocks the event loop ends its worker, and starts again in another', async (t) => {
    const { service, notes } = await startWithTasks(
      t,
      `background: { async block() { note('block'); await 0; if (globalThis.blocked === undefined) { globalThis.blocked = 1; for (;;); } } }`,
    );
    await notedTimes(notes, 'block', 2);
    await service.logged('worker-died');
    await service.logged('worker-replaced');
    assert.equal((await ask(service.port, '/api/test')).status, 200);
  });

  it('a clock that is set forward and back, and the two changes of a year, give each day one run', async (t) => {
    const dir = createFolder(t, { 'TestController.js': controller('test') });
    const notes = notesOf(dir);
    const [ahead, preload] = [join(dirname(dir), 'ahead'), join(dirname(dir), 'preload.mjs')];
    // The rename lets no process read half a file, which would be the machine's own time.
    const setClock = (time: string) => {
      writeFileSync(`${ahead}.new`, String(Date.parse(time) - Date.now()));
      renameSync(`${ahead}.new`, ahead);
    };
    setClock('2026-03-28T01:00:00Z');
    const shifted = `import { readFileSync } from 'node:fs'; const now = Date.now;
    Date.now = () => now() + Number(readFileSync(${JSON.stringify(ahead)}, 'utf8'));`;
    writeFileSync(preload, shifted);
    write(
      dir,
      'service.js',
      `${head(notes)}export default defineService({ background: {
       nightly: { at: '02:30', timeZone: 'Europe/Berlin', run({ dueAt }) { note('night', dueAt); } },
       second: { every: '1s', run() { note('second'); } } } });\n`,
    );
    const service = await startService(t, { dir, env: { NODE_OPTIONS: `--import=${preload}` } });
    const seconds = async () =>
      void (await notedTimes(notes, 'second', readNotes(notes).filter(({ what }) => what === 'second').length + 6));
    const nights = () => readNotes(notes).flatMap(({ what, due }) => (what === 'night' ? [due] : []));
    // Tasks run before the first night is due, however long the start takes.
    await notedTimes(notes, 'second', 1);
    setClock('2026-03-28T01:29:57Z');
    await notedTimes(notes, 'night', 1);
    // At 02:00 the clocks go to 03:00, so 02:30 is 03:30.
    setClock('2026-03-29T01:29:57Z');
    await notedTimes(notes, 'night', 2);
    // The summer is made up for once.
    setClock('2026-10-25T00:00:00Z');
    await notedTimes(notes, 'night', 3);
    // At 03:00 the clocks go back to 02:00, so 02:30 comes twice.
    setClock('2026-10-25T00:29:57Z');
    await notedTimes(notes, 'night', 4);
    setClock('2026-10-25T01:29:57Z');
    await seconds();
    // Half an hour back: no second runs twice, and the next ones come when the clock is where it was.
    setClock('2026-10-25T01:00:00Z');
    await new Promise((resolve) => setTimeout(resolve, 3000));
    setClock('2026-10-26T01:29:57Z');
    await notedTimes(notes, 'night', 5);
    assert.deepEqual(nights(), [
      '2026-03-28T01:30:00.000Z',
      '2026-03-29T01:30:00.000Z',
      '2026-10-24T00:30:00.000Z',
      '2026-10-25T00:30:00.000Z',
      '2026-10-26T01:30:00.000Z',
    ]);
    service.process.kill('SIGTERM');
    await service.exited;
  });
});
