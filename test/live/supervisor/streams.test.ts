// Streams and server-sent events during a roll and at the end of the service: nothing is cut, lost or delayed.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { startService } from '../../support/cluster-server.ts';
import { followEvents } from '../../support/event-source.ts';
import { createFolder, write } from '../../support/folder.ts';

/** Returns piece `i` of a stream. */
const piece = (code: string, i: number) => `${code} ${i} ${'.'.repeat(i % 1000)}\n`;
const GATEFOLD = new URL('../../../dist/controller.js', import.meta.url).href;

it('a roll keeps a stream complete, moves event streams to the new code, and disposes the old controller', async (test) => {
  const state = createFolder(test);
  const gate = join(state, 'over');
  const closed = join(state, 'closed');
  const controller = (code: string) => `
    import { appendFileSync, existsSync } from 'node:fs';
    import { Readable } from 'node:stream';
    import { setTimeout as sleep } from 'node:timers/promises';
    import { eventStream } from ${JSON.stringify(GATEFOLD)};
    const piece = ${piece};
    export default class {
      code = '${code}';
      index() { return { code: this.code } }
      long() {
        const code = this.code;
        return Readable.from((async function* () { let i = 0; for (; !existsSync(${JSON.stringify(gate)}); i++) { yield piece(code, i); await sleep(20) } yield 'end ' + i })());
      }
      feed(data, { lastEventId, signal }) {
        const code = this.code;
        return eventStream((async function* () { for (let id = Number(lastEventId ?? 0) + 1; ; id++) { yield { id: String(id), data: code }; await sleep(20, undefined, { signal }) } })(), { retry: 20 });
      }
      created(data, { waitUntil }) { waitUntil(sleep(300).then(() => appendFileSync(${JSON.stringify(closed)}, 'worked '))); return {} }
      async [Symbol.asyncDispose]() { await sleep(20); appendFileSync(${JSON.stringify(closed)}, 'closed-' + this.code + ' ') }
    }`;
  const service = await startService(test, { files: { 'AController.mjs': controller('old') }, env: { WORKERS: '1' } });
  const url = `http://127.0.0.1:${service.port}/api/a`;

  // The head of the answer arrives with the first piece.
  const long = await fetch(`${url}/long`);
  const seen: { id: number; code: string; isFirst: boolean }[] = [];
  const stop = new AbortController();
  const reconnects = followEvents(`${url}/feed`, stop.signal, ({ id, data, reconnected }) => {
    seen.push({ id: Number(id), code: JSON.parse(data), isFirst: reconnected !== undefined });
  });
  await until(() => seen.length > 3);

  write(service.dir, 'AController.mjs', controller('new'));
  await until(() => seen.at(-1)?.code === 'new');
  assert.equal(seen.find(({ isFirst }) => isFirst)?.code, 'new', 'the event stream reconnected once, to the new code');
  assert.deepEqual(
    seen.map(({ id }) => id),
    seen.map((_, i) => i + 1),
    'the client gets every event once',
  );
  // The old worker still has this stream, and nothing else.
  writeFileSync(gate, '');
  const text = await long.text();
  const pieces = Number(/end (\d+)$/.exec(text)?.[1]);
  assert.ok(
    text === `${Array.from({ length: pieces }, (_, i) => piece('old', i)).join('')}end ${pieces}`,
    'the stream has every byte of the old code, in order',
  );
  // The file exists before its text is written.
  await until(() => existsSync(closed) && readFileSync(closed, 'utf8') !== '');
  assert.equal(readFileSync(closed, 'utf8'), 'closed-old ');

  await fetch(url, { method: 'POST' });
  service.process.kill('SIGTERM');
  stop.abort();
  assert.deepEqual(await service.exited, { code: 0, signal: null });
  assert.equal(readFileSync(closed, 'utf8'), 'closed-old worked closed-new ');
  assert.deepEqual(
    service.lines.filter(({ level }) => level === 'error' || level === 'warn'),
    [],
  );
  await reconnects;
});

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((later) => setTimeout(later, 20));
}

