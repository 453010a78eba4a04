// The public channels of requests, as any tool may use them, and the ids in log lines without an exporter.
import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { channel, tracingChannel } from 'node:diagnostics_channel';
import { describe, it, type TestContext } from 'node:test';
import type { BackgroundEvent, RequestEvent } from '../../../src/api/controller/trace.ts';
import { startCollector } from '../../support/collector.ts';
import { GATEFOLD, onUncaught, type ServiceOptions, startService } from '../../support/service.ts';
import { startTracer } from '../../support/traced-service.ts';
import { callTool, startShop } from '../tools/shop.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';
const IDS = { trace_id: TRACE, span_id: SPAN };
const PARENT = `00-${TRACE}-${SPAN}-01`;
const PHASES = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'] as const;

const SHOP = `
import { HttpError, Reply } from '${GATEFOLD}';
export default class ShopController {
  index() { return { ok: true }; }
  async 'GET {id}'(_, { path, log, trace, waitUntil }) {
    log.info('asked');
    waitUntil(Promise.resolve());
    await new Promise(setImmediate);
    return { id: path.id, traceId: trace.traceId ?? null };
  }
  'GET fail'() { throw new RangeError('x'); }
  'GET refuse'() { throw new HttpError(409, 'TAKEN', 'Taken', { headers: { 'Content-Length': '1' } }); }
  'GET header'() { return new Reply(200, {}, { 'Content-Length': '1' }); }
  'GET late'() { setImmediate(() => { throw new RangeError('late'); }); return new Promise(() => {}); }
}`;
const controllers = { 'ShopController.js': SHOP };

async function start(test: TestContext, options: ServiceOptions = {}) {
  const service = await startService({ controllers, ...options });
  test.after(() => service.close());
  const get = (path: string, headers = {}) => fetch(`${service.url}/api/shop${path}`, { headers });
  /** Resolves with the log line, which is written a moment after the answer. */
  const line = async (event: string) => {
    for (;;) {
      const found = service.lines.find((candidate) => candidate.event === event);
      if (found !== undefined) return found;
      await new Promise((turn) => setImmediate(turn));
    }
  };
  return { ...service, get, line };
}

/** Follows all requests of this process until the end of the test. */
function follow<Event>(
  test: TestContext,
  name: string,
  onPhase: (phase: string, event: Event) => void,
): Promise<unknown> {
  return new Promise((ended) => {
    const listeners = PHASES.map((phase) => {
      const listener = (event: unknown) => {
        if (phase === 'asyncEnd') ended(event);
        onPhase(phase, event as Event);
      };
      tracingChannel(name)[phase].subscribe(listener);
      return [phase, listener] as const;
    });
    test.after(() => {
      for (const [phase, listener] of listeners) tracingChannel(name)[phase].unsubscribe(listener);
    });
  });
}

