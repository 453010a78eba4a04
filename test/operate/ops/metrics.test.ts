// Tests the metrics and /readyz of the real service: counters over reloads and worker exits, refused generations, and
// bad tables.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ask, json, startLoad } from '../../support/cluster-client.ts';
import { makeRow } from '../../support/credentials-bench.ts';
import { controller, createFolder, write } from '../../support/folder.ts';
import { readyz, scrape, startWatched, TEST, until } from '../../support/ops-client.ts';
import { type ParsedMetrics, total } from '../../support/prometheus-text.ts';

const answered = (metrics: ParsedMetrics) =>
  total(metrics, 'http_server_request_duration_seconds_count', {
    page: 'test',
    operation: 'index',
    http_response_status_code: '200',
  });

describe('the metrics', () => {
  it('keep their counters over rolls and a kill -9, and lose no request in a roll', async (test) => {
    const { ops, port, dir, logged } = await startWatched(test);
    const load = startLoad(test, { port, connections: 2, mode: 'kept-alive', pause: 30 });
    let last = 0;
    let stopped = false;
    const watching = (async () => {
      for (;;) {
        const now = answered(await scrape(ops));
        assert.ok(now >= last, `${last} and then ${now}`);
        last = now;
        await sleep(150);
        if (stopped) return;
      }
    })();
    for (let roll = 2; roll <= 3; roll++) {
      await load.until(() => true);
      write(dir, 'TestController.js', `${TEST}\n// ${roll}`);
      await logged('generation-serving', ({ generation }) => generation === roll);
    }
    const { answers, failures } = await load.stop();
    assert.deepEqual(failures, []);
    const settled = await until(
      () => scrape(ops),
      (metrics) => answered(metrics) >= answers,
    );
    assert.equal(answered(settled), answers);
    assert.equal(total(settled, 'gatefold_generations_total'), 3);
    assert.equal(total(settled, 'gatefold_generation'), 3);
    const { pid } = json(await ask(port, '/api/test'));
    process.kill(Number(pid), 'SIGKILL');
    await logged('worker-replaced');
    stopped = true;
    await watching;
    const after = await scrape(ops);
    assert.ok(answered(after) >= answers);
    assert.deepEqual(
      [total(after, 'gatefold_worker_deaths_total'), total(after, 'gatefold_worker_replacements_total')],
      [1, 1],
    );
    assert.ok(
      total(after, 'process_cpu_seconds_total', { worker: '0' }) >=
        total(settled, 'process_cpu_seconds_total', { worker: '0' }),
    );
  });

  it('report a rejected generation and its error until the folder is repaired', async (test) => {
    const { ops, dir, logged } = await startWatched(test, { env: { WORKERS: '1' } });
    write(dir, 'NewController.js', 'export const nothing = 1;');
    write(dir, 'TestController.js', 'export default class { index( }');
    await logged('generation-rejected');
    const { status, body } = await readyz(ops);
    assert.deepEqual([status, body.generation], [200, 1]);
    const rejected = body.rejected as { generation: number; groups: { group: string; error: string }[] };
    assert.equal(rejected.generation, 2);
    assert.equal(rejected.groups[0]?.group, 'Test');
    assert.match(String(rejected.groups[0]?.error), /Unexpected token|Expected/);
    const refused = await scrape(ops);
    assert.equal(total(refused, 'gatefold_generation_rejected'), 1);
    assert.ok(total(refused, 'gatefold_generations_rejected_total') >= 1);
    write(dir, 'TestController.js', controller('mended'));
    await logged('generation-serving', ({ generation }) => Number(generation) > 2);
    const mended = (await readyz(ops)).body;
    assert.equal(mended.rejected, null);
    assert.deepEqual(
      (mended.not_loadable as { group: string }[]).map(({ group }) => group),
      ['New'],
    );
    const after = await scrape(ops);
    assert.deepEqual(
      [total(after, 'gatefold_generation_rejected'), total(after, 'gatefold_groups_not_loadable')],
      [0, 1],
    );
  });

  it('report quarantined rows, an unreadable table and refused providers', async (test) => {
    const dir = createFolder(test, { 'TestController.js': TEST });
    const data = join(dirname(dir), 'data');
    mkdirSync(data);
    const table = join(data, 'production.json');
    const { row } = makeRow({ name: 'good' });
    writeFileSync(table, JSON.stringify({ production: [row, { id: 'short', name: 'bad', hash: 'x' }] }));
    writeFileSync(join(data, 'identity-providers.json'), '[{"name":"odd"}]');
    const { ops } = await startWatched(test, { dir });
    const { body } = await until(
      () => readyz(ops),
      ({ body }) => body.credentials !== null,
    );
    const credentials = body.credentials as {
      rows: number;
      quarantined_rows: number;
      quarantined: { name: string; reason: string }[];
    };
    assert.equal(credentials.quarantined_rows, 1);
    assert.equal(credentials.rows, 1);
    assert.match(String(credentials.quarantined[0]?.name), /^bad$/);
    assert.ok(!JSON.stringify(body).includes(String(row.hash)));
    assert.deepEqual(body.identity, { providers: 0, refused: 1 });
    writeFileSync(table, '{"production": [');
    const broken = await until(
      () => scrape(ops),
      (metrics) => total(metrics, 'gatefold_credentials_stale_workers') === 2,
    );
    assert.equal(total(broken, 'gatefold_credentials_rows'), 1);
    assert.ok(total(broken, 'gatefold_credentials_reload_failures_total') >= 2);
    assert.match(String(((await readyz(ops)).body.credentials as { failure: string }).failure), /Cannot read/);
    writeFileSync(table, JSON.stringify({ production: [row] }));
    const mended = await until(
      () => scrape(ops),
      (metrics) => total(metrics, 'gatefold_credentials_stale_workers') === 0,
    );
    assert.equal(total(mended, 'gatefold_credentials_quarantined_rows'), 0);
    assert.ok(total(mended, 'gatefold_credentials_reloads_total') >= 1);
  });
});
