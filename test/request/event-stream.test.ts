// Tests server-sent events: the bytes on the wire, the end of a stream, and that a stream never delays a reload.
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { PassThrough } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { eventStream } from '../../src/api/controller.ts';
import { sendEvents } from '../../src/request/answer/event-stream.ts';
import { countSent, whenMaySendMore } from '../../src/request/answer/stream-pacing.ts';
import { moduleUrl } from '../support/own-modules.ts';
import { asRaw, assertEnvelope, CORS, parseRaw, type Service, startService } from '../support/service.ts';

const GATEFOLD = moduleUrl('src/api/controller');
const bus = new EventEmitter();
(globalThis as unknown as { bus: EventEmitter }).bus = bus;

let service: Service;
const controllers = {
  'FeedController.mjs': `
    import { on } from 'node:events';
    import { eventStream, Reply } from ${JSON.stringify(GATEFOLD)};
    const { bus } = globalThis;
    const of = async function* (...items) { for (const item of items) yield item };
    export default class {
      static operations = { waiting: { timeout: 30 } };
      some() { return eventStream(of({ data: { a: 1 }, event: 'book', id: '7', retry: 20 }, 'text', { data: 'a\\nb' }, { data: 1, more: 2 }, null, undefined, [1])) }
      none() { return eventStream(of(), { retry: 9 }) }
      headers() { return new Reply(200, eventStream(of(1)), { 'Cache-Control': 'no-cache', 'X-Mine': 'yes' }) }
      async *waitingItems(signal) {
        bus.emit('begun');
        signal.addEventListener('abort', () => bus.emit('aborted', signal.reason));
        try { for await (const [item] of on(bus, 'item', { signal })) yield item } finally { bus.emit('over') }
      }
      waiting(data, { signal, lastEventId }) { bus.emit('last', lastEventId); return eventStream(this.waitingItems(signal)) }
      longHead(data, { signal }) { return new Reply(200, eventStream(this.waitingItems(signal)), { 'X-Long': 'x'.repeat(80_000) }) }
      held() {
        let isSent = false;
        const next = () => isSent ? new Promise(() => {}) : (isSent = true, { value: 1 });
        return eventStream({ [Symbol.asyncIterator]: () => ({ next, return() { bus.emit('returned'); return {} } }) });
      }
      failsAtOnce() { return eventStream((async function* () { throw new Error('no feed') })()) }
      failsLater() { return eventStream((async function* () { yield 1; await new Promise((done) => setTimeout(done, 20)); throw new Error('lost') })()) }
      badLater() { return eventStream(of(1, { data: 1, event: 'a\\nb' })) }
      badItem() { return eventStream(of(1n)) }
      functionItem() { return eventStream(of(() => {})) }
      badHeader() { return new Reply(200, eventStream(of(1)), { 'X-Bad': 'a\\nb' }) }
      created(fields) { return eventStream(of({ data: 1, ...fields })) }
      oddReturn(data) { return eventStream({ [Symbol.asyncIterator]: () => ({ next() {}, return() { if (data.throws) throw new Error('no'); return 7 } }) }) }
      lost() { return eventStream(of(new Map())) }
      lostInside() { return eventStream(of({ data: { a: [new Set()] }, event: 'x' })) }
      lostLater() { return eventStream(of({ data: {} }, [new Map()])) }
      noSource() { return eventStream([1]) }
      badRetry(data) { return eventStream(of(1), { retry: Number(data.retry) }) }
      badItemRetry(data) { return eventStream(of({ data: 1, retry: Number(data.retry) })) }
      badLaterRetry() { return eventStream(of(1, { data: 2, retry: -5 })) }
      large() { return eventStream((async function* () { setImmediate(() => bus.emit('given')); yield 'x'.repeat(40_000_000) })()) }
      maxRetry() { return eventStream(of({ data: 1, retry: 2147483647 }), { retry: 0 }) }
    }`,
};
before(async () => {
  service = await startService({ controllers, expectedErrors: ['request-failed', 'stream-failed'] });
});
after(() => service.close());

const get = (operation: string, more = '') => `GET /api/feed/${operation} HTTP/1.1\r\nHost: a\r\n${more}\r\n`;
const call = (operation: string, init?: RequestInit) => fetch(`${service.url}/api/feed/${operation}`, init);
const settled = async (operation: string) => {
  for (;;) {
    const line = service.lines.findLast((found) => found.event === 'request' && found.operation === operation);
    if (line !== undefined) return line;
    await new Promise((done) => setTimeout(done, 5));
  }
};

