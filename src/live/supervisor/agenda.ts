// The agenda decides which step the supervisor runs next, and when. A generation is one load of the whole folder by a
// new set of workers. Between two steps, only the agenda remembers which generation is due, which generation was
// rejected, and when to retry.
import { type GroupLoad, loadFailureFacts } from '../load/group-load.ts';
import { hasMoreGroups } from './group-table.ts';
import { createRetries } from './retries.ts';
import type { Service, StepResult } from './service.ts';
import type { Rejection, Tally } from './status.ts';

export type Step =
  /**
   * New workers load the whole folder and replace the workers that serve. If a probe led to this step, `expected` has
   * the groups that the probe has loaded.
   */
  | { readonly kind: 'generation'; readonly cause: string; readonly expected?: readonly GroupLoad[] }
  /** `count` new workers load the groups that serve now, and then serve beside the other workers. */
  | { readonly kind: 'replacement'; readonly count: number }
  /** One new worker loads the whole folder, to find out whether more groups load now. */
  | { readonly kind: 'probe' };

export interface Wait {
  readonly kind: 'wait';
  /** Milliseconds until a step is due; infinite when only an event makes a step due. */
  readonly duration: number;
}

type GenerationStep = Extract<Step, { kind: 'generation' }>;

export interface Agenda {
  /** Why the newest generation was rejected; undefined when it serves. */
  readonly rejection: Rejection | undefined;
  readonly tally: Readonly<Tally>;
  /** Whether the next step is a generation. */
  readonly isGenerationDue: boolean;
  requestGeneration(cause: string): void;
  /** Plans to replace a worker that died or is faulty (something was thrown in it), after a pause if many were lost. */
  planReplacement(): void;
  countDeath(): void;
  /** Returns the step that is due, and removes it from the agenda. */
  takeNext(): Step | Wait;
  /** Decides from the result of a step which step is due next. @param duration milliseconds that the step took */
  applyResult(step: Step, result: StepResult, duration: number): void;
}

export type AgendaOptions = Pick<Service, 'workerCount' | 'log' | 'pool' | 'table' | 'quarantine' | 'watch' | 'now'>;

const NEVER = Number.POSITIVE_INFINITY;
/** The cause of a generation that is tried again although nothing has changed. */
const RETRY = 'retry';

