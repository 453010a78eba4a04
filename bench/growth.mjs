// Measures how costs grow with the number of groups in a folder: the time from an edit to the last old answer, the CPU
// time of it, the first start and a further one, and the memory of a worker. All folders are served at the same time and
// edited in turns, so that the ratios to the folder of one group hold on a busy machine, too.
//   node bench/growth.mjs [--node PATH] [--dist DIST] [--groups 1,300,1000] [--rounds 7] [--starts 3] [--untyped]
//   node bench/growth.mjs --groups 1,1000 --other ../elsewhere/dist     measures another build in the same rounds
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { ask } from './check.mjs';
import { scratch } from './fixtures.mjs';
import { startProcess, stopProcess, treePids } from './processes.mjs';
import { markdown, median, ratio, verdict } from './report.mjs';

const { values } = parseArgs({
  options: {
    node: { type: 'string', default: process.execPath },
    dist: { type: 'string', default: resolve(import.meta.dirname, '../dist') },
    other: { type: 'string' },
    groups: { type: 'string', default: '1,30,100,300,1000,3000' },
    rounds: { type: 'string', default: '7' },
    starts: { type: 'string', default: '3' },
    untyped: { type: 'boolean', default: false },
  },
});
const sizes = values.groups.split(',').map(Number);
/** The limits of the time of an edit, over the folder of one group. From 1,000 on it may grow linearly. */
const GOALS = new Map([
  [300, 5],
  [1000, 12],
  [3000, 15],
  [5000, 25],
]);
/** Milliseconds without an old answer after which an edit is live. */
const CALM = 150;
/**
 * Milliseconds between two requests that ask for the version. Requests every 4 ms took a quarter of a core from the
 * workers that load.
 */
const POLL = 10;
/** Milliseconds between two edits, of whichever folder: new workers have booted, and nothing else runs. */
const PAUSE = 1500;

/**
 * @typedef {object} Service
 * @property {string} name
 * @property {number} size
 * @property {string} dist
 * @property {string} folder
 * @property {number} version the one that the folder has now
 * @property {number} [port]
 * @property {import('./processes.mjs').ChildProcess} [child]
 * @property {{ start: number[], edit: number[], cpu: number[], memory: number[] }} found
 */

const services = [values.dist, ...(values.other === undefined ? [] : [values.other])].flatMap((dist, i) =>
  sizes.map((size) => createService(`${i === 0 ? '' : 'other '}${size}`, size, resolve(dist))),
);
for (let i = 0; i < Number(values.starts); i++) {
  for (const service of services) {
    if (service.child !== undefined) await stopProcess(service.child);
    await start(service);
  }
}
// The first edit waits for processes to boot.
for (const service of services) await edit(service);
for (const { found } of services) found.edit.length = found.cpu.length = found.memory.length = 0;
for (let i = 0; i < Number(values.rounds); i++) for (const service of services) await edit(service);
for (const { child } of services) if (child !== undefined) await stopProcess(child);

const HEAD = [
  ...['groups', 'edit', 'over one', 'goal', 'CPU of an edit', 'over one'],
  ...['first start', 'a further start', 'a worker', 'a group and worker'],
];
process.stdout.write(`${markdown(HEAD, services.map(formatRow))}\n`);

/** @param {Service} service */
function formatRow({ name, size, dist, found }) {
  const one = services.find((other) => other.dist === dist && other.size === 1)?.found ?? found;
  const times = median(found.edit) / median(one.edit);
  const goal = GOALS.get(size);
  const memory = median(found.memory);
  return [
    name,
    `${median(found.edit).toFixed(0)} ms`,
    ratio(times),
    goal === undefined ? '' : verdict(times <= goal, `at most ${goal}`),
    `${median(found.cpu).toFixed(0)} ms`,
    ratio(median(found.cpu) / median(one.cpu)),
    `${found.start[0]?.toFixed(0)} ms`,
    found.start.length === 1 ? '' : `${median(found.start.slice(1)).toFixed(0)} ms`,
    `${(memory / 1e6).toFixed(0)} MB`,
    size === 1 ? '' : `${((memory - median(one.memory)) / (size - 1) / 1e3).toFixed(0)} KB`,
  ];
}