describe('an event stream', () => {
  test('is sent event by event, as JSON, and ends its connection', async () => {
    const answer = await asRaw(await call('some'));
    const events = [
      'retry: 500\n\n',
      'event: book\nid: 7\nretry: 20\ndata: {"a":1}\n\n',
      'data: "text"\n\n',
      'data: "a\\nb"\n\n',
      'data: {"data":1,"more":2}\n\n',
      'data: null\n\n',
      'data: null\n\n',
      'data: [1]\n\n',
      // A stream that ends by itself sends this comment. A stream that a drain ends does not.
      ': end\n\n',
    ];
    assert.deepEqual([answer.status, answer.body], [200, events.join('')]);
    assert.equal(answer.headers.get('content-type'), 'text/event-stream');
    assert.equal(answer.headers.get('cache-control'), 'no-store');
    assert.equal(answer.headers.get('x-accel-buffering'), 'no');
    assert.equal(answer.headers.get('connection'), 'close');
    for (const [name, value] of Object.entries(CORS)) assert.equal(answer.headers.get(name), value);
    assert.equal((await settled('some')).bytes, events.join('').length);
  });

  test('can set the time after which a client reconnects', async () =>
    assert.equal(await (await call('none')).text(), 'retry: 9\n\n: end\n\n'));

  test('accepts times to reconnect from 0 to 2147483647 ms', async () =>
    assert.equal(await (await call('maxRetry')).text(), 'retry: 0\n\nretry: 2147483647\ndata: 1\n\n: end\n\n'));

  test('in a Reply is sent with the headers of the Reply', async () => {
    const answer = await call('headers');
    assert.deepEqual([answer.headers.get('cache-control'), answer.headers.get('x-mine')], ['no-cache', 'yes']);
    await answer.text();
  });

  test('is not begun for HEAD', async () => {
    const answer = parseRaw(await service.raw(get('some', 'Connection: close\r\n').replace('GET', 'HEAD'), 99));
    assert.deepEqual([answer.status, answer.headers.get('content-type'), answer.body], [200, 'text/event-stream', '']);
    for (const odd of ['oddReturn', 'oddReturn?throws=1'])
      assert.equal((await call(odd, { method: 'HEAD' })).status, 200, odd);
  });

  test('outlives the time limit, gets Last-Event-ID, and is aborted when its client disconnects', async () => {
    const [begun, last] = [once(bus, 'begun'), once(bus, 'last')];
    const abort = new AbortController();
    const answer = await call('waiting', { headers: { 'Last-Event-ID': '41' }, signal: abort.signal });
    assert.deepEqual(await last, ['41']);
    await begun;
    await new Promise((done) => setTimeout(done, 60));
    bus.emit('item', { id: '42', data: 'late' });
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    while (!text.includes('late')) text += (await reader?.read())?.value ?? '';
    assert.ok(text.includes('id: 42\ndata: "late"\n\n'));
    const [over, aborted] = [once(bus, 'over'), once(bus, 'aborted')];
    abort.abort();
    await over;
    assert.match(String((await aborted)[0]), /the client is gone/);
    assert.equal((await settled('waiting')).status, 499);
    assert.equal(service.app.inFlight(), 0);
  });

  test('is cancelled when its client disconnects, even if its source ignores the signal', async () => {
    const abort = new AbortController();
    assert.equal((await call('held', { signal: abort.signal })).status, 200);
    const returned = once(bus, 'returned');
    abort.abort();
    await returned;
    assert.equal((await settled('held')).status, 499);
  });

  test('gets Last-Event-ID decoded from UTF-8, and unchanged if it is not UTF-8', async () => {
    for (const id of ['é 日本', '41', '\xe9']) {
      const last = once(bus, 'last');
      const abort = new AbortController();
      // An id that is not UTF-8 is not decoded.
      const bytes = id === '\xe9' ? id : Buffer.from(id).toString('latin1');
      const answer = await call('waiting', { headers: { 'Last-Event-ID': bytes }, signal: abort.signal });
      assert.deepEqual([answer.status, ...(await last)], [200, id]);
      const over = once(bus, 'over');
      abort.abort();
      await over;
    }
  });

  for (const [operation, cause] of [
    ['failsAtOnce', /no feed/],
    ['badItem', /BigInt/],
    ['functionItem', /a function, which has no JSON form/],
    ['lost', /an object of class Map, .*: return Object\.fromEntries/],
    ['lostInside', /an object of class Set at \/a\/0, /],
    ['noSource', /must be an async iterable/],
    ...['1e300', '-5', 'NaN', 'Infinity', '0.5', '2147483648'].flatMap((retry) => [
      [`badRetry?retry=${retry}`, /eventStream: retry must be a whole number of milliseconds/] as const,
      [`badItemRetry?retry=${retry}`, /the retry of an event must be a whole number of milliseconds/] as const,
    ]),
  ] as const) {
    test(`${operation} is a 500`, async () => {
      assertEnvelope(await asRaw(await call(operation)), 500, 'INTERNAL_ERROR');
      assert.match(String(service.lines.findLast(({ event }) => event === 'request-failed')?.error), cause);
    });
  }

  test('with an invalid header is a 500', async () => {
    assertEnvelope(await asRaw(await call('badHeader')), 500, 'UNENCODABLE_RESULT');
  });

  for (const field of ['id', 'event']) {
    for (const mark of ['\r', '\n', '\0', '\r\ndata: forged']) {
      test(`with ${JSON.stringify(mark)} in its ${field} is a 500`, async () => {
        const [headers, body] = [{ 'Content-Type': 'application/json' }, JSON.stringify({ [field]: `a${mark}b` })];
        const answer = await fetch(`${service.url}/api/feed`, { method: 'POST', headers, body });
        assertEnvelope(await asRaw(answer), 500, 'INTERNAL_ERROR');
        const line = service.lines.findLast(({ event }) => event === 'request-failed');
        assert.match(String(line?.error), new RegExp(`the ${field} of an event has a line break or a NUL`));
      });
    }
  }

  for (const operation of ['failsLater', 'badLater', 'badLaterRetry', 'lostLater']) {
    test(`${operation} cuts the connection, and the failure is logged`, async () => {
      service.lines.length = 0;
      const text = await service.raw(get(operation), 99);
      assert.ok(!text.includes('\r\n0\r\n'));
      await settled(operation);
      assert.equal(service.lines.filter(({ event }) => event === 'stream-failed').length, 1);
    });
  }
});

