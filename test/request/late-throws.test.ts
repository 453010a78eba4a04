// A callback that throws after the function of an author has returned: the request gets its 500 at once, and does not
// wait for the time limit. The callback is set in another module, so the function itself shows nothing of it.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { keepContextOfMicrotasks } from '../../src/request/exchange-contexts.ts';
import { GATEFOLD, onUncaught, parseRaw, type Service, startService } from '../support/service.ts';

const LATER = `
export const later = (delay = 1) => new Promise(() => { setTimeout(() => { throw new Error("late"); }, delay); });
export const laterInMicrotask = () => new Promise(() => { queueMicrotask(() => { throw new Error("late"); }); });
`;

const SERVICE = `
import { defineService } from '${GATEFOLD}';
import { later } from './lib/later.ts';
export default defineService<{ id: string }>({
  authenticate({ authorization }) { return authorization === 'Token late' ? later() as Promise<undefined> : undefined; },
});
`;

const CONTROLLERS = {
  'lib/later.ts': LATER,
  'service.ts': SERVICE,
  'MethodController.mjs': `
    import { later } from './lib/later.ts';
    export default class {
      static operations = { refused: { access: () => later() } };
      method() { return later() }
      deferred() { return { then: () => void later() } }
      refused() { return {} }
      open() { return {} }
    }`,
  'ObjectController.mjs': `
    import { later } from './lib/later.ts';
    export default { method() { return later() }, arrow: () => later(), bound: later.bind(null) };`,
  'InstanceController.mjs': `
    import { later } from './lib/later.ts';
    export default class {
      helper = { run: later };
      field() { return this.helper.run() }
      replaced() {}
      bound() { return this.field() }
      constructor() { this.bound = this.bound.bind(this); this.replaced = () => later() }
    }`,
  'BeforeController.mjs': `
    import { later } from './lib/later.ts';
    export default class { _before() { return later() } method() { return {} } }`,
  'AfterController.mjs': `
    import { later } from './lib/later.ts';
    export default class { _after() { return later() } method() { return {} } }`,
  'MicrotaskController.mjs': `
    import { laterInMicrotask } from './lib/later.ts';
    export default class { method() { return laterInMicrotask() } }`,
  'SchemaController.mjs': `
    import { later } from './lib/later.ts';
    const schema = { '~standard': { version: 1, vendor: 'test', validate: () => later() } };
    export default class {
      static operations = { body: { body: schema }, query: { query: schema } };
      body() { return {} }
      query() { return {} }
    }`,
  'StreamController.mjs': `
    import { Readable } from 'node:stream';
    import { Reply, eventStream } from '${GATEFOLD}';
    import { later } from './lib/later.ts';
    const cancelled = [];
    const closing = (name) => () => { cancelled.push(name) };
    async function* items() { await later(); yield 'a'; }
    async function* beginning() { yield 'a'; await later(); }
    // More bytes than one turn of the event loop may send (stream-pacing.ts).
    const pieces = (left, end) =>
      new Readable({ read() { left-- > 0 ? this.push(Buffer.alloc(16384)) : end(this) } });
    export default class {
      cancelled() { return { names: cancelled.splice(0) } }
      readable() {
        return new Reply(200, new Readable({
          read: () => void later(),
          destroy(error, done) { cancelled.push('readable'); done(error); },
        }));
      }
      generator() { return new Reply(200, Readable.from(items())) }
      web() { return new Reply(200, new ReadableStream({ pull: () => later(), cancel: closing('web') })) }
      webPulled() { return new Reply(200, new ReadableStream({ pull: () => later() }, { highWaterMark: 0 })) }
      begun() {
        const stream = new Readable({ read() {}, destroy(error, done) { cancelled.push('begun'); done(error); } });
        stream.push('first');
        later(50);
        return new Reply(200, stream);
      }
      begunWeb() {
        later(50);
        const start = (controller) => controller.enqueue(new Uint8Array(5));
        return new Reply(200, new ReadableStream({ start, cancel: closing('begunWeb') }));
      }
      begunGenerator() { return new Reply(200, Readable.from(beginning())) }
      long() { return new Reply(200, pieces(80, (stream) => stream.push(null))) }
      longThrowing() { return new Reply(200, pieces(40, () => later())) }
      events() { return eventStream(items()) }
      begunEvents() { return eventStream(beginning()) }
      eventsOfOperation() { later(50); return eventStream((async function* () { await new Promise(() => {}); })()) }
    }`,
};

