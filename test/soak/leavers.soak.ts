// Clients leave at any moment, send half of an announced body, read nothing or break the rules. The operations send
// answers of every kind, late or with failures. The service speaks HTTP and HTTPS, and rolls meanwhile. No stream may
// stay open, no error may occur outside a request, and no worker may end. Runs on every Node of SOAK_NODES. SOAK_SEED
// repeats a run.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectSecurely } from 'node:tls';
import { ask, json } from '../support/cluster-client.ts';
import { startService } from '../support/cluster-server.ts';
import { createFolder, write } from '../support/folder.ts';
import { makePair } from '../support/tls.ts';

const SECONDS = Number(process.env.SOAK_SECONDS ?? 20);
const SEED = Number(process.env.SOAK_SEED ?? Math.floor(Math.random() * 2 ** 31));
const NODES = (process.env.SOAK_NODES ?? process.execPath).split(':');
const GATEFOLD = new URL('../../dist/controller.js', import.meta.url).href;
const CLIENTS = 24;

/** Kinds of result. Each kind that holds a resource counts the resource until it is released. */
const KINDS = [
  ...['readable', 'web', 'events', 'response', 'reply', 'tagged', 'none', 'bad', 'file', 'missing'],
  ...['blob', 'bytes', 'text', 'json', 'map', 'refused', 'thrown', 'floating'],
];

/**
 * The source of the controller, which counts its open resources. The number of the roll makes each version different.
 */
const controller = (roll: number) => `// ${roll}
  import { createReadStream } from 'node:fs';
  import { Readable } from 'node:stream';
  import { setTimeout as sleep } from 'node:timers/promises';
  import { eventStream, HttpError, Reply } from ${JSON.stringify(GATEFOLD)};
  const open = new Map();
  let opened = 0;
  const hold = (kind) => { const id = ++opened; open.set(id, kind); return () => open.delete(id) };
  const readable = ({ kind, count, wait, size, fails }) => {
    const letGo = hold(kind);
    let i = 0;
    let timer;
    return new Readable({
      read() {
        const give = () => { if (i++ < count) this.push(Buffer.alloc(size)); else if (fails) this.destroy(new Error('source broke')); else this.push(null) };
        if (wait > 0) timer = setTimeout(give, wait); else give();
      },
      destroy(error, done) { clearTimeout(timer); letGo(); done(error) },
    });
  };
  const web = ({ kind, count, wait, size, fails }) => {
    const letGo = hold(kind);
    let i = 0;
    return new ReadableStream({
      async pull(c) {
        if (wait > 0) await sleep(wait);
        if (i++ < count) return c.enqueue(new Uint8Array(size));
        letGo();
        if (fails) c.error(new Error('source broke')); else c.close();
      },
      cancel() { letGo() },
    });
  };
  async function* items({ kind, count, wait, size, fails }, signal) {
    const letGo = hold(kind);
    try {
      for (let i = 0; i < count; i++) { if (wait > 0) await sleep(wait, undefined, { signal }); yield { id: String(i), data: 'x'.repeat(Math.min(size, 2000)) } }
      if (fails) throw new Error('source broke');
    } finally { letGo() }
  }
  const file = (path, kind) => { const stream = createReadStream(path); return stream.on('close', hold(kind)) };
  const MAKE = {
    readable, web,
    events: (query, { signal }) => eventStream(items(query, signal)),
    response: (query) => new Response(web(query), { status: 203 }),
    reply: (query) => new Reply(201, readable(query), { 'Set-Cookie': ['a=1', 'b=2'] }),
    tagged: (query) => new Reply(200, readable(query), { ETag: '"1"' }),
    none: (query) => new Reply(204, readable(query)),
    bad: (query) => new Reply(200, readable(query), { 'X-Bad': 'a\\r\\nb' }),
    file: () => file(import.meta.filename ?? new URL(import.meta.url).pathname, 'file'),
    missing: () => file('/no/such/file', 'missing'),
    blob: ({ size }) => new Blob(['x'.repeat(size)]),
    bytes: ({ size }) => Buffer.alloc(size),
    text: ({ size }) => new Reply(200, { a: 'x'.repeat(size) }),
    json: ({ size }) => ({ a: 'x'.repeat(size) }),
    map: () => new Map(),
    refused: () => { throw new HttpError(409, 'TAKEN', 'It is taken') },
    thrown: () => { throw new Error('thrown') },
    floating: () => new Reply(200, Promise.reject(new Error('floating'))),
  };
  const make = (params) => {
    const { kind, fails, ...numbers } = params.query;
    const query = { kind, fails, ...Object.fromEntries(Object.entries(numbers).map(([name, value]) => [name, Number(value)])) };
    return query.delay > 0 ? sleep(query.delay).then(() => MAKE[kind](query, params)) : MAKE[kind](query, params);
  };
  export default class {
    static operations = { '*': { timeout: 40, bodyLimit: 500_000 }, open: { timeout: 5000 }, echo: { body: 'stream' }, ignores: { body: 'stream' }, reads: { body: 'stream' } };
    async _before(data, { query: { guard } }) {
      if (guard === 'answers') return new Reply(202);
      if (guard === 'refuses') throw new HttpError(403, 'NOT_YOURS', 'It is not yours');
      if (guard === 'late') await sleep(60);
      if (guard === 'hangs') await new Promise(() => {});
    }
    open() { return { open: [...open.values()], opened, sockets: process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length } }
    run(data, params) { return make(params) }
    echo(body) { return body }
    ignores(body, params) { return make(params) }
    async reads(body, params) { for await (const piece of body) void piece; params.waitUntil(sleep(20)); return make(params) }
  }`;

