// One step of the supervisor: new workers replace workers that died, or that are faulty because something was thrown in
// them. The new workers serve only if they loaded the same code and the same groups as the workers that serve.
import { compareWithServing } from './group-table.ts';
import { listen, quitAll, type Service, type StepResult } from './service.ts';

export async function replace(service: Service, count: number): Promise<StepResult> {
  const { dir, log, pool, loader, table, quarantine, watch, mark, stopping } = service;
  const quarantineSize = quarantine.releaseChanged().size;
  const { generation, groups } = table.current;
  // A replacement loads only the groups of the generation that serves. Any other group in the folder is new, and all
  // workers import it together when its first request comes.
  const filesOfGeneration = () => Array.from(groups.values(), ({ file }) => file);
  const outcome = await loader.load(generation, count, watch.takeSnapshot(), mark.isSet(), filesOfGeneration);
  if (outcome.kind === 'aborted') return { kind: 'interrupted' };
  if (outcome.kind === 'ended') return { kind: 'failed', error: outcome.reason };
  const { workers } = outcome;
  // Also when the last worker has died meanwhile: only a generation accepts other code. A file that changed and changed
  // back shows only in the fingerprints that the new workers have read, and a new service file only in the folder.
  const isSameCode = watch.hasSameFiles(outcome.files) && watch.changeSinceLoad() === undefined;
  const { difference, groups: lacked } = compareWithServing(table.current.groups, outcome.groups, isSameCode, dir);
  if (difference !== undefined) {
    quitAll(workers);
    return { kind: 'differs', difference, groups: lacked };
  }
  const serving = pool.serving();
  const error = await listen(service, workers);
  if (stopping.aborted) return { kind: 'interrupted' };
  if (error !== undefined) return { kind: 'failed', error };
  for (const worker of serving.filter(({ isFaulty }) => isFaulty).slice(0, count)) worker.drain(service.drainTimeout);
  log.info('worker-replaced', { generation, workers: workers.map(({ pid }) => pid) });
  const hasNewQuarantine = quarantine.releaseChanged().size > quarantineSize;
  return { kind: 'replaced', count: workers.length, hasNewQuarantine };
}
