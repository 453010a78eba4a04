// The differences between operating systems and between file systems, in one place. Linux is where Gatefold runs in
// production and is tested, Windows is tested under wine (.ci/windows), and macOS is not tested.
import { closeSync, fsyncSync, openSync, renameSync } from 'node:fs';
import { errorCode } from './failure.ts';
import { blockThread } from './time.ts';

const isWindows = process.platform === 'win32';

/**
 * Returns the mode of a file, and on Windows only the bits of its owner. Windows keeps the other rights in an access
 * list, which Node does not read, so no caller logs a warning there about other users.
 */
export function modeOf({ mode }: { readonly mode: number }): number {
  return isWindows ? mode & 0o700 : mode;
}

/** The error codes of Windows for a change of a file that another process has open or is about to remove. */
export const BUSY_CODES: ReadonlySet<string> = new Set(isWindows ? ['EPERM', 'EACCES', 'EBUSY'] : []);
/** Maximum attempts to replace a busy file. A process that reads the credentials table has it open for a moment. */
const MAX_ATTEMPTS = 100;
/** Milliseconds between two attempts. */
const RETRY_INTERVAL = 10;

/** Replaces a file by a rename. @param draftPath a complete file with the new content */
export function replaceFile(draftPath: string, path: string): void {
  for (let attempt = 1; ; attempt++) {
    try {
      return renameSync(draftPath, path);
    } catch (error) {
      if (attempt === MAX_ATTEMPTS || !BUSY_CODES.has(errorCode(error) ?? '')) throw error;
      blockThread(RETRY_INTERVAL);
    }
  }
}

/**
 * Writes a folder to the disk. A rename in the folder survives a power cut only after this write. `replaceFile` leaves
 * this step to its callers, and only the callers whose file must survive take it.
 */
export function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r');
  try {
    fsyncSync(handle);
  } catch (error) {
    // Some file systems cannot sync a folder, and fail with one of these codes.
    if (!['EINVAL', 'EPERM', 'ENOTSUP'].includes(errorCode(error) ?? '')) throw error;
  } finally {
    closeSync(handle);
  }
}

/** Returns whether a process runs, also when it belongs to another user and cannot be signalled. */
export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return errorCode(error) === 'EPERM';
  }
}

/**
 * The error codes of renaming a folder to the path of an existing folder, and of removing a folder that has content.
 * For the rename, Linux and macOS refuse only when the existing folder has content. Windows always refuses.
 */
export const FOLDER_EXISTS_CODES: ReadonlySet<string> = new Set(['ENOTEMPTY', 'EEXIST', ...BUSY_CODES]);

/**
 * True when a process gets a new parent after its parent has ended. On Windows, the process keeps the id of the ended
 * parent.
 */
export const ADOPTS_ORPHANS = !isWindows;
