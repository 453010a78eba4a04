// The life of one worker process: it loads the folder when it is told to, listens, drains and ends when it is told to,
// and tells the supervisor how it fares. It decides nothing about generations; how its parts are wired is
// worker/parts.ts.
import cluster from 'node:cluster';
import type { Server } from 'node:net';
import { describeError, type Log } from '../base/log.ts';
import { authorsFrame } from '../groups/load-error.ts';
import type { LoadedFile } from '../groups/module-loader.ts';
import type { GroupLoad } from '../groups/registry.ts';
import type { SecureState } from '../https/serve/secure-state.ts';
import type { RateLimiter, Spending } from '../limits/rate-limiter.ts';
import { type Drainable, drain } from './drain.ts';
import { type FromWorker, seal, type ToWorker, unseal } from './messages.ts';

/** What a worker is made of, as far as this file is concerned. */
export interface WorkerParts {
  readonly app: Drainable & {
    /** Answers the request whose operation led to a throw outside of it. */
    failRequestAtHand(thrown: unknown): void;
  };
  readonly groups: {
    loadAll(options: {
      files: readonly string[];
      skip: ReadonlyMap<string, string>;
      onLoading(file: string): void;
    }): Promise<readonly GroupLoad[]>;
    closure(): readonly LoadedFile[];
    find(page: string): unknown;
    /** Lets the controllers close what they hold. Never rejects. */
    dispose(): Promise<void>;
    /** The file must not be touched until it changes. */
    skip(file: string, reason: string): void;
  };
  readonly limiter: Pick<RateLimiter, 'settle'>;
  /** What has been counted since the last time, where anybody wants to know; it goes to the supervisor as it is. */
  takeMetrics?(): unknown;
}

export interface WorkerOptions {
  /** Called when the first load is asked for: a standby worker holds no part of the folder and watches nothing. */
  readonly createParts: (events: {
    /** A brand-new group is about to be imported in place. */
    onImporting(file: string): void;
    onImported(load: GroupLoad, files: readonly LoadedFile[]): void | Promise<void>;
    /** A file was read by an import: of a group that is being loaded, or of an operation that was called. */
    onFile(file: LoadedFile): void;
    /** Callers with a rate limit have called. */
    onSpent(spendings: readonly Spending[]): void;
  }) => WorkerParts | Promise<WorkerParts>;
  /** What can be done before the folder is known, such as registering the TypeScript loader. */
  readonly prepare?: () => void | Promise<void>;
  /** What it needs to serve HTTPS: before it listens, and whenever that changes. */
  readonly onSecure?: (state: SecureState) => void;
  readonly log: Log;
  /** Has every log line on its way; the process ends next. */
  readonly flush: () => void;
  /** Milliseconds: for the day that the supervisor is gone; otherwise it says how long. */
  readonly drainTimeout: number;
}

/** A timer that throws on every tick must not fill the disk. */
const MOST_FAULTS_LOGGED = 20;
const METRICS_INTERVAL = 1000;
/** A supervisor that is stuck does not take the last of them. */
const METRICS_GRACE = 500;
/** The supervisor waits 2 s at most for the others to import a new group; this long for one that is stuck itself. */
const LONGEST_SHARING = 3000;

