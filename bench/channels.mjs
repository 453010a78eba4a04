// Measures channels: the CPU of a delivered event beside a bare loop that writes the same bytes, the time from publish
// to delivery between two workers, and the loop delay of the supervisor. Linux only; `node bench/channels.mjs
// [rounds] [events a second]`.
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ROUNDS = Number(process.argv[2] ?? 5);
const SUBSCRIBERS = 1000;
const EVENTS_A_SECOND = Number(process.argv[3] ?? 100);
const SECONDS = 5;
const HERE = import.meta.dirname;
const work = mkdtempSync(join(tmpdir(), 'gatefold-channels-'));
const data = { id: 1, title: 'x'.repeat(100) };

const CONTROLLER = `
import { channel, eventStream } from ${JSON.stringify(join(HERE, '../dist/controller.js'))};
const tasks = channel('tasks');
const delays = [];
const now = () => performance.timeOrigin + performance.now();
let timer;
export default class {
  live(_, { lastEventId: after, signal }) { return eventStream(tasks.subscribe({ after, signal })); }
  begin() { timer = setInterval(() => tasks.publish(${JSON.stringify(data)}), ${1000 / EVENTS_A_SECOND}); return {}; }
  end() { clearInterval(timer); return {}; }
  async listen() {
    (async () => { for await (const { data } of tasks.subscribe()) if (data.pid !== undefined && data.pid !== process.pid) delays.push(now() - data.at); })();
    return { pid: process.pid };
  }
  async send() { await tasks.publish({ pid: process.pid, at: now() }); return {}; }
  delays() { return { pid: process.pid, delays: delays.splice(0) }; }
}`;
/** The text of an event is as long as that of a channel. */
const BARE = `
import { createServer } from 'node:http';
const responses = new Set();
let timer;
const text = 'id: ${'x'.repeat(20)}\\ndata: ${JSON.stringify(data)}\\n\\n';
createServer((request, response) => {
  if (request.url === '/api/feed/live') {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.write('retry: 500\\n\\n');
    responses.add(response);
    return response.on('close', () => responses.delete(response));
  }
  if (request.url === '/api/feed/begin') timer = setInterval(() => { for (const response of responses) response.write(text); }, ${1000 / EVENTS_A_SECOND});
  else clearInterval(timer);
  response.end('{}');
}).listen(0, '127.0.0.1', function () { console.log('listening on http://127.0.0.1:' + this.address().port); });`;
/** Prints the loop delay of the supervisor at its end. */
const DELAY = `
import cluster from 'node:cluster';
import { monitorEventLoopDelay } from 'node:perf_hooks';
if (cluster.isPrimary) {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  setTimeout(() => delay.enable(), 3000).unref();
  process.on('exit', () => console.log('loop delay p99 ' + (delay.percentile(99) / 1e6 - 1).toFixed(2) + ' ms, max ' + (delay.max / 1e6 - 1).toFixed(2) + ' ms'));
}`;
for (const [name, text] of [
  ['FeedController.mjs', CONTROLLER],
  ['bare.mjs', BARE],
  ['delay.mjs', DELAY],
])
  writeFileSync(join(work, String(name)), String(text));

const gatefold = await start([join(HERE, '../dist/server.js')], 1);
const bare = await start([join(work, 'bare.mjs')], 0);
/** @type {Record<string, number[]>} */
const cpu = { gatefold: [], bare: [] };
/** Delivered events a second. */
const rates = { gatefold: 0, bare: 0 };
for (let round = 0; round < ROUNDS; round++) {
  for (const [name, server] of /** @type {const} */ ([
    ['gatefold', gatefold],
    ['bare', bare],
  ]).toSorted(() => Math.random() - 0.5))
    cpu[name]?.push(await measure(server, name));
}
const ratios = Array.from(cpu.gatefold ?? [], (own, i) => own / Number(cpu.bare?.[i]));
console.log(
  `${SUBSCRIBERS} subscribers, ${EVENTS_A_SECOND} events a second: ${median(cpu.gatefold ?? []).toFixed(2)} us of CPU a delivered event, bare ${median(cpu.bare ?? []).toFixed(2)}; ${median(ratios).toFixed(2)} of bare (${ratios.map((ratio) => ratio.toFixed(2)).join(' ')})`,
);
console.log(`delivered a second in the last round: ${rates.gatefold}, bare ${rates.bare}`);
bare.child.kill();
console.log(`one worker, supervisor: ${await stop(gatefold.child)}`);

