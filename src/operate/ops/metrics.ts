// The table of metrics. Names begin with http_ (conventions of OpenTelemetry), with process_ or nodejs_ (Prometheus
// clients), and with gatefold_ where these have none. docs/OPERATING.md has each metric, and a test compares both.

import { openDescriptors } from '../../base/descriptors.ts';
import type { WorkerStatus } from '../../live/supervisor/status.ts';
import type { Family } from './exposition.ts';
import {
  counter,
  eachOperation,
  eachProcess,
  eachTask,
  eachWorker,
  fieldsOf,
  gauge,
  histogram,
  type MetricRow,
  ofSupervisor,
  type SupervisorFacts,
  total,
  worker,
} from './metric-rows.ts';
import { readinessOf } from './readiness.ts';
import { describeCell } from './request-counts.ts';
import type { ServiceStatus } from './service-status.ts';

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

const overall = fieldsOf(({ supervisor }) => supervisor);
const channels = fieldsOf(({ supervisor }) => supervisor?.channels);
const latest = fieldsOf(({ latestReport }) => latestReport);
// Without STORE or HTTPS, there is no sample. The value 0 would mean that the certificate expired in 1970.
const store = fieldsOf(({ supervisor }) => supervisor?.store?.state, []);
const certificate = fieldsOf(({ supervisor }) => supervisor?.certificate, []);

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
  worker('http_server_active_requests', 'Requests being processed', 'inFlight'),

  gauge('gatefold_workers', 'Worker processes by state', ({ supervisor }) =>
    WORKER_STATES.map((state) => ({
      labels: { state },
      value: supervisor?.workers.filter((worker) => worker.state === state).length ?? 0,
    })),
  ),
  gauge('gatefold_workers_wanted', 'Configured number of workers', (_, { wantedWorkers }) => wantedWorkers),
  overall('gatefold_worker_deaths_total', 'Workers that exited without having been asked to', 'workersDied'),
  overall(
    'gatefold_worker_replacements_total',
    'Workers that replaced one that died or became faulty',
    'workersReplaced',
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
  worker('nodejs_heap_size_used_bytes', 'Heap of V8 in use in the worker', 'heapUsed'),
  worker('nodejs_heap_size_limit_bytes', 'Limit of that heap, at which the worker is aborted', 'heapLimit'),
  gauge('process_open_fds', 'Open file descriptors of each process', (service) =>
    eachProcess(service, ({ report }) => report.openDescriptors, openDescriptors()),
  ),
  gauge('process_max_fds', 'Limit of the open file descriptors of each process', (service, { maxDescriptors }) =>
    eachProcess(service, ({ report }) => report.maxDescriptors, maxDescriptors),
  ),
  total(
    'gatefold_connections_refused_total',
    'Connections closed before their first request, for want of descriptors or beyond MAX_CONNECTIONS',
    'connectionsRefused',
  ),
  gauge('nodejs_eventloop_lag_max_seconds', 'Longest event loop delay in the last minute', (service) =>
    eachWorker(service, ({ longestDelay }) => longestDelay),
  ),
  histogram(
    'gatefold_event_loop_delay_seconds',
    'Event loop delay, sampled ten times a second in each worker',
    (service) => [{ value: service.totals.delays }],
  ),

  overall('gatefold_generation', 'Number of the serving generation; 0 before the first', 'generation'),
  gauge(
    'gatefold_generation_start_time_seconds',
    'When the serving generation began to serve, Unix time',
    ({ supervisor }) => (supervisor?.servingSince?.getTime() ?? 0) / 1000,
  ),
  overall('gatefold_generations_total', 'Generations put to work', 'generationsServed'),
  overall(
    'gatefold_generations_rejected_total',
    'Generations and replacement workers refused, retries included',
    'generationsRejected',
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

  // A machine that has never had tasks has no sample.
  eachTask('gatefold_task_running', '1 while the task runs', ({ run }) => Number(run !== undefined)),
  eachTask(
    'gatefold_task_last_success_timestamp_seconds',
    'End of the last run that succeeded, Unix time',
    ({ lastSuccessAt }) => lastSuccessAt / 1000,
  ),
  eachTask('gatefold_task_duration_seconds', 'Seconds of the last run', ({ lastDuration }) => lastDuration),
  eachTask('gatefold_task_failures_total', 'Runs of the task that failed', ({ failures }) => failures),
  eachTask('gatefold_task_skipped_total', 'Times of the task that no run had', ({ skipped }) => skipped),

  // No row has a label, because a name of a channel could come from a client.
  channels('gatefold_channel_published_total', 'Events that workers have published to channels', 'published'),
  total(
    'gatefold_channel_delivered_total',
    'Events that subscribers have received, each counted once for each subscriber',
    'channelDelivered',
  ),
  total(
    'gatefold_channel_too_slow_total',
    'Subscriptions that ended because their subscriber did not keep up',
    'channelTooSlow',
  ),
  channels(
    'gatefold_channel_kept_bytes',
    'Bytes of the events that the supervisor keeps for subscribers that reconnect',
    'keptBytes',
  ),

  latest('gatefold_credentials_rows', 'Rows of the live credentials table', 'credentialRows'),
  latest(
    'gatefold_credentials_quarantined_rows',
    'Invalid rows of the credentials table, which are not live',
    'quarantinedRows',
  ),
  gauge(
    'gatefold_credentials_stale_workers',
    'Workers that serve an older credentials table because the file cannot be read',
    ({ workers }) => workers.filter(({ report }) => report.credentialsFailure !== '').length,
  ),
  total(
    'gatefold_credentials_reloads_total',
    'Credentials table reloads; each worker counts its own',
    'credentialReloads',
  ),
  total(
    'gatefold_credentials_reload_failures_total',
    'Failed credentials table reloads; each worker counts its own',
    'credentialReloadFailures',
  ),
  latest('gatefold_identity_providers', 'Identity providers in use', 'providers'),
  latest('gatefold_identity_providers_refused', 'Invalid rows of the identity providers', 'refusedProviderRows'),
  total('gatefold_identity_fetches_total', 'Requests for key sets and discovery documents', 'identityKeyFetches'),
  total('gatefold_identity_fetch_failures_total', "Failed attempts to get a provider's keys", 'identityKeyFailures'),

  counter('gatefold_rate_limited_total', 'Requests refused with 429 RATE_LIMITED', ({ totals }) =>
    Object.entries(totals.rateLimited).map(([by, value]) => ({ labels: { by }, value })),
  ),
  worker('gatefold_rate_limit_callers', 'Callers whose requests are counted against a limit', 'rateLimitCallers'),

  counter(
    'gatefold_log_lines_dropped_total',
    'Log lines not written because nobody read the log fast enough, by workers and by the supervisor',
    ({ totals }, { logLinesDropped }) => [
      { labels: { process: 'workers' }, value: totals.logLinesDropped ?? 0 },
      { labels: { process: 'supervisor' }, value: logLinesDropped() },
    ],
  ),

  gauge('gatefold_store_up', '1 while the store answers', ({ supervisor }) =>
    supervisor?.store === undefined ? [] : Number(supervisor.store.state.awayReason === null),
  ),
  gauge('gatefold_store_age_seconds', 'Seconds since the credentials table was proven complete', ({ supervisor }) =>
    supervisor?.store === undefined ? [] : (supervisor.store.ageSeconds ?? Number.POSITIVE_INFINITY),
  ),
  store('gatefold_store_full_reads_total', 'Times that all rows were read', 'fullReads'),
  store('gatefold_store_missed_bells_total', 'Changes of the store that no notification announced', 'missedBells'),
  store('gatefold_store_table_bytes', 'Bytes of the table in the store', 'tableBytes'),
  store('gatefold_store_table_limit_bytes', 'Bytes beyond which the store takes no new row', 'tableLimit'),
  store('gatefold_store_clock_offset_seconds', 'Seconds by which the clock of the store is ahead', 'secondsAhead'),
  store('gatefold_machines', 'Machines that have reported lately', 'machines'),

  counter('gatefold_trace_spans_total', 'Spans that the collector has, and spans that it has not', ({ totals }) => [
    { labels: { outcome: 'exported' }, value: totals.spansExported ?? 0 },
    { labels: { outcome: 'dropped' }, value: totals.spansDropped ?? 0 },
  ]),

  gauge(
    'gatefold_certificate_expiry_timestamp_seconds',
    'When the served certificate expires, Unix time',
    ({ supervisor }) => (supervisor?.certificate === undefined ? [] : supervisor.certificate.notAfter / 1000),
  ),
  certificate('gatefold_certificate_reloads_total', 'Certificates that went live after the first one', 'reloads'),
  certificate(
    'gatefold_certificate_failures_total',
    'Certificate files that could not be used, and orders that failed',
    'failures',
  ),
];

export function collectFamilies(service: ServiceStatus, facts: SupervisorFacts): Family[] {
  return METRICS.map(({ name, type, help, samples }) => ({ name, type, help, samples: samples(service, facts) }));
}