describe("tracingChannel('gatefold:request')", () => {
  for (const phase of PHASES)
    it(`publishes to a tool that subscribes only to ${phase}, also where TracingChannel has no hasSubscribers`, async (test) => {
      const { prototype } = tracingChannel('gatefold:request').constructor;
      const original = Object.getOwnPropertyDescriptor(prototype, 'hasSubscribers');
      // As in Node before 20.13.
      Object.defineProperty(prototype, 'hasSubscribers', { value: undefined, configurable: true });
      test.after(() => {
        delete prototype.hasSubscribers;
        if (original !== undefined) Object.defineProperty(prototype, 'hasSubscribers', original);
      });
      const service = await start(test, { expectedErrors: ['request-failed'] });
      const { [phase]: phaseChannel } = tracingChannel('gatefold:request');
      const event = new Promise<unknown>((resolve) => {
        phaseChannel.subscribe(resolve);
        test.after(() => phaseChannel.unsubscribe(resolve));
      });
      await (await service.get('/fail')).text();
      assert.equal(((await event) as RequestEvent).path, '/api/shop/fail');
    });

  const rows = [
    ['a plain operation', '', 200, ['start', 'end', 'asyncStart', 'asyncEnd'], '/api/shop', 'index'],
    [
      'an operation with a promise',
      '/7',
      200,
      ['start', 'end', 'asyncStart', 'asyncEnd'],
      '/api/shop/{id}',
      'GET {id}',
    ],
    ['a 5xx', '/fail', 500, ['start', 'error', 'end', 'asyncStart', 'asyncEnd'], '/api/shop/fail', 'GET fail'],
    ['a refusal', '/refuse', 409, ['start', 'end', 'asyncStart', 'asyncEnd'], '/api/shop/refuse', 'GET refuse'],
  ] as const;
  for (const [what, path, status, phases, route, operation] of rows)
    it(`publishes one event object for ${what}, in the order of the phases of Node`, async (test) => {
      const service = await start(test, { expectedErrors: ['request-failed'] });
      // The first request of a group waits for its import.
      await (await service.get(path)).text();
      const heard: string[] = [];
      const events = new Set<RequestEvent>();
      const ended = follow<RequestEvent>(test, 'gatefold:request', (phase, event) => {
        heard.push(phase);
        events.add(event);
        if (phase === 'start') assert.deepEqual([event.status, event.route, event.operation], [0, undefined, '']);
      });
      const answer = await service.get(`${path}?q=1`);
      assert.equal(answer.status, status);
      const { length } = await answer.text();
      await ended;
      assert.deepEqual(heard, phases);
      assert.equal(events.size, 1);
      const [event] = events;
      assert.ok(event);
      assert.equal(event.request.url, `/api/shop${path}?q=1`);
      assert.equal(event.response.statusCode, status);
      assert.equal(event.requestId, answer.headers.get('x-request-id'));
      assert.equal(event.verb, 'GET');
      assert.equal(event.path, `/api/shop${path}`);
      assert.equal(event.route, route);
      assert.equal(event.page, 'shop');
      assert.equal(event.operation, operation);
      assert.equal(event.address, '127.0.0.1');
      assert.equal(event.tool, undefined);
      assert.equal(event.parent, undefined);
      assert.equal(event.status, status);
      assert.equal(event.bytes, length);
      assert.equal(event.error instanceof RangeError, status === 500);
      assert.equal(event.trace, undefined);
    });

  it('publishes the route /api/{params} for a key with a handler', async (test) => {
    const row = { application: { id: 'a', name: 'a' }, handler: 'Shop', methods: undefined };
    const service = await start(test, { parts: { credentials: { identify: () => ({ kind: 'row', row }) } } });
    const ended = follow<RequestEvent>(test, 'gatefold:request', () => {});
    await (await service.get('/7', { authorization: 'any' })).text();
    assert.equal(((await ended) as RequestEvent).route, '/api/{params}');
  });

  it('uses the trace that a subscriber has set', async (test) => {
    const service = await start(test);
    const trace = { traceId: TRACE, spanId: SPAN, traceparent: PARENT, span: () => undefined as never };
    follow<RequestEvent>(test, 'gatefold:request', (phase, event) => {
      if (phase === 'start') event.trace = trace;
    });
    assert.deepEqual(await (await service.get('/7')).json(), { id: '7', traceId: TRACE });
    for (const event of ['operation-info', 'request']) {
      const { trace_id, span_id } = await service.line(event);
      assert.deepEqual({ trace_id, span_id }, IDS, event);
    }
  });

  it('does not fail a request when subscribers and stores throw', async (test) => {
    const service = await start(test);
    const thrown: unknown[] = [];
    const count = () => thrown.length;
    onUncaught(test, (error) => {
      thrown.push(error);
      service.app.failCurrentRequest(error);
    });
    const fail = (phase: string) => {
      throw new Error(phase);
    };
    const ended = Promise.all([
      follow<RequestEvent>(test, 'gatefold:request', fail),
      follow<BackgroundEvent>(test, 'gatefold:background', fail),
    ]);
    const operations = channel('gatefold:operation');
    const store = new AsyncLocalStorage();
    operations.bindStore(store, () => fail('store'));
    test.after(() => operations.unbindStore(store));
    assert.equal((await service.get('/7')).status, 200);
    await ended;
    while (count() < 9) await new Promise((turn) => setImmediate(turn));
    const phases = ['asyncEnd', 'asyncEnd', 'asyncStart', 'asyncStart', 'end', 'end', 'start', 'start', 'store'];
    assert.deepEqual(thrown.map((error) => (error as Error).message).sort(), phases);
    assert.equal((await service.get('')).status, 200);
  });
});

