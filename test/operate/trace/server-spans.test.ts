// The span of a request over a real socket, by the semantic conventions for HTTP servers.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ReceivedSpan } from '../../support/collector.ts';
import { startTraced } from '../../support/traced-service.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';
const PARENT = `00-${TRACE}-${SPAN}-01`;
const SERVER = 2;

const ORDER = `
import { Readable } from 'node:stream';
export default class OrderController {
  'GET {id}'(_, params) { return { id: params.path.id }; }
  'GET {id}/files/{path*}'() { return {}; }
  'GET'() { return []; }
  find() { return {}; }
  'GET destroyed'(_, params) { params.request.socket = null; return { address: params.address }; } // as stream.pipeline does
  'GET fail'() { throw new TypeError('the secret is 42'); }
  'GET refuse'() { throw Object.assign(new Error('x'), { code: 'ECONNREFUSED' }); }
  async 'GET slow'(_, { signal }) { if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve)); return {}; }
  'GET stream'() { return Readable.from((async function* () { for (;;) { yield 'x'.repeat(65536); await new Promise(setImmediate); } })()); }
}`;
const LOOSE = `export default class LooseController { index() { return {}; } created() { return {}; } find() { return {}; } }`;
const controllers = { 'OrderController.js': ORDER, 'LooseController.js': LOOSE };

const named = (name: string) => (spans: readonly ReceivedSpan[]) => spans.some((span) => span.name === name);

