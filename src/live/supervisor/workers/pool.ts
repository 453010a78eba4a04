// The pool forks and pings all worker processes. While somebody edits the folder, the pool keeps a reserve: workers
// that boot or have booted, and have loaded nothing. So the next generation starts faster.
import cluster from 'node:cluster';
import { existsSync } from 'node:fs';
import { noteEnvironment, openNote } from '../../../base/worker-note.ts';
import { entryPath } from '../../../own-files.ts';
import type { WorkerEvents } from './worker-events.ts';
import { type WorkerHandle, WorkerProcess } from './worker-handle.ts';

export type Pool = ReturnType<typeof createPool>;

interface PoolOptions {
  readonly events: WorkerEvents;
  readonly drainTimeout: number;
  /** The setting LAST_REQUEST. With `auto`, workers note operations once a worker has died. */
  readonly lastRequest?: 'auto' | 'on' | 'off';
  readonly loadTimeout?: number;
}

const PING_INTERVAL_MS = 1000;
/** Milliseconds. Workers that boot at once would delay the first requests to workers that have just begun to serve. */
const RESERVE_DELAY = 250;
/** Maximum number of workers in the reserve. Each one takes memory, only to make the next generation faster. */
const MAX_RESERVE = 8;
/**
 * Milliseconds that the pool waits for workers after `drainTimeout`. A worker is killed 12 s after `drainTimeout`
 * (worker-limits.ts), so only a process that hangs in the kernel is still there.
 */
const KILL_GRACE = 13_000;
/** Milliseconds for which the reserve is kept, because a file that was edited is likely to be edited again soon. */
const RESERVE_LIFETIME = 5 * 60_000;

export function createPool({ events, drainTimeout, lastRequest = 'off', loadTimeout }: PoolOptions) {
  const workers = new Set<WorkerHandle>();
  const reserve = new Set<WorkerHandle>();
  let fillTimer: NodeJS.Timeout | undefined;
  let quitTimer: NodeJS.Timeout | undefined;
  let notesRequests = lastRequest === 'on';
  /** Called when the last process is gone; undefined before `close` is called. */
  let onEmpty: (() => void) | undefined;

  // Only a port that a controller opens passes through node:cluster. This lets its worker accept the connections.
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  const exec = entryPath('worker');
  cluster.setupPrimary({ exec, args: process.argv.slice(2) });
  // Node's type of the streams has no descriptors.
  const inherited: unknown[] = ['inherit', 'inherit', 'inherit', 'ipc'];
  const { stdio = inherited } = cluster.settings as { stdio?: unknown[] };
  const pingTimer = setInterval(() => {
    for (const worker of workers) worker.ping();
  }, PING_INTERVAL_MS);

  return {
    /** Takes a worker of the reserve, if possible one that has booted, or forks one. @throws Error as `fork` does */
    take(): WorkerHandle {
      const worker = [...reserve].find(({ state }) => state === 'standby') ?? [...reserve][0];
      if (worker === undefined) return fork();
      reserve.delete(worker);
      return worker;
    },
    fork,
    all: (): readonly WorkerHandle[] => [...workers],
    /** Includes faulty workers, in which something was thrown: they serve until their replacements do. */
    serving: (): readonly WorkerHandle[] => [...workers].filter(({ state }) => state === 'serving'),
    keepReserve,
    close,
  };

  /** Leaves the reserve as it is. @throws Error of the system, and while npm replaces the package */
  function fork(): WorkerHandle {
    if (!existsSync(exec))
      throw new Error(`${exec} is missing: install the package of gatefold, or restart the service`);
    const note = lastRequest === 'off' ? undefined : openNote();
    // The descriptor of the note comes after those of Node: standard input, output, error and the channel.
    cluster.setupPrimary({ stdio: (note === undefined ? stdio : [...stdio, note.fd]) as never });
    const forked = cluster.fork(note && noteEnvironment(stdio.length, notesRequests));
    const worker = new WorkerProcess(forked, { ...events, died, gone: removeWorker }, drainTimeout, note, loadTimeout);
    workers.add(worker);
    return worker;
  }

  function died(...[worker, death]: Parameters<WorkerEvents['died']>): void {
    // The reserve has booted without notes, and it would be the next to serve.
    if (lastRequest === 'auto' && !notesRequests) quitReserve();
    notesRequests = lastRequest !== 'off';
    events.died(worker, death);
  }

  function removeWorker(worker: WorkerHandle): void {
    workers.delete(worker);
    reserve.delete(worker);
    events.gone(worker);
    if (workers.size === 0) onEmpty?.();
  }

  /** Keeps `count` workers in the reserve, eight at most, for five minutes after the last call. */
  function keepReserve(count: number): void {
    clearTimeout(fillTimer);
    clearTimeout(quitTimer);
    fillTimer = setTimeout(fillReserve, RESERVE_DELAY, Math.min(count, MAX_RESERVE));
    quitTimer = setTimeout(quitReserve, RESERVE_LIFETIME);
  }

  function fillReserve(count: number): void {
    try {
      while (reserve.size < count) reserve.add(fork());
    } catch {
      // The system refuses another process. The reserve stays smaller, and the next generation forks the other workers.
    }
  }

  function quitReserve(): void {
    for (const worker of reserve) worker.quit();
    reserve.clear();
  }

  /** Resolves when all processes are gone, or their time to drain is over. @returns the workers that are still there */
  async function close(): Promise<readonly WorkerHandle[]> {
    clearTimeout(fillTimer);
    clearTimeout(quitTimer);
    quitReserve();
    if (workers.size > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, drainTimeout + KILL_GRACE);
        onEmpty = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    clearInterval(pingTimer);
    return [...workers];
  }
}
