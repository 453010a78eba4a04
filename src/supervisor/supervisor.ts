// The supervisor: decides when a generation is made, put to work or refused, and which worker is replaced, one step at a
// time. How a folder is watched, a generation loaded, a port kept or a failure remembered, the files beside it know.

import { parseFileName } from '../groups/naming.ts';
import type { GroupLoad } from '../worker/messages.ts';
import { createAdmission } from './admission.ts';
import { createBackoff } from './backoff.ts';
import { isGain, isThereNow, lossesOf, unseenOf } from './comparison.ts';
import { createFolderWatch } from './folder/watch.ts';
import type { GenerationOutcome } from './generation.ts';
import { createRoster } from './group-table.ts';
import { createLoader } from './loader.ts';
import { createNewGroups } from './new-groups.ts';
import { createPoisonList } from './poison-list.ts';
import { createPool } from './pool.ts';
import { StartError } from './port.ts';
import { createRejections, RETRY } from './rejections.ts';
import { describeService } from './status.ts';
import type { Supervisor, SupervisorOptions } from './supervision.ts';
import { createTrials } from './trials.ts';
import type { Death, WorkerProcess } from './worker-handle.ts';

type Loaded = Extract<GenerationOutcome, { kind: 'loaded' }>;

/** Milliseconds: a step that the system did not let us make is made again. */
const STEP_RETRY = 1000;

