// A group that comes while workers serve: the worker that was asked for it imports it, all others are told to, and
// nobody answers from it before everyone has it. Otherwise its file could break between the first answer and the last
// import, and a group that has answered would fail. It knows nothing of generations.
import type { WorkerProcess } from './workers/worker-handle.ts';

export interface NewGroups {
  /** This worker has imported the group, and holds its requests until it is told that the others have it. */
  imported(worker: WorkerProcess, group: string): void;
  /** Whether some worker has not yet said how it fared: till then the group has given no answer. */
  isPending(group: string): boolean;
}

/** @param workers all that may hold requests; those that serve, or are about to, import the group */
export function createNewGroups(workers: () => readonly WorkerProcess[]): NewGroups {
  const pending = new Set<string>();
  return {
    imported(first, group) {
      if (pending.has(group)) return;
      pending.add(group);
      const others = workers().filter(
        (worker) => worker !== first && (worker.state === 'loaded' || worker.state === 'serving'),
      );
      void Promise.all(others.map((worker) => worker.importGroup(group))).then(() => {
        pending.delete(group);
        for (const worker of workers()) worker.send({ kind: 'shared', group });
      });
    },
    isPending: (group) => pending.has(group),
  };
}
