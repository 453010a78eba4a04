// Answers and uploads that take a minute, during rolls of the service. Each of their bytes is compared. Meanwhile event
// streams reconnect, and short requests are counted. Runs on every Node of SOAK_NODES (paths, separated by colons;
// default: this one). Takes two minutes each (`npm run soak`).
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { startLoad } from '../support/cluster-client.ts';
import { startService } from '../support/cluster-server.ts';
import { followEvents } from '../support/event-source.ts';
import { createFolder, write } from '../support/folder.ts';

const ROLLS = Number(process.env.SOAK_ROLLS ?? 4);
/** The number of lines of a stream, which sends one a second. */
const SECONDS = Number(process.env.SOAK_SECONDS ?? 60);
const NODES = (process.env.SOAK_NODES ?? process.execPath).split(':');
const GATEFOLD = new URL('../../dist/controller.js', import.meta.url).href;
const FOLLOWERS = 8;

/** Returns line `i` of a stream of version `code`. Each line is longer than the last, so the pieces have many sizes. */
const line = (code: number, i: number) => `${code} ${i} ${String.fromCharCode(97 + (i % 26)).repeat(i * 500)}\n`;
const lines = (code: number) => Array.from({ length: SECONDS }, (_, i) => line(code, i)).join('');

const controller = (code: number, worked: string) => `
  import { createHash } from 'node:crypto';
  import { appendFileSync } from 'node:fs';
  import { Readable } from 'node:stream';
  import { setTimeout as sleep } from 'node:timers/promises';
  import { eventStream } from ${JSON.stringify(GATEFOLD)};
  const code = ${code};
  const line = ${line};
  async function* minute() { for (let i = 0; i < ${SECONDS}; i++) { yield Buffer.from(line(code, i)); await sleep(1000) } }
  async function* count(from, signal) { for (let id = from; ; id++) { yield { id: String(id), data: code }; await sleep(100, undefined, { signal }) } }
  export default class {
    static operations = { uploaded: { body: 'stream' }, '*': { timeout: ${SECONDS * 2000} } };
    index() { return { code, pid: process.pid } }
    later(data, { waitUntil }) { waitUntil(sleep(200).then(() => appendFileSync(${JSON.stringify(worked)}, '.'))); return { code } }
    readable() { return Readable.from(minute()) }
    web() { return ReadableStream.from(minute()) }
    async slow() { await sleep(${SECONDS * 1000}); return { code, lines: Array.from({ length: ${SECONDS} }, (_, i) => line(code, i)).join('') } }
    async uploaded(body) { const hash = createHash('sha256'); for await (const piece of body) hash.update(piece); return { code, sha256: hash.digest('hex') } }
    events(data, { lastEventId, signal }) { return eventStream(count(Number(lastEventId ?? 0) + 1, signal)) }
  }`;

/**
 * Requests that take a minute, and the expected answers on their connection. The answers depend on the version of the
 * code that was live when the request began.
 */
const LONG: Readonly<
  Record<string, { readonly request: string; readonly answers: (code: number) => string[]; readonly upload?: true }>
> = {
  'a Readable': { request: 'GET /api/feed/readable HTTP/1.1\r\nHost: a\r\n\r\n', answers: (code) => [lines(code)] },
  'a web stream': { request: 'GET /api/feed/web HTTP/1.1\r\nHost: a\r\n\r\n', answers: (code) => [lines(code)] },
  'a stream over HTTP/1.0': { request: 'GET /api/feed/readable HTTP/1.0\r\n\r\n', answers: (code) => [lines(code)] },
  'an answer that comes late': {
    request: 'GET /api/feed/slow HTTP/1.1\r\nHost: a\r\n\r\n',
    answers: (code) => [JSON.stringify({ code, lines: lines(code) })],
  },
  'a stream, with a request behind it': {
    request: 'GET /api/feed/web HTTP/1.1\r\nHost: a\r\n\r\nGET /api/feed/nothing/readable HTTP/1.1\r\nHost: a\r\n\r\n',
    answers: (code) => [lines(code), 'index'],
  },
  'an upload': {
    request:
      'POST /api/feed/uploaded HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n',
    answers: (code) => [JSON.stringify({ code, sha256: createHash('sha256').update(lines(0)).digest('hex') })],
    upload: true,
  },
};

