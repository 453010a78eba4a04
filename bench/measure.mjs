// Measures one scenario. The servers run side by side, and get bursts of load in shuffled order. Each burst has a burst
// on the bare Node server right beside it, so that other load on the machine affects both. report.mjs prints the
// ratios.
import { truncateSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { ask, checkAnswers } from './check.mjs';
import { runBurst } from './load.mjs';
import { machineCpuSeconds, pinTree, treeCpuSeconds, treeMemory } from './processes.mjs';
import { REQUESTS } from './requests.mjs';
import { SERVERS, startServer } from './servers.mjs';

/**
 * @typedef {import('./scenarios.mjs').Scenario} Scenario
 * @typedef {import('./scenarios.mjs').Entry} Entry
 *
 * @typedef {object} Options
 * @property {string} node
 * @property {string} generator
 * @property {string} order `turns` or `together`
 * @property {number} laps each with new processes, because compilation and memory layout differ between processes
 * @property {number} rounds in a lap
 * @property {number} seconds a burst
 * @property {number} connections
 *
 * @typedef {object} Sample one burst: `cpu` in seconds a request
 * @property {number} cpu
 * @property {number} perSecond
 * @property {number} p99
 * @property {number} foreign CPU use of other processes during the burst, in cores
 *
 * @typedef {object} Pair an entry's burst and the burst on bare beside it
 * @property {Sample} own
 * @property {Sample} bare
 *
 * @typedef {{ pairs: Pair[], memory: number[] }} Series `memory`: peak over bare's, one a lap
 *
 * @typedef {{ entry: Entry, pid: number, port: number, secure: boolean, log: string, requests: import('./requests.mjs').Request[] }} Target
 */

/** Milliseconds after a burst that still count, because the server closes connections and writes log lines. */
const SETTLE_MS = 60;
/**
 * The warm-up of a new process. Its first requests take two to three times as long as later ones, and V8 compiles until
 * some 80,000 requests are served (`--trace-opt` shows it for bare and for Gatefold). A limit in seconds ends the
 * warm-up where requests are slow.
 */
const WARM_UP = { requests: 100_000, seconds: 15 };
/** The cores that other processes may use during a turn. Beyond it the turn is repeated, and the calmer one counts. */
const FOREIGN_LIMIT = 0.15;
const TRIES = 2;

/**
 * @param {Scenario} scenario
 * @param {Options} options
 * @param {(text: string) => void} say
 * @returns {Promise<Map<string, Series>>} by the entry's key
 */
export async function measureScenario(scenario, options, say) {
  /** @type {Map<string, Series>} */
  const series = new Map(scenario.entries.map(({ key }) => [key, { pairs: [], memory: [] }]));
  for (let lap = 1; lap <= options.laps; lap++) {
    say(`${scenario.name}: lap ${lap} of ${options.laps}`);
    await measureLap(scenario, options, series);
  }
  return series;
}

/**
 * @param {Scenario} scenario
 * @param {Options} options
 * @param {Map<string, Series>} series
 */
async function measureLap(scenario, options, series) {
  /** @type {(() => Promise<void>)[]} */
  const stops = [];
  /** @param {Entry} entry @returns {Promise<Target>} */
  const start = async (entry) => {
    const { pid, port, secure, log, stop } = await startServer(entry.server, options.node);
    stops.push(stop);
    return { entry, pid, port, secure, log, requests: REQUESTS[entry.request]() };
  };
  try {
    const bare = await start({ key: 'bare', server: scenario.bare ?? 'bare', request: scenario.request });
    const others = [];
    for (const entry of shuffled(scenario.entries)) others.push(await start(entry));
    for (const target of others) {
      const { label } = SERVERS[target.entry.server];
      await checkAnswers({ label, ...target }, bare, scenario.bare === 'other');
    }
    // Builds of Gatefold follow asynchronous contexts as in a usual service. Some do so only after such a request.
    if (scenario.bare === 'other') for (const { port } of [bare, ...others]) await ask(port, REQUESTS.later()[0]);
    for (const target of [bare, ...others]) await warmUp(target, options);
    const measure = options.order === 'together' ? measureTogether : measureRound;
    if (options.order === 'together') shareOneCore([bare, ...others]);
    for (let round = 0; round < options.rounds; round++) await measure(bare, others, options, series);
    for (const target of others) {
      seriesOf(series, target).memory.push(treeMemory(target.pid, 'VmHWM') / treeMemory(bare.pid, 'VmHWM'));
    }
  } finally {
    await Promise.all(stops.map((stop) => stop()));
  }
}

/** @param {Target} target @param {Options} options */
async function warmUp(target, options) {
  const seconds = 3;
  for (let passed = 0, answered = 0; passed < WARM_UP.seconds && answered < WARM_UP.requests; passed += seconds) {
    answered += (await burst(target, { ...options, seconds })).perSecond * seconds;
  }
}

/**
 * Measures two servers at a time, with one burst on bare between theirs: `x bare y`. Over all turns, bare comes before
 * a server as often as after it.
 *
 * @param {Target} bare
 * @param {Target[]} others
 * @param {Options} options
 * @param {Map<string, Series>} series
 */
async function measureRound(bare, others, options, series) {
  const order = shuffled(others);
  for (let i = 0; i < order.length; i += 2) {
    const couple = order.slice(i, i + 2);
    const turns = couple.length === 2 ? [couple[0], bare, couple[1]] : shuffled([couple[0], bare]);
    const samples = await calmestTurn(turns, options);
    for (const target of couple)
      seriesOf(series, target).pairs.push({ own: got(samples, target), bare: got(samples, bare) });
  }
}

/** Pins the servers to the first core, the generators and this process to the second. @param {Target[]} targets */
function shareOneCore(targets) {
  pinTree(process.pid, 1);
  for (const { pid } of targets) pinTree(pid, 0);
}

/**
 * Puts load on all servers at the same time, so that other load on the machine affects all alike. Throughput and
 * latency of such a run show only how the kernel divides a core.
 *
 * @param {Target} bare
 * @param {Target[]} others
 * @param {Options} options
 * @param {Map<string, Series>} series
 */
async function measureTogether(bare, others, options, series) {
  const [reference, ...samples] = await Promise.all([bare, ...others].map((target) => burst(target, options)));
  others.forEach((target, i) => {
    seriesOf(series, target).pairs.push({ own: samples[i], bare: reference });
  });
}

/**
 * @param {Target[]} turns
 * @param {Options} options
 * @returns {Promise<Map<Target, Sample>>}
 */
async function calmestTurn(turns, options) {
  let best = { foreign: Number.POSITIVE_INFINITY, samples: new Map() };
  for (let i = 0; i < TRIES && best.foreign > FOREIGN_LIMIT; i++) {
    /** @type {Map<Target, Sample>} */
    const samples = new Map();
    for (const target of turns) samples.set(target, await burst(target, options));
    const foreign = Math.max(...[...samples.values()].map((sample) => sample.foreign));
    if (foreign < best.foreign) best = { foreign, samples };
  }
  return best.samples;
}

/**
 * @param {Target} target
 * @param {Options} options
 * @returns {Promise<Sample>}
 */
async function burst({ pid, port, secure, log, requests }, { generator, seconds, connections }) {
  const [before, begin, others] = [treeCpuSeconds(pid), performance.now(), foreignCpuSeconds()];
  const { answered, perSecond, p99 } = await runBurst(generator, { port, secure, requests, seconds, connections });
  await delay(SETTLE_MS);
  const foreign = ((foreignCpuSeconds() - others) * 1000) / (performance.now() - begin);
  const cpu = (treeCpuSeconds(pid) - before) / answered;
  truncateSync(log); // Request lines of a whole run would fill the disk.
  return { cpu, perSecond, p99, foreign };
}

/** Returns the CPU time of this process tree, which has the servers and all load generators, also ended ones. */
function foreignCpuSeconds() {
  return machineCpuSeconds() - treeCpuSeconds(process.pid);
}

/**
 * @param {Map<string, Series>} series
 * @param {Target} target
 */
function seriesOf(series, { entry }) {
  return got(series, entry.key);
}

/** @template K, V @param {Map<K, V>} map @param {K} key @returns {V} */
function got(map, key) {
  const value = map.get(key);
  if (value === undefined) throw new Error('Cannot happen: a key that was put is missing');
  return value;
}

/** Shuffles a list (Fisher and Yates). @template T @param {readonly T[]} list */
function shuffled(list) {
  const copy = [...list];
  for (let i = copy.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [copy[i], copy[j]] = [copy[j], copy[i]];
  }
  return copy;
}
