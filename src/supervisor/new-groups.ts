// A new group is a group that is added while workers serve. The worker that gets the first request for the group
// imports it, and then all other workers import it. The requests for the group wait until every worker has imported it,
// has failed to import it, or has taken too long. Without this wait, somebody could break the file between the first
// answer and the last import. Then a group that has answered would fail in the other workers. docs/LIVE.md has
// drawings of the way of a new group through all files.
import type { WorkerHandle } from './workers/worker-handle.ts';

export interface NewGroups {
  /** Called when a worker has imported the group. The worker holds the group's requests until all workers have it. */
  imported(worker: WorkerHandle, group: string): void;
  /** Whether the requests for the group still wait for the imports, so that the group has answered no request. */
  isPending(group: string): boolean;
}

/** @param workers returns all workers that can hold requests */
export function createNewGroups(workers: () => readonly WorkerHandle[]): NewGroups {
  const pendingGroups = new Set<string>();
  return {
    imported(first, group) {
      if (pendingGroups.has(group)) return;
      pendingGroups.add(group);
      const otherWorkers = workers().filter(
        (worker) => worker !== first && (worker.state === 'loaded' || worker.state === 'serving'),
      );
      void Promise.all(otherWorkers.map((worker) => worker.importGroup(group))).then(() => {
        pendingGroups.delete(group);
        for (const worker of workers()) worker.send({ kind: 'shared', group });
      });
    },
    isPending: (group) => pendingGroups.has(group),
  };
}