export async function runWorker({
  createParts,
  prepare,
  onSecure,
  log,
  flush,
  drainTimeout,
}: WorkerOptions): Promise<void> {
  let parts: WorkerParts | undefined;
  let draining = false;
  let faults = 0;
  let isLoaded = false;
  /** Read since the load and not told of yet. */
  let unreported: LoadedFile[] = [];
  /** New groups that answer as soon as every worker has them. */
  const unshared = new Map<string, () => void>();

  // Ctrl-C in a terminal reaches the whole process group. Only the supervisor obeys it; the workers obey the
  // supervisor.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
  // One listener for both: a rejection that nobody handled arrives here, too.
  process.on('uncaughtException', (error, origin) => {
    if (++faults <= MOST_FAULTS_LOGGED) {
      const described = describeError(error);
      log.error('uncaught-exception', { origin, ...placeIn(described.stack), ...described });
    }
    tell({ kind: 'faulty' });
    parts?.app.failRequestAtHand(error);
  });
  // node:cluster would exit at once and drop what is under way.
  if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true;
  process.on('disconnect', () => {
    for (const answer of [...unshared.values()]) answer();
    leave(drainTimeout);
  });
  process.on('message', obey);

  await prepare?.();
  tell({ kind: 'booted' });

  function obey(message: unknown, socket: unknown): void {
    const order = unseal<ToWorker>(message);
    switch (order?.kind) {
      case 'ping':
        return tell({ kind: 'pong' });
      case 'load':
        void load(order.files, new Map(order.skip)).catch((error: unknown) =>
          tell({ kind: 'unfit', reason: messageOf(error) }),
        );
        return;
      case 'import':
        return importGroup(order.group);
      case 'shared':
        return unshared.get(order.group)?.();
      case 'skip':
        return parts?.groups.skip(order.file, order.reason);
      case 'secure':
        return onSecure?.(order.state);
      case 'listen':
        return listen(socket as Server);
      case 'drain':
        return leave(order.timeout, order.acceptFor);
      case 'left':
        return parts?.limiter.settle(order.balances);
      case 'quit':
        return end();
    }
  }

  async function load(files: readonly string[], skip: ReadonlyMap<string, string>): Promise<void> {
    const onLoading = (file: string) => tell({ kind: 'loading', file });
    parts = await createParts({ onImporting: onLoading, onImported, onFile, onSpent });
    const groups = await parts.groups.loadAll({ files, skip, onLoading });
    isLoaded = true;
    tell({ kind: 'loaded', groups, files: parts.groups.closure() });
    if (parts.takeMetrics === undefined) return;
    tellMetrics();
    setInterval(tellMetrics, METRICS_INTERVAL).unref();
  }

  function onSpent(spendings: readonly Spending[]): void {
    tell({ kind: 'spent', spendings });
  }

  function tellMetrics(onSent?: () => void): void {
    tell({ kind: 'metrics', metrics: parts?.takeMetrics?.() }, onSent);
  }

  function importGroup(group: string): void {
    let found: unknown;
    try {
      found = parts?.groups.find(group);
    } catch {
      // It failed before, and its file is still the same.
    }
    if (!(found instanceof Promise)) return tell({ kind: 'nothing-to-import', group });
    // It is reported when it is imported, and logged when it fails; but its file may also be gone by then.
    const done = () => tell({ kind: 'nothing-to-import', group });
    found.then(done, done);
  }

  /** Holds the requests for a new group until every worker has it. */
  function onImported(load: GroupLoad, files: readonly LoadedFile[]): void | Promise<void> {
    tell({ kind: 'imported', group: load, files });
    if (!load.ok || !process.connected) return;
    return new Promise((resolve) => {
      const timer = setTimeout(done, LONGEST_SHARING);
      unshared.set(load.group, done);
      function done(): void {
        clearTimeout(timer);
        unshared.delete(load.group);
        resolve();
      }
    });
  }

  /** What an operation imports when it is called; together, since one import leads to others. */
  function onFile(file: LoadedFile): void {
    if (!isLoaded) return;
    if (unreported.length === 0) {
      setImmediate(() => {
        tell({ kind: 'read', files: unreported });
        unreported = [];
      });
    }
    unreported.push(file);
  }

  /** @param socket the supervisor's, which all workers share */
  function listen(socket: Server): void {
    if (parts === undefined || draining) return tell({ kind: 'listen-failed', code: 'it drains' });
    const { server } = parts.app;
    const failed = (error: NodeJS.ErrnoException) => tell({ kind: 'listen-failed', code: error.code ?? error.message });
    server.once('error', failed);
    try {
      server.listen(socket, BACKLOG, () => {
        server.off('error', failed);
        tell({ kind: 'listening' });
      });
    } catch (error) {
      failed(error as NodeJS.ErrnoException);
    }
  }

  function leave(timeout: number, acceptFor: number | null = null): void {
    if (draining) return;
    draining = true;
    if (parts === undefined) return end();
    drain(parts.app, { timeout, acceptFor, onDrained: end });
  }

  function end(): void {
    if (parts === undefined) exit();
    else void parts.groups.dispose().then(exit);
  }

  function exit(): void {
    flush();
    if (parts?.takeMetrics === undefined || !process.connected) process.exit(0);
    // What was counted since the last time would be lost with the process.
    tellMetrics(() => process.exit(0));
    setTimeout(() => process.exit(0), METRICS_GRACE);
  }
}

/** Connections that wait while every worker is busy, or while there is none; the kernel lowers it to what it allows. */
const BACKLOG = 4096;

function tell(message: FromWorker, onSent: () => void = () => {}): void {
  // The callback takes what would be thrown: a supervisor that is gone is noticed by 'disconnect'.
  process.send?.(seal(message), undefined, {}, () => onSent());
}

/** Of anything that may be thrown: whoever waits for an answer must get one. */
function messageOf(error: unknown): string {
  try {
    return error instanceof Error ? String(error.message) : String(error);
  } catch {
    return 'an error that cannot be described';
  }
}

/** For a throw in a timer there is no request to name. */
function placeIn(stack: unknown): { at?: string } {
  const frame = typeof stack === 'string' ? authorsFrame(stack) : undefined;
  return frame === undefined ? {} : { at: `${frame.file}:${frame.line}` };
}
