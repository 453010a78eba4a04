// Decides in the supervisor which task runs when, and in which worker. A run begins only while this process has the
// lease, only in a worker of the generation that serves, and only after the last run of the task has ended.
import { hostname } from 'node:os';
import { describeFailure } from '../../base/failure.ts';
import { isDead, processName } from '../../base/folder-lock.ts';
import type { Log } from '../../base/log.ts';
import type { Lease, TaskRecord } from './lease.ts';
import { latestDue, nextDue } from './plan.ts';
import type { TaskFacts } from './task.ts';
import { dueIn, pauseAfter, type TaskEnd, type TaskOrder } from './task-host.ts';

export interface TaskWorker {
  readonly pid: number | undefined;
  send(order: TaskOrder): void;
}

export interface RunnerOptions {
  readonly lease: Lease;
  /** Returns the workers that serve the newest accepted code. */
  readonly workers: () => readonly TaskWorker[];
  readonly log: Log;
  /** Returns Unix milliseconds. */
  readonly clock?: () => number;
  /** Returns milliseconds on a clock that never goes back. */
  readonly now?: () => number;
}

interface Run {
  readonly id: number;
  readonly worker: TaskWorker;
  readonly startedAt: number;
  readonly dueAt: number | undefined;
  /** False until the record of the run is written. */
  hasBegun: boolean;
  /** The time of the lease that the worker has heard of. */
  sureUntil: number;
  hasSkipped: boolean;
}

export interface TaskState {
  facts: TaskFacts;
  /** Whether the generation that serves has the task. */
  isWanted: boolean;
  run: Run | undefined;
  /** The failures and interruptions in a row, and when the next run may begin, by `now`. */
  failuresInARow: number;
  pausedUntil: number;
  lastSuccessAt: number;
  /** The seconds of the last run, and counts since the start of this process. */
  lastDuration: number;
  failures: number;
  skipped: number;
}

const NEW = {
  ...{ run: undefined, failuresInARow: 0, pausedUntil: 0 },
  ...{ lastSuccessAt: 0, lastDuration: 0, failures: 0, skipped: 0 },
};
/** Milliseconds between two looks at what is due, and between two renewals of the lease. */
const STEP_MS = 1000;
const RENEW_MS = 5000;
/** Milliseconds by which a clock may be set back before times that have run count again. */
const MAX_SET_BACK = 3_600_000;
/** Milliseconds after which a time that has passed is skipped with `catchUp: false`. */
const MAX_LATE = 60_000;
/** Milliseconds of a run after which earlier failures no longer count. */
const STEADY_MS = 60_000;

