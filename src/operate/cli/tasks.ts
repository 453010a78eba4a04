// `gatefold tasks` lists the tasks of the service file: what they last did, where, and when they are due.

import { isDead } from '../../base/folder-lock.ts';
import { alignColumns } from '../../base/ink.ts';
import { createFileCell, parseTasks, serviceOf, type TaskRecord } from '../../live/tasks/lease.ts';
import { nextDue, planText } from '../../live/tasks/plan.ts';
import { type Answer, type Command, type CommandCall, CommandError } from './command.ts';
import { withStore } from './credentials-table.ts';
import { inspectFolder } from './inspection.ts';

export const command: Command = {
  name: 'tasks',
  about: 'List the tasks of the service file, with their last and next runs and where they ran',
  run,
};

async function run({ settings, io, now }: CommandCall): Promise<Answer> {
  const { service } = await inspectFolder(settings, io);
  if (service?.ok === false) throw new CommandError(`${service.at ?? service.path} does not load: ${service.error}`);
  const records = await readRecords(settings);
  const toIso = (time: number | undefined) => (time === undefined ? undefined : new Date(time).toISOString());
  const tasks = (service?.tasks ?? []).map(({ name, plan }) => {
    const { running, last, accounted = 0 }: TaskRecord = records.get(name) ?? {};
    const shown = running ?? last;
    return {
      task: name,
      plan: planText(plan),
      state: running ? stateOf(running.process) : last?.error ? 'failed' : last ? 'done' : 'new',
      began: toIso(shown?.startedAt),
      ended: running ? undefined : toIso(last?.endedAt),
      due: toIso(shown?.dueAt),
      where: shown && `${shown.machine}/${shown.pid}`,
      next: plan && toIso(nextDue(plan, Math.max(now, accounted))),
      error: last?.error,
    };
  });
  const rows = tasks.map(({ task, plan, state, began, next, where = '' }) => {
    return [task, plan, state, began ? `began ${began}` : '', next ? `next ${next}` : '', where];
  });
  const lines = alignColumns(rows).map((row) => row.join('  ').trimEnd());
  return { json: { tasks }, text: lines.join('\n') || 'The service file has no tasks' };
}

/** The process of a run can have been killed, which only its own machine sees. */
function stateOf(process: string): string {
  return process !== '' && !isDead(process, false) ? 'runs' : 'interrupted';
}

async function readRecords(settings: CommandCall['settings']): Promise<ReadonlyMap<string, TaskRecord>> {
  const { controllersDir, dataDir } = settings;
  if (settings.store === undefined) return parseTasks((await createFileCell(dataDir).read()).text).records;
  const name = serviceOf(controllersDir);
  const { entries } = await withStore(settings, (store) => store.read('tasks', [name]));
  return parseTasks(entries.get(name)?.value ?? '').records;
}
