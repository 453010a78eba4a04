// Makes a set of workers load the folder, and says how it went: all of them as one, or not at all. One load runs at a
// time, and can be given up. A controller that ends or hangs its process is found by name and left out of the next try.
// What the outcome is worth, and when a load is wanted, the supervisor decides.
import type { LoadedFile } from '../groups/module-loader.ts';
import type { GroupLoad } from '../groups/registry.ts';
import type { Snapshot } from './folder/snapshot.ts';
import { listGroups } from './group-table.ts';
import type { PoisonList } from './poison-list.ts';
import type { Pool } from './workers/pool.ts';
import type { LoadOrder, WorkerProcess, WorkerState } from './workers/worker-handle.ts';

export type GenerationOutcome =
  | {
      readonly kind: 'loaded';
      readonly workers: readonly WorkerProcess[];
      readonly groups: readonly GroupLoad[];
      readonly files: readonly LoadedFile[];
    }
  /** The workers ended before they had loaded, and no controller is to blame; one line says so. */
  | { readonly kind: 'ended'; readonly reason: string }
  | { readonly kind: 'aborted' };

export interface Loader {
  /** @param before a look at the folder from before now. @param files names in it; default: all that are controllers */
  load(
    number: number,
    count: number,
    before: Snapshot | undefined,
    files?: () => readonly string[],
  ): Promise<GenerationOutcome>;
  /** One worker loads the folder, with what has ended or hung its process earlier, and goes. */
  probe(number: number): Promise<GenerationOutcome>;
  isLoading(): boolean;
  /** What is being loaded is out of date. It goes on, unless it seems to be stuck. */
  outdated(): void;
  abort(): void;
}

export interface LoaderOptions {
  readonly dir: string;
  readonly pool: Pick<Pool, 'take' | 'fork' | 'all'>;
  readonly poison: PoisonList;
  readonly look: () => Snapshot | undefined;
}

/**
 * A generation that is out of date is given up for the next when a worker has been as long at one file, or at its
 * start.
 */
const SLOW: Readonly<Partial<Record<WorkerState, number>>> = { loading: 700, booting: 3000 };

export function createLoader({ dir, pool, poison, look }: LoaderOptions): Loader {
  let running: AbortController | undefined;
  /** Never two in a row: a folder that is slow to load and always changing must be loaded some time. */
  let gaveUpLast = false;
  const all = () => [...listGroups(dir).values()];

  async function run(options: Omit<GenerationOptions, 'signal'>): Promise<GenerationOutcome> {
    running = new AbortController();
    try {
      return await loadGeneration({ ...options, signal: running.signal });
    } finally {
      running = undefined;
    }
  }

  return {
    async load(number, count, before, files = all) {
      // What has changed since that look may have mended what did harm.
      const onPoison = (file: string, reason: string) => poison.add(file, reason, before);
      const outcome = await run({ number, count, files, takeWorker: pool.take, skip: poison.active(), onPoison });
      if (outcome.kind !== 'aborted') gaveUpLast = false;
      return outcome;
    },
    async probe(number) {
      const before = look();
      const harmless = new Set(poison.active().keys());
      const onPoison = (file: string, reason: string) => {
        harmless.delete(file);
        poison.add(file, reason, before);
      };
      const outcome = await run({ number, count: 1, files: all, takeWorker: pool.fork, skip: new Map(), onPoison });
      if (outcome.kind !== 'loaded') return outcome;
      for (const worker of outcome.workers) worker.quit();
      for (const file of harmless) poison.remove(file);
      return outcome;
    },
    isLoading: () => running !== undefined,
    outdated() {
      if (gaveUpLast || !pool.all().some(({ state, stepFor }) => stepFor > (SLOW[state] ?? Number.POSITIVE_INFINITY)))
        return;
      gaveUpLast = true;
      running?.abort();
    },
    abort: () => running?.abort(),
  };
}

interface GenerationOptions {
  readonly number: number;
  readonly count: number;
  /**
   * Asked for once a try, for all workers: a file that comes at this moment would be in the list of one and not of
   * another.
   */
  readonly files: () => readonly string[];
  /** A worker that has loaded nothing yet. @throws Error of the system */
  readonly takeWorker: () => WorkerProcess;
  /** File name → reason: left out from the start. */
  readonly skip: ReadonlyMap<string, string>;
  /** `file` ended or hung the workers, and is left out of the next try. */
  readonly onPoison: (file: string, reason: string) => void;
  readonly signal: AbortSignal;
}

/** What one worker has loaded. */
interface Report {
  readonly worker: WorkerProcess;
  readonly groups: readonly GroupLoad[];
  readonly files: readonly LoadedFile[];
}

