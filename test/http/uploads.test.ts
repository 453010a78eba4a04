// Tests uploads, which are bodies that are not complete: their bytes are limited, and they do not block other requests.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { createBodyBudget, defaultBodyBudget } from '../../src/http/body/budget.ts';
import { Pieces } from '../../src/http/body/pieces.ts';
import type { Exchange } from '../../src/http/exchange.ts';
import { parseRaw, type Service, startService } from '../support/service.ts';

const controllers = {
  'SizeController.mjs': `export default class {
    index() { return { ok: true }; }
    created(text) { return { length: text.length ?? -1 }; }
  }`,
  'HeldController.mjs': `
    export let release;
    const held = new Promise((done) => { release = done; });
    export default { index: () => held };`,
};

type Context = { after(fn: () => unknown): void };

async function serve(t: Context, settings: Record<string, string>): Promise<Service> {
  const service = await startService({ controllers, settings, expectedErrors: ['request-failed'] });
  t.after(service.close);
  // The group is imported.
  assert.equal((await fetch(`${service.url}/api/size`)).status, 200);
  return service;
}

interface Upload extends Socket {
  text: string;
}

/** Returns the head of an upload, and the given part of its body. */
async function upload(t: Context, { port }: Service, length: number, sent: number): Promise<Upload> {
  const socket = Object.assign(connect(port, '127.0.0.1'), { text: '' }) as Upload;
  t.after(() => void socket.destroy());
  socket.on('error', () => {});
  socket.setEncoding('latin1');
  socket.on('data', (chunk) => {
    socket.text += chunk;
  });
  await once(socket, 'connect');
  socket.write(`POST /api/size HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: ${length}\r\n\r\n`);
  socket.write('a'.repeat(sent));
  return socket;
}

async function answered(socket: Upload): Promise<number> {
  while (!socket.text.includes('}')) await once(socket, 'data');
  return parseRaw(socket.text).status;
}

