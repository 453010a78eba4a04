// One worker as the supervisor sees it: its states from fork to exit, the orders it gets, and the pings that show
// whether its event loop still turns. A worker that takes too long for an order is killed. Only the import of a new
// group is given up without a kill.
import type { SendHandle } from 'node:child_process';
import cluster, { type Worker } from 'node:cluster';
import type { BoundSocket } from '../../../base/node-internals.ts';
import type { Spending } from '../../../callers/limits/rate-limiter.ts';
import type { GroupLoad } from '../../load/group-load.ts';
import type { LoadedFile } from '../../load/module-loader.ts';
import { parseFileName } from '../../load/naming.ts';
import { type FromWorker, seal, type ToWorker, unseal } from '../../worker/messages.ts';
import { LIMITS, MAX_UNANSWERED_PINGS, MAX_UNANSWERED_WHILE_LOADING } from './worker-limits.ts';

/** docs/LIVE.md shows how one state leads to the next. A faulty worker is `serving` until its replacement serves. */
export type WorkerState = 'booting' | 'standby' | 'loading' | 'loaded' | 'serving' | 'draining' | 'gone';

export interface FileSelection {
  /** The file names of the controllers in the folder. */
  readonly files: readonly string[];
  /** The controllers among `files` that the worker must not import: file name → reason. */
  readonly skip: ReadonlyMap<string, string>;
  /** Whether a folder without a service file must not serve, because the service has had such a file. */
  readonly needsService?: boolean;
}

export type LoadOutcome =
  | { readonly kind: 'loaded'; readonly groups: readonly GroupLoad[]; readonly files: readonly LoadedFile[] }
  /**
   * The worker ended, or reported that it cannot load. `file` is the controller that the worker was importing.
   */
  | { readonly kind: 'ended'; readonly file: string | undefined; readonly reason: string };

export type ListenOutcome = 'listening' | { readonly code: string };

export interface Death {
  readonly reason: string;
  /**
   * The state of the worker before its end. A worker that closed its channel while it served, and then ended before
   * `disconnected` was called, counts as `serving`.
   */
  readonly lastState: WorkerState;
  /** Controller files that the worker was importing while it served, one for each new group. */
  readonly importing: readonly string[];
}

export interface WorkerEvents {
  /** The worker closed its channel without an order. So the worker drains, and another one must replace it. */
  disconnected(worker: WorkerHandle): void;
  /** The worker ended without an order, ended with an error while it drained, or was killed. */
  died(worker: WorkerHandle, death: Death): void;
  /** The worker is gone, for any reason. This event comes last. */
  gone(worker: WorkerHandle): void;
  /** Something was thrown in the worker outside any request. */
  faulty(worker: WorkerHandle): void;
  /** A request of the worker names a group whose file came after the load. */
  requested(worker: WorkerHandle, group: string): void;
  /** The worker imported a new group while it served, or failed to import it. */
  importReported(worker: WorkerHandle, group: GroupLoad, files: readonly LoadedFile[]): void;
  /** A call of an API operation made the worker import these files. */
  importedOnCall(worker: WorkerHandle, files: readonly LoadedFile[]): void;
  /** Callers with a rate limit have called the worker. `spendings` says how much of its limit each has used. */
  spent?(worker: WorkerHandle, spendings: readonly Spending[]): void;
  metrics?(worker: WorkerHandle, metrics: unknown): void;
}

export interface WorkerHandle {
  /** The id of the process, or undefined when the system refused to start it. */
  readonly pid: number | undefined;
  readonly state: WorkerState;
  /** The number of the worker's generation (a set of workers that load together), or 0 before the call of `load`. */
  readonly generation: number;
  readonly isFaulty: boolean;
  /** The file name of the controller that the worker is importing. */
  readonly loadingFile: string | undefined;
  /** Milliseconds since the worker began to boot, got the order to load, or last reported that it loads. */
  readonly stepAge: number;
  /** Loads the folder; called once in the life of a worker. */
  load(generation: number, selection: FileSelection): Promise<LoadOutcome>;
  listen(socket: BoundSocket): Promise<ListenOutcome>;
  /**
   * Resolves when the worker has imported the group or has failed to import it; with undefined when there is no such
   * file, when the worker has taken longer than `limit` milliseconds, and when it is gone.
   */
  importGroup(group: string, limit?: number): Promise<GroupLoad | undefined>;
  /**
   * Ends a worker that serves, after its open requests.
   *
   * @param timeout milliseconds for the open requests
   * @param acceptFor milliseconds for which the worker still accepts connections, because no other worker replaces it;
   *   null means that it stops accepting at once
   */
  drain(timeout: number, acceptFor?: number | null): void;
  /** Ends a worker that holds no connection: first by an order, and soon after by a kill. */
  quit(): void;
  kill(reason: string): void;
  send(message: ToWorker): void;
  /** Sends a ping. Called once a second. Kills the worker when too many pings have passed without a message from it. */
  ping(): void;
}