const rows: [name: string, path: string, header?: string][] = [
  ['a method', 'method/method'],
  ['a field of an instance', 'instance/field'],
  ['a field that replaces a method', 'instance/replaced'],
  ['a bound method', 'instance/bound'],
  ['the method `then` of a result', 'method/deferred'],
  ['a method of an object', 'object/method'],
  ['an arrow function of an object', 'object/arrow'],
  ['a bound function of an object', 'object/bound'],
  ['_before', 'before/method'],
  ['_after', 'after/method'],
  ['a function in access', 'method/refused'],
  ['authenticate', 'method/open', 'Authorization: Token late\r\n'],
  ['queueMicrotask', 'microtask/method'],
  ['the schema of a body', 'schema/body'],
  ['the schema of a query', 'schema/query'],
  ['read() of a stream', 'stream/readable'],
  ['a generator behind a stream', 'stream/generator'],
  ['pull() of a web stream', 'stream/web'],
  ['pull() of a web stream that buffers nothing', 'stream/webPulled'],
];

/** Answers whose head has been sent when the callback throws. */
const begunRows: [name: string, path: string][] = [
  ['a stream', 'stream/begun'],
  ['a web stream', 'stream/begunWeb'],
  ['a generator behind a stream', 'stream/begunGenerator'],
  ['events before the first one', 'stream/events'],
  ['events after the first one', 'stream/begunEvents'],
  ['the operation of an event stream', 'stream/eventsOfOperation'],
];

let service: Service;
before(async () => {
  service = await startService({
    controllers: CONTROLLERS,
    // The test waits at most ten seconds for an answer, so an answer after the time limit fails the test.
    settings: { OPERATION_TIMEOUT: '60s' },
    expectedErrors: ['request-failed', 'stream-failed'],
  });
});
after(() => service.close());

/** Until the test ends, errors in callbacks reach the service. */
async function prepare(test: { after(close: () => unknown): void }): Promise<void> {
  service.lines.length = 0;
  await cancelledStreams();
  onUncaught(test, service.app.failCurrentRequest);
  const { queueMicrotask } = globalThis;
  keepContextOfMicrotasks();
  test.after(() => {
    globalThis.queueMicrotask = queueMicrotask;
  });
}

describe('a callback that throws late gets a 500 at once', () => {
  for (const [name, path, header = ''] of rows)
    it(name, async (test) => {
      await prepare(test as never);
      const bytes = `GET /api/${path} HTTP/1.1\r\nHost: a\r\n${header}\r\n`;
      // The first call counts as well as the later ones.
      for (let call = 0; call < 2; call++) {
        const answer = parseRaw(await service.raw(bytes));
        assert.equal(answer.status, 500);
        assert.equal(JSON.parse(answer.body).error_code, 'INTERNAL_ERROR');
      }
    });

  it('and the stream that was not sent is destroyed', async (test) => {
    await prepare(test as never);
    for (const operation of ['readable', 'web']) {
      await service.raw(`GET /api/stream/${operation} HTTP/1.1\r\nHost: a\r\n\r\n`);
      assert.deepEqual(await cancelledStreams(), [operation]);
    }
  });
});

describe('a callback that throws after the head of an answer cuts the connection at once', () => {
  for (const [name, path] of begunRows)
    it(name, async (test) => {
      await prepare(test as never);
      // Event streams send bytes until the connection ends, so the count of answers never ends the read.
      const text = await service.raw(`GET /api/${path} HTTP/1.1\r\nHost: a\r\n\r\n`, 99);
      assert.match(text, /^HTTP\/1\.1 200 /);
      assert.ok(!text.endsWith('\r\n0\r\n\r\n'), 'the body ends as if it were complete');
      assert.equal(service.lines.find(({ event }) => event === 'stream-failed')?.error, 'late');
    });

  it('but no other stream that shares its turns', async (test) => {
    await prepare(test as never);
    const read = (operation: string) =>
      service.raw(`GET /api/stream/${operation} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`, 99);
    const [whole, cut] = await Promise.all([read('long'), read('longThrowing')]);
    assert.ok(whole.endsWith('\r\n0\r\n\r\n'));
    assert.ok(!cut.endsWith('\r\n0\r\n\r\n'));
  });

  it('and the stream is destroyed', async (test) => {
    await prepare(test as never);
    for (const operation of ['begun', 'begunWeb']) {
      await service.raw(`GET /api/stream/${operation} HTTP/1.1\r\nHost: a\r\n\r\n`, 99);
      assert.deepEqual(await cancelledStreams(), [operation]);
    }
  });
});

/** Returns the streams that were destroyed since the last call. */
async function cancelledStreams(): Promise<string[]> {
  const answer = parseRaw(await service.raw('GET /api/stream/cancelled HTTP/1.1\r\nHost: a\r\n\r\n'));
  return JSON.parse(answer.body).names;
}
