// A strict parser checks that the metrics follow the Prometheus format 0.0.4. Further rows check that the parser
// refuses wrong texts.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { TaskState } from '../../../src/live/tasks/runner.ts';
import { type Family, renderFamilies } from '../../../src/operate/ops/exposition.ts';
import { createHistogram, observe } from '../../../src/operate/ops/histogram.ts';
import { DELAY_BOUNDS } from '../../../src/operate/ops/loop-delay.ts';
import type { SupervisorFacts } from '../../../src/operate/ops/metric-rows.ts';
import { collectFamilies, METRICS } from '../../../src/operate/ops/metrics.ts';
import { createRequestCounts } from '../../../src/operate/ops/request-counts.ts';
import type { ServiceStatus } from '../../../src/operate/ops/service-status.ts';
import type { WorkerReport } from '../../../src/operate/ops/worker-metrics.ts';
import { parseMetrics, total } from '../../support/prometheus-text.ts';
import { supervisorStatus } from '../../support/supervisor-status.ts';

const ABOUT: SupervisorFacts = {
  version: '1.2.3',
  build: () => '1.2.3+0a',
  node: '20.0.0',
  wantedWorkers: 2,
  startedAt: 1,
  memoryBytes: () => 1,
  maxDescriptors: 300,
  cpuSeconds: () => 0.25,
  logLinesDropped: () => 2,
};

function totals() {
  const requests = createRequestCounts();
  for (const [page, operation, verb, status, duration] of [
    ['test', 'index', 'GET', 200, 0.2],
    ['test', 'index', 'GET', 200, 700],
    ['test', 'index', 'HEAD', 200, 40_000],
    ['', '', 'BREW', 404, 0.1],
  ] as const)
    requests.count(requests.countsFor(page, operation, page && `/api/${page}`), verb, status, 10, duration);
  return {
    requests,
    delays: createHistogram(DELAY_BOUNDS),
    cpuSeconds: [1e-7],
    credentialReloads: 0,
    credentialReloadFailures: 0,
    identityKeyFetches: 0,
    identityKeyFailures: 0,
    rateLimited: { credential: 0, address: 0, operation: 0 },
    logLinesDropped: 0,
    spansExported: 0,
    spansDropped: 0,
    connectionsRefused: 0,
    channelDelivered: 0,
    channelTooSlow: 0,
  };
}

describe('renderFamilies', () => {
  const family = (change: Partial<Family>): Family => ({
    name: 'a_total',
    type: 'counter',
    help: 'A',
    samples: [{ value: 1 }],
    ...change,
  });

  test('escapes help and label values, which a parser reads back unchanged', () => {
    const odd = 'back\\slash "quote"\nnew line, comma {brace} \u00e9 \u{1f600}';
    const text = renderFamilies([family({ help: odd, samples: [{ labels: { a: odd, b: '' }, value: 2 }] })]);
    const [sample] = parseMetrics(text).get('a_total')?.samples ?? [];
    assert.deepEqual(sample, { name: 'a_total', labels: { a: odd, b: '' }, value: 2 });
    assert.equal(text.split('\n').length, 4);
  });

  test('writes numbers of every kind, also infinities and NaN', () => {
    const values = [0, 1e-7, 1.5, 2 ** 53, 1e22, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN];
    const text = renderFamilies([
      family({ name: 'a', type: 'gauge', samples: values.map((value, i) => ({ labels: { i }, value })) }),
    ]);
    assert.deepEqual(
      parseMetrics(text)
        .get('a')
        ?.samples.map(({ value }) => value),
      values,
    );
  });

  test('writes a cumulative histogram that ends with +Inf and counts a value on a bound below it', () => {
    const value = createHistogram([0.1, 1]);
    for (const seconds of [0.1, 0.1, 0.5, 1, 7]) observe(value, seconds);
    const text = renderFamilies([
      family({ name: 'a_seconds', type: 'histogram', samples: [{ labels: { page: 'x' }, value }] }),
    ]);
    parseMetrics(text);
    assert.equal(
      text,
      `# HELP a_seconds A
# TYPE a_seconds histogram
a_seconds_bucket{page="x",le="0.1"} 2
a_seconds_bucket{page="x",le="1"} 4
a_seconds_bucket{page="x",le="+Inf"} 5
a_seconds_sum{page="x"} 8.7
a_seconds_count{page="x"} 5
`,
    );
  });
});

