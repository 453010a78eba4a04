// One worker as the supervisor sees it: its life from fork to exit, the questions put to it, and the pings that tell
// whether its event loop still turns. Whatever it is asked has an end. It knows nothing of generations, of other
// workers or of the folder.
import type { SendHandle } from 'node:child_process';
import cluster, { type Worker } from 'node:cluster';
import type { BoundSocket } from '../../base/node-internals.ts';
import type { LoadedFile } from '../../groups/module-loader.ts';
import type { GroupLoad } from '../../groups/registry.ts';
import type { Spending } from '../../limits/rate-limiter.ts';
import { type FromWorker, seal, type ToWorker, unseal } from '../../worker/messages.ts';
import { LIMITS, STUCK_AFTER, STUCK_WHILE_LOADING } from './worker-limits.ts';

/**
 * `serving` includes a faulty worker, which goes on until its replacement serves. docs/LIVE.md draws the way through
 * them.
 */
export type WorkerState = 'booting' | 'standby' | 'loading' | 'loaded' | 'serving' | 'draining' | 'gone';

/** Of the folder: file names, and those among them that must not be touched, with the reason. */
export interface LoadOrder {
  readonly files: readonly string[];
  readonly skip: ReadonlyMap<string, string>;
}

export type LoadOutcome =
  | { readonly kind: 'loaded'; readonly groups: readonly GroupLoad[]; readonly files: readonly LoadedFile[] }
  /** It ended before it had loaded; `file` is the controller it was importing. */
  | { readonly kind: 'ended'; readonly file: string | undefined; readonly reason: string };

export type ListenOutcome = 'listening' | { readonly code: string };

export interface Death {
  readonly reason: string;
  /** The state that it was in. */
  readonly during: WorkerState;
  /** Files of new groups that it was importing while it served. */
  readonly importing: readonly string[];
}

export interface WorkerEvents {
  /** It serves no longer, though nobody has told it to stop and it has not died. */
  disconnected(worker: WorkerProcess): void;
  /** It ended, and nobody had told it to. */
  died(worker: WorkerProcess, death: Death): void;
  /** It is gone, for whatever reason; comes last. */
  gone(worker: WorkerProcess): void;
  /** Something was thrown in it outside any request. */
  faulty(worker: WorkerProcess): void;
  imported(worker: WorkerProcess, group: GroupLoad, files: readonly LoadedFile[]): void;
  /** An operation of it imported these when it was called. */
  filesRead(worker: WorkerProcess, files: readonly LoadedFile[]): void;
  /** Callers with a rate limit have called it. */
  spent?(worker: WorkerProcess, spendings: readonly Spending[]): void;
  /** What it has counted; also, and last, when it ends. */
  metrics?(worker: WorkerProcess, metrics: unknown): void;
}

export interface WorkerProcess {
  /** Undefined: the system has refused to start it. */
  readonly pid: number | undefined;
  readonly state: WorkerState;
  /** 0: it has loaded nothing yet. */
  readonly generation: number;
  readonly isFaulty: boolean;
  /** The controller it is importing at the moment, by file name. */
  readonly loadingFile: string | undefined;
  /** Milliseconds that it has been booting, or importing that file. */
  readonly stepAge: number;
  load(generation: number, order: LoadOrder): Promise<LoadOutcome>;
  listen(socket: BoundSocket): Promise<ListenOutcome>;
  /** Imports a new group; resolves when it has, or could not, or is gone, or has taken too long. */
  importGroup(group: string): Promise<void>;
  /** @param acceptFor nobody serves in its place, the service stops: milliseconds that it still accepts */
  drain(timeout: number, acceptFor?: number | null): void;
  /** Ends a worker that holds no connection: politely, and soon after by force. */
  quit(): void;
  kill(reason: string): void;
  send(message: ToWorker): void;
  /** To be called once a second. */
  ping(): void;
}

