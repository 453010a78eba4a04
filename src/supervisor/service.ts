// What the steps of the supervisor share: the parts they work with, and the notes they leave for each other. A service
// has one.
import type { Log } from '../base/log.ts';
import type { GroupLoad } from '../groups/registry.ts';
import type { SecureState } from '../https/serve/secure-state.ts';
import type { FolderWatch } from './folder/watch.ts';
import type { Loader } from './generation.ts';
import type { GroupTable } from './group-table.ts';
import type { PoisonList } from './poison-list.ts';
import type { Retries } from './retries.ts';
import type { Rejection, Tally } from './status.ts';
import type { Pool } from './workers/pool.ts';
import { type Port, StartError } from './workers/port.ts';
import type { WorkerProcess } from './workers/worker-handle.ts';

export interface Service {
  readonly dir: string;
  /** How many workers serve. */
  readonly workers: number;
  /** Milliseconds. */
  readonly drainTimeout: number;
  readonly port: Port;
  /** What a worker needs to serve HTTPS; undefined: HTTP without TLS. */
  readonly secureState: (() => SecureState) | undefined;
  /** Told of the groups that serve from now on. */
  readonly onGroups: ((groups: Iterable<GroupLoad>) => void) | undefined;
  readonly log: Log;
  readonly pool: Pool;
  readonly watch: FolderWatch;
  readonly loader: Loader;
  readonly table: GroupTable;
  readonly poison: PoisonList;
  readonly retries: Retries;
  /** Milliseconds on a clock that never goes back. */
  readonly now: () => number;
  readonly tally: Tally;
  /** Of the newest generation that was made. */
  counter: number;
  isStopping: boolean;
  /** Why a new generation is wanted. */
  wantedFor: string | undefined;
  /** The newest generation, when it was refused. */
  rejection: Rejection | undefined;
  /** It has been logged why no replacement is let in. */
  isKeptOut: boolean;
}

/** As the cause of a generation: nothing has changed, and it is tried again. */
export const RETRY = 'retry';

/** Before they listen, and at every change. */
export function secure({ secureState }: Service, workers: readonly WorkerProcess[]): void {
  if (secureState === undefined) return;
  const state = secureState();
  for (const worker of workers) worker.send({ kind: 'secure', state });
}

/** Puts loaded workers to work. Resolves to one line when none of them can accept; those that cannot go. */
export async function listen(service: Service, workers: readonly WorkerProcess[]): Promise<string | undefined> {
  const { port } = service;
  secure(service, workers);
  const outcomes = await Promise.all(workers.map((worker) => worker.listen(port.socket)));
  for (const worker of workers) if (worker.state === 'loaded') worker.quit();
  const failures = outcomes.filter((outcome) => outcome !== 'listening');
  const [first] = failures;
  return first === undefined || failures.length < workers.length ? undefined : port.describeError(first.code);
}

/** No new worker can serve, and no controller is to blame. @throws StartError when none serves yet */
export function refuse(service: Service, cause: string, error: string): void {
  if (service.table.current.number === 0) throw new StartError(error);
  service.retries.failed('death');
  reject(service, cause, { failures: [], error, took: 0 });
}

/**
 * What serves goes on. Told once a change, and tried again: what failed may have been a database and not the folder.
 */
export function reject(
  service: Service,
  cause: string,
  { failures, error, took }: Pick<Rejection, 'failures' | 'error'> & { readonly took: number },
): void {
  const { log, counter: generation, rejection: last, table } = service;
  const effect = `generation ${table.current.number} serves on`;
  const isNews =
    cause !== RETRY || JSON.stringify(last?.failures) !== JSON.stringify(failures) || last?.error !== error;
  for (const facts of isNews ? (error === undefined ? failures : [{ error }]) : []) {
    log.error('generation-rejected', { generation, cause, ...facts, effect });
  }
  service.rejection = { generation, at: new Date(), failures, error };
  service.tally.rejected++;
  service.retries.failed(error === undefined ? 'generation' : 'start', took);
}

export function quitAll(workers: readonly WorkerProcess[]): void {
  for (const worker of workers) worker.quit();
}

/** What serves is tried in each generation and in each replacement, whatever it has done to another process. */
export function pardonServing({ table, poison }: Service): void {
  for (const { file, ok } of table.current.groups.values()) if (ok) poison.remove(file);
}
