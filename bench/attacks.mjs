// The attacks of hostile clients, one row each: name, method, and settings that differ from the defaults. An attack
// runs until its time is over and reopens connections that the service ends. It returns a summary of the answers.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { madeUpToken } from './fixtures.mjs';

/**
 * @typedef {object} Target
 * @property {number} port
 * @property {number} seconds
 *
 * @typedef {object} Attack
 * @property {string} name
 * @property {string} how
 * @property {Record<string, string>=} env settings of the service
 * @property {number=} descriptors `ulimit -n` of the service
 * @property {'unread pipe' | 'full disk'=} log where its log goes; default: a file
 * @property {number=} seconds overrides the duration of all attacks
 * @property {(target: Target) => Promise<string>} run
 */

const MIB = 2 ** 20;
const HEAD = 'Host: hostile\r\n';
const get = (/** @type {string} */ path, headers = '') => `GET ${path} HTTP/1.1\r\n${HEAD}${headers}\r\n`;
const post = (/** @type {string} */ path, /** @type {number} */ length, headers = 'Content-Type: text/plain\r\n') =>
  `POST ${path} HTTP/1.1\r\n${HEAD}${headers}Content-Length: ${length}\r\n\r\n`;
const random = (bytes = 12) => randomBytes(bytes).toString('hex');

/** A compressed body that inflates to 960 MiB. */
const bomb = Buffer.concat(Array(15).fill(gzipSync(Buffer.alloc(64 * MIB))));

/** @type {Attack[]} */
export const ATTACKS = [
  { name: 'quiet', how: 'no attack', run: ({ seconds }) => pause(seconds).then(() => '') },
  {
    name: 'slow uploads',
    how: '1,000 bodies of 1 MiB, each over the whole time',
    run: (target) =>
      crowd(target, 1000, {
        first: post('/api/hostile', MIB),
        each: () => 'x'.repeat(Math.ceil(MIB / target.seconds / 2)),
        ms: 500,
      }),
  },
  {
    name: 'stuck uploads',
    how: '600 bodies of 1 MB that stop after 40 kB; BODY_BUDGET=4MiB',
    env: { BODY_BUDGET: '4MiB' },
    run: (target) => crowd(target, 600, { first: post('/api/hostile', 1e6) + 'x'.repeat(40_000) }),
  },
  {
    name: 'streamed uploads',
    how: "1,000 bodies of 1 GiB to an operation that does not read them (`body: 'stream'`)",
    run: (target) =>
      crowd(target, 1000, { first: post('/api/hostile/unread', 2 ** 30), each: () => 'x'.repeat(64 * 1024), ms: 500 }),
  },
  {
    name: 'idle connections',
    how: '10,000, a request on each, then nothing',
    run: (target) => crowd(target, 10_000, { first: get('/api/test') }),
  },
  { name: 'slow heads', how: '400, slowhttptest -H', run: (target) => slowhttptest(target, ['-H', '-u', '/api/test']) },
  {
    name: 'slow bodies',
    how: '400, slowhttptest -B',
    run: (target) => slowhttptest(target, ['-B', '-s', '8192', '-u', '/api/test']),
  },
  {
    name: 'slow readers',
    how: '400 of 1 MiB, slowhttptest -X',
    run: (target) =>
      slowhttptest(target, ['-X', '-w', '512', '-y', '1024', '-z', '32', '-k', '3', '-u', '/api/hostile']),
  },
  {
    name: 'unread streams',
    how: '500 endless answers that nobody reads',
    run: (target) => crowd(target, 500, { first: get('/api/hostile/endless'), unread: true }),
  },
  {
    name: 'event streams',
    how: '2,000, five events a second each',
    run: (target) => crowd(target, 2000, { first: get('/api/hostile/events') }),
  },
  {
    name: 'requests ahead',
    how: '200 connections, 1,000 requests in one write on each, no answer read',
    run: (target) => crowd(target, 200, { first: get('/api/test').repeat(1000), unread: true }),
  },
  {
    name: 'zip bombs',
    how: '50 at once, 1 MB that inflates to 960 MiB',
    run: (target) =>
      flood(target, 50, () => [
        post('/api/hostile', bomb.length, 'Content-Type: text/plain\r\nContent-Encoding: gzip\r\n'),
        bomb,
      ]),
  },
  {
    name: 'made-up paths',
    how: 'as fast as 16 connections are answered',
    seconds: 60,
    run: (target) => flood(target, 16, () => [get(`/api/${random()}/${random()}`)]),
  },
  {
    name: 'made-up tokens',
    how: 'as fast as 16 connections are answered',
    seconds: 60,
    run: (target) => flood(target, 16, () => [get('/api/test', `Authorization: Bearer ${madeUpToken()}\r\n`)]),
  },
  {
    name: 'made-up addresses',
    how: 'as fast as 16 connections are answered; TRUSTED_PROXIES=127.0.0.1, RATE_LIMIT=1000/s',
    env: { TRUSTED_PROXIES: '127.0.0.1', RATE_LIMIT: '1000/s' },
    seconds: 60,
    run: (target) =>
      flood(target, 16, () => [get('/api/test', `X-Forwarded-For: ${Array.from(randomBytes(4)).join('.')}\r\n`)]),
  },
  {
    name: 'ulimit -n 64',
    how: '200 connections, a request on each, then nothing; 200 a second at most',
    descriptors: 64,
    run: (target) => crowd(target, 200, { first: get('/api/test'), atOnce: 4 }),
  },
  {
    name: 'ulimit -n 1024',
    how: '2,500 half heads',
    descriptors: 1024,
    run: (target) => crowd(target, 2500, { first: get('/api/test').slice(0, -2) }),
  },
  {
    name: 'blocked log',
    how: 'a pipe that nobody reads; 4 connections ask as fast as they are answered',
    log: 'unread pipe',
    run: (target) => flood(target, 4, () => [get('/api/test')]),
  },
  {
    name: 'full disk',
    how: 'log and DATA_DIR on a file system without a free byte; as above',
    log: 'full disk',
    run: (target) => flood(target, 4, () => [get('/api/test')]),
  },
];