export function createAgenda({ workerCount, log, pool, table, quarantine, watch, now }: AgendaOptions): Agenda {
  const retries = createRetries(workerCount, now);
  const tally: Tally = { generationsServed: 0, generationsRejected: 0, workersDied: 0, workersReplaced: 0 };
  /** The generation that is due next, before every other step. */
  let nextGeneration: GenerationStep | undefined;
  let rejection: Rejection | undefined;
  /** Whether `replacement-rejected` was logged. Retries of that replacement do not log the event again. */
  let isReplacementRejectionLogged = false;
  /**
   * The names of the files that did not load when a probe was last planned, a line each. When this list changes, the
   * pauses between probes become short again.
   */
  let brokenFileNames = '';

  return {
    get rejection() {
      return rejection;
    },
    tally,
    get isGenerationDue() {
      return nextGeneration !== undefined;
    },
    requestGeneration(cause) {
      nextGeneration = generationFor(cause);
    },
    planReplacement: () => retries.recordFailure('lostWorker'),
    countDeath() {
      tally.workersDied++;
    },
    takeNext() {
      const step = nextGeneration ?? chooseStep();
      if (step.kind === 'generation') {
        nextGeneration = undefined;
        retries.recordStart('generation');
        retries.recordStart('workerStart');
      }
      return step;
    },
    applyResult,
  };

  /** Chooses the step while no generation is due: a retry, a new worker for each lost one, a probe, or a wait. */
  function chooseStep(): Step | Wait {
    const timeUntilRetry =
      rejection === undefined ? NEVER : retries.remaining(rejection.error === undefined ? 'generation' : 'workerStart');
    if (timeUntilRetry === 0) return generationFor(RETRY);
    const servingWorkers = pool.serving();
    const count = workerCount - servingWorkers.filter(({ isFaulty }) => !isFaulty).length;
    if (count <= 0) {
      const duration = rejection === undefined ? timeUntilProbe() : timeUntilRetry;
      return duration === 0 ? { kind: 'probe' } : { kind: 'wait', duration };
    }
    const isNoWorkerLeft = servingWorkers.length === 0;
    // While the newest generation is rejected, the folder differs from the code that serves. A replacement would load
    // the code in the folder, so the replacement has to wait.
    const timeUntilReplacement = rejection === undefined ? retries.remaining('replacement') : NEVER;
    const duration = Math.max(retries.remaining('lostWorker'), isNoWorkerLeft ? 0 : timeUntilReplacement);
    if (duration > 0) return { kind: 'wait', duration: Math.min(duration, timeUntilRetry) };
    return isNoWorkerLeft ? generationFor('no worker is left') : { kind: 'replacement', count };
  }

  /**
   * Returns the milliseconds until a probe is due, or infinity when every group loads. A probe is due at once when a
   * file of the quarantine (the files that ended or hung a worker) is worth another try.
   */
  function timeUntilProbe(): number {
    const files = Array.from(table.current.groups.values()).flatMap(({ ok, file }) => (ok ? [] : [file]));
    const names = files.sort().join('\n');
    if (names !== brokenFileNames) {
      brokenFileNames = names;
      retries.forget('probe');
      retries.recordFailure('probe');
    }
    const snapshot = quarantine.releaseChanged().size === 0 ? undefined : watch.takeSnapshot();
    if (snapshot !== undefined && quarantine.hasRetryable(snapshot)) return 0;
    return names === '' ? NEVER : retries.remaining('probe');
  }

  function applyResult(step: Step, result: StepResult, duration: number): void {
    if (step.kind === 'probe' && result.kind !== 'interrupted') retries.recordFailure('probe', duration);
    switch (result.kind) {
      case 'serving':
        tally.generationsServed++;
        rejection = undefined;
        isReplacementRejectionLogged = false;
        for (const attempt of ['generation', 'workerStart', 'replacement'] as const) retries.forget(attempt);
        break;
      case 'replaced':
        tally.workersReplaced += result.count;
        isReplacementRejectionLogged = false;
        retries.forget('replacement');
        if (result.hasNewQuarantine) nextGeneration ??= generationFor('a controller that ends its process');
        break;
      case 'groups-lost':
        retries.recordFailure('generation', duration);
        reject(step, result.failures);
        break;
      case 'failed':
        retries.recordFailure('lostWorker');
        retries.recordFailure('workerStart', duration);
        reject(step, [], result.error);
        break;
      case 'differs':
        postponeReplacement(result, duration);
        break;
      case 'outdated':
        if (step.kind === 'generation') nextGeneration ??= step;
        break;
      case 'more-groups':
        nextGeneration ??= { ...generationFor(RETRY), expected: result.groups };
        return;
    }
    if (step.kind !== 'generation' || step.expected === undefined || result.kind === 'outdated') return;
    // If groups that the probe has loaded failed again in this generation, the pause before the next probe becomes much
    // longer.
    if (hasMoreGroups(table.current.groups, step.expected)) retries.recordFailureInUse('probe');
  }

  /**
   * Records that the new generation is rejected and the old one keeps serving. Logs the reason, unless a retry has
   * failed for the same reason.
   */
  function reject(step: Step, failures: readonly GroupLoad[], error?: string): void {
    const cause = step.kind === 'generation' ? step.cause : step.kind;
    const isRepeated =
      cause === RETRY && JSON.stringify(rejection?.failures) === JSON.stringify(failures) && rejection?.error === error;
    const generation = table.newest;
    const effect = `generation ${table.current.generation} serves on`;
    for (const facts of isRepeated ? [] : error === undefined ? failures.map(loadFailureFacts) : [{ error }]) {
      log.error('generation-rejected', { generation, cause, ...facts, effect });
    }
    rejection = { generation, at: new Date(), failures, error };
    tally.generationsRejected++;
  }

  function postponeReplacement(result: Extract<StepResult, { kind: 'differs' }>, duration: number): void {
    const { difference, groups } = result;
    // After an added or a removed group, the pause is short: the next replacement loads the added group, too, and the
    // watch reports the removed one as a change. For any other difference, the pauses grow: the cause may be a database
    // that is down, and no event reports that the database is back.
    if (difference === 'group-added' || difference === 'group-removed') retries.recordFailure('lostWorker');
    else retries.recordFailure('replacement', duration);
    if (difference === 'other-code') nextGeneration ??= generationFor('the folder has changed');
    if (isReplacementRejectionLogged || difference === 'group-added') return;
    isReplacementRejectionLogged = true;
    const effect = 'fewer workers serve until the folder loads again';
    const { generation } = table.current;
    log.warn('replacement-rejected', { generation, groups: groups.map(loadFailureFacts), effect });
  }
}

function generationFor(cause: string): GenerationStep {
  return { kind: 'generation', cause };
}
