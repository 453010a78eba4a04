// Makes a set of workers load the folder, and says how it went: all of them as one, or not at all. A controller that ends
// or hangs its process is found by name and left out of the next try. What the outcome is worth, the supervisor decides.
import { listControllers } from '../groups/naming.ts';
import type { GroupLoad, LoadedFile } from '../worker/messages.ts';
import type { LoadOrder, LoadOutcome, WorkerProcess } from './worker-handle.ts';

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

export interface GenerationOptions {
  readonly number: number;
  readonly count: number;
  /** File names; asked for once a try, for all workers: a file that comes at this moment would be in the list of one and not of another. */
  readonly files: () => readonly string[];
  /** A worker that has loaded nothing yet. */
  readonly takeWorker: () => WorkerProcess;
  /** File name → reason: left out from the start. */
  readonly skip: ReadonlyMap<string, string>;
  /** `file` ended or hung the workers, and is left out of the next try. */
  readonly onPoison: (file: string, reason: string) => void;
  readonly signal: AbortSignal;
}

/** Tries that no controller is to blame for: a machine out of memory, a broken installation. */
const BLAMELESS_TRIES = 3;

export async function loadGeneration(options: GenerationOptions): Promise<GenerationOutcome> {
  const skip = new Map(options.skip);
  for (let blameless = 0; ; ) {
    const workers = takeWorkers(options);
    const outcome =
      typeof workers === 'string'
        ? ({ kind: 'failed', reason: workers, poison: new Map<string, string>() } as const)
        : await loadOnce(workers, { files: options.files(), skip }, options);
    if (outcome.kind === 'aborted') return outcome;
    if (outcome.kind === 'loaded') {
      // Whoever loads such a file next would wait as long.
      for (const { file, error = '', hung } of outcome.groups) if (hung) options.onPoison(file, error);
      return outcome;
    }
    for (const [file, reason] of outcome.poison) {
      skip.set(file, reason);
      options.onPoison(file, reason);
    }
    if (outcome.poison.size === 0 && ++blameless === BLAMELESS_TRIES)
      return { kind: 'ended', reason: `Cannot start a worker: ${outcome.reason}` };
  }
}

/** All of them, or the reason why not: the system may refuse one more process. */
function takeWorkers({ count, takeWorker }: GenerationOptions): WorkerProcess[] | string {
  const workers: WorkerProcess[] = [];
  try {
    while (workers.length < count) workers.push(takeWorker());
    return workers;
  } catch (error) {
    for (const worker of workers) worker.quit();
    return error instanceof Error ? error.message : String(error);
  }
}

type TryOutcome =
  | Exclude<GenerationOutcome, { kind: 'ended' }>
  | { readonly kind: 'failed'; readonly reason: string; readonly poison: ReadonlyMap<string, string> };

async function loadOnce(workers: readonly WorkerProcess[], order: LoadOrder, { number, signal }: GenerationOptions): Promise<TryOutcome> {
  const ended: Extract<LoadOutcome, { kind: 'ended' }>[] = [];
  const loaded: Extract<LoadOutcome, { kind: 'loaded' }>[] = [];
  const isComplete = await new Promise<boolean>((resolve) => {
    signal.addEventListener('abort', () => resolve(false), { once: true });
    if (signal.aborted) resolve(false);
    for (const worker of workers) {
      void worker.load(number, order).then((outcome) => {
        if (outcome.kind === 'loaded') loaded.push(outcome);
        else ended.push(outcome);
        // What ended one would end the others, too, or hang them: there is nothing to wait for.
        if (outcome.kind === 'ended') resolve(false);
        else if (loaded.length === workers.length) resolve(true);
      });
    }
  });
  if (isComplete) return { kind: 'loaded', workers, ...merge(loaded) };
  // Read before the others are told to end: those go in the middle of a file that is innocent.
  const poison = new Map(ended.flatMap(({ file, reason }) => (file === undefined ? [] : [[file, reason] as const])));
  const reason = ended[0]?.reason ?? '';
  for (const worker of workers) worker.quit();
  return signal.aborted ? { kind: 'aborted' } : { kind: 'failed', reason, poison };
}

/** Group name → file name. */
export function list(dir: string): ReadonlyMap<string, string> {
  try {
    return listControllers(dir);
  } catch {
    // The folder is away; that no group is left is judged by who asked.
    return new Map();
  }
}

/** A group that one worker could not load did not load; the files are those of all, with every state that was read. */
function merge(reports: readonly { groups: readonly GroupLoad[]; files: readonly LoadedFile[] }[]): {
  groups: GroupLoad[];
  files: LoadedFile[];
} {
  const groups = new Map<string, GroupLoad>();
  const files = new Map<string, LoadedFile>();
  for (const report of reports) {
    for (const load of report.groups) if (groups.get(load.group)?.ok !== false) groups.set(load.group, load);
    for (const file of report.files) files.set(`${file.path}\n${file.fingerprint}`, file);
  }
  return { groups: [...groups.values()], files: [...files.values()] };
}
