// The supervisor's side of the store: starts the store-host again when it ends, passes calls of workers on, and
// notifies the workers when to read their files again, and whether the table is too old.
import { type ChildProcess, fork } from 'node:child_process';
import cluster, { type Worker } from 'node:cluster';
import { setTimeout as sleep } from 'node:timers/promises';
import { describeFailure } from '../../base/failure.ts';
import type { Log } from '../../base/log.ts';
import { parseObject } from '../../base/values.ts';
import { MAX_BYTES } from '../../callers/credentials/table/live-table.ts';
import type { Spending } from '../../callers/rates/rate-limiter.ts';
import type { Cell } from '../../live/tasks/lease.ts';
import { createCalls } from './calls.ts';
import type { Answer, FromHost, HostState, Request, ToWorkerStore, WorkerCall } from './messages.ts';

export type SharedStore = ReturnType<typeof createSharedStore>;
export type StoreStatus = ReturnType<SharedStore['status']>;

export interface SharedStoreOptions {
  readonly scriptPath: string;
  readonly scriptArguments: readonly string[];
  /** The value of the setting STORE_MAX_AGE, in milliseconds; infinite for `off`. */
  readonly maxAge: number;
  readonly log: Log;
  readonly writeLine: (line: string) => void;
}

/** Milliseconds of a look (a query for changes), for which clients wait: only it finds a very new credential. */
const LOOK_TIMEOUT_MS = 1000;
const MIN_LOOK_INTERVAL_MS = 100;
/** The time limit of any other call of a worker, in milliseconds. The store-host itself gives up earlier. */
const CALL_TIMEOUT_MS = 15_000;
const SPEND_TIMEOUT_MS = 1000;
/** The time limit for the state of the tasks, in milliseconds. The lease must be renewed in time. */
const TASKS_TIMEOUT_MS = 4000;
/** Milliseconds without a message until the store counts as away. Usually one comes each second. */
const MAX_SILENCE_MS = 5000;
const RESTART_PAUSE_MS = 500;
/** The pause before the next start while an operator must change something first, such as a password. */
const OPERATOR_RESTART_PAUSE_MS = 10_000;
/** Maximum characters of the store-host's standard error that are logged, from the end. */
const MAX_ERROR_LENGTH = 2000;

const INITIAL_STATE: HostState = {
  ...{ awayReason: 'the store-host starts', needsOperator: false, hasTable: false, age: null },
  ...{ machines: 1, tableBytes: 0, tableLimit: MAX_BYTES, secondsAhead: 0, fullReads: 0, missedBells: 0 },
};

