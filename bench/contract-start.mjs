// Measures the cost of types before the first request: CPU and memory of a service up to its first answer, with and
// without types. Runs alternate, and medians are compared. `--other` names another dist to measure beside this one, on
// the service without types.
//   node bench/contract-start.mjs [--node PATH] [--rounds 7] [--groups 1000] [--other ../elsewhere/dist]
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { ask } from './check.mjs';
import { scratch } from './fixtures.mjs';
import { startProcess, stopProcess, treeMemory, treePids } from './processes.mjs';
import { markdown, median } from './report.mjs';

const { values } = parseArgs({
  options: {
    node: { type: 'string', default: process.execPath },
    rounds: { type: 'string', default: '7' },
    groups: { type: 'string', default: '1000' },
    other: { type: 'string' },
  },
});
const rounds = Number(values.rounds);
const many = Number(values.groups);
const FEW = 21;
const HERE = resolve(import.meta.dirname, '../dist');

/** @typedef {{ name: string, dist: string, folder: string, rounds: number }} Service */

const untyped = folderOf('untyped', 1, untypedSource);
/** @type {Service[]} */
const services = [
  { name: 'one group without types', dist: HERE, folder: untyped, rounds },
  ...(values.other === undefined
    ? []
    : [{ name: 'the same, of the other dist', dist: resolve(values.other), folder: untyped, rounds }]),
  { name: 'one with types', dist: HERE, folder: folderOf('typed', 1, typedSource), rounds },
  { name: `${FEW} without`, dist: HERE, folder: folderOf('untyped', FEW, untypedSource), rounds },
  { name: `${FEW} with`, dist: HERE, folder: folderOf('typed', FEW, typedSource), rounds },
  {
    name: `${many} without`,
    dist: HERE,
    folder: folderOf('untyped', many, untypedSource),
    rounds: Math.ceil(rounds / 3),
  },
  { name: `${many} with`, dist: HERE, folder: folderOf('typed', many, typedSource), rounds: Math.ceil(rounds / 3) },
];

/** @type {Map<string, { cpu: number, memory: number, time: number }[]>} */
const found = new Map(services.map(({ name }) => [name, []]));
for (let round = 0; round < rounds; round++) {
  for (const service of services) if (round < service.rounds) found.get(service.name)?.push(await measure(service));
}
/** @param {string} name @param {'cpu' | 'memory' | 'time'} what */
const of = (name, what) => median((found.get(name) ?? []).map((one) => one[what]));
const rows = services.map(({ name }) => [
  name,
  `${of(name, 'cpu').toFixed(1)} ms`,
  `${of(name, 'time').toFixed(0)} ms`,
  `${(of(name, 'memory') / 2 ** 20).toFixed(1)} MiB`,
]);
process.stdout.write(
  `${markdown(['service', 'CPU of the worker to the first answer', 'time', 'memory of the worker'], rows)}\n`,
);
const first = of('one with types', 'cpu') - of('one group without types', 'cpu');
const further = (of(`${FEW} with`, 'cpu') - of(`${FEW} without`, 'cpu') - first) / (FEW - 1);
const all = (of(`${many} with`, 'time') - of(`${many} without`, 'time')) / 1000;
process.stdout.write(
  `the first with types: ${first.toFixed(1)} ms of CPU (goal 25); each further one: ${further.toFixed(2)} ms (goal 2); ${many} with types: ${all.toFixed(1)} s more than without (goal 3)\n`,
);

/** @param {Service} service */
async function measure({ dist, folder }) {
  const begin = performance.now();
  const env = {
    HOST: '127.0.0.1',
    PORT: '0',
    WORKERS: '1',
    LOG_LEVEL: 'warn',
    CONTROLLERS_DIR: folder,
    DATA_DIR: scratch,
    DRAIN_TIMEOUT: '1s',
  };
  const child = startProcess(/** @type {string} */ (values.node), [join(dist, 'server.js')], {
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    let port = 0;
    for await (const line of createInterface({ input: /** @type {import('node:stream').Readable} */ (child.stdout) })) {
      port = Number(/:(\d+)$/.exec(line)?.[1]);
      break;
    }
    const { status } = await ask(port, {
      method: 'POST',
      path: '/api/g0',
      headers: { 'Content-Type': 'application/json' },
      body: '{"name":"Ada"}',
    });
    const time = performance.now() - begin;
    if (status !== 200) throw new Error(`the first answer is ${status}`);
    const worker = treePids(/** @type {number} */ (child.pid)).at(-1) ?? 0;
    return { cpu: cpuOf(worker), memory: treeMemory(worker, 'VmRSS'), time };
  } finally {
    await stopProcess(child);
  }
}

/** Returns the CPU time of all threads in milliseconds. The scheduler counts nanoseconds. @param {number} pid */
function cpuOf(pid) {
  const threads = readdirSync(`/proc/${pid}/task`);
  return (
    threads.reduce(
      (sum, thread) => sum + Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ')[0]),
      0,
    ) / 1e6
  );
}

/** @param {string} name @param {number} count @param {() => string} source */
function folderOf(name, count, source) {
  const folder = join(scratch, `${name}-${count}`, 'controllers');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, '../package.json'), '{"type":"module"}');
  for (let i = 0; i < count; i++) writeFileSync(join(folder, `G${i}Controller.ts`), source());
  return folder;
}

function typedSource() {
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
  index(query: { page?: Int; size?: Int }) { return query; }
  created(data: NewUser, params: ControllerParams<{ query: { dryRun?: boolean } }>) { return { data, dry: params.query.dryRun }; }
  patch(data: Partial<NewUser>) { return data; }
}
`;
}

function untypedSource() {
  return typedSource()
    .replaceAll(/(query|data): (?:\{[^}]*\}|[\w<>]+)/g, '$1: unknown')
    .replaceAll(/params: ControllerParams<[^)]*>(?=\))/g, 'params: ControllerParams');
}
