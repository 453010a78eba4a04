// The loader makes a set of workers load the folder, and returns the result. Either all of these workers load the
// folder, or all of them end. One load runs at a time, and can be aborted. The next try and later loads skip a
// controller that ends or hangs its process, so that one such file cannot take the service down.
import { join } from 'node:path';
import { errorMessage } from '../../base/failure.ts';
import { fingerprint } from '../../base/fingerprint.ts';
import type { FileSelection, GroupLoad } from '../load/group-load.ts';
import type { LoadedFile } from '../load/module-loader.ts';
import { type GroupTable, listGroups } from './group-table.ts';
import type { Pool } from './workers/pool.ts';
import type { Loaded, LoadOutcome, WorkerState } from './workers/worker-events.ts';
import type { WorkerHandle } from './workers/worker-handle.ts';

export type LoaderResult =
  | (Loaded & { readonly workers: readonly WorkerHandle[] })
  /** The workers ended before they had loaded, and no controller is to blame. `reason` is one line. */
  | { readonly kind: 'ended'; readonly reason: string }
  | { readonly kind: 'aborted' };

export interface LoadOrder {
  readonly generation: number;
  readonly count: number;
  readonly needsService: boolean;
  /** A trial skips no file, and leaves the reserve of workers to the next change. */
  readonly isTrial?: boolean;
  /** Returns the names of the files to load. Called once in each try, so that all workers load the same files. */
  readonly files?: (skip: ReadonlyMap<string, string>) => readonly string[];
}

export interface LoaderOptions {
  readonly dir: string;
  readonly pool: Pick<Pool, 'take' | 'fork' | 'all'>;
  readonly table: Pick<GroupTable, 'current'>;
}

/** Milliseconds after which a worker seems to hang, while it loads one file (`loading`) or boots (`booting`). */
const STUCK_AFTER: Readonly<Partial<Record<WorkerState, number>>> = { loading: 700, booting: 3000 };
/** Maximum failed tries without a controller to blame. Memory may be short, or the installation may be broken. */
const MAX_BLAMELESS_TRIES = 3;

export class Loader {
  readonly #options: LoaderOptions;
  #running: AbortController | undefined;
  /** Whether `abortIfStuck` has aborted the last load. The next one is not aborted, so a slow folder loads at last. */
  #wasLastAborted = false;
  /** The files that ended or hung a worker. A load skips such a file until it changes, or loads in a trial. */
  readonly #harmful = new Map<string, { readonly reason: string; readonly fingerprint: string }>();

  constructor(options: LoaderOptions) {
    this.#options = options;
  }

  get isLoading(): boolean {
    return this.#running !== undefined;
  }

  async load(order: LoadOrder): Promise<LoaderResult> {
    const running = new AbortController();
    this.#running = running;
    try {
      const result = await this.#loadUntilNoneHarms(order, running.signal);
      if (result.kind !== 'aborted') this.#wasLastAborted = false;
      return result;
    } finally {
      this.#running = undefined;
    }
  }

  addHarmful(file: string, reason: string): void {
    this.#harmful.set(file, { reason, fingerprint: this.#fingerprintOf(file) });
  }

