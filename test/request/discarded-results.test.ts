// Tests results that are not sent: the client has left, the time limit is over, or the status has no body. Each stream
// must still be closed, and a stream that fails later must harm no request.
import assert from 'node:assert/strict';
import { type EventEmitter, once } from 'node:events';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { moduleUrl } from '../support/own-modules.ts';
import { type LogLine, type Service, startService } from '../support/service.ts';

const GATEFOLD = moduleUrl('src/api/controller');

let service: Service;
before(async () => {
  const controllers = {
    'SourceController.mjs': `
      import { EventEmitter, once } from 'node:events';
      import { createReadStream } from 'node:fs';
      import { Readable } from 'node:stream';
      import { eventStream, Reply } from ${JSON.stringify(GATEFOLD)};
      const bus = globalThis.sources = new EventEmitter();
      const over = () => bus.emit('over');
      const readable = () => new Readable({ read() {} }).on('close', over);
      const web = () => new ReadableStream({ cancel: over });
      const MAKE = {
        readable, web,
        missing: () => createReadStream('/no/such/file').on('close', over),
        reply: () => new Reply(200, readable()),
        response: () => new Response(web()),
        events: () => eventStream({ [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}), return: async () => { over(); return { done: true } } }) }),
        none: () => new Reply(204, readable()),
        noneMissing: () => new Reply(204, createReadStream('/no/such/file').on('close', over)),
        notModified: () => new Reply(304, web()),
        reset: () => new Reply(205, readable()),
        badHeader: () => new Reply(200, readable(), { 'X-Bad': {} }),
        unsendableHeader: () => new Reply(200, Readable.from(['a', 'b']).on('close', over), { 'X-Bad': 'a\\r\\nb' }),
        text: () => new Reply(200, { a: 'x'.repeat(1000) }),
        bytes: () => Buffer.alloc(1000),
        blob: () => new Blob(['x'.repeat(1000)]),
        json: () => ({ a: 1 }),
        trap: () => { over(); return new Proxy(() => {}, { get(_, key) { if (key !== 'then') throw new Error('no') } , getPrototypeOf() { throw new Error('no') } }) },
        broken: () => { over(); return new Proxy({}, { get(_, key) { if (key !== 'then') throw new Error('no') } , getPrototypeOf() { throw new Error('no') } }) },
      };
      export default class {
        static operations = { late: { timeout: 20 } };
        now({ kind }) { return MAKE[kind]() }
        async left({ kind }, { signal }) { bus.emit('called'); await once(signal, 'abort'); return MAKE[kind]() }
        async late({ kind }) { await once(bus, 'go'); return MAKE[kind]() }
      }`,
  };
  service = await startService({ controllers, expectedErrors: ['request-failed'] });
});
after(() => service.close());

const bus = () => (globalThis as unknown as { sources: EventEmitter }).sources;
const url = (operation: string, kind: string) => `${service.url}/api/source/${operation}?kind=${kind}`;
const STREAMS = ['readable', 'web', 'missing', 'reply', 'response', 'events'];

/** Waits for the request's line in the access log. */
async function lineOf(operation: string): Promise<LogLine> {
  for (;;) {
    const line = service.lines.find(({ event, operation: its }) => event === 'request' && its === operation);
    if (line !== undefined) return line;
    await new Promise((later) => setTimeout(later, 5));
  }
}

describe('a result is discarded when its client has disconnected', () => {
  before(() => fetch(url('now', 'json')));
  for (const kind of [...STREAMS, 'text', 'bytes', 'blob', 'json']) {
    test(kind, async () => {
      service.lines.length = 0;
      const over = STREAMS.includes(kind) ? once(bus(), 'over') : undefined;
      const called = once(bus(), 'called');
      const socket = connect(service.port, '127.0.0.1');
      socket.write(`GET /api/source/left?kind=${kind} HTTP/1.1\r\nHost: a\r\n\r\n`);
      await called;
      socket.destroy();
      await over;
      const { status, bytes } = await lineOf('left');
      assert.deepEqual([status, bytes], [499, 0]);
      assert.equal(service.app.inFlight(), 0);
    });
  }
});

describe('a stream is closed when its result arrives after the time limit', () => {
  for (const kind of [...STREAMS, 'trap', 'broken']) {
    test(kind, async () => {
      assert.equal((await fetch(url('late', kind))).status, 503);
      const over = once(bus(), 'over');
      bus().emit('go');
      await over;
    });
  }
});

describe('a stream is closed when its answer has no body or cannot be sent', () => {
  const rows: [kind: string, status: number][] = [
    ['none', 204],
    ['noneMissing', 204],
    ['reset', 205],
    ['notModified', 304],
    ['badHeader', 500],
    ['unsendableHeader', 500],
  ];
  for (const [kind, status] of rows) {
    test(kind, async () => {
      const over = once(bus(), 'over');
      assert.equal((await fetch(url('now', kind))).status, status);
      await over;
    });
  }
});