export class TaskRunner {
  readonly tasks = new Map<string, TaskState>();
  readonly #options: Required<RunnerOptions>;
  #lastRun = 0;
  #renewAt = 0;
  /** The reasons that were logged since a renewal has failed. Two of them can alternate. */
  readonly #loggedReasons = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: RunnerOptions) {
    this.#options = { clock: Date.now, now: () => performance.now(), ...options };
  }

  /** Sets the tasks of the generation that serves from now on. */
  serve(tasks: readonly TaskFacts[]): void {
    for (const state of this.tasks.values()) state.isWanted = false;
    for (const facts of tasks)
      this.tasks.set(facts.name, Object.assign(this.tasks.get(facts.name) ?? { ...NEW }, { facts, isWanted: true }));
    this.#renewAt = 0;
    this.step();
  }

  /** @param end undefined when the worker is gone, with all its runs */
  ended(worker: TaskWorker, end: TaskEnd | undefined): void {
    for (const state of this.tasks.values()) {
      const { run } = state;
      const isMeant = run?.worker === worker && run.hasBegun && (end === undefined || end.run === run.id);
      if (isMeant) this.#finish(state, run, end);
    }
    this.step();
  }

  /** Gives the lease back. Called when the workers are gone. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#options.lease.sync('').catch(() => {});
  }

  /** Does what is due. Called by each event and by a timer. */
  step(): void {
    if (this.#isClosed || this.tasks.size === 0) return;
    clearTimeout(this.#timer);
    const { workers: findWorkers, now } = this.#options;
    for (const [name, { isWanted, run }] of this.tasks) if (!isWanted && run === undefined) this.tasks.delete(name);
    const workers = findWorkers();
    // Without a task or a worker, the lease ends by itself, and another machine takes it.
    const isActive = this.tasks.size > 0 && (workers.length > 0 || [...this.tasks.values()].some(({ run }) => run));
    if (isActive && now() >= this.#renewAt) {
      this.#renewAt = now() + RENEW_MS;
      void this.#write().then(() => this.step());
    }
    const waits = Array.from(this.tasks.values(), (state) => this.#stepTask(state, workers));
    this.#timer = setTimeout(() => this.step(), Math.max(1, Math.min(STEP_MS, ...waits)));
  }

  /** Renews the lease, and writes the records. Each reason why this fails is logged once. */
  async #write(): Promise<boolean> {
    const { lease, log } = this.#options;
    let reason = '';
    const isWritten = await lease.sync().catch((error: unknown) => {
      reason = describeFailure(error);
      return false;
    });
    const effect = 'no task begins while the state of the tasks cannot be kept';
    if (reason !== '' && !this.#loggedReasons.has(reason)) log.error('tasks-paused', { reason, effect });
    if (reason === '' && this.#loggedReasons.size > 0) log.info('tasks-resumed', {});
    if (reason === '') this.#loggedReasons.clear();
    else this.#loggedReasons.add(reason);
    return isWritten;
  }

  /** @returns milliseconds until something can be due */
  #stepTask(state: TaskState, workers: readonly TaskWorker[]): number {
    const { facts, run, isWanted, pausedUntil } = state;
    const { lease, clock, now } = this.#options;
    if (run?.hasBegun && run.sureUntil !== lease.sureUntil) {
      run.sureUntil = lease.sureUntil;
      run.worker.send({ kind: 'hold-task', run: run.id, time: Math.max(0, lease.sureUntil - now()) });
    }
    if (!lease.isHeld || !isWanted || run?.hasBegun === false) return STEP_MS;
    const record = this.#recordFor(facts);
    state.lastSuccessAt = Math.max(state.lastSuccessAt, record.lastSuccessAt ?? 0);
    const due = this.#takeDue(state, record);
    const worker = workers[this.#lastRun % Math.max(1, workers.length)];
    // The worker of a supervisor that was killed can still run the task.
    const isFree = run === undefined && (record.running === undefined || isDead(record.running.process, true));
    if (isFree && due !== undefined && worker !== undefined && now() >= pausedUntil) {
      void this.#begin(state, record, due.dueAt, worker);
      return STEP_MS;
    }
    const pause = pausedUntil > now() ? pausedUntil - now() : STEP_MS;
    return facts.plan === undefined ? pause : Math.min(pause, nextDue(facts.plan, clock()) - clock());
  }

  /** Returns the record of a task. With a new plan, or after a clock was set back far, the times count from now. */
  #recordFor({ name, plan }: TaskFacts): TaskRecord {
    const { lease, log, clock } = this.#options;
    const record = lease.records.get(name) ?? {};
    const [now, text] = [clock(), JSON.stringify(plan)];
    const isSetBack = (record.accounted ?? now) - now > MAX_SET_BACK;
    if (plan === undefined || (record.plan === text && !isSetBack)) return record;
    if (isSetBack) log.warn('task-clock-set-back', { task: name, ...dueIn(record.accounted) });
    const begun = { ...record, plan: text, accounted: now };
    lease.records.set(name, begun);
    void this.#write();
    return begun;
  }

  /** Returns what is to run now. Counts as skipped what passes during a run, and what comes too late. */
  #takeDue(state: TaskState, record: TaskRecord): { readonly dueAt: number | undefined } | undefined {
    const { run, facts } = state;
    const { name, plan, catchUp } = facts;
    const { lease, log, clock } = this.#options;
    if (plan === undefined) return { dueAt: undefined };
    const now = clock();
    const isTimely = (time: number) => catchUp || now - time <= MAX_LATE;
    const interrupted = run === undefined ? record.running?.dueAt : undefined;
    const due = latestDue(plan, record.accounted ?? now, now);
    // A run that was interrupted is made again for its time, unless a later time has come.
    if (due === undefined)
      return interrupted === undefined || !isTimely(interrupted) ? undefined : { dueAt: interrupted };
    if (run === undefined && isTimely(due.dueAt)) return { dueAt: due.dueAt };
    state.skipped += due.count;
    lease.records.set(name, { ...record, accounted: due.dueAt });
    if (run === undefined || run.hasSkipped) return undefined;
    run.hasSkipped = true;
    log.warn('task-skipped', { task: name, ...dueIn(due.dueAt), running_since: new Date(run.startedAt).toISOString() });
    return undefined;
  }

  async #begin(state: TaskState, record: TaskRecord, dueAt: number | undefined, worker: TaskWorker): Promise<void> {
    const { lease, workers, clock, now } = this.#options;
    const { name, plan } = state.facts;
    const [startedAt, { pid }, id] = [clock(), worker, ++this.#lastRun];
    const run = { id, worker, startedAt, dueAt, hasBegun: false, sureUntil: 0, hasSkipped: false };
    state.run = run;
    const running = { process: processName(pid), machine: hostname(), pid, startedAt, dueAt };
    const accounted = Math.max(dueAt ?? 0, record.accounted ?? 0);
    lease.records.set(name, { ...record, running, ...(plan && { accounted }) });
    const isWritten = await this.#write();
    if (isWritten && lease.isHeld && workers().includes(worker)) {
      // This run makes up for all times that have passed, and for the run that was interrupted.
      const passed = plan && latestDue(plan, record.accounted ?? accounted, accounted);
      if (passed) state.skipped += passed.count - Number(record.running === undefined);
      run.hasBegun = true;
      run.sureUntil = lease.sureUntil;
      return worker.send({ kind: 'run-task', task: name, run: id, dueAt, time: lease.sureUntil - now() });
    }
    // The lease or the worker is gone, and nothing has run.
    state.run = undefined;
    state.pausedUntil = now() + STEP_MS;
    if (lease.records.get(name)?.running === running) lease.records.set(name, record);
  }

  #finish(state: TaskState, run: Run, end: TaskEnd | undefined): void {
    const { log, lease, clock, now } = this.#options;
    const { name, plan } = state.facts;
    const endedAt = clock();
    // A task without times has no end of its own. A run that returns is done, also after the abort of its signal.
    const error = end?.failure?.error ?? (plan === undefined ? 'it has returned, and it has no times' : undefined);
    const isInterrupted = end === undefined || (end.aborted && error !== undefined);
    const isDone = end !== undefined && error === undefined;
    Object.assign(state, { run: undefined, lastDuration: (endedAt - run.startedAt) / 1000 });
    if (isDone) state.lastSuccessAt = endedAt;
    if (isDone || endedAt - run.startedAt > STEADY_MS) state.failuresInARow = 0;
    // A run with times that fails by itself waits for its next time alone.
    const isPaused = end === undefined || (plan === undefined && !end.aborted);
    if (isPaused) state.pausedUntil = now() + pauseAfter(++state.failuresInARow);
    const facts = { task: name, worker: run.worker.pid, ...dueIn(run.dueAt) };
    const retry_in_ms = Math.max(0, Math.round(state.pausedUntil - now()));
    if (end === undefined) log.warn('task-interrupted', { ...facts, retry_in_ms });
    else if (!isInterrupted && error !== undefined) {
      state.failures++;
      log.error('task-failed', { ...facts, ...(plan === undefined && { retry_in_ms }), ...end.failure, error });
    }
    const { running, ...record } = { ...lease.records.get(name), ...(isDone && { lastSuccessAt: endedAt }) };
    // The abort of a task without times is its usual end.
    const isEnd = running && (!isInterrupted || (end !== undefined && plan === undefined));
    const last = isEnd && { last: { ...running, endedAt, error: isInterrupted ? undefined : error } };
    const isKept = running && isInterrupted && plan !== undefined;
    lease.records.set(name, { ...record, ...last, ...(isKept && { running: { ...running, process: '' } }) });
    void this.#write().then(() => this.step());
  }
}
