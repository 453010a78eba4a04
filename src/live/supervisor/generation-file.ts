// Writes the file `DATA_DIR/generation.json`, in which a deployment reads whether its new release serves. The file is
// replaced as a whole, so a reader never sees half of it. A missing data folder is not created. A generation is one
// load of the controllers folder by a new set of workers.
import { join } from 'node:path';
import { describeFailure, errorCode } from '../../base/failure.ts';
import type { Log } from '../../base/log.ts';
import { makeFolder } from '../../base/make-folder.ts';
import { writeWholeFile } from '../../base/whole-file.ts';
import type { SupervisorStatus } from './status.ts';
import type { StepResult } from './step-parts.ts';

/** The content of the file. Folders are real paths, except for `folder`. */
export interface GenerationRecord {
  readonly pid: number;
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
  /** The controllers folder that serves. */
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
export interface LoadFailure {
  readonly file?: string;
  readonly at?: string | undefined;
  readonly error: string | undefined;
}

export interface GenerationFile {
  addResult(result: StepResult, status: SupervisorStatus): void;
  /** Called when workers came or went, or when a new group was loaded. */
  update(status: SupervisorStatus): void;
  /** Called when the service stops. `error` is set when the service could not start. */
  stop(error?: string): void;
}

export interface GenerationFileOptions {
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

export function createGenerationFile(options: GenerationFileOptions): GenerationFile {
  const { dataDir, folder, packageFolder, dev, log } = options;
  const path = join(dataDir, 'generation.json');
  /** Number of a generation → the controllers folder that the generation has loaded. */
  const releases = new Map<number, string>();
  let attemptedRelease = folder;
  let writtenText = '';
  let loggedReason = '';
  let retryTimer: NodeJS.Timeout | undefined;

  return {
    addResult(result, status) {
      if (result.kind === 'serving') releases.set(status.generation, result.release);
      if ('release' in result) attemptedRelease = result.release ?? attemptedRelease;
      update(status);
    },
    update,
    stop(error) {
      write({
        release: attemptedRelease,
        state: error === undefined ? 'stopped' : 'rejected',
        generation: 0,
        errors: error === undefined ? [] : [{ error }],
        draining: [],
      });
      clearTimeout(retryTimer);
    },
  };

  function update({ generation, workers, rejected, notLoadable }: SupervisorStatus): void {
    if (generation === 0) return;
    const usedGenerations = new Set(workers.map((worker) => worker.generation));
    for (const other of releases.keys())
      if (other !== generation && !usedGenerations.has(other)) releases.delete(other);
    const serving = releases.get(generation);
    const failures = rejected === undefined ? notLoadable : rejected.failures;
    const errors = failures.map(({ file, at, error }) => ({ file, at, error }));
    write({
      release: attemptedRelease,
      state: rejected === undefined ? 'serving' : 'rejected',
      generation,
      errors: rejected?.error === undefined ? errors : [{ error: rejected.error }],
      serving,
      draining: [...new Set(releases.values())].filter((release) => release !== serving),
    });
  }

  function write(state: Omit<GenerationRecord, 'pid' | 'runtime' | 'folder' | 'dev'>): void {
    const record: GenerationRecord = { pid: process.pid, runtime: packageFolder, folder, dev, ...state };
    const text = `${JSON.stringify(record, null, 2)}\n`;
    clearTimeout(retryTimer);
    if (text === writtenText) return;
    try {
      // The commands beside `dev` read its record.
      if (dev !== undefined) makeFolder(dataDir, 0o700);
      writeWholeFile(path, text, { mode: 0o644, isDurable: false });
      writtenText = text;
      loggedReason = '';
    } catch (error) {
      if (SILENT_ERRORS.has(errorCode(error))) return;
      const reason = describeFailure(error);
      if (reason !== loggedReason) log.warn('generation-file-not-written', { file: path, reason });
      loggedReason = reason;
      retryTimer = setTimeout(write, RETRY_DELAY, state).unref();
    }
  }
}