/** @param drainTimeout milliseconds that it takes to drain when its channel breaks, and it does so of its own accord */
export function createWorkerProcess(worker: Worker, events: WorkerEvents, drainTimeout: number): WorkerProcess {
  let stepSince = performance.now();
  const importing = new Set<string>();
  let unanswered = 0;
  let toldTo: 'drain' | 'quit' | undefined;
  let killedFor: string | undefined;
  let pendingLoad: { order: LoadOrder; resolve: (outcome: LoadOutcome) => void } | undefined;
  let pendingListen: ((outcome: ListenOutcome) => void) | undefined;
  const pendingImports = new Map<string, () => void>();
  /** It is killed when this expires: there is one in every state in which something is waited for. */
  let limit: NodeJS.Timeout | undefined;
  let lastWords: NodeJS.Timeout | undefined;
  let leaving: NodeJS.Timeout | undefined;

  worker.on('message', (message: unknown) => {
    const known = unseal<FromWorker>(message);
    if (known !== undefined) receive(known);
  });
  worker.on('error', (error: NodeJS.ErrnoException) => {
    // A fork that failed has no exit. Any other error is a channel that breaks while we write to it, and that ends in
    // an exit.
    if (worker.process.pid !== undefined) return;
    delete cluster.workers?.[worker.id];
    ended(`the system refused to start it (${error.code ?? error.message})`);
  });
  // What it said last (which file it was loading) may arrive after its exit was noticed: wait for the channel's end,
  // too.
  let ends = 0;
  worker.on('disconnect', () => {
    if (++ends === 2) return ended();
    // Its exit is the next that we hear of, and says why; or it drains, as when its supervisor is gone.
    if (self.state === 'gone' || toldTo !== undefined) return;
    endsWithin(
      LIMITS.end + (self.state === 'serving' ? drainTimeout + LIMITS.dispose : 0),
      'it closed its channel and did not end',
    );
    if (self.state !== 'serving') return;
    self.state = 'draining';
    leaving = setTimeout(() => {
      leaving = undefined;
      events.disconnected(self);
    }, LIMITS.lastWords);
  });
  worker.on('exit', () => {
    if (++ends === 2) return ended();
    // The channel's end may not come at all: a process that a controller started can hold it open.
    lastWords = setTimeout(ended, LIMITS.lastWords);
  });
  endsWithin(LIMITS.step, 'it did not start');

  const self: { -readonly [key in keyof WorkerProcess]: WorkerProcess[key] } = {
    pid: worker.process.pid,
    state: 'booting',
    generation: 0,
    isFaulty: false,
    loadingFile: undefined,
    get stepAge() {
      return performance.now() - stepSince;
    },
    load(number, order) {
      self.generation = number;
      return new Promise((resolve) => {
        pendingLoad = { order, resolve };
        if (self.state === 'standby') startLoading(order);
        else if (self.state === 'gone') ended();
      });
    },
    listen(socket) {
      return new Promise((resolve) => {
        pendingListen = resolve;
        if (self.state === 'gone') return ended();
        endsWithin(LIMITS.listen, 'it did not listen');
        send({ kind: 'listen' }, socket);
      });
    },
    importGroup(group) {
      return new Promise((resolve) => {
        if (self.state === 'gone') return resolve();
        const timer = setTimeout(done, LIMITS.importGroup);
        pendingImports.set(group, done);
        send({ kind: 'import', group });
        function done(): void {
          clearTimeout(timer);
          pendingImports.delete(group);
          resolve();
        }
      });
    },
    drain(timeout, acceptFor = null) {
      if (self.state === 'gone' || toldTo !== undefined) return;
      self.state = 'draining';
      toldTo = 'drain';
      send({ kind: 'drain', timeout, acceptFor });
      endsWithin(timeout + LIMITS.dispose + LIMITS.end, 'it did not drain in time');
    },
    quit() {
      if (self.state === 'gone' || toldTo !== undefined) return;
      const time = self.state === 'loading' ? LIMITS.endWhileLoading : LIMITS.end;
      self.state = 'draining';
      toldTo = 'quit';
      send({ kind: 'quit' });
      clearTimeout(limit);
      limit = setTimeout(() => worker.process.kill('SIGKILL'), time);
    },
    kill,
    send,
    ping() {
      // One that has closed its channel drains, or is about to be gone.
      if (self.state === 'gone' || !worker.isConnected()) return;
      const most = self.state === 'booting' || self.state === 'loading' ? STUCK_WHILE_LOADING : STUCK_AFTER;
      if (unanswered >= most) kill(`its event loop did not turn for ${most} s`);
      unanswered++;
      send({ kind: 'ping' });
    },
  };
  return self;

  function send(message: ToWorker, socket?: BoundSocket): void {
    if (!worker.isConnected()) return;
    worker.send(seal(message), socket as unknown as SendHandle, {}, () => {});
  }

  function endsWithin(time: number, otherwise: string): void {
    clearTimeout(limit);
    limit = setTimeout(kill, time, `${otherwise} within ${time / 1000} s`);
  }

  function startLoading({ files, skip }: LoadOrder): void {
    self.state = 'loading';
    stepSince = performance.now();
    endsWithin(LIMITS.step, 'it did not begin to load');
    send({ kind: 'load', files, skip: [...skip] });
  }

  function receive(message: FromWorker): void {
    switch (message.kind) {
      case 'booted':
        if (self.state !== 'booting') return;
        self.state = 'standby';
        clearTimeout(limit);
        if (pendingLoad !== undefined) startLoading(pendingLoad.order);
        return;
      case 'loading':
        if (self.state !== 'loading') return void importing.add(message.file);
        self.loadingFile = message.file;
        stepSince = performance.now();
        return endsWithin(LIMITS.step, `it did not finish with ${message.file}`);
      case 'load-failed':
        pendingLoad?.resolve({ kind: 'ended', file: undefined, reason: message.reason });
        return self.quit();
      case 'loaded':
        if (self.state !== 'loading') return;
        self.state = 'loaded';
        self.loadingFile = undefined;
        clearTimeout(limit);
        return pendingLoad?.resolve({ kind: 'loaded', groups: message.groups, files: message.files });
      case 'listening':
        if (self.state !== 'loaded') return;
        self.state = 'serving';
        clearTimeout(limit);
        return pendingListen?.('listening');
      case 'listen-failed':
        if (self.state === 'loaded') clearTimeout(limit);
        return pendingListen?.({ code: message.code });
      case 'imported':
        importing.delete(message.group.file);
        events.imported(self, message.group, message.files);
        return pendingImports.get(message.group.group)?.();
      case 'files-read':
        return events.filesRead(self, message.files);
      case 'import-finished':
        return pendingImports.get(message.group)?.();
      case 'faulty':
        if (self.isFaulty) return;
        self.isFaulty = true;
        return events.faulty(self);
      case 'metrics':
        return events.metrics?.(self, message.metrics);
      case 'spent':
        return events.spent?.(self, message.spendings);
      case 'pong':
        unanswered = 0;
    }
  }

  function kill(reason: string): void {
    killedFor ??= reason;
    worker.process.kill('SIGKILL');
  }

  function ended(how: string = howItEnded(worker)): void {
    const wasExpected =
      killedFor === undefined && (toldTo === 'quit' || (toldTo === 'drain' && worker.process.exitCode === 0));
    const reason = killedFor ?? how;
    const during = leaving === undefined ? self.state : 'serving';
    self.state = 'gone';
    clearTimeout(lastWords);
    clearTimeout(leaving);
    if (during !== 'gone' && !wasExpected) events.died(self, { reason, during, importing: [...importing] });
    clearTimeout(limit);
    pendingLoad?.resolve({ kind: 'ended', file: self.loadingFile, reason });
    pendingListen?.({ code: reason });
    for (const done of [...pendingImports.values()]) done();
    if (during !== 'gone') events.gone(self);
  }
}

function howItEnded({ process }: Worker): string {
  return process.signalCode === null
    ? `it ended the process with exit code ${process.exitCode}`
    : `it was ended by ${process.signalCode}`;
}