export function createSharedStore(options: SharedStoreOptions) {
  const { scriptPath, scriptArguments, maxAge, log, writeLine } = options;
  let host: ChildProcess | undefined;
  let state = INITIAL_STATE;
  // `stateReceivedAt`, `completeAt` and `lookBeginsAt` are times of `performance.now()`.
  let stateReceivedAt = performance.now();
  /** When the table was last complete; undefined when it never was. */
  let completeAt: number | undefined;
  /** The ids of rows that were revoked or removed, until the copy of the table says so. A full disk delays the copy. */
  const revoked = new Set<string>();
  let revokedAt = 0;
  /** The workers that have made a call, so they have got `revoked`. */
  const told = new WeakSet<Worker>();
  /** Whether the table is too old, as the workers have heard. False until the first state of the store-host. */
  let isTooOld = false;
  let refusesCredentials = false;
  let pendingStart: { resolve: () => void; reject: (error: Error) => void } | undefined;
  /** The look that is to begin at `lookBeginsAt`; undefined when no look waits. */
  let waitingLook: Promise<Answer> | undefined;
  /** When the latest look began or is to begin. */
  let lookBeginsAt = Number.NEGATIVE_INFINITY;
  let ageTimer: NodeJS.Timeout | undefined;
  let restartTimer: NodeJS.Timeout | undefined;
  // A failed send is ignored: `restartHost` or the time limit ends the call.
  const calls = createCalls((message) => host?.send(message, () => {}), 'the store has not answered in time');

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
    setAway('the store-host has ended', state.needsOperator);
    calls.failAll('the store-host has ended');
    log.error('store-host-exited', { code, signal, error });
    restartTimer = setTimeout(startHost, state.needsOperator ? OPERATOR_RESTART_PAUSE_MS : RESTART_PAUSE_MS);
  }

  function receive(message: FromHost): void {
    switch (message.kind) {
      case 'answer':
        return calls.answer(message.call, message.answer);
      case 'log':
        return writeLine(message.line);
      case 'files-changed':
        return notifyWorkers();
      case 'rows-changed':
        revokedAt = performance.now();
        for (const id of message.changed.revoked) revoked.add(id);
        // The row was removed, and came again.
        for (const row of message.changed.added) revoked.delete(String(parseObject(row)?.id));
        return notifyWorkers(undefined, { kind: 'store', changed: message.changed });
      case 'state': {
        const { age } = message.state;
        stateReceivedAt = performance.now();
        completeAt = age === null ? undefined : stateReceivedAt - age;
        // A store-host that has just started is not away, and its copy can still be older.
        if (message.state.awayReason === null && (completeAt ?? 0) > revokedAt) revoked.clear();
        return setState(message.state);
      }
      case 'failed':
        log.error('store-unusable', { reason: message.reason });
        pendingStart?.reject(new Error(message.reason));
        return setAway(message.reason, true);
    }
  }

  function setAway(awayReason: string, needsOperator: boolean): void {
    setState({ ...state, awayReason, needsOperator });
  }

  function setState(next: HostState): void {
    state = next;
    updateTooOld();
    if (state.hasTable) pendingStart?.resolve();
    else if (state.needsOperator) pendingStart?.reject(new Error(`STORE: ${state.awayReason}`));
  }

  /** Returns the age of the table in milliseconds; infinite when the table was never complete. */
  function tableAge(): number {
    return completeAt === undefined ? Number.POSITIVE_INFINITY : performance.now() - completeAt;
  }

  /** Notifies the workers when the table has become too old, or is no longer too old. */
  function updateTooOld(): void {
    const wasTooOld = isTooOld;
    isTooOld = tableAge() > maxAge;
    // Until there is a table, no worker refuses a credential. The line is logged when the table comes.
    const refusesNow = isTooOld && state.hasTable;
    if (refusesNow && !refusesCredentials)
      log.error('store-too-old', { effect: 'credentials are refused with 503 STORE_AWAY' });
    refusesCredentials = refusesNow;
    if (isTooOld !== wasTooOld) notifyWorkers();
  }

  function findAwayReason(): string | null {
    const isSilent = performance.now() - stateReceivedAt > MAX_SILENCE_MS;
    return state.awayReason ?? (isSilent ? 'the store-host does not answer' : null);
  }

  /** Makes a look, at most ten times a second. While a look waits for its beginning, all calls share that look. */
  function lookForChanges(): Promise<Answer> {
    if (waitingLook !== undefined) return waitingLook;
    const pause = Math.max(0, lookBeginsAt + MIN_LOOK_INTERVAL_MS - performance.now());
    lookBeginsAt = performance.now() + pause;
    waitingLook = sleep(pause).then(() => {
      waitingLook = undefined;
      return calls.call({ kind: 'look' }, LOOK_TIMEOUT_MS);
    });
    return waitingLook;
  }

  async function answerWorker(request: Request): Promise<Answer> {
    const awayReason = findAwayReason();
    if (awayReason !== null) return { error: `The store is away: ${awayReason}` };
    return request.kind === 'look' ? lookForChanges() : calls.call(request, CALL_TIMEOUT_MS);
  }

  function onMessage(worker: Worker, message: unknown): void {
    const workerCall = (message as { gatefold?: WorkerCall } | null)?.gatefold;
    if (workerCall?.kind !== 'store') return;
    // A new worker has got no notice yet. Each worker makes a call when it starts, so each call gets a notice first.
    if (revoked.size > 0 && !told.has(worker))
      notifyWorkers([worker], { kind: 'store', changed: { revoked: [...revoked], added: [] } });
    told.add(worker);
    notifyWorkers([worker]);
    void answerWorker(workerCall.request).then((answer) =>
      send(worker, { kind: 'store', call: workerCall.call, answer }),
    );
  }

  function notifyWorkers(
    workers = Object.values(cluster.workers ?? {}),
    notice: ToWorkerStore = { kind: 'store', isTooOld },
  ): void {
    for (const worker of workers) if (worker !== undefined) send(worker, notice);
  }

  return {
    /**
     * Starts the store-host, and resolves when workers have a table to read.
     *
     * @throws Error with a message of one line, when there will be no table until an operator changes something
     */
    start(): Promise<void> {
      cluster.on('message', onMessage);
      ageTimer = setInterval(updateTooOld, 1000).unref();
      return new Promise((resolve, reject) => {
        pendingStart = { resolve, reject };
        startHost();
      });
    },
    status() {
      const age = tableAge();
      return {
        state: { ...state, awayReason: findAwayReason() },
        /** Seconds since the copy of the table on this machine was last proven complete; null when it never was. */
        ageSeconds: Number.isFinite(age) ? Math.round(age / 100) / 10 : null,
        isTooOld,
      };
    },
    /** Spends tokens of rate limits. @returns the tokens left, in the same order; undefined when the store is away */
    async spend(spendings: readonly Spending[]): Promise<readonly number[] | undefined> {
      if (findAwayReason() !== null) return undefined;
      return (await calls.call({ kind: 'spend', spendings }, SPEND_TIMEOUT_MS)).tokens;
    },
    machineCount: () => state.machines,
    /** Returns the place of the tasks' state, by the name of the service. */
    taskCell(service: string): Cell {
      const call = async (change: object = {}): Promise<Answer> => {
        const answer = await calls.call({ kind: 'tasks', service, ...change }, TASKS_TIMEOUT_MS);
        if (answer.error !== undefined) throw new Error(`STORE: ${answer.error}`);
        return answer;
      };
      return {
        read: async () => (await call()).tasks ?? { version: '', text: '' },
        write: async (version, text) => (await call({ version, text })).isWritten === true,
      };
    },
    close(): void {
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
