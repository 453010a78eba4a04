// A new group, added while workers serve: the worker that got the first request for it imports it, and then all others
// do. No worker answers from the group before every worker has imported it. Otherwise its file could break between the
// first answer and the last import, and a group that has answered would fail.
import type { WorkerProcess } from './workers/worker-handle.ts';

export interface NewGroups {
  /** This worker has imported the group, and holds the group's requests until the others have imported it. */
  imported(worker: WorkerProcess, group: string): void;
  /** Whether some worker has not yet reported its import; until then the group has given no answer. */
  isPending(group: string): boolean;
}

/** @param workers returns all workers that may hold requests */
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
