// The supervisor receives the events of the controllers folder and of the workers, and runs one step at a time. A step
// is a new generation (new workers load the whole folder), or a replacement of workers. agenda.ts chooses the step. The
// steps are in rollout.ts and replacement.ts.

import type { Spending } from '../../callers/limits/rate-limiter.ts';
import type { FolderWatch } from '../folder/watch.ts';
import { type GroupLoad, logNotLoadable } from '../load/group-load.ts';
import type { LoadedFile } from '../load/module-loader.ts';
import { parseFileName } from '../load/naming.ts';
import { Agenda, type Step } from './agenda.ts';
import { createGroupTable } from './group-table.ts';
import { Loader } from './loader.ts';
import { whyNotServe } from './may-serve.ts';
import { createNewGroups } from './new-groups.ts';
import { replace } from './replacement.ts';
import { rollOut } from './rollout.ts';
import { type Service, type StepResult, sendSecureState } from './service.ts';
import { describeService, type SupervisorStatus } from './status.ts';
import type { Pool } from './workers/pool.ts';
import { StartError } from './workers/port.ts';
import type { Death, WorkerEvents, WorkerHandle } from './workers/worker-handle.ts';

export interface SupervisorOptions
  extends Pick<Service, 'dir' | 'workerCount' | 'port' | 'drainTimeout' | 'log' | 'mark'>,
    Partial<Pick<Service, 'secureState' | 'onGroups'>> {
  /** Milliseconds for which the workers still accept connections after the service has begun to stop. */
  readonly acceptFor: number;
  readonly onResult?: ((result: StepResult) => void) | undefined;
  /** Called when a worker has ended, or has imported a new group (one that was added while workers serve). */
  readonly onWorkers?: (() => void) | undefined;
  /** Called when callers with a rate limit have sent requests to a worker, with the tokens that each has spent. */
  readonly onSpent?: (worker: WorkerHandle, spendings: readonly Spending[]) => void;
  readonly onMetrics?: (worker: WorkerHandle, metrics: unknown) => void;
  /** Creates the pool of worker processes. A test can pass a pool without processes. */
  readonly createPool: (events: WorkerEvents) => Pool;
  /** Creates the watch over the folder. A test can pass a watch that reads no folder. */
  readonly createWatch: (onChange: (cause: string) => void) => FolderWatch;
  readonly now?: () => number;
}

export interface Supervisor {
  /** Resolves when the first generation serves. @throws StartError when no generation can serve */
  start(): Promise<void>;
  /** Makes a new generation, whether or not the folder has changed. */
  renew(): void;
  /** Sends `secureState` to every worker. Called when the certificates or keys have changed. */
  sendSecureState(): void;
  /** Drains every worker. Resolves when all workers have ended, or 13 s after `drainTimeout` at the latest. */
  stop(): Promise<void>;
  kill(): void;
  status(): SupervisorStatus;
}

/** Milliseconds after which a step that threw an exception runs again. */
const STEP_RETRY_DELAY = 1000;
/** Number of loads in a row that a changing file may make useless. Then the generation is rejected. */
const MAX_UNSTABLE_LOADS = 5;

