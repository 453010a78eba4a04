// The generation file: `DATA_DIR/generation.json`, from which a deployment learns whether the release that it made
// serves. It is replaced whole, so a reader never sees half of it. A data folder that is missing stays so.
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describeFailure, errorCode } from '../base/failure.ts';
import type { Log } from '../base/log.ts';
import { replaceFile } from '../base/system.ts';
import type { StepResult } from './service.ts';
import type { SupervisorStatus } from './status.ts';

/** The content of the file. Folders are real paths, except for `folder`. */
export interface GenerationRecord {
  readonly pid: number;
  /** The package that runs. */
  readonly runtime: string;
  /** The controllers folder as it was configured, which may lead through a link. */
  readonly folder: string;
  /** The controllers folder that was loaded last, whether or not it serves. */
  readonly release: string;
  readonly state: 'serving' | 'rejected' | 'stopped';
  /** The number of the generation that serves; 0: none. */
  readonly generation: number;
  /** Why `release` does not load, or which files of it do not. */
  readonly errors: readonly LoadFailure[];
  /** The controllers folder that serves. */
  readonly serving?: string;
  /** Other controllers folders that workers still serve until they have drained. */
  readonly draining: readonly string[];
}

/** `at`: the place, `file:line`, where it is known. */
export interface LoadFailure {
  readonly file?: string;
  readonly at?: string | undefined;
  readonly error: string | undefined;
}

export interface GenerationFile {
  /** A step has ended. */
  addResult(result: StepResult, status: SupervisorStatus): void;
  /** Workers came or went, or a new group was loaded. */
  update(status: SupervisorStatus): void;
  /** The service stops; `error`: it could not start. */
  stop(error?: string): void;
}

export interface GenerationFileOptions {
  readonly dataDir: string;
  readonly folder: string;
  /** The folder of the package that runs. */
  readonly runtime: string;
  readonly log: Log;
}

/** Milliseconds after which a file that could not be written is written again: the disk may have space by then. */
const RETRY_DELAY = 1000;
/** The reasons for which there is no such file, and nobody misses it. */
const ABSENT: ReadonlySet<string | undefined> = new Set(['ENOENT', 'ENOTDIR', 'EROFS', 'EACCES', 'EPERM']);

export function createGenerationFile({ dataDir, folder, runtime, log }: GenerationFileOptions): GenerationFile {
  const path = join(dataDir, 'generation.json');
  /** By number, the folder that a generation has loaded. */
  const releases = new Map<number, string>();
  let attempted = folder;
  let written = '';
  let lastReason = '';
  let timer: NodeJS.Timeout | undefined;

  return {
    addResult(result, status) {
      if (!('release' in result) || result.release === undefined) return update(status);
      attempted = result.release;
      if (result.kind === 'serving') releases.set(status.generation, attempted);
      update(status);
    },
    update,
    stop(error) {
      write({
        release: attempted,
        state: error === undefined ? 'stopped' : 'rejected',
        generation: 0,
        errors: error === undefined ? [] : [{ error }],
        draining: [],
      });
      clearTimeout(timer);
    },
  };

  function update({ generation, workers, rejected, notLoadable }: SupervisorStatus): void {
    if (generation === 0) return;
    const inUse = new Set(workers.map((worker) => worker.generation));
    for (const number of releases.keys()) if (number !== generation && !inUse.has(number)) releases.delete(number);
    const serving = releases.get(generation);
    const failures = rejected === undefined ? notLoadable : rejected.failures;
    const errors = failures.map(({ file, at, error }) => ({ file, at, error }));
    write({
      release: attempted,
      state: rejected === undefined ? 'serving' : 'rejected',
      generation,
      errors: rejected?.error === undefined ? errors : [{ error: rejected.error }],
      ...(serving === undefined ? {} : { serving }),
      draining: [...new Set(releases.values())].filter((release) => release !== serving),
    });
  }

  function write(state: Omit<GenerationRecord, 'pid' | 'runtime' | 'folder'>): void {
    const record: GenerationRecord = { pid: process.pid, runtime, folder, ...state };
    const text = `${JSON.stringify(record, null, 2)}\n`;
    clearTimeout(timer);
    if (text === written) return;
    const draft = join(dataDir, `.generation.json.${process.pid}.tmp`);
    try {
      writeFileSync(draft, text, { mode: 0o644 });
      replaceFile(draft, path);
      written = text;
      lastReason = '';
    } catch (error) {
      if (ABSENT.has(errorCode(error))) return;
      rmSync(draft, { force: true });
      const reason = describeFailure(error);
      if (reason !== lastReason) log.warn('generation-file-not-written', { file: path, reason });
      lastReason = reason;
      timer = setTimeout(write, RETRY_DELAY, state).unref();
    }
  }
}
