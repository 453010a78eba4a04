// The agenda decides which step the supervisor runs next, and when. Between two steps, only the agenda remembers which
// generation is due, which generation was rejected, and when to retry.
import { type GroupLoad, loadFailureFacts } from '../load/group-load.ts';
import { Backoff } from './backoff.ts';
import type { Rejection, Tally } from './status.ts';
import type { Service, StepResult } from './step-parts.ts';

export type Step =
  /** New workers load the whole folder and replace the workers that serve. */
  | GenerationStep
  /** `count` new workers load the groups that serve now, and then serve beside the other workers. */
  | { readonly kind: 'replacement'; readonly count: number };

export interface GenerationStep {
  readonly kind: 'generation';
  readonly cause: string;
  /** A trial finds out whether more groups load now, and is dropped if they do not, or when another step is due. */
  readonly isTrial?: boolean;
}

export interface Wait {
  readonly kind: 'wait';
  /** Milliseconds until a step is due; infinite when only an event makes a step due. */
  readonly duration: number;
}

export type AgendaOptions = Pick<Service, 'workerCount' | 'log' | 'pool' | 'table' | 'now'>;

const NEVER = Number.POSITIVE_INFINITY;
/** The cause of a generation that is tried again although nothing has changed. */
const RETRY = 'retry';
const LOAD_PAUSES = { firstPause: 5000, maxPause: 60_000 };
/** A worker that died is missed at once, so its pauses are shorter than those of a load. */
const DEATH_PAUSES = { firstPause: 100, maxPause: 5000, forgetAfter: 15_000 };

export class Agenda {
  readonly #service: AgendaOptions;
  /** The next load whose result can only be better if something outside the folder has changed. */
  readonly #loads: Backoff;
  /** The next replacement of a worker that died or is faulty. */
  readonly #deaths: Backoff;
  readonly tally: Tally = { generationsServed: 0, generationsRejected: 0, workersDied: 0, workersReplaced: 0 };
  /** Why the newest generation was rejected; undefined when it serves. */
  rejection: Rejection | undefined;
  /** The generation that is due next, before every other step. */
  #nextGeneration: GenerationStep | undefined;
  /** Whether the last replacement loaded other code or fewer groups than the workers that serve. */
  #isReplacementRejected = false;
  /** The files that did not load when the next trial was planned, a line each. Another list makes the pauses short. */
  #brokenFiles = '';

  constructor(service: AgendaOptions) {
    this.#service = service;
    this.#loads = new Backoff(LOAD_PAUSES, service.now);
    // All workers can die together, as when the kernel is out of memory.
    this.#deaths = new Backoff({ ...DEATH_PAUSES, freeFailures: service.workerCount }, service.now);
  }

  get isGenerationDue(): boolean {
    return this.#nextGeneration !== undefined;
  }

  requestGeneration(cause: string): void {
    this.#nextGeneration = generationFor(cause);
  }

  /** Plans to replace a worker that died or is faulty (something was thrown in it), after a pause if many were lost. */
  planReplacement(): void {
    this.#deaths.recordFailure();
  }

  takeNext(): Step | Wait {
    const step = this.#nextGeneration ?? this.#chooseStep();
    if (step.kind === 'generation') this.#nextGeneration = undefined;
    return step;
  }

  /** Chooses the step while no generation is due: a retry, a new worker for each lost one, a trial, or a wait. */
  #chooseStep(): Step | Wait {
    const isRejected = this.rejection !== undefined;
    const timeUntilRetry = isRejected ? this.#loads.remaining : NEVER;
    if (timeUntilRetry === 0) return generationFor(RETRY);
    const { pool, workerCount } = this.#service;
    const serving = pool.serving();
    const count = workerCount - serving.filter(({ isFaulty }) => !isFaulty).length;
    if (count <= 0) {
      const duration = isRejected ? timeUntilRetry : this.#timeUntilTrial();
      return duration === 0 ? { kind: 'generation', cause: RETRY, isTrial: true } : { kind: 'wait', duration };
    }
    const isNoWorkerLeft = serving.length === 0;
    // While the newest generation is rejected, the folder differs from the code that serves. A replacement would load
    // the code in the folder, so the replacement has to wait.
    const pause = isRejected ? NEVER : this.#isReplacementRejected ? this.#loads.remaining : 0;
    const duration = Math.max(this.#deaths.remaining, isNoWorkerLeft ? 0 : pause);
    if (duration > 0) return { kind: 'wait', duration: Math.min(duration, timeUntilRetry) };
    return isNoWorkerLeft ? generationFor('no worker is left') : { kind: 'replacement', count };
  }

