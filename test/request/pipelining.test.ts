// Tests pipelined requests over raw sockets. Each request is answered once, or its connection ends before it runs. A
// client that sends many at once does not slow others down.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { findConnection } from '../../src/request/connections/connection.ts';
import { type Service, startService } from '../support/service.ts';

const controllers = {
  'CountController.mjs': `
    let count = 0;
    export const events = new EventTarget();
    export default class {
      index() { count++; events.dispatchEvent(new Event('called')); return { count }; }
      created(data) { count++; events.dispatchEvent(new Event('posted')); return { posted: data }; }
      total() { return { count }; }
      big() { count++; return 'x'.repeat(1_000_000); }
      async held() { count++; await new Promise((done) => events.addEventListener('release', done, { once: true })); return { held: true }; }
    }`,
};

let service: Service;
let events: EventTarget;
before(async () => {
  service = await startService({ controllers, settings: { BODY_LIMIT: '1000' }, expectedErrors: ['request-failed'] });
  events = ((await import(`file://${service.dir}/CountController.mjs`)) as { events: EventTarget }).events;
});
after(() => service.close());

const get = (path: string, lines = '') => `GET ${path} HTTP/1.1\r\nHost: x\r\n${lines}\r\n`;
const post = (body: string) => `POST /api/count HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
const total = async () => ((await (await fetch(`${service.url}/api/count/total`)).json()) as { count: number }).count;

/** Returns the status and the field `Connection` of each answer, in order. */
function answersIn(text: string): string[] {
  return Array.from(
    text.matchAll(/HTTP\/1\.1 (\d+) .*?\r\n\r\n/gs),
    ([head, status]) => `${status} ${/^Connection: (.*)\r$/im.exec(head)?.[1]}`,
  );
}

async function open(t: { after(fn: () => void): void }, bytes: string): Promise<Socket & { text: string }> {
  const socket = Object.assign(connect(service.port, '127.0.0.1'), { text: '' });
  t.after(() => void socket.destroy());
  socket.on('error', () => {});
  await once(socket, 'connect');
  socket.write(bytes);
  return socket;
}

/** A client that still sends when the server has left gets a reset. */
const closeOf = (socket: Socket) => new Promise<void>((closed) => socket.once('close', () => closed()));

const collected = (socket: Socket & { text: string }) => {
  socket.setEncoding('latin1');
  socket.on('data', (chunk) => {
    socket.text += chunk;
  });
  return socket;
};

describe('many requests in one write', () => {
  test('are all answered in order, and other requests run in between', async (t) => {
    const start = await total();
    const first = once(events, 'called');
    const socket = collected(await open(t, get('/api/count').repeat(51)));
    await first;
    assert.ok((await total()) - start < 51, 'all requests ran before another connection had a turn');
    while (answersIn(socket.text).length < 51) await once(socket, 'data');
    assert.equal((await total()) - start, 51);
    assert.deepEqual(
      Array.from(socket.text.matchAll(/"count":(\d+)/g), ([, count]) => Number(count)),
      Array.from({ length: 51 }, (_, i) => start + i + 1),
    );
  });

  test('are not kept by their connection after their answers', async (t) => {
    const [accepted, socket] = await Promise.all([
      once(service.app.server, 'connection').then(([own]) => own as Socket),
      open(t, get('/api/count').repeat(2)).then(collected),
    ]);
    while (answersIn(socket.text).length < 2) await once(socket, 'data');
    const listeners = accepted.listenerCount('resume');
    socket.write(get('/api/count').repeat(2));
    while (answersIn(socket.text).length < 4) await once(socket, 'data');
    assert.equal(findConnection(accepted)?.lastWaitingResponse, undefined);
    assert.equal(accepted.listenerCount('resume'), listeners);
  });

  test('stop running while the client reads no answers', async (t) => {
    const start = await total();
    const socket = await open(t, get('/api/count/big').repeat(51));
    socket.pause();
    let before = -1;
    for (let now = start; now !== before; now = await total()) {
      before = now;
      for (let i = 0; i < 20; i++) await total();
    }
    assert.ok(before - start < 50, `${before - start} answers of 1 MB are kept for a client that reads none`);
  });

  test('end the connection when more than MAX_WAITING wait, and none of those that wait runs', async (t) => {
    const start = await total();
    const kept = await open(t, get('/api/count/held') + get('/api/count').repeat(50));
    const cut = await open(t, get('/api/count/held') + get('/api/count').repeat(51));
    cut.resume();
    await once(cut, 'close');
    while (service.app.inFlight() < 2) await turn();
    const socket = collected(kept);
    while (service.app.inFlight() > 0 || answersIn(socket.text).length < 51) {
      events.dispatchEvent(new Event('release'));
      await turn();
    }
    assert.equal((await total()) - start, 2 + 50);
  });

  test('count as one request in flight', async (t) => {
    const start = await total();
    const socket = collected(await open(t, get('/api/count/held').repeat(20)));
    for (let done = 0; done < 20; done++) {
      while ((await total()) - start <= done) await new Promise(setImmediate);
      assert.equal(service.app.inFlight(), 1);
      events.dispatchEvent(new Event('release'));
    }
    while (answersIn(socket.text).length < 20) await once(socket, 'data');
  });
});

describe('the end of a connection', () => {
  test('a draining worker answers all waiting requests, and sends Connection: close in the last answer', async (t) => {
    const draining = await startService({ controllers });
    t.after(draining.close);
    const { events } = (await import(`file://${draining.dir}/CountController.mjs`)) as { events: EventTarget };
    const answered = draining.raw(get('/api/count/held') + post('{"id":1}') + post('{"id":2}'), 4);
    while (draining.app.inFlight() === 0) await new Promise(setImmediate);
    draining.app.setDraining();
    // The controller is imported one turn after the request arrives.
    for (let i = 0; i < 5; i++) await fetch(`${draining.url}/api/count/total`);
    events.dispatchEvent(new Event('release'));
    const text = await answered;
    assert.deepEqual(answersIn(text), ['200 keep-alive', '200 keep-alive', '200 close']);
    assert.match(text, /"held":true[\s\S]*"id":1[\s\S]*"id":2/);
  });

  const inner = get('/api/count?smuggled');
  const upgrade = get('/api/count/total', 'Connection: Upgrade\r\nUpgrade: websocket\r\n');
  const rows: [name: string, bytes: string[], answers: string[], executed: number][] = [
    ['an upgrade is ignored, and its answer ends the connection', [upgrade], ['200 close'], 0],
    [
      'a request in the same segment behind an upgrade is not executed',
      [upgrade + get('/api/count')],
      ['200 close'],
      0,
    ],
    [
      'a body whose head came behind an upgrade is not executed as a request',
      [`${upgrade}POST /api/count HTTP/1.1\r\nHost: x\r\nContent-Length: ${inner.length}\r\n\r\n`, inner],
      ['200 close'],
      0,
    ],
    [
      'a request in the same segment behind Connection: close is not executed',
      [get('/api/count', 'Connection: close\r\n') + get('/api/count')],
      ['200 close'],
      1,
    ],
    [
      'a request after the answer to Connection: close is not executed',
      [get('/api/count', 'Connection: close\r\n'), get('/api/count')],
      ['200 close'],
      1,
    ],
    [
      'bytes that are not HTTP behind Connection: close get no answer',
      [`${get('/api/count', 'Connection: close\r\n')}nonsense\r\n\r\n`],
      ['200 close'],
      1,
    ],
    // The second request waits when the parser reaches the bytes. So the head of its answer can still announce the end of
    // the connection. After `Connection: close`, a server sends no further answer (RFC 9112, 9.6), so no 400 follows. A
    // 400 does follow one request whose head is already sent (http.test.ts).
    [
      'bytes that are not HTTP behind two requests end the connection after both answers',
      [`${get('/api/count') + get('/api/count')}nonsense\r\n\r\n`],
      ['200 keep-alive', '200 close'],
      2,
    ],
    [
      'a malformed chunk in the body of a waiting request is refused with 400',
      [`${get('/api/count')}POST /api/count HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`],
      ['200 keep-alive', '400 close'],
      1,
    ],
  ];
  for (const [name, segments, answers, executed] of rows) {
    test(name, async (t) => {
      const start = await total();
      const socket = collected(await open(t, ''));
      const closed = closeOf(socket);
      for (const [i, segment] of segments.entries()) {
        if (i > 0) await once(socket, 'data');
        socket.write(segment);
      }
      await closed;
      assert.deepEqual(answersIn(socket.text), answers, socket.text);
      assert.equal((await total()) - start, executed);
    });
  }

  test('a request whose body is not read completely ends its connection', async (t) => {
    const head = (line: string, length: string) => `${line} HTTP/1.1\r\nHost: x\r\n${length}\r\n\r\n`;
    const rows: [bytes: string[], answer: string][] = [
      [[head('OPTIONS /api/count', 'Transfer-Encoding: chunked'), 'zz\r\n'], '200 close'],
      [[head('OPTIONS /api/count', 'Content-Length: 5000000000')], '200 close'],
      [[`${head('POST /api/absent', 'Transfer-Encoding: chunked')}3\r\nabc\r\n`], '404 close'],
      [[`${head('POST /api/absent', 'Content-Length: 1001')}abc`], '404 close'],
      [[head('POST /api/count', 'Content-Length: 1001')], '413 close'],
      [[`${head('POST /api/count', 'Transfer-Encoding: chunked')}3e9\r\n${'1'.repeat(1001)}\r\n`], '413 close'],
      [[head('POST /api/count', 'Expect: tea\r\nContent-Length: 3')], '417 close'],
    ];
    // All rows run at the same time, because a connection stays open for a while after its answer.
    await Promise.all(
      rows.map(async ([[first = '', second], answer]) => {
        const socket = collected(await open(t, first));
        const closed = closeOf(socket);
        await once(socket, 'data');
        if (second !== undefined) socket.write(second);
        await closed;
        assert.deepEqual(answersIn(socket.text), [answer], first);
      }),
    );
  });

  test('a body that never arrives after a 404 causes no second answer', async (t) => {
    const slow = await startService({ settings: { REQUEST_TIMEOUT: '100ms', HEADERS_TIMEOUT: '50ms' } });
    t.after(slow.close);
    const text = await slow.raw('POST /api/absent HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc', 2);
    assert.deepEqual(answersIn(text), ['404 keep-alive']);
  });

  test('a connection serves the next request after a 404 whose body is complete', async () => {
    const text = await service.raw(
      `POST /api/absent HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc${get('/api/count')}`,
      2,
    );
    assert.deepEqual(answersIn(text), ['404 keep-alive', '200 keep-alive']);
  });

  test('a request is served although its head is late, when the server itself has stopped reading', async (t) => {
    const sockets: Socket[] = [];
    const remember = (socket: Socket) => sockets.push(socket);
    service.app.server.on('connection', remember);
    const socket = collected(await open(t, get('/api/count/held') + get('/api/count')));
    while (service.app.inFlight() === 0) await new Promise(setImmediate);
    service.app.server.off('connection', remember);
    const start = await total();
    const late = Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
    service.app.server.emit('clientError', late, sockets[0]);
    events.dispatchEvent(new Event('release'));
    while (answersIn(socket.text).length < 2) await once(socket, 'data');
    assert.deepEqual(answersIn(socket.text), ['200 keep-alive', '200 keep-alive']);
    assert.equal((await total()) - start, 1);
  });
});