for (const node of NODES) {
  describe(`Node ${execFileSync(node, ['--version'], { encoding: 'utf8' }).trim()}`, () => {
    for (const secure of [false, true]) {
      it(`clients that disconnect leave no open stream or socket: ${secure ? 'HTTPS' : 'HTTP'}`, async (test) => {
        const dir = createFolder(test, { 'LeaveController.mjs': controller(0) });
        const { cert, key } = makePair('localhost');
        const [TLS_CERT, TLS_KEY] = [join(dirname(dir), 'cert.pem'), join(dirname(dir), 'key.pem')] as const;
        writeFileSync(TLS_CERT, cert);
        writeFileSync(TLS_KEY, key, { mode: 0o600 });
        const env = {
          WORKERS: '1',
          DRAIN_TIMEOUT: '3s',
          REQUEST_TIMEOUT: '3s',
          HEADERS_TIMEOUT: '2s',
          KEEP_ALIVE_TIMEOUT: '2s',
        };
        const service = await startService(test, { node, dir, env: { ...env, ...(secure && { TLS_CERT, TLS_KEY }) } });
        const { port } = service;
        const tls = secure ? { servername: 'localhost', ca: cert } : undefined;
        const open = async () =>
          json(await ask(port, '/api/leave/open', 'GET', tls)) as { open: string[]; opened: number; sockets: number };

        const random = createRandom(SEED);
        const until = Date.now() + SECONDS * 1000;
        let connections = 0;
        let opened = 0;
        const clients = Array.from({ length: CLIENTS }, async () => {
          while (Date.now() < until) {
            connections++;
            await visit(() => openSocket(port, secure), random);
          }
        });
        for (let roll = 1; Date.now() + 5000 < until; roll++) {
          await sleep(4000);
          opened += (await open()).opened;
          write(dir, 'LeaveController.mjs', controller(roll));
          await service.logged('generation-serving', ({ generation }) => Number(generation) === roll + 1);
        }
        await Promise.all(clients);

        let state = await open();
        // Two sockets may be open: the socket of this request, and that of the channel or of the previous request.
        for (
          const hopeless = Date.now() + service.patience();
          state.open.length > 0 || state.sockets > 2;
          state = await open()
        ) {
          if (Date.now() > hopeless) break;
          await sleep(200);
        }
        const answered = service.lines.filter(({ event }) => event === 'request').length;
        test.diagnostic(
          `seed ${SEED}: ${connections} connections, ${answered} requests, some ${opened + state.opened} streams`,
        );
        assert.deepEqual(state.open, [], `seed ${SEED}`);
        assert.ok(state.sockets <= 2, `seed ${SEED}: ${state.sockets} sockets`);
        const FAULTS = [
          'uncaught-exception',
          'worker-faulty',
          'worker-died',
          'supervisor-exception',
          'generation-rejected',
        ];
        assert.deepEqual(
          service.lines.filter(({ event }) => FAULTS.includes(event)),
          [],
          `seed ${SEED}`,
        );
        service.process.kill('SIGTERM');
        assert.deepEqual(await service.exited, { code: 0, signal: null });
      });
    }
  });
}

