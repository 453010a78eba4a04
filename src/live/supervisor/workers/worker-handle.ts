// One worker as the supervisor sees it. A worker that takes too long is killed, but not for the import of a group.
import type { SendHandle } from 'node:child_process';
import cluster, { type Worker } from 'node:cluster';
import { asksForInspector, type InspectorAddress } from '../../../base/inspector.ts';
import { CLOCK_FACTOR, cpuTimeOf, LoadClock } from '../../../base/load-clock.ts';
import type { BoundSocket } from '../../../base/node-internals.ts';
import type { Heap, WorkerNote } from '../../../base/worker-note.ts';
import type { FileSelection, GroupLoad } from '../../load/group-load.ts';
import { parseFileName } from '../../load/naming.ts';
import { type FromWorker, seal, type ToWorker, unseal } from '../../worker/messages.ts';
import { describeBlock, describeEnd } from './worker-end.ts';
import type { ListenOutcome, LoadOutcome, WorkerEvents, WorkerState } from './worker-events.ts';
import { LIMITS, MAX_UNANSWERED_PINGS } from './worker-limits.ts';

/** A reason can depend on the heap, which is known at the end of the worker. */
type KillReason = string | ((heap: Heap | undefined) => string);

/** A worker as others see it: they read its state, and only its process and the orders to it change the state. */
export type WorkerHandle = Readonly<Pick<WorkerProcess, keyof WorkerProcess>>;

export class WorkerProcess {
  /** The id of the process, or undefined when the system refused to start it. */
  readonly pid: number | undefined;
  state: WorkerState = 'booting';
  /** The number of the worker's generation, or 0 before the call of `load`. */
  generation = 0;
  isFaulty = false;
  /** Whether a breakpoint may stop the worker, so that no time limit counts. */
  isInspected = asksForInspector();
  loadingFile: string | undefined;
  readonly #worker: Worker;
  readonly #events: WorkerEvents;
  readonly #drainTimeout: number;
  /** Milliseconds of CPU that the load of a file may take. */
  #loadTimeout: number;
  #clock: LoadClock | undefined;
  readonly #note: WorkerNote | undefined;
  #stepBegan = performance.now();
  readonly #importing = new Set<string>();
  #unansweredPings = 0;
  #endOrder: 'drain' | 'quit' | undefined;
  #killReason: KillReason | undefined;
  /** The reason why the worker ended; '' before its end. */
  #endReason = '';
  /** The number of the events of the end, `exit` and `disconnect`, that have come. */
  #endEvents = 0;
  #pendingLoad: { selection: FileSelection; resolve: (outcome: LoadOutcome) => void } | undefined;
  #pendingListen: ((outcome: ListenOutcome) => void) | undefined;
  #pendingInspect: ((url?: string) => void) | undefined;
  readonly #pendingImports = new Map<string, (load?: GroupLoad) => void>();
  /** Kills the worker when the time limit of its order (`load`, `listen`, `drain`, `quit`) is over. */
  #limitTimer: NodeJS.Timeout | undefined;
  /** Treats the worker as ended when its channel stays open after its exit. Last messages can arrive before. */
  #lastMessagesTimer: NodeJS.Timeout | undefined;
  /** Reports that the worker disconnected, unless its exit comes first. */
  #disconnectTimer: NodeJS.Timeout | undefined;

