// Writes the file `DATA_DIR/generation.json`, in which a deployment reads whether its new release serves. The file is
// replaced as a whole, so a reader never sees half of it. A missing data folder is not created.
import { join } from 'node:path';
import { describeFailure, errorCode } from '../../base/failure.ts';
import { processName } from '../../base/folder-lock.ts';
import type { Log } from '../../base/log.ts';
import { makeFolder } from '../../base/make-folder.ts';
import { writeWholeFile } from '../../base/whole-file.ts';
import type { SupervisorStatus } from './status.ts';
import type { StepResult } from './step-parts.ts';

/** The content of the file. Folders are real paths, except for `folder`. */
export interface GenerationRecord {
  readonly pid: number;
  /** The process in the form of base/folder-lock.ts. */
  readonly process: string;
  /** The folder of the Gatefold package that runs. */
  readonly runtime: string;
  /** The controllers folder as it was configured, which may be a path through a symbolic link. */
  readonly folder: string;
  /** Only in `gatefold dev`: its working directory and its ENV_FILE, which the commands there use, too. */
  readonly dev?: DevRecord | undefined;
  /** The controllers folder that was loaded last, successfully or not. Each deployment makes a new folder. */
  readonly release: string;
  readonly state: 'serving' | 'rejected' | 'stopped';
  /** The number of the generation that serves, or 0 when none serves. */
  readonly generation: number;
  /** The reason why `release` does not load, or the files of `release` that do not load. */
  readonly errors: readonly LoadFailure[];
  readonly serving?: string | undefined;
  /** Controllers folders of older generations, whose workers still serve until they have drained. */
  readonly draining: readonly string[];
}

export interface DevRecord {
  readonly folder: string;
  readonly envFile: string;
  /** The fingerprints of the files of variables at the start. */
  readonly fingerprints: readonly string[];
}

/** One failure to load. `at` is the place of the mistake, `file:line`, when the place is known. */
export type LoadFailure = Readonly<Partial<Record<'file' | 'at' | 'error', string | undefined>>>;

interface GenerationFileOptions {
  readonly dataDir: string;
  readonly folder: string;
  readonly packageFolder: string;
  readonly dev?: DevRecord | undefined;
  readonly log: Log;
}

/** Milliseconds until the next attempt after the file could not be written. The disk may then have space again. */
const RETRY_DELAY = 1000;
/** The errors of a data folder that is missing or read-only. The service then writes no file and logs nothing. */
const SILENT_ERRORS: ReadonlySet<string | undefined> = new Set(['ENOENT', 'ENOTDIR', 'EROFS', 'EACCES', 'EPERM']);

export class GenerationFile {
  readonly #options: GenerationFileOptions;
  readonly #path: string;
  /** Number of a generation → the controllers folder that the generation has loaded. */
  readonly #releases = new Map<number, string>();
  #attemptedRelease: string;
  #writtenText = '';
  #loggedReason = '';
  #retryTimer: NodeJS.Timeout | undefined;

  constructor(options: GenerationFileOptions) {
    this.#options = options;
    this.#path = join(options.dataDir, 'generation.json');
    this.#attemptedRelease = options.folder;
  }

  addResult(result: StepResult, status: SupervisorStatus): void {
    if (result.kind === 'serving') this.#releases.set(status.generation, result.release);
    if ('release' in result) this.#attemptedRelease = result.release ?? this.#attemptedRelease;
    this.update(status);
  }

  /** Called when workers came or went, or when a new group was loaded. */
  update({ generation, workers, rejected, notLoadable }: SupervisorStatus): void {
    if (generation === 0) return;
    const usedGenerations = new Set(workers.map((worker) => worker.generation));
    for (const other of this.#releases.keys())
      if (other !== generation && !usedGenerations.has(other)) this.#releases.delete(other);
    const serving = this.#releases.get(generation);
    const failures = rejected === undefined ? notLoadable : rejected.failures;
    const errors = failures.map(({ file, at, error }) => ({ file, at, error }));
    this.#write({
      state: rejected === undefined ? 'serving' : 'rejected',
      generation,
      errors: rejected?.error === undefined ? errors : [{ error: rejected.error }],
      serving,
      draining: [...new Set(this.#releases.values())].filter((release) => release !== serving),
    });
  }

  /** Called when the service stops. `error` is set when the service could not start. */
  stop(error?: string): void {
    const [state, errors] = error === undefined ? (['stopped', []] as const) : (['rejected', [{ error }]] as const);
    this.#write({ state, generation: 0, errors, draining: [] });
    clearTimeout(this.#retryTimer);
  }

  #write(state: Omit<GenerationRecord, 'pid' | 'process' | 'runtime' | 'folder' | 'dev' | 'release'>): void {
    const { dataDir, folder, packageFolder: runtime, dev, log } = this.#options;
    const ids = { pid: process.pid, process: processName() };
    const record: GenerationRecord = { ...ids, runtime, folder, dev, release: this.#attemptedRelease, ...state };
    const text = `${JSON.stringify(record, null, 2)}\n`;
    clearTimeout(this.#retryTimer);
    if (text === this.#writtenText) return;
    try {
      // The commands beside `dev` read its record.
      if (dev !== undefined) makeFolder(dataDir, 0o700);
      writeWholeFile(this.#path, text, { mode: 0o644, isDurable: false });
      this.#writtenText = text;
      this.#loggedReason = '';
    } catch (error) {
      if (SILENT_ERRORS.has(errorCode(error))) return;
      const reason = describeFailure(error);
      if (reason !== this.#loggedReason) log.warn('generation-file-not-written', { file: this.#path, reason });
      this.#loggedReason = reason;
      this.#retryTimer = setTimeout(() => this.#write(state), RETRY_DELAY).unref();
    }
  }
}
