// Forks the first workers before the supervisor's own modules are imported: a process takes as long to boot as those
// take, so the two go side by side. What workers are for, and what becomes of them, it does not know.
import cluster, { type Worker } from 'node:cluster';

export interface EarlyWorker {
  /** False when it has ended meanwhile, or was never started. */
  isAlive(): boolean;
  /** What `take` listens for is told from the beginning on. */
  adopt<T>(take: (worker: Worker) => T): T;
  /** Resolves when it is gone: a worker that outlives us has nobody to talk to, and complains of it. */
  kill(): Promise<void>;
}

/**
 * @param exec the script that a worker runs, and `args` its arguments
 * @param count workers to fork now
 */
export function forkEarly(exec: string, args: readonly string[], count: number): EarlyWorker[] {
  // For ports that controllers open themselves; the service's own port is not node:cluster's business.
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  cluster.setupPrimary({ exec, args: [...args] });
  const workers: EarlyWorker[] = [];
  try {
    while (workers.length < count) workers.push(watchOver(cluster.fork()));
  } catch {
    // The system refuses one more; whoever needs it forks it, and says so.
  }
  return workers;
}

function watchOver(worker: Worker): EarlyWorker {
  const said: unknown[] = [];
  const hear = (message: unknown) => said.push(message);
  worker.on('message', hear);
  // One that cannot be started is one that is not alive.
  worker.on('error', () => {});
  const gone = new Promise<void>((resolve) => worker.on('exit', () => resolve()));
  const isAlive = () => worker.process.pid !== undefined && worker.isConnected() && !worker.isDead();
  return {
    isAlive,
    adopt(take) {
      worker.off('message', hear);
      const taken = take(worker);
      for (const message of said) worker.emit('message', message);
      return taken;
    },
    async kill() {
      if (worker.process.pid === undefined || worker.isDead()) return;
      worker.process.kill('SIGKILL');
      await gone;
    },
  };
}
