// The supervisor receives the events of the controllers folder and of the workers, and runs one step at a time, which
// agenda.ts chooses. The steps are in rollout.ts and replacement.ts.

import { MachineChannels } from '../channels/machine.ts';
import type { FolderWatch } from '../folder/watch.ts';
import { type GroupLoad, logNotLoadable } from '../load/group-load.ts';
import type { LoadedFile } from '../load/module-loader.ts';
import { parseFileName } from '../load/naming.ts';
import type { FromWorker } from '../worker/messages.ts';
import { Agenda, type Step } from './agenda.ts';
import { GroupTable } from './group-table.ts';
import { Loader } from './load-in-workers.ts';
import { whyNotServe } from './may-serve.ts';
import { createNewGroups } from './new-groups.ts';
import { replace } from './replacement.ts';
import { rollOut } from './rollout.ts';
import { ServingTasks, type ServingTasksOptions } from './serving-tasks.ts';
import { describeService, type SupervisorStatus } from './status.ts';
import { endAll, type Service, type StepResult, sendSecureState } from './step-parts.ts';
import type { Pool } from './workers/pool.ts';
import { StartError } from './workers/port.ts';
import type { Death, WorkerEvents } from './workers/worker-events.ts';
import type { WorkerHandle } from './workers/worker-handle.ts';

export interface SupervisorOptions
  extends Pick<Service, 'dir' | 'workerCount' | 'port' | 'drainTimeout' | 'log' | 'mark'>,
    Partial<Pick<Service, 'secureState' | 'onGroups' | 'inspect' | 'makeTypes'>>,
    Pick<ServingTasksOptions, 'dataDir' | 'store'>,
    Partial<Pick<WorkerEvents, 'received'>> {
  /** Milliseconds for which the workers still accept connections after the service has begun to stop. */
  readonly acceptFor: number;
  readonly onResult?: ((result: StepResult) => void) | undefined;
  /** Called when a worker has ended, or has imported a new group (one that was added while workers serve). */
  readonly onWorkers?: (() => void) | undefined;
  /** Creates the pool of worker processes. A test can pass a pool without processes. */
  readonly createPool: (events: WorkerEvents) => Pool;
  /** Creates the watch over the folder. A test can pass a watch that reads no folder. */
  readonly createWatch: (onChange: (cause: string) => void) => FolderWatch;
  readonly now?: () => number;
}

/** Milliseconds after which a step that threw an exception runs again. */
const STEP_RETRY_DELAY = 1000;
/** Number of loads in a row that a changing file may make useless. Then the generation is rejected. */
const MAX_UNSTABLE_LOADS = 5;

