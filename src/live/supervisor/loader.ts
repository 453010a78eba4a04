// The loader makes a set of workers load the folder, and returns the result. Either all of these workers load the
// folder, or all of them end. One load runs at a time, and can be aborted. A controller that ends or hangs its process
// is put into the quarantine, a list of files that are not imported. The next try skips that controller.
import { errorMessage } from '../../base/failure.ts';
import type { Snapshot } from '../folder/snapshot.ts';
import type { GroupLoad } from '../load/group-load.ts';
import type { LoadedFile } from '../load/module-loader.ts';
import { listGroups } from './group-table.ts';
import type { Quarantine } from './quarantine.ts';
import type { Pool } from './workers/pool.ts';
import type { FileSelection, LoadOutcome, WorkerHandle, WorkerState } from './workers/worker-handle.ts';

export type LoaderResult =
  | {
      readonly kind: 'loaded';
      readonly workers: readonly WorkerHandle[];
      readonly groups: readonly GroupLoad[];
      readonly files: readonly LoadedFile[];
    }
  /** The workers ended before they had loaded, and no controller is to blame. `reason` is one line. */
  | { readonly kind: 'ended'; readonly reason: string }
  | { readonly kind: 'aborted' };

export interface Loader {
  /**
   * @param count the number of workers
   * @param snapshot the folder before the load
   * @param needsService whether a folder without a service file must not serve
   * @param files returns the names of the files to load; by default, these are all controllers
   */
  load(
    generation: number,
    count: number,
    snapshot: Snapshot | undefined,
    needsService: boolean,
    files?: () => readonly string[],
  ): Promise<LoaderResult>;
  /** Loads the folder in one worker, quarantined files included, and ends that worker. */
  probe(generation: number): Promise<LoaderResult>;
  isLoading(): boolean;
  /** Aborts the load if it seems to hang. Called when the folder has changed during a load. */
  abortIfStuck(): void;
  abort(): void;
}

export interface LoaderOptions {
  readonly dir: string;
  readonly pool: Pick<Pool, 'take' | 'fork' | 'all'>;
  readonly quarantine: Quarantine;
  readonly takeSnapshot: () => Snapshot | undefined;
}

/** Milliseconds after which a worker seems to hang, while it loads one file (`loading`) or boots (`booting`). */
const STUCK_AFTER: Readonly<Partial<Record<WorkerState, number>>> = { loading: 700, booting: 3000 };

export function createLoader({ dir, pool, quarantine, takeSnapshot }: LoaderOptions): Loader {
  let running: AbortController | undefined;
  /**
   * Whether `abortIfStuck` has aborted the last load. The next load is then not aborted. So a slow folder that changes
   * all the time does load in the end.
   */
  let wasLastAborted = false;
  const allFiles = () => [...listGroups(dir).values()];

  async function runLoad(options: Omit<GenerationOptions, 'signal'>): Promise<LoaderResult> {
    running = new AbortController();
    try {
      return await loadGeneration({ ...options, signal: running.signal });
    } finally {
      running = undefined;
    }
  }

  return {
    async load(generation, count, snapshot, needsService, files = allFiles) {
      // A quarantined file is tried again when the folder no longer equals this snapshot. So a change that comes during
      // the load, and can correct the file, leads to another try.
      const onHarm = (file: string, reason: string) => quarantine.add(file, reason, snapshot);
      const skip = quarantine.releaseChanged();
      const outcome = await runLoad({ generation, count, files, needsService, takeWorker: pool.take, skip, onHarm });
      if (outcome.kind !== 'aborted') wasLastAborted = false;
      return outcome;
    },
    async probe(generation) {
      const snapshot = takeSnapshot();
      // The quarantined files that this probe has loaded without harm.
      const harmlessFiles = new Set(quarantine.releaseChanged().keys());
      const onHarm = (file: string, reason: string) => {
        harmlessFiles.delete(file);
        quarantine.add(file, reason, snapshot);
      };
      const outcome = await runLoad({
        generation,
        count: 1,
        files: allFiles,
        needsService: false,
        takeWorker: pool.fork,
        skip: new Map(),
        onHarm,
      });
      if (outcome.kind !== 'loaded') return outcome;
      for (const worker of outcome.workers) worker.quit();
      for (const file of harmlessFiles) quarantine.release(file);
      return outcome;
    },
    isLoading: () => running !== undefined,
    abortIfStuck() {
      const isStuck = ({ state, stepAge }: WorkerHandle) => stepAge > (STUCK_AFTER[state] ?? Number.POSITIVE_INFINITY);
      if (wasLastAborted || !pool.all().some(isStuck)) return;
      wasLastAborted = true;
      running?.abort();
    },
    abort: () => running?.abort(),
  };
}

