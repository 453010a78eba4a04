// Measures what a file of PUBLIC_DIR costs beside sirv (which keeps the list of files from its start) and
// @fastify/static: the processor time of a request, as a ratio to sirv, in turns.
//   node bench/files.mjs [--node PATH] [--dist DIST] [--rounds 8]
import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs, promisify } from 'node:util';
import { scratch } from './fixtures.mjs';
import { startProcess, stopProcess, treeCpuSeconds, treeMemory } from './processes.mjs';
import { markdown, median, ratio } from './report.mjs';

const { values } = parseArgs({
  options: {
    node: { type: 'string', default: process.execPath },
    dist: { type: 'string', default: resolve(import.meta.dirname, '../dist') },
    rounds: { type: 'string', default: '8' },
  },
});
const site = join(scratch, 'public');
for (const folder of [site, join(scratch, 'controllers')]) mkdirSync(folder, { recursive: true });
writeFileSync(join(site, 'small.js'), 'x'.repeat(10 * 1024));
writeFileSync(join(site, 'large.bin'), Buffer.alloc(1024 * 1024, 'x'));

/** @type {Record<string, { code?: string }>} */
const SERVERS = {
  gatefold: {},
  sirv: {
    code: `const { default: sirv } = await import('${import.meta.resolve('sirv')}');
const { createServer } = await import('node:http');
const serve = sirv(process.env.SITE, { etag: true });
const server = createServer((request, response) => serve(request, response, () => response.writeHead(404).end()));
server.listen(0, '127.0.0.1', () => console.log('http://127.0.0.1:' + server.address().port));`,
  },
  fastify: {
    code: `const { default: fastify } = await import('${import.meta.resolve('fastify')}');
const { default: files } = await import('${import.meta.resolve('@fastify/static')}');
const app = fastify();
app.register(files, { root: process.env.SITE });
console.log(await app.listen({ port: 0, host: '127.0.0.1' }));`,
  },
};

/** @param {string} name @param {string | undefined} code */
async function start(name, code) {
  const env = {
    .../** @type {Record<string, string>} */ (process.env),
    ...{ PORT: '0', HOST: '127.0.0.1', WORKERS: '1', LOG_LEVEL: 'error', NODE_ENV: 'production', SITE: site },
    ...{ PUBLIC_DIR: site, CONTROLLERS_DIR: join(scratch, 'controllers'), DATA_DIR: join(scratch, 'data') },
  };
  const words = code === undefined ? [join(values.dist, 'server.js')] : ['--input-type=module', '-e', code];
  const child = startProcess(values.node, words, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: /** @type {any} */ (child.stdout) })) {
    const origin = /http:\/\/\S+:\d+/.exec(line)?.[0];
    if (origin === undefined) continue;
    child.stdout?.resume();
    return { name, child, origin, pid: /** @type {number} */ (child.pid) };
  }
  throw new Error(`${name} does not start`);
}

/** @param {Awaited<ReturnType<typeof start>>} server @param {Scenario} scenario */
async function burst({ origin, pid }, { path, headers }) {
  const fields = Object.entries(await headers(origin + path)).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  const before = treeCpuSeconds(pid);
  const { stdout } = await promisify(execFile)('wrk', ['-t1', '-c32', '-d1s', ...fields, origin + path]);
  const answered = Number(/(\d+) requests in/.exec(stdout)?.[1]);
  if (!(answered > 0) || /Non-2xx or 3xx|Socket errors/.test(stdout)) throw new Error(stdout);
  return (treeCpuSeconds(pid) - before) / answered;
}

/** @typedef {{ name: string, path: string, headers: (url: string) => Promise<Record<string, string>> }} Scenario */
const tagOf = async (/** @type {string} */ url) => {
  const response = await fetch(url, { method: 'HEAD' });
  return response.headers.get('etag') ?? '';
};
/** @type {Scenario[]} */
const SCENARIOS = [
  { name: '10 KB', path: '/small.js', headers: async () => ({}) },
  { name: '304', path: '/small.js', headers: async (url) => ({ 'If-None-Match': await tagOf(url) }) },
  { name: '1 MB', path: '/large.bin', headers: async () => ({}) },
  { name: 'range of 1 KB in 1 MB', path: '/large.bin', headers: async () => ({ Range: 'bytes=1000-1999' }) },
];

const servers = await Promise.all(Object.entries(SERVERS).map(([name, { code }]) => start(name, code)));
const rows = [];
for (const scenario of SCENARIOS) {
  for (const server of servers) for (let i = 0; i < 2; i++) await burst(server, scenario);
  /** @type {Record<string, number[]>} */
  const ratios = Object.fromEntries(servers.map(({ name }) => [name, []]));
  let sirvCost = 0;
  for (let round = 0; round < Number(values.rounds); round++) {
    /** @type {Record<string, number>} */
    const costs = {};
    for (const server of servers) costs[server.name] = await burst(server, scenario);
    for (const [name, cost] of Object.entries(costs)) ratios[name].push(cost / costs.sirv);
    sirvCost = costs.sirv;
  }
  const cells = servers.map(({ name }) => ratio(median(ratios[name])));
  rows.push([scenario.name, ...cells, `${(sirvCost * 1e6).toFixed(0)} µs`]);
}
rows.push(['memory', ...servers.map(({ pid }) => `${(treeMemory(pid, 'VmRSS') / 1e6).toFixed(0)} MB`), '']);
process.stdout.write(`${markdown(['', ...servers.map(({ name }) => name), 'sirv'], rows)}\n`);
for (const { child } of servers) await stopProcess(child);