describe('incomplete uploads', () => {
  test('do not count for MAX_IN_FLIGHT, so other requests are served', async (t) => {
    const service = await serve(t, { MAX_IN_FLIGHT: '5' });
    const slow = await Promise.all(Array.from({ length: 50 }, () => upload(t, service, 1000, 10)));
    while (service.app.inFlight() < 50) await new Promise(setImmediate);
    for (let i = 0; i < 10; i++) assert.equal((await fetch(`${service.url}/api/size`)).status, 200);
    for (const socket of slow) socket.write('a'.repeat(990));
    assert.deepEqual(new Set(await Promise.all(slow.map(answered))), new Set([200]));
  });

  test('count for MAX_IN_FLIGHT once they are complete, and get 503 beyond it', async (t) => {
    const service = await serve(t, { MAX_IN_FLIGHT: '1' });
    const { release } = (await import(`file://${service.dir}/HeldController.mjs`)) as { release(): void };
    const uploads = await Promise.all([upload(t, service, 1000, 10), upload(t, service, 1000, 10)]);
    while (service.app.inFlight() < 2) await new Promise(setImmediate);
    const held = fetch(`${service.url}/api/held`);
    while (service.app.inFlight() < 3) await new Promise(setImmediate);
    const [late, later] = uploads as [Upload, Upload];
    late.write('a'.repeat(990));
    assert.equal(await answered(late), 503);
    assert.match(late.text, /^Retry-After: 1\r$/m);
    release();
    assert.equal((await held).status, 200);
    later.write('a'.repeat(990));
    assert.equal(await answered(later), 200);
  });

  test('beyond BODY_BUDGET wait for each other, and all are served', async (t) => {
    const service = await serve(t, { BODY_LIMIT: '300KiB', BODY_BUDGET: '4MiB' });
    const crowd = await Promise.all(Array.from({ length: 40 }, () => upload(t, service, 300_000, 300_000)));
    assert.deepEqual(new Set(await Promise.all(crowd.map(answered))), new Set([200]));
    // All uploads are under way at the same time, and each alone is larger than the limit.
    const slow = await Promise.all(Array.from({ length: 20 }, () => upload(t, service, 300_000, 100_000)));
    while (service.app.inFlight() < 20) await new Promise(setImmediate);
    for (const socket of slow) socket.write('a'.repeat(200_000));
    assert.deepEqual(new Set(await Promise.all(slow.map(answered))), new Set([200]));
  });

  test('that stall beyond BODY_BUDGET get 503, and a small body is served', async (t) => {
    const service = await serve(t, { BODY_LIMIT: '300KiB', BODY_BUDGET: '1MiB' });
    const slow = await Promise.all(Array.from({ length: 4 }, () => upload(t, service, 300_000, 250_000)));
    while (service.app.inFlight() < 4) await new Promise(setImmediate);
    slow.push(await upload(t, service, 300_000, 250_000));
    const small = await fetch(`${service.url}/api/size`, {
      method: 'POST',
      body: 'abc',
      headers: { 'content-type': 'text/plain' },
    });
    await Promise.race(slow.map(answered));
    // The uploads that were not refused continue, and are answered.
    for (const socket of slow) if (socket.text === '') socket.write('a'.repeat(50_000));
    const statuses = await Promise.all(slow.map(answered));
    assert.ok(statuses.includes(503), String(statuses));
    assert.equal(small.status, 200);
    for (const socket of slow) {
      if (!socket.text.includes(' 503 ')) continue;
      assert.match(socket.text, /^Retry-After: 1\r$/m);
      assert.match(socket.text, /^Connection: close\r$/m);
    }
    // There is room again.
    assert.equal(await answered(await upload(t, service, 300_000, 300_000)), 200);
  });

  test('never delay a small body or a body that arrives in one piece', async (t) => {
    const service = await serve(t, { BODY_BUDGET: '4MiB' });
    const stuck = await Promise.all(Array.from({ length: 300 }, () => upload(t, service, 1_000_000, 40_000)));
    while (stuck.every(({ text }) => text === '')) await new Promise(setImmediate);
    // Head and body arrive apart, so the service does not know that the body is complete.
    for (const [length, pieces] of [
      [7, [7]],
      [40_000, [40_000]],
      [12_000, [4000, 4000, 4000]],
    ] as const) {
      const socket = await upload(t, service, length, 0);
      for (const piece of pieces) {
        await new Promise((sent) => setTimeout(sent, 5));
        socket.write('a'.repeat(piece));
      }
      assert.equal(await answered(socket), 200, `${length} bytes`);
    }
    // Without a Content-Length, nothing says that the chunk is the whole body, so a large one is refused like an
    // upload.
    const chunked = connect(service.port, '127.0.0.1');
    t.after(() => void chunked.destroy());
    chunked.write('POST /api/size HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nExpect: 100-continue\r\n');
    chunked.write('Transfer-Encoding: chunked\r\n\r\n');
    assert.match(String((await once(chunked, 'data'))[0]), /^HTTP\/1\.1 100 /);
    chunked.write(`9c40\r\n${'a'.repeat(40_000)}\r\n0\r\n\r\n`);
    assert.match(String((await once(chunked, 'data'))[0]), /^HTTP\/1\.1 503 /);
    // Uploads that were accepted send nothing and are ended. The others were refused at once.
    assert.deepEqual(new Set(await Promise.all(stuck.map(answered))), new Set([503]));
    assert.equal(await answered(await upload(t, service, 900_000, 900_000)), 200);
  });

  test('with only a head get 503 when other uploads need room', async (t) => {
    const service = await serve(t, { BODY_BUDGET: '2MiB' });
    const heads = await Promise.all(Array.from({ length: 130 }, () => upload(t, service, 1000, 0)));
    while (service.app.inFlight() < 130) await new Promise(setImmediate);
    assert.equal(await answered(await upload(t, service, 200_000, 200_000)), 503);
    assert.deepEqual(new Set(await Promise.all(heads.map(answered))), new Set([503]));
    assert.equal(await answered(await upload(t, service, 200_000, 200_000)), 200);
  });

  test('in gzip beyond BODY_BUDGET are all served', async (t) => {
    const service = await serve(t, { BODY_LIMIT: '100KiB', BODY_BUDGET: '256KiB' });
    const body = gzipSync('a'.repeat(100_000));
    const headers = { 'content-type': 'text/plain', 'content-encoding': 'gzip' };
    const post = () => fetch(`${service.url}/api/size`, { method: 'POST', body, headers }).then(({ status }) => status);
    assert.deepEqual(new Set(await Promise.all(Array.from({ length: 12 }, post))), new Set([200]));
  });
});

