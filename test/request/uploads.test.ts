// Tests uploads, which are bodies that are not complete: their bytes are limited, and they do not block other requests.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { BodyState } from '../../src/request/body/body-state.ts';
import { createBodyBudget, defaultBodyBudget } from '../../src/request/body/budget.ts';
import { Pieces } from '../../src/request/body/pieces.ts';
import { findConnection } from '../../src/request/connections/connection.ts';
import type { Exchange } from '../../src/request/exchange.ts';
import { parseRaw, type Service, startService } from '../support/service.ts';

const controllers = {
  'SizeController.mjs': `export default class {
    index() { return { ok: true }; }
    created(text) { return { length: text.length ?? -1 }; }
  }`,
  'HeldController.mjs': `
    export let release;
    const held = new Promise((done) => { release = done; });
    export let calls = 0;
    export default { index: () => held, created: () => { calls++; return held; } };`,
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
    while (service.app.inFlight() < 50) await turn();
    for (let i = 0; i < 10; i++) assert.equal((await fetch(`${service.url}/api/size`)).status, 200);
    for (const socket of slow) socket.write('a'.repeat(990));
    assert.deepEqual(new Set(await Promise.all(slow.map(answered))), new Set([200]));
  });

  test('count for MAX_IN_FLIGHT once they are complete, and get 503 beyond it', async (t) => {
    const service = await serve(t, { MAX_IN_FLIGHT: '1' });
    const { release } = (await import(`file://${service.dir}/HeldController.mjs`)) as { release(): void };
    const uploads = await Promise.all([upload(t, service, 1000, 10), upload(t, service, 1000, 10)]);
    while (service.app.inFlight() < 2) await turn();
    const held = fetch(`${service.url}/api/held`);
    while (service.app.inFlight() < 3) await turn();
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
    while (service.app.inFlight() < 20) await turn();
    for (const socket of slow) socket.write('a'.repeat(200_000));
    assert.deepEqual(new Set(await Promise.all(slow.map(answered))), new Set([200]));
  });

  test('never hold more than BODY_BUDGET together', async (t) => {
    const MIB = 1024 * 1024;
    const service = await serve(t, { BODY_LIMIT: '1MiB', BODY_BUDGET: '4MiB' });
    const sockets: Socket[] = [];
    service.app.server.on('connection', (socket) => sockets.push(socket));
    let most = 0;
    const heldBytes = () => {
      const held = sockets.map((socket) => findConnection(socket)?.lastExchange?.body.heldBytes ?? 0);
      most = Math.max(
        most,
        held.reduce((sum, bytes) => sum + bytes, 0),
      );
      return held;
    };
    const crowd = await Promise.all(Array.from({ length: 30 }, () => upload(t, service, MIB, 150_000)));
    // Each upload is refused, or a part of it is held.
    const isMoving = () => heldBytes().filter((bytes, i) => bytes > 0 || crowd[i]?.text !== '').length < 30;
    while (sockets.length < 30 || isMoving()) await turn();
    for (const socket of crowd) socket.write('a'.repeat(MIB - 150_000));
    while (crowd.some(({ text }) => !text.includes('}'))) {
      heldBytes();
      await turn();
    }
    assert.ok(most <= 4 * MIB, `${most / MIB} MiB`);
    assert.ok(most >= 2 * MIB, `${most / MIB} MiB`);
  });

  test('that are refused do not count, although they go on sending', async (t) => {
    const service = await serve(t, { BODY_LIMIT: '300KiB', BODY_BUDGET: '64KiB' });
    const sockets: Socket[] = [];
    await upload(t, service, 300_000, 40_000);
    while (service.app.inFlight() < 1) await turn();
    service.app.server.on('connection', (socket) => sockets.push(socket));
    const refused = await upload(t, service, 300_000, 40_000);
    assert.equal(await answered(refused), 503);
    refused.write('a'.repeat(10_000));
    const [socket] = sockets as [Socket];
    while (socket.bytesRead < 50_000) await turn();
    assert.equal(findConnection(socket)?.lastExchange?.body.heldBytes, 0);
  });

  test('leave no room for others while operations have inflated bodies', async (t) => {
    const service = await serve(t, { BODY_LIMIT: '1MiB', BODY_BUDGET: '2MiB' });
    const controller = (await import(`file://${service.dir}/HeldController.mjs`)) as { release(): void; calls: number };
    const body = gzipSync('a'.repeat(1_000_000));
    const headers = { 'content-type': 'text/plain', 'content-encoding': 'gzip' };
    const held = [1, 2].map(() => fetch(`${service.url}/api/held`, { method: 'POST', body, headers }));
    while (controller.calls < 2) await turn();
    const crowd = await Promise.all(Array.from({ length: 8 }, () => upload(t, service, 100_000, 50_000)));
    while (service.app.inFlight() + crowd.filter(({ text }) => text !== '').length < 10) await turn();
    for (const socket of crowd) socket.write('a'.repeat(50_000));
    const statuses = await Promise.all(crowd.map(answered));
    assert.ok(statuses.includes(503) && statuses.includes(200), String(statuses));
    controller.release();
    for (const answer of held) assert.equal((await answer).status, 200);
  });

  test('that wait for room are read again when they are refused, so that their clients get the answer', async (t) => {
    // No upload is ended to make room.
    t.mock.timers.enable({ apis: ['setInterval'] });
    const limits = { BODY_LIMIT: '300KiB', BODY_BUDGET: '512KiB', REQUEST_TIMEOUT: '100ms', HEADERS_TIMEOUT: '50ms' };
    const service = await serve(t, limits);
    const sockets: Socket[] = [];
    service.app.server.on('connection', (socket) => sockets.push(socket));
    const crowd = await Promise.all(Array.from({ length: 3 }, () => upload(t, service, 300_000, 100_000)));
    while (sockets.filter((socket) => socket.isPaused()).length < 1) await turn();
    for (const socket of crowd) socket.write('a'.repeat(150_000));
    // Two looks at all connections: the time of a body begins with the first.
    for (let look = 0; look < 2; look++) t.mock.timers.tick(500);
    assert.deepEqual(new Set(await Promise.all(crowd.map(answered))), new Set([408]));
    while (sockets.some(({ bytesRead }) => bytesRead < 250_000)) await turn();
  });

  test('that stall beyond BODY_BUDGET get 503, and a small body is served', async (t) => {
    const service = await serve(t, { BODY_LIMIT: '300KiB', BODY_BUDGET: '1MiB' });
    const slow = await Promise.all(Array.from({ length: 4 }, () => upload(t, service, 300_000, 250_000)));
    while (service.app.inFlight() + slow.filter(({ text }) => text !== '').length < 4) await turn();
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
    // No upload is ended before the test lets time pass.
    t.mock.timers.enable({ apis: ['setInterval'] });
    // The last part lets as much time pass as the bytes of an upload need to arrive.
    const service = await serve(t, { BODY_BUDGET: '4MiB', REQUEST_TIMEOUT: '1440m' });
    const sockets = new Map<number | undefined, Socket>();
    service.app.server.on('connection', (socket) => sockets.set(socket.remotePort, socket));
    const stuck = await Promise.all(Array.from({ length: 150 }, () => upload(t, service, 1_000_000, 40_000)));
    while (stuck.every(({ text }) => text === '')) await turn();
    // Head and body arrive apart, so the service does not know that the body is complete.
    for (const [length, pieces] of [
      [7, [7]],
      [40_000, [40_000]],
      [12_000, [4000, 4000, 4000]],
    ] as const) {
      const client = await upload(t, service, length, 0);
      while (!sockets.has(client.localPort)) await turn();
      const socket = sockets.get(client.localPort) as Socket;
      for (const piece of pieces) {
        const { bytesRead } = socket;
        while (socket.bytesRead === 0) await turn();
        // Paused until all bytes of the piece are in the kernel, the socket delivers them by one read.
        socket.pause();
        await new Promise((written) => client.write('a'.repeat(piece), written));
        socket.resume();
        while (socket.bytesRead < bytesRead + piece) await turn();
      }
      assert.equal(await answered(client), 200, `${length} bytes`);
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
    // Uploads that were accepted send nothing, and are ended if others wait for their room.
    for (let status = 503; status !== 200; ) {
      const later = await upload(t, service, 900_000, 900_000);
      do await tick(t);
      while (later.text === '');
      status = await answered(later);
    }
    for (const { text } of stuck) assert.match(text, /^(HTTP\/1\.1 503 |$)/);
  });

  test('with only a head get 503 when other uploads need room', async (t) => {
    const service = await serve(t, { BODY_BUDGET: '2MiB' });
    const heads = await Promise.all(Array.from({ length: 130 }, () => upload(t, service, 1000, 0)));
    while (service.app.inFlight() < 130) await turn();
    // The reserved quarter has room for one of these.
    const stuck = await upload(t, service, 400_000, 100_000);
    while (service.app.inFlight() < 131) await turn();
    assert.equal(await answered(await upload(t, service, 400_000, 100_000)), 503);
    assert.deepEqual(new Set(await Promise.all([...heads, stuck].map(answered))), new Set([503]));
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

/** Lets the budget check once for stalled uploads. */
async function tick(t: TestContext): Promise<void> {
  t.mock.timers.tick(1000);
  await turn();
}

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
  function budgetOf(limit: number, maxBytes = 100 * KB) {
    const evicted: Exchange[] = [];
    const all: Exchange[] = [];
    const evict = (exchange: Exchange) => {
      evicted.push(exchange);
      budget.release(exchange);
    };
    const budget = createBodyBudget({ limit, exchanges: () => all, evict });
    const make = (): Made => {
      const [request, socket] = [fakeStream(), fakeStream()];
      const made = { body: new BodyState(), request, socket } as unknown as Exchange;
      const flow = {
        get flowing() {
          assert.equal(request.isFlowing(), socket.isFlowing());
          return request.isFlowing();
        },
      };
      all.push(made);
      return { made, flow };
    };
    const begin = (bytes = maxBytes): Made => {
      const upload = make();
      budget.beginUpload(upload.made, bytes);
      return upload;
    };
    return { budget, make, begin, evicted };
  }

  test('reads each upload only while there is room for its next read, and three quarters of the limit are for all', () => {
    const { begin, budget } = budgetOf(400 * KB);
    const [a, b, c, d, e] = [begin(), begin(), begin(), begin(), begin()];
    const flows = (...them: Made[]) => them.map(({ flow }) => flow.flowing);
    for (const { made } of [a, b, c]) assert.ok(budget.reserve(made, 64 * KB));
    // Two of them may use the reserved quarter, which has no room for the rest of the third.
    assert.deepEqual(flows(a, b, c), [true, true, false]);
    assert.equal(budget.reserve(d.made, 64 * KB), false);
    budget.release(d.made);
    for (const { made } of [a, b]) assert.ok(budget.reserve(made, 36 * KB));
    assert.deepEqual(flows(a, b, c), [true, true, false]);
    // The bytes of the first upload count until its answer, but another upload may now use the quarter.
    budget.completeUpload(a.made);
    assert.deepEqual(flows(b, c), [true, true]);
    for (const { made } of [a, b, c, e]) budget.release(made);
    assert.deepEqual(
      [budget.uploadCount(), a.made.body.heldBytes, b.made.body.heldBytes, c.made.body.heldBytes],
      [0, 0, 0, 0],
    );
  });

  test('resumes only as many uploads as there is room for', () => {
    const { begin, budget } = budgetOf(1600 * KB, 1000 * KB);
    const crowd = Array.from({ length: 14 }, () => begin());
    for (const { made } of crowd) assert.ok(budget.reserve(made, 60 * KB));
    const paused = crowd.filter(({ flow }) => !flow.flowing);
    const reading = crowd.find(({ flow }) => flow.flowing) as Made;
    budget.release(reading.made);
    // The release makes room for one read, and another upload may become privileged.
    const resumed = paused.filter(({ flow }) => flow.flowing).length;
    assert.ok(paused.length > 5 && resumed > 0 && resumed < 3, `${resumed} of ${paused.length}`);
  });

  test('gives the reserved quarter to one upload that may be larger than it', () => {
    const { begin, budget } = budgetOf(400 * KB);
    for (const { made } of [begin(), begin(), begin()]) {
      assert.ok(budget.reserve(made, 98 * KB));
      budget.completeUpload(made);
    }
    const large = begin(1000 * KB);
    assert.ok(budget.reserve(large.made, 20 * KB));
    assert.equal(large.flow.flowing, true);
  });

  // 20 KB and two uploads of 16 KB are counted. A quarter of the limit is reserved, and a read may bring 64 KB.
  for (const [bytes, isAdmitted, isRead] of [
    [184 * KB, true, true],
    [184 * KB + 1, true, false],
    [248 * KB, true, false],
    [248 * KB + 1, false, false],
  ] as const)
    test(`beside a privileged upload, has room for a body of ${bytes} bytes: ${isAdmitted}, and reads on: ${isRead}`, () => {
      const { begin, budget } = budgetOf(400 * KB);
      const first = begin();
      budget.reserve(first.made, 300 * KB);
      budget.completeUpload(first.made);
      assert.ok(budget.reserve(begin(1000 * KB).made, 20 * KB));
      budget.release(first.made);
      const { made, flow } = begin(1000 * KB);
      assert.equal(budget.reserve(made, bytes), isAdmitted);
      if (isAdmitted) assert.equal(flow.flowing, isRead);
    });

  test('gives the reserved quarter to uploads by their own limits', () => {
    const { begin, budget } = budgetOf(400 * KB);
    const [large, ...small] = [begin(1000 * KB), begin(), begin()] as [Made, Made, Made];
    for (const { made } of [large, ...small]) assert.ok(budget.reserve(made, 64 * KB));
    const flows = () => [large, ...small].map(({ flow }) => flow.flowing);
    assert.deepEqual(flows(), [false, true, true]);
    for (const { made } of small) budget.completeUpload(made);
    assert.deepEqual(flows(), [true, true, true]);
  });

  test('never pauses or refuses a small body', () => {
    const { begin, budget } = budgetOf(400 * KB);
    const crowd = Array.from({ length: 11 }, () => begin());
    const admitted = crowd.map(({ made }) => budget.reserve(made, 20 * KB));
    assert.deepEqual([admitted[0], admitted[10]], [true, false]);
    const { made, flow } = begin();
    for (let i = 0; i < 16; i++) assert.deepEqual([budget.reserve(made, 1 * KB), flow.flowing], [true, true]);
    // Now the upload is like the others.
    assert.equal(budget.reserve(made, 1 * KB), false);
  });

  test('counts uploads that have sent no byte, and keeps a quarter for others', () => {
    const { begin, budget } = budgetOf(256 * KB);
    for (let i = 0; i < 16; i++) begin();
    assert.equal(budget.reserve(begin(60 * KB).made, 16 * KB + 1), true);
    const { made } = begin();
    assert.equal(budget.reserve(made, 16 * KB), true);
    assert.equal(budget.reserve(made, 1), false);
  });

  test('ends stalled uploads, one after the other, when they may continue', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const { begin, budget, evicted } = budgetOf(400 * KB);
    const crowd = Array.from({ length: 8 }, () => begin());
    for (const { made } of crowd) assert.ok(budget.reserve(made, 20 * KB));
    const flowing = () => crowd.find(({ made, flow }) => made.body.isUploading && flow.flowing)?.made as Exchange;
    const stalled = flowing();
    await tick(t);
    // An upload that sends too little in a second counts as stalled.
    budget.hold(stalled, 1 * KB);
    assert.equal(evicted.length, 0);
    await tick(t);
    assert.deepEqual(evicted, [stalled]);
    const silent = flowing();
    while (evicted.length < 2) await turn();
    assert.deepEqual(evicted, [stalled, silent]);
    const moving = flowing();
    budget.reserve(moving, 1);
    for (let turns = 0; turns < 20; turns++) await turn();
    assert.ok(evicted.length > 2 && !evicted.includes(moving));
  });

  // The client had less than a second to send something, or nobody needs the room of its upload any more.
  for (const [name, ticks, released] of [
    ['that was paused for less than a second', 1, 2],
    ['that was paused for longer, when there is room for all', 2, 7],
  ] as const)
    test(`does not end an upload ${name}`, async (t) => {
      t.mock.timers.enable({ apis: ['setInterval'] });
      const { begin, budget, evicted } = budgetOf(400 * KB);
      const crowd = Array.from({ length: 8 }, () => begin());
      for (const { made } of crowd) budget.reserve(made, 20 * KB);
      for (let i = 0; i < ticks; i++) {
        for (const { made, flow } of crowd) if (flow.flowing) budget.reserve(made, 8 * KB);
        await tick(t);
      }
      const resumed = crowd.filter(({ flow }) => !flow.flowing);
      for (const { made } of [...crowd].sort((a) => (a.flow.flowing ? -1 : 1)).slice(0, released)) budget.release(made);
      assert.ok(resumed.some(({ made, flow }) => flow.flowing && made.body.isUploading));
      for (let turns = 0; turns < 5; turns++) await turn();
      assert.deepEqual(evicted, []);
      // The next check can come at once. The one after it comes when a second has passed.
      await tick(t);
      assert.deepEqual(evicted, []);
    });

  test('keeps a slow upload while there is room for all', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] });
    const { begin, budget, evicted } = budgetOf(400 * KB);
    budget.reserve(begin().made, 20 * KB);
    for (let i = 0; i < 10; i++) await tick(t);
    assert.deepEqual(evicted, []);
    // The body is not read when there is room again, either.
    const crowd = Array.from({ length: 10 }, () => begin());
    for (const { made } of crowd) budget.reserve(made, 20 * KB);
    await tick(t);
    for (const { made } of crowd) budget.release(made);
    for (let i = 0; i < 10; i++) await tick(t);
    assert.deepEqual(evicted, []);
    // The checks have stopped, so they begin anew, and only one a second.
    const later = Array.from({ length: 10 }, () => begin());
    for (const { made } of later) budget.reserve(made, 20 * KB);
    await tick(t);
    assert.deepEqual(evicted, []);
  });

  for (const [bytes, evictions] of [
    [156 * KB, 0],
    [156 * KB + 1, 1],
  ] as const)
    test(`ends ${evictions} slow uploads where ${bytes} bytes leave room for a read or not`, async (t) => {
      t.mock.timers.enable({ apis: ['setInterval'] });
      const { begin, budget, evicted } = budgetOf(400 * KB);
      const [slow, privileged, refused] = [begin(1000 * KB), begin(), begin()];
      assert.ok(budget.reserve(slow.made, bytes));
      assert.ok(budget.reserve(privileged.made, 400 * KB));
      assert.equal(budget.reserve(refused.made, 400 * KB), false);
      for (const { made } of [privileged, refused]) budget.release(made);
      for (let i = 0; i < 3; i++) await tick(t);
      assert.equal(evicted.length, evictions);
    });

  test('has room for two bodies of the limit by default', () => {
    assert.equal(defaultBodyBudget(1e12), 2e12);
    assert.ok(defaultBodyBudget(1000) <= 256 * KB * KB);
  });

  test('ignores a second release, and a release of an upload that was never begun', () => {
    const { budget, make } = budgetOf(64 * KB);
    const { made } = make();
    budget.release(made);
    budget.beginUpload(made, 100 * KB);
    budget.reserve(made, 1);
    budget.release(made);
    budget.release(made);
    assert.equal(budget.uploadCount(), 0);
  });

  test('lets eight bodies inflate at a time, and one when there is no room', () => {
    const { budget, make } = budgetOf(64 * KB);
    const dones: (() => void)[] = [];
    for (let i = 0; i < 20; i++) budget.whenMayInflate((done) => void dones.push(done));
    assert.equal(dones.length, 8);
    const { made } = make();
    budget.hold(made, 64 * KB);
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
