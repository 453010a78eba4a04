// One step of the supervisor: a new generation. The groups that new workers have loaded are compared with the groups
// that serve. Then all new workers replace the old workers, or none of them does.
import { SERVICE } from '../../base/group-name.ts';
import { logNotLoadable } from '../load/group-load.ts';
import type { GenerationStep } from './agenda.ts';
import { findLostGroups, findUnseenGroups, hasMoreGroups, isAnyInFolder, isReadable } from './group-table.ts';
import type { LoaderResult } from './load-in-workers.ts';
import { failToStart, listen, type Service, type StepResult } from './step-parts.ts';

type Loaded = Extract<LoaderResult, { kind: 'loaded' }>;

/**
 * @param isTrial whether the generation is dropped unless more groups load than serve
 * @param mayRepeat whether the generation is given up when a file that it has read changes during the load
 */
export async function rollOut(
  service: Service,
  { cause, isTrial = false }: GenerationStep,
  mayRepeat: boolean,
): Promise<StepResult> {
  const { dir, log, workerCount, pool, watch, loader, table, now } = service;
  const isServing = () => pool.serving().length > 0;
  // `startedAt` measures how long the generation takes. The watch compares `begunAt` with the times of files.
  const startedAt = now();
  const begunAt = Date.now();
  const snapshot = watch.takeSnapshot() ?? new Map<string, string>();
  const release = snapshot.get('folder') ?? dir;
  // An empty snapshot means that the folder cannot be read, so there is nothing to load. When the folder returns, the
  // watch reports a change, which starts the next generation.
  if (snapshot.size === 0 && isServing()) return { kind: 'no-change' };
  // While a trial loads, the watch compares the folder with the files that serve: they stay if the trial is dropped.
  if (!isTrial) watch.beginLoad(snapshot);
  const generation = ++table.newest;
  const outcome = await loader.load({ generation, count: workerCount, needsService: service.mark.isSet(), isTrial });
  if (outcome.kind === 'ended') return { ...failToStart(service, outcome.reason), release };
  // A change aborts a load that hangs, every other step aborts a trial, and the end of the service aborts every load.
  if (outcome.kind === 'aborted') return { kind: isTrial ? 'interrupted' : 'outdated' };
  const { workers, groups, files } = outcome;
  const judge = async (): Promise<StepResult | undefined> => {
    const wantsTypes = !isTrial && mayRepeat && groups.some(({ wanted }) => wanted !== undefined);
    if (wantsTypes && (await service.makeTypes?.())) return { kind: 'outdated', change: 'contracts.gen.ts' };
    if (isTrial && !hasMoreGroups(table.current.groups, groups)) return { kind: 'no-change' };
    if (isServing() && !isReadable(dir)) {
      // The folder was removed during the load. From an empty snapshot, the watch reports a change when it is back.
      watch.beginLoad(new Map());
      return { kind: 'no-change' };
    }
    const lostGroups = findLostGroups(table.current.groups, groups);
    watch.endLoad({ snapshot, begunAt, groups, files, broken: snapshot.size === 0 || groups.some(({ ok }) => !ok) });
    if (lostGroups.length > 0 && isServing()) return { kind: 'groups-lost', failures: lostGroups, release };
    // Code that was written during the load may need rules that were written during the load, too. So all files must be
    // in the same state: the one that they have now.
    const change = watch.changeSinceLoad();
    if (change !== undefined && mayRepeat) return { kind: 'outdated', change };
    if (change !== undefined && isServing())
      return { kind: 'failed', error: `${change} has changed during each of the last loads of the folder`, release };
    // Nothing serves yet, and the folder may never become stable.
    if (change !== undefined)
      log.warn('folder-unstable', { file: change, effect: 'a state from before its change serves' });
    // A file that was removed and written again during the load can be missing in the listing of the new workers.
    const unseenGroups = findUnseenGroups(table.current.groups, groups);
    return isServing() && isAnyInFolder(unseenGroups, dir, groups) ? { kind: 'outdated' } : undefined;
  };
  const refused = await judge();
  if (refused === undefined) return takeOver(service, outcome, { cause, startedAt, release });
  for (const worker of workers) worker.quit();
  if (refused.kind === 'groups-lost') pool.keepReserve(workerCount);
  return refused;
}

/** Lets the new workers accept connections, and drains the old ones after that. */
async function takeOver(
  service: Service,
  { workers, groups }: Loaded,
  { cause, startedAt, release }: { readonly cause: string; readonly startedAt: number; readonly release: string },
): Promise<StepResult> {
  const { log, pool, table, stopping } = service;
  const oldWorkers = pool.serving();
  const oldGroups = table.current.groups;
  service.mark.update(groups.find(({ group }) => group === SERVICE));
  const error = await listen(service, workers, oldWorkers);
  if (stopping.aborted) return { kind: 'interrupted' };
  if (error !== undefined) return { kind: 'failed', error, release };
  table.replace(groups);
  for (const worker of oldWorkers) worker.drain(service.drainTimeout);
  const generation = table.current.generation;
  // An error that was logged for the old generation is not logged again.
  for (const load of groups) if (!load.ok && oldGroups.get(load.group)?.error !== load.error) logNotLoadable(log, load);
  const lostGroups = findLostGroups(oldGroups, groups).map(({ group }) => group);
  if (lostGroups.length > 0) log.error('generation-degraded', { generation, groups: lostGroups });
  const hasServiceFile = groups.some(({ group }) => group === SERVICE);
  const took_ms = Math.round(service.now() - startedAt);
  const count = groups.length - Number(hasServiceFile);
  log.info('generation-serving', { generation, cause, groups: count, took_ms });
  service.onGroups?.(table.current.groups.values());
  service.tasks.serve(workers);
  if (generation > 1 && oldWorkers.length > 0) pool.keepReserve(service.workerCount);
  return { kind: 'serving', release };
}
