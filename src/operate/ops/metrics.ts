// The table of metrics. Names begin with http_ (conventions of OpenTelemetry), with process_ or nodejs_ (Prometheus
// clients), and with gatefold_ where these have none. docs/OPERATING.md has each metric, and a test compares both.

import { openDescriptors } from '../../base/descriptors.ts';
import type { WorkerStatus } from '../../live/supervisor/status.ts';
import { CHANNEL_METRICS } from './channel-metrics.ts';
import type { Family, Sample } from './exposition.ts';
import {
  counter,
  eachOperation,
  eachProcess,
  eachWorker,
  gauge,
  histogram,
  type MetricRow,
  ofSupervisor,
  type SupervisorFacts,
} from './metric-rows.ts';
import { readinessOf } from './readiness.ts';
import { describeCell } from './request-counts.ts';
import type { ServiceStatus } from './service-status.ts';
import { TASK_METRICS } from './task-metrics.ts';

/** Each state always has a sample, even when the sample is 0, because an alert needs a series that never disappears. */
const WORKER_STATES: readonly WorkerStatus['state'][] = [
  'booting',
  'standby',
  'loading',
  'loaded',
  'serving',
  'faulty',
  'draining',
];

export const METRICS: readonly MetricRow[] = [
  gauge(
    'gatefold_build_info',
    'Always 1; version and build of gatefold, version of Node',
    (_, { version, build, node }) => [{ labels: { version, build: build(), node }, value: 1 }],
  ),
  gauge('process_start_time_seconds', 'Start time of the supervisor, Unix time', (_, { startedAt }) => [
    ofSupervisor(startedAt),
  ]),
  gauge('gatefold_ready', '1 while /readyz answers 200', (service) => Number(readinessOf(service) === 'ready')),

  histogram(
    'http_server_request_duration_seconds',
    'Seconds from the complete request head to the last byte of the answer',
    ({ totals }) =>
      eachOperation(totals, ({ cells }, labels) =>
        Array.from(cells, ([cell, value]) => ({ labels: { ...describeCell(cell), ...labels }, value })),
      ),
  ),
  counter('gatefold_response_bytes_total', 'Bytes of response bodies', ({ totals }) =>
    eachOperation(totals, ({ bytes }, labels) => [{ labels, value: bytes }]),
  ),
  counter(
    'gatefold_credential_requests_total',
    'Requests answered, by id of the application credential',
    ({ totals }) =>
      Array.from(totals.requests.credentials(), ([credential, value]) => ({ labels: { credential }, value })),
  ),
  gauge('http_server_active_requests', 'Requests being processed', (service) =>
    eachWorker(service, ({ report }) => report.inFlight),
  ),

  gauge('gatefold_workers', 'Worker processes by state', ({ supervisor }) =>
    WORKER_STATES.map((state) => ({
      labels: { state },
      value: supervisor?.workers.filter((worker) => worker.state === state).length ?? 0,
    })),
  ),
  gauge('gatefold_workers_wanted', 'Configured number of workers', (_, { wantedWorkers }) => wantedWorkers),
  counter(
    'gatefold_worker_deaths_total',
    'Workers that exited without having been asked to',
    ({ supervisor }) => supervisor?.workersDied,
  ),
  counter(
    'gatefold_worker_replacements_total',
    'Workers that replaced one that died or became faulty',
    ({ supervisor }) => supervisor?.workersReplaced,
  ),
  gauge('gatefold_worker_report_age_seconds', "Seconds since the worker's last report", (service) =>
    eachWorker(service, ({ reportAge }) => reportAge),
  ),
  gauge('process_resident_memory_bytes', 'Resident memory of each process', (service, { memoryBytes }) =>
    eachProcess(service, ({ report }) => report.memoryBytes, memoryBytes()),
  ),
  counter('process_cpu_seconds_total', 'CPU time of each process', ({ totals }, { cpuSeconds }) => [
    ...totals.cpuSeconds.map((value, worker) => ({ labels: { worker }, value })),
    ofSupervisor(cpuSeconds()),
  ]),
  gauge('nodejs_heap_size_used_bytes', 'Heap of V8 in use in the worker', (service) =>
    eachWorker(service, ({ report }) => report.heapUsed),
  ),
  gauge('nodejs_heap_size_limit_bytes', 'Limit of that heap, at which the worker is aborted', (service) =>
    eachWorker(service, ({ report }) => report.heapLimit),
  ),
  gauge('process_open_fds', 'Open file descriptors of each process', (service) =>
    eachProcess(service, ({ report }) => report.openDescriptors, openDescriptors()),
  ),
  gauge('process_max_fds', 'Limit of the open file descriptors of each process', (service, { maxDescriptors }) =>
    eachProcess(service, ({ report }) => report.maxDescriptors, maxDescriptors),
  ),
  counter(
    'gatefold_connections_refused_total',
    'Connections closed before their first request, for want of descriptors or beyond MAX_CONNECTIONS',
    ({ totals }) => totals.connectionsRefused,
  ),
  gauge('nodejs_eventloop_lag_max_seconds', 'Longest event loop delay in the last minute', (service) =>
    eachWorker(service, ({ longestDelay }) => longestDelay),
  ),
  histogram(
    'gatefold_event_loop_delay_seconds',
    'Event loop delay, sampled ten times a second in each worker',
    (service) => [{ value: service.totals.delays }],
  ),

  gauge(
    'gatefold_generation',
    'Number of the serving generation; 0 before the first',
    ({ supervisor }) => supervisor?.generation,
  ),
  gauge(
    'gatefold_generation_start_time_seconds',
    'When the serving generation began to serve, Unix time',
    ({ supervisor }) => (supervisor?.servingSince?.getTime() ?? 0) / 1000,
  ),
  counter('gatefold_generations_total', 'Generations put to work', ({ supervisor }) => supervisor?.generationsServed),
  counter(
    'gatefold_generations_rejected_total',
    'Generations and replacement workers refused, retries included',
    (service) => service.supervisor?.generationsRejected,
  ),
  gauge(
    'gatefold_generation_rejected',
    '1 while an older generation serves because the folder does not load',
    ({ supervisor }) => Number(supervisor?.rejected !== undefined),
  ),
  gauge(
    'gatefold_groups_not_loadable',
    'Groups that answer 500 because they have never loaded',
    ({ supervisor }) => supervisor?.notLoadable.length,
  ),

  ...TASK_METRICS,
  ...CHANNEL_METRICS,

  gauge(
    'gatefold_credentials_rows',
    'Rows of the live credentials table',
    ({ latestReport }) => latestReport?.credentialRows,
  ),
  gauge(
    'gatefold_credentials_quarantined_rows',
    'Invalid rows of the credentials table, which are not live',
    ({ latestReport }) => latestReport?.quarantinedRows,
  ),
  gauge(
    'gatefold_credentials_stale_workers',
    'Workers that serve an older credentials table because the file cannot be read',
    ({ workers }) => workers.filter(({ report }) => report.credentialsFailure !== '').length,
  ),
  counter(
    'gatefold_credentials_reloads_total',
    'Credentials table reloads; each worker counts its own',
    ({ totals }) => totals.credentialReloads,
  ),
  counter(
    'gatefold_credentials_reload_failures_total',
    'Failed credentials table reloads; each worker counts its own',
    ({ totals }) => totals.credentialReloadFailures,
  ),
  gauge('gatefold_identity_providers', 'Identity providers in use', ({ latestReport }) => latestReport?.providers),
  gauge(
    'gatefold_identity_providers_refused',
    'Invalid rows of the identity providers',
    ({ latestReport }) => latestReport?.refusedProviderRows,
  ),
  counter(
    'gatefold_identity_fetches_total',
    'Requests for key sets and discovery documents',
    ({ totals }) => totals.identityKeyFetches,
  ),
  counter(
    'gatefold_identity_fetch_failures_total',
    "Failed attempts to get a provider's keys",
    ({ totals }) => totals.identityKeyFailures,
  ),

  counter('gatefold_rate_limited_total', 'Requests refused with 429 RATE_LIMITED', ({ totals }) =>
    Object.entries(totals.rateLimited).map(([by, value]) => ({ labels: { by }, value })),
  ),
  gauge('gatefold_rate_limit_callers', 'Callers whose requests are counted against a limit', (service) =>
    eachWorker(service, ({ report }) => report.rateLimitCallers),
  ),

  counter(
    'gatefold_log_lines_dropped_total',
    'Log lines not written because nobody read the log fast enough, by workers and by the supervisor',
    ({ totals }, { logLinesDropped }) => [
      { labels: { process: 'workers' }, value: totals.logLinesDropped },
      { labels: { process: 'supervisor' }, value: logLinesDropped() },
    ],
  ),

  gauge('gatefold_store_up', '1 while the store answers', (service) =>
    sampleOf(service.supervisor?.store, ({ state }) => Number(state.awayReason === null)),
  ),
  gauge('gatefold_store_age_seconds', 'Seconds since the credentials table was proven complete', (service) =>
    sampleOf(service.supervisor?.store, ({ ageSeconds }) => ageSeconds ?? Number.POSITIVE_INFINITY),
  ),
  counter('gatefold_store_full_reads_total', 'Times that all rows were read', (service) =>
    sampleOf(service.supervisor?.store, ({ state }) => state.fullReads),
  ),
  counter('gatefold_store_missed_bells_total', 'Changes of the store that no notification announced', (service) =>
    sampleOf(service.supervisor?.store, ({ state }) => state.missedBells),
  ),
  gauge('gatefold_store_table_bytes', 'Bytes of the table in the store', (service) =>
    sampleOf(service.supervisor?.store, ({ state }) => state.tableBytes),
  ),
  gauge('gatefold_store_table_limit_bytes', 'Bytes beyond which the store takes no new row', (service) =>
    sampleOf(service.supervisor?.store, ({ state }) => state.tableLimit),
  ),
  gauge('gatefold_store_clock_offset_seconds', 'Seconds by which the clock of the store is ahead', (service) =>
    sampleOf(service.supervisor?.store, ({ state }) => state.secondsAhead),
  ),
  gauge('gatefold_machines', 'Machines that have reported lately', (service) =>
    sampleOf(service.supervisor?.store, ({ state }) => state.machines),
  ),

  counter('gatefold_trace_spans_total', 'Spans that the collector has, and spans that it has not', ({ totals }) => [
    { labels: { outcome: 'exported' }, value: totals.spansExported },
    { labels: { outcome: 'dropped' }, value: totals.spansDropped },
  ]),

  gauge('gatefold_certificate_expiry_timestamp_seconds', 'When the served certificate expires, Unix time', (service) =>
    sampleOf(service.supervisor?.certificate, ({ notAfter }) => notAfter / 1000),
  ),
  counter('gatefold_certificate_reloads_total', 'Certificates that went live after the first one', (service) =>
    sampleOf(service.supervisor?.certificate, ({ reloads }) => reloads),
  ),
  counter(
    'gatefold_certificate_failures_total',
    'Certificate files that could not be used, and orders that failed',
    (service) => sampleOf(service.supervisor?.certificate, ({ failures }) => failures),
  ),
];

export function collectFamilies(service: ServiceStatus, facts: SupervisorFacts): Family[] {
  return METRICS.map(({ name, type, help, samples }) => ({ name, type, help, samples: samples(service, facts) }));
}

/** Returns no sample without HTTPS or without STORE. The value 0 would mean that the certificate expired in 1970. */
function sampleOf<Part>(part: Part | undefined, measure: (part: Part) => number): Sample[] {
  return part === undefined ? [] : [{ value: measure(part) }];
}