/** @param drainTimeout milliseconds in which a worker that has lost its channel must drain */
export function createWorkerHandle(worker: Worker, events: WorkerEvents, drainTimeout: number): WorkerHandle {
  let stepBegan = performance.now();
  const importing = new Set<string>();
  let unansweredPings = 0;
  let endOrder: 'drain' | 'quit' | undefined;
  let killReason: string | undefined;
  /** The reason why the worker ended; '' before its end. */
  let endReason = '';
  let pendingLoad: { selection: FileSelection; resolve: (outcome: LoadOutcome) => void } | undefined;
  let pendingListen: ((outcome: ListenOutcome) => void) | undefined;
  const pendingImports = new Map<string, (load?: GroupLoad) => void>();
  /** Kills the worker when the time limit of its order (`load`, `listen`, `drain`, `quit`) is over. */
  let limitTimer: NodeJS.Timeout | undefined;
  /** Treats the worker as ended when its channel stays open after its exit. Last messages can arrive before. */
  let lastMessagesTimer: NodeJS.Timeout | undefined;
  /** Reports that the worker disconnected, unless its exit comes first. */
  let disconnectTimer: NodeJS.Timeout | undefined;

  worker.on('message', (message: unknown) => {
    // A controller can send messages of its own, which `unseal` does not return.
    const ownMessage = unseal<FromWorker>(message);
    if (ownMessage !== undefined) receive(ownMessage);
  });
  worker.on('error', (error: NodeJS.ErrnoException) => {
    // A fork that failed has no exit event. Any other error is a broken channel, and an exit event follows.
    if (worker.process.pid !== undefined) return;
    delete cluster.workers?.[worker.id];
    handleEnd(`the system refused to start it (${error.code ?? error.message})`);
  });
  // The last message of the worker, which names the file that it was loading, can arrive after the exit. So the worker
  // has ended when both the exit and the end of the channel have come.
  let endEvents = 0;
  worker.on('disconnect', () => {
    if (++endEvents === 2) return handleEnd();
    // Either the exit of the process follows and gives the reason. Or the process lives on and drains, because a worker
    // without a channel drains as if the supervisor had ended.
    if (self.state === 'gone' || endOrder !== undefined) return;
    const drainTime = self.state === 'serving' ? drainTimeout + LIMITS.dispose : 0;
    killAfter(drainTime + LIMITS.end, 'it closed its channel and did not end');
    if (self.state !== 'serving') return;
    self.state = 'draining';
    disconnectTimer = setTimeout(() => {
      disconnectTimer = undefined;
      events.disconnected(self);
    }, LIMITS.lastMessages);
  });
  worker.on('exit', () => {
    if (++endEvents === 2) return handleEnd();
    // A process that a controller started can hold the channel open, so the end of the channel may never come.
    lastMessagesTimer = setTimeout(handleEnd, LIMITS.lastMessages);
  });
  killAfter(LIMITS.step, 'it did not start');

  const self: { -readonly [key in keyof WorkerHandle]: WorkerHandle[key] } = {
    pid: worker.process.pid,
    state: 'booting',
    generation: 0,
    isFaulty: false,
    loadingFile: undefined,
    get stepAge() {
      return performance.now() - stepBegan;
    },
    load(generation, selection) {
      self.generation = generation;
      return new Promise((resolve) => {
        pendingLoad = { selection, resolve };
        if (self.state === 'standby') startLoading(selection);
        else if (self.state === 'gone') resolvePending();
      });
    },
    listen(socket) {
      return new Promise((resolve) => {
        pendingListen = resolve;
        if (self.state === 'gone') return resolvePending();
        killAfter(LIMITS.listen, 'it did not listen');
        send({ kind: 'listen' }, socket);
      });
    },
    importGroup(group, limit = LIMITS.importGroup) {
      return new Promise((resolve) => {
        if (self.state === 'gone') return resolve(undefined);
        const timer = setTimeout(done, limit);
        pendingImports.set(group, done);
        send({ kind: 'import', group });
        function done(load?: GroupLoad): void {
          clearTimeout(timer);
          pendingImports.delete(group);
          resolve(load);
        }
      });
    },
    drain(timeout, acceptFor = null) {
      if (self.state === 'gone' || endOrder !== undefined) return;
      self.state = 'draining';
      endOrder = 'drain';
      send({ kind: 'drain', timeout, acceptFor });
      killAfter(timeout + LIMITS.dispose + LIMITS.end, 'it did not drain in time');
    },
    quit() {
      if (self.state === 'gone' || endOrder !== undefined) return;
      const limit = self.state === 'loading' ? LIMITS.endWhileLoading : LIMITS.end;
      self.state = 'draining';
      endOrder = 'quit';
      send({ kind: 'quit' });
      clearTimeout(limitTimer);
      // `kill` would report this end, which is expected, as a death.
      limitTimer = setTimeout(() => worker.process.kill('SIGKILL'), limit);
    },
    kill,
    send,
    ping() {
      // A worker without a channel drains, or is about to end. So it gets no ping.
      if (self.state === 'gone' || !worker.isConnected()) return;
      const isLoading = self.state === 'booting' || self.state === 'loading';
      const max = isLoading ? MAX_UNANSWERED_WHILE_LOADING : MAX_UNANSWERED_PINGS;
      if (unansweredPings >= max) kill(`its event loop did not turn for ${max} s`);
      unansweredPings++;
      send({ kind: 'ping' });
    },
  };
  return self;

  function send(message: ToWorker, socket?: BoundSocket): void {
    if (!worker.isConnected()) return;
    worker.send(seal(message), socket as unknown as SendHandle, {}, () => {});
  }

  function killAfter(limit: number, failure: string): void {
    stepBegan = performance.now();
    clearTimeout(limitTimer);
    limitTimer = setTimeout(kill, limit, `${failure} within ${limit / 1000} s`);
  }

  function startLoading({ files, skip, needsService = false }: FileSelection): void {
    self.state = 'loading';
    killAfter(LIMITS.step, 'it did not begin to load');
    send({ kind: 'load', files, skip: [...skip], needsService });
  }

  function receive(message: FromWorker): void {
    // Any message shows that the worker is alive. While it loads, it often starts the next file before it answers a
    // ping.
    unansweredPings = 0;
    switch (message.kind) {
      case 'booted':
        if (self.state !== 'booting') return;
        self.state = 'standby';
        clearTimeout(limitTimer);
        if (pendingLoad !== undefined) startLoading(pendingLoad.selection);
        return;
      case 'loading':
        // A load sends this until the order to quit arrives, and its files are no new groups.
        if (endOrder === 'quit') return;
        if (self.state !== 'loading') return void importing.add(message.file);
        self.loadingFile = message.file;
        return killAfter(LIMITS.step, `it did not finish with ${message.file}`);
      case 'load-failed':
        pendingLoad?.resolve({ kind: 'ended', file: undefined, reason: message.reason });
        return self.quit();
      case 'loaded':
        if (self.state !== 'loading') return;
        self.state = 'loaded';
        self.loadingFile = undefined;
        clearTimeout(limitTimer);
        return pendingLoad?.resolve({ kind: 'loaded', groups: message.groups, files: message.files });
      case 'listening':
        if (self.state !== 'loaded') return;
        self.state = 'serving';
        clearTimeout(limitTimer);
        return pendingListen?.('listening');
      case 'listen-failed':
        if (self.state === 'loaded') clearTimeout(limitTimer);
        return pendingListen?.({ code: message.code });
      case 'requested':
        return events.requested(self, message.group);
      case 'imported':
        // A file that has vanished before its import is not to blame if the worker ends later, either.
        for (const file of importing) if (parseFileName(file)?.group === message.group) importing.delete(file);
        if (message.load !== undefined) events.importReported(self, message.load, message.files);
        return pendingImports.get(message.group)?.(message.load);
      case 'imported-on-call':
        return events.importedOnCall(self, message.files);
      case 'faulty':
        if (self.isFaulty) return;
        self.isFaulty = true;
        return events.faulty(self);
      case 'metrics':
        return events.metrics?.(self, message.metrics);
      case 'spent':
        return events.spent?.(self, message.spendings);
    }
  }

  function kill(reason: string): void {
    killReason ??= reason;
    worker.process.kill('SIGKILL');
  }

  function handleEnd(exitText: string = describeExit(worker)): void {
    // The channel can end after `lastMessagesTimer` has already treated the worker as ended.
    if (self.state === 'gone') return;
    const isExpected =
      killReason === undefined && (endOrder === 'quit' || (endOrder === 'drain' && worker.process.exitCode === 0));
    const reason = killReason ?? exitText;
    endReason = reason;
    const lastState = disconnectTimer === undefined ? self.state : 'serving';
    self.state = 'gone';
    clearTimeout(lastMessagesTimer);
    clearTimeout(disconnectTimer);
    if (!isExpected) events.died(self, { reason, lastState, importing: [...importing] });
    clearTimeout(limitTimer);
    resolvePending();
    events.gone(self);
  }

  function resolvePending(): void {
    pendingLoad?.resolve({ kind: 'ended', file: self.loadingFile, reason: endReason });
    pendingListen?.({ code: endReason });
    for (const resolve of [...pendingImports.values()]) resolve();
  }
}

function describeExit({ process }: Worker): string {
  return process.signalCode === null
    ? `it ended the process with exit code ${process.exitCode}`
    : `it was ended by ${process.signalCode}`;
}
