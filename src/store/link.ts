// The supervisor's side of the store, the PostgreSQL database whose rows several machines share:
// - starts the store-host, the process that talks to the store, and starts it again when it ends
// - passes calls of workers on to the store-host
// - sends workers a message when they must read the table again, and when the table becomes too old
import { type ChildProcess, fork } from 'node:child_process';
import cluster, { type Worker } from 'node:cluster';
import type { Log } from '../base/log.ts';
import type { Answer, FromHost, HostState, Request, ToWorkerStore, WorkerCall } from './messages.ts';
import type { Spending } from './store.ts';

export interface StoreStatus {
  readonly state: HostState;
  /** Seconds since the store last confirmed that this machine's table is complete; null when it never did. */
  readonly ageSeconds: number | null;
  /** Whether the age is more than the setting STORE_MAX_AGE. */
  readonly isTooOld: boolean;
  readonly hostRestarts: number;
}

export interface SharedStore {
  /**
   * Resolves when workers have a table to read.
   *
   * @throws Error with a message of one line, when the store cannot work until somebody changes something
   */
  start(): Promise<void>;
  status(): StoreStatus;
  /** Spends tokens of rate limits. @returns the tokens that are left; undefined when the store cannot be used */
  spend(spendings: readonly Spending[]): Promise<readonly number[] | undefined>;
  /** Returns the number of machines that share the rate limits. */
  machines(): number;
  close(): void;
}

export interface SharedStoreOptions {
  /** The path of the store-host's script. */
  readonly exec: string;
  /** The arguments of the script. */
  readonly args: readonly string[];
  /** The value of the setting STORE_MAX_AGE, in milliseconds. */
  readonly maxAge: number;
  readonly log: Log;
  /** Writes a line of the store-host to the log. */
  readonly writeLine: (line: string) => void;
}

/**
 * The time limit of a look (a query for changes), in milliseconds. A request whose credential is not in the table waits
 * for a look, because the credential may be new.
 */
const LOOK_TIMEOUT_MS = 1000;
/** Minimum milliseconds between the beginnings of two looks. */
const MIN_LOOK_INTERVAL_MS = 100;
/** The time limit of any other call of a worker, in milliseconds. The store-host itself gives up earlier. */
const CALL_TIMEOUT_MS = 15_000;
/** The time limit for spending tokens, in milliseconds. */
const SPEND_TIMEOUT_MS = 1000;
/**
 * Milliseconds without a message after which the store counts as away. Normally, the store-host sends a message after
 * each of its own looks, so about every second.
 */
const MAX_SILENCE_MS = 5000;
/** Milliseconds before the store-host is started again. */
const RESTART_PAUSE_MS = 500;
/** Milliseconds before the store-host is started again when somebody must first change something. */
const FINAL_RESTART_PAUSE_MS = 10_000;
/** Maximum characters of the store-host's standard error that are logged, from the end. */
const MAX_ERROR_LENGTH = 2000;

const INITIAL_STATE: HostState = {
  ...{ away: 'the store-host starts', isFinal: false, hasTable: false, age: null, rows: 0 },
  ...{ machines: 1, looks: 0, fullReads: 0, missedBells: 0 },
};

