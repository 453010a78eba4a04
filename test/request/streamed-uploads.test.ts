// Tests the bounds of uploads that operations read as streams: how many there may be, and how slowly they may come.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { HttpError } from '../../src/base/errors.ts';
import { StreamedUploads } from '../../src/request/body/streamed-uploads.ts';
import type { Exchange } from '../../src/request/exchange.ts';
import { assertEnvelope, GATEFOLD, parseRaw, type Service, startService } from '../support/service.ts';

const controllers = {
  'FileController.mjs': `
    export const seen = { reads: 0 };
    export let release;
    const held = new Promise((done) => { release = done; });
    export default class {
      static operations = { '*': { body: 'stream', bodyLimit: 1e9, timeout: 600_000 } };
      index() { return { ok: true }; }
      async patch(data) { let size = 0; for await (const piece of data) { seen.reads++; size += piece.length; } return { size }; }
      async red(data) { seen.reads++; await held; let size = 0; for await (const piece of data) size += piece.length; return { size }; }
      created(data) { return data; }
      deleted() { return { read: false }; }
    }`,
  'SlowController.mjs': `
    export default class {
      static operations = { created: { bodyTimeout: 5000 }, red: { body: 'stream', bodyTimeout: 5000, timeout: 600_000 } };
      created(data) { return { data }; }
      index() { return {}; }
      async red(data) { for await (const _ of data); return { whole: true }; }
      patch(data) { return { data }; }
    }`,
  'WebController.mjs': `import { mount } from '${GATEFOLD}';
    const read = async (request) => new Response(String((await request.arrayBuffer()).byteLength));
    export default mount(read, { bodyTimeout: 5000, bodyLimit: 1e9, timeout: 600_000 });`,
  'NodeController.mjs': `import { mount } from '${GATEFOLD}';
    const read = (request, response) => request.resume().on('end', () => response.end('read'));
    export default mount.node(read, { bodyLimit: 1e9, timeout: 600_000 });`,
};

interface Upload extends Socket {
  text: string;
}

interface Seen {
  readonly seen: { reads: number };
  release(): void;
}

async function serve(t: TestContext, settings: Record<string, string>): Promise<Service & Seen> {
  const service = await startService({ controllers, settings, expectedErrors: ['request-failed'] });
  t.after(service.close);
  assert.equal(await get(service), 200);
  const controller = (await import(`file://${service.dir}/FileController.mjs`)) as Seen;
  t.after(() => controller.release());
  return { ...service, ...controller };
}

const get = async ({ url }: Service) => (await fetch(`${url}/api/file`)).status;

/** Sends the head of an upload and its first byte, and waits until the operation has the byte, or has answered. */
async function upload(t: TestContext, service: Service & Seen, lines = '', method = 'PATCH'): Promise<Upload> {
  const socket = Object.assign(connect(service.port, '127.0.0.1'), { text: '' }) as Upload;
  t.after(() => void socket.destroy());
  socket.on('error', () => {});
  socket.setEncoding('latin1').on('data', (chunk) => {
    socket.text += chunk;
  });
  const { reads } = service.seen;
  socket.write(`${method} /api/file HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n${lines}\r\n1`);
  while (service.seen.reads === reads && socket.text === '') await turn();
  return socket;
}

async function answer(socket: Upload) {
  while (!socket.text.includes('}')) await once(socket, 'data');
  return parseRaw(socket.text);
}

/** Lets so many seconds pass. The service checks the rates once in each. */
function createClock(t: TestContext) {
  let now = Math.ceil(performance.now());
  t.mock.timers.enable({ apis: ['setInterval'] });
  t.mock.method(performance, 'now', () => now);
  return async (seconds: number, inEach = async () => {}) => {
    for (let i = 0; i < seconds; i++) {
      await inEach();
      now += 1000;
      t.mock.timers.tick(1000);
      await turn();
    }
  };
}

