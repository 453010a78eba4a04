// Workers of the generation that serves, in the place of those that died or are faulty. They may join only when they
// loaded the same code and the same groups as those that serve.
import type { GenerationOutcome } from './generation.ts';
import { compareReplacement, isThereNow } from './group-table.ts';
import { listen, quitAll, refuse, type Service } from './service.ts';

export async function replace(service: Service, count: number): Promise<void> {
  const { log, pool, loader, table, poison, watch, now } = service;
  const known = poison.active().size;
  const begun = now();
  const { number, groups } = table.current;
  // What nobody has asked for yet comes as it comes to the others: on its first request, on all workers.
  const outcome = await loader.load(number, count, watch.look(), () => Array.from(groups.values(), ({ file }) => file));
  if (service.isStopping || outcome.kind === 'aborted') return;
  if (outcome.kind === 'ended') return refuse(service, 'replacement', outcome.reason);
  const { workers } = outcome;
  const serving = pool.serving();
  if (serving.length > 0 && !isEqual(service, outcome, now() - begun)) return quitAll(workers);
  const error = await listen(service, workers);
  if (service.isStopping) return;
  if (error !== undefined) return refuse(service, 'replacement', error);
  service.tally.replaced += workers.length;
  for (const worker of serving.filter(({ isFaulty }) => isFaulty).slice(0, count)) worker.drain(service.drainTimeout);
  // A file that ends its process did so in this one; the others do not know it yet.
  if (poison.active().size > known) service.wantedFor ??= 'a controller that ends its process';
  log.info('worker-replaced', { generation: number, workers: workers.map(({ pid }) => pid) });
}

function isEqual(service: Service, loaded: Extract<GenerationOutcome, { kind: 'loaded' }>, took: number): boolean {
  const { log, table, retries, watch, dir } = service;
  const { verdict, lacking } = compareReplacement(table.current.groups, loaded, watch.agrees);
  if (verdict === 'equal') {
    service.isKeptOut = false;
    retries.forget('replacement');
    return true;
  }
  // A group came in the meantime, a new generation is due, or the folder is away.
  if (verdict === 'incomplete') retries.failed('death');
  // It may be a database that is down, and no change of the folder will say that it is back.
  else retries.failed('replacement', took);
  if (verdict === 'other code') service.wantedFor ??= 'the folder has changed';
  if (!service.isKeptOut && !(verdict === 'incomplete' && isThereNow(lacking, dir))) {
    service.isKeptOut = true;
    const effect = 'fewer workers serve until the folder loads again';
    log.warn('replacement-kept-out', { generation: table.current.number, groups: lacking, effect });
  }
  return false;
}
