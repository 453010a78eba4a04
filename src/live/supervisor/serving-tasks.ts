// Connects the runner of the tasks with the generation that serves. The files of live/tasks/ are loaded only when a
// generation serves whose service file has tasks.
import { SERVICE } from '../../base/group-name.ts';
import type { Log } from '../../base/log.ts';
import type { Cell } from '../tasks/lease.ts';
import type { TaskRunner } from '../tasks/runner.ts';
import type { GroupTable } from './group-table.ts';
import type { Pool } from './workers/pool.ts';
import type { WorkerHandle } from './workers/worker-handle.ts';

export interface ServingTasksOptions {
  readonly pool: Pick<Pool, 'serving'>;
  readonly table: Pick<GroupTable, 'current'>;
  readonly log: Log;
  readonly dir: string;
  /** The folder of the tasks' state, unless there is a store; undefined in tests, which have no tasks. */
  readonly dataDir?: string | undefined;
  readonly store?: { taskCell(service: string): Cell } | undefined;
}

export class ServingTasks {
  readonly #options: ServingTasksOptions;
  #loading: Promise<void> | undefined;
  /** Undefined while no generation has had tasks. */
  runner: TaskRunner | undefined;

  constructor(options: ServingTasksOptions) {
    this.#options = options;
  }

  /** Called when these workers have begun to serve the code that is accepted. */
  serve(workers: readonly WorkerHandle[]): void {
    const { hasStart, tasks = [] } = this.#options.table.current.groups.get(SERVICE) ?? {};
    if (hasStart) for (const worker of workers) worker.send({ kind: 'start' });
    if (tasks.length > 0) this.#loading ??= this.#load();
    void this.#loading?.then(() => this.runner?.serve(tasks));
  }

  /** Called when all workers are gone. */
  async close(): Promise<void> {
    await this.#loading;
    await this.runner?.close();
  }

  async #load(): Promise<void> {
    const { pool, table, log, dir, dataDir, store } = this.#options;
    if (dataDir === undefined) return;
    const { createFileCell, Lease, serviceOf, TaskRunner } = await import('../tasks/runner.ts');
    const lease = new Lease(store?.taskCell(serviceOf(dir)) ?? createFileCell(dataDir), () => performance.now());
    const isNewest = ({ generation, isFaulty }: WorkerHandle) => generation === table.current.generation && !isFaulty;
    this.runner = new TaskRunner({ lease, log, workers: () => pool.serving().filter(isNewest) });
  }
}