  /** @param drainTimeout milliseconds in which a worker that has lost its channel must drain */
  constructor(worker: Worker, events: WorkerEvents, drainTimeout: number, note?: WorkerNote, loadTimeout = 10_000) {
    this.#loadTimeout = loadTimeout;
    this.#note = note;
    this.pid = worker.process.pid;
    this.#worker = worker;
    this.#events = events;
    this.#drainTimeout = drainTimeout;
    worker.on('message', (message: unknown) => {
      // A controller can send messages of its own, which `unseal` does not return.
      const ownMessage = unseal<FromWorker>(message);
      if (ownMessage !== undefined) this.#receive(ownMessage);
    });
    worker.on('error', (error: NodeJS.ErrnoException) => this.#handleError(error));
    worker.on('disconnect', () => this.#handleDisconnect());
    worker.on('exit', () => this.#handleExit());
    this.#beginStep('it did not start');
  }

  /** Milliseconds since the worker began to boot, got the order to load, or last reported that it loads. */
  get stepAge(): number {
    return performance.now() - this.#stepBegan;
  }

  // Orders to the worker.

  /** Loads the folder; called once in the life of a worker. */
  load(generation: number, selection: FileSelection): Promise<LoadOutcome> {
    this.generation = generation;
    return new Promise((resolve) => {
      this.#pendingLoad = { selection, resolve };
      if (this.state === 'standby') this.#startLoading(selection);
      else if (this.state === 'gone') this.#resolvePending();
    });
  }

  listen(socket: BoundSocket): Promise<ListenOutcome> {
    return new Promise((resolve) => {
      this.#pendingListen = resolve;
      if (this.state === 'gone') return this.#resolvePending();
      this.#killAfter(LIMITS.listen, 'it did not listen');
      this.send({ kind: 'listen' }, socket);
    });
  }

  /** Resolves when the worker has closed its inspector and opened it at `address`. @returns the URL of the inspector */
  inspect(address?: InspectorAddress): Promise<string | undefined> {
    return new Promise((resolve) => {
      this.#pendingInspect = resolve;
      if (this.state === 'gone') return this.#resolvePending();
      this.send({ kind: 'inspect', address });
    });
  }

  /**
   * Resolves when the worker has imported the group or has failed to import it; with undefined when there is no such
   * file, when the worker has taken longer than `limit` milliseconds, and when it is gone.
   */
  importGroup(group: string, limit = LIMITS.importGroup): Promise<GroupLoad | undefined> {
    return new Promise((resolve) => {
      if (this.state === 'gone') return resolve(undefined);
      const done = (load?: GroupLoad) => {
        clearTimeout(timer);
        this.#pendingImports.delete(group);
        resolve(load);
      };
      const timer = setTimeout(() => (this.isInspected ? timer.refresh() : done()), limit);
      this.#pendingImports.set(group, done);
      this.send({ kind: 'import', group });
    });
  }

  /**
   * Ends a worker that serves, after its open requests.
   *
   * @param timeout milliseconds for the open requests
   * @param acceptFor milliseconds for which the worker still accepts connections, because no other worker replaces it;
   *   null means that it stops accepting at once
   */
  drain(timeout: number, acceptFor: number | null = null): void {
    if (this.state === 'gone' || this.#endOrder !== undefined) return;
    this.state = 'draining';
    this.#endOrder = 'drain';
    this.send({ kind: 'drain', timeout, acceptFor });
    this.#killAfter(timeout + LIMITS.dispose + LIMITS.end, 'it did not drain in time');
  }

  /** Ends a worker that holds no connection: first by an order, and soon after by a kill. */
  quit(): void {
    if (this.state === 'gone' || this.#endOrder !== undefined) return;
    const limit = this.state === 'loading' ? LIMITS.endWhileLoading : LIMITS.end;
    this.state = 'draining';
    this.#endOrder = 'quit';
    this.send({ kind: 'quit' });
    clearTimeout(this.#limitTimer);
    // `kill` would report this end, which is expected, as a death.
    this.#limitTimer = setTimeout(() => this.#worker.process.kill('SIGKILL'), limit);
  }

  kill(reason: KillReason): void {
    this.#killReason ??= reason;
    this.#worker.process.kill('SIGKILL');
  }

  /** @param onSent called when the system has taken the message, also when it could not */
  send(message: ToWorker, socket?: BoundSocket, onSent = (): void => {}): void {
    if (this.#worker.isConnected()) this.#worker.send(seal(message), socket as unknown as SendHandle, {}, onSent);
  }

  /** Sends a ping. Called once a second. Kills the worker when too many pings have passed without a message from it. */
  ping(): void {
    // A worker without a channel drains, or is about to end. `quit` has a time limit of its own. Neither gets a ping.
    if (this.state === 'gone' || this.#endOrder === 'quit' || !this.#worker.isConnected()) return;
    const outOfTime = ['booting', 'loading'].includes(this.state) ? this.#clock?.check() : '';
    const count = this.#unansweredPings++;
    if (count >= MAX_UNANSWERED_PINGS && outOfTime !== undefined && !this.isInspected)
      this.kill((heap) => [describeBlock(count, heap), outOfTime].filter(Boolean).join('; '));
    this.send({ kind: 'ping' });
  }

  #startLoading(selection: FileSelection): void {
    this.state = 'loading';
    this.#loadTimeout *= selection.patience ?? 1;
    this.#beginStep('it did not begin to load');
    this.send({ kind: 'load', ...selection, skip: [...selection.skip] });
  }

  /** Begins a step of the boot or the load, which has the time of a file. */
  #beginStep(failure: string): void {
    this.#clock = new LoadClock(this.#loadTimeout, () => cpuTimeOf(this.pid));
    this.#killAfter(CLOCK_FACTOR * this.#loadTimeout + LIMITS.step, failure);
  }

  #killAfter(limit: number, failure: string): void {
    this.#stepBegan = performance.now();
    clearTimeout(this.#limitTimer);
    this.#limitTimer = setTimeout(() => {
      if (this.isInspected && this.#endOrder === undefined) this.#killAfter(limit, failure);
      else this.kill(`${failure} within ${limit / 1000} s`);
    }, limit);
  }

  // Reports of the worker.

  #receive(message: FromWorker): void {
    // Any message shows that the worker is alive. A load often starts the next file before it answers a ping.
    this.#unansweredPings = 0;
    switch (message.kind) {
      case 'booted':
        if (this.state !== 'booting') return;
        this.state = 'standby';
        this.isInspected = message.isInspected === true;
        clearTimeout(this.#limitTimer);
        if (this.#pendingLoad !== undefined) this.#startLoading(this.#pendingLoad.selection);
        return;
      case 'loading':
        // A load sends this until the order to quit arrives, and its files are no new groups.
        if (this.#endOrder === 'quit') return;
        if (this.state !== 'loading') return void this.#importing.add(message.file);
        this.loadingFile = message.file;
        return this.#beginStep(`it did not finish with ${message.file}`);
      case 'load-failed':
        this.#pendingLoad?.resolve({ kind: 'ended', file: undefined, reason: message.reason });
        return this.quit();
      case 'loaded':
        if (this.state !== 'loading') return;
        this.state = 'loaded';
        this.loadingFile = undefined;
        clearTimeout(this.#limitTimer);
        return this.#pendingLoad?.resolve(message);
      case 'listening':
        if (this.state !== 'loaded') return;
        this.state = 'serving';
        clearTimeout(this.#limitTimer);
        return this.#pendingListen?.('listening');
      case 'listen-failed':
        if (this.state === 'loaded') clearTimeout(this.#limitTimer);
        return this.#pendingListen?.({ code: message.code });
      case 'imported':
        // A file that has vanished before its import is not to blame if the worker ends later, either.
        for (const file of this.#importing)
          if (parseFileName(file)?.group === message.group) this.#importing.delete(file);
        if (message.load !== undefined) this.#events.importReported(this, message.load, message.files);
        return this.#pendingImports.get(message.group)?.(message.load);
      case 'faulty':
        if (this.isFaulty) return;
        this.isFaulty = true;
        return this.#events.faulty(this);
      case 'pong':
        this.isInspected = message.isInspected === true;
        return;
      case 'inspected':
        this.isInspected = message.url !== undefined;
        return this.#pendingInspect?.(message.url);
      default:
        return this.#events.received(this, message);
    }
  }

  // The end. The last message of the worker, which names the file that it was loading, can arrive after the exit. So
  // the worker has ended when both the exit and the end of the channel have come.

  #handleError(error: NodeJS.ErrnoException): void {
    // A fork that failed has no exit event. Any other error is a broken channel, and an exit event follows.
    if (this.#worker.process.pid !== undefined) return;
    delete cluster.workers?.[this.#worker.id];
    this.#handleEnd(`the system refused to start it (${error.code ?? error.message})`);
  }

  #handleExit(): void {
    if (++this.#endEvents === 2) return this.#handleEnd();
    // A process that a controller started can hold the channel open, so the end of the channel may never come.
    this.#lastMessagesTimer = setTimeout(() => this.#handleEnd(), LIMITS.lastMessages);
  }

  #handleDisconnect(): void {
    if (++this.#endEvents === 2) return this.#handleEnd();
    // Either the exit of the process follows and gives the reason. Or the process lives on and drains, because a worker
    // without a channel drains as if the supervisor had ended.
    if (this.state === 'gone' || this.#endOrder !== undefined) return;
    const drainTime = this.state === 'serving' ? this.#drainTimeout + LIMITS.dispose : 0;
    this.#killAfter(drainTime + LIMITS.end, 'it closed its channel and did not end');
    if (this.state !== 'serving') return;
    this.state = 'draining';
    this.#disconnectTimer = setTimeout(() => {
      this.#disconnectTimer = undefined;
      this.#events.disconnected(this);
    }, LIMITS.lastMessages);
  }

  #handleEnd(exitText?: string): void {
    // The channel can end after `#lastMessagesTimer` has already treated the worker as ended.
    if (this.state === 'gone') return;
    const isDrained = this.#endOrder === 'drain' && this.#worker.process.exitCode === 0;
    const isExpected = this.#killReason === undefined && (this.#endOrder === 'quit' || isDrained);
    const { request: lastRequest, heap } = this.#note?.take() ?? {};
    const killReason = typeof this.#killReason === 'function' ? this.#killReason(heap) : this.#killReason;
    this.#endReason = killReason ?? exitText ?? describeEnd(this.#worker.process, heap);
    const lastState = this.#disconnectTimer === undefined ? this.state : 'serving';
    this.state = 'gone';
    for (const timer of [this.#lastMessagesTimer, this.#disconnectTimer, this.#limitTimer]) clearTimeout(timer);
    if (!isExpected)
      this.#events.died(this, { reason: this.#endReason, lastState, importing: [...this.#importing], lastRequest });
    this.#resolvePending();
    this.#events.gone(this);
  }

  #resolvePending(): void {
    this.#pendingLoad?.resolve({ kind: 'ended', file: this.loadingFile, reason: this.#endReason });
    this.#pendingListen?.({ code: this.#endReason });
    this.#pendingInspect?.();
    for (const resolve of [...this.#pendingImports.values()]) resolve();
  }
}
