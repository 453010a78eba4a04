// Writes a file as a draft and renames it, so that a killed process or a full disk leaves the old text or the new one.
// callers/credentials/write/table-file.ts has its own way, which needs a lock and blocks no thread.
import { closeSync, fsyncSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { isSyncForbidden, NEW_FILE, replaceFile, syncFolder } from './system.ts';

export interface WholeFileOptions {
  /** The permissions of the file. By default, only its owner may read it. */
  readonly mode?: number;
  /** Whether the file is synced to disk, so that it survives a power cut. The default is true. */
  readonly isDurable?: boolean;
  /** The path of the draft, which no other process may use at the same time. */
  readonly draft?: string;
}

/** Creates a file or replaces it. @throws the error of a system call; then no draft is left */
export function writeWholeFile(path: string, text: string | Buffer, options: WholeFileOptions = {}): void {
  const { mode, isDurable = true, draft = join(dirname(path), `.${basename(path)}.${process.pid}.tmp`) } = options;
  try {
    // A killed process can have left a draft, with any mode.
    rmSync(draft, { force: true });
    writeNewFile(draft, text, mode, isDurable);
    replaceFile(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
  if (isDurable) syncFolder(dirname(path));
}

/**
 * Creates a file, which can be a draft. Its name survives a power cut only after `syncFolder`.
 *
 * @throws the error of a system call, EEXIST when there is a file. A file that could not be filled is removed
 */
export function writeNewFile(path: string, text: string | Buffer, mode = 0o600, isDurable = true): void {
  const file = openSync(path, isDurable ? NEW_FILE : 'wx', mode);
  try {
    writeFileSync(file, text);
    if (isDurable && !isSyncForbidden) fsyncSync(file);
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  } finally {
    closeSync(file);
  }
}
