import { createBackoff } from './backoff.ts';
import { createCrew } from './crew.ts';
import { createFolderWatch } from './folder-watch.ts';
import { type GenerationOutcome, isGroupMissing } from './generation.ts';
import { createLoader } from './loader.ts';
import type { GroupLoad } from './messages.ts';
import { createNewGroups } from './new-groups.ts';
import { createPoisonList } from './poison-list.ts';
import { describeListenError } from './port.ts';
import { createPortKeeper } from './port-keeper.ts';
import { createRejections, RETRY, type RejectionReport } from './rejections.ts';
import { StartError } from './start-error.ts';
import { describeService, type Serving } from './status.ts';
import type { Supervisor, SupervisorOptions } from './supervision.ts';
import { createTrials } from './trials.ts';
import type { WorkerProcess } from './worker-process.ts';

type Loaded = Extract<GenerationOutcome, { kind: 'loaded' }>;

/** A reserve makes the next change live sooner; more than this many processes for that are too many. */
const LARGEST_RESERVE = 8;
/** Milliseconds: a step that the system did not let us make is made again. */
const STEP_RETRY = 1000;
const NEVER_LOADED = 'Cannot start a worker';
export function createSupervisor(options: SupervisorOptions): Supervisor {
  const { dir, log, workers: wanted } = options;
  let counter = 0;
  let current: Serving = { number: 0, groups: new Map(), since: undefined };
  const tally = { served: 0, died: 0, replaced: 0 };
  let stopping = false;
  /** Why a new generation is wanted. */
  let wish: string | undefined;
  /** The folder gives no worker that equals those that serve: no replacement until it changes. */
  let keptOut = false;
  /** It has been logged that a replacement finds no file of a group that serves. */
  let saidGone = false;
  let later: NodeJS.Timeout | undefined;
  let turning = false;
  /** A worker finds out whether a file loads by now: nothing that anything else should wait for. */
  let probing = false;
  /** A worker of the generation to come has imported more than it has reported. */
  let importedEarly = false;
  /** The groups of the generation that is being put to work. */
  let coming: Map<string, GroupLoad> | undefined;

  const backoff = createBackoff({ free: wanted });
  const poison = createPoisonList(dir);
  const crew = createCrew({
    early: options.early,
    events: {
      lost: onLost,
      took: (worker) => keeper.took(worker),
      died: onDied,
      gone(worker) {
        newGroups.gone(worker);
        turn();
      },
      faulty: onFaulty,
      imported: onImported,
      nothingToImport: (worker, group) => newGroups.done(worker, group),
      metrics: (worker, metrics) => options.onMetrics?.(worker, metrics),
    },
  });
  const watch = createFolderWatch({ dir, log, onChange });
  const loader = createLoader({ dir, crew, poison, look: watch.look });
  const keeper = createPortKeeper({ port: options.port, host: options.host, log, serving: crew.serving });
  const newGroups = createNewGroups(() => crew.all().filter(({ state }) => state === 'loaded' || state === 'serving'));
  const trials = createTrials();
  const rejections = createRejections({ log, onRetry: () => want(wish ?? RETRY) });

  return {
    async start() {
      await roll('start');
      watch.start();
      turn();
    },
    renew: () => want('signal'),
    stop() {
      stopping = true;
      watch.stop();
      rejections.cancelRetry();
      clearTimeout(later);
      loader.abort();
      keeper.close();
      for (const worker of crew.all()) {
        if (worker.state === 'serving') worker.drain(options.drainTimeout, options.acceptFor);
        else worker.quit();
      }
      return crew.close();
    },
    kill() {
      for (const worker of crew.all()) worker.kill('the supervisor was told to end at once');
    },
    status: () => describeService({ current, workers: crew.all(), rejections, tally }),
  };

  // What happens from outside. Each leaves a note of what is wanted, and lets the next turn decide.

  function onChange(what: string): void {
    if (loader.isLoading() && !probing) loader.outdated();
    else want(what);
  }

  function want(cause: string): void {
    wish = cause;
    interruptProbe();
    turn();
  }

  function interruptProbe(): void {
    if (probing) loader.abort();
  }

  // The socket that workers share ends with the last of them.
  function onLost(worker: WorkerProcess): void {
    keeper.took(worker);
    if (stopping || current.number === 0) return;
    if (crew.serving().length === 0) keeper.keep();
    backoff.failed();
    interruptProbe();
    turn();
  }

  function onDied(worker: WorkerProcess, reason: string): void {
    if (stopping) return;
    const facts = { worker: worker.pid, generation: worker.generation, reason, file: worker.loadingFile };
    // What ends its process does so in every trial. It is known, and no request was near.
    if (probing && worker.state === 'loading') return log.info('trial-died', facts);
    tally.died++;
    log.error('worker-died', facts);
  }

  function onFaulty(worker: WorkerProcess): void {
    backoff.failed();
    const effect = 'it drains as soon as its replacement serves';
    if (worker.state === 'serving') {
      log.warn('worker-faulty', { worker: worker.pid, effect });
      interruptProbe();
    }
    turn();
  }

  function onImported(worker: WorkerProcess, load: GroupLoad, files: readonly { path: string; fingerprint: string }[]): void {
    // One that is on its way out still imports what its open connections ask for, but its other files may be out of date.
    if (worker.generation >= current.number) {
      watch.imported(load, files);
      // What the generation to come cannot import is no matter of the one that serves.
      if (load.ok || worker.generation === current.number) note(current.groups, load);
      if (coming !== undefined) note(coming, load);
      else if (worker.generation > current.number) importedEarly = true;
    }
    if (load.ok) newGroups.imported(worker, load.group);
    else newGroups.done(worker, load.group);
    if (!load.ok) turn();
  }

  /** One that has answered somewhere stays a group that serves; one that has not, and that some worker cannot import, is none. */
  function note(groups: Map<string, GroupLoad>, load: GroupLoad): void {
    if (groups.get(load.group)?.ok === true && (load.ok || !newGroups.isPending(load.group))) return;
    groups.set(load.group, load);
  }

  // One step at a time.

  function turn(): void {
    if (turning || stopping || current.number === 0) return;
    turning = true;
    clearTimeout(later);
    step()
      .catch((error: unknown) => {
        log.error('supervisor-step-failed', { error: String(error) });
        if (!stopping) later = setTimeout(turn, STEP_RETRY);
        return false;
      })
      .then((again) => {
        turning = false;
        if (again) turn();
      });
  }

  /** Does what is most wanted; false when nothing is, or not yet. */
  async function step(): Promise<boolean> {
    if (wish !== undefined) {
      const cause = wish;
      try {
        await roll(cause);
      } catch (error) {
        wish ??= cause;
        throw error;
      }
      return true;
    }
    const serving = crew.serving();
    const missing = wanted - serving.filter(({ isFaulty }) => !isFaulty).length;
    if (missing > 0 && (!keptOut || serving.length === 0)) {
      const wait = backoff.remaining();
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
    for (const { file, ok } of current.groups.values()) if (ok && crew.serving().length > 0) poison.remove(file);
    watch.trying(before);
    importedEarly = false;
    const outcome = await loader.load(++counter, wanted);
    if (stopping) return;
    if (outcome.kind === 'aborted') return want(cause);
    if (outcome.kind === 'ended') return refuse(cause, `${NEVER_LOADED}: ${outcome.reason}`);
    if (crew.serving().length > 0 && watch.look() === undefined) {
      // The folder went away meanwhile: whatever is there when it is back is a change.
      for (const worker of outcome.workers) worker.quit();
      return watch.trying(new Map());
    }
    const failures = outcome.groups.filter(({ ok }) => !ok);
    const losses = failures.filter(({ group }) => current.groups.get(group)?.ok === true);
    watch.tried({ before, begunAt, groups: outcome.groups, files: outcome.files, broken: failures.length > 0 || before.size === 0 });
    if (losses.length > 0 && crew.serving().length > 0)
      return reject({ generation: counter, cause, failures: losses, took: performance.now() - begun }, outcome);
    // Without a group that came, and serves, while it was listing the folder, it is not the whole.
    if (crew.serving().length > 0 && (importedEarly || isGroupMissing(current.groups.values(), outcome.groups, dir))) {
      for (const worker of outcome.workers) worker.quit();
      return want(cause);
    }
    await putToWork(counter, outcome, { cause, begun, losses });
  }

  async function putToWork(
    number: number,
    { workers, groups }: Loaded,
    about: { cause: string; begun: number; losses: readonly GroupLoad[] },
  ): Promise<void> {
    const old = crew.serving();
    const known = current.groups;
    coming = new Map(groups.map((load) => [load.group, load]));
    const outcomes = await keeper.open(workers);
    const taken = coming;
    coming = undefined;
    if (stopping) return;
    const [first] = outcomes;
    if (first !== undefined && first !== 'listening' && !outcomes.includes('listening')) {
      for (const worker of workers) worker.quit();
      return refuse(about.cause, describeListenError(options.port, options.host, first.code));
    }
    for (const worker of old) worker.drain(options.drainTimeout);
    current = { number, groups: taken, since: new Date() };
    tally.served++;
    rejections.clear();
    keptOut = saidGone = false;
    for (const failure of groups.filter(({ ok, group, error }) => !ok && known.get(group)?.error !== error)) {
      log.error('group-not-loadable', { ...failure });
    }
    if (about.losses.length > 0) log.error('generation-degraded', { generation: number, groups: about.losses.map(({ group }) => group) });
    const took = Math.round(performance.now() - about.begun);
    log.info('generation-serving', { generation: number, cause: about.cause, groups: groups.length, took_ms: took });
    if (number > 1 && old.length > 0) crew.keepReserve(Math.min(wanted, LARGEST_RESERVE));
  }

  function reject(report: Pick<RejectionReport, 'generation' | 'cause' | 'failures' | 'took'>, { workers }: Loaded): void {
    for (const worker of workers) worker.quit();
    rejections.add({ ...report, serving: current.number });
    keptOut = true;
    crew.keepReserve(Math.min(wanted, LARGEST_RESERVE));
  }

  /** No new worker can serve, and no controller is to blame. */
  function refuse(cause: string, error: string): void {
    if (current.number === 0) throw new StartError(error);
    rejections.add({ generation: counter, cause, failures: [], error, serving: current.number, took: 0 });
    backoff.failed();
    keptOut = true;
  }

  /** Workers of the generation that serves, in the place of those that died or are faulty. */
  async function replace(count: number): Promise<void> {
    const known = poison.active().size;
    // What nobody has asked for yet comes as it comes to the others: on its first request, on all workers.
    const outcome = await loader.load(current.number, count, () => Array.from(current.groups.values(), ({ file }) => file));
    if (stopping || outcome.kind === 'aborted') return;
    if (outcome.kind === 'ended') return refuse('replacement', `${NEVER_LOADED}: ${outcome.reason}`);
    if (crew.serving().length > 0 && isKeptOut(outcome)) {
      for (const worker of outcome.workers) worker.quit();
      return;
    }
    await keeper.open(outcome.workers);
    saidGone = false;
    tally.replaced += outcome.workers.length;
    const faulty = crew.serving().filter(({ isFaulty }) => isFaulty);
    for (const worker of faulty.slice(0, count)) worker.drain(options.drainTimeout);
    // A file that ends its process did so in this one; the others do not know it yet.
    if (poison.active().size > known) wish = 'a controller that ends its process';
    log.info('worker-replaced', { generation: current.number, workers: outcome.workers.map(({ pid }) => pid) });
  }

  /** Whether these do not equal those that serve; then what is to happen next is noted. */
  function isKeptOut({ groups, files }: Loaded): boolean {
    const lost = groups.filter(({ ok, group }) => !ok && current.groups.get(group)?.ok === true);
    const effect = 'fewer workers serve until the folder loads again';
    if (lost.length > 0 || !watch.agrees(files)) {
      keptOut = true;
      // It read other code than those that serve, and nothing of it is broken: that code is due.
      if (lost.length === 0) wish = 'the folder has changed';
      log.warn('replacement-kept-out', { generation: current.number, groups: lost, effect });
      return true;
    }
    const loaded = new Set(groups.map(({ group }) => group));
    const gone = Array.from(current.groups.values()).filter(({ ok, group }) => ok && !loaded.has(group));
    if (gone.length === 0) return false;
    // A group came in the meantime, a new generation is due, or the folder is away: it is tried again, with growing pauses.
    backoff.failed();
    if (!saidGone && !isGroupMissing(gone, groups, dir)) {
      saidGone = true;
      log.warn('replacement-kept-out', { generation: current.number, groups: gone, effect });
    }
    return true;
  }

  /**
   * What has not loaded may load by now: a database is there that was away, or what it imports is mended. One worker tries
   * the whole folder, as a generation would, and the others serve on.
   */
  async function tryUnloadedAgain(): Promise<boolean> {
    if (rejections.latest !== undefined) return false;
    const unloaded = Array.from(current.groups.values()).filter(({ ok }) => !ok);
    const wait = trials.remaining(unloaded.map(({ file }) => file));
    const mended = mendedPoison();
    if (mended === undefined && wait > 0) {
      if (unloaded.length > 0) later = setTimeout(turn, wait);
      return false;
    }
    const begun = performance.now();
    const outcome = await probe();
    if (outcome.kind === 'aborted') return true;
    trials.tried(performance.now() - begun);
    if (outcome.kind === 'ended') refuse(RETRY, `${NEVER_LOADED}: ${outcome.reason}`);
    else if (isGain(outcome)) {
      await roll(mended ?? RETRY);
      if (isGain(outcome)) trials.futile();
    }
    return true;
  }

  /** A group that did not load does, and none that serves does not, which would have the generation rejected. */
  function isGain({ groups }: Loaded): boolean {
    const changes = groups.filter(({ group, ok }) => current.groups.get(group)?.ok === !ok);
    return changes.length > 0 && changes.every(({ ok }) => ok);
  }

  /** A file that ended its process stands as it was, but something else has changed: what it imports may be mended. */
  function mendedPoison(): string | undefined {
    const now = poison.active().size === 0 ? undefined : watch.look();
    return now === undefined ? undefined : poison.suspect(now);
  }

  async function probe(): Promise<GenerationOutcome> {
    probing = true;
    try {
      return await loader.probe(current.number);
    } finally {
      probing = false;
      // Whatever this worker met: what serves is tried in each generation and in each replacement.
      for (const { file, ok } of current.groups.values()) if (ok) poison.remove(file);
    }
  }
}
