// Forks the first workers before the supervisor's own modules are imported. A process needs about as long to boot as
// that import takes, so both run at the same time.
import cluster, { type Worker } from 'node:cluster';

/** A worker that boots before the pool, which owns all other workers, exists. */
export interface EarlyWorker {
  /** Returns false when the process was never started, has ended, or has closed its channel to this process. */
  isAlive(): boolean;
  /** Returns the result of `takeOver`, which adds listeners for messages. They receive all earlier messages, too. */
  adopt<T>(takeOver: (worker: Worker) => T): T;
  /** Resolves when the process has ended. */
  kill(): Promise<void>;
}

export function forkEarly(script: string, args: readonly string[], count: number): EarlyWorker[] {
  // If a controller opens a port, `SCHED_NONE` lets the worker accept its connections itself. The port of the service
  // does not pass through node:cluster.
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  cluster.setupPrimary({ exec: script, args: [...args] });
  const workers: EarlyWorker[] = [];
  try {
    while (workers.length < count) workers.push(earlyWorkerOf(cluster.fork()));
  } catch {
    // The system refused one more process. The pool tries to fork it again later, and reports the error.
  }
  return workers;
}

function earlyWorkerOf(worker: Worker): EarlyWorker {
  const messages: unknown[] = [];
  const hold = (message: unknown) => messages.push(message);
  worker.on('message', hold);
  // Without a listener, the error of a process that cannot start would be thrown. `isAlive` returns false for it.
  worker.on('error', () => {});
  const ended = new Promise<void>((resolve) => worker.on('exit', () => resolve()));
  const isAlive = () => worker.process.pid !== undefined && worker.isConnected() && !worker.isDead();
  return {
    isAlive,
    adopt(takeOver) {
      worker.off('message', hold);
      const adopted = takeOver(worker);
      for (const message of messages) worker.emit('message', message);
      return adopted;
    },
    async kill() {
      if (worker.process.pid === undefined || worker.isDead()) return;
      worker.process.kill('SIGKILL');
      await ended;
    },
  };
}