describe('MAX_CONNECTIONS', () => {
  test('ends the connection that has idled longest, and keeps a busy one', async (t) => {
    const small = await startService({ controllers, settings: { MAX_CONNECTIONS: '3' } });
    t.after(small.close);
    const { events } = (await import(`file://${small.dir}/CountController.mjs`)) as { events: EventTarget };
    const dial = async (bytes: string) => {
      const socket = collected(Object.assign(connect(small.port, '127.0.0.1'), { text: '' }));
      t.after(() => void socket.destroy());
      socket.on('error', () => {});
      socket.write(bytes);
      if (!bytes.includes('held')) while (!socket.text.includes('}')) await once(socket, 'data');
      return socket;
    };
    const busy = await dial(get('/api/count/held'));
    while (small.app.inFlight() === 0) await turn();
    const older = await dial(get('/api/count'));
    const newer = await dial(get('/api/count'));
    const closed = once(older, 'close');
    const newest = await dial(get('/api/count'));
    await closed;
    assert.deepEqual([newer.destroyed, newest.destroyed, busy.destroyed], [false, false, false]);
    events.dispatchEvent(new Event('release'));
    while (!busy.text.includes('held')) await once(busy, 'data');
  });

  test('refuses a new connection when no connection is idle', async (t) => {
    const small = await startService({ controllers, settings: { MAX_CONNECTIONS: '1' } });
    t.after(small.close);
    const { events } = (await import(`file://${small.dir}/CountController.mjs`)) as { events: EventTarget };
    const busy = small.raw(get('/api/count/held'));
    while (small.app.inFlight() === 0) await new Promise(setImmediate);
    const refused = connect(small.port, '127.0.0.1');
    refused.on('error', () => {});
    await once(refused, 'close');
    // The controller may not have been loaded yet.
    const timer = setInterval(() => events.dispatchEvent(new Event('release')), 10);
    assert.match(await busy, /"held":true/);
    clearInterval(timer);
  });
});
