// Measures the store with real servers: six instances of two workers, a PostgreSQL with two standbys, and faults.
//
//   npm run build && node --import tsx bench/store.mjs [NAME …] [--changes 200]
//
// NAME is one of: revoke, issue, kills, lag, cut, rate, faults, size. Without a name, all run. On Node 22.18 and later,
// `--import tsx` is not needed. Prints one line for each result. Exits with 1 when a change was lost.
import { execFile, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import postgres from 'postgres';
import { storeAddressParser } from '../src/base/store-address.ts';
import { createRow, revokeRow } from '../src/callers/credentials/write/changes.ts';
import { createPostgresStore } from '../src/operate/store/postgres.ts';
import { updateRows } from '../src/operate/store/update.ts';
import { freePorts } from '../test/support/ports.ts';
import { startCluster, startProxy } from '../test/support/postgres-cluster.ts';

const ROOT = join(import.meta.dirname, '..');
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { changes: { type: 'string', default: '200' }, instances: { type: 'string', default: '6' } },
});
const CHANGES = Number(values.changes);
const wants = (name) => positionals.length === 0 || positionals.includes(name);
const root = mkdtempSync(join(tmpdir(), 'gatefold-bench-store-'));
const cleanups = [() => rmSync(root, { recursive: true, force: true })];
let lost = 0;

const percentile = (list, part) =>
  list.toSorted((a, b) => a - b)[Math.min(list.length - 1, Math.floor(part * list.length))];
const describe = (list) =>
  `p50 ${percentile(list, 0.5).toFixed(1)} ms, p99 ${percentile(list, 0.99).toFixed(1)} ms, worst ${Math.max(...list).toFixed(1)} ms`;
const say = (name, text) => process.stdout.write(`${name.padEnd(8)} ${text}\n`);

function openStore(url) {
  const address = storeAddressParser('/')(url);
  const store = createPostgresStore({ address, load: async () => postgres, name: 'bench' });
  cleanups.unshift(() => store.close());
  return store;
}

async function startInstances(url, count, env = {}) {
  const ports = await freePorts(count);
  return Promise.all(
    ports.map(async (port, index) => {
      const folder = mkdtempSync(join(root, `${index}-`));
      mkdirSync(join(folder, 'controllers'));
      mkdirSync(join(folder, 'data'));
      writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
      writeFileSync(
        join(folder, 'controllers/OrderController.js'),
        "export default class { static operations = { index: { access: 'application' } }; index() { return { pid: process.pid }; } }",
      );
      const child = spawn(process.execPath, [join(ROOT, 'dist/server.js')], {
        cwd: ROOT,
        env: {
          ...process.env,
          ...{ STORE: url(index), PORT: String(port), HOST: '127.0.0.1', WORKERS: '2', LOG_LEVEL: 'warn' },
          ...{ CONTROLLERS_DIR: join(folder, 'controllers'), DATA_DIR: join(folder, 'data') },
          ...env,
        },
        stdio: ['ignore', 'pipe', process.env.BENCH_LOG ? 'inherit' : 'ignore'],
      });
      cleanups.unshift(() => child.kill('SIGKILL'));
      await new Promise((resolve) => child.stdout.once('data', resolve));
      return { port, child };
    }),
  );
}

