// Measures what a change of the credentials table costs, by the number of keys: the time from the end of a command to
// the first 401 of a revoked key, the first answer of a new key, the longest request of a known key meanwhile, and the
// CPU time of the service. Also measures the start and the memory of a worker. All files are on the disk of TMPDIR.
//   node bench/keys.mjs [--node PATH] [--dist DIST] [--keys 100,100000] [--rounds 5] [--store postgres://…] [--machines 3]
// With --store, the keys are in that database, whose tables are removed before and after. Each machine is a service with
// a folder of its own. A revocation is live when all machines refuse the key. The other figures are of one machine.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { scratch } from './fixtures.mjs';
import { startProcess, stopProcess, treeCpuSeconds, treeMemory } from './processes.mjs';
import { markdown, median } from './report.mjs';

const { values } = parseArgs({
  options: {
    node: { type: 'string', default: process.execPath },
    dist: { type: 'string', default: resolve(import.meta.dirname, '../dist') },
    keys: { type: 'string', default: '100,100000' },
    rounds: { type: 'string', default: '5' },
    store: { type: 'string' },
    machines: { type: 'string', default: '1' },
  },
});
const rounds = Number(values.rounds);
/** Milliseconds between two requests of the known key. */
const PAUSE = 5;
const STORE_KEYS = 'a'.repeat(43);
/** The length of a window without a change, in milliseconds. The service reads the largest table in this time. */
const CALM = 2000;

const rows = [];
for (const count of values.keys.split(',').map(Number)) rows.push(await measure(count));
const HEAD = [
  ...['keys', 'table', 'start', 'supervisor and worker', 'revocation live (median, longest)'],
  ...["a new key's first answer", 'longest request (no change, change)', 'CPU of a change'],
];
process.stdout.write(`${markdown(HEAD, rows)}\n`);

/** @param {number} count @returns {Promise<string[]>} */
async function measure(count) {
  const data = join(scratch, `keys-${count}`);
  const controllers = join(data, 'controllers');
  mkdirSync(controllers, { recursive: true });
  writeFileSync(join(data, 'package.json'), '{"type":"module"}');
  writeFileSync(join(controllers, 'OrderController.js'), 'export default class { GET() { return 1; } }\n');
  const issue = (/** @type {string} */ name) =>
    command(data, false, 'credentials', 'issue', '--name', name, '--groups', '*');
  const known = issue('known').token;
  const doomed = Array.from({ length: rounds }, () => issue('doomed'));
  fill(join(data, 'production.json'), count);
  if (values.store !== undefined) {
    await emptyStore();
    command(data, true, 'store', 'init');
    command(data, true, 'store', 'import');
  }
  const begun = performance.now();
  const { service, url } = await startService(data, settings(data));
  const pid = /** @type {number} */ (service.pid);
  const start = performance.now() - begun;
  const others = [];
  for (let machine = 2; machine <= Number(values.machines); machine++) {
    const folder = `${data}-machine-${machine}`;
    mkdirSync(folder, { recursive: true });
    others.push(await startService(data, { ...settings(data), DATA_DIR: folder }));
  }
  const urls = [url, ...others.map((other) => other.url)];
  /** @param {string} token @returns {Promise<number>} */
  const ask = async (token, at = url) => {
    const response = await fetch(at, { headers: { Authorization: `Bearer ${token}` } });
    await response.arrayBuffer();
    return response.status;
  };
  if ((await ask(known)) !== 200) throw new Error('the known key is refused');
  const memory = treeMemory(pid, 'VmRSS');

  /** Sends requests of the known key during some work. @param {() => Promise<unknown>} work */
  async function watch(work) {
    let [longest, isDone] = [0, false];
    const done = work().finally(() => {
      isDone = true;
    });
    while (!isDone) {
      const sent = performance.now();
      if ((await ask(known)) !== 200) throw new Error('the known key is refused');
      longest = Math.max(longest, performance.now() - sent);
      await sleep(PAUSE);
    }
    await done;
    return longest;
  }

  /** @type {Record<'live' | 'first' | 'calm' | 'changed' | 'cpu', number[]>} */
  const found = { live: [], first: [], calm: [], changed: [], cpu: [] };
  for (const { id, token } of doomed) {
    const calm = await watch(() => sleep(CALM));
    const ended = inBackground(data, 'revoke', id);
    const change = await watch(async () => {
      await ended;
      const returned = performance.now();
      await Promise.all(
        urls.map(async (each) => {
          while ((await ask(token, each)) !== 401);
        }),
      );
      found.live.push(performance.now() - returned);
      await sleep(CALM / 2);
    });
    found.calm.push(calm);
    found.changed.push(change);
    const cpu = treeCpuSeconds(pid);
    await inBackground(data, 'issue', '--name', 'quiet', '--groups', '*');
    await sleep(CALM);
    found.cpu.push((treeCpuSeconds(pid) - cpu) * 1000);
    const fresh = command(data, true, 'credentials', 'issue', '--name', 'new', '--groups', '*').token;
    const sent = performance.now();
    if ((await ask(fresh, urls.at(-1))) !== 200) throw new Error('the new key is refused');
    found.first.push(performance.now() - sent);
  }
  for (const each of [service, ...others.map((other) => other.service)]) await stopProcess(each);
  if (values.store !== undefined) await emptyStore();
  const ms = (/** @type {number[]} */ numbers) => `${median(numbers).toFixed(0)} ms`;
  return [
    count.toLocaleString('en'),
    `${(statSync(join(data, 'production.json')).size / 1e6).toFixed(1)} MB`,
    `${(start / 1000).toFixed(1)} s`,
    `${(memory / 1e6).toFixed(0)} MB`,
    `${ms(found.live)}, ${Math.max(...found.live).toFixed(0)} ms`,
    ms(found.first),
    `${ms(found.calm)}, ${ms(found.changed)}`,
    ms(found.cpu),
  ];
}