type TryOutcome =
  | { readonly kind: 'loaded'; readonly reports: readonly Report[] }
  | { readonly kind: 'failed'; readonly reason: string; readonly poison: ReadonlyMap<string, string> }
  | { readonly kind: 'aborted' };

/** Tries that no controller is to blame for: a machine out of memory, a broken installation. */
const BLAMELESS_TRIES = 3;

async function loadGeneration(options: GenerationOptions): Promise<GenerationOutcome> {
  const skip = new Map(options.skip);
  for (let blameless = 0; ; ) {
    const outcome = await loadOnce({ files: options.files(), skip }, options);
    if (outcome.kind === 'aborted') return outcome;
    if (outcome.kind === 'loaded') {
      const loaded = { workers: outcome.reports.map(({ worker }) => worker), ...merge(outcome.reports) };
      // Whoever loads one that hung would wait as long.
      for (const { file, error = '', hung } of loaded.groups) if (hung) options.onPoison(file, error);
      return { kind: 'loaded', ...loaded };
    }
    for (const [file, reason] of outcome.poison) {
      skip.set(file, reason);
      options.onPoison(file, reason);
    }
    if (outcome.poison.size === 0 && ++blameless === BLAMELESS_TRIES)
      return { kind: 'ended', reason: `Cannot start a worker: ${outcome.reason}` };
  }
}

/**
 * A group that loads in one worker and not in another may have met a lock that the other held for a moment: the worker
 * that failed gives way to a new one, which loads alone. Where that fails as well, it was no moment.
 */
async function loadOnce(order: LoadOrder, options: GenerationOptions): Promise<TryOutcome> {
  const outcome = await loadTogether(options.count, order, options);
  if (outcome.kind !== 'loaded') return outcome;
  const reports = [...outcome.reports];
  for (const behind of reports.filter((report) => isBehind(report, reports))) {
    behind.worker.quit();
    const again = await loadTogether(1, order, options);
    const fresh = again.kind === 'loaded' ? again.reports[0] : undefined;
    if (fresh === undefined) {
      for (const { worker } of reports) worker.quit();
      return again;
    }
    reports[reports.indexOf(behind)] = fresh;
    if (isBehind(fresh, reports)) break;
  }
  return { kind: 'loaded', reports };
}

function isBehind({ groups }: Report, all: readonly Report[]): boolean {
  return groups.some(
    ({ ok, group }) => !ok && all.some((other) => other.groups.some((load) => load.ok && load.group === group)),
  );
}

async function loadTogether(
  count: number,
  order: LoadOrder,
  { number, takeWorker, signal }: GenerationOptions,
): Promise<TryOutcome> {
  const workers: WorkerProcess[] = [];
  const reports: Report[] = [];
  const poison = new Map<string, string>();
  let reason: string | undefined;
  const isComplete = await new Promise<boolean>((resolve) => {
    const giveUp = (why: string | undefined) => {
      reason ??= why;
      resolve(false);
    };
    signal.addEventListener('abort', () => giveUp(undefined), { once: true });
    if (signal.aborted) return giveUp(undefined);
    try {
      while (workers.length < count) workers.push(takeWorker());
    } catch (error) {
      // The system refuses one more process.
      return giveUp(error instanceof Error ? error.message : String(error));
    }
    for (const worker of workers) {
      void worker.load(number, order).then((outcome) => {
        if (outcome.kind === 'ended') {
          if (outcome.file !== undefined) poison.set(outcome.file, outcome.reason);
          // What ended one would end the others, too, or hang them: there is nothing to wait for.
          return giveUp(outcome.reason);
        }
        reports.push({ worker, groups: outcome.groups, files: outcome.files });
        if (reports.length === workers.length) resolve(true);
      });
    }
  });
  if (isComplete) return { kind: 'loaded', reports };
  // Copied before the others are told to end: those go in the middle of a file that is innocent.
  const blamed = new Map(poison);
  for (const worker of workers) worker.quit();
  return signal.aborted ? { kind: 'aborted' } : { kind: 'failed', reason: reason ?? '', poison: blamed };
}

/** A group that one worker could not load did not load; the files are those of all, with every state that was read. */
function merge(reports: readonly Report[]): { groups: GroupLoad[]; files: LoadedFile[] } {
  const groups = new Map<string, GroupLoad>();
  const files = new Map<string, LoadedFile>();
  for (const report of reports) {
    for (const load of report.groups) if (groups.get(load.group)?.ok !== false) groups.set(load.group, load);
    for (const file of report.files) files.set(`${file.path}\n${file.fingerprint}`, file);
  }
  return { groups: [...groups.values()], files: [...files.values()] };
}
