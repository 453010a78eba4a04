// Runs the pool of `pg` in docs/DATABASES.md against a real PostgreSQL that ends its connections.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import pg from 'pg';
import { noPostgres, startPostgres } from '../examples/conduit/test/postgres.ts';

const root = resolve(import.meta.dirname, '..');
const page = readFileSync(join(root, 'docs/DATABASES.md'), 'utf8');
const section = page.slice(page.indexOf('## With `pg`'));
const POOL = /```ts\n\/\/ lib\/database\.ts\n([\s\S]*?)```/.exec(section)?.[1];
const FILES = {
  'package.json': '{ "name": "notes", "type": "module" }',
  'lib/database.ts': POOL,
  'controllers/service.ts': `import { defineService, ErrorReply } from 'gatefold';
    import { isAway, pool } from '../lib/database.ts';
    export default defineService({
      close: () => pool.end(),
      formatError: ({ message, cause }) =>
        isAway(cause) ? new ErrorReply(503, { message: 'away' }, { 'Retry-After': '2' }) : { message },
    });`,
  'controllers/NoteController.ts': `import { inTransaction, pool } from '../lib/database.ts';
    export default class NoteController {
      async 'GET'(): Promise<{ text: string }[]> { return (await pool.query('select text from notes order by text')).rows; }
      async 'GET slow'(): Promise<boolean> { await pool.query('select pg_sleep(100)'); return true; }
      /** The second statement waits for a lock of the test. */
      async 'POST'({ text }: { text: string }): Promise<boolean> {
        return inTransaction(async (client) => {
          await client.query('insert into notes values ($1)', [text]);
          await client.query('select pg_advisory_xact_lock(1)');
          if (text === 'refused') throw new Error('no such note');
          return true;
        });
      }
    }`,
};

/** Starts the built service with two workers. */
async function start(t, url) {
  const work = mkdtempSync(join(import.meta.dirname, 'work-'));
  for (const [name, text] of Object.entries(FILES)) {
    mkdirSync(join(work, dirname(name)), { recursive: true });
    writeFileSync(join(work, name), text);
  }
  mkdirSync(join(work, 'node_modules'));
  symlinkSync(root, join(work, 'node_modules/gatefold'));
  symlinkSync(join(root, 'node_modules/tsx'), join(work, 'node_modules/tsx'));
  const service = spawn(process.execPath, [join(root, 'dist/server.js')], {
    env: {
      ...process.env,
      PORT: '0',
      HOST: '127.0.0.1',
      WORKERS: '2',
      DATABASE_URL: url,
      NODE_TEST_CONTEXT: undefined,
    },
    ...{ cwd: work, stdio: ['ignore', 'pipe', 'pipe'] },
  });
  t.after(async () => {
    service.kill();
    if (service.exitCode === null) await once(service, 'exit');
    rmSync(work, { recursive: true, force: true });
  });
  const events = [];
  createInterface({ input: service.stderr }).on('line', (line) => {
    if (line.startsWith('{')) events.push(JSON.parse(line).event);
  });
  const [line] = await once(createInterface({ input: service.stdout }), 'line');
  const send = async (path = '', body) => {
    const headers = { 'Content-Type': 'application/json' };
    const post = body && { method: 'POST', headers, body: JSON.stringify(body) };
    const response = await fetch(`http://127.0.0.1:${/:(\d+)$/.exec(line)[1]}/api/note${path}`, post);
    return { status: response.status, data: await response.json() };
  };
  return { events, send };
}

test('the pool of pg survives a database that ends its connections', { skip: noPostgres }, async (t) => {
  const database = await startPostgres();
  t.after(() => database.close());
  const admin = new pg.Client(database.url);
  admin.on('error', () => {});
  await admin.connect();
  t.after(() => admin.end());
  await admin.query('create table notes (text text primary key)');
  const { events, send } = await start(t, database.url);
  const others = "from pg_stat_activity where pid <> pg_backend_pid() and application_name like 'huddle %'";
  const waitFor = async (sql, count) => {
    while (Number((await admin.query(sql)).rows[0].count) < count);
  };
  const end = () => admin.query(`select pg_terminate_backend(pid) ${others}`);
  const texts = async () => (await send()).data.map(({ text }) => text);

  // Idle connections. The next queries open others, or find that they are gone.
  for (let round = 0; round < 5; round++) {
    await Promise.all(Array.from({ length: 10 }, () => send()));
    await end();
  }
  while ((await send()).status !== 200);

  // A query that is under way.
  const slow = send('/slow');
  await waitFor(`select count(*) ${others} and query like '%pg_sleep%' and state = 'active'`, 1);
  await end();
  assert.equal((await slow).status, 503);
  while ((await send()).status !== 200);

  // A transaction that is under way leaves no half of it.
  await admin.query('select pg_advisory_lock(1)');
  const half = send('', { text: 'half' });
  await waitFor(`select count(*) ${others} and wait_event = 'advisory'`, 1);
  await end();
  assert.equal((await half).status, 503);
  await admin.query('select pg_advisory_unlock(1)');
  while ((await send()).status !== 200);
  assert.equal((await send('', { text: 'refused' })).status, 500);
  assert.equal((await send('', { text: 'whole' })).status, 200);
  assert.deepEqual(await texts(), ['whole']);

  // One worker is replaced for each error that nobody hears.
  const faults = ['uncaught-exception', 'worker-faulty', 'worker-died', 'replacement-rejected'];
  assert.deepEqual(
    events.filter((event) => faults.includes(event)),
    [],
  );
});
