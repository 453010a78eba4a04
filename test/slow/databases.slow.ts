// The claims of docs/DATABASES.md, each against a real PostgreSQL, with examples/conduit in a real service under load:
// edits, generations that drain, a restart of the database, migrations, a worker that dies in a transaction.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import postgres, { type Sql } from 'postgres';
import { noPostgres, type Postgres, startPostgres } from '../../examples/conduit/test/postgres.ts';
import { type Answer, ask, startLoad } from '../support/cluster-client.ts';
import { type Service, startService, write } from '../support/cluster-server.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const WORKERS = 2;
const POOL = 3;
const PATH = '/api/articles';

/** Operations that hold a connection for a while. */
const PROBE = `
import { HttpError, type Operations } from 'gatefold';
import { sql } from '../lib/database.ts';
export default class ProbeController {
  static operations: Operations<ProbeController> = { '*': { access: 'anyone' } };
  async 'GET nap'() { await sql\`select pg_sleep(1)\`; return {}; }
  async 'GET wait'() { await sql\`select pg_advisory_xact_lock_shared(1)\`; return {}; }
  'GET refused'() {
    return sql.begin(async (transaction) => {
      await transaction\`insert into users (username, email, password) values ('half', 'half@example.com', '')\`;
      throw new HttpError(409, 'REFUSED', 'not this');
    });
  }
  'GET transaction'() {
    return sql.begin(async (transaction) => {
      await transaction\`insert into users (username, email, password) values ('half', 'half@example.com', '')\`;
      await transaction\`select pg_sleep(30)\`;
    });
  }
}`;

interface Bench {
  readonly database: Postgres;
  readonly service: Service;
  readonly sql: Sql;
  /** The folder of the project. */
  readonly project: string;
  /** Changes a file of the project, and waits until a generation with the change serves. */
  edit(path: string, change: (text: string) => string): Promise<void>;
  migrate(name: string, text: string): Promise<void>;
}

