// The types of a row in the table of metrics (metrics.ts), and the functions that make one.
import type { Family, Sample } from './exposition.ts';
import type { OperationCounts } from './request-counts.ts';
import type { supervisorFacts } from './server.ts';
import type { ReportingWorker, ServiceStatus, Totals } from './service-status.ts';

export interface MetricRow extends Omit<Family, 'samples'> {
  readonly samples: (service: ServiceStatus, facts: SupervisorFacts) => Iterable<Sample>;
}

export type SupervisorFacts = ReturnType<typeof supervisorFacts>;

/** Returns the samples, or the value of the only sample. A value that no process has reported yet is undefined. */
type Measure = (service: ServiceStatus, facts: SupervisorFacts) => Iterable<Sample> | number | undefined;

/** Returns a function that creates a row of this type. The row shows an undefined value as 0. */
function rowsOf(type: Family['type']) {
  return (name: string, help: string, measure: Measure): MetricRow => {
    const toSamples = (measured: ReturnType<Measure> = 0) =>
      typeof measured === 'number' ? [{ value: measured }] : measured;
    return { name, type, help, samples: (service, facts) => toSamples(measure(service, facts)) };
  };
}

export const counter = rowsOf('counter');
export const gauge = rowsOf('gauge');
export const histogram = rowsOf('histogram');

export function eachWorker({ workers }: ServiceStatus, measure: (worker: ReportingWorker) => number): Sample[] {
  return workers.map((worker) => ({ labels: { worker: worker.slot }, value: measure(worker) }));
}

/** Returns the samples of a metric that the supervisor has, too. Without a value (0) there is no sample. */
export function eachProcess(
  service: ServiceStatus,
  measure: (worker: ReportingWorker) => number,
  supervisorValue: number,
): Sample[] {
  return [...eachWorker(service, measure), ofSupervisor(supervisorValue)].filter(({ value }) => value !== 0);
}

/** Returns the sample of the supervisor, in the metrics that every process has. */
export function ofSupervisor(value: number): Sample {
  return { labels: { worker: 'supervisor' }, value };
}

export function eachOperation(
  { requests }: Totals,
  samplesOf: (counts: OperationCounts, labels: NonNullable<Sample['labels']>) => Sample[],
): Sample[] {
  return Array.from(requests.operations()).flatMap((counts) =>
    samplesOf(counts, { http_route: counts.route, page: counts.page, operation: counts.operation }),
  );
}