const two = await start([join(HERE, '../dist/server.js')], 2);
const pids = new Set();
while (pids.size < 2) {
  const { pid, listens } = /** @type {any} */ (await ask(two.port, 'delays'));
  if (!pids.has(pid) && listens === undefined) pids.add((await ask(two.port, 'listen')).pid);
}
for (let i = 0; i < 2000; i++) {
  await ask(two.port, 'send');
  await new Promise((resolve) => setTimeout(resolve, 3));
}
const delays = [];
for (let i = 0; i < 40; i++) delays.push(.../** @type {any} */ (await ask(two.port, 'delays')).delays);
delays.sort((a, b) => a - b);
console.log(
  `publish to delivery between two workers: p50 ${at(delays, 0.5)} ms, p99 ${at(delays, 0.99)} ms, of ${delays.length}`,
);
console.log(`two workers, supervisor: ${await stop(two.child)}`);
rmSync(work, { recursive: true, force: true });

/** @param {string[]} args @param {number} workers 0: the started process does the work */
async function start(args, workers) {
  const env = { ...process.env, PORT: '0', HOST: '127.0.0.1', WORKERS: String(workers), LOG_LEVEL: 'warn' };
  const child = spawn(process.execPath, ['--import', join(work, 'delay.mjs'), ...args], {
    env: { ...env, DATA_DIR: join(work, 'data'), CONTROLLERS_DIR: work, RATE_LIMIT: 'off' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const port = await new Promise((resolve) => {
    child.stdout.on('data', (/** @type {Buffer} */ text) => {
      const found = /:(\d+)\s*$/.exec(String(text));
      if (found !== null) resolve(Number(found[1]));
    });
  });
  const pid = workers === 0 ? Number(child.pid) : Number(childOf(Number(child.pid)));
  return { child, port, pid };
}

/** Returns microseconds of CPU of the process a delivered event. @param {{ port: number, pid: number }} server @param {'gatefold' | 'bare'} name */
async function measure({ port, pid }, name) {
  let bytes = 0;
  const sockets = await Promise.all(
    Array.from(
      { length: SUBSCRIBERS },
      () =>
        new Promise((resolve, reject) => {
          const callback = (/** @type {number} */ count) => {
            bytes += count;
            resolve(socket);
            return true;
          };
          const socket = connect({ port, host: '127.0.0.1', onread: { buffer: Buffer.alloc(4096), callback } });
          socket.on('error', reject);
          socket.write('GET /api/feed/live HTTP/1.1\r\nHost: bench\r\n\r\n');
        }),
    ),
  );
  await ask(port, 'begin');
  await new Promise((resolve) => setTimeout(resolve, 1000));
  const [begun, before] = [bytes, cpuOf(pid)];
  await new Promise((resolve) => setTimeout(resolve, SECONDS * 1000));
  const [after, received] = [cpuOf(pid), bytes - begun];
  await ask(port, 'end');
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => setTimeout(resolve, 500));
  const delivered = received / eventBytes();
  rates[name] = Math.round(delivered / SECONDS);
  return (after - before) / 1000 / delivered;
}

/** An event with the frame of its chunk. */
function eventBytes() {
  const length = 'id: '.length + 20 + '\ndata: '.length + JSON.stringify(data).length + 2;
  return length + length.toString(16).length + 4;
}

/** @param {number} port @param {string} path @returns {Promise<any>} */
async function ask(port, path) {
  const answer = await fetch(`http://127.0.0.1:${port}/api/feed/${path}`, { headers: { connection: 'close' } });
  return answer.json();
}

/** @param {import('node:child_process').ChildProcess} child */
function stop(child) {
  return new Promise((resolve) => {
    let text = '';
    child.stdout?.on('data', (piece) => {
      text += piece;
    });
    child.on('close', () => resolve(text.trim()));
    child.kill();
  });
}

/** @param {number} pid */
function childOf(pid) {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')[0];
}

/** Returns the CPU time of all threads in nanoseconds. @param {number} pid */
function cpuOf(pid) {
  const tasks = readdirSync(`/proc/${pid}/task`);
  return tasks.reduce(
    (sum, task) => sum + Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]),
    0,
  );
}

/** @param {number[]} values @param {number} part */
function at(values, part) {
  return Number(values[Math.floor(values.length * part)]).toFixed(2);
}

/** @param {number[]} values */
function median(values) {
  return /** @type {number} */ (values.toSorted((a, b) => a - b)[values.length >> 1]);
}
