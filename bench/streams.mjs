// Measures a long answer: a stream of 1 GiB from an operation, beside a bare `pipeline` into the response. Reports
// throughput, CPU, and the peak of memory above that of the idle process. Linux only; `node bench/streams.mjs
// [rounds]`.
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { scratch } from './fixtures.mjs';

const GIB = 2 ** 30;
const ROUNDS = Number(process.argv[2] ?? 5);
const HERE = import.meta.dirname;

/**
 * @typedef {{ name: string, port: number, pid: number, stop: () => void, seconds: number[], cpu: number[], memory:
 * number[], idle: number }} Server
 */

const servers = [
  await start('bare pipeline', [join(HERE, 'peers/bare-stream.mjs')], 0),
  await start('Gatefold', [join(HERE, '../dist/server.js')], 1),
];
for (const server of servers) await download(server.port, GIB / 4);
for (let round = 0; round < ROUNDS; round++) {
  for (const server of servers.toSorted(() => Math.random() - 0.5)) await measure(server);
}
const [bare] = /** @type {[Server, Server]} */ (servers);
for (const { name, seconds, cpu, memory, stop } of servers) {
  // The servers alternate, so that other load on the machine affects both alike.
  const throughput = median(seconds.map((own, i) => Number(bare.seconds[i]) / own));
  const work = median(cpu.map((own, i) => own / Number(bare.cpu[i])));
  const figures = [
    `${(1024 / median(seconds)).toFixed(0)} MiB/s, ${throughput.toFixed(2)} of bare`,
    `${(median(cpu) / 1e6).toFixed(0)} ms of CPU, ${work.toFixed(2)} of bare`,
    `${(Math.max(...memory) / 2 ** 20).toFixed(1)} MiB beyond idle`,
  ];
  console.log(`${name.padEnd(14)} ${figures.join('; ')}`);
  stop();
}

/**
 * @param {string} name
 * @param {string[]} args
 * @param {number} workers processes that do the work; 0: the started process itself
 * @returns {Promise<Server>}
 */
async function start(name, args, workers) {
  const env = { ...process.env, PORT: '0', HOST: '127.0.0.1', WORKERS: '1', LOG_LEVEL: 'warn', DATA_DIR: scratch };
  const child = spawn(process.execPath, args, {
    env: { ...env, CONTROLLERS_DIR: join(HERE, 'fixtures/streams') },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const port = await new Promise((resolve) => {
    child.stdout.on('data', (/** @type {Buffer} */ text) => {
      const found = /:(\d+)\s*$/.exec(String(text));
      if (found !== null) resolve(Number(found[1]));
    });
  });
  const pid = workers === 0 ? child.pid : childOf(Number(child.pid));
  return {
    name,
    port,
    pid: Number(pid),
    stop: () => void child.kill(),
    seconds: [],
    cpu: [],
    memory: [],
    idle: residentOf(Number(pid)),
  };
}

/** @param {Server} server */
async function measure(server) {
  const { pid, port, idle } = server;
  const cpu = cpuOf(pid);
  let peak = 0;
  const watch = setInterval(() => {
    peak = Math.max(peak, residentOf(pid));
  }, 20);
  const begun = performance.now();
  await download(port, GIB);
  server.seconds.push((performance.now() - begun) / 1000);
  clearInterval(watch);
  server.cpu.push(cpuOf(pid) - cpu);
  server.memory.push(Math.max(0, peak - idle));
}

/** @param {number} port @param {number} bytes */
function download(port, bytes) {
  return new Promise((resolve, reject) => {
    let received = 0;
    const socket = connect({ port, host: '127.0.0.1', onread: { buffer: Buffer.alloc(256 * 1024), callback: take } });
    socket.on('error', reject);
    socket.on('close', () =>
      received >= bytes ? resolve(received) : reject(new Error(`${received} bytes instead of ${bytes}`)),
    );
    socket.write(`GET /api/stream?bytes=${bytes} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n`);

    /** @param {number} count */
    function take(count) {
      received += count;
      return true;
    }
  });
}

/** @param {number} pid */
function childOf(pid) {
  const parentOf = (/** @type {string} */ id) =>
    Number(readFileSync(`/proc/${id}/stat`, 'utf8').split(') ')[1]?.split(' ')[1]);
  return readdirSync('/proc').find((id) => /^\d+$/.test(id) && parentOf(id) === pid);
}

/** @param {number} pid */
function residentOf(pid) {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;
}

/** Returns the CPU time of all threads in nanoseconds. @param {number} pid */
function cpuOf(pid) {
  const tasks = readdirSync(`/proc/${pid}/task`);
  return tasks.reduce(
    (sum, task) => sum + Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]),
    0,
  );
}

/** @param {number[]} values */
function median(values) {
  return /** @type {number} */ (values.toSorted((a, b) => a - b)[values.length >> 1]);
}
