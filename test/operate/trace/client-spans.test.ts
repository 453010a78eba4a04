// The spans of requests that a controller sends, of work after the answer, and of `params.trace.span`; and the headers
// that other services get.
import assert from 'node:assert/strict';
import { channel } from 'node:diagnostics_channel';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import type { ReceivedSpan } from '../../support/collector.ts';
import { freePorts } from '../../support/ports.ts';
import { startTraced, type TracedService } from '../../support/traced-service.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';
const PARENT = `00-${TRACE}-${SPAN}-01`;
const INTERNAL = 1;
const CLIENT = 3;
/** Whether Node publishes the creation of a request, when its headers can still be set. */
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
const setsHeaders = major > 22 || (major === 22 && minor >= 12);

interface Peer {
  readonly port: number;
  readonly requests: IncomingHttpHeaders[];
}

/** A service that the controller calls. */
async function startPeer(test: TestContext): Promise<Peer> {
  const requests: IncomingHttpHeaders[] = [];
  const server = createServer((request, response) => {
    requests.push(request.headers);
    if (request.url?.startsWith('/cut')) return void request.socket.destroy();
    const isAbsent = request.url?.startsWith('/absent');
    if (isAbsent) response.writeEarlyHints({ link: '</style.css>; rel=preload' });
    response.statusCode = isAbsent ? 404 : 200;
    response.end('ok');
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  test.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, requests };
}

const ASK = `
import http from 'node:http';
const base = 'http://127.0.0.1:';
const send = (options) => new Promise((resolve, reject) =>
  http.request(options).on('response', (answer) => answer.resume().on('end', resolve)).on('error', reject).end());
export default class AskController {
  async 'GET fetch/{port}/{path}'(_, { path }) { await (await fetch(base + path.port + '/' + path.path + '?secret=1')).text(); return {}; }
  async 'GET own/{port}'(_, { path }) { await (await fetch(base + path.port, { headers: { Traceparent: 'own' } })).text(); return {}; }
  async 'GET http/{port}/{path}'(_, { path }) { await send({ host: '127.0.0.1', port: path.port, path: '/' + path.path + '?secret=1' }).catch(() => {}); return {}; }
  async 'GET late/{port}'(_, { path }) { await send({ host: '127.0.0.1', port: path.port, headers: ['Host', '127.0.0.1:' + path.port] }); return {}; }
  async 'GET host/{host}/{port}'(_, { path }) { await send({ host: path.host, port: path.port }).catch(() => {}); return {}; }
  async 'GET proxied/{port}'(_, { path: { port } }) {
    await send({ host: '127.0.0.1', port, path: 'http://ann:secret@books.example:8080/there?secret=1', headers: { host: 'books.example:8080' } });
    return {};
  }
  async 'GET refused/{port}'(_, { path }) { await fetch(base + path.port).catch(() => {}); return {}; }
  async 'GET odd/{port}'(_, { path }) { await send({ host: '127.0.0.1', port: path.port, method: 'PURGE' }); return {}; }
  'GET after/{port}'(_, { path, waitUntil }) { waitUntil(later(path.port)); return {}; }
  'GET after-query'(_, { waitUntil }) {
    // As a query of knex or Drizzle, which runs each time that its method \`then\` is called.
    const query = { runs: 0, then(resolve) { this.runs++; resolve(7); } };
    waitUntil(query);
    return new Promise((resolve) => setImmediate(() => resolve({ runs: query.runs })));
  }
  'GET after-fails'(_, { waitUntil }) { waitUntil(Promise.reject(new RangeError('x'))); return {}; }
  async 'POST body/{port}'(data, { path }) { await (await fetch(base + path.port)).text(); return data; }
  async 'GET spans'(_, { trace }) {
    return trace.span('outer', async (outer) => {
      const sum = outer.span('inner', () => 3, { attributes: { 'db.system.name': 'postgresql', count: 3, ratio: 0.5, ok: true, list: ['a', 1] }, kind: 'client' });
      return { sum, ids: [trace.traceId, trace.spanId, trace.traceparent, outer.spanId] };
    });
  }
  async 'GET span-fails'(_, { trace }) { return trace.span('fails', async () => { throw new RangeError('the secret is 42'); }).catch(() => 'caught'); }
  'GET span-throws'(_, { trace }) { try { trace.span('throws', () => { throw new RangeError('x'); }); } catch { return 'caught'; } }
  'GET halves'(_, { trace }) { return trace.span('halves', () => ({}), { attributes: { 'text\\ud800': 'x', 'list\\ud800': ['y\\udc00'] } }); }
  async 'GET thenable'(_, { trace }) {
    let runs = 0;
    const query = { then(resolve) { runs++; setImmediate(resolve, 7); }, values() { return this; } };
    const result = trace.span('query', () => query);
    return { same: result === query, value: await result.values(), runs };
  }
  async 'GET failing-thenable'(_, { trace }) {
    let runs = 0;
    class Query { then(resolve, reject) { runs++; return Promise.reject(new RangeError('x')).then(resolve, reject); } }
    const query = trace.span('query', () => new Query());
    const reasons = [];
    for (let i = 0; i < 2; i++) await query.then(undefined, ({ name }) => reasons.push(name));
    await query.then().catch(({ name }) => reasons.push(name));
    return { reasons, runs };
  }
  async 'GET frozen-thenable'(_, { trace }) {
    const query = Object.freeze({ then(resolve) { resolve(7); } });
    return { value: await trace.span('query', () => query) };
  }
}
const later = async (port) => { await null; await (await fetch(base + port)).text(); };
`;
const controllers = { 'AskController.js': ASK };

/** Calls an operation. Returns the spans by name when all have arrived; the request's own span ends last. */
async function ask(service: TracedService, path: string, count: number, init?: RequestInit) {
  const answer = await fetch(`${service.url}/api/ask/${path}`, init);
  const body = (await answer.json()) as Record<string, unknown>;
  const spans = await service.collector.until(({ length }) => length >= count);
  assert.equal(spans.length, count, JSON.stringify(spans));
  const server = spans.find(({ kind }) => kind === 2);
  assert.ok(server);
  const others = spans.filter((span) => span !== server);
  return { server, others, only: others[0] as ReceivedSpan, body };
}

function assertChild(child: ReceivedSpan | undefined, parent: ReceivedSpan): asserts child is ReceivedSpan {
  assert.ok(child);
  assert.equal(child.traceId, parent.traceId);
  assert.equal(child.parentSpanId, parent.spanId);
  assert.equal(child.flags, 0x103);
}

describe('a request that a controller sends', () => {
  for (const by of ['fetch', 'http'] as const) {
    it(`by ${by} has a child span of its request, and carries traceparent where Node can add the header`, async (test) => {
      const peer = await startPeer(test);
      const service = await startTraced(test, { controllers });
      const { server, only } = await ask(service, `${by}/${peer.port}/there`, 2);
      assertChild(only, server);
      assert.equal(only.kind, CLIENT);
      assert.equal(only.name, 'GET');
      assert.equal(only.attributes['http.request.method'], 'GET');
      assert.equal(only.attributes['server.address'], '127.0.0.1');
      assert.equal(only.attributes['server.port'], String(peer.port));
      assert.equal(only.attributes['url.full'], `http://127.0.0.1:${peer.port}/there`);
      assert.equal(only.attributes['http.response.status_code'], '200');
      assert.equal(only.status, undefined);
      const isSent = by === 'fetch' || setsHeaders;
      assert.equal(peer.requests[0]?.traceparent, isSent ? `00-${only.traceId}-${only.spanId}-03` : undefined);
      assert.equal(only.attributes['gatefold.traceparent_sent'], isSent ? undefined : false);
    });

    it(`by ${by} carries tracestate and the flags of an unsampled trace`, async (test) => {
      const peer = await startPeer(test);
      const service = await startTraced(test, { controllers, env: { OTEL_TRACES_SAMPLER: 'always_off' } });
      await fetch(`${service.url}/api/ask/${by}/${peer.port}/there`, {
        headers: { traceparent: PARENT, tracestate: 'a=1,b=2' },
      });
      await service.flush();
      assert.deepEqual(service.collector.spans, []);
      const { traceparent, tracestate } = peer.requests[0] ?? {};
      if (by === 'http' && !setsHeaders) return assert.equal(traceparent, undefined);
      assert.match(String(traceparent), new RegExp(`^00-${TRACE}-[0-9a-f]{16}-00$`));
      assert.notEqual(String(traceparent).slice(36, 52), SPAN);
      assert.equal(tracestate, 'a=1,b=2');
    });

    it(`by ${by} with the answer 404 after early hints marks its own span as failed, but not the span of the server`, async (test) => {
      const peer = await startPeer(test);
      const service = await startTraced(test, { controllers });
      const { server, only } = await ask(service, `${by}/${peer.port}/absent`, 2);
      assert.deepEqual(only.status, { code: 2 });
      assert.equal(only.attributes['error.type'], '404');
      assert.equal(server.status, undefined);
    });
  }

  it('has the error code in its span when the connection is cut off', async (test) => {
    const peer = await startPeer(test);
    const service = await startTraced(test, { controllers });
    const { only } = await ask(service, `http/${peer.port}/cut`, 2);
    assert.deepEqual(only.status, { code: 2 });
    assert.equal(only.attributes['error.type'], 'ECONNRESET');
    assert.equal(only.attributes['http.response.status_code'], undefined);
  });

  it('has the error code in its span when the connection is refused', async (test) => {
    const service = await startTraced(test, { controllers });
    const { only } = await ask(service, `refused/${(await freePorts(1))[0]}`, 2);
    assert.deepEqual(only.status, { code: 2 });
    assert.match(String(only.attributes['error.type']), /^(?:ECONNREFUSED|UND_ERR_\w+)$/);
  });

  for (const [host, port, origin] of [
    ['::1', '8', 'http://[::1]:8'],
    ['127.0.0.1', '80', 'http://127.0.0.1'],
  ] as const)
    it(`to host ${host} and port ${port} has the full URL in its span`, async (test) => {
      const service = await startTraced(test, { controllers });
      const { only } = await ask(service, `host/${encodeURIComponent(host)}/${port}`, 2);
      assert.deepEqual([only.attributes['url.full'], only.attributes['server.port']], [`${origin}/`, port]);
    });

  it('is not traced when its diagnostics event has an unknown form', async (test) => {
    const service = await startTraced(test, { controllers });
    for (const name of ['undici:request:create', 'http.client.request.start']) channel(name).publish({});
    await fetch(`${service.url}/api/ask/spans`);
    await service.collector.until(({ length }) => length === 3);
  });

  it('keeps a traceparent header that the controller has set', async (test) => {
    const peer = await startPeer(test);
    const service = await startTraced(test, { controllers });
    await ask(service, `own/${peer.port}`, 2);
    assert.equal(peer.requests[0]?.traceparent, 'own');
  });

  it('has gatefold.traceparent_sent=false in its span when its head was written before', async (test) => {
    const peer = await startPeer(test);
    const service = await startTraced(test, { controllers });
    const { only } = await ask(service, `late/${peer.port}`, 2);
    assert.equal(peer.requests[0]?.traceparent, undefined);
    assert.equal(only.attributes['gatefold.traceparent_sent'], false);
  });

  it('with an unknown method has a span with the name HTTP and the original method', async (test) => {
    const peer = await startPeer(test);
    const service = await startTraced(test, { controllers });
    const { only } = await ask(service, `odd/${peer.port}`, 2);
    assert.equal(only.name, 'HTTP');
    assert.equal(only.attributes['http.request.method_original'], 'PURGE');
  });

  it('is a child of the right request when requests with bodies share a connection', async (test) => {
    const peer = await startPeer(test);
    const service = await startTraced(test, { controllers });
    for (let count = 2; count <= 6; count += 2) {
      await fetch(`${service.url}/api/ask/body/${peer.port}`, {
        method: 'POST',
        body: '{"a":1}',
        headers: { 'content-type': 'application/json' },
      });
      const spans = await service.collector.until(({ length }) => length === count);
      const server = spans.filter(({ kind }) => kind === 2).at(-1) as ReceivedSpan;
      assertChild(
        spans.find(({ parentSpanId }) => parentSpanId === server.spanId),
        server,
      );
    }
  });

  for (const [hosts, isSent] of [
    ['all', true],
    ['off', false],
    ['127.0.0.1', true],
    ['127.0.0.2,localhost', false],
    ['*.0.0.1', true],
  ] as const)
    it(`with TRACE_PROPAGATE=${hosts} ${isSent ? 'carries' : 'omits'} traceparent, and has a span`, async (test) => {
      const peer = await startPeer(test);
      const service = await startTraced(test, { controllers, settings: { TRACE_PROPAGATE: hosts } });
      const { server, only } = await ask(service, `fetch/${peer.port}/there`, 2);
      assertChild(only, server);
      assert.equal(peer.requests[0]?.traceparent !== undefined, isSent);
    });

  for (const [hosts, isSent] of [
    ['books.example', setsHeaders],
    ['127.0.0.1', false],
  ] as const)
    it(`through a proxy is one to its target, with TRACE_PROPAGATE=${hosts}`, async (test) => {
      const proxy = await startPeer(test);
      const service = await startTraced(test, { controllers, settings: { TRACE_PROPAGATE: hosts } });
      const { only } = await ask(service, `proxied/${proxy.port}`, 2);
      assert.equal(only.attributes['url.full'], 'http://books.example:8080/there');
      assert.equal(only.attributes['server.address'], 'books.example');
      assert.equal(only.attributes['server.port'], '8080');
      assert.equal(proxy.requests[0]?.traceparent !== undefined, isSent);
    });
});

describe('params.waitUntil', () => {
  it('makes a span below the request, and so does a fetch in the background work', async (test) => {
    const peer = await startPeer(test);
    const service = await startTraced(test, { controllers });
    const { server, others } = await ask(service, `after/${peer.port}`, 3);
    for (const span of others) assertChild(span, server);
    assert.deepEqual(others.map(({ name, kind }) => [name, kind]).sort(), [
      ['GET', CLIENT],
      ['waitUntil', INTERNAL],
    ]);
  });

  it('calls `then` of a query once, because each call would run the query again', async (test) => {
    const service = await startTraced(test, { controllers });
    assert.equal((await ask(service, 'after-query', 2)).body.runs, 1);
  });

  it('makes no span below a request that is not sampled', async (test) => {
    const service = await startTraced(test, {
      ...{ controllers, env: { OTEL_TRACES_SAMPLER: 'always_off' } },
      expectedErrors: ['background-work-failed'],
    });
    assert.equal((await fetch(`${service.url}/api/ask/after-fails`)).status, 200);
    await service.flush();
    assert.deepEqual(service.collector.spans, []);
  });

  it('makes a failed span when its promise rejects', async (test) => {
    const service = await startTraced(test, { controllers, expectedErrors: ['background-work-failed'] });
    const { only } = await ask(service, 'after-fails', 2);
    assert.deepEqual(only.status, { code: 2 });
    assert.equal(only.attributes['error.type'], 'RangeError');
    const line = service.lines.find(({ event }) => event === 'background-work-failed');
    assert.equal(line?.trace_id, only.traceId);
  });
});

describe('params.trace', () => {
  it('makes nested spans with the given attributes', async (test) => {
    const service = await startTraced(test, { controllers });
    const { server, others, body } = await ask(service, 'spans', 3);
    const outer = others.find(({ name }) => name === 'outer');
    const inner = others.find(({ name }) => name === 'inner');
    assertChild(outer, server);
    assertChild(inner, outer);
    assert.equal(inner.kind, CLIENT);
    assert.deepEqual(inner.attributes, {
      'db.system.name': 'postgresql',
      count: '3',
      ratio: 0.5,
      ok: true,
      list: ['a', '1'],
    });
    assert.equal(body.sum, 3);
    assert.deepEqual(body.ids, [
      server.traceId,
      server.spanId,
      `00-${server.traceId}-${server.spanId}-03`,
      outer.spanId,
    ]);
  });

  for (const path of ['span-fails', 'span-throws'])
    it(`${path}: sends the class of the error, but not its message`, async (test) => {
      const service = await startTraced(test, { controllers });
      const { only, body } = await ask(service, path, 2);
      assert.deepEqual(body, { data: 'caught' });
      assert.deepEqual(only.status, { code: 2 });
      assert.equal(only.attributes['error.type'], 'RangeError');
      assert.doesNotMatch(JSON.stringify(service.collector.bodies), /secret/);
    });

  it('replaces lone surrogates in names and values of attributes', async (test) => {
    const service = await startTraced(test, { controllers });
    const { only } = await ask(service, 'halves', 2);
    assert.deepEqual(only.attributes, { 'text\ufffd': 'x', 'list\ufffd': ['y\ufffd'] });
  });

  it('returns the same thenable that the work returned, and runs it once', async (test) => {
    const service = await startTraced(test, { controllers });
    const { only, body } = await ask(service, 'thenable', 2);
    // A library such as Knex runs the query at each call of `then`.
    assert.deepEqual(body, { same: true, value: 7, runs: 1 });
    assert.equal(only.name, 'query');
  });

  it('ends the span of a failed thenable once, however often the thenable is awaited', async (test) => {
    const service = await startTraced(test, { controllers });
    const { only, body } = await ask(service, 'failing-thenable', 2);
    assert.deepEqual(body, { reasons: ['RangeError', 'RangeError', 'RangeError'], runs: 3 });
    assert.equal(only.attributes['error.type'], 'RangeError');
  });

  it('ends the span of a frozen thenable at once', async (test) => {
    const service = await startTraced(test, { controllers });
    const { only, body } = await ask(service, 'frozen-thenable', 2);
    assert.deepEqual(body, { value: 7 });
    assert.equal(only.name, 'query');
  });
});