test('a draining worker ends its event streams between two events, and new event streams at once', async () => {
  const other = await startService({ controllers, expectedErrors: ['request-failed'] });
  const begun = once(bus, 'begun');
  const socket = connect(other.port, '127.0.0.1');
  let text = '';
  socket.setEncoding('latin1').on('data', (piece) => {
    text += piece;
  });
  socket.write(get('waiting'));
  await begun;
  bus.emit('item', 'one');
  while (!text.includes('one')) await once(socket, 'data');
  const [ended, over, aborted] = [once(socket, 'end'), once(bus, 'over'), once(bus, 'aborted')];
  other.app.setDraining();
  other.app.setDraining();
  bus.emit('item', 'two');
  await Promise.all([ended, over, aborted]);
  assert.ok(text.endsWith('\r\n0\r\n\r\n'), 'the body is not complete');
  assert.ok(!text.includes('two'));
  for (const operation of ['waiting', 'held'])
    assert.equal(await (await fetch(`${other.url}/api/feed/${operation}`)).text(), 'retry: 500\n\n');
  assertEnvelope(await asRaw(await fetch(`${other.url}/api/feed/badHeader`)), 500, 'UNENCODABLE_RESULT');
  await other.close();
});

test('a draining worker cuts an event stream whose client does not read', async (t) => {
  const other = await startService({ controllers });
  const given = once(bus, 'given');
  const socket = connect(other.port, '127.0.0.1').pause();
  socket.on('error', () => {}).write(get('large'));
  await given;
  const cuts: (() => void)[] = [];
  const { setTimeout } = globalThis;
  // The other timers stay real: `fetch` keeps some, and one that a mocked `clearTimeout` does not end can throw later.
  t.mock.method(globalThis, 'setTimeout', (done: () => void, ms: number, ...given: []) => {
    if (ms !== 1500) return setTimeout(done, ms, ...given);
    cuts.push(done);
    return setTimeout(() => {}, 0);
  });
  other.app.setDraining();
  const openConnections = () =>
    new Promise<number>((resolve) => other.app.server.getConnections((_error, count) => resolve(count)));
  assert.equal(await openConnections(), 1);
  assert.equal(cuts.length, 1);
  cuts[0]?.();
  while ((await openConnections()) > 0) await new Promise(setImmediate);
  socket.destroy();
  await other.close();
});

