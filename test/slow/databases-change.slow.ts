// Checks claims of docs/DATABASES.md on a real PostgreSQL: a restart of the database, migrations, and transactions
// whose worker or time limit ends.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import postgres from 'postgres';
import { noPostgres } from '../../examples/conduit/test/postgres.ts';
import { ask, startLoad } from '../support/cluster-client.ts';
import { isOfFormat, PATH, startBench, until } from '../support/database-bench.ts';
import { write } from '../support/folder.ts';

describe('a service on a changing PostgreSQL', { skip: noPostgres }, () => {
  it('answers 503 in its own format while the database restarts, and loses no worker', async (test) => {
    const { database, service, project, edit } = await startBench(test);
    const statuses = new Map<number, number>();
    const load = startLoad(test, {
      ...{ port: service.port, connections: 8, mode: 'kept-alive', path: PATH, pause: 5 },
      check(answer) {
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
        if (answer.status === 503 && !/^retry-after: \d+\r?$/im.test(answer.headers)) return 'no Retry-After';
        return [200, 503].includes(answer.status) && isOfFormat(answer) ? undefined : `${answer.status} ${answer.body}`;
      },
    });
    await load.until(({ status }) => status === 200);
    const url = `http://127.0.0.1:${service.port}/api/user`;
    const registered = await fetch(`${url}s`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ user: { username: 'ann', email: 'ann@example.com', password: 'secret' } }),
    });
    const { user } = (await registered.json()) as { user: { token: string } };
    await database.stop();
    await load.until(({ status }) => status === 503);
    const signedIn = await fetch(url, { headers: { authorization: `Token ${user.token}` } });
    assert.equal(signedIn.status, 503, 'a signed-in request gets 503 while the database is stopped');
    await edit('lib/database.ts', (text) => `${text}// while the database is away\n`);
    // docs/DATABASES.md calls a query at the top level of a module a mistake.
    const asks = 'controllers/ArticlesController.ts';
    write(project, asks, `${readFileSync(join(project, asks), 'utf8')}\nawait sql\`select 1\`;\n`);
    await service.logged('generation-rejected');
    await load.until(({ status }) => status === 503);
    const rejected = service.lines.length;
    await database.start();
    const started = performance.now();
    await load.until(({ status }) => status === 200);
    const took = performance.now() - started;
    // The service also tries the group again by itself, after growing pauses.
    service.process.kill('SIGHUP');
    await service.logged('generation-serving', (line) => service.lines.indexOf(line) >= rejected);
    const { failures } = await load.stop();
    test.diagnostic(`${JSON.stringify([...statuses])}; the first answer ${Math.round(took)} ms after the start`);
    assert.deepEqual(failures, []);
    assert.equal((await ask(service.port, PATH)).status, 200);
    assert.deepEqual(
      service.lines.filter(({ event }) => event === 'worker-died'),
      [],
    );
    const codes = new Set(
      service.lines.filter(({ event }) => event === 'request-failed').map((line) => line.error_cause_code),
    );
    assert.ok(codes.has('ECONNREFUSED'), [...codes].join());
  });

  it('loses no request during a migration in three steps: add, use, drop', async (test) => {
    const { service, edit, migrate } = await startBench(test);
    const load = startLoad(test, { port: service.port, connections: 6, mode: 'kept-alive', path: PATH, pause: 5 });
    await load.until(() => true);
    await migrate('002-add-about.sql', 'alter table users add column about text; update users set about = bio;');
    await sleep(300);
    await edit('lib/users.ts', (text) =>
      text.replaceAll(/\bu\.bio\b/g, 'u.about as bio').replace('username, bio,', 'username, about as bio,'),
    );
    await sleep(300);
    await migrate('003-drop-bio.sql', 'alter table users drop column bio;');
    await sleep(300);
    assert.deepEqual((await load.stop()).failures, []);
  });

  it('answers 500 after a column rename until the new code serves', async (test) => {
    const { service, sql, edit } = await startBench(test);
    await sql`alter table users rename column bio to about`;
    assert.equal((await ask(service.port, PATH)).status, 500);
    await edit('lib/users.ts', (text) => text.replaceAll(/\bu\.bio\b/g, 'u.about as bio'));
    // An old worker accepts connections until it has read the order to drain.
    await until(service, async () => (await ask(service.port, PATH)).status === 200);
  });

  it('rolls back a transaction that throws or whose worker is killed', async (test) => {
    const { service, sql } = await startBench(test);
    assert.equal((await ask(service.port, '/api/probe/refused')).status, 409);
    assert.deepEqual([...(await sql`select from users`)], []);
    const lost = assert.rejects(ask(service.port, '/api/probe/transaction'));
    let worker: number | undefined;
    await until(service, async () => {
      const [row] = await sql<{ name: string }[]>`
        select application_name as name from pg_stat_activity where query like 'select pg_sleep(30)%'`;
      worker = row && Number(row.name.split(' ')[1]);
      return worker !== undefined;
    });
    process.kill(worker as number, 'SIGKILL');
    await lost;
    await service.logged('worker-replaced');
    await sql`select pg_terminate_backend(pid) from pg_stat_activity where query like 'select pg_sleep(30)%'`;
    assert.deepEqual([...(await sql`select from users`)], []);
    assert.equal((await ask(service.port, PATH)).status, 200);
  });

  it('does not cancel a query when its operation times out', async (test) => {
    const { database, service, sql } = await startBench(test, { env: { OPERATION_TIMEOUT: '500ms' } });
    const gate = postgres(database.url, { max: 1 });
    test.after(() => gate.end());
    await gate`select pg_advisory_lock(1)`;
    assert.equal((await ask(service.port, '/api/probe/wait')).status, 503);
    const waiting = () => sql`select from pg_stat_activity where wait_event_type = 'Lock'`;
    await until(service, async () => (await waiting()).length === 1);
    await gate`select pg_advisory_unlock(1)`;
  });
});