/** @param {number} seconds */
function pause(seconds) {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1000));
}

/** @typedef {Map<string, number>} Tally each kind of answer, and how often it came */

/** @param {Tally} tally @param {string} what */
function count(tally, what, times = 1) {
  tally.set(what, (tally.get(what) ?? 0) + times);
}

/** @param {Tally} tally */
function told(tally) {
  return [...tally].map(([what, times]) => `${times} × ${what}`).join(', ');
}

/** The connections that are opened in 20 ms. More could overflow the listen queue, which holds 511. */
const AT_ONCE = 100;

/**
 * Keeps `size` connections open. Each sends `first`, and then `each` every `ms` where it is given.
 *
 * @param {Target} target
 * @param {number} size
 * @param {{ first: string, each?: () => string, ms?: number, unread?: boolean, atOnce?: number }} options
 */
async function crowd({ port, seconds }, size, { first, each, ms, unread = false, atOnce = AT_ONCE }) {
  /** @type {Set<import('node:net').Socket>} */
  const sockets = new Set();
  /** @type {Tally} */
  const tally = new Map();
  const open = () => {
    const socket = connect(port, '127.0.0.1');
    let isAnswered = false;
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => {
      sockets.delete(socket);
      count(tally, 'closed');
    });
    if (!unread)
      socket.on('data', (chunk) => {
        if (!isAnswered) count(tally, chunk.toString('latin1', 9, 12));
        isAnswered = true;
      });
    socket.write(first);
  };
  const opening = setInterval(() => {
    for (let i = 0; i < atOnce && sockets.size < size; i++) open();
  }, 20);
  const sending =
    each &&
    setInterval(() => {
      for (const socket of sockets) if (socket.writable && socket.writableLength === 0) socket.write(each());
    }, ms);
  await pause(seconds);
  clearInterval(opening);
  clearInterval(sending);
  const most = sockets.size;
  for (const socket of sockets) socket.destroy();
  return [`${most} at the end`, told(tally)].filter(Boolean).join(', ');
}

/**
 * Keeps `size` connections open. Each sends its next request when it has an answer.
 *
 * @param {Target} target
 * @param {number} size
 * @param {() => (string | Buffer)[]} next
 */
async function flood({ port, seconds }, size, next) {
  /** @type {Tally} */
  const tally = new Map();
  /** @type {Set<import('node:net').Socket>} */
  const sockets = new Set();
  let isOver = false;
  const open = () => {
    const socket = connect(port, '127.0.0.1');
    sockets.add(socket);
    const send = () => next().forEach((part) => void socket.write(part));
    socket.on('error', () => {});
    socket.on('close', () => {
      sockets.delete(socket);
      if (!isOver) setImmediate(open);
    });
    socket.on('data', (chunk) => {
      const at = chunk.indexOf('HTTP/1.1 ');
      if (at < 0) return;
      count(tally, chunk.toString('latin1', at + 9, at + 12));
      if (!isOver && !chunk.includes('Connection: close')) send();
    });
    send();
  };
  for (let i = 0; i < size; i++) open();
  await pause(seconds);
  isOver = true;
  for (const socket of sockets) socket.destroy();
  return told(tally);
}

/** @param {Target} target @param {string[]} args the path last */
async function slowhttptest({ port, seconds }, args) {
  const url = `http://127.0.0.1:${port}${args.at(-1)}`;
  const all = [
    '-c',
    '400',
    '-r',
    '100',
    '-i',
    '1',
    '-x',
    '24',
    '-l',
    String(Math.ceil(seconds)),
    '-p',
    '3',
    ...args.slice(0, -1),
    url,
  ];
  const child = spawn('slowhttptest', all, { stdio: ['ignore', 'pipe', 'ignore'] });
  let text = '';
  child.stdout.on('data', (chunk) => {
    text = (text + chunk).slice(-5000);
  });
  const failure = await new Promise((resolve) => {
    child.once('error', (error) => resolve(error));
    child.once('close', () => resolve(undefined));
  });
  if (failure !== undefined) throw new Skip('slowhttptest is not installed');
  const isBare = text.replaceAll(/\x1b\[[0-9;]*m/g, '');
  const [, left] = [...isBare.matchAll(/connected:\s+(\d+)/g)].at(-1) ?? [];
  return `${left ?? '?'} connected at the end`;
}

/** An attack that this machine cannot run. */
export class Skip extends Error {}
