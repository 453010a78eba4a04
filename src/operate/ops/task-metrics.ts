// The metrics of tasks. A machine that has never had tasks has no sample.
import type { TaskState } from '../../live/tasks/runner.ts';
import { counter, gauge } from './metric-rows.ts';
import type { ServiceStatus } from './service-status.ts';

const eachTask = (measure: (task: TaskState) => number) => (service: ServiceStatus) =>
  (service.supervisor?.tasks ?? []).map((task) => ({ labels: { task: task.facts.name }, value: measure(task) }));
const lastSuccess = eachTask(({ lastSuccessAt }) => lastSuccessAt / 1000);

export const TASK_METRICS = [
  gauge(
    'gatefold_task_running',
    '1 while the task runs',
    eachTask(({ run }) => Number(run !== undefined)),
  ),
  gauge('gatefold_task_last_success_timestamp_seconds', 'End of the last run that succeeded, Unix time', lastSuccess),
  gauge(
    'gatefold_task_duration_seconds',
    'Seconds of the last run',
    eachTask(({ lastDuration }) => lastDuration),
  ),
  counter(
    'gatefold_task_failures_total',
    'Runs of the task that failed',
    eachTask(({ failures }) => failures),
  ),
  counter(
    'gatefold_task_skipped_total',
    'Times of the task that no run had',
    eachTask(({ skipped }) => skipped),
  ),
];
