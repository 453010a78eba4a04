// The loader: makes a set of workers load the folder, all of them or none, and returns how that ended. One load runs at
// a time, and it can be aborted. A controller that ends or hangs its process is named, and the next try skips it.
import type { LoadedFile } from '../groups/module-loader.ts';
import type { GroupLoad } from '../groups/registry.ts';
import type { Snapshot } from './folder/snapshot.ts';
import { listGroups } from './group-table.ts';
import type { Quarantine } from './quarantine.ts';
import type { Pool } from './workers/pool.ts';
import type { LoadOrder, WorkerProcess, WorkerState } from './workers/worker-handle.ts';

export type GenerationOutcome =
  | {
      readonly kind: 'loaded';
      readonly workers: readonly WorkerProcess[];
      readonly groups: readonly GroupLoad[];
      readonly files: readonly LoadedFile[];
    }
  /** The workers ended before they had loaded, and no controller is to blame. `reason` is one line. */
  | { readonly kind: 'ended'; readonly reason: string }
  | { readonly kind: 'aborted' };

export interface Loader {
  /**
   * Loads the folder in `count` workers.
   *
   * @param before the folder before the load
   * @param files returns the names to load; default: all controllers
   */
  load(
    number: number,
    count: number,
    before: Snapshot | undefined,
    files?: () => readonly string[],
  ): Promise<GenerationOutcome>;
  /** Loads the folder in one worker, quarantined files included, and ends that worker. */
  probe(number: number): Promise<GenerationOutcome>;
  isLoading(): boolean;
  /** The folder has changed during a load: aborts the load if it seems to hang. */
  abortIfStuck(): void;
  abort(): void;
}

export interface LoaderOptions {
  readonly dir: string;
  readonly pool: Pick<Pool, 'take' | 'fork' | 'all'>;
  readonly quarantine: Quarantine;
  readonly takeSnapshot: () => Snapshot | undefined;
}

/** Milliseconds after which a worker seems to hang: loading one file, or booting. */
const STUCK_AFTER: Readonly<Partial<Record<WorkerState, number>>> = { loading: 700, booting: 3000 };

export function createLoader({ dir, pool, quarantine, takeSnapshot }: LoaderOptions): Loader {
  let running: AbortController | undefined;
  /** Never two aborted loads in a row: a folder that loads slowly and changes all the time must load some time. */
  let wasLastAborted = false;
  const allFiles = () => [...listGroups(dir).values()];

  async function run(options: Omit<GenerationOptions, 'signal'>): Promise<GenerationOutcome> {
    running = new AbortController();
    try {
      return await loadGeneration({ ...options, signal: running.signal });
    } finally {
      running = undefined;
    }
  }

  return {
    async load(number, count, before, files = allFiles) {
      // The snapshot is older than the harm: a file that changed in between may have mended it.
      const onHarm = (file: string, reason: string) => quarantine.add(file, reason, before);
      const skip = quarantine.releaseChanged();
      const outcome = await run({ number, count, files, takeWorker: pool.take, skip, onHarm });
      if (outcome.kind !== 'aborted') wasLastAborted = false;
      return outcome;
    },
    async probe(number) {
      const before = takeSnapshot();
      const harmless = new Set(quarantine.releaseChanged().keys());
      const onHarm = (file: string, reason: string) => {
        harmless.delete(file);
        quarantine.add(file, reason, before);
      };
      const outcome = await run({ number, count: 1, files: allFiles, takeWorker: pool.fork, skip: new Map(), onHarm });
      if (outcome.kind !== 'loaded') return outcome;
      for (const worker of outcome.workers) worker.quit();
      for (const file of harmless) quarantine.release(file);
      return outcome;
    },
    isLoading: () => running !== undefined,
    abortIfStuck() {
      const isStuck = ({ state, stepAge }: WorkerProcess) => stepAge > (STUCK_AFTER[state] ?? Number.POSITIVE_INFINITY);
      if (wasLastAborted || !pool.all().some(isStuck)) return;
      wasLastAborted = true;
      running?.abort();
    },
    abort: () => running?.abort(),
  };
}

interface GenerationOptions {
  readonly number: number;
  readonly count: number;
  /** Returns the names to load; called once a try, so that all workers load the same files. */
  readonly files: () => readonly string[];
  /** Returns a worker that has loaded nothing yet. @throws Error of the system */
  readonly takeWorker: () => WorkerProcess;
  /** File name → reason: files that no worker imports. */
  readonly skip: ReadonlyMap<string, string>;
  /** `file` ended or hung a worker; the next try skips it. */
  readonly onHarm: (file: string, reason: string) => void;
  readonly signal: AbortSignal;
}

