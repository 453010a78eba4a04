// Runs one worker process. The worker loads the folder, listens, drains and ends when the supervisor says so, and
// reports its state back (messages.ts has the messages). This file does not know how the parts of a worker are built.
import cluster from 'node:cluster';
import type { Server } from 'node:net';
import { provideChannels } from '../../base/channel-hub.ts';
import { isInspected, moveInspector } from '../../base/inspector.ts';
import { describeError, type Log } from '../../base/log.ts';
import type { RateLimiter, Spending } from '../../callers/rates/rate-limiter.ts';
import type { LoadedService } from '../../groups/service-file.ts';
import type { SecureState } from '../../operate/https/serve/secure-state.ts';
import type { App } from '../../request/app.ts';
import { keepContextOfMicrotasks } from '../../request/exchange-contexts.ts';
import { ChannelHub } from '../channels/hub.ts';
import { authorsFrame } from '../load/load-error.ts';
import type { LoadedFile } from '../load/module-loader.ts';
import type { Groups } from '../load/registry.ts';
import type { TaskHost, TaskOrder } from '../tasks/task-host.ts';
import { createAdmissions } from './admissions.ts';
import { type Drainable, drain } from './drain.ts';
import { type FromWorker, seal, type ToWorker, unseal } from './messages.ts';
import type { WorkerPartsEvents } from './parts.ts';

export interface RunningParts {
  readonly app: Drainable & Pick<App, 'failCurrentRequest' | 'currentRequestIds' | 'inFlight'>;
  readonly groups: Pick<Groups, 'loadAll' | 'closure' | 'importNew' | 'publishNew' | 'dispose' | 'skip'>;
  readonly limiter: Pick<RateLimiter, 'applyBalances'>;
  service(): LoadedService | undefined;
  /** Takes the counts since the last call, for the supervisor. `takeMetrics` is absent when OPS_PORT is not set. */
  takeMetrics?(): unknown;
  /** Sends buffered data, such as traces, while the controllers are disposed of. Never rejects. */
  finish?(): Promise<void>;
}

export interface WorkerOptions {
  /** Creates the parts. Called at `load`, and not before, because the folder can change while a worker waits for it. */
  readonly createParts: (events: WorkerPartsEvents) => RunningParts | Promise<RunningParts>;
  /** Does work that can be done before `load`, such as registering the TypeScript loader, to make the load faster. */
  readonly prepare?: () => void | Promise<void>;
  /** Called with the certificate and the keys for HTTPS, before the worker listens and whenever they change. */
  readonly onSecure?: (state: SecureState) => void;
  readonly log: Log;
  readonly flush: () => void;
  /** Milliseconds to drain when the supervisor is gone. Otherwise the message `drain` contains the time. */
  readonly drainTimeout: number;
}

/** Maximum number of uncaught exceptions that are logged. A timer that throws on every tick must not fill the disk. */
const MAX_FAULTS_LOGGED = 20;
type LoadOrder = Extract<ToWorker, { readonly kind: 'load' }>;

const METRICS_INTERVAL_MS = 1000;
/** Milliseconds to wait until the last report of the metrics is sent. */
const METRICS_GRACE = 500;