test('a body has REQUEST_TIMEOUT, or bodyTimeout of its operation, or as a stream a lowest rate', async (t) => {
  const pass = createClock(t);
  const service = await serve(t, { REQUEST_TIMEOUT: '2s', HEADERS_TIMEOUT: '1s' });
  // The group is imported before the seconds pass.
  for (const group of ['slow', 'web', 'node']) await (await fetch(`${service.url}/api/${group}/none`)).text();
  const bodies = [
    { path: 'PATCH /api/slow', piece: 'x', answer: '', seconds: 0 },
    { path: 'POST /api/slow', piece: 'x', answer: '', seconds: 0 },
    { path: 'PUT /api/slow', piece: 'x', answer: '', seconds: 0 },
    { path: 'PUT /api/web', piece: 'x'.repeat(2048), answer: '', seconds: 0 },
    { path: 'PATCH /api/file', piece: 'x'.repeat(2048), answer: '', seconds: 0 },
    { path: 'PUT /api/node', piece: 'x'.repeat(2048), answer: '', seconds: 0 },
  ];
  const peers = new Map<number | undefined, Socket>();
  service.app.server.on('connection', (peer) => peers.set(peer.remotePort, peer));
  const sockets = bodies.map((body) => {
    const socket = connect(service.port, '127.0.0.1');
    t.after(() => socket.destroy());
    socket.setEncoding('latin1').on('data', (part) => {
      body.answer += part;
    });
    socket.on('error', () => {});
    socket.write(`${body.path} HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 1000000\r\n\r\nx`);
    return socket;
  });
  while (service.app.inFlight() < bodies.length) await turn();
  /** The service has read what its client has sent, or the client has read the answer. */
  const hasArrived = ({ localPort, bytesWritten }: Socket, { answer }: { answer: string }) => {
    const peer = peers.get(localPort);
    return answer !== '' || (peer?.bytesWritten === 0 && peer.bytesRead >= bytesWritten);
  };
  const allArrived = async () => {
    while (!sockets.every((socket, i) => hasArrived(socket, bodies[i] ?? assert.fail()))) await turn();
    // The operations get the bytes within a few turns.
    for (let turns = 0; turns < 10; turns++) await turn();
  };
  for (let second = 0; second < 90; second++)
    await pass(1, async () => {
      await allArrived();
      for (const [i, body] of bodies.entries()) {
        if (body.answer !== '') continue;
        body.seconds = second;
        sockets[i]?.write(body.piece);
      }
      await allArrived();
    });
  for (const body of bodies.slice(0, 4)) assertEnvelope(parseRaw(body.answer), 408, 'REQUEST_TIMEOUT');
  const [whole = 0, longer = 0, stream = 0, web = 0, ...endless] = bodies.map(({ seconds }) => seconds);
  assert.ok(whole >= 2 && whole < 5, `${whole} s`);
  for (const seconds of [longer, stream, web]) assert.ok(seconds >= 5 && seconds < 15, `${seconds} s`);
  assert.deepEqual(endless, [89, 89]);
});

describe('an upload is ended by what its client sent while the operation waited:', () => {
  const rows: readonly [bytes: number, seconds: number, isFull: boolean, code: string | undefined][] = [
    [4096, 1, true, undefined],
    [4095, 1, true, 'OVERLOADED'],
    [4095, 1, false, undefined],
    [30 * 1024, 30, false, undefined],
    [30 * 1024 - 1, 30, false, 'REQUEST_TIMEOUT'],
    [30 * 1024 - 1, 29, false, undefined],
  ];
  for (const [bytes, seconds, isFull, code] of rows)
    test(`${bytes} bytes in ${seconds} s, ${isFull ? 'with' : 'without'} too many uploads: ${code}`, async (t) => {
      t.mock.timers.enable({ apis: ['setInterval'] });
      let now = 0;
      const uploads = new StreamedUploads({ limit: isFull ? 1 : 8, networkOf: () => 'n', now: () => now });
      const socket = { bytesRead: 100 };
      const codes: unknown[] = [];
      const exchange = { socket, answer: {} } as Exchange;
      uploads.begin(exchange, (error) => codes.push((error as HttpError).code));
      uploads.beginWait(exchange);
      for (let second = 1; second <= seconds; second++) {
        now += 1000;
        if (second === seconds) socket.bytesRead += bytes;
        t.mock.timers.tick(1000);
        await turn();
      }
      uploads.end(exchange);
      assert.deepEqual(codes, code === undefined ? [] : [code]);
    });
});

test('as many uploads begin as the limit says, and a quarter of them from one network', (t) => {
  const networks = new Map<Exchange, string>();
  const uploads = new StreamedUploads({ limit: 8, networkOf: (exchange) => networks.get(exchange) as string });
  const begin = (network: string) => {
    const exchange = { socket: { bytesRead: 0 }, answer: {} } as Exchange;
    networks.set(exchange, network);
    uploads.begin(exchange, () => {});
    t.after(() => uploads.end(exchange));
    return exchange;
  };
  const [first] = [...'aa'].map(begin) as [Exchange];
  assert.throws(() => begin('a'), { code: 'OVERLOADED' });
  [...'bbccdd'].map(begin);
  assert.throws(() => begin('e'), { code: 'OVERLOADED' });
  uploads.end(first);
  begin('e');
  assert.throws(() => begin('a'), { code: 'OVERLOADED' });
});

