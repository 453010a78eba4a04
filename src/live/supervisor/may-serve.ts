// The rule for code that comes between two generations: nothing serves that was not accepted together with the rules
// that it serves under. A worker imports a new file only if a new generation would give the same result. The function
// is called before the import of a new group, and again when all workers have imported the group.
import type { FolderWatch } from '../folder/watch.ts';
import type { GroupTable } from './group-table.ts';
import type { WorkerHandle } from './workers/worker-handle.ts';

export interface Situation {
  readonly table: Pick<GroupTable, 'current'>;
  readonly watch: Pick<FolderWatch, 'changeSinceLoad'>;
  /** Whether a generation loads now or is the next step. */
  readonly isGenerationDue: boolean;
  /** Whether the newest generation was rejected. The folder then has code that nobody has accepted. */
  readonly isRejected: boolean;
}

/**
 * Returns why a worker may not serve a file that its generation has not loaded, or undefined when the worker may.
 *
 * @param file the name of the file in the folder; undefined before its import
 */
export function whyNotServe(
  worker: Pick<WorkerHandle, 'generation'>,
  file: string | undefined,
  { table, watch, isGenerationDue, isRejected }: Situation,
): string | undefined {
  // The rules of an older generation are older than the file.
  if (worker.generation !== table.current.generation) return 'a newer generation serves';
  // The next generation loads the file together with the rules that are in the folder now.
  if (isGenerationDue) return 'a generation is due';
  if (isRejected) return 'the newest generation was rejected';
  // The folder is compared as it is at this moment, because the last poll of the watch may be 0.4 s old. Each of these
  // must equal what the workers have loaded: the real path of the folder, each link in it, the service file or its
  // absence, and every file that a worker has read. After an import, these include the file itself and what it imports.
  const change = watch.changeSinceLoad(file);
  return change === undefined ? undefined : `${change} has changed`;
}
