// Every metric, a row each: name, type, help, and where its samples come from. docs/OPERATING.md documents each row; a
// test compares the two. How they are written is exposition.ts; the counting is worker-metrics.ts and the supervisor.
import type { CertificateStatus } from '../https/certificates.ts';
import type { WorkerStatus } from '../supervisor/status.ts';
import type { Family, Sample } from './exposition.ts';
import { readinessOf } from './readiness.ts';
import { describeCell, type OperationCounts } from './request-counts.ts';
import type { ReportingWorker, ServiceStatus, Totals } from './service-status.ts';

export interface MetricRow extends Omit<Family, 'samples'> {
  readonly samples: (service: ServiceStatus, about: About) => Iterable<Sample>;
}

/** What does not change while the service runs, and what this process says of itself. */
export interface About {
  readonly version: string;
  readonly node: string;
  /** Workers that are to serve. */
  readonly wanted: number;
  /** Unix time in seconds. */
  readonly startedAt: number;
  readonly memoryBytes: () => number;
  readonly cpuSeconds: () => number;
  readonly logLinesDropped: () => number;
}

/** Every state is always there: a series that comes and goes cannot be alerted on. */
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
    one(startedAt),
  ),
  row('gatefold_ready', 'gauge', '1 while /readyz answers 200', (service) =>
    one(Number(readinessOf(service) === 'ready')),
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
  row('gatefold_workers_wanted', 'gauge', 'Configured number of workers', (_, { wanted }) => one(wanted)),
  row('gatefold_worker_deaths_total', 'counter', 'Workers that exited without having been asked to', ({ supervisor }) =>
    one(supervisor?.died),
  ),
  row(
    'gatefold_worker_replacements_total',
    'counter',
    'Workers that replaced one that died or became faulty',
    ({ supervisor }) => one(supervisor?.replaced),
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
    one(memoryBytes()),
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
    one(supervisor?.generation),
  ),
  row(
    'gatefold_generation_start_time_seconds',
    'gauge',
    'When the serving generation began to serve, Unix time',
    ({ supervisor }) => one((supervisor?.servingSince?.getTime() ?? 0) / 1000),
  ),
  row('gatefold_generations_total', 'counter', 'Generations put to work', ({ supervisor }) =>
    one(supervisor?.generationsServed),
  ),
  row(
    'gatefold_generations_rejected_total',
    'counter',
    'Generations and replacement workers refused, retries included',
    (service) => one(service.supervisor?.generationsRejected),
  ),
  row(
    'gatefold_generation_rejected',
    'gauge',
    '1 while an older generation serves because the folder does not load',
    ({ supervisor }) => one(Number(supervisor?.rejected !== undefined)),
  ),
  row(
    'gatefold_groups_not_loadable',
    'gauge',
    'Groups that answer 500 because they have never loaded',
    ({ supervisor }) => one(supervisor?.notLoadable.length),
  ),

  row('gatefold_credentials_rows', 'gauge', 'Rows of the live credentials table', ({ latest }) =>
    one(latest?.credentialRows),
  ),
  row(
    'gatefold_credentials_quarantined_rows',
    'gauge',
    'Invalid rows of the credentials table, which are not live',
    ({ latest }) => one(latest?.quarantinedRows),
  ),
  row(
    'gatefold_credentials_stale_workers',
    'gauge',
    'Workers that serve an older credentials table because the file cannot be read',
    ({ workers }) => one(workers.filter(({ report }) => report.credentialsFailure !== '').length),
  ),
  row(
    'gatefold_credentials_reloads_total',
    'counter',
    'Credentials table reloads; each worker counts its own',
    ({ totals }) => one(totals.credentialReloads),
  ),
  row(
    'gatefold_credentials_reload_failures_total',
    'counter',
    'Failed credentials table reloads; each worker counts its own',
    ({ totals }) => one(totals.credentialReloadFailures),
  ),
  row('gatefold_identity_providers', 'gauge', 'Identity providers in use', ({ latest }) => one(latest?.providers)),
  row('gatefold_identity_providers_refused', 'gauge', 'Invalid rows of the identity providers', ({ latest }) =>
    one(latest?.refusedProviders),
  ),
  row('gatefold_identity_fetches_total', 'counter', 'Requests for key sets and discovery documents', ({ totals }) =>
    one(totals.keyFetches),
  ),
  row('gatefold_identity_fetch_failures_total', 'counter', "Failed attempts to get a provider's keys", ({ totals }) =>
    one(totals.keyFailures),
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

  row(
    'gatefold_certificate_expiry_timestamp_seconds',
    'gauge',
    'When the served certificate expires, Unix time',
    (service) => ofCertificate(service, ({ notAfter }) => notAfter / 1000),
  ),
  row('gatefold_certificate_reloads_total', 'counter', 'Certificates that went live after the first one', (service) =>
    ofCertificate(service, ({ reloads }) => reloads),
  ),
  row(
    'gatefold_certificate_failures_total',
    'counter',
    'Certificate files that could not be used, and orders that failed',
    (service) => ofCertificate(service, ({ failures }) => failures),
  ),
];

export function familiesOf(service: ServiceStatus, about: About): Family[] {
  return METRICS.map(({ name, type, help, samples }) => ({ name, type, help, samples: samples(service, about) }));
}

function row(name: string, type: Family['type'], help: string, samples: MetricRow['samples']): MetricRow {
  return { name, type, help, samples };
}

function one(value = 0): Sample[] {
  return [{ value }];
}

/** Nothing without HTTPS: an end of the certificate in 1970 would set off every alarm. */
function ofCertificate({ supervisor }: ServiceStatus, measure: (certificate: CertificateStatus) => number): Sample[] {
  return supervisor?.certificate === undefined ? [] : one(measure(supervisor.certificate));
}

function eachOperation({ requests }: Totals, samplesOf: (counts: OperationCounts) => Sample[]): Sample[] {
  return Array.from(requests.all()).flatMap(samplesOf);
}

function eachWorker({ workers }: ServiceStatus, measure: (worker: ReportingWorker) => number): Sample[] {
  return workers.map((worker) => ({ labels: { worker: worker.slot }, value: measure(worker) }));
}