  /** Aborts the load if it seems to hang. Called when the folder has changed during a load. */
  abortIfStuck(): void {
    const isStuck = ({ state, stepAge }: WorkerHandle) => stepAge > (STUCK_AFTER[state] ?? Number.POSITIVE_INFINITY);
    if (this.#wasLastAborted || !this.#options.pool.all().some(isStuck)) return;
    this.#wasLastAborted = true;
    this.abort();
  }

  abort(): void {
    this.#running?.abort();
  }

  /** A load without a file that serves would be rejected, so no such file is skipped. */
  #filesToSkip(): Map<string, string> {
    for (const { ok, file } of this.#options.table.current.groups.values()) if (ok) this.#harmful.delete(file);
    for (const [file, { fingerprint }] of this.#harmful)
      if (this.#fingerprintOf(file) !== fingerprint) this.#harmful.delete(file);
    return new Map(Array.from(this.#harmful, ([file, { reason }]) => [file, reason]));
  }

  #fingerprintOf(file: string): string {
    return fingerprint(join(this.#options.dir, file));
  }

  async #loadUntilNoneHarms(order: LoadOrder, signal: AbortSignal): Promise<LoaderResult> {
    const { needsService, isTrial = false, files = () => [...listGroups(this.#options.dir).values()] } = order;
    // A file that was out of time gets twice as much when it is tried again.
    const patience = this.#harmful.size > 0 ? 2 : 1;
    const skip = isTrial ? new Map<string, string>() : this.#filesToSkip();
    for (let blamelessTries = 0; ; ) {
      const selection = { files: files(skip), skip, needsService, patience };
      const outcome = await this.#loadOnce(order, selection, signal);
      if (outcome.kind === 'aborted') return outcome;
      if (outcome.kind === 'loaded') {
        const loaded = { workers: outcome.reports.map(({ worker }) => worker), ...merge(outcome.reports) };
        // A file that reached the time limit fails alone, and the worker loads the other files. Later loads skip the
        // file, because each of them would also wait for the whole time limit.
        for (const { file, error = '', hung } of loaded.groups) if (hung) this.addHarmful(file, error);
        return { kind: 'loaded', ...loaded };
      }
      const { file, reason } = outcome;
      if (file !== undefined) {
        skip.set(file, reason);
        this.addHarmful(file, reason);
      } else if (++blamelessTries === MAX_BLAMELESS_TRIES)
        return { kind: 'ended', reason: `Cannot start a worker: ${reason}` };
    }
  }

  /**
   * Loads the folder in all workers. A group can load in one worker and fail in another, for example because the first
   * worker held a lock. So the worker in which the group failed is ended, and a new worker loads the folder alone. If
   * the group also fails in the new worker, the group counts as failed.
   */
  async #loadOnce(order: LoadOrder, selection: FileSelection, signal: AbortSignal): Promise<TryOutcome> {
    const outcome = await this.#loadTogether(order, selection, signal);
    if (outcome.kind !== 'loaded') return outcome;
    const reports = [...outcome.reports];
    for (const report of reports.filter((report) => lacksGroup(report, reports))) {
      report.worker.quit();
      const secondTry = await this.#loadTogether({ ...order, count: 1 }, selection, signal);
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

  async #loadTogether({ generation, count, isTrial }: LoadOrder, selection: FileSelection, signal: AbortSignal) {
    const { pool } = this.#options;
    const workers: WorkerHandle[] = [];
    const reports: WorkerReport[] = [];
    const outcome = await new Promise<TryOutcome>((resolve) => {
      signal.addEventListener('abort', () => resolve({ kind: 'aborted' }), { once: true });
      try {
        while (workers.length < count) workers.push(isTrial ? pool.fork() : pool.take());
      } catch (error) {
        return resolve({ kind: 'ended', file: undefined, reason: errorMessage(error) });
      }
      for (const worker of workers) {
        void worker.load(generation, selection).then((loadOutcome) => {
          // The same file would end or hang the other workers, so there is nothing to wait for.
          if (loadOutcome.kind === 'ended') return resolve(loadOutcome);
          reports.push({ ...loadOutcome, worker });
          if (reports.length === workers.length) resolve({ kind: 'loaded', reports });
        });
      }
    });
    if (outcome.kind !== 'loaded') for (const worker of workers) worker.quit();
    return outcome;
  }
}

type WorkerReport = Loaded & { readonly worker: WorkerHandle };

type TryOutcome =
  | { readonly kind: 'loaded'; readonly reports: readonly WorkerReport[] }
  /** A worker ended or could not be started. */
  | Extract<LoadOutcome, { readonly kind: 'ended' }>
  | { readonly kind: 'aborted' };

/** Whether this worker failed to load a group that another worker loaded. */
function lacksGroup({ groups }: WorkerReport, all: readonly WorkerReport[]): boolean {
  return groups.some(
    ({ ok, group }) => !ok && all.some((other) => other.groups.some((load) => load.ok && load.group === group)),
  );
}

/** Merges the reports. A group fails if it failed in one worker. A file is listed for each content that was read. */
function merge(reports: readonly WorkerReport[]): { groups: GroupLoad[]; files: LoadedFile[] } {
  const groups = new Map<string, GroupLoad>();
  const files = new Map<string, LoadedFile>();
  for (const report of reports) {
    for (const load of report.groups) if (groups.get(load.group)?.ok !== false) groups.set(load.group, load);
    for (const file of report.files) files.set(`${file.path}\n${file.fingerprint}`, file);
  }
  return { groups: [...groups.values()], files: [...files.values()] };
}
