// The operations port of the real service: its answers while workers load, serve, hang, have ended and drain.
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { describe, it } from 'node:test';
import { ask, json, openConnection } from '../../support/cluster-client.ts';
import { spawnService } from '../../support/cluster-server.ts';
import { readyz, scrape, startWatched, TEST, until } from '../../support/ops-client.ts';
import { total } from '../../support/prometheus-text.ts';
import { sendRaw } from '../../support/service.ts';

describe('the operations port', () => {
  it('answers GET and HEAD of its three paths, and refuses all other requests in the envelope', async (test) => {
    const { ops, port } = await startWatched(test);
    await until(
      () => readyz(ops),
      ({ body }) => body.credentials !== null,
    );
    const rows: [method: string, path: string, status: number, code?: string][] = [
      ['GET', '/livez', 200],
      ['GET', '/readyz', 200],
      ['GET', '/readyz?verbose', 200],
      ['GET', '/metrics', 200],
      ['POST', '/metrics', 405, 'METHOD_NOT_ALLOWED'],
      ['OPTIONS', '/readyz', 405, 'METHOD_NOT_ALLOWED'],
      ['DELETE', '/livez', 405, 'METHOD_NOT_ALLOWED'],
      ['GET', '/', 404, 'NOT_FOUND'],
      ['POST', '/metrics/', 404, 'NOT_FOUND'],
      ['GET', '/api/test', 404, 'NOT_FOUND'],
      ['GET', '/../etc/passwd', 404, 'NOT_FOUND'],
    ];
    for (const [method, path, status, code] of rows) {
      const answer = await ask(ops, path, method);
      assert.equal(answer.status, status, `${method} ${path}`);
      assert.match(answer.headers, /^cache-control: no-store\r?$/im);
      if (code === undefined) continue;
      const body = json(answer);
      assert.deepEqual(Object.keys(body), ['status', 'error_code', 'message', 'timestamp', 'request_id']);
      assert.deepEqual([body.status, body.error_code], ['error', code]);
      assert.match(answer.headers, new RegExp(`^x-request-id: ${body.request_id}\r?$`, 'im'));
      if (status === 405) assert.match(answer.headers, /^allow: GET, HEAD\r?$/im);
    }
    for (const path of ['/livez', '/readyz', '/metrics']) {
      const head = await fetch(`http://127.0.0.1:${ops}${path}`, { method: 'HEAD' });
      assert.equal(head.status, 200);
      assert.ok(Number(head.headers.get('content-length')) > 0);
      assert.equal(await head.text(), '');
    }
    assert.match(
      await sendRaw(ops, 'this is no request\r\n\r\n'),
      /^HTTP\/1\.1 400 .*"error_code":"MALFORMED_REQUEST"/s,
    );
    assert.match(
      await sendRaw(ops, 'POST /livez HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nGET /'),
      /^HTTP\/1\.1 405 .*\r\nConnection: close\r\n/s,
    );
    assert.equal((await ask(port, '/metrics')).status, 404, 'the service port does not serve /metrics');
  });

  it('is closed when OPS_PORT is not set', async (test) => {
    const service = spawnService(test, { files: { 'TestController.js': TEST } });
    await service.listening;
    assert.ok(!service.lines.some(({ event }) => event === 'operations-port-opened'));
  });

  it('stops the start with one line when its port is in use', async (test) => {
    const busy = createServer();
    test.after(() => busy.close());
    const port = await new Promise<number>((resolve) =>
      busy.listen(0, '127.0.0.1', () => resolve((busy.address() as { port: number }).port)),
    );
    const service = spawnService(test, { files: { 'TestController.js': TEST }, env: { OPS_PORT: String(port) } });
    assert.deepEqual(await service.exited, { code: 1, signal: null });
    assert.equal(
      service.errors(),
      `gatefold: OPS_PORT: Cannot listen on 127.0.0.1:${port}: it is in use by another process (EADDRINUSE)\n`,
    );
  });

  it('answers before the first worker serves, and /readyz returns starting', async (test) => {
    const service = spawnService(test, {
      files: { 'TestController.js': `await new Promise((resolve) => setTimeout(resolve, 700));${TEST}` },
      env: { OPS_PORT: '0' },
    });
    const ops = Number((await service.logged('operations-port-opened')).port);
    assert.equal((await ask(ops, '/livez')).status, 200);
    const { status, body } = await readyz(ops);
    assert.deepEqual([status, body.status, body.generation], [503, 'starting', 0]);
    assert.equal(total(await scrape(ops), 'gatefold_ready'), 0);
    await service.listening;
    assert.equal((await readyz(ops)).status, 200);
    assert.equal(total(await scrape(ops), 'gatefold_ready'), 1);
  });

  it('answers while the only worker hangs, and counts the death of the worker', async (test) => {
    const { ops, port, logged } = await startWatched(test, { env: { WORKERS: '1' } });
    const stuck = openConnection(port).ask('GET /api/test/loop HTTP/1.1\r\nHost: localhost\r\n\r\n');
    const aged = await until(
      () => scrape(ops),
      (metrics) => total(metrics, 'gatefold_worker_report_age_seconds') > 2,
    );
    assert.equal(total(aged, 'gatefold_workers', { state: 'serving' }), 1);
    assert.equal((await ask(ops, '/livez')).status, 200);
    await logged('worker-died');
    assert.ok('kind' in (await stuck));
    const after = await until(
      () => scrape(ops),
      (metrics) =>
        total(metrics, 'gatefold_worker_replacements_total') + total(metrics, 'gatefold_generations_total') === 2,
    );
    assert.equal(total(after, 'gatefold_worker_deaths_total'), 1);
    assert.equal((await readyz(ops)).status, 200);
  });

  it('answers /readyz with 503 while no worker serves', async (test) => {
    const { ops, port } = await startWatched(test, { env: { WORKERS: '1' } });
    for (let death = 1; ; death++) {
      await assert.rejects(ask(port, '/api/test/exit'));
      const { status, body } = await until(
        () => readyz(ops),
        ({ status }) => status === 503 || death < 4,
      );
      if (status === 200) continue;
      assert.equal(body.status, 'no-worker');
      break;
    }
    await until(
      () => readyz(ops),
      ({ status }) => status === 200,
    );
  });

  it('answers all three paths until the exit after SIGTERM, with 503 on /readyz', async (test) => {
    const { ops, port, process: child, logged, exited } = await startWatched(test);
    const scraper = openConnection(ops);
    const livez = 'GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n';
    assert.ok('status' in (await scraper.ask(livez)));
    const slow = ask(port, '/api/test/slow');
    await until(
      () => scrape(ops),
      (metrics) => total(metrics, 'http_server_active_requests') === 1,
    );
    child.kill('SIGTERM');
    await logged('stopping');
    const { status, body } = await readyz(ops);
    assert.deepEqual([status, body.status], [503, 'stopping']);
    const metrics = await scrape(ops);
    assert.ok(total(metrics, 'gatefold_workers', { state: 'draining' }) >= 1);
    assert.equal(total(metrics, 'gatefold_ready'), 0);
    const alive = await scraper.ask(livez);
    assert.ok('status' in alive && alive.status === 200);
    assert.equal((await slow).status, 200);
    assert.deepEqual(await exited, { code: 0, signal: null });
  });
});
