// The supervisor's side of the store, the PostgreSQL database whose rows several machines share:
// - starts the store-host, the process that talks to the store, and starts it again when it ends
// - passes calls of workers on to the store-host
// - notifies the workers when the store-host has written a file that they read, and when the credentials table becomes
//   too old or is no longer too old. In each case, the notice is the same: read the files again, and keep `isTooOld`
import { type ChildProcess, fork } from 'node:child_process';
import cluster, { type Worker } from 'node:cluster';
import { describeFailure } from '../base/failure.ts';
import type { Log } from '../base/log.ts';
import type { Answer, FromHost, HostState, Request, ToWorkerStore, WorkerCall } from './messages.ts';
import type { Spending } from './store.ts';

export interface StoreStatus {
  readonly state: HostState;
  /** Seconds since the copy of the table on this machine was last proven complete; null when it never was. */
  readonly ageSeconds: number | null;
  /** Whether the age is more than the setting STORE_MAX_AGE. */
  readonly isTooOld: boolean;
  readonly hostRestarts: number;
}

export interface SharedStore {
  /**
   * Starts the store-host, and resolves when workers have a table to read.
   *
   * @throws Error with a message of one line, when there is no table, or no store-host, until an operator changes
   *   something
   */
  start(): Promise<void>;
  status(): StoreStatus;
  /** Spends tokens of rate limits. @returns the tokens left, in the same order; undefined when the store is away */
  spend(spendings: readonly Spending[]): Promise<readonly number[] | undefined>;
  /** Returns how many machines share the rate limits, including this one. */
  machines(): number;
  close(): void;
}

export interface SharedStoreOptions {
  /** The path of the store-host's script. */
  readonly scriptPath: string;
  readonly scriptArguments: readonly string[];
  /** The value of the setting STORE_MAX_AGE, in milliseconds; infinite for `off`. */
  readonly maxAge: number;
  readonly log: Log;
  /** Writes a line of the store-host to the log. */
  readonly writeLine: (line: string) => void;
}

/**
 * The time limit of a look (a query for changes), in milliseconds. The limit is short, because a request whose
 * credential is not in the table waits for a look: the credential may be new.
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
/** Milliseconds from the end of the store-host to its next start. */
const RESTART_PAUSE_MS = 500;
/** The same pause while an operator must change something first, such as a password. */
const OPERATOR_RESTART_PAUSE_MS = 10_000;
/** Maximum characters of the store-host's standard error that are logged, from the end. */
const MAX_ERROR_LENGTH = 2000;

const INITIAL_STATE: HostState = {
  ...{ awayReason: 'the store-host starts', needsOperator: false, hasTable: false, age: null, rows: 0 },
  ...{ machines: 1, looks: 0, fullReads: 0, missedBells: 0 },
};

