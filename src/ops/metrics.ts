// The table of metrics: name, type, help and samples of each. docs/OPERATING.md documents each row, and a test compares
// the two. exposition.ts renders the metrics. The workers and the supervisor count what the metrics show.
import type { CertificateStatus } from '../https/certificates.ts';
import type { WorkerStatus } from '../supervisor/status.ts';
import type { Family, Sample } from './exposition.ts';
import { readinessOf } from './readiness.ts';
import { describeCell, type OperationCounts } from './request-counts.ts';
import type { ReportingWorker, ServiceStatus, Totals } from './service-status.ts';
import { STORE_METRICS } from './store-metrics.ts';

export interface MetricRow extends Omit<Family, 'samples'> {
  readonly samples: (service: ServiceStatus, supervisorProcess: ProcessFacts) => Iterable<Sample>;
}

/** Facts about the supervisor's process. */
export interface ProcessFacts {
  readonly version: string;
  readonly node: string;
  /** The configured number of workers. */
  readonly wantedWorkers: number;
  /** Unix time in seconds. */
  readonly startedAt: number;
  readonly memoryBytes: () => number;
  readonly cpuSeconds: () => number;
  readonly logLinesDropped: () => number;
}

/**
 * The states of a worker. Each state always has a sample, even 0, because an alert needs a series that does not
 * disappear.
 */
const STATES: readonly WorkerStatus['state'][] = [
  'booting',
  'standby',
  'loading',
  'loaded',
  'serving',
  'faulty',
  'draining',
];

