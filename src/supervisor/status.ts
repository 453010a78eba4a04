// The supervisor's status, for the operations port and its metrics: facts only.
import type { GroupLoad } from '../groups/group-load.ts';
import type { Agenda } from './agenda.ts';
import type { GroupTable } from './group-table.ts';
import type { Pool } from './workers/pool.ts';
import type { WorkerProcess, WorkerState } from './workers/worker-handle.ts';

export interface SupervisorStatus {
  /** Number of the generation that serves; 0: none yet. */
  readonly generation: number;
  readonly servingSince: Date | undefined;
  readonly workers: readonly WorkerStatus[];
  /** Groups of the folder that do not serve because they never loaded. */
  readonly notLoadable: readonly GroupLoad[];
  /** The newest generation, if it was rejected. */
  readonly rejected: Rejection | undefined;
  /** Generations that took over, since the start. */
  readonly generationsServed: number;
  /** Generations that were rejected, since the start. */
  readonly generationsRejected: number;
  /** Workers that ended without an order, since the start. */
  readonly died: number;
  /** Workers that took the place of others, since the start. */
  readonly replaced: number;
}

export interface WorkerStatus {
  readonly pid: number | undefined;
  /** 0: the worker has loaded nothing yet. */
  readonly generation: number;
  /** `faulty`: the worker serves until its replacement does. */
  readonly state: WorkerState | 'faulty';
}

/** A generation that was rejected: the code that serves is older than the folder. */
export interface Rejection {
  readonly generation: number;
  readonly at: Date;
  /** Groups that still serve their old code, because the new one did not load; empty if no controller is to blame. */
  readonly failures: readonly GroupLoad[];
  /** The reason, if no controller is to blame. */
  readonly error?: string | undefined;
}

/** Counts since the start. */
export interface Tally {
  served: number;
  rejected: number;
  died: number;
  replaced: number;
}

export function describeService(
  { current }: Pick<GroupTable, 'current'>,
  pool: Pick<Pool, 'all'>,
  { rejection, tally }: Pick<Agenda, 'rejection' | 'tally'>,
): SupervisorStatus {
  return {
    generation: current.number,
    servingSince: current.since,
    workers: pool.all().map(describeWorker),
    notLoadable: [...current.groups.values()].filter(({ ok }) => !ok),
    rejected: rejection,
    generationsServed: tally.served,
    generationsRejected: tally.rejected,
    died: tally.died,
    replaced: tally.replaced,
  };
}

function describeWorker({ pid, generation, state, isFaulty }: WorkerProcess): WorkerStatus {
  return { pid, generation, state: isFaulty && state === 'serving' ? 'faulty' : state };
}
