// The status of the supervisor, for the operations port and its metrics.
import { SERVICE } from '../../base/group-name.ts';
import type { GroupLoad } from '../load/group-load.ts';
import type { TaskState } from '../tasks/runner.ts';
import type { Agenda } from './agenda.ts';
import type { Service } from './step-parts.ts';

export type SupervisorStatus = ReturnType<typeof describeService> & {
  /** Events published since the start, and the bytes of those that are kept. */
  readonly channels?: { readonly published: number; readonly keptBytes: number };
  readonly tasks?: readonly TaskState[] | undefined;
};
export type WorkerStatus = SupervisorStatus['workers'][number];

/** A generation that was rejected, so the code that serves is older than the folder. */
export interface Rejection {
  readonly generation: number;
  readonly at: Date;
  /** Groups that serve their old code, because their new code did not load. Empty when no controller is to blame. */
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
  { table, pool }: Pick<Service, 'table' | 'pool'>,
  { rejection, tally }: Pick<Agenda, 'rejection' | 'tally'>,
) {
  const { current, wasComplete } = table;
  return {
    /** The number of the generation that serves, or 0 when none serves yet. */
    generation: current.generation,
    servingSince: current.since,
    workers: pool.all().map(({ pid, generation, state, isFaulty }) => {
      /** A `faulty` worker, in which something was thrown, serves until its replacement does. */
      const shownState = isFaulty && state === 'serving' ? ('faulty' as const) : state;
      return { pid, generation, state: shownState };
    }),
    /** The groups of the folder that did not load, so that no version of them serves. */
    notLoadable: [...current.groups.values()].filter(({ ok }) => !ok),
    groups: {
      /** Without the service file. */
      loaded: [...current.groups.values()].filter(({ ok, group }) => ok && group !== SERVICE).length,
      /** The groups of `notLoadable` that have served. */
      lost: table.lost(),
      wasComplete,
    },
    rejected: rejection,
    ...tally,
  };
}
