// The exporter with a real HTTP server: batches, limits, retries by the protocol, and the drain.
import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, it } from 'node:test';
import { createExporter, type ExporterOptions } from '../../../src/operate/trace/exporter.ts';
import { createBatchSender, type SendBatch } from '../../../src/operate/trace/post.ts';
import { type Collector, startCollector } from '../../support/collector.ts';
import { createMemoryLog } from '../../support/memory-log.ts';
import { freePorts } from '../../support/ports.ts';

const ENVELOPE = ['{"resourceSpans":[{"resource":{"attributes":[]},"scopeSpans":[{"spans":[', ']}]}]}'] as const;
const ended = (json: string) => ({ size: json.length, encode: () => json });
const span = (i: number) => ended(`{"name":"${i}","attributes":[]}`);

interface Given extends Partial<ExporterOptions> {
  readonly compress?: boolean;
  readonly url?: string;
  readonly headers?: Record<string, string>;
}

function createBench(collector: Collector | undefined, { compress = false, url, headers = {}, ...given }: Given = {}) {
  const { log, lines } = createMemoryLog();
  const send = createBatchSender(
    {
      ...{ endpoint: new URL(url ?? `${collector?.url}/v1/traces`), headers, compress },
      tls: { ca: undefined, cert: undefined, key: undefined },
    },
    'test',
  );
  const options: ExporterOptions = {
    ...{ send, envelope: ENVELOPE, delay: 5, timeout: 60_000, queueSize: 100, batchSize: 10, log },
    ...{ random: () => 0, ...given },
  };
  return { exporter: createExporter(options), lines };
}

const until = async (condition: () => boolean): Promise<void> => {
  for (const end = Date.now() + 60_000; !condition(); ) {
    assert.ok(Date.now() < end, 'the condition was false for 60 seconds');
    await new Promise((turn) => setTimeout(turn, 5));
  }
};