const KB = 1024;

interface Made {
  readonly made: Exchange;
  readonly flow: { readonly flowing: boolean };
}

function fakeStream() {
  let flowing = true;
  return {
    isFlowing: () => flowing,
    pause() {
      flowing = false;
    },
    resume() {
      flowing = true;
    },
  };
}

describe('body budget', () => {
  function budgetOf(limit: number) {
    const evicted: Exchange[] = [];
    const all: Exchange[] = [];
    const evict = (exchange: Exchange) => {
      evicted.push(exchange);
      budget.release(exchange);
    };
    const budget = createBodyBudget({ limit, bodyLimit: 100 * KB, exchanges: () => all, evict });
    const exchange = (): Made => {
      const [request, socket] = [fakeStream(), fakeStream()];
      const made = {
        isUploading: false,
        heldBytes: 0,
        lastHeldBytes: -1,
        request: { ...request, socket },
      } as unknown as Exchange;
      const flow = {
        get flowing() {
          assert.equal(request.isFlowing(), socket.isFlowing());
          return request.isFlowing();
        },
      };
      all.push(made);
      return { made, flow };
    };
    return { budget, exchange, evicted };
  }

  test('pauses uploads that cannot finish when three quarters are used, and refuses new uploads when it is full', () => {
    const { budget, exchange } = budgetOf(400 * KB);
    const [a, b, c, d, e] = [exchange(), exchange(), exchange(), exchange(), exchange()];
    const flows = (...them: (typeof a)[]) => them.map(({ flow }) => flow.flowing);
    for (const { made } of [a, b, c, d, e]) budget.beginUpload(made);
    for (const { made } of [a, b, c]) assert.ok(budget.reserve(made, 64 * KB));
    assert.deepEqual(flows(a, b, c), [true, true, true]);
    // The first of them may finish, the second may not.
    for (const { made } of [a, b]) assert.ok(budget.reserve(made, 64 * KB));
    assert.deepEqual(flows(a, b, c), [true, false, true]);
    assert.equal(budget.reserve(d.made, 17 * KB), false);
    budget.release(d.made);
    // The bytes of the first upload count until its answer, but another upload may now finish.
    budget.completeUpload(a.made);
    assert.deepEqual(flows(b, c), [true, true]);
    assert.ok(budget.reserve(c.made, 40 * KB));
    assert.deepEqual(flows(b, c), [true, false]);
    budget.release(a.made);
    budget.release(b.made);
    assert.deepEqual(flows(c), [true]);
    for (const { made } of [c, e]) budget.release(made);
    assert.deepEqual([budget.uploadCount(), a.made.heldBytes, b.made.heldBytes, c.made.heldBytes], [0, 0, 0, 0]);
  });

  test('never pauses or refuses a small body', () => {
    const { budget, exchange } = budgetOf(400 * KB);
    const crowd = Array.from({ length: 11 }, exchange);
    for (const { made } of crowd) {
      budget.beginUpload(made);
      budget.reserve(made, 20 * KB);
    }
    assert.equal(crowd.at(-1)?.flow.flowing, false);
    const { made, flow } = exchange();
    budget.beginUpload(made);
    for (let i = 0; i < 16; i++) assert.deepEqual([budget.reserve(made, 1 * KB), flow.flowing], [true, true]);
    // Now the upload is like the others.
    assert.equal(budget.reserve(made, 1 * KB), false);
  });

  test('counts uploads that have sent no byte', () => {
    const { budget, exchange } = budgetOf(256 * KB);
    for (let i = 0; i < 16; i++) budget.beginUpload(exchange().made);
    const { made } = exchange();
    assert.equal(budget.reserve(made, 16 * KB), true);
    assert.equal(budget.reserve(made, 1), false);
    assert.equal(budget.reserve(exchange().made, 16 * KB + 1), false);
  });

  test('ends stalled uploads, one after the other, when they may continue', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const { budget, exchange, evicted } = budgetOf(400 * KB);
    const crowd = Array.from({ length: 11 }, exchange);
    for (const { made } of crowd) {
      budget.beginUpload(made);
      assert.ok(budget.reserve(made, 20 * KB));
    }
    const [finishing, empty, moving] = crowd.slice(8) as [Made, Made, Made];
    assert.deepEqual(
      [finishing, empty, moving].map(({ flow }) => flow.flowing),
      [true, false, false],
    );
    t.mock.timers.tick(1000);
    for (const { made } of crowd.slice(0, 8)) budget.hold(made, 5 * KB);
    // An upload that sends too little in a second counts as stalled.
    budget.hold(finishing.made, 1 * KB);
    assert.deepEqual(evicted, []);
    const fresh = exchange();
    budget.beginUpload(fresh.made);
    t.mock.timers.tick(1000);
    // Now it is this upload's turn.
    assert.deepEqual(evicted, [finishing.made]);
    assert.deepEqual(
      [empty, moving].map(({ flow }) => flow.flowing),
      [true, false],
    );
    while (!moving.flow.flowing) await new Promise(setImmediate);
    budget.reserve(moving.made, 1);
    for (let turns = 0; turns < 5; turns++) await new Promise(setImmediate);
    assert.deepEqual(evicted, [finishing.made, empty.made]);
  });

  test('does not end an upload that was paused for less than a tick', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const { budget, exchange, evicted } = budgetOf(400 * KB);
    const crowd = Array.from({ length: 10 }, exchange);
    for (const { made } of crowd) {
      budget.beginUpload(made);
      budget.reserve(made, 20 * KB);
    }
    const [first, last] = [crowd[0], crowd[9]] as [Made, Made];
    assert.equal(last.flow.flowing, false);
    for (const { made } of crowd.slice(0, 4)) budget.release(made);
    assert.equal(last.flow.flowing, true);
    for (let turns = 0; turns < 5; turns++) await new Promise(setImmediate);
    assert.deepEqual(evicted, []);
    assert.equal(first.made.heldBytes, 0);
  });

  test('keeps a slow upload while there is room for all', (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const { budget, exchange, evicted } = budgetOf(400 * KB);
    const { made } = exchange();
    budget.beginUpload(made);
    budget.reserve(made, 20 * KB);
    t.mock.timers.tick(10_000);
    assert.deepEqual(evicted, []);
    // The body is not read when there is room again, either.
    const crowd = Array.from({ length: 10 }, exchange);
    for (const other of crowd) {
      budget.beginUpload(other.made);
      budget.reserve(other.made, 20 * KB);
    }
    t.mock.timers.tick(1000);
    for (const other of crowd) budget.release(other.made);
    t.mock.timers.tick(10_000);
    assert.deepEqual(evicted, []);
  });

  test('has room for two bodies of the limit by default', () => {
    assert.equal(defaultBodyBudget(1e12), 2e12);
    assert.ok(defaultBodyBudget(1000) <= 256 * KB * KB);
  });

  test('ignores a second release, and a release of an upload that was never begun', () => {
    const { budget, exchange } = budgetOf(64 * KB);
    const { made } = exchange();
    budget.release(made);
    budget.beginUpload(made);
    budget.reserve(made, 1);
    budget.release(made);
    budget.release(made);
    assert.equal(budget.uploadCount(), 0);
  });

  test('lets eight bodies inflate at a time, and one when there is no room', () => {
    const { budget, exchange } = budgetOf(64 * KB);
    const dones: (() => void)[] = [];
    for (let i = 0; i < 20; i++) budget.whenMayInflate((done) => void dones.push(done));
    assert.equal(dones.length, 8);
    const { made } = exchange();
    budget.hold(made, 100 * KB);
    for (let i = 0; i < 8; i++) dones[i]?.();
    assert.equal(dones.length, 9);
    budget.release(made);
    assert.equal(dones.length, 16);
  });
});

test('pieces of any size are joined in the order of their arrival', () => {
  const pieces = new Pieces();
  const all: Buffer[] = [];
  for (let i = 0; i < 6000; i++) {
    const piece = Buffer.alloc(i % 2900 === 0 ? 5000 : i % 13, i & 0xff);
    all.push(piece);
    pieces.add(piece);
  }
  assert.equal(pieces.size, Buffer.concat(all).length);
  assert.deepEqual(pieces.join(), Buffer.concat(all));
});
