// Service: the parts that every step of the supervisor works with. StepResult: how a step ended. A step leaves no other
// note behind: agenda.ts derives from its result what is done next.
import type { Log } from '../base/log.ts';
import type { GroupLoad } from '../groups/group-load.ts';
import type { SecureState } from '../https/serve/secure-state.ts';
import type { FolderWatch } from './folder/watch.ts';
import type { Difference, GroupTable } from './group-table.ts';
import type { Loader } from './loader.ts';
import type { Quarantine } from './quarantine.ts';
import type { Pool } from './workers/pool.ts';
import type { Port } from './workers/port.ts';
import type { WorkerProcess } from './workers/worker-handle.ts';

export interface Service {
  /** The controllers folder. */
  readonly dir: string;
  /** How many workers serve. */
  readonly workers: number;
  /** Milliseconds that a worker may take to drain. */
  readonly drainTimeout: number;
  readonly port: Port;
  /** Returns the certificates and keys that a worker needs for HTTPS. Undefined: plain HTTP. */
  readonly secureState: (() => SecureState) | undefined;
  /** Receives the groups whenever a change of them serves. */
  readonly onGroups: ((groups: Iterable<GroupLoad>) => void) | undefined;
  readonly log: Log;
  readonly pool: Pool;
  readonly watch: FolderWatch;
  readonly loader: Loader;
  readonly table: GroupTable;
  readonly quarantine: Quarantine;
  /** Aborted when the service stops. */
  readonly stopping: AbortSignal;
  /** Milliseconds on a clock that never goes back. */
  readonly now: () => number;
}

/** `release`: the real path of the controllers folder that a generation has loaded. */
export type StepResult =
  /** A new generation serves. */
  | { readonly kind: 'serving'; readonly release: string }
  /** Replacements serve. `hasNewQuarantine`: one of them ended at a file that the other workers still serve. */
  | { readonly kind: 'replaced'; readonly count: number; readonly hasNewQuarantine: boolean }
  /** The new generation would lose groups that serve, so the old one stays. */
  | { readonly kind: 'groups-lost'; readonly failures: readonly GroupLoad[]; readonly release: string }
  /** No new worker can serve, and no controller is to blame. */
  | { readonly kind: 'failed'; readonly error: string; readonly release?: string }
  /** A replacement differs from the workers that serve, so it ended. */
  | { readonly kind: 'differs'; readonly difference: Difference; readonly groups: readonly GroupLoad[] }
  /** The step did not come to an end, mostly because the folder changed: a generation is due again. */
  | { readonly kind: 'outdated' }
  /** A probe loaded these groups, and more of them than serve. */
  | { readonly kind: 'more-groups'; readonly groups: readonly GroupLoad[] }
  | { readonly kind: 'no-change' }
  /** The service stops, or something else is due first. */
  | { readonly kind: 'interrupted' };

/** Sends workers their certificates and keys: before they listen, and whenever those change. */
export function secure({ secureState }: Pick<Service, 'secureState'>, workers: readonly WorkerProcess[]): void {
  if (secureState === undefined) return;
  const state = secureState();
  for (const worker of workers) worker.send({ kind: 'secure', state });
}

/** Lets loaded workers accept connections; those that cannot, end. Resolves to an error text if none can. */
export async function listen(service: Service, workers: readonly WorkerProcess[]): Promise<string | undefined> {
  const { port } = service;
  secure(service, workers);
  const outcomes = await Promise.all(workers.map((worker) => worker.listen(port.socket)));
  for (const worker of workers) if (worker.state === 'loaded') worker.quit();
  const failures = outcomes.filter((outcome) => outcome !== 'listening');
  const [first] = failures;
  return first === undefined || failures.length < workers.length ? undefined : port.describeError(first.code);
}

export function quitAll(workers: readonly WorkerProcess[]): void {
  for (const worker of workers) worker.quit();
}

/**
 * Releases the files that serve from the quarantine. A generation or replacement without them would be rejected anyway,
 * so it must try them, whatever they did to another process.
 */
export function releaseServing({ table, quarantine }: Service): void {
  for (const { file, ok } of table.current.groups.values()) if (ok) quarantine.release(file);
}