describe('createExporter', () => {
  it('sends full batches at once, and the rest after the delay', async (test) => {
    const collector = await startCollector();
    test.after(() => collector.close());
    const { exporter } = createBench(collector);
    for (let i = 0; i < 25; i++) exporter.add(span(i));
    const spans = await collector.until(({ length }) => length === 25);
    assert.deepEqual(
      spans.map(({ name }) => Number(name)),
      Array.from({ length: 25 }, (_, i) => i),
    );
    assert.equal(collector.requests.length, 3);
    await until(() => exporter.status().exported === 25);
    assert.equal(exporter.status().dropped, 0);
  });

  it('sends a full batch without the delay, and the spans behind it after a first one', async (test) => {
    const collector = await startCollector();
    test.after(() => collector.close());
    const { exporter } = createBench(collector, { delay: 3_600_000, batchSize: 2 });
    for (let i = 0; i < 3; i++) exporter.add(span(i));
    await collector.until(({ length }) => length === 2);
    exporter.add(span(3));
    await collector.until(({ length }) => length === 4);
  });

  it('sends a batch as soon as it is full', async () => {
    let sent = 0;
    const send: SendBatch = async () => {
      sent++;
      return { kind: 'sent', rejected: 0, reason: '' };
    };
    const { exporter } = createBench(undefined, { url: 'http://127.0.0.1:1', delay: 3_600_000, batchSize: 2, send });
    for (let i = 0; i < 2; i++) {
      assert.equal(sent, 0);
      exporter.add(span(i));
      await new Promise(setImmediate);
    }
    assert.equal(sent, 1);
  });

  it('keeps spans of 8 Mi characters, and drops further ones', () => {
    const { exporter } = createBench(undefined, { url: 'http://127.0.0.1:1', delay: 3_600_000 });
    for (const [size, dropped] of [
      [8 * 2 ** 20 - 1, 0],
      [1, 0],
      [1, 1],
    ] as const) {
      exporter.add({ size, encode: () => '' });
      assert.equal(exporter.status().dropped, dropped);
    }
  });

  it('sends each batch whole after a batch with other lengths and characters', async (test) => {
    const collector = await startCollector();
    test.after(() => collector.close());
    const { exporter } = createBench(collector, { batchSize: 2 });
    const names = ['\u{1f600}é'.repeat(40_000), 'long'.repeat(30_000), 'é', 'b', '\u{1f600}', ''];
    for (const name of names) exporter.add(ended(JSON.stringify({ name, attributes: [] })));
    const spans = await collector.until(({ length }) => length === names.length);
    assert.deepEqual(
      spans.map(({ name }) => name),
      names,
    );
    assert.equal(collector.requests.length, 3);
  });

  for (const [what, given] of [
    ['a full batch', { batchSize: 1 }],
    ['the delay', { delay: 1 }],
  ] as const)
    it(`sends after ${what} outside of the async context of the request that ended a span`, async () => {
      const storage = new AsyncLocalStorage<string>();
      const contexts: unknown[] = [];
      const send: SendBatch = async () => {
        contexts.push(storage.getStore());
        return { kind: 'sent', rejected: 0, reason: '' };
      };
      const { exporter } = createBench(undefined, { url: 'http://127.0.0.1:1', ...given, send });
      storage.run('a request', () => exporter.add(span(1)));
      await until(() => exporter.status().exported === 1);
      assert.deepEqual(contexts, [undefined]);
    });

  it('sends no empty batch when full batches were sent before the delay has passed', async () => {
    const releases: (() => void)[] = [];
    const send: SendBatch = () =>
      new Promise((resolve) => releases.push(() => resolve({ kind: 'sent', rejected: 0, reason: '' })));
    const { exporter } = createBench(undefined, { url: 'http://127.0.0.1:1', batchSize: 2, delay: 20, send });
    for (const batch of [1, 2]) {
      for (let i = 0; i < 2; i++) exporter.add(span(i));
      if (batch === 1) await until(() => releases.length === 1);
    }
    for (const batch of [0, 1]) {
      await until(() => releases.length > batch);
      releases[batch]?.();
    }
    await until(() => exporter.status().exported === 4);
    await new Promise((turn) => setTimeout(turn, 40));
    assert.equal(releases.length, 2);
  });

  it('sends the configured headers, and compresses the body with gzip', async (test) => {
    const collector = await startCollector();
    test.after(() => collector.close());
    const { exporter } = createBench(collector, { compress: true, headers: { 'api-key': 'k' } });
    exporter.add(span(1));
    await collector.until(({ length }) => length === 1);
    const { headers } = collector.requests[0] ?? { headers: {} };
    assert.equal(headers['content-encoding'], 'gzip');
    assert.equal(headers['api-key'], 'k');
    assert.equal(headers['content-type'], 'application/json');
  });

  for (const [what, answer] of [
    ['429', { status: 429, headers: { 'retry-after': '0' } }],
    ['502', { status: 502 }],
    ['503', { status: 503, headers: { 'retry-after': new Date(0).toUTCString() } }],
    ['504', { status: 504, headers: { 'retry-after': 'soon' } }],
  ] as const)
    it(`retries a batch after ${what}, loses no span, and logs one failure`, async (test) => {
      const collector = await startCollector();
      test.after(() => collector.close());
      collector.answer(answer);
      const { exporter, lines } = createBench(collector);
      exporter.add(span(1));
      await until(() => collector.requests.length >= 2);
      collector.answer({});
      await collector.until(({ length }) => length === 1);
      await until(() => exporter.status().exported === 1);
      assert.equal(exporter.status().dropped, 0);
      assert.deepEqual(
        lines.map(({ event }) => event),
        ['trace-export-failed', 'trace-export-restored'],
      );
    });

  for (const status of [400, 401, 404, 413, 500, 300, 302])
    it(`drops and counts a batch that the collector refuses with ${status}`, async (test) => {
      const collector = await startCollector();
      test.after(() => collector.close());
      collector.answer({ status });
      const { exporter, lines } = createBench(collector);
      exporter.add(span(1));
      exporter.add(span(2));
      await until(() => exporter.status().dropped === 2);
      assert.equal(collector.requests.length, 1);
      assert.equal(lines[0]?.event, 'trace-export-failed');
      assert.equal(lines[0]?.reason, `the collector answered ${status}`);
      await exporter.close(1000);
      assert.equal(exporter.status().dropped, 2);
      assert.equal(lines.length, 1);
    });

  it('drops a batch when Retry-After is longer than the timeout of the batch', async (test) => {
    const collector = await startCollector();
    test.after(() => collector.close());
    collector.answer({ status: 503, headers: { 'retry-after': '3600' } });
    const { exporter } = createBench(collector);
    exporter.add(span(1));
    await until(() => exporter.status().dropped === 1);
    assert.equal(collector.requests.length, 1);
  });

  for (const [message, reason] of [
    ['"too old"', 'too old'],
    ['""', 'the collector rejected spans'],
    ['null', 'the collector rejected spans'],
  ] as const)
    it(`counts spans that a partial success rejects with the message ${message}, and does not retry the batch`, async (test) => {
      const collector = await startCollector();
      test.after(() => collector.close());
      collector.answer({ body: `{"partialSuccess":{"rejectedSpans":"2","errorMessage":${message}}}` });
      const { exporter, lines } = createBench(collector);
      for (let i = 0; i < 3; i++) exporter.add(span(i));
      await until(() => exporter.status().exported === 1);
      assert.equal(exporter.status().dropped, 2);
      assert.equal(lines[0]?.reason, reason);
      assert.equal(collector.requests.length, 1);
    });

  for (const body of ['', 'ok', '[]', 'null', '{"partialSuccess":null}', '{"partialSuccess":{"rejectedSpans":"-1"}}'])
    it(`counts a batch as exported after a 200 with the body '${body}'`, async (test) => {
      const collector = await startCollector();
      test.after(() => collector.close());
      collector.answer({ body });
      const { exporter } = createBench(collector);
      exporter.add(span(1));
      await until(() => exporter.status().exported === 1);
      await exporter.close(1000);
      assert.equal(exporter.status().dropped, 0);
    });

  it('keeps queueSize spans while the collector is unreachable, counts dropped spans, and sends the queue when the collector is back', async (test) => {
    const [port = 0] = await freePorts(1);
    const { exporter, lines } = createBench(undefined, { url: `http://127.0.0.1:${port}/v1/traces` });
    for (let i = 0; i < 500; i++) exporter.add(span(i));
    // One batch waits for an answer that never comes, and the queue behind it is full.
    await until(() => lines.length > 0);
    assert.equal(lines[0]?.reason, 'ECONNREFUSED');
    for (let i = 500; i < 520; i++) exporter.add(span(i));
    // The queue was full when its first batch left. Ten further spans took the place of the batch.
    const dropped = exporter.status().dropped;
    assert.equal(dropped, 410);
    const collector = await startCollector(port);
    test.after(() => collector.close());
    const spans = await collector.until(({ length }) => length === 520 - dropped);
    assert.equal(spans[0]?.name, '0');
    await until(() => exporter.status().exported === 520 - dropped);
    assert.equal(exporter.status().dropped, dropped);
  });

  it('limits the total size of queued spans', async () => {
    const [port = 0] = await freePorts(1);
    const { exporter } = createBench(undefined, { url: `http://127.0.0.1:${port}/`, queueSize: 1000, batchSize: 1000 });
    for (let i = 0; i < 100; i++) exporter.add(ended('x'.repeat(1024 * 1024)));
    assert.ok(exporter.status().dropped >= 90, String(exporter.status().dropped));
    await exporter.close(1);
  });

  it('drops a batch that the collector never answers', async (test) => {
    const collector = await startCollector();
    test.after(() => collector.close());
    collector.answer('hang');
    const { exporter } = createBench(collector, { timeout: 50 });
    exporter.add(span(1));
    await until(() => exporter.status().dropped === 1);
  });

  it('sends all queued spans when it closes', async (test) => {
    const collector = await startCollector();
    test.after(() => collector.close());
    const { exporter, lines } = createBench(collector, { delay: 3_600_000 });
    for (let i = 0; i < 35; i++) exporter.add(span(i));
    await exporter.close(60_000);
    assert.equal(collector.spans.length, 35);
    assert.deepEqual([exporter.status(), lines], [{ exported: 35, dropped: 0 }, []]);
  });

  it('retries a batch once when it closes during the pause before a retry', async (test) => {
    const collector = await startCollector();
    test.after(() => collector.close());
    collector.answer({ status: 503, headers: { 'retry-after': '30' } });
    const { exporter, lines } = createBench(collector);
    exporter.add(span(1));
    await until(() => lines.length > 0);
    collector.answer({});
    await exporter.close(60_000);
    assert.equal(collector.spans.length, 1);
  });

  it('closes in time while the collector hangs, and logs and counts the lost spans', async (test) => {
    const collector = await startCollector();
    test.after(() => collector.close());
    collector.answer('hang');
    const { exporter, lines } = createBench(collector);
    for (let i = 0; i < 35; i++) exporter.add(span(i));
    await exporter.close(50);
    await until(() => exporter.status().dropped === 35);
    assert.ok(lines.some(({ event }) => event === 'trace-spans-lost'));
  });
});
