// The well-behaved client during an attack: sends a GET each 20 ms on one kept connection, and a small POST each 50 ms
// on a new connection. The time of a request begins when it is due. Prints its figures when its standard input ends.
import { Agent, request } from 'node:http';

const GET_MS = 20;
const POST_MS = 50;
const PATIENCE_MS = 10_000;

const port = Number(process.argv[2]);
const kept = new Agent({ keepAlive: true, maxSockets: 1 });
/** @type {number[]} */
const times = [];
/** @type {Map<string, number>} */
const lost = new Map();
let underWay = 0;
let isOver = false;

every(GET_MS, (due) => ask(due, { method: 'GET', agent: kept }));
every(POST_MS, (due) =>
  ask(due, { method: 'POST', agent: false, headers: { 'Content-Type': 'application/json' } }, '{"a":"b"}'),
);
process.stdin.resume().once('end', () => {
  isOver = true;
  if (underWay === 0) report();
});

/** @param {number} ms @param {(due: number) => void} work */
function every(ms, work) {
  let due = performance.now();
  const next = () => {
    if (isOver) return;
    for (; due <= performance.now(); due += ms) work(due);
    setTimeout(next, due - performance.now());
  };
  next();
}

/** @param {number} due @param {import('node:http').RequestOptions} options @param {string=} body */
function ask(due, options, body) {
  underWay++;
  let isSettled = false;
  const settle = (/** @type {string | undefined} */ failure) => {
    if (isSettled) return;
    isSettled = true;
    underWay--;
    times.push(performance.now() - due);
    if (failure !== undefined) lost.set(failure, (lost.get(failure) ?? 0) + 1);
    if (isOver && underWay === 0) report();
  };
  const sent = request({ host: '127.0.0.1', port, path: '/api/test', ...options }, (response) => {
    response.resume();
    response.once('end', () => settle(response.statusCode === 200 ? undefined : String(response.statusCode)));
    response.once('close', () => settle('cut'));
  });
  sent.setTimeout(PATIENCE_MS, () => sent.destroy(Object.assign(new Error('late'), { code: 'late' })));
  sent.once('error', (error) => settle(/** @type {NodeJS.ErrnoException} */ (error).code ?? error.message));
  sent.end(body);
}

function report() {
  times.sort((a, b) => a - b);
  const at = (/** @type {number} */ part) => times[Math.floor(part * (times.length - 1))];
  process.stdout.write(
    `${JSON.stringify({ requests: times.length, lost: Object.fromEntries(lost), p50: at(0.5), p99: at(0.99) })}\n`,
    () => process.exit(),
  );
}
