// The log line of a worker that could not report: the operation that it began last, and why it ended. Slow, because a
// worker counts as blocked after five seconds.
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { type LogLine, type Service, startService, write } from '../support/cluster-server.ts';
import { readyz, startWatched, until } from '../support/ops-client.ts';

const CONTROLLER = `
  const held = [];
  export default class {
    index() { return {}; }
    'POST {id}/loop'() { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0); }
    async 'GET grow'() { for (;;) { held.push(Array.from({ length: 100_000 }, () => ({}))); await new Promise(setImmediate); } }
    'GET stop'() { process.kill(process.pid, 'SIGKILL'); }
  }`;

describe('the line of the end of a worker', () => {
  const start = (t: TestContext, env: Record<string, string> = {}) =>
    startService(t, {
      files: { 'OrderController.mjs': CONTROLLER },
      env: { WORKERS: '1', LAST_REQUEST: 'on', ...env },
    });
  /** Returns the line of the worker that the request ends. */
  const died = async (service: Service, method: string, path: string): Promise<LogLine> => {
    const known = service.lines.length;
    const url = `http://127.0.0.1:${service.port}/api/order`;
    // A connection that is kept can be that of a worker that has just died.
    const headers = { 'x-request-id': 'order-7', connection: 'close' };
    await fetch(url, { headers });
    fetch(url + path, { method, headers }).catch(() => {});
    return service.logged('worker-died', (line) => service.lines.indexOf(line) >= known);
  };

  test('has verb, route and request id of the operation that blocks it or fills its heap', async (t) => {
    const service = await start(t, { NODE_OPTIONS: '--max-old-space-size=60' });
    const full = await died(service, 'GET', '/grow');
    assert.match(String(full.reason), /heap/);
    assert.match(String(full.reason), /\d+ of 60 MiB of heap were used/, 'the limit at which V8 ends the worker');
    assert.equal(full.last_request, 'GET /api/order/grow');
    const line = await died(service, 'POST', '/12/loop');
    assert.equal(line.last_request, 'POST /api/order/{id}/loop');
    assert.equal(line.last_request_id, 'order-7');
    assert.match(String(line.last_request_at), /^\d{4}-/);
    assert.equal(line.reason, 'its event loop did not turn for 5 s');
  });

  test('has no advice about an await where the load of a file blocks the event loop', async (t) => {
    const service = await start(t, { LOAD_TIMEOUT: '1s' });
    write(service.dir, 'OrderController.mjs', 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);');
    const { file, reason } = await service.logged('worker-died');
    assert.equal(file, 'OrderController.mjs');
    assert.match(
      String(reason),
      /^its event loop did not turn for \d+ s; the machine gave it 0\.\d s of CPU in [\d.]+ s$/,
    );
  });

  test('has none of them with LAST_REQUEST=off', async (t) => {
    const line = await died(await start(t, { LAST_REQUEST: 'off' }), 'GET', '/stop');
    assert.equal('last_request' in line, false);
    assert.match(String(line.reason), /SIGKILL, which the service did not send/);
  });

  test('has them from the second death on with LAST_REQUEST=auto, also where a reserve had booted before', async (t) => {
    const files = { 'OrderController.mjs': CONTROLLER };
    const service = await startWatched(t, { files, env: { WORKERS: '1', LAST_REQUEST: 'auto' } });
    write(service.dir, 'OrderController.mjs', `${CONTROLLER} // an edit makes a reserve`);
    await until(
      () => readyz(service.ops),
      ({ body }) => (body.workers as { state: string }[]).some(({ state }) => state === 'standby'),
    );
    for (const hasNote of [false, true]) {
      const url = `http://127.0.0.1:${service.port}/api/order`;
      const deaths = () => service.lines.filter(({ event }) => event === 'worker-died');
      const count = deaths().length;
      while (deaths().length === count) await fetch(`${url}/stop`).catch(() => {});
      assert.equal('last_request' in (deaths()[count] as LogLine), hasNote);
    }
  });
});