describe('METRICS', () => {
  test('is valid Prometheus text before the first request', () => {
    const service = {
      supervisor: undefined,
      isStopping: false,
      ready: 'some' as const,
      isPunctual: true,
      totals: { ...totals(), requests: createRequestCounts() },
      workers: [],
      latestReport: undefined,
    };
    const metrics = parseMetrics(renderFamilies(collectFamilies(service, ABOUT)));
    assert.deepEqual(
      [...metrics.keys()],
      METRICS.map(({ name }) => name),
    );
    assert.equal(total(metrics, 'gatefold_ready'), 0);
    assert.equal(total(metrics, 'gatefold_workers'), 0);
    for (const name of metrics.keys()) assert.match(name, /^(?:gatefold|http_server|process|nodejs)_/);
  });

  test('is valid Prometheus text with requests, and counts them by their labels', () => {
    const service = {
      supervisor: undefined,
      isStopping: false,
      ready: 'some' as const,
      isPunctual: true,
      totals: totals(),
      workers: [],
      latestReport: undefined,
    };
    const metrics = parseMetrics(renderFamilies(collectFamilies(service, ABOUT)));
    const test = { http_route: '/api/test', page: 'test', operation: 'index' };
    const answered = (method: string, status: string, labels: object) =>
      total(metrics, 'http_server_request_duration_seconds_count', {
        ...labels,
        http_request_method: method,
        http_response_status_code: status,
      });
    assert.equal(answered('GET', '200', test), 2);
    assert.equal(answered('_OTHER', '404', { http_route: '', page: '', operation: '' }), 1);
    assert.equal(total(metrics, 'http_server_request_duration_seconds_bucket', { ...test, le: '0.0005' }), 1);
    assert.equal(total(metrics, 'http_server_request_duration_seconds_bucket', { ...test, le: '1' }), 2);
    assert.equal(total(metrics, 'http_server_request_duration_seconds_count', test), 3);
    const buckets = [...metrics].flatMap(([name, { type, samples }]) =>
      type === 'histogram' ? [[name, [...new Set(samples.flatMap(({ labels }) => labels.le ?? []))].join(' ')]] : [],
    );
    assert.deepEqual(Object.fromEntries(buckets), {
      http_server_request_duration_seconds: '0.0005 0.001 0.0025 0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10 30 +Inf',
      gatefold_event_loop_delay_seconds: '0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 +Inf',
    });
    assert.equal(total(metrics, 'gatefold_response_bytes_total', test), 30);
    assert.equal(total(metrics, 'process_cpu_seconds_total', { worker: '0' }), 1e-7);
    assert.equal(total(metrics, 'gatefold_build_info', { version: '1.2.3', build: '1.2.3+0a', node: '20.0.0' }), 1);
  });
});

describe('METRICS of a part that a service may lack', () => {
  const run = { id: 1, worker: { pid: 1, send: () => {} }, startedAt: 0, dueAt: undefined };
  const task = {
    facts: { name: 'mail' } as TaskState['facts'],
    isWanted: true,
    run: { ...run, hasBegun: true, sureUntil: 0, hasSkipped: false },
    failuresInARow: 0,
    pausedUntil: 0,
    lastSuccessAt: 4500,
    lastDuration: 2.5,
    failures: 3,
    skipped: 4,
  };
  const state = { awayReason: null, needsOperator: false, hasTable: true, age: 1, machines: 5, tableBytes: 6 };
  const store = {
    state: { ...state, tableLimit: 7, secondsAhead: 8, fullReads: 9, missedBells: 10 },
    ageSeconds: 11,
    isTooOld: false,
  };
  const supervisor = supervisorStatus([], {
    servingSince: undefined,
    tasks: [task, { ...task, facts: { ...task.facts, name: 'idle' }, run: undefined }],
    channels: { published: 12, keptBytes: 13 },
    certificate: { names: [], issuer: '', notAfter: 14_000, reloads: 15, failures: 16, lastFailure: undefined },
    store,
  });
  const report = {
    inFlight: 0,
    rateLimitCallers: 0,
    memoryBytes: 17,
    heapUsed: 18,
    heapLimit: 19,
    openDescriptors: 20,
    maxDescriptors: 0,
  };
  const metricsOf = (change: Partial<ServiceStatus['supervisor']>) => {
    const sums = { channelDelivered: 21, channelTooSlow: 22, spansExported: 23, spansDropped: 24 };
    const service: ServiceStatus = {
      supervisor: { ...supervisor, ...change },
      isStopping: false,
      ready: 'some',
      isPunctual: true,
      totals: { ...totals(), ...sums, connectionsRefused: 25 },
      workers: [{ pid: 1, slot: 0, report: report as WorkerReport, reportAge: 26, longestDelay: 27 }],
      latestReport: undefined,
    };
    return parseMetrics(renderFamilies(collectFamilies(service, ABOUT)));
  };
  const rows: [name: string, value: number, labels?: Record<string, string>][] = [
    ['gatefold_task_running', 1, { task: 'mail' }],
    ['gatefold_task_running', 0, { task: 'idle' }],
    ['gatefold_task_last_success_timestamp_seconds', 4.5, { task: 'mail' }],
    ['gatefold_task_duration_seconds', 2.5, { task: 'mail' }],
    ['gatefold_task_failures_total', 3, { task: 'mail' }],
    ['gatefold_task_skipped_total', 4, { task: 'mail' }],
    ['gatefold_store_up', 1],
    ['gatefold_machines', 5],
    ['gatefold_store_table_bytes', 6],
    ['gatefold_store_table_limit_bytes', 7],
    ['gatefold_store_clock_offset_seconds', 8],
    ['gatefold_store_full_reads_total', 9],
    ['gatefold_store_missed_bells_total', 10],
    ['gatefold_store_age_seconds', 11],
    ['gatefold_channel_published_total', 12],
    ['gatefold_channel_kept_bytes', 13],
    ['gatefold_certificate_expiry_timestamp_seconds', 14],
    ['gatefold_certificate_reloads_total', 15],
    ['gatefold_certificate_failures_total', 16],
    ['process_resident_memory_bytes', 17, { worker: '0' }],
    ['process_resident_memory_bytes', 1, { worker: 'supervisor' }],
    ['nodejs_heap_size_used_bytes', 18, { worker: '0' }],
    ['nodejs_heap_size_limit_bytes', 19, { worker: '0' }],
    ['process_open_fds', 20, { worker: '0' }],
    ['process_max_fds', 300],
    ['gatefold_channel_delivered_total', 21],
    ['gatefold_channel_too_slow_total', 22],
    ['gatefold_trace_spans_total', 23, { outcome: 'exported' }],
    ['gatefold_trace_spans_total', 24, { outcome: 'dropped' }],
    ['gatefold_connections_refused_total', 25],
    ['gatefold_worker_report_age_seconds', 26, { worker: '0' }],
    ['nodejs_eventloop_lag_max_seconds', 27, { worker: '0' }],
    ['process_cpu_seconds_total', 0.25, { worker: 'supervisor' }],
    ['process_start_time_seconds', 1, { worker: 'supervisor' }],
    ['gatefold_generation_start_time_seconds', 0],
    ['gatefold_generation_rejected', 0],
  ];

  test('have the values of the service', () => {
    const metrics = metricsOf({});
    for (const [name, value, labels] of rows) assert.equal(total(metrics, name, labels), value, name);
  });

  test('show a store that is away and has no age, and no sample without a store, a certificate or tasks', () => {
    const away = metricsOf({ store: { ...store, state: { ...store.state, awayReason: 'gone' }, ageSeconds: null } });
    assert.equal(total(away, 'gatefold_store_up'), 0);
    assert.equal(total(away, 'gatefold_store_age_seconds'), Number.POSITIVE_INFINITY);
    const bare = metricsOf({ store: undefined, certificate: undefined, tasks: undefined });
    for (const [name, { samples }] of bare)
      if (/^gatefold_(?:store|certificate|task|machines)/.test(name)) assert.deepEqual(samples, [], name);
  });
});