export function createSharedStore(options: SharedStoreOptions): SharedStore {
  const { scriptPath, scriptArguments, maxAge, log, writeLine } = options;
  let host: ChildProcess | undefined;
  let state = INITIAL_STATE;
  let stateReceivedAt = performance.now();
  /** The last result of `isTooOld` that the workers have got. */
  let wasTooOld = false;
  let hostRestarts = 0;
  let lastCallNumber = 0;
  /** The number of a call → the function that ends it. */
  const calls = new Map<number, (answer: Answer) => void>();
  let pendingStart: { resolve: () => void; reject: (error: Error) => void } | undefined;
  /** The look that is to begin at `lookBeginsAt`; undefined when no look waits. */
  let waitingLook: Promise<Answer> | undefined;
  /** When the latest look began or is to begin. */
  let lookBeginsAt = Number.NEGATIVE_INFINITY;
  let ageTimer: NodeJS.Timeout | undefined;
  let restartTimer: NodeJS.Timeout | undefined;

  function startHost(): void {
    try {
      watchHost(fork(scriptPath, [...scriptArguments], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] }));
    } catch (error) {
      restartHost(null, null, describeFailure(error));
    }
  }

  function watchHost(child: ChildProcess): void {
    host = child;
    let errorText = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      errorText = (errorText + text).slice(-MAX_ERROR_LENGTH);
    });
    child.on('message', (message: FromHost) => receive(message));
    // When the system cannot start the process, this event has the reason. Then `close` is emitted, but not `exit`.
    child.on('error', (error) => {
      errorText = describeFailure(error);
    });
    // When a process ends, `exit` can be emitted before its last message and the end of its standard error are read.
    child.on('close', (code, signal) => {
      if (host === child) restartHost(code, signal, errorText.trim());
    });
  }

  /** Starts the store-host again after a pause, because it has ended or could not be started. */
  function restartHost(code: number | null, signal: string | null, error: string): void {
    host = undefined;
    hostRestarts++;
    setAway('the store-host has ended', state.needsOperator);
    for (const finish of [...calls.values()]) finish({ error: 'the store-host has ended' });
    log.error('store-host-exited', { code, signal, error });
    restartTimer = setTimeout(startHost, state.needsOperator ? OPERATOR_RESTART_PAUSE_MS : RESTART_PAUSE_MS);
  }

  function receive(message: FromHost): void {
    switch (message.kind) {
      case 'answer':
        return calls.get(message.call)?.(message.answer);
      case 'log':
        return writeLine(message.line);
      case 'files-changed':
        return notifyWorkers();
      case 'state':
        return setState(message.state);
      case 'failed':
        log.error('store-unusable', { reason: message.reason });
        pendingStart?.reject(new Error(message.reason));
        return setAway(message.reason, true);
    }
  }

  /** Sets the state of a store that cannot be used. The table gets older meanwhile, so its age is computed anew. */
  function setAway(awayReason: string, needsOperator: boolean): void {
    setState({ ...state, age: tableAge(), awayReason, needsOperator });
  }

  function setState(next: HostState): void {
    state = next;
    stateReceivedAt = performance.now();
    updateTooOld();
    if (state.hasTable) pendingStart?.resolve();
    else if (state.needsOperator) pendingStart?.reject(new Error(`STORE: ${state.awayReason}`));
  }

  /** @returns milliseconds; null when the table was never complete */
  function tableAge(): number | null {
    return state.age === null ? null : state.age + performance.now() - stateReceivedAt;
  }

  function isTooOld(): boolean {
    return (tableAge() ?? Number.POSITIVE_INFINITY) > maxAge;
  }

  /** Notifies the workers when the table has become too old, or is no longer too old. */
  function updateTooOld(): void {
    if (isTooOld() === wasTooOld) return;
    wasTooOld = !wasTooOld;
    // Without a table, no worker has started, so no credential is refused, and nothing is logged.
    if (wasTooOld && state.hasTable)
      log.error('store-too-old', { effect: 'credentials are refused with 503 STORE_AWAY' });
    notifyWorkers();
  }

  function isAway(): boolean {
    return host === undefined || state.awayReason !== null || performance.now() - stateReceivedAt > MAX_SILENCE_MS;
  }

  /** Calls the store-host. Never rejects: without an answer in `timeout` milliseconds, the answer is an error. */
  function call(request: Request, timeout: number): Promise<Answer> {
    if (host === undefined) return Promise.resolve({ error: 'the store-host has ended' });
    const callNumber = ++lastCallNumber;
    return new Promise((resolve) => {
      const timer = setTimeout(finish, timeout, { error: 'the store has not answered in time' });
      calls.set(callNumber, finish);
      // A failed send needs no treatment of its own: `restartHost` or the timer ends the call.
      host?.send({ call: callNumber, request }, () => {});
      function finish(answer: Answer): void {
        clearTimeout(timer);
        calls.delete(callNumber);
        resolve(answer);
      }
    });
  }

  /** Makes a look, at most ten times a second. While a look waits for its beginning, all calls share that look. */
  function lookForChanges(): Promise<Answer> {
    if (waitingLook !== undefined) return waitingLook;
    const pause = Math.max(0, lookBeginsAt + MIN_LOOK_INTERVAL_MS - performance.now());
    lookBeginsAt = performance.now() + pause;
    const begin = () => {
      waitingLook = undefined;
      return call({ kind: 'look' }, LOOK_TIMEOUT_MS);
    };
    if (pause === 0) return begin();
    waitingLook = new Promise<void>((resolve) => setTimeout(resolve, pause)).then(begin);
    return waitingLook;
  }

  async function answerWorker(request: Request): Promise<Answer> {
    if (isAway()) return { error: `The store is away: ${state.awayReason ?? 'it does not answer'}` };
    return request.kind === 'look' ? lookForChanges() : call(request, CALL_TIMEOUT_MS);
  }

  function onMessage(worker: Worker, message: unknown): void {
    const workerCall = (message as { gatefold?: WorkerCall } | null)?.gatefold;
    if (workerCall?.kind !== 'store') return;
    // A new worker has got no notice yet, but it makes a call when it starts.
    notifyWorkers([worker]);
    void answerWorker(workerCall.request).then((answer) =>
      send(worker, { kind: 'store', call: workerCall.call, answer }),
    );
  }

  function notifyWorkers(workers = Object.values(cluster.workers ?? {})): void {
    for (const worker of workers) if (worker !== undefined) send(worker, { kind: 'store', isTooOld: isTooOld() });
  }

  return {
    async start() {
      cluster.on('message', onMessage);
      ageTimer = setInterval(updateTooOld, 1000);
      ageTimer.unref();
      await new Promise<void>((resolve, reject) => {
        pendingStart = { resolve, reject };
        startHost();
      }).finally(() => {
        pendingStart = undefined;
      });
    },
    status() {
      const milliseconds = tableAge();
      const awayReason = state.awayReason ?? (isAway() ? 'the store-host does not answer' : null);
      return {
        state: { ...state, awayReason },
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
      clearInterval(ageTimer);
      clearTimeout(restartTimer);
      // The store-host ends when its channel is closed. It is not started again, because it is no longer `host`.
      host?.disconnect();
      host = undefined;
    },
  };
}

function send(worker: Worker, message: ToWorkerStore): void {
  // An error is ignored: a worker that ends meanwhile needs no message.
  if (worker.isConnected()) worker.send({ gatefold: message }, undefined, {}, () => {});
}
