// One step of the supervisor: replacements. New workers take the place of those that died or are faulty. They may serve
// only if they loaded the same code and the same groups as the workers that serve.
import { compareWithServing } from './group-table.ts';
import { listen, quitAll, type Service, type StepResult } from './service.ts';

export async function replace(service: Service, count: number): Promise<StepResult> {
  const { dir, log, pool, loader, table, quarantine, watch, stopping } = service;
  const quarantined = quarantine.releaseChanged().size;
  const { number, groups } = table.current;
  // A replacement loads only the groups that serve. Any other group is imported by all workers together, when its first
  // request comes.
  const filesThatServe = () => Array.from(groups.values(), ({ file }) => file);
  const outcome = await loader.load(number, count, watch.takeSnapshot(), filesThatServe);
  if (stopping.aborted || outcome.kind === 'aborted') return { kind: 'interrupted' };
  if (outcome.kind === 'ended') return { kind: 'failed', error: outcome.reason };
  const { workers } = outcome;
  const serving = pool.serving();
  if (serving.length > 0) {
    const { difference, groups } = compareWithServing(table.current.groups, outcome, watch.hasSameFiles, dir);
    if (difference !== undefined) {
      quitAll(workers);
      return { kind: 'differs', difference, groups };
    }
  }
  const error = await listen(service, workers);
  if (stopping.aborted) return { kind: 'interrupted' };
  if (error !== undefined) return { kind: 'failed', error };
  for (const worker of serving.filter(({ isFaulty }) => isFaulty).slice(0, count)) worker.drain(service.drainTimeout);
  log.info('worker-replaced', { generation: number, workers: workers.map(({ pid }) => pid) });
  const hasNewQuarantine = quarantine.releaseChanged().size > quarantined;
  return { kind: 'replaced', count: workers.length, hasNewQuarantine };
}
