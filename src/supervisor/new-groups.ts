// A group that comes while workers serve: the worker that was asked for it imports it, all others are told to, and nobody
// answers from it before everyone has it. Otherwise its file could break between the first answer and the last import, and
// a group that has answered would fail. It knows nothing of generations.
import type { WorkerProcess } from './worker-handle.ts';

export interface NewGroups {
  /** This worker has imported the group, and holds its requests until it is told that the others have it. */
  imported(worker: WorkerProcess, group: string): void;
  /** This worker is done with the group, whether it has it, could not import it or finds no such file. */
  done(worker: WorkerProcess, group: string): void;
  /** It will not say any more how it fared. */
  gone(worker: WorkerProcess): void;
  /** Whether some worker has not yet said how it fared: till then the group has given no answer. */
  isPending(group: string): boolean;
}

/** Milliseconds that the workers may take to import a new group: one of them may hang. */
const LONGEST_SHARING = 2000;

interface Sharing {
  readonly holders: Set<WorkerProcess>;
  readonly pending: Set<WorkerProcess>;
  readonly timer: NodeJS.Timeout;
}

/** @param workers those that serve, or have loaded the folder and are about to */
export function createNewGroups(workers: () => readonly WorkerProcess[]): NewGroups {
  const sharings = new Map<string, Sharing>();

  return {
    imported(worker, group) {
      let sharing = sharings.get(group);
      if (sharing === undefined) {
        sharing = { holders: new Set(), pending: new Set(workers()), timer: setTimeout(end, LONGEST_SHARING, group).unref() };
        sharing.pending.delete(worker);
        sharings.set(group, sharing);
        for (const other of sharing.pending) other.send({ kind: 'import', group });
      }
      sharing.holders.add(worker);
      settle(worker, group, sharing);
    },
    done(worker, group) {
      const sharing = sharings.get(group);
      if (sharing !== undefined) settle(worker, group, sharing);
    },
    gone(worker) {
      for (const [group, sharing] of sharings) settle(worker, group, sharing);
    },
    isPending: (group) => sharings.has(group),
  };

  function settle(worker: WorkerProcess, group: string, { pending }: Sharing): void {
    pending.delete(worker);
    if (pending.size === 0) end(group);
  }

  function end(group: string): void {
    const sharing = sharings.get(group);
    clearTimeout(sharing?.timer);
    sharings.delete(group);
    for (const holder of sharing?.holders ?? []) holder.send({ kind: 'shared', group });
  }
}