it('a roll waits for an upload that makes progress, as for a stream', async (test) => {
  const controller = (code: string) => `export default class {
    static operations = { created: { body: 'stream', timeout: 600_000 } };
    index() { return { code: '${code}' }; }
    async created(data) { let size = 0; for await (const piece of data) size += piece.length; return { code: '${code}', size }; }
  }`;
  const files = { 'UpController.mjs': controller('old') };
  const service = await startService(test, {
    files,
    env: { WORKERS: '1', REQUEST_TIMEOUT: '1s', HEADERS_TIMEOUT: '1s' },
  });
  const url = `http://127.0.0.1:${service.port}/api/up`;
  const body = new PassThrough();
  body.write('x');
  const upload = fetch(url, {
    method: 'POST',
    body: Readable.toWeb(body) as ReadableStream,
    duplex: 'half',
  } as RequestInit);
  await service.logged('generation-serving');
  write(service.dir, 'UpController.mjs', controller('new'));
  await service.logged('generation-serving', ({ generation }) => generation === 2);
  // Longer than REQUEST_TIMEOUT, and than the time after which idle connections of the old worker end.
  let size = 1;
  for (const deadline = Date.now() + 4000; Date.now() < deadline; size += 2048) {
    body.write('y'.repeat(2048));
    await sleep(100);
  }
  body.end();
  assert.deepEqual(await (await upload).json(), { code: 'old', size });
});

it('a stream that is cut at the end of a drain has its log line', async (test) => {
  const controller = `export default class {
    index() { return new ReadableStream({ start(stream) { stream.enqueue(new Uint8Array(100)); } }); }
  }`;
  const files = { 'EndlessController.mjs': controller };
  const service = await startService(test, { files, env: { WORKERS: '1', DRAIN_TIMEOUT: '200ms' } });
  const { body } = await fetch(`http://127.0.0.1:${service.port}/api/endless`);
  assert.ok(body !== null);
  service.process.kill('SIGTERM');
  await assert.rejects(new Response(body).arrayBuffer());
  await service.exited;
  const lines = service.lines
    .filter(({ event }) => event === 'request')
    .map(({ status, bytes }) => ({ status, bytes }));
  assert.deepEqual(lines, [{ status: 499, bytes: 100 }]);
});

it('an operation that a drain cuts has its log line, also if its client has left', async (test) => {
  const begun = join(createFolder(test), 'begun');
  const controller = `
    import { appendFileSync } from 'node:fs';
    export default class {
      'GET {name}'() {
        appendFileSync(${JSON.stringify(begun)}, '.');
        return new Promise(() => {});
      }
    }`;
  const files = { 'PayController.mjs': controller };
  const service = await startService(test, { files, env: { WORKERS: '1', DRAIN_TIMEOUT: '200ms' } });
  const clients = ['stays', 'leaves'].map((name) => {
    const client = connect(service.port, '127.0.0.1');
    client.write(`GET /api/pay/${name} HTTP/1.1\r\nHost: pay\r\n\r\n`);
    return client.on('error', () => {});
  });
  await until(() => existsSync(begun) && readFileSync(begun, 'utf8') === '..');
  clients[1]?.destroy();
  service.process.kill('SIGTERM');
  await service.exited;
  const lines = service.lines.filter(({ event }) => event === 'request');
  assert.deepEqual(lines.map(({ path, status }) => `${path} ${status}`).sort(), [
    '/api/pay/leaves 499',
    '/api/pay/stays 499',
  ]);
});

it('a drain waits for an operation whose client has left', async (test) => {
  const state = createFolder(test);
  const [begun, gate, ended] = ['begun', 'gate', 'ended'].map((name) => join(state, name)) as [string, string, string];
  const controller = `
    import { existsSync, writeFileSync } from 'node:fs';
    import { setTimeout as sleep } from 'node:timers/promises';
    export default class {
      async created() {
        writeFileSync(${JSON.stringify(begun)}, '');
        while (!existsSync(${JSON.stringify(gate)})) await sleep(20);
        writeFileSync(${JSON.stringify(ended)}, '');
        return {};
      }
    }`;
  const service = await startService(test, { files: { 'PayController.mjs': controller }, env: { WORKERS: '1' } });
  const client = connect(service.port, '127.0.0.1');
  client.write('POST /api/pay HTTP/1.1\r\nHost: pay\r\nContent-Length: 0\r\n\r\n');
  await until(() => existsSync(begun));
  client.destroy();
  service.process.kill('SIGTERM');
  await Promise.race([service.exited, sleep(500)]);
  writeFileSync(gate, '');
  await service.exited;
  assert.ok(existsSync(ended), 'the operation came to its end');
  assert.deepEqual(
    service.lines.filter(({ event }) => event === 'request').map(({ status }) => status),
    [499],
  );
});
