// Checks the dashboard without Prometheus: its metrics exist, its queries ask for one job, and the package has it.
// test/slow/prometheus.slow.ts runs its queries.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { METRICS } from '../../src/operate/ops/metrics.ts';
import { DASHBOARD } from '../support/dashboard.ts';
import { DEPLOY } from '../support/deploy-proxy.ts';

test('each query of the dashboard names metrics that exist, of the chosen job and machines', () => {
  const names = new Set([...METRICS.map(({ name }) => name), 'up', 'ALERTS']);
  for (const { title, expr } of DASHBOARD.queries) {
    const selectors = Array.from(expr.matchAll(/(\w+)\{([^}]*)\}/g));
    assert.ok(selectors.length > 0, title);
    for (const [, metric = '', labels = ''] of selectors) {
      assert.ok(names.has(metric.replace(/_(?:bucket|count|sum)$/, '')), `${title}: ${metric}`);
      assert.ok(labels.includes('job="$job"'), title);
    }
    // A metric without braces would be that of every job.
    for (const [metric] of expr.matchAll(/\b(?:gatefold|http_server|process|nodejs)_\w+(?!\w|\{)/g))
      assert.fail(`${title}: ${metric} has no job`);
  }
});

test('the panels of the dashboard have ids and titles of their own, and do not overlap', () => {
  const ids = new Set(DASHBOARD.panels.map(({ id }) => id));
  assert.equal(ids.size, DASHBOARD.panels.length);
  const cells = new Set<string>();
  for (const { title, gridPos } of DASHBOARD.panels)
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        assert.ok(x < 24 && !cells.has(`${x} ${y}`), title);
        cells.add(`${x} ${y}`);
      }
});

test('the package has the dashboard, the alerts and their tests', () => {
  const text = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: `${DEPLOY}/..`,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [packed] = JSON.parse(text) as { files: { path: string }[] }[];
  const paths = packed?.files.map(({ path }) => path) ?? [];
  for (const path of ['grafana/gatefold.json', 'prometheus/alerts.yml', 'prometheus/alerts.test.yml'])
    assert.ok(paths.includes(`deploy/${path}`), path);
});
