// Checks claims of docs/DATABASES.md on a real PostgreSQL: how many connections a service has during edits under load,
// while generations drain, and when the database allows fewer.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import postgres from 'postgres';
import { noPostgres } from '../../examples/conduit/test/postgres.ts';
import { type Answer, ask, startLoad } from '../support/cluster-client.ts';
import {
  connectionsOf,
  isOfFormat,
  PATH,
  POOL,
  startBench,
  until,
  WORKERS,
  watchConnections,
} from '../support/database-bench.ts';

describe('a service with connection pools on PostgreSQL', { skip: noPostgres }, () => {
  it('loses no request and exceeds no pool size during 10 edits under load', async (test) => {
    const { service, sql, edit } = await startBench(test);
    const load = startLoad(test, { port: service.port, connections: 12, mode: 'kept-alive', path: PATH, pause: 10 });
    await load.until(() => true);
    const stopWatching = watchConnections(sql);
    for (let i = 0; i < 10; i++)
      await edit(
        i % 2 === 0 ? 'controllers/ArticlesController.ts' : 'lib/database.ts',
        (text) => `${text}// edit ${i}\n`,
      );
    const { answers, failures } = await load.stop();
    const peak = await stopWatching();
    test.diagnostic(`${answers} answers; at most ${peak.connections} connections of ${peak.workers} workers`);
    assert.deepEqual(failures, []);
    assert.ok(answers > 500, String(answers));
    assert.equal(peak.ofOneWorker, POOL);
    assert.ok(peak.connections <= 3 * POOL * WORKERS, 'at most two generations drain');
    await until(service, async () => (await connectionsOf(sql)).size <= WORKERS);
  });

  it('keeps the connections of a draining generation until its last answer', async (test) => {
    const { database, service, sql, edit } = await startBench(test);
    const gate = postgres(database.url, { max: 1 });
    test.after(() => gate.end());
    await gate`select pg_advisory_lock(1)`;
    const waiting: Promise<Answer>[] = [];
    const generations = 3;
    for (let i = 0; i < generations; i++) {
      for (let j = 0; j < POOL; j++) waiting.push(ask(service.port, '/api/probe/wait'));
      await until(service, async () => {
        const [row] = await sql<[{ count: number }]>`
          select count(*)::integer from pg_stat_activity where wait_event_type = 'Lock'`;
        return row.count === waiting.length;
      });
      await edit('lib/database.ts', (text) => `${text}// edit ${i}\n`);
    }
    const counts = await connectionsOf(sql);
    const connections = [...counts.values()].reduce((sum, count) => sum + count, 0);
    test.diagnostic(`${connections} connections of ${counts.size} workers`);
    assert.ok(counts.size >= generations, 'each old generation runs until its answers');
    assert.ok(connections >= waiting.length && connections <= POOL * WORKERS * (1 + generations));
    await gate`select pg_advisory_unlock(1)`;
    const statuses = (await Promise.all(waiting)).map(({ status }) => status);
    assert.deepEqual(new Set(statuses), new Set([200]));
    await until(service, async () => (await connectionsOf(sql)).size <= WORKERS);
  });

  it('answers 503 when its pools together exceed the connections of the database', async (test) => {
    // Two connections are left: fewer than the pool of one worker, so it does not matter which worker gets the
    // requests.
    const { database, service, sql } = await startBench(test, {
      settings: ['max_connections=4', 'superuser_reserved_connections=0', 'max_wal_senders=0'],
    });
    const other = postgres(database.url, { max: 1 });
    test.after(() => other.end());
    await Promise.all([sql`select pg_advisory_lock(1)`, other`select 1`]);
    const statuses: number[] = [];
    const waiting = Array.from({ length: 2 * POOL * WORKERS }, async () => {
      const answer = await ask(service.port, '/api/probe/wait');
      statuses.push(answer.status);
      return answer;
    });
    // The lock keeps all connections busy until the database has refused one more.
    await until(service, async () => statuses.includes(503));
    assert.ok(!statuses.includes(200));
    await sql`select pg_advisory_unlock(1)`;
    const answers = await Promise.all(waiting);
    assert.ok(answers.some(({ status }) => status === 200));
    for (const answer of answers) assert.ok(isOfFormat(answer), answer.body);
  });
});