test('a busy event stream sends comments between its events', async () => {
  const response = new PassThrough() as unknown as ServerResponse & PassThrough;
  const busy = eventStream(
    (async function* () {
      for (;;) {
        yield 1;
        await new Promise((later) => setTimeout(later, 1));
      }
    })(),
  );
  const live = sendEvents(busy, response, { begin: () => true, end() {}, fail() {}, clientLeft() {} }, 20);
  let text = '';
  for await (const piece of response) {
    text += piece;
    if (text.includes('data: 1\n\n:\n\n')) live.end();
  }
});

test('an event stream whose head fills the buffer of the socket begins its source once', async () => {
  const socket = connect(service.port, '127.0.0.1');
  let text = '';
  socket.setEncoding('latin1').on('data', (piece) => {
    text += piece;
  });
  const over = once(bus, 'over');
  socket.write(get('longHead'));
  while (!text.includes('retry: 500')) await once(socket, 'data');
  await new Promise(setImmediate);
  for (const item of ['one', 'two']) {
    bus.emit('item', item);
    while (!text.includes(item)) await once(socket, 'data');
  }
  assert.equal(text.split('retry: 500').length, 2);
  socket.destroy();
  await over;
});

test('an event stream without events sends comments', async () => {
  const response = new PassThrough() as unknown as ServerResponse & PassThrough;
  const never = eventStream(
    (async function* () {
      await once(bus, 'never');
      yield 1;
    })(),
  );
  const live = sendEvents(never, response, { begin: () => true, end() {}, fail() {}, clientLeft() {} }, 5);
  let text = '';
  for await (const piece of response) {
    text += piece;
    if (text.includes(':\n\n:\n\n')) live.end();
  }
  assert.match(text, /^retry: 500\n\n(:\n\n){2,}$/);
  bus.emit('never');
});

test('the comments of many quiet event streams begin no source again, and hold up no long stream', async (t) => {
  const [streams, comments] = [200, 12];
  let [begun, written] = [0, 0];
  const next = () => {
    begun++;
    return new Promise<never>(() => {});
  };
  const lives = Array.from({ length: streams }, () => {
    const response = new PassThrough() as unknown as ServerResponse & PassThrough;
    t.mock.method(response, 'write', () => written++ < Number.POSITIVE_INFINITY);
    const quiet = eventStream({ [Symbol.asyncIterator]: () => ({ next }) });
    return sendEvents(quiet, response, { begin: () => true, end() {}, fail() {}, clientLeft() {} }, 5);
  });
  while (written < streams * comments) await new Promise((done) => setTimeout(done, 5));
  countSent(1_000_000);
  let [isSent, turns] = [false, 0];
  whenMaySendMore(1_000_000, () => {
    isSent = true;
  });
  for (; !isSent; turns++) await new Promise(setImmediate);
  for (const live of lives) live.cancel(new Error('over'));
  assert.equal(begun, streams);
  assert.ok(turns < 3, `the long stream waited for ${turns} turns`);
});

test('an event stream asks its source for no more than its client reads', async (t) => {
  const response = new PassThrough({ highWaterMark: 30 }) as unknown as ServerResponse & PassThrough;
  let asked = 0;
  const next = () => new Promise<{ value: number }>((resolve) => setImmediate(() => resolve({ value: ++asked })));
  const endless = eventStream({ [Symbol.asyncIterator]: () => ({ next }) });
  const live = sendEvents(endless, response, { begin: () => true, end() {}, fail() {}, clientLeft() {} });
  t.after(() => live.cancel(new Error('over')));
  // Without the wait, the source is asked in nearly each turn.
  for (let turn = 0; turn < 200; turn++) await new Promise(setImmediate);
  const first = asked;
  assert.ok(first > 0 && first < 20, `${first}`);
  while (response.read() !== null);
  for (let turn = 0; turn < 1000 && asked === first; turn++) await new Promise(setImmediate);
  assert.ok(asked > first);
});
