// One worker as the supervisor sees it: its life from fork to exit, the questions put to it, and the pings that tell
// whether its event loop still turns. It knows nothing of generations, of other workers or of the folder.
import type { Worker } from 'node:cluster';
import type { Server } from 'node:net';
import { type FromWorker, type GroupLoad, type LoadedFile, parseFromWorker, type ToWorker } from '../worker/messages.ts';

/** `serving` includes a faulty worker, which goes on until its replacement serves; `lost` has served, and is about to be gone. */
export type WorkerState = 'booting' | 'standby' | 'loading' | 'loaded' | 'serving' | 'lost' | 'draining' | 'gone';

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

export interface WorkerEvents {
  /** Its channel is closed, and with it, if it was the last, the socket that workers share. */
  lost(worker: WorkerProcess): void;
  /** It has the connection that was sent to it. */
  took(worker: WorkerProcess): void;
  /** It ended, and nobody had told it to. */
  died(worker: WorkerProcess, reason: string): void;
  /** It is gone, for whatever reason; comes last. */
  gone(worker: WorkerProcess): void;
  /** Something was thrown in it outside any request. */
  faulty(worker: WorkerProcess): void;
  imported(worker: WorkerProcess, group: GroupLoad, files: readonly LoadedFile[]): void;
  /** An operation of it imported these when it was called. */
  read(worker: WorkerProcess, files: readonly LoadedFile[]): void;
  /** It was told to import a group that it has already, or cannot have. */
  nothingToImport(worker: WorkerProcess, group: string): void;
  /** What it has counted; also, and last, when it ends. */
  metrics?(worker: WorkerProcess, metrics: unknown): void;
}

export interface WorkerProcess {
  readonly id: number;
  readonly pid: number | undefined;
  readonly state: WorkerState;
  readonly generation: number;
  readonly isFaulty: boolean;
  /** The controller it is importing at the moment, by file name. */
  readonly loadingFile: string | undefined;
  /** Milliseconds that it has been importing that file. */
  readonly loadingFor: number;
  readonly servingSince: number;
  load(generation: number, order: LoadOrder): Promise<LoadOutcome>;
  /** @param server the socket to accept on, where this process holds it; else node:cluster has one for all workers */
  listen(port: number, host: string | undefined, server?: Server): Promise<ListenOutcome>;
  /** @param acceptFor nobody serves in its place, the service stops: milliseconds that it still accepts */
  drain(timeout: number, acceptFor?: number | null): void;
  /** Ends a worker that holds no connection: politely, and soon after by force. */
  quit(): void;
  kill(reason: string): void;
  send(message: ToWorker, handle?: Parameters<Worker['send']>[1]): void;
  /** To be called once a second. */
  ping(): void;
}

/** Unanswered pings in a row, each counted at a tick of ours, so that a machine that was suspended kills nobody. */
const STUCK_AFTER = 5;
/** Starting a process and compiling controllers block the event loop for longer than serving ever may. */
const STUCK_WHILE_LOADING = 10;
/** What a worker that was told to end may take for it. */
const GRACE = 2000;
/** What its last messages may take to arrive after its exit. */
const LAST_WORDS = 200;

