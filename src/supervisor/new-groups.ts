// A new group is a group that is added while workers serve. The worker that gets the first request for the group
// imports it, and then all other workers import it. No worker answers requests for the group before every worker has
// imported it. Otherwise its file could break between the first answer and the last import, and a group that has
// answered would fail.
import type { WorkerProcess } from './workers/worker-handle.ts';

export interface NewGroups {
  /**
   * Called when a worker has imported the group. That worker holds the group's requests until the others have imported
   * it.
   */
  imported(worker: WorkerProcess, group: string): void;
  /** Whether some worker has not yet reported its import. Until then the group has answered no request. */
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