export function createSupervisor(options: SupervisorOptions): Supervisor {
  const { dir, log, workerCount, drainTimeout, port, mark, now = () => performance.now() } = options;
  const stopping = new AbortController();
  const pool = options.createPool({
    disconnected: replaceLostWorker,
    died: onDied,
    requested(worker, group) {
      abortTrial();
      onRequested(worker, group);
    },
    gone() {
      options.onWorkers?.();
      runNextStep();
    },
    faulty: onFaulty,
    importReported: onImportReported,
    importedOnCall: (worker, files) => isCurrentOrNewer(worker) && watch.addFiles(files),
    spent: (worker, spendings) => options.onSpent?.(worker, spendings),
    metrics: (worker, metrics) => options.onMetrics?.(worker, metrics),
  });
  const watch = options.createWatch(onChange);
  const table = createGroupTable();
  const loader = new Loader({ dir, pool, table });
  const agenda = new Agenda({ workerCount, log, pool, table, now });
  const onRequested = createNewGroups({
    workers: pool.all,
    mayServe(worker, load) {
      const isGenerationDue = runningStep?.kind === 'generation' || agenda.isGenerationDue;
      const isRejected = agenda.rejection !== undefined;
      const reason = whyNotServe(worker, load?.file, { table, watch, isGenerationDue, isRejected });
      if (reason !== undefined) log.debug('new-group-withheld', { worker: worker.pid, file: load?.file, reason });
      return reason === undefined;
    },
    onAdmitted(load) {
      table.addGroup(load);
      onGroupsChanged();
    },
  });
  const service: Service = {
    ...{ dir, workerCount, drainTimeout, port, log, pool, watch, loader, table, mark, now },
    stopping: stopping.signal,
    secureState: options.secureState,
    onGroups: options.onGroups,
  };
  let runningStep: Step | undefined;
  let nextStepTimer: NodeJS.Timeout | undefined;
  /** The number of generations in a row that were given up because a file changed during the load. */
  let unstableLoads = 0;

  return {
    async start() {
      const step: Step = { kind: 'generation', cause: 'start' };
      runningStep = step;
      let result = await perform(step);
      while (result.kind === 'outdated' && result.change !== undefined) result = await perform(step);
      if (result.kind === 'failed') throw new StartError(result.error);
      agenda.applyResult(step, result, 0);
      options.onResult?.(result);
      runningStep = undefined;
      if (stopping.signal.aborted) return;
      announceGeneration();
      watch.start();
      runNextStep();
    },
    renew: () => requestGeneration('signal'),
    sendSecureState: () => sendSecureState(service, pool.all()),
    stop,
    kill() {
      for (const worker of pool.all()) worker.kill('the supervisor ends at once');
    },
    status: () => describeService(table, pool, agenda),
  };

  async function stop(): Promise<void> {
    stopping.abort();
    watch.stop();
    clearTimeout(nextStepTimer);
    loader.abort();
    // The supervisor never accepts connections, so it closes its copy of the socket before the workers close theirs. A
    // last copy in the supervisor would let the kernel accept further clients, whose connections are then reset.
    port.close();
    for (const worker of pool.all()) {
      if (worker.state === 'serving') worker.drain(drainTimeout, options.acceptFor);
      else worker.quit();
    }
    const survivors = await pool.close();
    if (survivors.length > 0) log.error('workers-still-running', { workers: survivors.map(({ pid }) => pid) });
  }

  // Events. If an event makes a step due and no step is running, the step begins at once.

  function onChange(cause: string): void {
    // A load that hangs is aborted, because the change may correct the file that hangs. Any other load continues. The
    // change is not lost, because the watch reports it again at each poll.
    if (loader.isLoading && !isTrial()) loader.abortIfStuck();
    else requestGeneration(cause);
  }

  function requestGeneration(cause: string): void {
    agenda.requestGeneration(cause);
    abortTrial();
    runNextStep();
  }

  function replaceLostWorker(): void {
    // Generation 0 means that the first generation does not serve yet. Then no worker is replaced.
    if (stopping.signal.aborted || table.current.generation === 0) return;
    agenda.planReplacement();
    abortTrial();
    runNextStep();
  }

  function onDied(worker: WorkerHandle, { reason, lastState, importing }: Death): void {
    if (stopping.signal.aborted) return;
    const facts = {
      worker: worker.pid,
      generation: worker.generation,
      reason,
      file: worker.loadingFile ?? importing[0],
    };
    // A trial also loads files that have ended or hung a worker before, so they may end its worker. That worker serves
    // no request. So its end is neither logged as an error nor counted.
    if (isTrial() && lastState === 'loading') return log.info('trial-worker-exited', facts);
    agenda.countDeath();
    log.error('worker-died', facts);
    for (const file of importing) skipNewFile(worker, file, reason);
    if (lastState === 'serving') replaceLostWorker();
  }

  /** Called when a new file has ended a worker that served. Keeps the other workers from importing the file. */
  function skipNewFile(worker: WorkerHandle, file: string, reason: string): void {
    const group = parseFileName(file)?.group;
    if (group === undefined) return;
    loader.addHarmful(file, reason);
    for (const other of pool.all()) other.send({ kind: 'skip', file, reason });
    const load: GroupLoad = { group, file, ok: false, code: 'LOAD_CRASHED', error: reason };
    onImportReported(worker, load, []);
    logNotLoadable(log, load);
  }

  /** Called when something was thrown in the worker outside any request, so that its state may be wrong. */
  function onFaulty(worker: WorkerHandle): void {
    agenda.planReplacement();
    if (worker.state === 'serving') {
      log.warn('worker-faulty', { worker: worker.pid, effect: 'it drains as soon as its replacement serves' });
      abortTrial();
    }
    runNextStep();
  }

  function onImportReported(worker: WorkerHandle, load: GroupLoad, files: readonly LoadedFile[]): void {
    if (worker.generation !== table.current.generation) return;
    watch.addGroup(load, files);
    if (load.ok) return;
    table.addGroup(load);
    onGroupsChanged();
    runNextStep();
  }

  function onGroupsChanged(): void {
    options.onGroups?.(table.current.groups.values());
    options.onWorkers?.();
  }

  /**
   * Reports the state of the newest generation to the workers, which import new groups in the state `serving` only. A
   * trial does not count: a request for a new group aborts it.
   */
  function announceGeneration(): void {
    const isLoading = runningStep?.kind === 'generation' && !isTrial();
    const state = isLoading ? 'loading' : agenda.rejection === undefined ? 'serving' : 'rejected';
    for (const worker of pool.all()) worker.send({ kind: 'generation', state });
  }

  /**
   * Whether the worker is of the generation that serves, or of the one that loads. A report of a worker of an
   * older generation is ignored, because the other files of that worker may be out of date.
   */
  function isCurrentOrNewer({ generation }: WorkerHandle): boolean {
    return generation >= table.current.generation;
  }

  /** A trial ends as soon as anything else is to be done. */
  function abortTrial(): void {
    if (isTrial()) loader.abort();
  }

  function isTrial(): boolean {
    return runningStep?.kind === 'generation' && runningStep.isTrial === true;
  }

  // Steps. One step runs at a time. The next step is chosen when that step has ended, or when an event comes.

  function runNextStep(): void {
    if (runningStep !== undefined || stopping.signal.aborted || table.current.generation === 0) return;
    clearTimeout(nextStepTimer);
    const step = agenda.takeNext();
    if (step.kind !== 'wait') void run(step);
    else if (Number.isFinite(step.duration)) nextStepTimer = setTimeout(runNextStep, step.duration);
  }

  async function run(step: Step): Promise<void> {
    runningStep = step;
    announceGeneration();
    const startedAt = now();
    try {
      const result = await perform(step);
      agenda.applyResult(step, result, now() - startedAt);
      options.onResult?.(result);
    } catch (error) {
      // The result `outdated` makes a generation due again.
      agenda.applyResult(step, { kind: 'outdated' }, now() - startedAt);
      log.error('supervisor-step-failed', { error: String(error) });
      if (!stopping.signal.aborted) nextStepTimer = setTimeout(runNextStep, STEP_RETRY_DELAY);
      return;
    } finally {
      runningStep = undefined;
      announceGeneration();
    }
    runNextStep();
  }

  async function perform(step: Step): Promise<StepResult> {
    if (step.kind === 'replacement') return replace(service, step.count);
    const result = await rollOut(service, step, unstableLoads < MAX_UNSTABLE_LOADS);
    if (result.kind !== 'outdated') unstableLoads = 0;
    else if (result.change !== undefined) unstableLoads++;
    return result;
  }
}
