// Runs the recipes of docs/TASKS.md with the packages of others and a real PostgreSQL. No job of pg-boss is lost over 20
// edits and a kill.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import PgBoss from 'pg-boss';
import postgres from 'postgres';
import { noPostgres, startPostgres } from '../examples/conduit/test/postgres.ts';

const root = resolve(import.meta.dirname, '..');
const page = readFileSync(join(root, 'docs/TASKS.md'), 'utf8');
const recipe = (name) => new RegExp(`\`\`\`ts\\n// ${name}/service\\.ts\\n([\\s\\S]*?)\`\`\``).exec(page)?.[1];
/** The jobs that wait at most, so that jobs come until the last edit, and the queue is empty soon after it. */
const WAITING = 10;
const EDITS = 20;

/** Starts the built service with a recipe, and files of `lib`. */
async function start(t, source, lib = {}) {
  const work = mkdtempSync(join(import.meta.dirname, 'work-'));
  for (const folder of ['controllers', 'lib', 'node_modules']) mkdirSync(join(work, folder));
  symlinkSync(root, join(work, 'node_modules/gatefold'));
  for (const name of ['postgres', 'tsx'])
    symlinkSync(join(root, 'node_modules', name), join(work, 'node_modules', name));
  writeFileSync(join(work, 'package.json'), '{ "name": "tasks", "type": "module" }');
  for (const [name, text] of Object.entries(lib)) writeFileSync(join(work, 'lib', name), text);
  const path = join(work, 'controllers/service.ts');
  const edit = (text) => {
    writeFileSync(`${path}~`, text);
    renameSync(`${path}~`, path);
  };
  edit(source);
  const env = {
    PORT: '0',
    HOST: '127.0.0.1',
    WORKERS: '2',
    CONTROLLERS_DIR: join(work, 'controllers'),
    DATA_DIR: join(work, 'data'),
  };
  const service = spawn(process.execPath, [join(root, 'dist/server.js')], {
    env: { ...process.env, ...env, NODE_TEST_CONTEXT: undefined },
    ...{ cwd: work, stdio: ['ignore', 'ignore', 'pipe'] },
  });
  const lines = [];
  let rest = '';
  service.stderr.setEncoding('utf8').on('data', (text) => {
    const parts = (rest + text).split('\n');
    rest = parts.pop();
    for (const part of parts) if (part.startsWith('{')) lines.push(JSON.parse(part));
  });
  t.after(async () => {
    service.kill();
    if (service.exitCode === null) await once(service, 'exit');
    rmSync(work, { recursive: true, force: true });
  });
  const until = async (what, isDone) => {
    for (let i = 0; i < 1200; i++) {
      if (await isDone()) return;
      await sleep(100);
    }
    assert.fail(`${what}: ${JSON.stringify(lines.slice(-5))}`);
  };
  return { lines, edit, until, work };
}

test('pg-boss loses no job over 20 edits and a kill', { skip: noPostgres }, async (t) => {
  const database = await startPostgres();
  t.after(() => database.close());
  const sent = join(mkdtempSync(join(import.meta.dirname, 'work-')), 'sent');
  t.after(() => rmSync(join(sent, '..'), { recursive: true, force: true }));
  const lib = `import { appendFileSync } from 'node:fs';
    import PgBoss from 'pg-boss';
    export const boss = new PgBoss(${JSON.stringify(database.url)});
    boss.on('error', () => {});
    export async function send(job: { data: { n: number } }) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      appendFileSync(${JSON.stringify(sent)}, job.data.n + ' ' + process.pid + '\\n');
    }`;
  // A job of the killed worker starts again after this maintenance.
  const boss = new PgBoss({ connectionString: database.url, maintenanceIntervalSeconds: 5 });
  boss.on('error', () => {});
  // A queue that does not stop keeps the process of a failed test.
  t.after(() => boss.stop({ graceful: false }));
  await boss.start();
  await boss.createQueue('mail', { name: 'mail', retryLimit: 20, expireInSeconds: 5 });
  const source = recipe('boss').replace("'mail', (", "'mail', { pollingIntervalSeconds: 0.5 }, (");
  const { lines, edit, until } = await start(t, source, { 'boss.ts': lib });
  const done = () =>
    existsSync(sent)
      ? readFileSync(sent, 'utf8')
          .trim()
          .split('\n')
          .map((line) => line.split(' ').map(Number))
      : [];
  let jobs = 0;
  let isEditing = true;
  const sending = (async () => {
    for (; isEditing; await sleep(100)) if (jobs < done().length + WAITING) await boss.send('mail', { n: jobs++ });
  })();
  t.after(() => {
    isEditing = false;
  });
  await until('the first job', () => done().length > 0);
  for (let count = 1; count <= EDITS; count++) {
    const generations = lines.filter(({ event }) => event === 'generation-serving').length;
    edit(`${source}// ${count}\n`);
    await until('the edit', () => lines.filter(({ event }) => event === 'generation-serving').length > generations);
    if (count !== EDITS / 2) continue;
    const before = done().length;
    await until('a job', () => done().length > before);
    process.kill(done().at(-1)[1], 'SIGKILL');
  }
  isEditing = false;
  await sending;
  await until('all jobs', () => new Set(done().map(([n]) => n)).size === jobs);
  t.diagnostic(`${jobs} jobs, ${EDITS} edits, ${done().length - jobs} repeats`);
});

test('LISTEN and NOTIFY reach the task', { skip: noPostgres }, async (t) => {
  const database = await startPostgres();
  t.after(() => database.close());
  const lib = `import postgres from 'postgres';\nexport const jobs = postgres(${JSON.stringify(database.url)}, { onnotice() {} });\n`;
  const { lines, until, edit } = await start(t, recipe('listen'), { 'database.ts': lib });
  const sql = postgres(database.url, { max: 1 });
  t.after(() => sql.end());
  const heard = (payload) => lines.filter((line) => line.message === 'job' && line.payload === payload).length;
  await until('the task listens', async () => {
    await sql.notify('jobs', 'first');
    return heard('first') > 0;
  });
  edit(`${recipe('listen')}// edited\n`);
  await until('the edit', () => lines.filter(({ event }) => event === 'generation-serving').length > 1);
  await until('the new code listens', async () => {
    await sql.notify('jobs', 'second');
    return heard('second') > 0;
  });
});

test('croner runs in one worker', async (t) => {
  const source = recipe('cron').replace('0 30 8 * * 1', '* * * * * *');
  assert.ok(source.includes("'* * * * * *'"));
  const { lines, until } = await start(t, source);
  const mondays = () => lines.filter(({ message }) => message === 'monday');
  await until('five seconds', () => mondays().length >= 5);
  assert.equal(new Set(mondays().map(({ pid }) => pid)).size, 1);
});
