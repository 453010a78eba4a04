// What the supervisor tells about itself: for the operations port, for metrics, for people. Facts only, nothing to act on.
import type { GroupLoad } from './messages.ts';
import type { Rejection } from './rejections.ts';
import type { WorkerProcess, WorkerState } from './worker-process.ts';

export interface SupervisorStatus {
  /** 0: none serves yet. */
  readonly generation: number;
  readonly servingSince: Date | undefined;
  readonly workers: readonly WorkerStatus[];
  /** Groups of the folder that do not serve because they never loaded. */
  readonly notLoadable: readonly GroupLoad[];
  /** The newest generation, when it was refused. */
  readonly rejected: Rejection | undefined;
  /** Workers that ended without being told to, since the start. */
  readonly died: number;
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

export function describeWorker({ pid, generation, state, isFaulty }: WorkerProcess): WorkerStatus {
  return { pid, generation, state: isFaulty && state === 'serving' ? 'faulty' : state };
}