/** The result of one worker. */
interface Report {
  readonly worker: WorkerProcess;
  readonly groups: readonly GroupLoad[];
  readonly files: readonly LoadedFile[];
}

type TryOutcome =
  | { readonly kind: 'loaded'; readonly reports: readonly Report[] }
  /** A worker ended. `harmful`: file name → reason, of the files that they were importing. */
  | { readonly kind: 'failed'; readonly reason: string; readonly harmful: ReadonlyMap<string, string> }
  | { readonly kind: 'aborted' };

/** Failed tries for which no controller is to blame: the machine is out of memory, or the installation is broken. */
const MAX_BLAMELESS_TRIES = 3;

async function loadGeneration(options: GenerationOptions): Promise<GenerationOutcome> {
  const skip = new Map(options.skip);
  for (let blamelessTries = 0; ; ) {
    const outcome = await loadOnce({ files: options.files(), skip }, options);
    if (outcome.kind === 'aborted') return outcome;
    if (outcome.kind === 'loaded') {
      const loaded = { workers: outcome.reports.map(({ worker }) => worker), ...merge(outcome.reports) };
      // Every later load of a file that hung would take the full time limit too, so the next one skips it.
      for (const { file, error = '', hung } of loaded.groups) if (hung) options.onHarm(file, error);
      return { kind: 'loaded', ...loaded };
    }
    for (const [file, reason] of outcome.harmful) {
      skip.set(file, reason);
      options.onHarm(file, reason);
    }
    if (outcome.harmful.size === 0 && ++blamelessTries === MAX_BLAMELESS_TRIES)
      return { kind: 'ended', reason: `Cannot start a worker: ${outcome.reason}` };
  }
}

/**
 * Loads the folder in all workers. A group that loads in one worker and fails in another may have met a lock that the
 * other held. So the worker that failed ends, and a new one loads alone. If that one fails too, the group fails.
 */
async function loadOnce(order: LoadOrder, options: GenerationOptions): Promise<TryOutcome> {
  const outcome = await loadTogether(options.count, order, options);
  if (outcome.kind !== 'loaded') return outcome;
  const reports = [...outcome.reports];
  for (const report of reports.filter((report) => lacksGroup(report, reports))) {
    report.worker.quit();
    const secondTry = await loadTogether(1, order, options);
    const newReport = secondTry.kind === 'loaded' ? secondTry.reports[0] : undefined;
    if (newReport === undefined) {
      for (const { worker } of reports) worker.quit();
      return secondTry;
    }
    reports[reports.indexOf(report)] = newReport;
    if (lacksGroup(newReport, reports)) break;
  }
  return { kind: 'loaded', reports };
}

/** Whether a group failed in this worker that loaded in another. */
function lacksGroup({ groups }: Report, all: readonly Report[]): boolean {
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
  const harmful = new Map<string, string>();
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
      return giveUp(error instanceof Error ? error.message : String(error));
    }
    for (const worker of workers) {
      void worker.load(number, order).then((outcome) => {
        if (outcome.kind === 'ended') {
          if (outcome.file !== undefined) harmful.set(outcome.file, outcome.reason);
          // The same file would end or hang the other workers, so there is nothing to wait for.
          return giveUp(outcome.reason);
        }
        reports.push({ worker, groups: outcome.groups, files: outcome.files });
        if (reports.length === workers.length) resolve(true);
      });
    }
  });
  if (isComplete) return { kind: 'loaded', reports };
  // A copy: workers that `quit` ends in the middle of a file would add that file, and it has done no harm.
  const blamed = new Map(harmful);
  for (const worker of workers) worker.quit();
  return signal.aborted ? { kind: 'aborted' } : { kind: 'failed', reason: reason ?? '', harmful: blamed };
}

/** Merges the reports: a group fails if it failed in one worker; a file is listed in every state that was read. */
function merge(reports: readonly Report[]): { groups: GroupLoad[]; files: LoadedFile[] } {
  const groups = new Map<string, GroupLoad>();
  const files = new Map<string, LoadedFile>();
  for (const report of reports) {
    for (const load of report.groups) if (groups.get(load.group)?.ok !== false) groups.set(load.group, load);
    for (const file of report.files) files.set(`${file.path}\n${file.fingerprint}`, file);
  }
  return { groups: [...groups.values()], files: [...files.values()] };
}
