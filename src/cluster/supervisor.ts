import { createBackoff } from './backoff.ts';
import { createCrew } from './crew.ts';
import { createFolderWatch } from './folder-watch.ts';
import { type GenerationOutcome, isGroupMissing } from './generation.ts';
import { createLoader } from './loader.ts';
import type { GroupLoad } from './messages.ts';
import { createPoisonList } from './poison-list.ts';
import { describeListenError } from './port.ts';
import { createPortKeeper } from './port-keeper.ts';
import { createRejections, RETRY } from './rejections.ts';
import { StartError } from './start-error.ts';
import { describeService, type Serving } from './status.ts';
import type { Supervisor, SupervisorOptions } from './supervision.ts';
import type { WorkerProcess } from './worker-process.ts';

type Loaded = Extract<GenerationOutcome, { kind: 'loaded' }>;

/** A reserve makes the next change live sooner; more than this many processes for that are too many. */
const LARGEST_RESERVE = 8;
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
  let later: NodeJS.Timeout | undefined;
  let turning = false;
  const early: (() => void)[] = [];

  const backoff = createBackoff({ free: wanted });
  const poison = createPoisonList(dir);
  const crew = createCrew({
    early: options.early,
    events: {
      lost: onLost,
      took: (worker) => keeper.took(worker),
      died: onDied,
      gone: () => turn(),
      faulty: onFaulty,
      imported: onImported,
      metrics: (worker, metrics) => options.onMetrics?.(worker, metrics),
    },
  });
  const watch = createFolderWatch({ dir, log, onChange });
  const loader = createLoader({ crew, poison, look: watch.look });
  const keeper = createPortKeeper({ port: options.port, host: options.host, log, serving: crew.serving });
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
    if (loader.isLoading()) loader.outdated();
    else want(what);
  }

  function want(cause: string): void {
    wish = cause;
    turn();
  }

  // The socket that workers share ends with the last of them.
  function onLost(worker: WorkerProcess): void {
    keeper.took(worker);
    if (stopping || current.number === 0) return;
    if (crew.serving().length === 0) keeper.keep();
    backoff.failed();
    turn();
  }

  function onDied(worker: WorkerProcess, reason: string): void {
    if (stopping) return;
    tally.died++;
    log.error('worker-died', { worker: worker.pid, generation: worker.generation, reason, file: worker.loadingFile });
  }

  function onFaulty(worker: WorkerProcess): void {
    backoff.failed();
    const effect = 'it drains as soon as its replacement serves';
    if (worker.state === 'serving') log.warn('worker-faulty', { worker: worker.pid, effect });
    turn();
  }

  function onImported(worker: WorkerProcess, load: GroupLoad, files: readonly { path: string; fingerprint: string }[]): void {
    // A generation listens a moment before it counts: what it imports in that moment must count, too.
    if (worker.generation > current.number) early.push(() => onImported(worker, load, files));
    if (worker.generation !== current.number) return;
    watch.imported(load, files);
    if (current.groups.get(load.group)?.ok === true) return;
    current.groups.set(load.group, load);
    for (const other of load.ok ? crew.serving() : []) if (other !== worker) other.send({ kind: 'import', group: load.group });
  }

  // One step at a time.

  function turn(): void {
    if (turning || stopping || current.number === 0) return;
    turning = true;
    clearTimeout(later);
    step()
      .catch((error: unknown) => {
        log.error('supervisor-step-failed', { error: String(error) });
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
      await roll(wish);
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
    return tryPoisonAgain();
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
    const outcome = await loader.load(++counter, wanted);
    if (stopping) return;
    if (outcome.kind === 'aborted') return want(cause);
    if (outcome.kind === 'ended') return refuse(cause, `${NEVER_LOADED}: ${outcome.reason}`);
    const failures = outcome.groups.filter(({ ok }) => !ok);
    const losses = failures.filter(({ group }) => current.groups.get(group)?.ok === true);
    watch.tried({ before, begunAt, groups: outcome.groups, files: outcome.files, broken: failures.length > 0 || before.size === 0 });
    if (losses.length > 0 && crew.serving().length > 0) return reject(counter, cause, losses, outcome);
    // Without a group that came, and serves, while it was listing the folder, it is not the whole.
    if (crew.serving().length > 0 && isGroupMissing(current.groups.values(), outcome.groups, dir)) {
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
    const outcomes = await keeper.open(workers);
    if (stopping) return;
    const [first] = outcomes;
    if (first !== undefined && first !== 'listening' && !outcomes.includes('listening')) {
      for (const worker of workers) worker.quit();
      return refuse(about.cause, describeListenError(options.port, options.host, first.code));
    }
    for (const worker of old) worker.drain(options.drainTimeout);
    const known = current.groups;
    current = { number, groups: new Map(groups.map((load) => [load.group, load])), since: new Date() };
    for (const imported of early.splice(0)) imported();
    tally.served++;
    rejections.clear();
    keptOut = false;
    for (const failure of groups.filter(({ ok, group, error }) => !ok && known.get(group)?.error !== error)) {
      log.error('group-not-loadable', { ...failure });
    }
    if (about.losses.length > 0) log.error('generation-degraded', { generation: number, groups: about.losses.map(({ group }) => group) });
    const took = Math.round(performance.now() - about.begun);
    log.info('generation-serving', { generation: number, cause: about.cause, groups: groups.length, took_ms: took });
    if (number > 1 && old.length > 0) crew.keepReserve(Math.min(wanted, LARGEST_RESERVE));
  }

  function reject(generation: number, cause: string, failures: readonly GroupLoad[], { workers }: Loaded): void {
    for (const worker of workers) worker.quit();
    const poisonous = poison.active();
    const isFinal = failures.some(({ file }) => poisonous.has(file));
    rejections.add({ generation, cause, failures, serving: current.number, isFinal });
    keptOut = true;
    crew.keepReserve(Math.min(wanted, LARGEST_RESERVE));
  }

  /** No new worker can serve, and no controller is to blame. */
  function refuse(cause: string, error: string): void {
    if (current.number === 0) throw new StartError(error);
    rejections.add({ generation: counter, cause, failures: [], error, serving: current.number, isFinal: false });
    backoff.failed();
    keptOut = true;
  }

  /** Workers of the generation that serves, in the place of those that died or are faulty. */
  async function replace(count: number): Promise<void> {
    const known = poison.active().size;
    const outcome = await loader.load(current.number, count);
    if (stopping || outcome.kind === 'aborted') return;
    if (outcome.kind === 'ended') return refuse('replacement', `${NEVER_LOADED}: ${outcome.reason}`);
    const lost = outcome.groups.filter(({ ok, group }) => !ok && current.groups.get(group)?.ok === true);
    if ((lost.length > 0 || !watch.agrees(outcome.files)) && crew.serving().length > 0) {
      for (const worker of outcome.workers) worker.quit();
      keptOut = true;
      // It read other code than those that serve, and nothing of it is broken: that code is due.
      if (lost.length === 0) wish = 'the folder has changed';
      const effect = 'fewer workers serve until the folder loads again';
      log.warn('replacement-kept-out', { generation: current.number, groups: lost, effect });
      return;
    }
    await keeper.open(outcome.workers);
    tally.replaced += outcome.workers.length;
    const faulty = crew.serving().filter(({ isFaulty }) => isFaulty);
    for (const worker of faulty.slice(0, count)) worker.drain(options.drainTimeout);
    for (const load of outcome.groups) if (!current.groups.has(load.group)) current.groups.set(load.group, load);
    // A file that ends its process did so in this one; the others do not know it yet.
    if (poison.active().size > known) wish = 'a controller that ends its process';
    log.info('worker-replaced', { generation: current.number, workers: outcome.workers.map(({ pid }) => pid) });
  }

  /** A file that ended its process stands as it was, but something else has changed: what it imports may be mended. */
  async function tryPoisonAgain(): Promise<boolean> {
    if (poison.active().size === 0 || rejections.latest !== undefined) return false;
    const now = watch.look();
    const file = now === undefined ? undefined : poison.suspect(now);
    if (file === undefined) return false;
    const reason = poison.active().get(file) ?? '';
    poison.remove(file);
    const outcome = await loader.load(current.number, 1);
    if (outcome.kind === 'loaded') for (const worker of outcome.workers) worker.quit();
    if (poison.active().has(file)) return true;
    if (outcome.kind === 'loaded') wish = file;
    else poison.add(file, reason, now);
    return true;
  }
}