/**
 * Starts the service of a machine, and resolves when it listens.
 *
 * @param {string} cwd
 * @param {Record<string, string>} env
 */
async function startService(cwd, env) {
  const service = startProcess(values.node, [join(values.dist, 'server.js')], {
    ...{ cwd, stdio: ['ignore', 'pipe', 'inherit'] },
    env: { .../** @type {Record<string, string>} */ (process.env), ...env, PORT: '0', WORKERS: '1' },
  });
  for await (const line of createInterface({ input: /** @type {any} */ (service.stdout) }))
    return { service, url: `http://127.0.0.1:${/:(\d+)$/.exec(line)?.[1]}/api/order` };
  throw new Error('the service has ended');
}

/** @param {string} data @param {boolean} isShared whether the keys are in the store */
function settings(data, isShared = values.store !== undefined) {
  return {
    ...{ DATA_DIR: data, CONTROLLERS_DIR: join(data, 'controllers'), HOST: '127.0.0.1', LOG_LEVEL: 'error' },
    ...(isShared && values.store !== undefined ? { STORE: values.store, STORE_KEY: STORE_KEYS } : {}),
  };
}

/** @param {string} data @param {boolean} isShared @param {...string} args @returns {{ id: string, token: string }} */
function command(data, isShared, ...args) {
  const words = [join(values.dist, 'cli.js'), ...args, '--json'];
  const env = { ...process.env, ...settings(data, isShared) };
  const { stdout, stderr, status } = spawnSync(values.node, words, { env });
  if (status !== 0) throw new Error(String(stderr));
  return JSON.parse(String(stdout));
}

async function emptyStore() {
  const { default: postgres } = await import('postgres');
  const sql = postgres(/** @type {string} */ (values.store), { onnotice: () => {} });
  await sql`drop schema if exists gatefold cascade`;
  await sql.end();
}

/** Resolves when the command has ended. @param {string} data @param {...string} args */
function inBackground(data, ...args) {
  const child = startProcess(values.node, [join(values.dist, 'cli.js'), 'credentials', ...args], {
    env: { .../** @type {Record<string, string>} */ (process.env), ...settings(data) },
    stdio: 'ignore',
  });
  return new Promise((done) => child.once('exit', done));
}

/** Puts rows that nobody uses before and behind those of the table. @param {string} path @param {number} count */
function fill(path, count) {
  const { production } = JSON.parse(readFileSync(path, 'utf8'));
  const half = Math.max(0, Math.floor((count - production.length) / 2));
  const others = (/** @type {string} */ prefix) =>
    Array.from({ length: half }, (_, i) => ({
      id: `${prefix}${String(i).padStart(11, '0')}`,
      name: `application ${i}`,
      hash: `sha256:${'A'.repeat(43)}`,
      groups: ['Order'],
      created_at: '2026-01-01T00:00:00.000Z',
    }));
  const texts = [...others('a'), ...production, ...others('b')].map((row) => JSON.stringify(row));
  writeFileSync(path, `{"production":[\n${texts.join(',\n')}\n]}\n`);
}
