// Runs examples/conduit in a real service with a real PostgreSQL and counts its connections. The tests of the claims in
// docs/DATABASES.md use it.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import postgres, { type Sql } from 'postgres';
import { type Postgres, startPostgres } from '../../examples/conduit/test/postgres.ts';
import type { Answer } from './cluster-client.ts';
import { type Service, startService, write } from './cluster-server.ts';

const ROOT = resolve(import.meta.dirname, '../..');
export const WORKERS = 2;
export const POOL = 3;
export const PATH = '/api/articles';

/** A controller with operations that hold a connection for a while. */
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

export interface Bench {
  readonly database: Postgres;
  readonly service: Service;
  readonly sql: Sql;
  /** The project's folder. */
  readonly project: string;
  /** Changes a file of the project, and waits until a generation with the change serves. */
  edit(path: string, change: (text: string) => string): Promise<void>;
  migrate(name: string, text: string): Promise<void>;
}

interface BenchOptions {
  /** The settings of PostgreSQL. */
  readonly settings?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export async function startBench(
  test: TestContext,
  { settings = [], env: given = {} }: BenchOptions = {},
): Promise<Bench> {
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
  // Both commands run at the same time. The lock lets only one of them apply the files.
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

/** How many connections each worker of the service has. */
export async function connectionsOf(sql: Sql): Promise<ReadonlyMap<string, number>> {
  const rows = await sql<{ name: string; count: number }[]>`
    select application_name as name, count(*)::integer from pg_stat_activity
    where application_name like 'conduit %' group by application_name`;
  return new Map(rows.map(({ name, count }) => [name, count]));
}

export interface Peak {
  connections: number;
  workers: number;
  ofOneWorker: number;
}

/** Counts the connections 50 times a second. */
export function watchConnections(sql: Sql): () => Promise<Peak> {
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

export async function until(service: Service, isSo: () => Promise<boolean>): Promise<void> {
  for (const end = performance.now() + service.patience(); !(await isSo()); await sleep(50))
    assert.ok(performance.now() < end, 'the awaited state of the service did not come in time');
}

/** Whether a refusal has the format of the example. */
export const isOfFormat = ({ status, body }: Answer) => status === 200 || Array.isArray(JSON.parse(body).errors.body);