describe('parseMetrics, the parser of these tests, refuses', () => {
  const head = '# HELP a A\n# TYPE a gauge\n';
  const histogram = (rows: string) => `# HELP h A\n# TYPE h histogram\n${rows}`;
  const rows: [name: string, text: string, complaint: RegExp][] = [
    ['a text that is cut', `${head}a 1`, /does not end/],
    ['an empty line', `${head}\na 1\n`, /no sample/],
    ['a repeated family', `${head}a 1\n${head}`, /a second time/],
    ['TYPE without HELP', '# TYPE a gauge\na 1\n', /HELP does not stand/],
    ['a sample before its family', `a 1\n${head}`, /without a family/],
    ['a sample of another family', `${head}b 1\n`, /not of the family/],
    [
      'a repeated series with its labels in another order',
      `${head}a{x="1",y="2"} 1\na{y="2",x="1"} 1\n`,
      /there already/,
    ],
    ['a quote that is not escaped', `${head}a{x="1"2"} 1\n`, /cannot be read/],
    ['an unknown escape', `${head}a{x="\\t"} 1\n`, /cannot be read/],
    ['a comma at the end', `${head}a{x="1",} 1\n`, /comma/],
    ['a repeated label', `${head}a{x="1",x="2"} 1\n`, /label twice/],
    ['a reserved label', `${head}a{__x="1"} 1\n`, /reserved/],
    ['a value that is not a number', `${head}a one\n`, /no number/],
    ['a comment of another kind', `${head}# EOF\n`, /neither/],
    ['a counter without _total', '# HELP a A\n# TYPE a counter\na 1\n', /_total/],
    ['a counter below 0', '# HELP a_total A\n# TYPE a_total counter\na_total -1\n', /below 0/],
    [
      'buckets that are not cumulative',
      histogram('h_bucket{le="1"} 2\nh_bucket{le="+Inf"} 1\nh_sum 1\nh_count 1\n'),
      /cumulative/,
    ],
    [
      'bounds out of order',
      histogram('h_bucket{le="2"} 1\nh_bucket{le="1"} 1\nh_bucket{le="+Inf"} 1\nh_sum 1\nh_count 1\n'),
      /ascend/,
    ],
    ['a histogram without +Inf', histogram('h_bucket{le="1"} 1\nh_bucket{le="2"} 1\nh_sum 1\nh_count 1\n'), /\+Inf/],
    ['a histogram without _sum', histogram('h_bucket{le="1"} 1\nh_bucket{le="+Inf"} 1\nh_count 1\n'), /one _sum/],
    [
      'a _count that differs from the +Inf bucket',
      histogram('h_bucket{le="1"} 1\nh_bucket{le="+Inf"} 1\nh_sum 1\nh_count 2\n'),
      /_count is not/,
    ],
  ];
  for (const [name, text, complaint] of rows) test(name, () => assert.throws(() => parseMetrics(text), complaint));
});
