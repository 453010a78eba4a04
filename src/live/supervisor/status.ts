// The status of the supervisor, for the operations port and its metrics.
import { SERVICE } from '../../base/group-name.ts';
import type { GroupLoad } from '../load/group-load.ts';
import type { TaskState } from '../tasks/runner.ts';
import type { Agenda } from './agenda.ts';
import type { Service } from './step-parts.ts';
import type { WorkerState } from './workers/worker-events.ts';

export interface SupervisorStatus extends Readonly<Tally> {
  /** The number of the generation that serves, or 0 when none serves yet. */
  readonly generation: number;
  readonly servingSince: Date | undefined;
  readonly workers: readonly WorkerStatus[];
  /** The groups of the folder that did not load, so that no version of them serves. */
  readonly notLoadable: readonly GroupLoad[];
  readonly groups: GroupCounts;
  /** Undefined while no generation has had tasks. */
  readonly tasks?: readonly TaskState[] | undefined;
  /** Events published since the start, and the bytes of those that are kept. */
  readonly channels?: { readonly published: number; readonly keptBytes: number };
  /** The newest generation, if it was rejected. */
  readonly rejected: Rejection | undefined;
}

export interface GroupCounts {
  /** Without the service file. */
  readonly loaded: number;
  /** The groups of `notLoadable` that have served. */
  readonly lost: readonly GroupLoad[];
  /** Whether a generation has served in which every group had loaded. */
  readonly wasComplete: boolean;
}

export interface WorkerStatus {
  readonly pid: number | undefined;
  /** The number of the worker's generation, or 0 before the worker got the order to load. */
  readonly generation: number;
  /** A `faulty` worker, in which something was thrown, serves until its replacement does. */
  readonly state: WorkerState | 'faulty';
}

/** A generation that was rejected, so the code that serves is older than the folder. */
export interface Rejection {
  readonly generation: number;
  readonly at: Date;
  /**
   * Groups that still serve their old code, because their new code did not load. The list is empty when no controller
   * is to blame.
   */
  readonly failures: readonly GroupLoad[];
  /** The reason for the rejection, when no controller is to blame. */
  readonly error?: string | undefined;
}

/** Counts since the start. */
export interface Tally {
  generationsServed: number;
  generationsRejected: number;
  /** Workers that ended unexpectedly. */
  workersDied: number;
  workersReplaced: number;
}

export function describeService(
  { table, pool, tasks }: Pick<Service, 'table' | 'pool' | 'tasks'>,
  { rejection, tally }: Pick<Agenda, 'rejection' | 'tally'>,
): SupervisorStatus {
  const { current, wasComplete } = table;
  return {
    generation: current.generation,
    servingSince: current.since,
    workers: pool.all().map(({ pid, generation, state, isFaulty }) => {
      return { pid, generation, state: isFaulty && state === 'serving' ? 'faulty' : state };
    }),
    notLoadable: [...current.groups.values()].filter(({ ok }) => !ok),
    groups: {
      loaded: [...current.groups.values()].filter(({ ok, group }) => ok && group !== SERVICE).length,
      lost: table.lost(),
      wasComplete,
    },
    rejected: rejection,
    ...(tasks.runner && { tasks: [...tasks.runner.tasks.values()] }),
    ...tally,
  };
}