  #timeUntilTrial(): number {
    const loads = Array.from(this.#service.table.current.groups.values());
    const names = loads.flatMap(({ ok, file }) => (ok ? [] : [file]));
    const brokenFiles = names.sort().join('\n');
    if (brokenFiles !== this.#brokenFiles) {
      this.#brokenFiles = brokenFiles;
      this.#loads.reset();
      this.#loads.recordFailure();
    }
    return brokenFiles === '' ? NEVER : this.#loads.remaining;
  }

  /** Decides from the result of a step which step is due next. @param duration milliseconds that the step took */
  applyResult(step: Step, result: StepResult, duration: number): void {
    switch (result.kind) {
      case 'serving':
        this.tally.generationsServed++;
        this.rejection = undefined;
        this.#forgetFailures();
        return;
      case 'replaced':
        this.tally.workersReplaced += result.count;
        if (this.#isReplacementRejected) this.#forgetFailures();
        return;
      case 'groups-lost':
        return this.#reject(step, result.failures, undefined, duration);
      case 'failed':
        this.#deaths.recordFailure();
        // A machine that is short of processes needs no longer pause after a longer attempt.
        return this.#reject(step, [], result.error);
      case 'differs':
        return this.#postponeReplacement(result, duration);
      case 'outdated':
        if (step.kind === 'generation') this.#nextGeneration ??= generationFor(step.cause);
        return;
      case 'no-change':
      case 'interrupted':
        if (step.kind === 'generation') this.#loads.recordFailure(duration);
        return;
    }
  }

  #forgetFailures(): void {
    this.#isReplacementRejected = false;
    this.#brokenFiles = '';
    this.#loads.reset();
  }

  /** Records that the old generation keeps serving. Logs the reason, unless a retry has failed for the same reason. */
  #reject(step: Step, failures: readonly GroupLoad[], error?: string, duration?: number): void {
    const { log, table, pool } = this.#service;
    const cause = step.kind === 'generation' ? step.cause : step.kind;
    const last = this.rejection;
    const isRepeated =
      cause === RETRY && JSON.stringify(last?.failures) === JSON.stringify(failures) && last?.error === error;
    const generation = table.newest;
    const isServing = pool.serving().length > 0;
    const effect = isServing
      ? `generation ${table.current.generation} serves on`
      : 'requests wait until a generation serves';
    for (const facts of isRepeated ? [] : error === undefined ? failures.map(loadFailureFacts) : [{ error }]) {
      log.error('generation-rejected', { generation, cause, ...facts, effect });
    }
    // The pauses between trials may have grown, and a rejection is another failure.
    if (last === undefined) this.#loads.reset();
    this.#loads.recordFailure(duration);
    this.rejection = { generation, at: new Date(), failures, error };
    this.tally.generationsRejected++;
  }

  #postponeReplacement(result: Extract<StepResult, { kind: 'differs' }>, duration: number): void {
    const { difference, groups } = result;
    // The pause is short after a group that came or went: the next replacement loads it, or the watch reports a change.
    // For any other difference, the pauses grow: no event reports that a database is back, for example.
    if (difference === 'group-missed') return this.#deaths.recordFailure();
    if (difference === 'other-code') this.#nextGeneration ??= generationFor('the folder has changed');
    if (!this.#isReplacementRejected) {
      this.#isReplacementRejected = true;
      this.#loads.reset();
      const effect =
        difference === 'other-code'
          ? 'the folder has changed meanwhile, so a generation loads it'
          : 'fewer workers serve until the folder loads again';
      const { generation } = this.#service.table.current;
      this.#service.log.warn('replacement-rejected', { generation, groups: groups.map(loadFailureFacts), effect });
    }
    this.#loads.recordFailure(duration);
  }
}

function generationFor(cause: string): GenerationStep {
  return { kind: 'generation', cause };
}