export function createSupervisor(options: SupervisorOptions): Supervisor {
  const { dir, log, workers: wanted } = options;
  let counter = 0;
  const tally = { served: 0, died: 0, replaced: 0 };
  let stopping = false;
  /** Why a new generation is wanted. */
  let wish: string | undefined;
  let later: NodeJS.Timeout | undefined;
  let turning = false;
  /** Something has happened since the step under way was chosen. */
  let isStale = false;

  const backoff = createBackoff({ free: wanted });
  const poison = createPoisonList(dir);
  const crew = createPool({
    early: options.early,
    drainTimeout: options.drainTimeout,
    events: {
      left: onLost,
      died: onDied,
      gone: turn,
      faulty: onFaulty,
      imported: onImported,
      // One that is on its way out may have read what is out of date.
      read: (worker, files) => worker.generation >= roster.current.number && watch.read(files),
      metrics: (worker, metrics) => options.onMetrics?.(worker, metrics),
    },
  });
  const watch = createFolderWatch({ dir, log, onChange });
  const loader = createLoader({ dir, crew, poison, look: watch.look });
  const newGroups = createNewGroups(crew.all);
  const roster = createRoster(newGroups.isPending);
  const admission = createAdmission({ dir, log, backoff, agrees: watch.agrees });
  const trials = createTrials({ loader, poison, look: watch.look });
  const rejections = createRejections({ log, onRetry: () => want(wish ?? RETRY) });

  return {
    async start() {
      await roll('start');
      watch.start();
      turn();
    },
    renew: () => want('signal'),
    secure: () => secure(crew.all()),
    stop() {
      stopping = true;
      watch.stop();
      rejections.cancelRetry();
      clearTimeout(later);
      loader.abort();
      // First this copy of the socket: nobody accepts on it, and what connects while it is the last one would be reset.
      options.port.close();
      for (const worker of crew.all()) {
        if (worker.state === 'serving') worker.drain(options.drainTimeout, options.acceptFor);
        else worker.quit();
      }
      return crew.close().then((left) => {
        if (left.length > 0) log.error('workers-left', { workers: left.map(({ pid }) => pid) });
      });
    },
    kill() {
      for (const worker of crew.all()) worker.kill('the supervisor was told to end at once');
    },
    status: () => describeService({ current: roster.current, workers: crew.all(), rejections, tally }),
  };

  // What happens from outside. Each leaves a note of what is wanted, and lets the next turn decide.

  function onChange(what: string): void {
    if (loader.isLoading() && !trials.isRunning()) loader.outdated();
    else want(what);
  }

  function want(cause: string): void {
    wish = cause;
    trials.interrupt();
    turn();
  }

  function onLost(): void {
    if (stopping || roster.current.number === 0) return;
    backoff.failed();
    trials.interrupt();
    turn();
  }

  function onDied(worker: WorkerProcess, { reason, during, importing }: Death): void {
    if (stopping) return;
    if (during === 'serving') onLost();
    for (const file of importing) onPoison(worker, file, reason);
    const facts = { worker: worker.pid, generation: worker.generation, reason, file: worker.loadingFile };
    // What ends its process does so in every trial. It is known, and no request was near.
    if (trials.isRunning() && during === 'loading') return log.info('trial-died', facts);
    tally.died++;
    log.error('worker-died', facts);
  }

  /** A new file has ended a worker that served: no other must import it. */
  function onPoison(worker: WorkerProcess, file: string, reason: string): void {
    const group = parseFileName(file)?.group;
    if (group === undefined) return;
    poison.add(file, reason, watch.look());
    for (const other of crew.all()) other.send({ kind: 'skip', file, reason });
    const load = { group, file, ok: false, error: reason };
    onImported(worker, load, []);
    log.error('group-not-loadable', load);
  }

  function onFaulty(worker: WorkerProcess): void {
    backoff.failed();
    if (worker.state === 'serving') {
      log.warn('worker-faulty', { worker: worker.pid, effect: 'it drains as soon as its replacement serves' });
      trials.interrupt();
    }
    turn();
  }

  function onImported(worker: WorkerProcess, load: GroupLoad, files: readonly { path: string; fingerprint: string }[]): void {
    // One that is on its way out still imports what its open connections ask for, but its other files may be out of date.
    if (worker.generation >= roster.current.number) {
      watch.imported(load, files);
      roster.note(worker.generation, load);
    }
    if (load.ok) newGroups.imported(worker, load.group);
    else turn();
  }

  /** Before they listen, and at every change. */
  function secure(workers: readonly WorkerProcess[]): void {
    if (options.secureState === undefined) return;
    const state = options.secureState();
    for (const worker of workers) worker.send({ kind: 'secure', state });
  }

  // One step at a time.

  function turn(): void {
    isStale = true;
    if (turning || stopping || roster.current.number === 0) return;
    turning = true;
    isStale = false;
    clearTimeout(later);
    step()
      .catch((error: unknown) => {
        log.error('supervisor-step-failed', { error: String(error) });
        if (!stopping) later = setTimeout(turn, STEP_RETRY);
        return false;
      })
      .then((again) => {
        turning = false;
        if (again || isStale) turn();
      });
  }

  /** Does what is most wanted; false when nothing is, or not yet. */
  async function step(): Promise<boolean> {
    if (wish !== undefined) {
      const cause = wish;
      await roll(cause).catch((error: unknown) => {
        wish ??= cause;
        throw error;
      });
      return true;
    }
    const serving = crew.serving();
    const missing = wanted - serving.filter(({ isFaulty }) => !isFaulty).length;
    const wait = serving.length === 0 ? backoff.remaining() : admission.remaining();
    if (missing > 0 && Number.isFinite(wait)) {
      if (wait > 0) {
        later = setTimeout(turn, wait);
        return false;
      }
      if (serving.length === 0) await roll('no worker is left');
      else await replace(missing);
      return true;
    }
    return tryUnloadedAgain();
  }

  /** A new generation: it goes to work whole, or not at all. */
  async function roll(cause: string): Promise<void> {
    wish = undefined;
    rejections.cancelRetry();
    const begun = performance.now();
    const begunAt = Date.now();
    const before = watch.look() ?? new Map<string, string>();
    if (before.size === 0 && crew.serving().length > 0) return; // The folder is away.
    // A group that serves is always tried: with it left out the generation would be rejected anyway.
    for (const { file, ok } of roster.current.groups.values()) if (ok && crew.serving().length > 0) poison.remove(file);
    watch.trying(before);
    roster.expect();
    const outcome = await loader.load(++counter, wanted);
    if (stopping) return;
    if (outcome.kind === 'aborted') return want(cause);
    if (outcome.kind === 'ended') return refuse(cause, outcome.reason);
    if (crew.serving().length > 0 && watch.look() === undefined) {
      // The folder went away meanwhile: whatever is there when it is back is a change.
      for (const worker of outcome.workers) worker.quit();
      return watch.trying(new Map());
    }
    const losses = lossesOf(roster.current.groups, outcome.groups);
    const broken = before.size === 0 || outcome.groups.some(({ ok }) => !ok);
    watch.tried({ before, begunAt, groups: outcome.groups, files: outcome.files, broken });
    if (losses.length > 0 && crew.serving().length > 0) return reject(cause, losses, begun, outcome);
    // Without a group that came, and serves, while it was listing the folder, it is not the whole.
    if (crew.serving().length > 0 && (roster.isSurprised() || isThereNow(unseenOf(roster.current.groups, outcome.groups), dir))) {
      for (const worker of outcome.workers) worker.quit();
      return want(cause);
    }
    await putToWork(counter, outcome, cause, begun);
  }

  async function putToWork(number: number, { workers, groups }: Loaded, cause: string, begun: number): Promise<void> {
    const old = crew.serving();
    const known = roster.current.groups;
    const losses = lossesOf(known, groups);
    roster.announce(groups);
    const error = await listen(workers);
    if (stopping) return;
    roster.settle(number, error === undefined);
    if (error !== undefined) return dismiss(workers, cause, error);
    for (const worker of old) worker.drain(options.drainTimeout);
    tally.served++;
    rejections.clear();
    admission.open();
    for (const failure of groups.filter(({ ok, group, error }) => !ok && known.get(group)?.error !== error)) {
      log.error('group-not-loadable', { ...failure });
    }
    if (losses.length > 0) log.error('generation-degraded', { generation: number, groups: losses.map(({ group }) => group) });
    const took = Math.round(performance.now() - begun);
    log.info('generation-serving', { generation: number, cause, groups: groups.length, took_ms: took });
    if (number > 1 && old.length > 0) crew.keepReserve(wanted);
  }

  /** One line when none of them can accept. One that cannot is replaced. */
  async function listen(workers: readonly WorkerProcess[]): Promise<string | undefined> {
    secure(workers);
    const outcomes = await Promise.all(workers.map((worker) => worker.listen(options.port.socket)));
    for (const worker of workers) if (worker.state === 'loaded') worker.quit();
    const failures = outcomes.filter((outcome) => outcome !== 'listening');
    const [first] = failures;
    return first === undefined || failures.length < workers.length ? undefined : options.port.describeError(first.code);
  }

  function reject(cause: string, failures: readonly GroupLoad[], begun: number, { workers }: Loaded): void {
    for (const worker of workers) worker.quit();
    rejections.add({ generation: counter, cause, failures, serving: roster.current.number, took: performance.now() - begun });
    admission.close();
    crew.keepReserve(wanted);
  }

  function dismiss(workers: readonly WorkerProcess[], cause: string, error: string): void {
    for (const worker of workers) worker.quit();
    refuse(cause, error);
  }

  /** No new worker can serve, and no controller is to blame. */
  function refuse(cause: string, error: string): void {
    if (roster.current.number === 0) throw new StartError(error);
    rejections.add({ generation: counter, cause, failures: [], error, serving: roster.current.number, took: 0 });
    backoff.failed();
    admission.close();
  }

  /** Workers of the generation that serves, in the place of those that died or are faulty. */
  async function replace(count: number): Promise<void> {
    const known = poison.active().size;
    const begun = performance.now();
    // What nobody has asked for yet comes as it comes to the others: on its first request, on all workers.
    const outcome = await loader.load(roster.current.number, count, () => Array.from(roster.current.groups.values(), ({ file }) => file));
    if (stopping || outcome.kind === 'aborted') return;
    if (outcome.kind === 'ended') return refuse('replacement', outcome.reason);
    const verdict =
      crew.serving().length === 0 ? 'equal' : admission.judge(roster.current, { ...outcome, took: performance.now() - begun });
    if (verdict === 'other code') wish = 'the folder has changed';
    if (verdict !== 'equal') {
      for (const worker of outcome.workers) worker.quit();
      return;
    }
    const error = await listen(outcome.workers);
    if (stopping) return;
    if (error !== undefined) return dismiss(outcome.workers, 'replacement', error);
    tally.replaced += outcome.workers.length;
    const faulty = crew.serving().filter(({ isFaulty }) => isFaulty);
    for (const worker of faulty.slice(0, count)) worker.drain(options.drainTimeout);
    // A file that ends its process did so in this one; the others do not know it yet.
    if (poison.active().size > known) wish = 'a controller that ends its process';
    log.info('worker-replaced', { generation: roster.current.number, workers: outcome.workers.map(({ pid }) => pid) });
  }

  async function tryUnloadedAgain(): Promise<boolean> {
    if (rejections.latest !== undefined) return false;
    const wait = trials.remaining(roster.current.groups);
    if (wait > 0) {
      if (Number.isFinite(wait)) later = setTimeout(turn, wait);
      return false;
    }
    const outcome = await trials.run(roster.current.number, roster.current.groups);
    if (outcome.kind === 'ended') refuse(RETRY, outcome.reason);
    if (outcome.kind !== 'loaded' || !isGain(roster.current.groups, outcome.groups)) return true;
    await roll(RETRY);
    if (isGain(roster.current.groups, outcome.groups)) trials.futile();
    return true;
  }
}