describe('the span of a request', () => {
  const rows: readonly (readonly [
    request: string,
    name: string,
    status: string,
    attributes: Record<string, unknown>,
  ])[] = [
    [
      'GET /api/order/7?token=secret',
      'GET /api/order/{id}',
      '200',
      { 'http.route': '/api/order/{id}', 'url.path': '/api/order/7' },
    ],
    [
      'GET /api/order/7/files/a/b',
      'GET /api/order/{id}/files/{path*}',
      '200',
      { 'url.path': '/api/order/7/files/a/b' },
    ],
    ['GET /api/order', 'GET /api/order', '200', { 'http.route': '/api/order' }],
    ['HEAD /api/order', 'HEAD /api/order', '200', {}],
    ['POST /api/order/find', 'POST /api/order/find', '200', {}],
    ['GET /api/order/destroyed', 'GET /api/order/destroyed', '200', {}],
    ['GET /api/loose', 'GET /api/loose', '200', {}],
    ['GET /api/Loose/7', 'GET /api/loose/{params}', '200', { 'url.path': '/api/Loose/7' }],
    ['GET /api/loose/7/8', 'GET /api/loose/{params}', '200', { 'http.route': '/api/loose/{params}' }],
    ['GET /api/loose/find', 'GET /api/loose/find', '200', {}],
    ['GET /api/loose/find/7', 'GET /api/loose/find/{params}', '200', {}],
    ['GET /api/docs', 'GET /api/docs', '200', { 'http.route': '/api/docs' }],
    ['GET /api/absent/7', 'GET', '404', { 'http.route': undefined, 'error.type': undefined }],
    ['GET /elsewhere', 'GET', '404', { 'url.path': '/elsewhere' }],
    ['DELETE /api/order', 'DELETE', '405', { 'error.type': undefined }],
    ['OPTIONS /api/order', 'OPTIONS', '200', {}],
    ['PURGE /api/loose', 'HTTP', '405', { 'http.request.method': '_OTHER', 'http.request.method_original': 'PURGE' }],
    ['GET /api/order/fail', 'GET /api/order/fail', '500', { 'error.type': 'TypeError' }],
    ['GET /api/order/refuse', 'GET /api/order/refuse', '500', { 'error.type': 'ECONNREFUSED' }],
    ['GET /api/%zz', 'GET', '400', { 'url.path': '/api/%zz' }],
  ];
  for (const [request, name, status, attributes] of rows) {
    it(`for ${request} has the name '${name}'`, async (test) => {
      const service = await startTraced(test, { controllers, expectedErrors: ['request-failed'] });
      await service.raw(
        `${request} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nUser-Agent: me\r\nX-Key: secret\r\n\r\n`,
      );
      await service.collector.until((spans) => spans.length > 0);
      const [span] = service.collector.spans;
      assert.ok(span);
      assert.equal(service.collector.spans.length, 1);
      assert.equal(span.name, name);
      assert.equal(span.kind, SERVER);
      assert.equal(span.attributes['http.response.status_code'], status);
      assert.deepEqual(span.status, Number(status) >= 500 ? { code: 2 } : undefined);
      assert.equal(span.attributes['url.scheme'], 'http');
      assert.equal(span.attributes['client.address'], '127.0.0.1');
      assert.equal(span.attributes['network.peer.address'], '127.0.0.1');
      assert.equal(span.attributes['network.protocol.version'], '1.1');
      for (const [key, value] of Object.entries(attributes)) assert.equal(span.attributes[key], value, key);
      assert.equal(span.attributes['http.request.method'], name.startsWith('HTTP') ? '_OTHER' : name.split(' ')[0]);
      // The span has nothing from the query or the headers.
      assert.doesNotMatch(JSON.stringify(service.collector.bodies), /secret|a\.test|"me"/);
      assert.match(span.traceId, /^[0-9a-f]{32}$/);
      assert.match(span.spanId, /^[0-9a-f]{16}$/);
      assert.equal(span.parentSpanId, undefined);
      assert.ok(BigInt(span.startTimeUnixNano) <= BigInt(span.endTimeUnixNano));
      assert.ok(Math.abs(Number(BigInt(span.startTimeUnixNano) / 1_000_000n) - Date.now()) < 600_000);
    });
  }

  it('has the resource of the service', async (test) => {
    const service = await startTraced(test, {
      controllers,
      env: { OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test%2C1,host.name=h', OTEL_SERVICE_NAME: 'till' },
    });
    await fetch(`${service.url}/api/order`);
    await service.collector.until((spans) => spans.length > 0);
    const { resource = {} } = service.collector.spans[0] ?? {};
    assert.equal(resource['service.name'], 'till');
    assert.equal(resource['service.version'], '1.2.3');
    assert.equal(resource['deployment.environment.name'], 'test,1');
    assert.equal(resource['host.name'], 'h');
    assert.equal(resource['telemetry.sdk.language'], 'nodejs');
    assert.equal(service.collector.requests[0]?.url, '/v1/traces');
    assert.equal(service.collector.requests[0]?.headers['content-type'], 'application/json');
  });

  it('continues the trace of the caller, and log lines have its ids', async (test) => {
    const service = await startTraced(test, { controllers });
    await fetch(`${service.url}/api/order/7`, { headers: { traceparent: PARENT, tracestate: 'a=1, b=2' } });
    await service.collector.until(named('GET /api/order/{id}'));
    const [span] = service.collector.spans;
    assert.equal(span?.traceId, TRACE);
    assert.equal(span?.parentSpanId, SPAN);
    assert.equal(span?.traceState, 'a=1,b=2');
    // Sampled, and the parent is in another process.
    assert.equal(span?.flags, 0x301);
    const line = service.lines.find(({ event }) => event === 'request');
    assert.equal(line?.trace_id, TRACE);
    assert.equal(line?.span_id, span?.spanId);
  });

  it('starts a new trace without tracestate when traceparent is repeated or malformed', async (test) => {
    const service = await startTraced(test, { controllers });
    for (const lines of [
      `traceparent: ${PARENT}\r\nTraceparent: ${PARENT}`,
      `traceparent: ${PARENT}0`,
      'traceparent: ',
    ])
      await service.raw(
        `GET /api/order HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${lines}\r\ntracestate: a=1\r\n\r\n`,
      );
    const spans = await service.collector.until(({ length }) => length === 3);
    for (const span of spans) {
      assert.notEqual(span.traceId, TRACE);
      assert.equal(span.parentSpanId, undefined);
      assert.equal(span.traceState, undefined);
    }
  });

  it('is not exported when the parent is not sampled, but the log has the trace id of the parent', async (test) => {
    const service = await startTraced(test, { controllers });
    await fetch(`${service.url}/api/order/7`, { headers: { traceparent: PARENT.replace(/01$/, '00') } });
    await service.flush();
    assert.deepEqual(service.collector.spans, []);
    assert.equal(service.lines.find(({ event }) => event === 'request')?.trace_id, TRACE);
  });

  for (const [path, status] of [
    ['slow', undefined],
    ['stream', '200'],
  ] as const)
    it(`has the error type client_disconnected when the client leaves: ${path}`, async (test) => {
      const service = await startTraced(test, { controllers });
      const stop = new AbortController();
      const answer = fetch(`${service.url}/api/order/${path}`, { signal: stop.signal });
      if (status === undefined) while (service.app.inFlight() === 0) await new Promise((turn) => setImmediate(turn));
      else await (await answer).body?.getReader().read();
      stop.abort();
      await answer.catch(() => {});
      await service.collector.until((spans) => spans.length > 0);
      const [span] = service.collector.spans;
      assert.equal(span?.attributes['error.type'], 'client_disconnected');
      assert.equal(span?.attributes['http.response.status_code'], status);
      assert.deepEqual(span?.status, { code: 2 });
    });

  it('has no value of a query or of a header', async (test) => {
    const service = await startTraced(test, { controllers });
    await service.raw('GET /api/order?q=secret HTTP/1.1\r\nHost: a\r\nX-Key: secret\r\nConnection: close\r\n\r\n');
    await service.collector.until((spans) => spans.length > 0);
    assert.doesNotMatch(JSON.stringify(service.collector.spans), /secret/);
  });

  it('has the address of the client behind trusted proxies in client.address', async (test) => {
    const service = await startTraced(test, { controllers, settings: { TRUSTED_PROXIES: '127.0.0.1' } });
    await fetch(`${service.url}/api/order`, { headers: { 'x-forwarded-for': '192.0.2.9' } });
    await service.collector.until((spans) => spans.length > 0);
    assert.equal(service.collector.spans[0]?.attributes['client.address'], '192.0.2.9');
    assert.equal(service.collector.spans[0]?.attributes['network.peer.address'], '127.0.0.1');
  });

  it('has a method of HTTP, or HTTP in its place', async (test) => {
    const service = await startTraced(test, { controllers });
    await service.raw('PURGE /api/loose HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    await service.raw('GET /api/loose HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
    await service.collector.until(({ length }) => length === 2);
    assert.deepEqual(
      service.collector.spans.map(({ name }) => name),
      ['HTTP', 'GET /api/loose'],
    );
  });
});

it('requests on one connection have the status and HTTP version of their own answers in their spans', async (test) => {
  const service = await startTraced(test, { controllers });
  await service.raw(
    'GET /api/order HTTP/1.1\r\nHost: a.test\r\n\r\nGET /api/absent HTTP/1.1\r\nHost: a.test\r\n\r\nGET /api/order HTTP/1.0\r\nHost: a.test\r\n\r\n',
  );
  const spans = await service.collector.until(({ length }) => length === 3);
  const facts = spans.map(({ attributes }) => [
    attributes['http.response.status_code'],
    attributes['network.protocol.version'],
    attributes['network.peer.address'],
  ]);
  assert.deepEqual(facts, [
    ['200', '1.1', '127.0.0.1'],
    ['404', '1.1', '127.0.0.1'],
    ['200', '1.0', '127.0.0.1'],
  ]);
});