describe('a streamed upload', () => {
  test('does not count for MAX_IN_FLIGHT while it waits for its client', async (t) => {
    const service = await serve(t, { MAX_IN_FLIGHT: '2' });
    await upload(t, service);
    await fetch(`${service.url}/api/file`, { method: 'POST', body: 'x' });
    assert.equal(service.app.inFlight(), 1);
    const others = Array.from({ length: 2 }, () => get(service));
    assert.deepEqual(await Promise.all(others), [200, 200]);
  });

  test('does not count once it is answered, also while the rest of its body comes', async (t) => {
    const service = await serve(t, { MAX_IN_FLIGHT: '4' });
    // A quarter of the limit, one upload, is the share of a network.
    for (let i = 0; i < 3; i++)
      assert.equal((await answer(await upload(t, service, '', 'DELETE'))).status, 200, `upload ${i}`);
  });

  test('counts for MAX_IN_FLIGHT while its operation does not read, and once its client has left', async (t) => {
    const service = await serve(t, { MAX_IN_FLIGHT: '1' });
    const socket = await upload(t, service, '', 'PUT');
    assert.equal(await get(service), 503);
    service.release();
    while ((await get(service)) === 503);
    socket.destroy();
    while (service.app.inFlight() > 0) await turn();
    assert.equal(await get(service), 200);
  });

  test('that is also the answer counts neither twice nor less than once', async (t) => {
    const service = await serve(t, { MAX_IN_FLIGHT: '1' });
    const echo = await upload(t, service, '', 'POST');
    while (!echo.text.includes('\r\n1\r\n')) await once(echo, 'data');
    assert.equal(service.app.inFlight(), 0);
    const busy = fetch(`${service.url}/api/file`, { method: 'PUT' });
    while (service.app.inFlight() < 1) await turn();
    assert.equal(await get(service), 503);
    service.release();
    assert.equal((await busy).status, 200);
  });

  test('beyond a quarter of MAX_IN_FLIGHT from one network gets 503, and others are served', async (t) => {
    const service = await serve(t, { MAX_IN_FLIGHT: '8', TRUSTED_PROXIES: '127.0.0.1' });
    const from = (address: string) => upload(t, service, `X-Forwarded-For: ${address}\r\n`);
    const first = await from('2001:db8::1');
    await from('2001:db8::2');
    const refused = await answer(await from('2001:db8::3'));
    assertEnvelope(refused, 503, 'OVERLOADED');
    assert.equal(refused.headers.get('retry-after'), '1');
    assert.equal(refused.headers.get('connection'), 'close');
    // Six more networks have room for one upload each, and a ninth upload has none.
    for (let i = 1; i <= 6; i++) assert.equal((await from(`192.0.2.${i}`)).text, '');
    assertEnvelope(await answer(await from('192.0.2.7')), 503, 'OVERLOADED');
    assert.equal(await get(service), 200);
    first.resetAndDestroy();
    while ((await from('192.0.2.7')).text !== '');
  });

  test('of fewer than 1,024 bytes a second gets 408 after 30 s, and a faster one stays', async (t) => {
    const service = await serve(t, {});
    const pass = createClock(t);
    const [slow, fast] = [await upload(t, service), await upload(t, service)];
    const unread = await upload(t, service, '', 'PUT');
    const send = async () => {
      slow.write('x'.repeat(1023));
      fast.write('x'.repeat(1024));
      const { reads } = service.seen;
      while (service.seen.reads < reads + 2) await turn();
    };
    await pass(29, send);
    assert.equal(slow.text, '');
    await pass(1, send);
    assertEnvelope(await answer(slow), 408, 'REQUEST_TIMEOUT');
    assert.match(
      String(service.lines.find(({ event }) => event === 'request-refused')?.reason),
      /fewer than 1024 bytes/,
    );
    // The operation of the third upload did not read, so its client is not to blame.
    assert.deepEqual([fast.text, unread.text], ['', '']);
  });

  test('gets 408 after any 30 s with fewer than 1,024 bytes a second', async (t) => {
    const service = await serve(t, {});
    const pass = createClock(t);
    const socket = await upload(t, service);
    await pass(20);
    const { reads } = service.seen;
    socket.write('x'.repeat(35_000));
    while (service.seen.reads === reads) await turn();
    await pass(29);
    assert.equal(socket.text, '');
    await pass(3);
    assertEnvelope(await answer(socket), 408, 'REQUEST_TIMEOUT');
  });

  test('of fewer than 4 KiB a second gets 503 while there are too many', async (t) => {
    const service = await serve(t, { MAX_IN_FLIGHT: '8' });
    const pass = createClock(t);
    const [slow, fast] = [await upload(t, service), await upload(t, service)];
    assertEnvelope(await answer(await upload(t, service)), 503, 'OVERLOADED');
    await pass(2, async () => {
      const { reads } = service.seen;
      fast.write('x'.repeat(4200));
      while (service.seen.reads === reads) await turn();
    });
    assertEnvelope(await answer(slow), 503, 'OVERLOADED');
    assert.equal(fast.text, '');
    assert.equal((await upload(t, service)).text, '');
  });
});
