// The operations port of the real service: its answers while workers load, serve, hang, have ended and drain.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { ask, openConnection } from '../../support/cluster-client.ts';
import { createFolder, spawnService } from '../../support/cluster-server.ts';
import { readyz, scrape, startWatched, TEST, until } from '../../support/ops-client.ts';
import { total } from '../../support/prometheus-text.ts';

describe('the operations port', () => {
  it('stops the start with one line when its port is in use', async (test) => {
    const busy = createServer();
    test.after(() => busy.close());
    const port = await new Promise<number>((resolve) =>
      busy.listen(0, '127.0.0.1', () => resolve((busy.address() as { port: number }).port)),
    );
    const service = spawnService(test, {
      files: { 'TestController.js': TEST },
      env: { OPS_PORT: String(port), WORKERS: '1' },
    });
    assert.deepEqual(await service.exited, { code: 1, signal: null });
    assert.equal(
      service.errors(),
      `gatefold: OPS_PORT: Cannot listen on 127.0.0.1:${port}: it is in use by another process (EADDRINUSE)\n`,
    );
  });

  it('answers before the first worker serves, and /readyz returns starting', async (test) => {
    const gate = join(createFolder(test), 'gate');
    const wait = `import { existsSync as exists } from 'node:fs';
      while (!exists(${JSON.stringify(gate)})) await new Promise((resolve) => setTimeout(resolve, 20));`;
    const service = spawnService(test, {
      files: { 'TestController.js': `${wait}${TEST}` },
      env: { OPS_PORT: '0', WORKERS: '1', LOAD_TIMEOUT: '60s' },
    });
    const ops = Number((await service.logged('operations-port-opened')).port);
    assert.equal((await ask(ops, '/livez')).status, 200);
    const { status, body } = await readyz(ops);
    assert.deepEqual([status, body.status, body.generation], [503, 'starting', 0]);
    assert.equal(total(await scrape(ops), 'gatefold_ready'), 0);
    writeFileSync(gate, '');
    await service.listening;
    assert.equal((await readyz(ops)).status, 200);
    assert.equal(total(await scrape(ops), 'gatefold_ready'), 1);
  });

  it('answers while the only worker hangs, with 503 on /readyz, and counts the death of the worker', async (test) => {
    const { ops, port, logged } = await startWatched(test, { env: { WORKERS: '1' } });
    const stuck = openConnection(port).ask('GET /api/test/loop HTTP/1.1\r\nHost: localhost\r\n\r\n');
    const aged = await until(
      () => scrape(ops),
      (metrics) => total(metrics, 'gatefold_worker_report_age_seconds') > 2,
    );
    assert.equal(total(aged, 'gatefold_workers', { state: 'serving' }), 1);
    assert.equal((await ask(ops, '/livez')).status, 200);
    const seen = await until(
      () => readyz(ops),
      ({ status }) => status !== 200,
    );
    // A supervisor whose own timer was late on a busy machine does not judge, and sees the end of the worker.
    assert.ok(['workers-stuck', 'no-worker'].includes(String(seen.body.status)), String(seen.body.status));
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
    const { ops, port, lines } = await startWatched(test, { env: { WORKERS: '1' } });
    const servings = () => lines.filter(({ event }) => event === 'generation-serving').length;
    for (let death = 1; ; death++) {
      await assert.rejects(ask(port, '/api/test/exit'));
      // The pause before a new worker grows. A worker that begins at once leaves no time to look.
      const { status, body } = await until(
        () => readyz(ops),
        ({ status }) => status === 503 || servings() > death,
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
    const { ops, port, process: child, logged, exited } = await startWatched(test, { env: { WORKERS: '1' } });
    const scraper = openConnection(ops);
    const livez = 'GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n';
    assert.ok('status' in (await scraper.ask(livez)));
    const gate = join(createFolder(test), 'gate');
    const slow = ask(port, `/api/test/slow?gate=${encodeURIComponent(gate)}`);
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
    writeFileSync(gate, '');
    assert.equal((await slow).status, 200);
    assert.deepEqual(await exited, { code: 0, signal: null });
  });
});
