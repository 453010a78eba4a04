// Checks the files in deploy/prometheus with the programs of Prometheus: the rules, their tests, and a scrape of a
// running service with the shipped configuration.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { METRICS } from '../../src/operate/ops/metrics.ts';
import { createFolder, startService } from '../support/cluster-server.ts';
import { DEPLOY, run, without } from '../support/deploy-proxy.ts';
import { freePorts } from '../support/ports.ts';

const FOLDER = join(DEPLOY, 'prometheus');
/** Matches the names of metrics in a rule, and not its labels. */
const METRIC = /\b(?:gatefold|http_server|process|nodejs)_\w+/g;
const ALERTS = readFileSync(join(FOLDER, 'alerts.yml'), 'utf8');

describe('deploy/prometheus', () => {
  for (const command of [
    ['check', 'config', 'prometheus.yml'],
    ['check', 'rules', 'alerts.yml'],
    ['test', 'rules', 'alerts.test.yml'],
  ])
    test(`promtool ${command.join(' ')} succeeds`, { skip: without('promtool') }, () => {
      const [file = ''] = command.slice(-1);
      const { status, output } = run('promtool', [...command.slice(0, -1), join(FOLDER, file)]);
      assert.equal(status, 0, output);
    });

  test('the alerts use only existing metrics, and each alert has a firing and a silent test', () => {
    const names = new Set(METRICS.map(({ name }) => name));
    for (const [name] of ALERTS.matchAll(METRIC)) assert.ok(names.has(name.replace(/_count$/, '')), name);
    const tests = readFileSync(join(FOLDER, 'alerts.test.yml'), 'utf8');
    const alerts = Array.from(ALERTS.matchAll(/- alert: (\w+)/g), ([, alert]) => alert);
    assert.ok(alerts.length >= 11);
    for (const alert of alerts) {
      assert.match(tests, new RegExp(`name: ${alert} fires\n`));
      assert.match(tests, new RegExp(`alertname: ${alert}, exp_alerts: \\[\\]`));
    }
  });

  test('a scrape has every metric that the alerts name', { skip: without('prometheus') }, async (t) => {
    const [opsPort = 0, port = 0] = await freePorts(2);
    const controller = 'export default class HelloController { index() { return {}; } }';
    const env = { OPS_PORT: String(opsPort), WORKERS: '1' };
    const service = await startService(t, { files: { 'HelloController.js': controller }, env });
    assert.equal((await fetch(`http://127.0.0.1:${service.port}/api/hello`)).status, 200);
    const folder = createFolder(t);
    cpSync(FOLDER, folder, { recursive: true });
    const config = readFileSync(join(folder, 'prometheus.yml'), 'utf8')
      .replace('127.0.0.1:3001', `127.0.0.1:${opsPort}`)
      .replaceAll('15s', '1s');
    writeFileSync(join(folder, 'prometheus.yml'), config);
    const flags = [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ];
    const prometheus = spawn('prometheus', flags, { stdio: 'ignore' });
    t.after(async () => {
      const exited = new Promise((resolve) => prometheus.once('exit', resolve));
      if (prometheus.exitCode === null && prometheus.kill('SIGKILL')) await exited;
    });
    const ask = async (query: string): Promise<readonly { value: [number, string] }[]> => {
      const url = `http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(query)}`;
      const answer = await fetch(url).catch(() => undefined);
      const body = (await answer?.json().catch(() => undefined)) as { data?: { result: [] } } | undefined;
      return body?.data?.result ?? [];
    };
    const until = async (query: string): Promise<void> => {
      for (const end = Date.now() + service.patience(); ; ) {
        if ((await ask(query)).length > 0) return;
        assert.ok(Date.now() < end && prometheus.exitCode === null, `${query} has no result`);
        await new Promise((turn) => setTimeout(turn, 200));
      }
    };
    await until('up{job="gatefold"} == 1');
    await until(
      'sum(http_server_request_duration_seconds_count{http_route="/api/hello",http_response_status_code="200"}) >= 1',
    );
    // Without HTTPS there are no samples of certificates, and without STORE none of the store.
    const named = new Set(Array.from(ALERTS.matchAll(METRIC), ([name]) => name));
    named.delete('gatefold_certificate_expiry_timestamp_seconds');
    for (const name of named) if (name.startsWith('gatefold_store_')) named.delete(name);
    for (const name of named) assert.notDeepEqual(await ask(name), [], name);
    assert.deepEqual(await ask('ALERTS{alertstate="firing"}'), []);
  });
});