export const METRICS: readonly MetricRow[] = [
  row('gatefold_build_info', 'gauge', 'Always 1; version of gatefold and of Node', (_, { version, node }) => [
    { labels: { version, node }, value: 1 },
  ]),
  row('gatefold_start_time_seconds', 'gauge', 'Start time of the supervisor, Unix time', (_, { startedAt }) =>
    single(startedAt),
  ),
  row('gatefold_ready', 'gauge', '1 while /readyz answers 200', (service) =>
    single(Number(readinessOf(service) === 'ready')),
  ),

  row('gatefold_requests_total', 'counter', 'Requests answered', ({ totals }) =>
    eachOperation(totals, ({ page, operation, cells }) =>
      Array.from(cells, ([cell, value]) => ({ labels: { page, operation, ...describeCell(cell) }, value })),
    ),
  ),
  row(
    'gatefold_request_duration_seconds',
    'histogram',
    'Seconds from the complete request head to the last byte of the answer',
    ({ totals }) =>
      eachOperation(totals, ({ page, operation, seconds }) => [{ labels: { page, operation }, value: seconds }]),
  ),
  row('gatefold_response_bytes_total', 'counter', 'Bytes of response bodies', ({ totals }) =>
    eachOperation(totals, ({ page, operation, bytes }) => [{ labels: { page, operation }, value: bytes }]),
  ),
  row(
    'gatefold_credential_requests_total',
    'counter',
    'Requests answered, by id of the application credential',
    ({ totals }) =>
      Array.from(totals.requests.credentials(), ([credential, value]) => ({ labels: { credential }, value })),
  ),
  row('gatefold_requests_in_flight', 'gauge', 'Requests being processed', (service) =>
    eachWorker(service, ({ report }) => report.inFlight),
  ),

  row('gatefold_workers', 'gauge', 'Worker processes by state', ({ supervisor }) =>
    STATES.map((state) => ({
      labels: { state },
      value: supervisor?.workers.filter((worker) => worker.state === state).length ?? 0,
    })),
  ),
  row('gatefold_workers_wanted', 'gauge', 'Configured number of workers', (_, { wantedWorkers }) =>
    single(wantedWorkers),
  ),
  row('gatefold_worker_deaths_total', 'counter', 'Workers that exited without having been asked to', ({ supervisor }) =>
    single(supervisor?.died),
  ),
  row(
    'gatefold_worker_replacements_total',
    'counter',
    'Workers that replaced one that died or became faulty',
    ({ supervisor }) => single(supervisor?.replaced),
  ),
  row('gatefold_worker_report_age_seconds', 'gauge', "Seconds since the worker's last report", (service) =>
    eachWorker(service, ({ reportAge }) => reportAge),
  ),
  row('gatefold_worker_memory_bytes', 'gauge', 'Resident memory of the worker', (service) =>
    eachWorker(service, ({ report }) => report.memoryBytes),
  ),
  row('gatefold_worker_longest_delay_seconds', 'gauge', 'Longest event loop delay in the last minute', (service) =>
    eachWorker(service, ({ longestDelay }) => longestDelay),
  ),
  row(
    'gatefold_event_loop_delay_seconds',
    'histogram',
    'Event loop delay, sampled ten times a second in each worker',
    (service) => [{ value: service.totals.delays }],
  ),
  row('gatefold_supervisor_memory_bytes', 'gauge', 'Resident memory of the supervisor', (_, { memoryBytes }) =>
    single(memoryBytes()),
  ),
  row(
    'gatefold_cpu_seconds_total',
    'counter',
    'CPU time of all workers together, and of the supervisor',
    ({ totals }, { cpuSeconds }) => [
      { labels: { process: 'workers' }, value: totals.cpuSeconds },
      { labels: { process: 'supervisor' }, value: cpuSeconds() },
    ],
  ),

  row('gatefold_generation', 'gauge', 'Number of the serving generation; 0 before the first', ({ supervisor }) =>
    single(supervisor?.generation),
  ),
  row(
    'gatefold_generation_start_time_seconds',
    'gauge',
    'When the serving generation began to serve, Unix time',
    ({ supervisor }) => single((supervisor?.servingSince?.getTime() ?? 0) / 1000),
  ),
  row('gatefold_generations_total', 'counter', 'Generations put to work', ({ supervisor }) =>
    single(supervisor?.generationsServed),
  ),
  row(
    'gatefold_generations_rejected_total',
    'counter',
    'Generations and replacement workers refused, retries included',
    (service) => single(service.supervisor?.generationsRejected),
  ),
  row(
    'gatefold_generation_rejected',
    'gauge',
    '1 while an older generation serves because the folder does not load',
    ({ supervisor }) => single(Number(supervisor?.rejected !== undefined)),
  ),
  row(
    'gatefold_groups_not_loadable',
    'gauge',
    'Groups that answer 500 because they have never loaded',
    ({ supervisor }) => single(supervisor?.notLoadable.length),
  ),

  row('gatefold_credentials_rows', 'gauge', 'Rows of the live credentials table', ({ latestReport: latest }) =>
    single(latest?.credentialRows),
  ),
  row(
    'gatefold_credentials_quarantined_rows',
    'gauge',
    'Invalid rows of the credentials table, which are not live',
    ({ latestReport: latest }) => single(latest?.quarantinedRows),
  ),
  row(
    'gatefold_credentials_stale_workers',
    'gauge',
    'Workers that serve an older credentials table because the file cannot be read',
    ({ workers }) => single(workers.filter(({ report }) => report.credentialsFailure !== '').length),
  ),
  row(
    'gatefold_credentials_reloads_total',
    'counter',
    'Credentials table reloads; each worker counts its own',
    ({ totals }) => single(totals.credentialReloads),
  ),
  row(
    'gatefold_credentials_reload_failures_total',
    'counter',
    'Failed credentials table reloads; each worker counts its own',
    ({ totals }) => single(totals.credentialReloadFailures),
  ),
  row('gatefold_identity_providers', 'gauge', 'Identity providers in use', ({ latestReport: latest }) =>
    single(latest?.providers),
  ),
  row(
    'gatefold_identity_providers_refused',
    'gauge',
    'Invalid rows of the identity providers',
    ({ latestReport: latest }) => single(latest?.refusedProviders),
  ),
  row('gatefold_identity_fetches_total', 'counter', 'Requests for key sets and discovery documents', ({ totals }) =>
    single(totals.keyFetches),
  ),
  row('gatefold_identity_fetch_failures_total', 'counter', "Failed attempts to get a provider's keys", ({ totals }) =>
    single(totals.keyFailures),
  ),

  row('gatefold_rate_limited_total', 'counter', 'Requests refused with 429 RATE_LIMITED', ({ totals }) =>
    Object.entries(totals.rateLimited).map(([by, value]) => ({ labels: { by }, value })),
  ),
  row('gatefold_rate_limit_callers', 'gauge', 'Callers whose requests are counted against a limit', (service) =>
    eachWorker(service, ({ report }) => report.limitedCallers),
  ),

  row(
    'gatefold_log_lines_dropped_total',
    'counter',
    'Log lines not written because nobody read the log fast enough, by workers and by the supervisor',
    ({ totals }, { logLinesDropped }) => [
      { labels: { process: 'workers' }, value: totals.logLinesDropped },
      { labels: { process: 'supervisor' }, value: logLinesDropped() },
    ],
  ),

  ...STORE_METRICS,

  row(
    'gatefold_trace_spans_total',
    'counter',
    'Spans that the collector has, and spans that it has not',
    ({ totals }) => [
      { labels: { outcome: 'exported' }, value: totals.spansExported },
      { labels: { outcome: 'dropped' }, value: totals.spansDropped },
    ],
  ),

  row(
    'gatefold_certificate_expiry_timestamp_seconds',
    'gauge',
    'When the served certificate expires, Unix time',
    (service) => certificateSample(service, ({ notAfter }) => notAfter / 1000),
  ),
  row('gatefold_certificate_reloads_total', 'counter', 'Certificates that went live after the first one', (service) =>
    certificateSample(service, ({ reloads }) => reloads),
  ),
  row(
    'gatefold_certificate_failures_total',
    'counter',
    'Certificate files that could not be used, and orders that failed',
    (service) => certificateSample(service, ({ failures }) => failures),
  ),
];

export function collectFamilies(service: ServiceStatus, facts: ProcessFacts): Family[] {
  return METRICS.map(({ name, type, help, samples }) => ({ name, type, help, samples: samples(service, facts) }));
}

function row(name: string, type: Family['type'], help: string, samples: MetricRow['samples']): MetricRow {
  return { name, type, help, samples };
}

function single(value = 0): Sample[] {
  return [{ value }];
}

/** Returns no sample when there is no HTTPS. The value 0 would mean that the certificate expired in 1970. */
function certificateSample(
  { supervisor }: ServiceStatus,
  measure: (certificate: CertificateStatus) => number,
): Sample[] {
  return supervisor?.certificate === undefined ? [] : single(measure(supervisor.certificate));
}

function eachOperation({ requests }: Totals, samplesOf: (counts: OperationCounts) => Sample[]): Sample[] {
  return Array.from(requests.operations()).flatMap(samplesOf);
}

function eachWorker({ workers }: ServiceStatus, measure: (worker: ReportingWorker) => number): Sample[] {
  return workers.map((worker) => ({ labels: { worker: worker.slot }, value: measure(worker) }));
}
