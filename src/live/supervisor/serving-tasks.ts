// Connects the runner of the tasks with the generation that serves.
import { SERVICE } from '../../base/group-name.ts';
import type { Log } from '../../base/log.ts';
import { type Cell, createFileCell, Lease, serviceOf } from '../tasks/lease.ts';
import { TaskRunner } from '../tasks/runner.ts';
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
  /** Undefined while no generation has had tasks. */
  runner: TaskRunner | undefined;

  constructor(options: ServingTasksOptions) {
    this.#options = options;
  }

  /** Called when these workers have begun to serve the code that is accepted. */
  serve(workers: readonly WorkerHandle[]): void {
    const { hasStart, tasks = [] } = this.#options.table.current.groups.get(SERVICE) ?? {};
    if (hasStart) for (const worker of workers) worker.send({ kind: 'start' });
    if (tasks.length > 0) this.runner ??= this.#createRunner();
    this.runner?.serve(tasks);
  }

  /** Called when all workers are gone. */
  async close(): Promise<void> {
    await this.runner?.close();
  }

  #createRunner(): TaskRunner | undefined {
    const { pool, table, log, dir, dataDir, store } = this.#options;
    if (dataDir === undefined) return undefined;
    const lease = new Lease(store?.taskCell(serviceOf(dir)) ?? createFileCell(dataDir), () => performance.now());
    const isNewest = ({ generation, isFaulty }: WorkerHandle) => generation === table.current.generation && !isFaulty;
    return new TaskRunner({ lease, log, workers: () => pool.serving().filter(isNewest) });
  }
}
