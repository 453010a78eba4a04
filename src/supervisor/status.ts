// What the supervisor tells about itself: for the operations port, for metrics, for people. Facts only, nothing to act
// on.
import type { GroupLoad } from '../groups/registry.ts';
import type { Service } from './service.ts';
import type { WorkerProcess, WorkerState } from './workers/worker-handle.ts';

export interface SupervisorStatus {
  /** 0: none serves yet. */
  readonly generation: number;
  readonly servingSince: Date | undefined;
  readonly workers: readonly WorkerStatus[];
  /** Groups of the folder that do not serve because they never loaded. */
  readonly notLoadable: readonly GroupLoad[];
  /** The newest generation, when it was refused. */
  readonly rejected: Rejection | undefined;
  /** Since the start: how many went to work, and how many were refused. */
  readonly generationsServed: number;
  readonly generationsRejected: number;
  /** Workers that ended without being told to, since the start. */
  readonly died: number;
  /** Workers put in the place of others, since the start. */
  readonly replaced: number;
}

export interface WorkerStatus {
  readonly pid: number | undefined;
  /** 0: it has loaded nothing yet. */
  readonly generation: number;
  /** `faulty`: it serves until its replacement does. */
  readonly state: WorkerState | 'faulty';
}

/** A generation that was refused: what serves is older than the folder. */
export interface Rejection {
  readonly generation: number;
  readonly at: Date;
  /** Groups that serve and did not load; empty when no controller is to blame. */
  readonly failures: readonly GroupLoad[];
  /** Why, when no controller is to blame. */
  readonly error?: string | undefined;
}

/** Counted since the start. */
export interface Tally {
  served: number;
  rejected: number;
  died: number;
  replaced: number;
}

export function describeService({ table: { current }, pool, rejection, tally }: Service): SupervisorStatus {
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