describe('log lines of a request, without an exporter', () => {
  for (const [path, event] of [
    ['', 'request'],
    ['/7', 'operation-info'],
    ['/fail', 'request-failed'],
    ['/header', 'header-dropped'],
    ['/refuse', 'header-dropped'],
  ] as const)
    it(`${event} of ${path || '/'} has the ids of the header traceparent`, async (test) => {
      const service = await start(test, { expectedErrors: ['request-failed'] });
      const answer = await service.get(path, { traceparent: PARENT });
      await answer.text();
      const { trace_id, span_id, request_id } = await service.line(event);
      assert.deepEqual({ trace_id, span_id }, IDS);
      assert.equal(request_id, answer.headers.get('x-request-id'));
    });

  for (const [what, headers] of [
    ['no traceparent', {}],
    ['a malformed traceparent', { traceparent: `${PARENT}0` }],
    ['a traceparent of zeros', { traceparent: `00-${'0'.repeat(32)}-${SPAN}-01` }],
  ] as const)
    it(`have no trace ids with ${what}`, async (test) => {
      const service = await start(test);
      await (await service.get('/7', headers)).text();
      for (const event of ['operation-info', 'request']) {
        const line = await service.line(event);
        assert.ok(!('trace_id' in line) && !('span_id' in line), JSON.stringify(line));
      }
    });
});

describe('the call of a tool', () => {
  it('has a span below the span of the request with its message', async (test) => {
    const collector = await startCollector();
    test.after(() => collector.close());
    startTracer(test, collector);
    const api = await startShop(test);
    await callTool(api, 'find_order', { path: { id: 7 } }, { traceparent: PARENT });
    const spans = await collector.until(({ length }) => length === 2);
    const message = spans.find(({ kind }) => kind === 2);
    const call = spans.find(({ kind }) => kind === 1);
    assert.ok(message && call);
    assert.deepEqual([message.traceId, message.parentSpanId, message.flags], [TRACE, SPAN, 0x301]);
    assert.equal(message.attributes['gen_ai.tool.name'], undefined);
    assert.deepEqual([call.traceId, call.parentSpanId, call.flags], [TRACE, message.spanId, 0x101]);
    assert.equal(call.name, 'GET /api/order/{id}');
    assert.equal(call.attributes['gen_ai.tool.name'], 'find_order');
    assert.equal(call.attributes['http.response.status_code'], '200');
  });

  it('has the trace of its message when a subscriber follows requests without tracing them', async (test) => {
    const traces: unknown[] = [];
    follow<RequestEvent>(test, 'gatefold:request', (phase, { trace, tool }) => {
      if (phase === 'start') traces.push([tool, trace?.traceId, trace?.spanId]);
    });
    const api = await startShop(test);
    await callTool(api, 'find_order', { path: { id: 7 } }, { traceparent: PARENT });
    assert.deepEqual(traces, [
      [undefined, TRACE, SPAN],
      ['find_order', TRACE, SPAN],
    ]);
  });
});

it('an uncaught error has the ids of the request whose operation threw it', async (test) => {
  const service = await start(test, { expectedErrors: ['request-failed'] });
  let ids: unknown;
  onUncaught(test, (error) => {
    ids = service.app.currentRequestIds();
    service.app.failCurrentRequest(error);
  });
  const answer = await service.get('/late', { traceparent: PARENT });
  assert.equal(answer.status, 500);
  assert.deepEqual(ids, { request_id: answer.headers.get('x-request-id'), ...IDS });
  assert.equal(service.app.currentRequestIds(), undefined);
});
