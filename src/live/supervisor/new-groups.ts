// A new group is a group whose file came after the workers had loaded the folder. The worker that gets the first
// request for the group asks here whether it may serve. This worker imports the group first, because an import can end
// the process. Then all other workers do. The requests wait until every worker has imported the group, has failed to,
// or has taken too long: otherwise, a file that breaks a moment later would have answered in one worker and fail in
// another. docs/LIVE.md has drawings of the way of a new group through all files.
import type { GroupLoad } from '../load/group-load.ts';
import type { WorkerHandle } from './workers/worker-handle.ts';

export interface NewGroupsOptions {
  /** Returns all workers that can hold requests. */
  readonly workers: () => readonly WorkerHandle[];
  /** See may-serve.ts. `load` is undefined before the import. */
  readonly mayServe: (worker: WorkerHandle, load: GroupLoad | undefined) => boolean;
  readonly onAdmitted: (load: GroupLoad) => void;
}

/** @returns the function to call when a worker asks whether it may serve a new group */
export function createNewGroups({ workers, mayServe, onAdmitted }: NewGroupsOptions) {
  const pending = new Set<string>();

  async function spread(first: WorkerHandle, group: string): Promise<void> {
    const load = await first.importGroup(group, FIRST_IMPORT_LIMIT);
    const importers = new Set([first]);
    if (load?.ok === true) {
      for (const worker of workers())
        if (worker.state === 'loaded' || worker.state === 'serving') importers.add(worker);
      await Promise.all(Array.from(importers, (worker) => worker === first || worker.importGroup(group)));
    }
    pending.delete(group);
    const isAdmitted = load?.ok === true && mayServe(first, load);
    if (isAdmitted) onAdmitted(load);
    const answer = load?.ok === true && !isAdmitted ? 'changed' : 'failed';
    // Any other worker can still have what it imported at an earlier question, which was withheld. It asks again.
    for (const worker of workers()) {
      if (isAdmitted && importers.has(worker)) worker.send({ kind: 'admitted', group });
      else worker.send({ kind: 'withheld', group, answer });
    }
  }

  return function requested(first: WorkerHandle, group: string): void {
    // The answer for the imports that are under way goes to this worker, too.
    if (pending.has(group)) return;
    if (!mayServe(first, undefined)) return first.send({ kind: 'withheld', group, answer: 'changed' });
    pending.add(group);
    void spread(first, group);
  };
}

/** Milliseconds of an import and of the search for a mistake. A hanging worker among the others must delay nobody. */
const FIRST_IMPORT_LIMIT = 14_000;
