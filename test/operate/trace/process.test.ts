// Tracing in a process: a variable turns it on, the drain flushes it, and a log line gives the reason when it is off.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { startService } from '../../support/cluster-server.ts';
import { startCollector } from '../../support/collector.ts';

const HELLO = `
export default class HelloController {
  index() { return {}; }
  async 'GET slow'() { await new Promise((resolve) => setTimeout(resolve, 200)); return {}; }
}`;
const files = { 'HelloController.js': HELLO };

describe('a service with OTEL_EXPORTER_OTLP_ENDPOINT', { concurrency: 2 }, () => {
  it('sends all queued spans at the drain, and the span of a request that ends during the drain', async (test) => {
    const collector = await startCollector();
    test.after(() => collector.close());
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_BSP_SCHEDULE_DELAY: '3600000',
      WORKERS: '1',
    };
    const service = await startService(test, { files, env });
    const url = `http://127.0.0.1:${service.port}/api/hello`;
    for (let i = 0; i < 20; i++) assert.equal((await fetch(url)).status, 200);
    const slow = fetch(`${url}/slow`);
    // The next answer shows that the slow request, which came before it, has been accepted as well.
    await fetch(url);
    service.process.kill('SIGTERM');
    assert.equal((await slow).status, 200);
    assert.equal((await service.exited).code, 0);
    const names = collector.spans.map(({ name }) => name);
    assert.equal(names.filter((name) => name === 'GET /api/hello').length, 21);
    assert.equal(names.filter((name) => name === 'GET /api/hello/slow').length, 1);
  });

  it('exits while the collector hangs, and logs the number of lost spans', async (test) => {
    const collector = await startCollector();
    test.after(() => collector.close());
    collector.answer('hang');
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, WORKERS: '1' };
    const service = await startService(test, { files, env });
    await fetch(`http://127.0.0.1:${service.port}/api/hello`);
    service.process.kill('SIGTERM');
    assert.equal((await service.exited).code, 0);
    const { spans_dropped } = await service.logged('trace-spans-lost');
    assert.equal(spans_dropped, 1);
  });

  for (const [what, env, event, reason] of [
    ['the protocol grpc', { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, 'traces-off', /http\/json/],
    ['OTEL_SDK_DISABLED', { OTEL_SDK_DISABLED: 'true' }, 'traces-disabled', /OTEL_SDK_DISABLED/],
  ] as const)
    it(`sends no spans with ${what}, and logs the reason once`, async (test) => {
      const collector = await startCollector();
      test.after(() => collector.close());
      const service = await startService(test, { files, env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, ...env } });
      await fetch(`http://127.0.0.1:${service.port}/api/hello`);
      service.process.kill('SIGTERM');
      await service.exited;
      const lines = service.lines.filter((line) => /^trace/.test(line.event));
      assert.deepEqual(
        lines.map((line) => line.event),
        [event],
      );
      assert.match(String(lines[0]?.reason), reason);
      assert.equal(collector.requests.length, 0);
      assert.equal(service.lines.find((line) => line.event === 'request')?.trace_id, undefined);
    });
});
