// One request through two services and a database, which are processes: its tree of spans, its log lines, its metric.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { noPostgres } from '../../examples/conduit/test/postgres.ts';
import { startService, write } from '../support/cluster-server.ts';
import { type ReceivedSpan, startCollector } from '../support/collector.ts';
import { startBench } from '../support/database-bench.ts';

const STOCK = `
import type { ControllerParams } from 'gatefold';
import { sql } from '../lib/database.ts';
export default class StockController {
  static operations = { '*': { access: 'anyone' } } as const;
  async 'GET {id}'(_: unknown, { path: { id }, trace, log }: ControllerParams<{ path: { id: string } }>) {
    log.info('asked');
    const [row] = await trace.span('SELECT users', () => sql\`select count(*)::integer as count from users\`, {
      kind: 'client',
      attributes: { 'db.system.name': 'postgresql', 'db.operation.name': 'SELECT', 'db.collection.name': 'users' },
    });
    return { id, count: row?.count };
  }
}`;
const SHOP = `
export default class ShopController {
  async 'GET {id}'(_, { path, waitUntil }) {
    waitUntil(Promise.resolve());
    const stock = await fetch(process.env.STOCK_URL + '/api/stock/' + path.id);
    return { stock: await stock.json() };
  }
}`;

interface Tree {
  readonly kind: number;
  readonly name: string;
  readonly service?: unknown;
  readonly children: readonly Tree[];
}

/** Returns the tree of spans, with the children in the order of their names. */
function treeOf(spans: readonly ReceivedSpan[], parent: string | undefined): Tree[] {
  return spans
    .filter(({ parentSpanId }) => parentSpanId === parent)
    .map(({ kind, name, spanId, resource }) => ({
      ...{ kind, name, service: resource['service.name'] },
      children: treeOf(spans, spanId),
    }))
    .sort((a, b) => a.name.localeCompare(b.name));
}

describe('a request through two services and a database', { skip: noPostgres }, () => {
  it('exports one tree of spans, with log lines of the same trace and a metric', async (test) => {
    const collector = await startCollector();
    test.after(() => collector.close());
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '50', OPS_PORT: '0' };
    const stock = await startBench(test, { env: { ...env, OTEL_SERVICE_NAME: 'stock' } });
    write(stock.service.dir, 'StockController.ts', STOCK);
    const shop = await startService(test, {
      files: { 'ShopController.js': SHOP },
      env: { ...env, OTEL_SERVICE_NAME: 'shop', STOCK_URL: `http://127.0.0.1:${stock.service.port}` },
    });
    const on = await shop.logged('traces-on');
    assert.equal(on.endpoint, `${collector.url}/v1/traces`);
    assert.equal(shop.lines.filter(({ event }) => event === 'traces-on').length, 1);

    const answer = await fetch(`http://127.0.0.1:${shop.port}/api/shop/7`);
    assert.deepEqual(await answer.json(), { stock: { id: '7', count: 0 } });
    const spans = await collector.until(({ length }) => length >= 5);
    assert.equal(new Set(spans.map(({ traceId }) => traceId)).size, 1);
    const [CLIENT, SERVER, INTERNAL] = [3, 2, 1];
    assert.deepEqual(treeOf(spans, undefined), [
      {
        ...{ kind: SERVER, name: 'GET /api/shop/{id}', service: 'shop' },
        children: [
          {
            ...{ kind: CLIENT, name: 'GET', service: 'shop' },
            children: [
              {
                ...{ kind: SERVER, name: 'GET /api/stock/{id}', service: 'stock' },
                children: [{ kind: CLIENT, name: 'SELECT users', service: 'stock', children: [] }],
              },
            ],
          },
          { kind: INTERNAL, name: 'waitUntil', service: 'shop', children: [] },
        ],
      },
    ]);
    const byName = (name: string) => spans.find((span) => span.name === name) as ReceivedSpan;
    assert.equal(byName('SELECT users').attributes['db.system.name'], 'postgresql');
    assert.equal(byName('GET').attributes['url.full'], `http://127.0.0.1:${stock.service.port}/api/stock/7`);
    // Each span begins after its parent, and the database's work ends before the answer.
    const inside = (child: string, parent: string): void => {
      assert.ok(BigInt(byName(child).startTimeUnixNano) >= BigInt(byName(parent).startTimeUnixNano), child);
      assert.ok(BigInt(byName(child).endTimeUnixNano) <= BigInt(byName(parent).endTimeUnixNano), child);
    };
    inside('SELECT users', 'GET /api/stock/{id}');
    inside('GET', 'GET /api/shop/{id}');

    const { traceId } = byName('GET');
    const line = await stock.service.logged('request', ({ trace_id }) => trace_id === traceId);
    assert.equal(line.span_id, byName('GET /api/stock/{id}').spanId);
    const own = await stock.service.logged('operation-info', ({ trace_id }) => trace_id === traceId);
    assert.equal(own.span_id, line.span_id);
    await shop.logged('request', ({ trace_id }) => trace_id === traceId);

    const { port } = await shop.logged('operations-port-opened');
    for (;;) {
      const metrics = await (await fetch(`http://127.0.0.1:${String(port)}/metrics`)).text();
      if (/gatefold_trace_spans_total\{outcome="exported"\} 3\n/.test(metrics)) break;
      await new Promise((turn) => setTimeout(turn, 100));
    }
  });
});
