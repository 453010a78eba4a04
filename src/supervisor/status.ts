// What the supervisor tells about itself: for the operations port, for metrics, for people. Facts only, nothing to act on.
import type { GroupLoad } from '../worker/messages.ts';
import type { Rejections } from './rejections.ts';
import type { WorkerProcess, WorkerState } from './worker-handle.ts';

export interface SupervisorStatus {
  /** 0: none serves yet. */
  readonly generation: number;
  readonly servingSince: Date | undefined;
  readonly workers: readonly WorkerStatus[];
  /** Groups of the folder that do not serve because they never loaded. */
  readonly notLoadable: readonly GroupLoad[];
  /** The newest generation, when it was refused. */
  readonly rejected: Rejections['latest'];
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

/** The generation that serves. */
export interface Serving {
  readonly number: number;
  /** By group name, those that did not load included. */
  readonly groups: Map<string, GroupLoad>;
  readonly since: Date | undefined;
}

export interface Accounts {
  readonly current: Serving;
  readonly workers: readonly WorkerProcess[];
  readonly rejections: Rejections;
  /** Counted since the start. */
  readonly tally: { readonly served: number; readonly died: number; readonly replaced: number };
}

export function describeService({ current, workers, rejections, tally }: Accounts): SupervisorStatus {
  return {
    generation: current.number,
    servingSince: current.since,
    workers: workers.map(describeWorker),
    notLoadable: [...current.groups.values()].filter(({ ok }) => !ok),
    rejected: rejections.latest,
    generationsServed: tally.served,
    generationsRejected: rejections.count,
    died: tally.died,
    replaced: tally.replaced,
  };
}

function describeWorker({ pid, generation, state, isFaulty }: WorkerProcess): WorkerStatus {
  return { pid, generation, state: isFaulty && state === 'serving' ? 'faulty' : state };
}