export function createWorkerProcess(worker: Worker, events: WorkerEvents, now: () => number = () => performance.now()): WorkerProcess {
  let state: WorkerState = 'booting';
  let generation = 0;
  let isFaulty = false;
  let loadingFile: string | undefined;
  let loadingSince = 0;
  let servingSince = 0;
  let unanswered = 0;
  let isQuitting = false;
  let killedFor: string | undefined;
  let pendingLoad: { order: LoadOrder; resolve: (outcome: LoadOutcome) => void } | undefined;
  let pendingListen: ((outcome: ListenOutcome) => void) | undefined;
  let forced: NodeJS.Timeout | undefined;

  worker.on('message', (message: unknown) => {
    const known = parseFromWorker(message);
    if (known !== undefined) receive(known);
  });
  // A channel that breaks while we write to it ends in an exit, which is what counts.
  worker.on('error', () => {});
  // What it said last (which file it was loading) may arrive after its exit was noticed: wait for the channel's end, too.
  let ends = 0;
  worker.on('disconnect', () => {
    lost();
    if (++ends === 2) ended();
  });
  worker.on('exit', () => {
    lost();
    if (++ends === 2) return ended();
    // The channel's end may not come at all: a process that a controller started can hold it open.
    clearTimeout(forced);
    forced = setTimeout(ended, LAST_WORDS);
  });

  const self: WorkerProcess = {
    id: worker.id,
    pid: worker.process.pid,
    get state() {
      return state;
    },
    get generation() {
      return generation;
    },
    get isFaulty() {
      return isFaulty;
    },
    get loadingFile() {
      return loadingFile;
    },
    get loadingFor() {
      return loadingFile === undefined ? 0 : now() - loadingSince;
    },
    get servingSince() {
      return servingSince;
    },
    load(number, order) {
      generation = number;
      return new Promise((resolve) => {
        pendingLoad = { order, resolve };
        if (state === 'standby') startLoading(order);
        else if (state === 'gone') ended();
      });
    },
    listen(port, host, server) {
      return new Promise((resolve) => {
        pendingListen = resolve;
        if (state === 'gone') ended();
        else send({ kind: 'listen', port, host }, server);
      });
    },
    drain(timeout, acceptFor = null) {
      if (state === 'gone' || state === 'draining') return;
      state = 'draining';
      send({ kind: 'drain', timeout, acceptFor });
      forced = setTimeout(kill, timeout + GRACE, 'it did not drain in time');
    },
    quit() {
      if (state === 'gone' || state === 'draining') return;
      // One that is importing may be in an endless loop, and would keep a core busy for nothing.
      const grace = state === 'loading' ? GRACE / 10 : GRACE;
      state = 'draining';
      isQuitting = true;
      send({ kind: 'quit' });
      forced = setTimeout(() => worker.process.kill('SIGKILL'), grace);
    },
    kill,
    send,
    ping() {
      // One that closes the port has hung up, and drains.
      if (state === 'gone' || !worker.isConnected()) return;
      const limit = state === 'booting' || state === 'loading' ? STUCK_WHILE_LOADING : STUCK_AFTER;
      if (unanswered >= limit) kill(`its event loop did not turn for ${limit} s`);
      unanswered++;
      send({ kind: 'ping' });
    },
  };
  return self;

  function send(message: ToWorker, handle?: Parameters<Worker['send']>[1]): void {
    if (!worker.isConnected()) return;
    // Whoever sends a socket closes it: Node leaves it open for good when the worker dies before it has arrived.
    worker.send(message, handle, { keepOpen: true }, () => {});
  }

  function lost(): void {
    if (state !== 'serving') return;
    state = 'lost';
    events.lost(self);
  }

  function startLoading({ files, skip }: LoadOrder): void {
    state = 'loading';
    send({ kind: 'load', generation, files, skip: [...skip] });
  }

  function receive(message: FromWorker): void {
    switch (message.kind) {
      case 'booted':
        if (state !== 'booting') return;
        state = 'standby';
        if (pendingLoad !== undefined) startLoading(pendingLoad.order);
        return;
      case 'loading':
        loadingFile = message.file;
        loadingSince = now();
        return;
      case 'unfit':
        pendingLoad?.resolve({ kind: 'ended', file: undefined, reason: message.reason });
        pendingLoad = undefined;
        return self.quit();
      case 'loaded':
        if (state !== 'loading') return;
        state = 'loaded';
        loadingFile = undefined;
        pendingLoad?.resolve({ kind: 'loaded', groups: message.groups, files: message.files });
        pendingLoad = undefined;
        return;
      case 'listening':
        if (state !== 'loaded') return;
        state = 'serving';
        servingSince = now();
        pendingListen?.('listening');
        pendingListen = undefined;
        return;
      case 'took':
        events.took(self);
        return;
      case 'listen-failed':
        pendingListen?.({ code: message.code });
        pendingListen = undefined;
        return;
      case 'imported':
        events.imported(self, message.group, message.files);
        return;
      case 'read':
        events.read(self, message.files);
        return;
      case 'nothing-to-import':
        events.nothingToImport(self, message.group);
        return;
      case 'faulty':
        if (isFaulty) return;
        isFaulty = true;
        events.faulty(self);
        return;
      case 'metrics':
        events.metrics?.(self, message.metrics);
        return;
      case 'pong':
        unanswered = 0;
        return;
    }
  }

  function kill(reason: string): void {
    killedFor ??= reason;
    worker.process.kill('SIGKILL');
  }

  function ended(): void {
    const wasExpected = state === 'draining' && killedFor === undefined && (isQuitting || worker.process.exitCode === 0);
    const reason = killedFor ?? howItEnded(worker);
    if (state !== 'gone' && !wasExpected) events.died(self, reason);
    const isNew = state !== 'gone';
    state = 'gone';
    clearTimeout(forced);
    pendingLoad?.resolve({ kind: 'ended', file: loadingFile, reason });
    pendingListen?.({ code: reason });
    pendingLoad = pendingListen = undefined;
    if (isNew) events.gone(self);
  }
}

function howItEnded({ process }: Worker): string {
  return process.signalCode === null ? `it ended the process with exit code ${process.exitCode}` : `it was ended by ${process.signalCode}`;
}
