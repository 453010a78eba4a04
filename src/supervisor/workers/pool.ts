// All worker processes that are alive: it forks them, pings them, and keeps some in reserve while the folder is being
// worked on. Which of them load what, and when they serve or drain, is the supervisor's business.
import cluster, { type Worker } from 'node:cluster';
import type { EarlyWorker } from './prefork.ts';
import { createWorkerProcess, type WorkerEvents, type WorkerProcess } from './worker-handle.ts';

export interface Pool {
  /** A worker that holds no part of the folder: one of the reserve, else a new process. @throws Error of the system */
  take(): WorkerProcess;
  /** A new process, which leaves the reserve as it is. @throws Error of the system */
  fork(): WorkerProcess;
  all(): readonly WorkerProcess[];
  /** Those that accept connections, faulty ones included. */
  serving(): readonly WorkerProcess[];
  /** Keeps `count` booted workers ready, eight at most, until no one has asked for it for some minutes. */
  keepReserve(count: number): void;
  /**
   * Forks nothing any more on its own. Resolves when the last process is gone, to those that even a kill has not ended
   * in time.
   */
  close(): Promise<readonly WorkerProcess[]>;
}

export interface PoolOptions {
  /** The first ones, already on their way. */
  readonly early: readonly EarlyWorker[];
  readonly events: WorkerEvents;
  /** Milliseconds. */
  readonly drainTimeout: number;
}

const PING_INTERVAL = 1000;
/** The cores are the new generation's first: its requests matter more than the next change. */
const RESERVE_DELAY = 250;
/** A reserve makes the next change live sooner; more than this many processes for that are too many. */
const LARGEST_RESERVE = 8;
/** A worker is killed 7 s after its time to drain; a process that hangs in the kernel outlives that. */
const LAST_GRACE = 8000;
/** Who edits a file is likely to edit it again soon. A folder at rest costs no memory. */
const RESERVE_LIFETIME = 5 * 60_000;

export function createPool({ early, events, drainTimeout }: PoolOptions): Pool {
  const workers = new Set<WorkerProcess>();
  const reserve = new Set<WorkerProcess>();
  let filling: NodeJS.Timeout | undefined;
  let releasing: NodeJS.Timeout | undefined;
  let onEmpty: (() => void) | undefined;

  for (const worker of early) if (worker.isAlive()) reserve.add(worker.adopt(enlist));
  const pinging = setInterval(() => {
    for (const worker of workers) worker.ping();
  }, PING_INTERVAL);

  return {
    take() {
      const ready = [...reserve].find(({ state }) => state === 'standby') ?? [...reserve][0];
      if (ready === undefined) return fork();
      reserve.delete(ready);
      return ready;
    },
    fork,
    all: () => [...workers],
    serving: () => [...workers].filter(({ state }) => state === 'serving'),
    keepReserve,
    close,
  };

  function fork(): WorkerProcess {
    return enlist(cluster.fork());
  }

  function enlist(process: Worker): WorkerProcess {
    const worker = createWorkerProcess(process, { ...events, gone: forget }, drainTimeout);
    workers.add(worker);
    return worker;
  }

  function forget(worker: WorkerProcess): void {
    workers.delete(worker);
    reserve.delete(worker);
    events.gone(worker);
    if (workers.size === 0) onEmpty?.();
  }

  function keepReserve(count: number): void {
    clearTimeout(filling);
    clearTimeout(releasing);
    filling = setTimeout(fillReserve, RESERVE_DELAY, Math.min(count, LARGEST_RESERVE));
    releasing = setTimeout(releaseReserve, RESERVE_LIFETIME);
  }

  /** Where the system refuses one more process, the next generation is made without. */
  function fillReserve(count: number): void {
    try {
      while (reserve.size < count) reserve.add(fork());
    } catch {}
  }

  function releaseReserve(): void {
    for (const worker of reserve) worker.quit();
    reserve.clear();
  }

  async function close(): Promise<readonly WorkerProcess[]> {
    clearTimeout(filling);
    clearTimeout(releasing);
    releaseReserve();
    if (workers.size > 0) {
      await new Promise<void>((resolve) => {
        onEmpty = resolve;
        setTimeout(resolve, drainTimeout + LAST_GRACE);
      });
    }
    clearInterval(pinging);
    return [...workers];
  }
}