interface BenchOptions {
  /** Settings of PostgreSQL. */
  readonly settings?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

async function startBench(test: TestContext, { settings = [], env: given = {} }: BenchOptions = {}): Promise<Bench> {
  const project = realpathSync(mkdtempSync(join(tmpdir(), 'gatefold-database-')));
  test.after(() => rmSync(project, { recursive: true, force: true }));
  cpSync(join(ROOT, 'examples/conduit'), project, {
    recursive: true,
    filter: (path) => !path.includes('node_modules'),
  });
  mkdirSync(join(project, 'node_modules'));
  symlinkSync(ROOT, join(project, 'node_modules/gatefold'));
  for (const name of ['postgres', 'tsx'])
    symlinkSync(join(ROOT, 'node_modules', name), join(project, 'node_modules', name));
  const dir = join(project, 'controllers');
  write(dir, 'ProbeController.ts', PROBE);

  const database = await startPostgres(...settings);
  test.after(() => database.close());
  const env = {
    ...{ DATABASE_URL: database.url, TOKEN_SECRET: 'of the test', WORKERS: String(WORKERS), POOL: String(POOL) },
    ...{ OPERATION_TIMEOUT: '120s', DRAIN_TIMEOUT: '120s', ...given },
  };
  const migrate = async (name?: string, text = '') => {
    if (name !== undefined) write(join(project, 'migrations'), name, text);
    const node = [...(process.features.typescript ? [] : ['--import', 'tsx']), 'lib/migrate.ts'];
    await promisify(execFile)(process.execPath, node, { cwd: project, env: { ...process.env, ...env } });
  };
  // Two commands at once: the lock lets one of them apply the files.
  await Promise.all([migrate(), migrate()]);
  const sql = postgres(database.url, { max: 1, onnotice() {}, backoff: () => 0.1 });
  const service = await startService(test, { dir, env });
  test.after(() => sql.end());

  async function edit(path: string, change: (text: string) => string): Promise<void> {
    const before = service.lines.length;
    write(project, path, change(readFileSync(join(project, path), 'utf8')));
    await service.logged('generation-serving', (line) => service.lines.indexOf(line) >= before);
  }

  return { database, service, sql, project, edit, migrate };
}

/** Connections of the service, by worker. */
async function connectionsOf(sql: Sql): Promise<ReadonlyMap<string, number>> {
  const rows = await sql<{ name: string; count: number }[]>`
    select application_name as name, count(*)::integer from pg_stat_activity
    where application_name like 'conduit %' group by application_name`;
  return new Map(rows.map(({ name, count }) => [name, count]));
}

interface Peak {
  connections: number;
  workers: number;
  ofOneWorker: number;
}

/** Looks at the connections 50 times a second. */
function watchConnections(sql: Sql): () => Promise<Peak> {
  const peak: Peak = { connections: 0, workers: 0, ofOneWorker: 0 };
  let isStopped = false;
  const watching = (async () => {
    while (!isStopped) {
      const counts = [...(await connectionsOf(sql)).values()];
      peak.connections = Math.max(
        peak.connections,
        counts.reduce((sum, count) => sum + count, 0),
      );
      peak.workers = Math.max(peak.workers, counts.length);
      peak.ofOneWorker = Math.max(peak.ofOneWorker, ...counts);
      await sleep(20);
    }
  })();
  return async () => {
    isStopped = true;
    await watching;
    return peak;
  };
}

async function until(service: Service, isSo: () => Promise<boolean>): Promise<void> {
  for (const end = performance.now() + service.patience(); !(await isSo()); await sleep(50))
    assert.ok(performance.now() < end, 'this has not come');
}

const isOfFormat = ({ status, body }: Answer) => status === 200 || Array.isArray(JSON.parse(body).errors.body);

describe('a service on PostgreSQL', { skip: noPostgres }, () => {
  it('takes 20 edits under load: no request is lost, and no pool is larger than POOL', async (test) => {
    const { service, sql, edit } = await startBench(test);
    const load = startLoad(test, { port: service.port, connections: 8, mode: 'kept-alive', path: PATH });
    await load.until(() => true);
    const stopWatching = watchConnections(sql);
    for (let i = 0; i < 20; i++)
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
    assert.ok(peak.connections <= 3 * POOL * WORKERS, 'more than two generations drain');
    await until(service, async () => (await connectionsOf(sql)).size <= WORKERS);
  });

  it('keeps the connections of each generation that drains, until its last answer', async (test) => {
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
    assert.ok(counts.size >= generations, 'an old generation has gone before its answers');
    assert.ok(connections >= waiting.length && connections <= POOL * WORKERS * (1 + generations));
    await gate`select pg_advisory_unlock(1)`;
    const statuses = (await Promise.all(waiting)).map(({ status }) => status);
    assert.deepEqual(new Set(statuses), new Set([200]));
    await until(service, async () => (await connectionsOf(sql)).size <= WORKERS);
  });

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
    assert.equal(signedIn.status, 503, 'a user is nobody while the database is away');
    await edit('lib/database.ts', (text) => `${text}// while the database is away\n`);
    // A query at the top level of a module is the mistake that the page names.
    const asks = 'controllers/ArticlesController.ts';
    write(project, asks, `${readFileSync(join(project, asks), 'utf8')}\nawait sql\`select 1\`;\n`);
    await service.logged('generation-rejected');
    await load.until(({ status }) => status === 503);
    const rejected = service.lines.length;
    await database.start();
    const started = performance.now();
    await load.until(({ status }) => status === 200);
    const took = performance.now() - started;
    // The clock tries it again, too, after a pause that grows.
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

  it('takes a migration in three steps under load: add, use, drop', async (test) => {
    const { service, edit, migrate } = await startBench(test);
    const load = startLoad(test, { port: service.port, connections: 6, mode: 'kept-alive', path: PATH });
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

  it('fails with a migration in one step, from the rename to the new code', async (test) => {
    const { service, sql, edit } = await startBench(test);
    await sql`alter table users rename column bio to about`;
    assert.equal((await ask(service.port, PATH)).status, 500);
    await edit('lib/users.ts', (text) => text.replaceAll(/\bu\.bio\b/g, 'u.about as bio'));
    assert.equal((await ask(service.port, PATH)).status, 200);
  });

  it('rolls a transaction back when it throws, and when its worker is killed', async (test) => {
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

  it('does not stop a query when the time of its operation is over', async (test) => {
    const { database, service, sql } = await startBench(test, { env: { OPERATION_TIMEOUT: '500ms' } });
    const gate = postgres(database.url, { max: 1 });
    test.after(() => gate.end());
    await gate`select pg_advisory_lock(1)`;
    assert.equal((await ask(service.port, '/api/probe/wait')).status, 503);
    const waiting = await sql`select from pg_stat_activity where wait_event_type = 'Lock'`;
    assert.equal(waiting.length, 1);
    await gate`select pg_advisory_unlock(1)`;
  });

  it('answers 503 where the pools together are larger than the database allows', async (test) => {
    const { service } = await startBench(test, {
      settings: ['max_connections=5', 'superuser_reserved_connections=0', 'max_wal_senders=0'],
    });
    const slow = Array.from({ length: 2 * POOL * WORKERS }, () => ask(service.port, '/api/probe/nap'));
    const answers = await Promise.all(slow);
    assert.ok(answers.some(({ status }) => status === 200));
    assert.ok(answers.some(({ status }) => status === 503));
    for (const answer of answers) assert.ok(isOfFormat(answer), answer.body);
  });
});
