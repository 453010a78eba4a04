// The metrics of tasks. A machine that has never run a task has no sample.
import type { TaskStatus } from '../../live/tasks/runner.ts';
import { counter, gauge, type MetricRow } from './metric-rows.ts';
import type { ServiceStatus } from './service-status.ts';

const eachTask =
  (measure: (task: TaskStatus) => number) =>
  ({ supervisor }: ServiceStatus) =>
    (supervisor?.tasks ?? []).map((task) => ({ labels: { task: task.name }, value: measure(task) }));

export const TASK_METRICS: readonly MetricRow[] = [
  gauge(
    'gatefold_task_running',
    '1 while a run of the task is under way',
    eachTask((task) => Number(task.isRunning)),
  ),
  gauge(
    'gatefold_task_last_success_timestamp_seconds',
    'End of the last run that succeeded, Unix time',
    eachTask(({ lastSuccessAt }) => lastSuccessAt / 1000),
  ),
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