export function createSharedStore({ exec, args, maxAge, log, writeLine }: SharedStoreOptions): SharedStore {
  let host: ChildProcess | undefined;
  let state = INITIAL_STATE;
  let stateReceivedAt = performance.now();
  let wasTooOld = false;
  let hostRestarts = 0;
  let isClosed = false;
  let nextCall = 0;
  const calls = new Map<number, (answer: Answer) => void>();
  let starting: { resolve: () => void; reject: (error: Error) => void } | undefined;
  let nextLook: Promise<unknown> | undefined;
  let lookBeganAt = Number.NEGATIVE_INFINITY;
  let ageTimer: NodeJS.Timeout | undefined;

  function startHost(): void {
    const child = fork(exec, [...args], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
    host = child;
    let errors = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      errors = (errors + text).slice(-MAX_ERROR_LENGTH);
    });
    child.on('error', () => {});
    child.on('message', (message: FromHost) => receive(message));
    child.on('exit', (code, signal) => {
      if (host !== child || isClosed) return;
      host = undefined;
      hostRestarts++;
      setState({ ...state, age: tableAge(), away: 'the store-host has ended' });
      for (const resolve of [...calls.values()]) resolve({ error: 'the store-host has ended' });
      log.error('store-host-exited', { code, signal, error: errors.trim() });
      setTimeout(startHost, state.isFinal ? FINAL_RESTART_PAUSE_MS : RESTART_PAUSE_MS);
    });
  }

  function receive(message: FromHost): void {
    switch (message.kind) {
      case 'answer':
        return calls.get(message.call)?.(message.answer);
      case 'log':
        return writeLine(message.line);
      case 'published':
        return broadcast();
      case 'state':
        return setState(message.state);
      case 'failed':
        log.error('store-unusable', { reason: message.reason });
        starting?.reject(new Error(message.reason));
        return setState({ ...state, away: message.reason, isFinal: true });
    }
  }

  function setState(next: HostState): void {
    state = next;
    stateReceivedAt = performance.now();
    if (isTooOld() !== wasTooOld) checkAge();
    if (state.hasTable) starting?.resolve();
    else if (state.isFinal) starting?.reject(new Error(`STORE: ${state.away}`));
  }

  function tableAge(): number | null {
    return state.age === null ? null : state.age + performance.now() - stateReceivedAt;
  }

  function isTooOld(): boolean {
    return (tableAge() ?? Number.POSITIVE_INFINITY) > maxAge && maxAge !== Number.POSITIVE_INFINITY;
  }

  function checkAge(): void {
    if (isTooOld() === wasTooOld) return;
    wasTooOld = !wasTooOld;
    // Without a table, no worker has started, so no credential is refused.
    if (wasTooOld && state.hasTable)
      log.error('store-too-old', { effect: 'credentials are refused with 503 STORE_AWAY' });
    broadcast();
  }

  function isAway(): boolean {
    return host === undefined || state.away !== null || performance.now() - stateReceivedAt > MAX_SILENCE_MS;
  }

  function call(request: Request, timeout: number): Promise<Answer> {
    if (host === undefined) return Promise.resolve({ error: 'the store-host has ended' });
    const callNumber = ++nextCall;
    return new Promise((resolve) => {
      const timer = setTimeout(finish, timeout, { error: 'the store has not answered in time' });
      calls.set(callNumber, finish);
      host?.send({ call: callNumber, request }, () => {});
      function finish(answer: Answer): void {
        clearTimeout(timer);
        calls.delete(callNumber);
        resolve(answer);
      }
    });
  }

  /** Makes a look, at most ten times a second. All calls until the beginning of the next look share this look. */
  function lookForChanges(): Promise<unknown> {
    if (nextLook !== undefined) return nextLook;
    const pause = Math.max(0, lookBeganAt + MIN_LOOK_INTERVAL_MS - performance.now());
    lookBeganAt = performance.now() + pause;
    const begin = () => {
      nextLook = undefined;
      return call({ kind: 'look' }, LOOK_TIMEOUT_MS);
    };
    if (pause === 0) return begin();
    nextLook = new Promise<void>((resolve) => setTimeout(resolve, pause)).then(begin);
    return nextLook;
  }

  async function answerWorker(request: Request): Promise<Answer> {
    if (isAway()) return { error: `The store is away: ${state.away ?? 'it does not answer'}` };
    if (request.kind !== 'look') return call(request, CALL_TIMEOUT_MS);
    await lookForChanges();
    return {};
  }

  function onMessage(worker: Worker, message: unknown): void {
    const workerCall = (message as { gatefold?: WorkerCall } | null)?.gatefold;
    if (workerCall?.kind !== 'store') return;
    send(worker, { kind: 'store', isTooOld: isTooOld() });
    void answerWorker(workerCall.request).then((answer) =>
      send(worker, { kind: 'store', call: workerCall.call, answer }),
    );
  }

  function broadcast(): void {
    for (const worker of Object.values(cluster.workers ?? {}))
      if (worker !== undefined) send(worker, { kind: 'store', isTooOld: isTooOld() });
  }

  return {
    async start() {
      cluster.on('message', onMessage);
      ageTimer = setInterval(checkAge, 1000);
      ageTimer.unref();
      await new Promise<void>((resolve, reject) => {
        starting = { resolve, reject };
        startHost();
      }).finally(() => {
        starting = undefined;
      });
    },
    status() {
      const milliseconds = tableAge();
      const away = state.away ?? (isAway() ? 'the store-host does not answer' : null);
      return {
        state: { ...state, away },
        ageSeconds: milliseconds === null ? null : Math.round(milliseconds / 100) / 10,
        isTooOld: isTooOld(),
        hostRestarts,
      };
    },
    async spend(spendings) {
      return isAway() ? undefined : (await call({ kind: 'spend', spendings }, SPEND_TIMEOUT_MS)).tokens;
    },
    machines: () => state.machines,
    close() {
      isClosed = true;
      clearInterval(ageTimer);
      host?.disconnect();
    },
  };
}

function send(worker: Worker, message: ToWorkerStore): void {
  if (worker.isConnected()) worker.send({ gatefold: message }, undefined, {}, () => {});
}
