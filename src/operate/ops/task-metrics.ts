// The metrics of tasks. A machine that has never had tasks has no sample.
import type { TaskState } from '../../live/tasks/runner.ts';
import { counter, gauge } from './metric-rows.ts';

/** Returns a function that creates a row with a sample for each task. */
const forTasks = (createRow: typeof gauge) => (name: string, help: string, measure: (task: TaskState) => number) =>
  createRow(name, help, ({ supervisor }) =>
    (supervisor?.tasks ?? []).map((task) => ({ labels: { task: task.facts.name }, value: measure(task) })),
  );
const taskGauge = forTasks(gauge);
const taskCounter = forTasks(counter);

export const TASK_METRICS = [
  taskGauge('gatefold_task_running', '1 while the task runs', ({ run }) => Number(run !== undefined)),
  taskGauge(
    'gatefold_task_last_success_timestamp_seconds',
    'End of the last run that succeeded, Unix time',
    ({ lastSuccessAt }) => lastSuccessAt / 1000,
  ),
  taskGauge('gatefold_task_duration_seconds', 'Seconds of the last run', ({ lastDuration }) => lastDuration),
  taskCounter('gatefold_task_failures_total', 'Runs of the task that failed', ({ failures }) => failures),
  taskCounter('gatefold_task_skipped_total', 'Times of the task that no run had', ({ skipped }) => skipped),
];
