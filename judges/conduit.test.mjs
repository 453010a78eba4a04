// Runs the official test collection of the RealWorld specification by newman. The built service serves examples/conduit
// with a new PostgreSQL. The repository does not contain the collection: CONDUIT_COLLECTION names its file, or the file
// is ../shared/realworld/collection.json beside the checkout.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { noPostgres, startPostgres } from '../examples/conduit/test/postgres.ts';

const root = resolve(import.meta.dirname, '..');
const collection = process.env.CONDUIT_COLLECTION ?? resolve(root, '../shared/realworld/collection.json');
const skip = existsSync(collection) ? noPostgres : `there is no collection at ${collection}`;
const run = promisify(execFile);

test('examples/conduit passes the official collection, run by newman', { skip }, async (t) => {
  const work = mkdtempSync(join(import.meta.dirname, 'work-'));
  cpSync(join(root, 'examples/conduit'), work, { recursive: true, filter: (path) => !path.includes('node_modules') });
  mkdirSync(join(work, 'node_modules'));
  symlinkSync(root, join(work, 'node_modules/gatefold'));
  for (const name of ['postgres', 'tsx'])
    symlinkSync(join(root, 'node_modules', name), join(work, 'node_modules', name));

  const postgres = await startPostgres();
  const env = {
    ...process.env,
    ...{ DATABASE_URL: postgres.url, TOKEN_SECRET: 'of the judge', PORT: '0', HOST: '127.0.0.1', WORKERS: '2' },
    ...{ LOG_LEVEL: 'warn', CONTROLLERS_DIR: join(work, 'controllers'), DATA_DIR: join(work, 'data') },
    NODE_TEST_CONTEXT: undefined,
  };
  const { stdout } = await run(process.execPath, ['--import', 'tsx', 'lib/migrate.ts'], { cwd: work, env });
  assert.equal(stdout, 'applied 001-tables.sql\n');

  const service = spawn(process.execPath, [join(root, 'dist/server.js')], {
    ...{ env, cwd: work, stdio: ['ignore', 'pipe', 'inherit'] },
  });
  t.after(async () => {
    service.kill();
    await once(service, 'exit');
    await postgres.close();
    rmSync(work, { recursive: true, force: true });
  });
  let url;
  for await (const line of createInterface({ input: service.stdout })) {
    url = /http:\/\/\S+/.exec(line)?.[0];
    if (url !== undefined) break;
  }

  const variables = Object.entries({
    APIURL: `${url}/api`,
    USERNAME: 'judge',
    EMAIL: 'judge@example.com',
    PASSWORD: 'password',
  });
  const args = ['run', collection, '--reporters', 'json', '--reporter-json-export', join(work, 'report.json')];
  const globals = variables.flatMap(([name, value]) => ['--global-var', `${name}=${value}`]);
  const newman = join(import.meta.dirname, 'node_modules/newman/bin/newman.js');
  await run(process.execPath, [newman, ...args, ...globals]).catch((error) =>
    assert.equal(error.code, 1, error.stderr),
  );

  const { stats, failures } = JSON.parse(readFileSync(join(work, 'report.json'), 'utf8')).run;
  const complaints = failures.map(({ source, error }) => `${source?.name}: ${error.test ?? error.message}`);
  assert.deepEqual(complaints, []);
  assert.ok(stats.assertions.total >= 300, `${stats.assertions.total} assertions`);
  t.diagnostic(`${stats.requests.total} requests, ${stats.assertions.total} assertions`);
});
