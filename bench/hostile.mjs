// Measures the service under attack: its peak of memory, and the answers that a well-behaved client gets meanwhile.
// Each row of attacks.mjs runs against a new service with two workers and the default settings. `node bench/hostile.mjs
// [--only NAME,…] [--seconds N] [--node PATH]`: without options about nine minutes. Linux only.
import { spawn, spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ATTACKS, Skip } from './attacks.mjs';
import { credentials, scratch } from './fixtures.mjs';
import { startProcess, stopProcess, treePids } from './processes.mjs';
import { markdown } from './report.mjs';

const HERE = import.meta.dirname;
const SECONDS = 15;
const WARM_UP_MS = 1500;

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    seconds: { type: 'string' },
    node: { type: 'string', default: process.execPath },
  },
});
const only = values.only?.split(',');
const most = Number(values.seconds ?? 60);

const HEAD = [
  'attack',
  'how',
  'supervisor',
  'largest worker',
  'lost',
  'p50',
  'p99',
  'longest turn',
  'workers died',
  'what the attack got',
];
/** @type {string[][]} */
const table = [];
for (const attack of ATTACKS) {
  if (only !== undefined && !only.includes(attack.name)) continue;
  const cells = await measure(attack).catch((error) => {
    const [line = ''] = error.message.split('\n');
    return ['', '', '', '', '', '', '', error instanceof Skip ? `skipped: ${line}` : `failed: ${line}`];
  });
  table.push([attack.name, attack.how, ...cells]);
  process.stderr.write(`${[attack.name, ...cells].join(' | ')}\n`);
}
process.stdout.write(`${markdown(HEAD, table)}\n`);

/** @param {import('./attacks.mjs').Attack} attack @returns {Promise<string[]>} */
async function measure(attack) {
  const service = await start(attack);
  try {
    const seconds = Math.min(most, attack.seconds ?? SECONDS);
    await visit(service.port, () => pause(WARM_UP_MS));
    let got = '';
    const figures = await visit(service.port, async () => {
      got = await attack.run({ port: service.port, seconds });
    });
    const { deaths, dropped, longestTurn } = await readMetrics(service.opsPort);
    const [supervisor = 0, ...workers] = treePids(service.pid).map(highestMemory);
    const lost = Object.entries(figures.lost).map(([why, times]) => `${times} ${why}`);
    return [
      `${supervisor} MB`,
      `${Math.max(...workers)} MB`,
      `${lost.join(' + ') || '0'} of ${figures.requests}`,
      `${figures.p50.toFixed(1)} ms`,
      `${figures.p99.toFixed(0)} ms`,
      `${Math.round(longestTurn * 1000)} ms`,
      String(deaths),
      [got, dropped === 0 ? '' : `${dropped} log lines dropped`].filter(Boolean).join('; '),
    ];
  } finally {
    await service.stop();
  }
}

/** @typedef {{ requests: number, lost: Record<string, number>, p50: number, p99: number }} Figures */

/**
 * Runs the well-behaved client while `work` runs, and returns its figures.
 *
 * @param {number} port
 * @param {() => Promise<void>} work
 * @returns {Promise<Figures>}
 */
async function visit(port, work) {
  const visitor = spawn(process.execPath, [join(HERE, 'visitor.mjs'), String(port)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let text = '';
  visitor.stdout.on('data', (chunk) => {
    text += chunk;
  });
  const gone = new Promise((resolve) => visitor.once('close', resolve));
  try {
    await work();
  } finally {
    visitor.stdin.end();
  }
  await gone;
  return JSON.parse(text);
}

/** @param {import('./attacks.mjs').Attack} attack */
async function start({ env = {}, descriptors, log }) {
  const [port, opsPort] = [await freePort(), await freePort()];
  const folder = mkdtempSync(join(scratch, 'hostile-'));
  const unmount = log === 'full disk' ? mountFull(folder) : () => {};
  const data = log === 'full disk' ? join(folder, 'data') : credentials(1).folder;
  const out = log === 'unread pipe' ? 'pipe' : openSync(join(folder, 'log'), 'a');
  const command = [values.node, join(HERE, '../dist/server.js')];
  if (descriptors !== undefined) command.unshift('prlimit', `--nofile=${descriptors}:${descriptors}`);
  const child = startProcess(/** @type {string} */ (command[0]), command.slice(1), {
    env: {
      PATH: process.env.PATH ?? '',
      HOST: '127.0.0.1',
      PORT: String(port),
      OPS_PORT: String(opsPort),
      WORKERS: '2',
      CONTROLLERS_DIR: join(HERE, 'fixtures/hostile'),
      DATA_DIR: data,
      ...env,
    },
    stdio: ['ignore', 'pipe', out],
  });
  if (typeof out === 'number') closeSync(out);
  const stop = async () => {
    await stopProcess(child);
    unmount();
  };
  try {
    await new Promise((resolve, reject) => {
      const fail = () =>
        reject(new Error(`the service ended: ${typeof out === 'number' ? readFileSync(join(folder, 'log')) : ''}`));
      child.once('exit', fail);
      // The rest of the log is ignored: it may be longer than a string can be.
      child.stdout?.once('data', () => resolve(child.off('exit', fail)));
    });
  } catch (error) {
    await stop();
    throw error;
  }
  return { port, opsPort, pid: /** @type {number} */ (child.pid), stop };
}

/** Makes a full file system of 1 MiB with a table of credentials and a log. @param {string} folder */
function mountFull(folder) {
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder]);
  if (status !== 0) throw new Skip('mounting is not allowed here');
  mkdirSync(join(folder, 'data'));
  for (const name of ['production.json', 'identity-providers.json'])
    writeFileSync(join(folder, 'data', name), readFileSync(join(credentials(1).folder, name)), { mode: 0o600 });
  const filler = openSync(join(folder, 'filler'), 'w');
  try {
    for (;;) writeSync(filler, Buffer.alloc(4096));
  } catch {
    // The disk is full, as it should be.
  }
  closeSync(filler);
  const unmount = () => void spawnSync('umount', ['-l', folder]);
  process.once('exit', unmount);
  return unmount;
}

/** @param {number} opsPort */
async function readMetrics(opsPort) {
  await pause(WARM_UP_MS); // Workers report once a second.
  const text = await (await fetch(`http://127.0.0.1:${opsPort}/metrics`)).text();
  const read = (/** @type {string} */ name) =>
    Array.from(text.matchAll(new RegExp(`^${name}(?:{.*})? ([\\d.e-]+)`, 'gm')), ([, value]) => Number(value));
  const sum = (/** @type {string} */ name) => read(name).reduce((a, b) => a + b, 0);
  return {
    deaths: sum('gatefold_worker_deaths_total'),
    dropped: sum('gatefold_log_lines_dropped_total'),
    longestTurn: Math.max(...read('nodejs_eventloop_lag_max_seconds')),
  };
}

/** Returns the peak of a process's memory in MB. @param {number} pid */
function highestMemory(pid) {
  return Math.round(Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1]) / 1024);
}

/** @param {number} ms */
function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Returns a free port below the range that the system uses for outgoing connections. @returns {Promise<number>} */
function freePort() {
  return new Promise((resolve) => {
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    const server = createServer().once('error', () => resolve(freePort()));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(port)));
  });
}
