// The parts that every step of the supervisor uses. agenda.ts decides from the result of a step what is done next.
import { dirname } from 'node:path';
import { fingerprint } from '../../base/fingerprint.ts';
import type { InspectorAddress } from '../../base/inspector.ts';
import type { Log } from '../../base/log.ts';
import type { SecureState } from '../../operate/https/serve/secure-state.ts';
import { entryPath } from '../../own-files.ts';
import type { FolderWatch } from '../folder/watch.ts';
import type { GroupLoad } from '../load/group-load.ts';
import type { Difference, GroupTable } from './group-table.ts';
import type { Loader } from './load-in-workers.ts';
import type { ServiceMark } from './service-mark.ts';
import type { ServingTasks } from './serving-tasks.ts';
import type { Pool } from './workers/pool.ts';
import type { Port } from './workers/port.ts';
import type { WorkerHandle } from './workers/worker-handle.ts';

export interface Service {
  readonly dir: string;
  readonly workerCount: number;
  readonly drainTimeout: number;
  /** Every worker of every generation shares the socket of this port. */
  readonly port: Port;
  /** Returns the certificates and keys that a worker needs for HTTPS; undefined for HTTP without TLS. */
  readonly secureState: (() => SecureState) | undefined;
  /** Called with all groups, when a generation begins to serve, and when a group is added while workers serve. */
  readonly onGroups: ((groups: Iterable<GroupLoad>) => void) | undefined;
  /** Where a debugger finds one of the workers that serve. The number of the port stays the same over edits. */
  readonly inspect: InspectorAddress | undefined;
  /** Has TypeScript write out the types that the reader refuses (type-maker.ts). Only in `gatefold dev`. */
  readonly makeTypes: (() => Promise<boolean>) | undefined;
  readonly log: Log;
  readonly pool: Pool;
  readonly watch: FolderWatch;
  readonly loader: Loader;
  readonly table: GroupTable;
  readonly mark: ServiceMark;
  readonly tasks: ServingTasks;
  readonly stopping: AbortSignal;
  readonly now: () => number;
}

/** The result of a step. `release` is the real path of the controllers folder that a generation has tried to load. */
export type StepResult =
  | { readonly kind: 'serving'; readonly release: string }
  | { readonly kind: 'replaced'; readonly count: number }
  /** The new generation would lose groups that serve, so the old one stays. */
  | { readonly kind: 'groups-lost'; readonly failures: readonly GroupLoad[]; readonly release: string }
  /** No new worker can serve, and no controller is to blame. */
  | { readonly kind: 'failed'; readonly error: string; readonly release?: string }
  /** A replacement differs from the workers that serve, so the replacement was ended. */
  | { readonly kind: 'differs'; readonly difference: Difference; readonly groups: readonly GroupLoad[] }
  /**
   * The step threw an exception, a change of the folder aborted a load that hung, the new workers lack a group that
   * serves, or a file changed during the load (`change` names it). An outdated generation is due again.
   */
  | { readonly kind: 'outdated'; readonly change?: string }
  /** The folder cannot be read, or a trial has loaded no more groups than serve. */
  | { readonly kind: 'no-change' }
  /** The step was given up because the service stops, or because another step is due first. */
  | { readonly kind: 'interrupted' };

/** The folder of the program of workers. Its times change with each file that an installation brings. */
const OWN_CODE = dirname(entryPath('worker'));

/** A package manager may be replacing Gatefold. The return of its code is a change, like that of an imported file. */
export function failToStart({ watch }: Service, error: string): Extract<StepResult, { kind: 'failed' }> {
  watch.addFiles([{ path: OWN_CODE, fingerprint: fingerprint(OWN_CODE) }]);
  return { kind: 'failed', error };
}

/**
 * Sends certificates and keys to workers: before the workers listen, and after each change. A worker takes messages in
 * their order, so a worker that gets `listen` after `secure` accepts no connection without a certificate.
 */
export function sendSecureState({ secureState }: Pick<Service, 'secureState'>, workers: readonly WorkerHandle[]): void {
  if (secureState === undefined) return;
  const state = secureState();
  for (const worker of workers) worker.send({ kind: 'secure', state });
}

/**
 * Lets loaded workers serve, and ends those that cannot.
 *
 * @param leaving the workers that end soon, whose inspector another worker gets
 * @returns the text of the error when no worker can serve
 */
export async function listen(service: Service, workers: readonly WorkerHandle[], leaving: readonly WorkerHandle[]) {
  const { port, inspect, log, pool } = service;
  sendSecureState(service, workers);
  // A worker closes its inspector after the pause at a breakpoint. So an edit waits for the end of a pause.
  await Promise.all(leaving.map((worker) => (worker.isInspected ? worker.inspect() : undefined)));
  if (service.stopping.aborted) return undefined;
  const outcomes = await Promise.all(workers.map((worker) => worker.listen(port.socket)));
  for (const worker of workers) if (worker.state === 'loaded') worker.quit();
  const [next] = [...workers, ...leaving].filter(({ state }) => state === 'serving');
  if (inspect !== undefined && !pool.serving().some(({ isInspected }) => isInspected)) {
    const url = await next?.inspect(inspect);
    if (next?.state === 'serving' && url === undefined) log.error('inspector-not-opened', { ...inspect });
  }
  const failures = outcomes.filter((outcome) => outcome !== 'listening');
  const [first] = failures;
  return first === undefined || failures.length < workers.length ? undefined : port.describeError(first.code);
}

/** Drains every worker, and ends what the service holds. */
export async function endAll(service: Service, acceptFor: number): Promise<void> {
  const { watch, loader, port, pool, log, tasks, drainTimeout } = service;
  watch.stop();
  loader.abort();
  // The supervisor never accepts connections, so it closes its copy of the socket before the workers close theirs. A
  // last copy in the supervisor would let the kernel accept further clients, whose connections are then reset.
  port.close();
  for (const worker of pool.all()) {
    // A loaded worker may have the order to listen already, and then it holds connections before it says so.
    if (worker.state === 'serving' || worker.state === 'loaded') worker.drain(drainTimeout, acceptFor);
    else worker.quit();
  }
  const survivors = await pool.close();
  await tasks.close();
  if (survivors.length > 0) log.error('workers-still-running', { workers: survivors.map(({ pid }) => pid) });
}