/** @returns the status, and the worker that answered */
function ask(port, token, agent) {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${token}` };
    const sent = request(
      { host: '127.0.0.1', port, path: '/api/order', headers, agent: agent ?? false },
      (response) => {
        let body = '';
        response.setEncoding('utf8').on('data', (text) => {
          body += text;
        });
        response.on('end', () =>
          resolve({ status: response.statusCode, pid: response.statusCode === 200 ? JSON.parse(body).pid : 0 }),
        );
      },
    );
    sent.on('error', (error) => resolve({ status: 0, pid: 0, error }));
    sent.end();
  });
}

/** Opens a connection to each worker of each instance. */
async function connectToWorkers(instances, token) {
  const targets = [];
  for (const { port } of instances) {
    const pids = new Set();
    for (let attempt = 0; pids.size < 2 && attempt < 200; attempt++) {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      const { pid } = await ask(port, token, agent);
      if (pids.has(pid)) agent.destroy();
      else {
        pids.add(pid);
        targets.push({ port, agent });
      }
    }
  }
  return targets;
}

async function addKeys(store, count) {
  const issued = Array.from({ length: count }, (_, index) =>
    createRow({ name: `key ${index}`, groups: '*' }, Date.now()),
  );
  await updateRows(store, [], (table) => {
    for (const { row } of issued) table.append(row);
  });
  return issued.map(({ token }) => token);
}

const revoke = (store, id) => updateRows(store, [id], (table) => revokeRow(table, id, Date.now()), 60_000);

function command(url, ...words) {
  const env = { ...process.env, STORE: url, CONTROLLERS_DIR: root };
  return new Promise((resolve) => {
    execFile(process.execPath, [join(ROOT, 'dist/cli.js'), ...words], { env, cwd: ROOT }, (error, out, err) =>
      resolve({ code: error === null ? 0 : 1, out, err }),
    );
  });
}

/** Sends requests until the answer is 401. @returns the time of that answer */
async function refusedAt({ port, agent }, token) {
  for (;;) {
    const { status } = await ask(port, token, agent);
    if (status === 401) return performance.now();
    await sleep(4);
  }
}

async function countNotRefused(instances, tokens) {
  let wrong = 0;
  for (const { port } of instances)
    for (const { token } of tokens) if ((await ask(port, token)).status !== 401) wrong++;
  return wrong;
}

async function allCopies(instances, tokens, patience = 10_000) {
  const begun = performance.now();
  while (performance.now() - begun < patience) {
    if ((await countNotRefused(instances, tokens)) === 0) return performance.now() - begun;
    await sleep(50);
  }
  return undefined;
}

function statusOf(pid, field) {
  try {
    return Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
  } catch {
    return 0;
  }
}
const parentOf = (pid) => statusOf(pid, 'PPid');
const memoryOf = (pid) => Math.round(statusOf(pid, 'VmRSS') / 1024);
const nameOf = (pid) => (readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('store-host') ? 'store-host' : 'worker');

const started = [];
async function cluster(standbys, ...settings) {
  const made = await startCluster(standbys, ...settings);
  started.push(made);
  const store = openStore(made.url());
  await store.init();
  return { ...made, store };
}

const steps = {
  async revoke() {
    const { url, store } = await cluster(2);
    const instances = await startInstances(() => url(), Number(values.instances));
    const [warm, ...tokens] = await addKeys(store, CHANGES + 1);
    await sleep(1500);
    const targets = await connectToWorkers(instances, warm.token);
    const inProcess = [];
    const byCommand = [];
    for (const [index, token] of tokens.entries()) {
      await Promise.all(targets.map(({ port, agent }) => ask(port, token.token, agent)));
      const isCommand = index < 30;
      if (isCommand) await command(url(), 'credentials', 'revoke', token.id);
      else await revoke(store, token.id);
      const confirmed = performance.now();
      const waiting = Promise.all(targets.map((target) => refusedAt(target, token.token)));
      const seen = Math.max(...(await waiting)) - confirmed;
      (isCommand ? byCommand : inProcess).push(Math.max(0, seen));
    }
    say('revoke', `${targets.length} workers, after the end of the command: ${describe(byCommand)}`);
    say('revoke', `${targets.length} workers, after the commit, with 12 pollers beside: ${describe(inProcess)}`);
  },

  async issue() {
    const { url, store } = await cluster(0);
    const instances = await startInstances(() => url(), Number(values.instances));
    let good = 0;
    const times = [];
    for (let count = 0; count < 500; count++) {
      const [token] = await addKeys(store, 1);
      const begun = performance.now();
      if ((await ask(instances[count % instances.length].port, token.token)).status === 200) good++;
      times.push(performance.now() - begun);
    }
    if (good < 500) lost += 500 - good;
    say('issue', `${good} of 500 new keys good at the first try on another instance: ${describe(times)}`);
  },

  async kills() {
    const made = await cluster(2);
    let [primary, next, last] = made.servers;
    for (const _ of [0]) {
      await primary.sql("alter system set synchronous_standby_names = 'ANY 1 (*)'");
      await primary.sql('select pg_reload_conf()');
    }
    const instances = await startInstances(() => made.url(), Number(values.instances));
    const tokens = await addKeys(made.store, CHANGES);
    let done = 0;
    const writing = (async () => {
      for (const { id } of tokens) {
        await revoke(made.store, id);
        done++;
        await sleep(10);
      }
    })();
    for (let kills = 0; kills < 5; kills++) {
      await sleep(500);
      await primary.kill();
      const received = async (server) =>
        BigInt(await server.sql("select pg_wal_lsn_diff(pg_last_wal_receive_lsn(), '0/0')::bigint"));
      if ((await received(last)) > (await received(next))) [next, last] = [last, next];
      await next.promote();
      await last.kill();
      await made.follow(last, next);
      await made.follow(primary, next);
      [primary, next, last] = [next, last, primary];
    }
    await writing;
    const took = await allCopies(instances, tokens, 30_000);
    if (took === undefined) lost += await countNotRefused(instances, tokens);
    say(
      'kills',
      `${done} changes through 5 kills with promotion: ${took === undefined ? `${lost} lost` : `0 lost, all instances checked ${Math.round(took)} ms after the last`}`,
    );
  },

  async lag() {
    const made = await cluster(1);
    const [primary, standby] = made.servers;
    const instances = await startInstances(() => made.url(), Number(values.instances));
    const tokens = await addKeys(made.store, CHANGES);
    while ((await standby.sql("select count(*) from gatefold.entry where space = 'keys'")) !== String(CHANGES))
      await sleep(50);
    await standby.sql("alter system set primary_conninfo = ''");
    await standby.sql('select pg_reload_conf()');
    await sleep(3000);
    for (const { id } of tokens) await revoke(made.store, id);
    await allCopies(instances, tokens);
    await primary.kill();
    await standby.promote();
    await sleep(3000);
    const inStore = [...(await made.store.read('keys')).entries.values()].filter(({ value }) =>
      value.includes('revoked_at'),
    );
    const wrong = await countNotRefused(instances, tokens);
    lost += CHANGES - inStore.length + wrong;
    say(
      'lag',
      `${CHANGES} revocations, standby 3 s behind promoted, after 3 s: ${CHANGES - inStore.length} missing in the store, ${wrong} accepted by an instance`,
    );
  },

  async cut() {
    const made = await cluster(0);
    const proxy = await startProxy(made.servers[0].port);
    cleanups.unshift(() => proxy.close());
    const instances = await startInstances(() => made.url([proxy]), 1);
    const [warm, ...tokens] = await addKeys(made.store, 51);
    await sleep(1500);
    proxy.cut();
    const agent = new Agent({ keepAlive: true });
    let errors = 0;
    const times = [];
    const end = performance.now() + 30_000;
    let next = 0;
    while (performance.now() < end) {
      const begun = performance.now();
      if ((await ask(instances[0].port, warm.token, agent)).status !== 200) errors++;
      times.push(performance.now() - begun);
      if (performance.now() > end - 29_000 + next * 500 && next < tokens.length)
        await revoke(made.store, tokens[next++].id);
      await sleep(5);
    }
    for (const { id } of tokens.slice(next)) await revoke(made.store, id);
    proxy.heal();
    const took = await allCopies(instances, tokens, 20_000);
    say(
      'cut',
      `30 s without a byte: ${errors} errors of ${times.length}, ${describe(times)}; complete ${took === undefined ? 'never' : `${Math.round(took)} ms`} after it`,
    );
  },

  async rate() {
    const made = await cluster(0);
    const instances = await startInstances(() => made.url(), 3);
    const issued = createRow({ name: 'limited', groups: '*', limit: '100/s' }, Date.now());
    await updateRows(made.store, [], (table) => table.append(issued.row));
    await sleep(1500);
    for (const shares of [
      [1 / 3, 1 / 3, 1 / 3],
      [0.8, 0.1, 0.1],
    ]) {
      await sleep(3000);
      const seconds = 30;
      const begun = performance.now();
      let [passed, sent] = [0, 0];
      await Promise.all(
        instances.map(async ({ port }, index) => {
          const agent = new Agent({ keepAlive: true, maxSockets: 4 });
          const open = [];
          for (let count = 0; performance.now() - begun < seconds * 1000; ) {
            const due = ((performance.now() - begun) / 1000) * 200 * shares[index];
            for (; count < due; count++) {
              sent++;
              open.push(ask(port, issued.token.token, agent).then(({ status }) => (passed += Number(status === 200))));
            }
            await sleep(5);
          }
          await Promise.all(open);
        }),
      );
      const right = 100 * seconds + 100;
      say(
        'rate',
        `100/s over 3 instances, ${shares.map((share) => Math.round(share * 100)).join(':')}, ${sent} sent: ${passed} passed, ${((100 * (passed - right)) / right).toFixed(2)} %`,
      );
    }
  },

  async size() {
    const made = await cluster(0);
    const tokens = [];
    while (tokens.length < 100_000) tokens.push(...(await addKeys(made.store, 10_000)));
    const begun = performance.now();
    const [{ port, child }] = await startInstances(() => made.url(), 1);
    const agent = new Agent({ keepAlive: true });
    const { status } = await ask(port, tokens[99_999].token, agent);
    if (status !== 200) lost++;
    say('size', `100,000 keys: first answer ${Math.round(performance.now() - begun)} ms after a start without a copy`);
    const live = [];
    const times = [];
    for (const { id, token } of tokens.slice(0, 20)) {
      await ask(port, token, agent);
      let isLive = false;
      await revoke(made.store, id);
      const confirmed = performance.now();
      const beside = (async () => {
        const other = new Agent({ keepAlive: true });
        while (!isLive) {
          const asked = performance.now();
          await ask(port, tokens[50_000].token, other);
          times.push(performance.now() - asked);
          await sleep(2);
        }
      })();
      live.push((await refusedAt({ port, agent }, token)) - confirmed);
      isLive = true;
      await beside;
      await sleep(500);
    }
    say('size', `a revocation is live: ${describe(live)}; requests meanwhile: ${describe(times)}`);
    const processes = readdirSync('/proc').filter((pid) => parentOf(pid) === child.pid);
    const memory = processes.map((pid) => `${nameOf(pid)} ${memoryOf(pid)} MiB`).sort();
    say('size', `supervisor ${memoryOf(child.pid)} MiB, ${memory.join(', ')}`);
  },

  async faults() {
    const made = await cluster(0);
    const [primary] = made.servers;
    const instances = await startInstances(() => made.url(), 1);
    const [warm] = await addKeys(made.store, 1);
    await sleep(1500);
    const agent = new Agent({ keepAlive: true });
    const refuse = (state) =>
      primary.sql(`create or replace function refuse() returns trigger language plpgsql as $$ begin raise sqlstate '${state}'; end $$;
        create or replace trigger refuse before update on gatefold.head execute function refuse()`);
    const phases = {
      quiet: async () => {},
      stopped: async () => primary.freeze(),
      'running again': async () => primary.thaw(),
      full: async () => refuse('53100'),
      'read-only': async () => refuse('25006'),
      killed: async () => primary.kill(),
      back: async () => primary.start(),
    };
    for (const [name, begin] of Object.entries(phases)) {
      await begin();
      let errors = 0;
      const times = [];
      for (const end = performance.now() + 6000; performance.now() < end; ) {
        const begun = performance.now();
        if ((await ask(instances[0].port, warm.token, agent)).status !== 200) errors++;
        times.push(performance.now() - begun);
        await sleep(2);
      }
      lost += errors;
      say('faults', `${name.padEnd(13)} ${errors} of ${times.length} requests lost, ${describe(times)}`);
    }
  },
};

try {
  for (const [name, step] of Object.entries(steps)) {
    if (!wants(name)) continue;
    await step();
    for (const cleanup of cleanups.splice(0, cleanups.length - 1)) await cleanup();
    for (const made of started.splice(0)) await made.close();
  }
} finally {
  for (const cleanup of cleanups) await cleanup();
  for (const made of started) await made.close();
}
process.exit(lost === 0 ? 0 : 1);
