// Measures the time from the start to the first answer, minus that of an empty Node process. Also measures the memory
// of the supervisor and one worker, relative to a bare server. Runs alternate, and medians are compared.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ask } from './check.mjs';
import { scratch } from './fixtures.mjs';
import { runBurst } from './load.mjs';
import { readOptions } from './options.mjs';
import { startProcess, treeMemory } from './processes.mjs';
import { markdown, median, ratio, verdict } from './report.mjs';
import { REQUESTS } from './requests.mjs';
import { SERVERS, startServer } from './servers.mjs';

const START_GOAL_MS = 60;
const MEMORY_GOAL = 2.2;
/** The starts in a round. They vary more than bursts, and take less time, so there are several. */
const STARTS_PER_ROUND = 4;

/** @typedef {import('./servers.mjs').ServerName} ServerName */

const options = readOptions();
const servers = /** @type {ServerName[]} */ (['bare', 'fastify', 'gatefold']).filter(
  (name) => name === 'bare' || options.peers.includes(SERVERS[name].peer),
);
const empty = join(scratch, 'empty.mjs');
writeFileSync(empty, '');

try {
  const extra = await measureStarts();
  const memory = await measureMemory();
  const rows = servers.map((name) => {
    const judged = name === 'gatefold' ? verdict : (/** @type {boolean} */ _met, /** @type {string} */ text) => text;
    const late = median(extra[name]);
    const rest = memory[name].rest / memory.bare.rest;
    const loaded = memory[name].loaded / memory.bare.loaded;
    return [
      SERVERS[name].label,
      judged(late <= START_GOAL_MS, `+${late.toFixed(0)} ms`),
      judged(rest <= MEMORY_GOAL, ratio(rest)),
      judged(loaded <= MEMORY_GOAL, ratio(loaded)),
    ];
  });
  process.stdout.write(
    `${markdown(['server', `first answer, after an empty process (at most ${START_GOAL_MS} ms)`, `memory at rest (at most ${MEMORY_GOAL} of bare)`, 'memory after load'], rows)}\n`,
  );
} catch (error) {
  process.stderr.write(`${/** @type {Error} */ (error).message}\n`);
  process.exitCode = 1;
}

/**
 * Returns milliseconds beyond those of the empty process that ran just before.
 *
 * @returns {Promise<Record<string, number[]>>}
 */
async function measureStarts() {
  /** @type {Record<string, number[]>} */
  const extra = Object.fromEntries(servers.map((name) => [name, []]));
  for (let i = 0; i < options.rounds * STARTS_PER_ROUND; i++) {
    for (const name of servers) {
      const nothing = await timeOf(runEmpty);
      const { duration, server } = await timeToAnswer(name);
      await server.stop();
      extra[name].push(duration - nothing);
    }
  }
  return extra;
}

async function runEmpty() {
  const child = startProcess(options.node, [empty], { env: { PATH: process.env.PATH ?? '' }, stdio: 'ignore' });
  await new Promise((resolve, reject) => child.once('exit', resolve).once('error', reject));
}

/** @param {ServerName} name */
async function timeToAnswer(name) {
  const begin = performance.now();
  const server = await startServer(name, options.node);
  const { status } = await ask(server.port, REQUESTS.get()[0]);
  if (status !== 200) throw new Error(`Cannot time ${SERVERS[name].label}: its first answer is ${status}`);
  return { duration: performance.now() - begin, server };
}

/** Returns the resident memory of the tree, at rest and after the same load. */
async function measureMemory() {
  /** @type {Record<string, { rest: number, loaded: number }>} */
  const bytes = {};
  for (const name of servers) {
    const { server } = await timeToAnswer(name);
    try {
      const rest = treeMemory(server.pid, 'VmRSS');
      for (let i = 0; i < options.rounds; i++)
        await runBurst(options.generator, { ...options, port: server.port, requests: REQUESTS.get() });
      bytes[name] = { rest, loaded: treeMemory(server.pid, 'VmRSS') };
    } finally {
      await server.stop();
    }
  }
  return bytes;
}

/** @param {() => Promise<void>} run */
async function timeOf(run) {
  const begin = performance.now();
  await run();
  return performance.now() - begin;
}
