// Tests the tasks of three machines with one PostgreSQL: one of them runs the tasks, through kills, edits, and a time
// without the database.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { controller, createFolder, write } from '../support/folder.ts';
import { startProxy } from '../support/postgres-cluster.ts';
import { noPostgres, startOwnStore } from '../support/store-bench.ts';
import { run, startMachine } from '../support/store-machines.ts';
import { CONSUME, head, noted, notedTimes, notesOf, readNotes } from '../support/task-notes.ts';

describe('three machines with one database', { skip: noPostgres }, () => {
  it('run each task on one of them', async (test) => {
    const { url: direct } = await startOwnStore(test);
    const { port } = new URL(direct);
    const proxy = await startProxy(Number(port));
    test.after(() => proxy.close());
    const url = direct.replace(`:${port}`, `:${proxy.port}`);
    const dirs = [1, 2, 3].map(() => createFolder(test, { 'TestController.js': controller('test') }));
    const notes = notesOf(dirs[0] as string);
    const text = (more = '') =>
      `${head(notes)}export default defineService({ background: { ${CONSUME},
         tick: { every: '1s', run({ dueAt }) { note('tick', dueAt); } } } ${more} });\n`;
    for (const dir of dirs) write(dir, 'service.js', text());
    const machines = await Promise.all(dirs.map((dir) => startMachine(test, url, { dir })));
    const count = (what: string) => readNotes(notes).filter((note) => note.what === what).length;
    const last = (what: string) => readNotes(notes).findLast((note) => note.what === what);
    const more = async (ticks: number) => void (await notedTimes(notes, 'tick', count('tick') + ticks));
    await more(5);
    assert.equal(count('consume'), 1);
    const listed = await Promise.all(machines.map(({ env }) => run(env, 'tasks', '--json')));
    for (const { out } of listed) {
      const { tasks } = JSON.parse(out) as { tasks: { task: string; state: string; where: string; next?: string }[] };
      assert.deepEqual(
        tasks.map(({ task }) => task),
        ['consume', 'tick'],
      );
      assert.equal(tasks[0]?.state, 'runs');
      assert.match(tasks[0]?.where ?? '', new RegExp(`/${last('consume')?.pid}$`));
      assert.ok(Date.parse(tasks[1]?.next ?? '') > Date.parse('2026-01-01'));
    }

    // A worker is killed in the middle of its task.
    process.kill(last('consume')?.pid ?? 0, 'SIGKILL');
    await notedTimes(notes, 'consume', 2);
    await more(3);

    // The database is away: the signal is aborted, nothing runs, and the machines serve.
    proxy.cut();
    await notedTimes(notes, 'consume-end', 1);
    const ticks = count('tick');
    await sleep(15_000);
    assert.ok(count('tick') <= ticks + 1, 'no run begins without the lease');
    assert.equal(count('consume'), 2);
    for (const machine of machines)
      assert.equal((await fetch(`http://127.0.0.1:${machine.port}/api/test`)).status, 200);
    proxy.heal();
    await notedTimes(notes, 'consume', 3);
    await more(3);

    // Each machine gets new code. The supervisor of the machine that runs the tasks is killed, and another machine continues.
    for (const dir of dirs) write(dir, 'service.js', text(`, headers: { 'X-Edit': '1' }`));
    for (const machine of machines) await machine.logged('generation-serving', ({ generation }) => generation === 2);
    await more(3);
    const runner = last('consume')?.pid;
    const owner = machines.find(({ lines }) =>
      lines.some(({ pid, event }) => pid === runner && event === 'credentials-loaded'),
    );
    assert.ok(owner);
    const killedAt = Date.now();
    owner.process.kill('SIGKILL');
    await noted(notes, (list) =>
      list.some((note) => note.what === 'consume' && note.at > killedAt && note.pid !== runner),
    );
    await more(3);
    // The others stop one after the other, and the last one runs the tasks.
    const [next, rest] = machines.filter((machine) => machine !== owner);
    next?.process.kill('SIGTERM');
    await next?.exited;
    await more(3);
    rest?.process.kill('SIGTERM');
    await rest?.exited;

    const list = readNotes(notes);
    const dues = list.filter(({ what }) => what === 'tick').map(({ due }) => due);
    assert.equal(new Set(dues).size, dues.length, 'no time has run twice');
    let open = 0;
    const killed = 2;
    for (const { what } of list) {
      if (what === 'consume') open++;
      if (what === 'consume-end') open--;
      assert.ok(open <= 1 + killed);
    }
  });
});