export async function runWorker(options: WorkerOptions): Promise<void> {
  const { createParts, prepare, onSecure, log, flush, drainTimeout } = options;
  let parts: RunningParts | undefined;
  let isDraining = false;
  let faultCount = 0;
  let isLoaded = false;
  /** Files that were read after the load and are not reported to the supervisor yet. */
  const unreportedFiles: LoadedFile[] = [];
  let pendingImports = 0;
  /** Loaded only for a service with `start` or tasks. */
  let tasks: Promise<TaskHost> | undefined;
  let taskHost: TaskHost | undefined;
  /** Made at the first use of a channel. */
  let channels: ChannelHub | undefined;
  provideChannels(async () => {
    channels = new ChannelHub(send);
    return channels;
  });
  const admissions = createAdmissions((group) => send({ kind: 'requested', group }));

  // Ctrl-C in a terminal signals the whole process group. The workers ignore signals and wait for the supervisor.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
  keepContextOfMicrotasks();
  const onFault = (error: unknown, origin: string): void => {
    if (++faultCount <= MAX_FAULTS_LOGGED) {
      const described = describeError(error);
      const ids = parts?.app.currentRequestIds();
      log.error('uncaught-exception', { ...ids, origin, ...authorsLineIn(described.stack), ...described });
    }
    send({ kind: 'faulty' });
    parts?.app.failCurrentRequest(error);
  };
  process.on('uncaughtException', (error, origin) => {
    if (origin === 'uncaughtException') onFault(error, origin);
  });
  // Rejections need a listener of their own. With that of a controller or Sentry alone, Node raises no exception.
  process.on('unhandledRejection', (reason) => onFault(reason, 'unhandledRejection'));
  // Without this flag node:cluster exits on 'disconnect' at once, and requests under way are lost.
  if (cluster.worker !== undefined) cluster.worker.exitedAfterDisconnect = true;
  process.on('disconnect', () => startDraining(drainTimeout));
  process.on('message', handleMessage);

  await prepare?.();
  send({ kind: 'booted', isInspected: isInspected() });

  function handleMessage(envelope: unknown, socket: unknown): void {
    const message = unseal<ToWorker>(envelope);
    switch (message?.kind) {
      case 'ping':
        return send({ kind: 'pong', isInspected: isInspected() });
      case 'inspect':
        return send({ kind: 'inspected', url: moveInspector(message.address) });
      case 'load':
        void load(message).catch((error: unknown) => send({ kind: 'load-failed', reason: describeError(error).error }));
        return;
      case 'import':
        return void importNew(message.group);
      case 'admitted':
        parts?.groups.publishNew(message.group);
        return admissions.settle(message.group, 'admitted');
      case 'withheld':
        return admissions.settle(message.group, message.answer);
      case 'generation':
        return admissions.setGeneration(message.state);
      case 'skip':
        return parts?.groups.skip(message.file, message.reason);
      case 'secure':
        return onSecure?.(message.state);
      case 'listen':
        return listen(socket as Server);
      case 'start':
      case 'run-task':
      case 'hold-task':
        return void receiveTask(message);
      case 'channel-opened':
      case 'channel-events':
      case 'channel-published':
        return channels?.receive(message);
      case 'drain':
        return startDraining(message.timeout, message.acceptFor);
      case 'balances':
        return parts?.limiter.applyBalances(message.balances);
      case 'quit':
        return disposeAndExit();
    }
  }

  async function load({ kind, skip, ...selection }: LoadOrder): Promise<void> {
    const sendLoading = (file: string) => send({ kind: 'loading', file });
    const onSpent = (spendings: readonly Spending[]) => send({ kind: 'spent', spendings });
    parts = await createParts({ admissions, onImporting: sendLoading, onFile, onSpent });
    const groups = await parts.groups.loadAll({ ...selection, skip: new Map(skip), onLoading: sendLoading });
    const { start, background } = parts.service() ?? {};
    // A package manager may replace the files of Gatefold before the first order.
    if (start !== undefined || background !== undefined) await prepareTasks();
    isLoaded = true;
    send({ kind: 'loaded', groups, files: parts.groups.closure() });
    if (parts.takeMetrics === undefined) return;
    sendMetrics();
    setInterval(sendMetrics, METRICS_INTERVAL_MS).unref();
  }

  function prepareTasks(): Promise<TaskHost> {
    tasks ??= import('../tasks/task-host.ts').then(({ createTaskHost }) =>
      createTaskHost({ ...parts?.service(), log, send, onStuck: () => send({ kind: 'faulty' }) }),
    );
    return tasks;
  }

  async function receiveTask(order: TaskOrder): Promise<void> {
    taskHost = await prepareTasks();
    if (isDraining) taskHost.drain();
    taskHost.receive(order);
  }

  function sendMetrics(onSent?: () => void): void {
    send({ kind: 'metrics', metrics: parts?.takeMetrics?.() }, onSent);
  }

  /** Imports a new group, and reports the outcome. The group then waits for `admitted`. */
  async function importNew(group: string): Promise<void> {
    pendingImports++;
    const load = await parts?.groups.importNew(group);
    pendingImports--;
    send({ kind: 'imported', group, load, files: unreportedFiles.splice(0) });
  }

  /**
   * Reports files that are imported when an operation is called. One import leads to others, so all files of one turn
   * of the event loop are reported together. While a new group is imported, its report has them: the import can read a
   * file several times, because the file is still being written.
   */
  function onFile(file: LoadedFile): void {
    if (!isLoaded) return;
    if (unreportedFiles.length === 0) {
      setImmediate(() => {
        const files = pendingImports > 0 ? [] : unreportedFiles.splice(0);
        if (files.length > 0) send({ kind: 'imported-on-call', files });
      });
    }
    unreportedFiles.push(file);
  }

  function listen(socket: Server): void {
    if (parts === undefined || isDraining) return;
    const { server } = parts.app;
    const fail = (error: NodeJS.ErrnoException) => send({ kind: 'listen-failed', code: error.code ?? error.message });
    server.once('error', fail);
    server.listen(socket, BACKLOG, () => {
      server.off('error', fail);
      send({ kind: 'listening' });
    });
  }

  function startDraining(timeout: number, acceptFor: number | null = null): void {
    if (isDraining) return;
    isDraining = true;
    admissions.close();
    if (parts === undefined) return disposeAndExit();
    taskHost?.drain();
    const { app } = parts;
    // A request that is in flight without a connection is an operation whose client has left.
    const pendingWork = () => app.inFlight() + app.pendingWork() + (taskHost?.pending() ?? 0);
    drain({ ...app, pendingWork }, { timeout, acceptFor, onDrained: disposeAndExit });
  }

  /** Ends the process. The supervisor kills a worker that is still there after its time limit. */
  function disposeAndExit(): void {
    if (parts === undefined) exit();
    else void Promise.all([parts.groups.dispose(taskHost?.finish()), parts.finish?.()]).then(exit);
  }

  function exit(): void {
    flush();
    // Node waits for a debugger to leave before a process ends.
    moveInspector();
    if (parts?.takeMetrics === undefined || !process.connected) process.exit(0);
    // Otherwise the counts since the last report would be lost.
    sendMetrics(() => process.exit(0));
    setTimeout(() => process.exit(0), METRICS_GRACE);
  }
}

/** Connections that wait in the kernel while all workers are busy. A lower `net.core.somaxconn` lowers the number. */
const BACKLOG = 4096;

function send(message: FromWorker, onSent: () => void = () => {}): void {
  // With a callback, send() does not throw when the supervisor is gone. 'disconnect' handles that case.
  process.send?.(seal(message), undefined, {}, () => onSent());
}

/** Finds the author's line in a stack. An exception in a timer belongs to no request, so only this line helps. */
function authorsLineIn(stack: unknown): { at?: string } {
  const frame = typeof stack === 'string' ? authorsFrame(stack) : undefined;
  return frame === undefined ? {} : { at: `${frame.file}:${frame.line}` };
}
