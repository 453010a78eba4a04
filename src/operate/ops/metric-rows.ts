// The types of a row in the table of metrics (metrics.ts), and the functions that make one.
import type { TaskState } from '../../live/tasks/runner.ts';
import type { Family, Sample } from './exposition.ts';
import type { OperationCounts } from './request-counts.ts';
import type { supervisorFacts } from './server.ts';
import type { ReportingWorker, ServiceStatus, Totals } from './service-status.ts';
import type { WorkerReport } from './worker-metrics.ts';

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

type NumberField<Part> = {
  [Field in keyof Part]-?: Part[Field] extends number | undefined ? Field : never;
}[keyof Part];

/**
 * Returns a function that creates a row with one field of a part of the status.
 *
 * @param missing the samples without this part; by default, the row shows 0
 */
export function fieldsOf<Part>(partOf: (service: ServiceStatus) => Part | undefined, missing?: Sample[]) {
  return (name: string, help: string, field: NumberField<Part>): MetricRow => {
    return creatorOf(name)(name, help, (service) => (partOf(service)?.[field] as number | undefined) ?? missing);
  };
}

/** A counter has a name that ends in `_total`. */
const creatorOf = (name: string) => (name.endsWith('_total') ? counter : gauge);

export const total = fieldsOf(({ totals }) => totals);

/** Creates a gauge with a sample for each worker: a field of its report. */
export function worker(name: string, help: string, field: NumberField<WorkerReport>): MetricRow {
  return gauge(name, help, (service) => eachWorker(service, ({ report }) => report[field]));
}

export function eachTask(name: string, help: string, measure: (task: TaskState) => number): MetricRow {
  return creatorOf(name)(name, help, ({ supervisor }) =>
    (supervisor?.tasks ?? []).map((task) => ({ labels: { task: task.facts.name }, value: measure(task) })),
  );
}

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