interface GenerationOptions {
  readonly generation: number;
  readonly count: number;
  /** Returns the names of the files to load. Called once in each try, so that all workers load the same files. */
  readonly files: () => readonly string[];
  readonly needsService: boolean;
  /** Returns a worker that has loaded nothing yet. @throws Error when no process can be forked */
  readonly takeWorker: () => WorkerHandle;
  /** The files that no worker may import: file name → reason. */
  readonly skip: ReadonlyMap<string, string>;
  /** Called with a file that ended or hung a worker. The next try skips the file. */
  readonly onHarm: (file: string, reason: string) => void;
  readonly signal: AbortSignal;
}

interface WorkerReport {
  readonly worker: WorkerHandle;
  readonly groups: readonly GroupLoad[];
  readonly files: readonly LoadedFile[];
}

type TryOutcome =
  | { readonly kind: 'loaded'; readonly reports: readonly WorkerReport[] }
  /** A worker ended or could not be started. */
  | Extract<LoadOutcome, { readonly kind: 'ended' }>
  | { readonly kind: 'aborted' };

/** Maximum failed tries without a controller to blame. Memory may be short, or the installation may be broken. */
const MAX_BLAMELESS_TRIES = 3;
async function loadGeneration(options: GenerationOptions): Promise<LoaderResult> {
  const skip = new Map(options.skip);
  for (let blamelessTries = 0; ; ) {
    const outcome = await loadOnce({ files: options.files(), skip, needsService: options.needsService }, options);
    if (outcome.kind === 'aborted') return outcome;
    if (outcome.kind === 'loaded') {
      const loaded = { workers: outcome.reports.map(({ worker }) => worker), ...merge(outcome.reports) };
      // A file that reached the time limit fails alone, and the worker loads the other files. Later loads skip the
      // file, because each of them would also wait for the whole time limit.
      for (const { file, error = '', hung } of loaded.groups) if (hung) options.onHarm(file, error);
      return { kind: 'loaded', ...loaded };
    }
    const { file, reason } = outcome;
    if (file !== undefined) {
      skip.set(file, reason);
      options.onHarm(file, reason);
    } else if (++blamelessTries === MAX_BLAMELESS_TRIES)
      return { kind: 'ended', reason: `Cannot start a worker: ${reason}` };
  }
}

/**
 * Loads the folder in all workers. A group can load in one worker and fail in another, for example because the first
 * worker held a lock. So the worker in which the group failed is ended, and a new worker loads the folder alone. If the
 * group also fails in the new worker, the group counts as failed.
 */
async function loadOnce(selection: FileSelection, options: GenerationOptions): Promise<TryOutcome> {
  const outcome = await loadTogether(options.count, selection, options);
  if (outcome.kind !== 'loaded') return outcome;
  const reports = [...outcome.reports];
  for (const report of reports.filter((report) => lacksGroup(report, reports))) {
    report.worker.quit();
    const secondTry = await loadTogether(1, selection, options);
    if (secondTry.kind !== 'loaded') {
      for (const { worker } of reports) worker.quit();
      return secondTry;
    }
    const [newReport = report] = secondTry.reports;
    reports[reports.indexOf(report)] = newReport;
    if (lacksGroup(newReport, reports)) break;
  }
  return { kind: 'loaded', reports };
}

/** Whether this worker failed to load a group that another worker loaded. */
function lacksGroup({ groups }: WorkerReport, all: readonly WorkerReport[]): boolean {
  return groups.some(
    ({ ok, group }) => !ok && all.some((other) => other.groups.some((load) => load.ok && load.group === group)),
  );
}

async function loadTogether(
  count: number,
  selection: FileSelection,
  { generation, takeWorker, signal }: GenerationOptions,
): Promise<TryOutcome> {
  const workers: WorkerHandle[] = [];
  const reports: WorkerReport[] = [];
  const outcome = await new Promise<TryOutcome>((resolve) => {
    signal.addEventListener('abort', () => resolve({ kind: 'aborted' }), { once: true });
    try {
      while (workers.length < count) workers.push(takeWorker());
    } catch (error) {
      return resolve({ kind: 'ended', file: undefined, reason: errorMessage(error) });
    }
    for (const worker of workers) {
      void worker.load(generation, selection).then((loadOutcome) => {
        // The same file would end or hang the other workers, so there is nothing to wait for.
        if (loadOutcome.kind === 'ended') return resolve(loadOutcome);
        reports.push({ worker, groups: loadOutcome.groups, files: loadOutcome.files });
        if (reports.length === workers.length) resolve({ kind: 'loaded', reports });
      });
    }
  });
  if (outcome.kind !== 'loaded') for (const worker of workers) worker.quit();
  return outcome;
}

/**
 * Merges the reports. A group fails if it failed in one worker. A file that changed during the load is listed once for
 * each content that a worker read.
 */
function merge(reports: readonly WorkerReport[]): { groups: GroupLoad[]; files: LoadedFile[] } {
  const groups = new Map<string, GroupLoad>();
  const files = new Map<string, LoadedFile>();
  for (const report of reports) {
    for (const load of report.groups) if (groups.get(load.group)?.ok !== false) groups.set(load.group, load);
    for (const file of report.files) files.set(`${file.path}\n${file.fingerprint}`, file);
  }
  return { groups: [...groups.values()], files: [...files.values()] };
}
