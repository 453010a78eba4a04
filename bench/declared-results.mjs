// Measures the cost of `results: 'declared'`: the processor time of a worker for a list of 100 rows, with and without it,
// in turns.
//
// node bench/declared-results.mjs [ROUNDS] [REQUESTS]
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const [rounds = 60, requests = 400] = process.argv.slice(2).map(Number);
const root = mkdtempSync(join(tmpdir(), 'gatefold-declared-'));
mkdirSync(join(root, 'controllers'));
const CONTROLLER = `
interface User { id: number; name: string; email: string; bio: string; createdAt: string; active: boolean; role: string; score: number }
const rows = Array.from({ length: 100 }, (_, i) => ({
  id: i, name: 'User number ' + i, email: 'user' + i + '@example.com', bio: 'a longer text about this user ' + i,
  createdAt: '2026-01-01T00:00:00.000Z', active: i % 2 === 0, role: 'admin', score: i * 1.5,
}));
export default class UserController {
  static operations = { limited: { results: 'declared' } };
  whole(): User[] { return rows; }
  limited(): User[] { return rows; }
  again(): User[] { return rows; }
  usage() { return process.cpuUsage(); }
}
`;
writeFileSync(join(root, 'controllers', 'UserController.ts'), CONTROLLER);
writeFileSync(join(root, 'package.json'), '{"type":"module"}');
const port = await new Promise((done) => {
  const probe = createServer().listen(0, '127.0.0.1', () => {
    const { port: free } = probe.address();
    probe.close(() => done(free));
  });
});
const server = spawn(process.execPath, [resolve(import.meta.dirname, '../dist/server.js')], {
  cwd: root,
  env: {
    ...process.env,
    PORT: String(port),
    HOST: '127.0.0.1',
    WORKERS: '1',
    LOG_LEVEL: 'error',
    CONTROLLERS_DIR: join(root, 'controllers'),
    DATA_DIR: join(root, 'data'),
    NODE_ENV: 'production',
  },
  stdio: ['ignore', 'inherit', 'inherit'],
});

let socket;
let received = '';
let wake = () => {};
async function open() {
  for (let i = 0; i < 300; i++) {
    socket = connect(port, '127.0.0.1');
    const isOpen = await new Promise((done) =>
      socket.once('connect', () => done(true)).once('error', () => done(false)),
    );
    if (isOpen) break;
    await new Promise((done) => setTimeout(done, 100));
  }
  socket.setEncoding('latin1');
  socket.setNoDelay(true);
  socket.on('data', (text) => {
    received += text;
    wake();
  });
}
async function ask(name) {
  received = '';
  socket.write(`GET /api/user/${name} HTTP/1.1\r\nHost: x\r\n\r\n`);
  for (;;) {
    const head = received.indexOf('\r\n\r\n');
    if (head > 0) {
      const length = Number(/content-length: (\d+)/i.exec(received)[1]);
      if (received.length >= head + 4 + length) return received.slice(head + 4);
    }
    await new Promise((done) => {
      wake = done;
    });
  }
}
const cpu = async () => {
  const { user, system } = JSON.parse(await ask('usage'));
  return user + system;
};
async function cost(name) {
  const before = await cpu();
  for (let i = 0; i < requests; i++) await ask(name);
  return ((await cpu()) - before) / requests;
}
const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1];

await open();
const ready = await ask('limited');
if (ready !== (await ask('whole'))) throw new Error('the answers differ');
const NAMES = ['whole', 'limited', 'again'];
for (const name of [...NAMES, ...NAMES]) await cost(name);
const ratios = { limited: [], again: [] };
const costs = { whole: [], limited: [], again: [] };
for (let round = 0; round < rounds; round++) {
  const order = [0, 1, 2].map((i) => NAMES[(i + round) % 3]);
  const times = {};
  for (const name of order) times[name] = await cost(name);
  for (const name of NAMES) costs[name].push(times[name]);
  ratios.limited.push(times.limited / times.whole);
  ratios.again.push(times.again / times.whole);
}
console.log(
  `${process.version}: declared ${median(ratios.limited).toFixed(3)}, nothing ${median(ratios.again).toFixed(3)} of ${median(costs.whole).toFixed(1)} us of CPU (${rounds} rounds of ${requests})`,
);
socket.destroy();
server.kill('SIGTERM');
await new Promise((done) => server.once('exit', done));
rmSync(root, { recursive: true, force: true });