export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #stopping = new AbortController();
  readonly #service: Service;
  readonly #agenda: Agenda;
  readonly #channels = new MachineChannels((channel) => {
    const effect = 'an event reaches this machine alone; docs/CHANNELS.md has a recipe for all machines';
    if (this.#options.store !== undefined) this.#options.log.info('channels-of-one-machine', { channel, effect });
  });
  readonly #requestGroup: (worker: WorkerHandle, group: string) => void;
  #runningStep: Step | undefined;
  #nextStepTimer: NodeJS.Timeout | undefined;
  /** The number of generations in a row that were given up because a file changed during the load. */
  #unstableLoads = 0;

  constructor(options: SupervisorOptions) {
    const { dir, now = () => performance.now(), secureState, onGroups, inspect, makeTypes } = options;
    const pool = options.createPool(this.#workerEvents());
    const watch = options.createWatch((cause) => this.#onChange(cause));
    const table = new GroupTable();
    const loader = new Loader({ dir, pool, table });
    const tasks = new ServingTasks({ ...options, pool, table });
    const { signal: stopping } = this.#stopping;
    this.#options = options;
    const optional = { secureState, onGroups, inspect, makeTypes, now };
    this.#service = { ...options, ...optional, pool, watch, loader, table, tasks, stopping };
    this.#agenda = new Agenda(this.#service);
    this.#requestGroup = createNewGroups({
      workers: pool.all,
      mayServe: (worker, load) => this.#mayServe(worker, load),
      onAdmitted: (load) => {
        table.addGroup(load);
        this.#onGroupsChanged();
      },
    });
  }

  /** Resolves when the first generation serves. @throws StartError when no generation can serve */
  async start(): Promise<void> {
    const step: Step = { kind: 'generation', cause: 'start' };
    this.#runningStep = step;
    let result = await this.#perform(step);
    while (result.kind === 'outdated' && result.change !== undefined) result = await this.#perform(step);
    if (result.kind === 'failed') throw new StartError(result.error);
    this.#agenda.applyResult(step, result, 0);
    this.#options.onResult?.(result);
    this.#runningStep = undefined;
    if (this.#stopping.signal.aborted) return;
    this.#announceGeneration();
    this.#service.watch.start();
    this.#runNextStep();
  }

  sendSecureState(): void {
    sendSecureState(this.#service, this.#service.pool.all());
  }

  status(): SupervisorStatus {
    const { published, keptBytes } = this.#channels;
    const tasks = this.#service.tasks.runner?.tasks.values();
    const parts = { channels: { published, keptBytes }, tasks: tasks && [...tasks] };
    return { ...describeService(this.#service, this.#agenda), ...parts };
  }

  /** Drains every worker. Resolves when all workers have ended, or 13 s after `drainTimeout` at the latest. */
  stop(): Promise<void> {
    this.#stopping.abort();
    clearTimeout(this.#nextStepTimer);
    return endAll(this.#service, this.#options.acceptFor);
  }

  kill(): void {
    for (const worker of this.#service.pool.all()) worker.kill('the supervisor ends at once');
  }

  // Events. If an event makes a step due and no step is running, the step begins at once.

  #workerEvents(): WorkerEvents {
    return {
      disconnected: () => this.#replaceLostWorker(),
      died: (worker, death) => this.#onDied(worker, death),
      gone: (worker) => {
        this.#service.tasks.runner?.ended(worker, undefined);
        this.#channels.gone(worker);
        this.#options.onWorkers?.();
        this.#runNextStep();
      },
      faulty: (worker) => this.#onFaulty(worker),
      importReported: (worker, load, files) => this.#onImportReported(worker, load, files),
      received: (worker, message) => this.#onReceived(worker, message),
    };
  }

  #onReceived(worker: WorkerHandle, message: FromWorker): void {
    const { table, tasks, watch } = this.#service;
    switch (message.kind) {
      case 'requested':
        this.#abortTrial();
        return this.#requestGroup(worker, message.group);
      case 'imported-on-call':
        // A report of an older generation is ignored, because the other files of its worker may be out of date.
        return worker.generation >= table.current.generation ? watch.addFiles(message.files) : undefined;
      case 'task-ended':
        return tasks.runner?.ended(worker, message);
      case 'channel-open':
      case 'channel-publish':
        return this.#channels.receive(worker, message);
      default:
        return this.#options.received?.(worker, message);
    }
  }

  #onChange(cause: string): void {
    // A load that hangs is aborted, because the change may correct the file that hangs. Any other load continues. The
    // change is not lost, because the watch reports it again at each poll.
    if (this.#service.loader.isLoading && !this.#isTrial) this.#service.loader.abortIfStuck();
    else this.requestGeneration(cause);
  }

  /** Makes a new generation, whether or not the folder has changed. */
  requestGeneration(cause: string): void {
    this.#agenda.requestGeneration(cause);
    this.#abortTrial();
    this.#runNextStep();
  }

  #replaceLostWorker(): void {
    // Generation 0 means that the first generation does not serve yet. Then no worker is replaced.
    if (this.#stopping.signal.aborted || this.#service.table.current.generation === 0) return;
    this.#agenda.planReplacement();
    this.#abortTrial();
    this.#runNextStep();
  }

  #onDied(worker: WorkerHandle, { reason, lastState, importing, lastRequest }: Death): void {
    if (this.#stopping.signal.aborted) return;
    const { log } = this.#service;
    const file = worker.loadingFile ?? importing[0];
    const facts = { worker: worker.pid, generation: worker.generation, reason, file };
    // A trial also loads files that have ended or hung a worker before, so they may end its worker. That worker serves
    // no request. So its end is neither logged as an error nor counted.
    if (this.#isTrial && lastState === 'loading') return log.info('trial-worker-exited', facts);
    this.#agenda.tally.workersDied++;
    log.error('worker-died', { ...facts, ...lastRequest });
    for (const file of importing) this.#skipNewFile(worker, file, reason);
    if (lastState === 'serving') this.#replaceLostWorker();
  }

  /** Called when a new file has ended a worker that served. Keeps the other workers from importing the file. */
  #skipNewFile(worker: WorkerHandle, file: string, reason: string): void {
    const { loader, pool, log } = this.#service;
    const group = parseFileName(file)?.group;
    if (group === undefined) return;
    loader.addHarmful(file, reason);
    for (const other of pool.all()) other.send({ kind: 'skip', file, reason });
    const load: GroupLoad = { group, file, ok: false, code: 'LOAD_CRASHED', error: reason };
    this.#onImportReported(worker, load, []);
    logNotLoadable(log, load);
  }

  /** Called when something was thrown in the worker outside any request, so that its state may be wrong. */
  #onFaulty(worker: WorkerHandle): void {
    this.#agenda.planReplacement();
    if (worker.state === 'serving') {
      const effect = 'it drains as soon as its replacement serves';
      this.#service.log.warn('worker-faulty', { worker: worker.pid, effect });
      this.#abortTrial();
    }
    this.#runNextStep();
  }

  #onImportReported(worker: WorkerHandle, load: GroupLoad, files: readonly LoadedFile[]): void {
    const { table, watch } = this.#service;
    if (worker.generation !== table.current.generation) return;
    watch.addGroup(load, files);
    if (load.ok) return;
    table.addGroup(load);
    this.#onGroupsChanged();
    // Only a generation waits for the types of a new file.
    if (load.wanted !== undefined && this.#service.makeTypes !== undefined) this.#agenda.requestGeneration(load.file);
    this.#runNextStep();
  }

  #onGroupsChanged(): void {
    this.#options.onGroups?.(this.#service.table.current.groups.values());
    this.#options.onWorkers?.();
  }

  #mayServe(worker: WorkerHandle, load: GroupLoad | undefined): boolean {
    const { table, watch, log } = this.#service;
    const isGenerationDue = this.#runningStep?.kind === 'generation' || this.#agenda.isGenerationDue;
    const isRejected = this.#agenda.rejection !== undefined;
    const reason = whyNotServe(worker, load?.file, { table, watch, isGenerationDue, isRejected });
    if (reason !== undefined) log.debug('new-group-withheld', { worker: worker.pid, file: load?.file, reason });
    return reason === undefined;
  }

  // Steps. One step runs at a time. The next step is chosen when that step has ended, or when an event comes.

  #runNextStep(): void {
    if (this.#runningStep !== undefined || this.#stopping.signal.aborted) return;
    if (this.#service.table.current.generation === 0) return;
    clearTimeout(this.#nextStepTimer);
    const step = this.#agenda.takeNext();
    if (step.kind !== 'wait') void this.#run(step);
    else if (Number.isFinite(step.duration)) this.#wakeAfter(step.duration);
  }

  #wakeAfter(duration: number): void {
    this.#nextStepTimer = setTimeout(() => this.#runNextStep(), duration);
  }

  async #run(step: Step): Promise<void> {
    const { now, log } = this.#service;
    this.#runningStep = step;
    this.#announceGeneration();
    const startedAt = now();
    try {
      const result = await this.#perform(step);
      this.#agenda.applyResult(step, result, now() - startedAt);
      this.#options.onResult?.(result);
    } catch (error) {
      // The result `outdated` makes a generation due again.
      this.#agenda.applyResult(step, { kind: 'outdated' }, now() - startedAt);
      log.error('supervisor-step-failed', { error: String(error) });
      if (!this.#stopping.signal.aborted) this.#wakeAfter(STEP_RETRY_DELAY);
      return;
    } finally {
      this.#runningStep = undefined;
      this.#announceGeneration();
    }
    this.#runNextStep();
  }

  async #perform(step: Step): Promise<StepResult> {
    if (step.kind === 'replacement') return replace(this.#service, step.count);
    const result = await rollOut(this.#service, step, this.#unstableLoads < MAX_UNSTABLE_LOADS);
    if (result.kind !== 'outdated') this.#unstableLoads = 0;
    else if (result.change !== undefined) this.#unstableLoads++;
    return result;
  }

  get #isTrial(): boolean {
    return this.#runningStep?.kind === 'generation' && this.#runningStep.isTrial === true;
  }

  /** A trial ends as soon as anything else is to be done. */
  #abortTrial(): void {
    if (this.#isTrial) this.#service.loader.abort();
  }

  /** Reports to the workers whether they may import new groups. A request for a new group aborts a trial. */
  #announceGeneration(): void {
    const isLoading = this.#runningStep?.kind === 'generation' && !this.#isTrial;
    const state = isLoading ? 'loading' : this.#agenda.rejection === undefined ? 'serving' : 'rejected';
    for (const worker of this.#service.pool.all()) worker.send({ kind: 'generation', state });
  }
}