for (const node of NODES) {
  describe(`Node ${execFileSync(node, ['--version'], { encoding: 'utf8' }).trim()}`, () => {
    it(`a request of ${SECONDS} s is complete after ${ROLLS} rolls, and event streams lose no event`, async (test) => {
      const worked = join(createFolder(test), 'worked');
      const service = await startService(test, {
        node,
        files: { 'FeedController.mjs': controller(0, worked) },
        env: { DRAIN_TIMEOUT: '90s', REQUEST_TIMEOUT: '120s', KEEP_ALIVE_TIMEOUT: '2s' },
      });
      const { port } = service;
      const loads = [
        startLoad(test, { port, connections: 4, mode: 'kept-alive', path: '/api/feed', pause: 5 }),
        startLoad(test, { port, connections: 2, mode: 'one request a connection', path: '/api/feed/later', pause: 5 }),
      ] as const;

      const stop = new AbortController();
      setMaxListeners(0, stop.signal);
      const reconnects: number[] = [];
      /** The versions of the code in the events of each follower. */
      const codes = Array.from({ length: FOLLOWERS }, (): number[] => []);
      const followers = codes.map((seen) => {
        let last = 0;
        return followEvents(`http://127.0.0.1:${port}/api/feed/events`, stop.signal, ({ id, data, reconnected }) => {
          assert.equal(Number(id), ++last, 'the client gets every event once');
          if (reconnected === undefined)
            assert.equal(Number(data), seen.at(-1) ?? 0, 'a stream has events of one version only');
          else {
            assert.equal(
              Number(data),
              (seen.at(-1) ?? 0) + 1,
              'the first event after a reconnect is of the new version',
            );
            reconnects.push(Math.round(reconnected));
          }
          seen.push(Number(data));
        });
      });

      // Requests of each kind begin under each version: the first see all rolls, and the last see none.
      const asked: Promise<void>[] = [];
      for (let code = 0; code <= ROLLS; code++) {
        const begun = Object.keys(LONG).map((name) => ask(test, port, name, code));
        asked.push(...begun.map(({ over }) => over));
        if (code === ROLLS) break;
        await Promise.all(begun.map((long) => long.isUnderWay));
        await sleep((SECONDS * 1000) / (ROLLS + 2));
        write(service.dir, 'FeedController.mjs', controller(code + 1, worked));
        await service.logged('generation-serving', ({ generation }) => Number(generation) === code + 2);
        // The next roll waits until the followers and the short requests get answers of the new version.
        while (codes.some((seen) => seen.at(-1) !== code + 1)) await sleep(20);
        await loads[0].until(({ body }) => body.includes(`"code":${code + 1},`));
      }
      await Promise.all(asked);

      stop.abort();
      await Promise.all(followers);
      const reports = await Promise.all(loads.map((load) => load.stop()));
      service.process.kill('SIGTERM');
      assert.deepEqual(await service.exited, { code: 0, signal: null });
      const answers = reports.map((report) => report.answers);
      const lost = reports.flatMap(({ failures }) => failures);
      reconnects.sort((a, b) => a - b);
      test.diagnostic(
        `${asked.length} long answers whole; ${answers.join(' + ')} requests beside them, ${lost.length} lost; ${reconnects.length} reconnects, ` +
          `each to the new code: ${reconnects[reconnects.length >> 1]} ms from the end of one stream to the first event of the next, ${reconnects.at(-1)} ms at most`,
      );
      assert.deepEqual(lost, []);
      assert.equal(reconnects.length, ROLLS * FOLLOWERS);
      assert.equal(
        readFileSync(worked, 'utf8').length,
        answers[1],
        'waitUntil work finishes, also in draining workers',
      );
      assert.deepEqual(
        service.lines.filter(({ level }) => level === 'warn' || level === 'error'),
        [],
      );
    });

    it('a stream longer than DRAIN_TIMEOUT is cut without a complete end', async (test) => {
      const worked = join(createFolder(test), 'worked');
      const files = { 'FeedController.mjs': controller(0, worked) };
      const service = await startService(test, { node, files, env: { LOG_LEVEL: 'warn', DRAIN_TIMEOUT: '2s' } });
      const cut = receive(test, service.port, LONG['a Readable']?.request ?? '');
      while (!cut.text().includes(line(0, 1))) await sleep(20);
      write(service.dir, 'FeedController.mjs', controller(1, worked));
      await cut.closed;
      assert.throws(() => bodies(cut.text()), /ends in the middle/);
    });
  });
}

