// Checks deploy/prometheus and deploy/grafana with the programs of Prometheus: the rules, their tests, a scrape of a
// running service with the shipped configuration, and each query of the dashboard.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { openDescriptors } from '../../src/base/descriptors.ts';
import { METRICS } from '../../src/operate/ops/metrics.ts';
import { createFolder, startService, write } from '../support/cluster-server.ts';
import { DASHBOARD } from '../support/dashboard.ts';
import { DEPLOY, run, without } from '../support/deploy-proxy.ts';
import { freePorts } from '../support/ports.ts';
import { noPostgres, startStore } from '../support/store-bench.ts';
import { issue, startMachine } from '../support/store-machines.ts';
import { makePair } from '../support/tls.ts';

const FOLDER = join(DEPLOY, 'prometheus');
/** Matches the names of metrics in a rule, and not its labels. */
const METRIC = /\b(?:gatefold|http_server|process|nodejs)_\w+/g;
const ALERTS = readFileSync(join(FOLDER, 'alerts.yml'), 'utf8');

interface Result {
  readonly value: readonly [time: number, value: string];
}

/** Starts Prometheus with the shipped configuration, on these operations ports, with a scrape each second. */
async function startPrometheus(t: TestContext, opsPorts: readonly number[]) {
  const [port = 0] = await freePorts(1);
  const folder = createFolder(t);
  cpSync(FOLDER, folder, { recursive: true });
  const config = readFileSync(join(folder, 'prometheus.yml'), 'utf8')
    .replace('- 127.0.0.1:3001', `[${opsPorts.map((opsPort) => `'127.0.0.1:${opsPort}'`)}]`)
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
  /** @throws AssertionError when Prometheus refuses the query */
  const ask = async (query: string): Promise<readonly Result[]> => {
    const url = `http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(query)}`;
    const answer = await fetch(url).catch(() => undefined);
    const body = (await answer?.json().catch(() => undefined)) as { data?: { result: [] }; error?: string } | undefined;
    assert.equal(body?.error, undefined, query);
    return body?.data?.result ?? [];
  };
  const until = async (query: string): Promise<void> => {
    for (const end = Date.now() + 240_000; ; ) {
      if ((await ask(query)).some(({ value: [, text] }) => Number.isFinite(Number(text)))) return;
      assert.ok(Date.now() < end && prometheus.exitCode === null, `${query} has no result`);
      await new Promise((turn) => setTimeout(turn, 200));
    }
  };
  return { ask, until, url: `http://127.0.0.1:${port}` };
}

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
    const [opsPort = 0] = await freePorts(1);
    const controller = 'export default class HelloController { index() { return {}; } }';
    const env = { OPS_PORT: String(opsPort), WORKERS: '1' };
    const tasks = `import { defineService } from 'gatefold';
export default defineService({ background: { report: { every: '1h', run() {} } } });`;
    const service = await startService(t, { files: { 'HelloController.js': controller, 'service.js': tasks }, env });
    assert.equal((await fetch(`http://127.0.0.1:${service.port}/api/hello`)).status, 200);
    const { ask, until } = await startPrometheus(t, [opsPort]);
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

describe('deploy/grafana', () => {
  const CONTROLLER = `export default class {
    static operations = { index: { access: 'application' } };
    index() { return {}; }
    'GET {id}'() { return {}; }
    'GET fail'() { throw new Error('on purpose'); }
  }`;
  /** Linux has had the number of descriptors since 6.2. All other panels have data without a fault. */
  const EMPTY = openDescriptors() === 0 ? ['Open descriptors of the limit', 'Open descriptors'] : [];

  test('each query returns data of two running machines: one with a store, one with HTTPS', {
    skip: without('prometheus') || noPostgres,
  }, async (t) => {
    const { url } = await startStore(t);
    const dir = createFolder(t, { 'OrderController.mjs': CONTROLLER });
    const env = { STORE_KEY: 'a key of the tests with 32 characters or more', WORKERS: '1' };
    const machine = await startMachine(t, url, { dir, env });
    const { token } = await issue(machine.env);
    const [opsPort = 0] = await freePorts(1);
    const folder = createFolder(t);
    const pair = makePair('localhost');
    const [TLS_CERT, TLS_KEY] = [join(folder, 'cert.pem'), join(folder, 'key.pem')] as const;
    writeFileSync(TLS_CERT, pair.cert);
    writeFileSync(TLS_KEY, pair.key, { mode: 0o600 });
    await startService(t, {
      files: { 'OrderController.mjs': CONTROLLER },
      env: { OPS_PORT: String(opsPort), WORKERS: '1', TLS_CERT, TLS_KEY },
    });
    const prometheus = await startPrometheus(t, [Number(machine.env.OPS_PORT), opsPort]);
    const call = async (path: string) =>
      (await fetch(`http://127.0.0.1:${machine.port}/api/order${path}`, { headers: { connection: 'close' } })).status;
    // A rate needs a series that grows after its first sample.
    for (let round = 1; round <= 2; round++) {
      assert.deepEqual([await call('/7'), await call('/fail'), await call('')], [200, 500, 401]);
      assert.equal(await machine.ask(token), 200);
      await prometheus.until(
        `sum(http_server_request_duration_seconds_count{http_route="/api/order/{id}"}) >= ${round}`,
      );
    }
    write(dir, 'OrderController.mjs', `${CONTROLLER}\n// Another generation.`);
    await prometheus.until('max(gatefold_generation) == 2');
    const fill = (query: string) =>
      query.replaceAll('$job', 'gatefold').replaceAll('$instance', '.*').replaceAll('$__rate_interval', '5m');
    for (const { title, expr } of DASHBOARD.queries)
      await (EMPTY.includes(title) ? prometheus.ask(fill(expr)) : prometheus.until(fill(expr)));
    for (const { query } of DASHBOARD.variables) {
      const [, series = '', label = ''] = /^label_values\((.+), (\w+)\)$/.exec(fill(query)) ?? [];
      const path = `/api/v1/label/${label}/values?match[]=${encodeURIComponent(series)}`;
      const { data } = (await (await fetch(prometheus.url + path)).json()) as { data: string[] };
      assert.ok(data.length > 0, query);
    }
  });
});
