// One step of the supervisor: new workers replace workers that died or are faulty. The new workers serve only if they
// loaded the same code and the same groups as the workers that serve.
import { SERVICE } from '../../base/group-name.ts';
import { compareWithServing } from './group-table.ts';
import { failToStart, listen, type Service, type StepResult } from './step-parts.ts';

export async function replace(service: Service, count: number): Promise<StepResult> {
  const { log, pool, loader, table, watch, mark, stopping } = service;
  const { generation, groups } = table.current;
  // A replacement loads only the groups that serve. All workers import any other group together when a request for it
  // comes. A harmful file is listed so that the worker skips it, and the service file so that its rules hold.
  const files = (skip: ReadonlyMap<string, string>) =>
    Array.from(groups.values())
      .filter(({ ok, group, file }) => ok || group === SERVICE || skip.has(file))
      .map(({ file }) => file);
  const outcome = await loader.load({ generation, count, needsService: mark.isSet(), files });
  if (outcome.kind === 'aborted') return { kind: 'interrupted' };
  if (outcome.kind === 'ended') return failToStart(service, outcome.reason);
  const { workers } = outcome;
  // Also when the last worker has died meanwhile: only a generation accepts other code. A file that changed and changed
  // back shows only in the fingerprints that the new workers have read, and a new service file only in the folder.
  const isSameCode = watch.hasSameFiles(outcome.files) && watch.changeSinceLoad() === undefined;
  const { difference, groups: lacked } = compareWithServing(table.current.groups, outcome.groups, isSameCode);
  if (difference !== undefined) {
    for (const worker of workers) worker.quit();
    return { kind: 'differs', difference, groups: lacked };
  }
  const serving = pool.serving();
  const faulty = serving.filter(({ isFaulty }) => isFaulty).slice(0, count);
  const error = await listen(service, workers, faulty);
  if (stopping.aborted) return { kind: 'interrupted' };
  if (error !== undefined) return { kind: 'failed', error };
  for (const worker of faulty) worker.drain(service.drainTimeout);
  service.tasks.serve(workers);
  log.info('worker-replaced', { generation, workers: workers.map(({ pid }) => pid) });
  return { kind: 'replaced', count: workers.length };
}