/**
 * @param {string} name
 * @param {number} size
 * @param {string} dist
 * @returns {Service}
 */
function createService(name, size, dist) {
  const folder = join(scratch, `growth-${name.replace(' ', '-')}`, 'controllers');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, '../package.json'), '{"type":"module"}');
  for (let i = 0; i < size; i++) writeFileSync(join(folder, `G${i}Controller.ts`), source(0));
  return { name, size, dist, folder, version: 0, found: { start: [], edit: [], cpu: [], memory: [] } };
}

/** @param {Service} service */
async function start(service) {
  const begun = performance.now();
  const env = { HOST: '127.0.0.1', PORT: '0', WORKERS: '2', LOG_LEVEL: 'error', DRAIN_TIMEOUT: '1s' };
  service.child = startProcess(values.node, [join(service.dist, 'server.js')], {
    env: { ...process.env, ...env, CONTROLLERS_DIR: service.folder, DATA_DIR: scratch, PATH: process.env.PATH ?? '' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const output = /** @type {import('node:stream').Readable} */ (service.child.stdout);
  for await (const line of createInterface({ input: output })) {
    service.port = Number(/:(\d+)$/.exec(line)?.[1]);
    break;
  }
  service.found.start.push(performance.now() - begun);
}

/**
 * Changes a file, and waits until no worker gives the old answer.
 *
 * @param {Service} service
 */
async function edit(service) {
  const pid = /** @type {number} */ (service.child?.pid);
  await sleep(PAUSE);
  const cpuBefore = cpuOf(treePids(pid));
  service.version++;
  writeFileSync(join(service.folder, 'G0Controller.ts'), source(service.version));
  const written = performance.now();
  let live = written;
  let cpu = 0;
  for (let now = written; now < live + CALM; now = performance.now()) {
    const { body } = await ask(service.port ?? 0, { method: 'GET', path: '/api/g0' });
    if (JSON.parse(body).version === service.version) {
      cpu ||= since(cpuBefore, cpuOf(treePids(pid)));
    } else {
      live = performance.now();
      cpu = 0;
    }
    await sleep(POLL);
  }
  service.found.edit.push(live - written);
  service.found.cpu.push(cpu);
  // The newest worker of the reserve has not loaded, so the largest worker counts.
  service.found.memory.push(Math.max(...treePids(pid).slice(1).map(memoryOf)));
}

/**
 * Returns the CPU time of all threads of each process in milliseconds. The scheduler counts nanoseconds.
 *
 * @param {number[]} pids
 */
function cpuOf(pids) {
  /** @type {Map<number, number>} */
  const times = new Map();
  for (const pid of pids) {
    try {
      const threads = readdirSync(`/proc/${pid}/task`);
      const read = (/** @type {string} */ thread) => readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1');
      times.set(
        pid,
        threads.reduce((sum, thread) => sum + Number(read(thread).split(' ')[0]) / 1e6, 0),
      );
    } catch {
      // The process or a thread has ended since it was listed.
    }
  }
  return times;
}

/** @param {Map<number, number>} before @param {Map<number, number>} now */
function since(before, now) {
  return Array.from(now).reduce((sum, [pid, time]) => sum + time - (before.get(pid) ?? 0), 0);
}

/** @param {number} pid */
function memoryOf(pid) {
  try {
    return 1024 * Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

/** A group of three operations. @param {number} version */
function source(version) {
  const types = (/** @type {string} */ text) => (values.untyped ? '' : text);
  return `import type { ControllerParams, Email, Int } from 'gatefold';
interface Address { street: string; zip: string; country?: 'de' | 'fr' | 'it' }
interface NewUser {
  /** @minLength 1
   *  @maxLength 80 */
  name: string;
  email?: Email;
  age?: Int;
  addresses?: Address[];
}
export default class {
  index(${types('query: { page?: Int; size?: Int }')}) { return { version: ${version} }; }
  created(${types('data: NewUser, params: ControllerParams<{ query: { dryRun?: boolean } }>')}) { return {}; }
  patch(${types('data: Partial<NewUser>')}) { return {}; }
}
`;
}
