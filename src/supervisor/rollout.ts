// A new generation: made, held against the one that serves, and put to work whole or not at all.
import type { GenerationOutcome } from './generation.ts';
import { isThereNow, lossesOf, unseenOf } from './group-table.ts';
import { listen, pardonServing, quitAll, refuse, reject, type Service } from './service.ts';

type Loaded = Extract<GenerationOutcome, { kind: 'loaded' }>;

/** @throws StartError when it is the first one, and cannot serve */
export async function rollOut(service: Service, cause: string): Promise<void> {
  const { dir, pool, watch, loader, table, retries, now } = service;
  const isServing = () => pool.serving().length > 0;
  service.wantedFor = undefined;
  for (const what of ['generation', 'start'] as const) retries.begin(what);
  const begun = now();
  const begunAt = Date.now();
  const before = watch.look() ?? new Map<string, string>();
  if (before.size === 0 && isServing()) return; // The folder is away; when it is back, that is a change.
  // With a group that serves left out the generation would be rejected anyway.
  if (isServing()) pardonServing(service);
  watch.trying(before);
  table.begin();
  const outcome = await loader.load(++service.counter, service.workers, before);
  if (service.isStopping) return;
  if (outcome.kind === 'ended') return refuse(service, cause, outcome.reason);
  if (outcome.kind === 'aborted') {
    service.wantedFor ??= cause;
    return;
  }
  const { workers, groups, files } = outcome;
  if (isServing() && watch.look() === undefined) {
    // The folder went away meanwhile: whatever is there when it is back is a change.
    quitAll(workers);
    return watch.trying(new Map());
  }
  const losses = lossesOf(table.current.groups, groups);
  watch.tried({ before, begunAt, groups, files, broken: before.size === 0 || groups.some(({ ok }) => !ok) });
  if (losses.length > 0 && isServing()) {
    quitAll(workers);
    reject(service, cause, { failures: losses, took: now() - begun });
    return pool.keepReserve(service.workers);
  }
  // Without a group that came, and serves, while it was listing the folder, it is not the whole.
  if (isServing() && (table.hasMissedOne() || isThereNow(unseenOf(table.current.groups, groups), dir))) {
    quitAll(workers);
    service.wantedFor ??= cause;
    return;
  }
  await putToWork(service, outcome, { cause, begun });
}

async function putToWork(
  service: Service,
  { workers, groups }: Loaded,
  occasion: { cause: string; begun: number },
): Promise<void> {
  const { log, pool, table, retries, counter: generation } = service;
  const old = pool.serving();
  const known = table.current.groups;
  table.announce(groups);
  const error = await listen(service, workers);
  if (service.isStopping) return;
  table.conclude(generation, error === undefined);
  if (error !== undefined) return refuse(service, occasion.cause, error);
  for (const worker of old) worker.drain(service.drainTimeout);
  service.tally.served++;
  service.rejection = undefined;
  service.isKeptOut = false;
  for (const what of ['generation', 'start', 'replacement'] as const) retries.forget(what);
  for (const failure of groups.filter(({ ok, group, error }) => !ok && known.get(group)?.error !== error)) {
    log.error('group-not-loadable', { ...failure });
  }
  const losses = lossesOf(known, groups).map(({ group }) => group);
  if (losses.length > 0) log.error('generation-degraded', { generation, groups: losses });
  const took_ms = Math.round(service.now() - occasion.begun);
  log.info('generation-serving', { generation, cause: occasion.cause, groups: groups.length, took_ms });
  service.onGroups?.(table.current.groups.values());
  if (generation > 1 && old.length > 0) pool.keepReserve(service.workers);
}
