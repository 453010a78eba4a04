// Runs the recipe of docs/CHANNELS.md: events reach the pages of two machines through one PostgreSQL, also over an edit
// and lost connections.
import assert from 'node:assert/strict';
import { setMaxListeners } from 'node:events';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import { createFolder, startService, write } from '../support/cluster-server.ts';
import { followEvents } from '../support/event-source.ts';
import { noPostgres, startStore } from '../support/store-bench.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const PAGE = readFileSync(join(ROOT, 'docs/CHANNELS.md'), 'utf8');
const RECIPE = /```ts\n\/\/ lib\/everywhere\.ts\n([\s\S]*?)```/.exec(PAGE)?.[1] ?? '';
const TABLES = /```sql\n([\s\S]*?)```/.exec(PAGE)?.[1] ?? '';

const controller = (version: number) => `
import { type ControllerParams, type EventStream, eventStream } from 'gatefold';
import { announce, sql, type TaskEvent, tasks } from '../lib/everywhere.ts';
export default class TaskController {
  async 'POST'(data: TaskEvent) { await sql.begin((db) => announce(data, db)); return { pid: process.pid, version: ${version} }; }
  'GET live'(_: undefined, { lastEventId: after, signal }: ControllerParams): EventStream<TaskEvent | null> { return eventStream(tasks.subscribe({ after, signal })); }
}`;
const SERVICE = `import { defineService } from 'gatefold';
import { relay } from '../lib/everywhere.ts';
export default defineService({ start: relay });`;

describe('two machines with one database', { skip: noPostgres }, () => {
  it('publish on both what one announces', async (t) => {
    const { url } = await startStore(t);
    const sql = postgres(url, { max: 1, onnotice() {} });
    t.after(() => sql.end());
    await sql.unsafe(TABLES);
    const machines = await Promise.all(
      ['a', 'b'].map((MACHINE) => {
        const dir = createFolder(t, { 'TaskController.ts': controller(1), 'service.ts': SERVICE });
        const root = dirname(dir);
        for (const folder of ['lib', 'node_modules']) mkdirSync(join(root, folder));
        writeFileSync(join(root, 'lib/everywhere.ts'), RECIPE);
        symlinkSync(ROOT, join(root, 'node_modules/gatefold'));
        for (const name of ['postgres', 'tsx'])
          symlinkSync(join(ROOT, 'node_modules', name), join(root, 'node_modules', name));
        return startService(t, { dir, cwd: root, env: { MACHINE, DATABASE_URL: url } });
      }),
    );
    for (const { lines } of machines)
      assert.deepEqual(
        lines.filter(({ level }) => level === 'error'),
        [],
      );
    // Each machine has its row when its first worker has started.
    while ((await sql`select from task_relays`).count < 2) await sleep(20);
    const stop = new AbortController();
    t.after(() => stop.abort());
    setMaxListeners(0, stop.signal);
    const seen = machines.map((): number[] => []);
    let open = 0;
    const following = Promise.all(
      machines.map(({ port }, i) =>
        followEvents(
          `http://127.0.0.1:${port}/api/task/live`,
          stop.signal,
          ({ data }) => void seen[i]?.push((JSON.parse(data) as { id: number }).id),
          () => void open++,
          true,
        ),
      ),
    );
    const until = async (isDone: () => boolean) => {
      while (!isDone()) await Promise.race([sleep(10), following]);
    };
    await until(() => open >= 2);
    let last = 0;
    const [a, b] = machines;
    assert.ok(a && b);
    const confirmed: number[] = [];
    const announce = async (port: number): Promise<void> => {
      const body = JSON.stringify({ id: ++last, title: 'x' });
      const headers = { 'Content-Type': 'application/json', Connection: 'close' };
      const answer = await fetch(`http://127.0.0.1:${port}/api/task`, { method: 'POST', body, headers });
      assert.equal(answer.status, 200, await answer.clone().text());
      confirmed.push(JSON.parse(body).id);
    };
    const reached = () => until(() => seen.every((list) => list.at(-1) === last));
    for (let i = 0; i < 10; i++) await announce(i % 2 === 0 ? a.port : b.port);
    await reached();

    write(b.dir, 'TaskController.ts', controller(2));
    for (let i = 0; i < 10; i++) await announce(a.port);
    await b.logged('generation-serving', ({ generation }) => generation === 2);
    for (let i = 0; i < 10; i++) await announce(a.port);
    await reached();

    // The connections of all workers are lost, and come back.
    await sql`select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname = current_database()`;
    const again = (): Promise<void> => announce(b.port).catch(again);
    await again();
    await again();
    await reached();
    stop.abort();
    await following;
    // An event whose transaction was cut off behind its publish comes twice.
    for (const list of seen)
      assert.deepEqual(
        [...new Set(list)].filter((id) => confirmed.includes(id)),
        confirmed,
      );
    for (const { lines } of machines)
      assert.deepEqual(
        lines.filter(({ event }) => event === 'start-failed'),
        [],
      );
  });
});