/** Resets a connection. With TLS it is only closed, because Node gives no access to the TCP socket below. */
function reset(socket: Socket): void {
  if ('encrypted' in socket) socket.destroy();
  else socket.resetAndDestroy();
}

interface Random {
  below(limit: number): number;
  pick<T>(...values: readonly T[]): T;
}

/** Returns the random numbers of a seed. The order in which the clients run still depends on the machine. */
function createRandom(seed: number): Random {
  let state = (seed ^ 0x9e3779b9) >>> 0;
  const below = (limit: number) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
  return { below, pick: (...values) => values[below(values.length)] as (typeof values)[number] };
}

function openSocket(port: number, secure: boolean): Socket {
  const socket = secure
    ? connectSecurely({
        port,
        host: '127.0.0.1',
        servername: 'localhost',
        rejectUnauthorized: false,
        ALPNProtocols: ['http/1.1'],
      })
    : connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  return socket.on('error', () => {});
}

function request({ below, pick }: Random): { head: string; body: string } {
  const version = pick('1.1', '1.1', '1.1', '1.0');
  const verb = pick('GET', 'GET', 'HEAD', 'POST', 'POST');
  const more = pick(
    '',
    '',
    'Connection: close\r\n',
    'Connection: keep-alive\r\n',
    'If-None-Match: "1"\r\n',
    'Last-Event-ID: 7\r\n',
  );
  const query = [
    `kind=${pick(...KINDS)}&count=${pick(0, 1, 3, 30, 100_000)}&wait=${pick(0, 0, 1, 10, 60)}&size=${pick(1, 100, 20_000, 200_000)}`,
    `${pick('', '', 'fails=1&')}delay=${pick(0, 0, 1, 10, 35, 45, 80)}&guard=${pick('', '', '', '', '', 'answers', 'refuses', 'late', 'hangs')}`,
  ].join('&');
  if (verb !== 'POST')
    return { head: `${verb} /api/leave/run?${query} HTTP/${version}\r\nHost: a\r\n${more}\r\n`, body: '' };
  const size = pick(0, 5, 5000, 300_000, 600_000);
  const text = 'b'.repeat(size);
  const line = `POST /api/leave/${pick('echo', 'ignores', 'reads', 'run')}?${query} HTTP/${version}\r\nHost: a\r\nContent-Type: text/plain\r\n${more}`;
  const expects = version === '1.1' && below(4) === 0 ? 'Expect: 100-continue\r\n' : '';
  if (version === '1.0' || below(2) === 0)
    return { head: `${line}${expects}Content-Length: ${size}\r\n\r\n`, body: text };
  const chunk = size === 0 ? '' : `${size.toString(16)}\r\n${text}\r\n`;
  return { head: `${line}${expects}Transfer-Encoding: chunked\r\n\r\n`, body: `${chunk}0\r\n\r\n` };
}

/** Runs one connection: sends some requests, complete or not, and ends it. */
async function visit(open: () => Socket, random: Random): Promise<void> {
  const { below, pick } = random;
  const socket = open();
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  const reads = setTimeout(() => socket.resume(), pick(0, 0, 0, 50, 500));
  socket.on('end', () => socket.destroy());
  for (let i = pick(1, 1, 1, 2, 4); i > 0; i--) {
    const { head, body } = request(random);
    if (below(8) === 0) {
      socket.write(head.slice(0, below(head.length)));
      break;
    }
    socket.write(head);
    if (below(3) === 0) await sleep(pick(1, 10, 60));
    const part = pick('half', 'nonsense', 'whole', 'whole', 'whole', 'whole', 'whole', 'whole');
    socket.write(
      part === 'half' ? body.slice(0, below(body.length + 1)) : part === 'nonsense' ? 'zz\r\nnonsense\r\n' : body,
    );
    if (part !== 'whole') break;
    if (below(2) === 0) await sleep(pick(1, 20, 80, 200));
  }
  await sleep(pick(0, 5, 30, 100, 300));
  const end = pick('destroy', 'reset', 'end', 'wait');
  if (end === 'destroy') socket.destroy();
  else if (end === 'reset') reset(socket);
  else if (end === 'end') socket.end();
  const last = setTimeout(() => socket.destroy(), end === 'wait' ? 1000 : 5000);
  await closed;
  clearTimeout(last);
  clearTimeout(reads);
}