/** Requests one of the long answers. `over` resolves when the whole answer has arrived and each byte is right. */
function ask(
  test: TestContext,
  port: number,
  name: string,
  code: number,
): { over: Promise<void>; isUnderWay: Promise<void> } {
  const { request, answers, upload } = LONG[name] as (typeof LONG)[string];
  const answer = receive(test, port, request);
  if (upload) void answer.begun.then(() => send(answer.write));
  return {
    // Nothing shows that a late answer has begun, but the next roll is seconds away.
    isUnderWay: name === 'an answer that comes late' ? Promise.resolve() : answer.begun,
    over: answer.closed.then(() => {
      const got = bodies(answer.text());
      const wanted = answers(code);
      assert.equal(got.length, wanted.length, `${name}, started by version ${code}`);
      got.forEach((body, i) => {
        if (wanted[i] === 'index')
          assert.equal(JSON.parse(body).code, code, 'the same version answers the next request on the connection');
        else
          assert.ok(
            body === wanted[i],
            `${name}, started by version ${code}: ${body.length} of ${wanted[i]?.length} bytes`,
          );
      });
    }),
  };
}

async function send(write: (text: string) => void): Promise<void> {
  for (let i = 0; i < SECONDS; i++) {
    const text = line(0, i);
    write(`${text.length.toString(16)}\r\n${text}\r\n`);
    await sleep(1000);
  }
  write('0\r\n\r\n');
}

interface Received {
  text(): string;
  /** Resolves when the first byte has arrived. */
  readonly begun: Promise<void>;
  readonly closed: Promise<void>;
  readonly write: (text: string) => void;
}

function receive(test: TestContext, port: number, request: string): Received {
  const socket = connect(port, '127.0.0.1').setEncoding('latin1');
  const pieces: string[] = [];
  test.after(() => socket.destroy());
  socket.on('data', (piece: string) => pieces.push(piece));
  socket.on('error', () => {});
  const begun = new Promise<void>((resolve) => socket.once('data', () => resolve()));
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.write(request);
  return { text: () => pieces.join(''), begun, closed, write: (text) => void socket.write(text) };
}

/** Returns the bodies of all answers of an ended connection. @throws Error when one is incomplete */
function bodies(received: string): string[] {
  const text = received.replace('HTTP/1.1 100 Continue\r\n\r\n', '');
  const found: string[] = [];
  for (let at = 0; at < text.length; ) {
    const headEnd = text.indexOf('\r\n\r\n', at);
    const head = text.slice(at, headEnd);
    assert.match(head, /^HTTP\/1\.1 200 /);
    at = headEnd + 4;
    const length = /^content-length: (\d+)\r?$/im.exec(head)?.[1];
    let body = '';
    if (length !== undefined) {
      body = text.slice(at, at + Number(length));
      at += Number(length);
    } else if (/^transfer-encoding: chunked\r?$/im.test(head)) {
      for (let size = -1; size !== 0; ) {
        const sizeEnd = text.indexOf('\r\n', at);
        if (sizeEnd < 0) throw new Error('the answer ends in the middle');
        size = Number.parseInt(text.slice(at, sizeEnd), 16);
        body += text.slice(sizeEnd + 2, sizeEnd + 2 + size);
        at = sizeEnd + 2 + size + 2;
      }
    } else {
      body = text.slice(at);
      at = text.length;
    }
    if (at > text.length) throw new Error('the answer ends in the middle');
    found.push(body);
  }
  return found;
}
