// Forks the first workers before the supervisor's own modules are imported: a process takes as long to boot as those take,
// so the two go side by side. What workers are for, and what becomes of them, it does not know.
import cluster, { type Worker } from 'node:cluster';

export interface EarlyWorker {
  /** False when it has ended meanwhile. */
  isAlive(): boolean;
  /** What `take` listens for is told from the beginning on. */
  adopt<T>(take: (worker: Worker) => T): T;
}

/**
 * @param exec the script that a worker runs, and `args` its arguments
 * @param count workers to fork now
 */
export function forkEarly(exec: string, args: readonly string[], count: number): EarlyWorker[] {
  // Workers accept on one shared socket: a hand-over by this process costs twice the CPU (docs/LIVE.md has the figures).
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  cluster.setupPrimary({ exec, args: [...args] });
  return Array.from({ length: count }, () => {
    const worker = cluster.fork();
    const said: unknown[] = [];
    const hear = (message: unknown) => said.push(message);
    worker.on('message', hear);
    // One that cannot be started is one that is not alive.
    worker.on('error', () => {});
    return {
      isAlive: () => worker.isConnected() && !worker.isDead(),
      adopt(take) {
        worker.off('message', hear);
        const taken = take(worker);
        for (const message of said) worker.emit('message', message);
        return taken;
      },
    };
  });
}
