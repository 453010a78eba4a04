// The agenda decides what the supervisor does next, and when. It alone holds what one step leaves for the next: the
// generation that is wanted, the one that was rejected, and the times of retries. It runs no step.
import type { GroupLoad } from '../groups/registry.ts';
import { isGain } from './group-table.ts';
import { createRetries } from './retries.ts';
import type { Service, StepResult } from './service.ts';
import type { Rejection, Tally } from './status.ts';

export type Step =
  /** New workers load the whole folder and take over. `expected`: the groups that a probe has loaded. */
  | { readonly kind: 'generation'; readonly cause: string; readonly expected?: readonly GroupLoad[] }
  /** As many new workers load what serves, and join. */
  | { readonly kind: 'replacement'; readonly count: number }
  /** One new worker loads the whole folder, to find out whether more groups load now. */
  | { readonly kind: 'probe' };

/** No step is due for so many milliseconds; infinite: until something happens. */
export interface Wait {
  readonly kind: 'wait';
  readonly time: number;
}

type GenerationStep = Extract<Step, { kind: 'generation' }>;

export interface Agenda {
  /** The newest generation, if it was rejected. */
  readonly rejection: Rejection | undefined;
  readonly tally: Readonly<Tally>;
  /** Makes a generation the next step. */
  want(cause: string): void;
  /** A worker that served died or is faulty: its replacement is due, at once or after a pause. */
  workerLost(): void;
  /** A worker died: counts it. */
  workerDied(): void;
  /** Returns the step that is due, and takes it from the agenda. */
  next(): Step | Wait;
  /** Derives what is due next from the result of a step. @param took milliseconds that the step took */
  finish(step: Step, result: StepResult, took: number): void;
}

export type AgendaOptions = Pick<Service, 'workers' | 'log' | 'pool' | 'table' | 'quarantine' | 'watch' | 'now'>;

const NEVER = Number.POSITIVE_INFINITY;
/** The cause of a generation that is tried again although nothing has changed. */
const RETRY = 'retry';

export function createAgenda({ workers, log, pool, table, quarantine, watch, now }: AgendaOptions): Agenda {
  const retries = createRetries(workers, now);
  const tally: Tally = { served: 0, rejected: 0, died: 0, replaced: 0 };
  let wanted: GenerationStep | undefined;
  let rejection: Rejection | undefined;
  /** The log already says why no replacement may serve. */
  let isUnequalLogged = false;
  /** The files that did not load when the pauses between probes began to grow. */
  let brokenFiles = '';

  return {
    get rejection() {
      return rejection;
    },
    tally,
    want(cause) {
      wanted = generationFor(cause);
    },
    workerLost: () => retries.failed('death'),
    workerDied() {
      tally.died++;
    },
    next() {
      const step = wanted ?? chooseStep();
      if (step.kind === 'generation') {
        wanted = undefined;
        retries.begin('generation');
        retries.begin('start');
      }
      return step;
    },
    finish,
  };

  function chooseStep(): Step | Wait {
    const retryIn =
      rejection === undefined ? NEVER : retries.remaining(rejection.error === undefined ? 'generation' : 'start');
    if (retryIn === 0) return generationFor(RETRY);
    const serving = pool.serving();
    const count = workers - serving.filter(({ isFaulty }) => !isFaulty).length;
    if (count <= 0) {
      const time = rejection === undefined ? probeIn() : retryIn;
      return time === 0 ? { kind: 'probe' } : { kind: 'wait', time };
    }
    const isNoneLeft = serving.length === 0;
    // While a generation is rejected the folder differs from what serves, so no replacement would be equal.
    const replacementIn = rejection === undefined ? retries.remaining('replacement') : NEVER;
    const time = Math.max(retries.remaining('death'), isNoneLeft ? 0 : replacementIn);
    if (time > 0) return { kind: 'wait', time: Math.min(time, retryIn) };
    return isNoneLeft ? generationFor('no worker is left') : { kind: 'replacement', count };
  }

  /** Returns the milliseconds until a probe is due; infinite if every group loads. */
  function probeIn(): number {
    const files = Array.from(table.current.groups.values()).flatMap(({ ok, file }) => (ok ? [] : [file]));
    const names = files.sort().join('\n');
    if (names !== brokenFiles) {
      brokenFiles = names;
      retries.forget('probe');
      retries.failed('probe');
    }
    const snapshot = quarantine.releaseChanged().size === 0 ? undefined : watch.takeSnapshot();
    if (snapshot !== undefined && quarantine.hasRetryable(snapshot)) return 0;
    return names === '' ? NEVER : retries.remaining('probe');
  }

  function finish(step: Step, result: StepResult, took: number): void {
    if (step.kind === 'probe' && result.kind !== 'interrupted') retries.failed('probe', took);
    switch (result.kind) {
      case 'serving':
        tally.served++;
        rejection = undefined;
        isUnequalLogged = false;
        for (const attempt of ['generation', 'start', 'replacement'] as const) retries.forget(attempt);
        break;
      case 'replaced':
        tally.replaced += result.count;
        isUnequalLogged = false;
        retries.forget('replacement');
        if (result.hasNewQuarantine) wanted ??= generationFor('a controller that ends its process');
        break;
      case 'lossy':
        retries.failed('generation', took);
        reject(step, result.failures);
        break;
      case 'failed':
        retries.failed('death');
        retries.failed('start', took);
        reject(step, [], result.error);
        break;
      case 'unequal':
        holdReplacement(result, took);
        break;
      case 'outdated':
        if (step.kind === 'generation') wanted ??= step;
        break;
      case 'gain':
        wanted ??= { ...generationFor(RETRY), expected: result.groups };
        return;
    }
    if (step.kind !== 'generation' || step.expected === undefined || result.kind === 'outdated') return;
    // The groups that loaded in the probe did not load in the generation.
    if (isGain(table.current.groups, step.expected)) retries.failedInUse('probe');
  }

  /** Keeps what serves, and logs why: once a change. A retry that fails in the same way is not logged again. */
  function reject(step: Step, failures: readonly GroupLoad[], error?: string): void {
    const cause = step.kind === 'generation' ? step.cause : step.kind === 'replacement' ? 'replacement' : RETRY;
    const isRepeated =
      cause === RETRY && JSON.stringify(rejection?.failures) === JSON.stringify(failures) && rejection?.error === error;
    const generation = table.newest;
    const effect = `generation ${table.current.number} serves on`;
    for (const facts of isRepeated ? [] : error === undefined ? failures : [{ error }]) {
      log.error('generation-rejected', { generation, cause, ...facts, effect });
    }
    rejection = { generation, at: new Date(), failures, error };
    tally.rejected++;
  }

  function holdReplacement({ difference, groups }: Extract<StepResult, { kind: 'unequal' }>, took: number): void {
    // A group was added meanwhile, or a generation without it is due: both are over soon.
    if (difference === 'group-added' || difference === 'group-removed') retries.failed('death');
    // The cause may be a database that is down. No change of the folder says when it is back.
    else retries.failed('replacement', took);
    if (difference === 'other-code') wanted ??= generationFor('the folder has changed');
    if (isUnequalLogged || difference === 'group-added') return;
    isUnequalLogged = true;
    const effect = 'fewer workers serve until the folder loads again';
    log.warn('replacement-rejected', { generation: table.current.number, groups, effect });
  }
}

function generationFor(cause: string): GenerationStep {
  return { kind: 'generation', cause };
}
