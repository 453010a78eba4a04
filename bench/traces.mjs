// Measures the cost of traces: CPU of the whole process tree for a plain GET, with tracing off and on. All variants are
// under load at the same time on one core, so that other load on the machine affects all alike. Each cost is divided by
// the cost of `off` in the same turn, or by that of the other build for the same request. Run it as
// `node bench/traces.mjs [turns] [--node PATH] [--base DIST] [--lines]`; `--base` is the build to compare with.
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { controllers, scratch } from './fixtures.mjs';
import { startProcess, stopProcess, treeCpuSeconds } from './processes.mjs';

const { values, positionals } = parseArgs({
  options: { node: { type: 'string' }, base: { type: 'string' }, lines: { type: 'boolean' } },
  allowPositionals: true,
});
const turns = Number(positionals[0] ?? 20);
const node = values.node ?? process.execPath;
const DIST = fileURLToPath(new URL('../dist', import.meta.url));
const CONNECTIONS = 8;
const BURST_MS = 4000;
const WARM_UP_MS = 4000;
const PARENT = 'traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00\r\n';

const collector = createServer((request, response) => request.resume().on('end', () => response.end('{}')));
await new Promise((listening) => collector.listen(0, '127.0.0.1', () => listening(undefined)));
const OTEL_EXPORTER_OTLP_ENDPOINT = `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (collector.address()).port}`;
const ratio = { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_SAMPLER: 'parentbased_traceidratio' };

/** @typedef {{ label: string, dist?: string, env?: Record<string, string>, head?: string, to?: string }} Variant */
const OTHER = 'the other build';
/** A header costs time in Node's parser. So a traceparent is compared with a header that nobody reads. */
const OTHER_HEADER = 'off, with another header';
const OTHER_PARENT = 'the other build, traceparent';
/** @type {Variant[]} */
const others = values.base
  ? [
      { label: OTHER, dist: values.base },
      { label: OTHER_PARENT, dist: values.base, head: PARENT },
      { label: 'the other build, 1 in 100', dist: values.base, env: { ...ratio, OTEL_TRACES_SAMPLER_ARG: '0.01' } },
      { label: 'the other build, all', dist: values.base, env: { OTEL_EXPORTER_OTLP_ENDPOINT } },
    ]
  : [];
/** @type {Variant[]} */
const variants = [
  ...others,
  { label: 'off', ...(values.base && { to: OTHER }) },
  { label: 'off, again (noise)' },
  { label: OTHER_HEADER, head: PARENT.replace('parent', 'nobody') },
  { label: 'off, with a traceparent', head: PARENT, to: values.base ? OTHER_PARENT : OTHER_HEADER },
  { label: 'on, none sampled', env: { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_SAMPLER: 'always_off' } },
  { label: 'on, 1 in 100 sampled', env: { ...ratio, OTEL_TRACES_SAMPLER_ARG: '0.01' } },
  { label: 'on, all sampled', env: { OTEL_EXPORTER_OTLP_ENDPOINT } },
];
/** For each variant, the index of the variant by which its cost is divided. */
const divisors = variants.map(({ to = 'off' }) => variants.findIndex(({ label }) => label === to));

/** @param {{ dist?: string, env?: Record<string, string> }} variant */
async function start({ dist = DIST, env = {} }) {
  const child = startProcess('taskset', ['-c', '0', node, join(dist, 'server.js')], {
    env: {
      ...{ PATH: String(process.env.PATH), PORT: '0', HOST: '127.0.0.1', WORKERS: '1', CONTROLLERS_DIR: controllers },
      ...{ LOG_LEVEL: values.lines ? 'info' : 'warn', DATA_DIR: scratch, ...env },
    },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const { stdout } = child;
  if (stdout === null) throw new Error('no output');
  for await (const line of createInterface(stdout)) {
    const port = /:(\d+)$/.exec(line)?.[1];
    if (port !== undefined) return { child, port: Number(port) };
  }
  throw new Error('it did not start');
}

/**
 * @param {{ port: number }} server
 * @param {string} head
 * @param {number} time
 * @returns {Promise<number>} the answers
 */
function load({ port }, head, time) {
  const bytes = `GET /api/test HTTP/1.1\r\nHost: localhost\r\n${head}\r\n`;
  const end = performance.now() + time;
  let answers = 0;
  const one = () =>
    new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
      socket.on('error', reject);
      socket.on('data', (chunk) => {
        if (answers === 0 && !chunk.toString('latin1', 9, 12).startsWith('200')) reject(new Error(String(chunk)));
        answers++;
        if (performance.now() < end) socket.write(bytes);
        else socket.end(() => resolve(undefined));
      });
    });
  return Promise.all(Array.from({ length: CONNECTIONS }, one)).then(() => answers);
}

const servers = await Promise.all(variants.map(start));
try {
  /** @type {number[][]} */
  const ratios = variants.map(() => []);
  const together = (/** @type {number} */ time) =>
    Promise.all(servers.map((server, i) => load(server, variants[i]?.head ?? '', time)));
  await together(WARM_UP_MS * variants.length);
  for (let turn = 0; turn < turns; turn++) {
    const before = servers.map(({ child }) => treeCpuSeconds(Number(child.pid)));
    const answers = await together(BURST_MS);
    const costs = servers.map(
      ({ child }, i) => (treeCpuSeconds(Number(child.pid)) - Number(before[i])) / Number(answers[i]),
    );
    for (const [i, cost] of costs.entries()) ratios[i]?.push(cost / Number(costs[Number(divisors[i])]));
  }
  process.stdout.write(`Node ${node}, ${turns} turns, lines ${values.lines ? 'on' : 'off'}\n`);
  for (const [i, { label }] of variants.entries()) {
    const sorted = (ratios[i] ?? []).sort((a, b) => a - b);
    const at = (/** @type {number} */ part) => Number(sorted[Math.floor(part * (sorted.length - 1))]).toFixed(3);
    process.stdout.write(`${label.padEnd(28)} ${at(0.5)}   quartiles ${at(0.25)} to ${at(0.75)}\n`);
  }
} finally {
  await Promise.all(servers.map(({ child }) => stopProcess(child)));
  collector.close();
}
