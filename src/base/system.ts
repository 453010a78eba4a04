// The differences between operating systems, in one place. Linux is where Gatefold runs in production and is tested,
// Windows is tested under wine (.ci/windows), and macOS is not tested.
import { renameSync } from 'node:fs';
import { errorCode } from './failure.ts';

const isWindows = process.platform === 'win32';

/**
 * Returns the bits of a mode that say who may read and write a file. Windows keeps these rights in an access list,
 * which Node does not read. So on Windows only the bits of the owner are returned, and no warning about other users is
 * logged.
 */
export function modeOf({ mode }: { readonly mode: number }): number {
  return isWindows ? mode & 0o700 : mode;
}

/** The error codes of Windows for a change of a file that another process has open or is about to remove. */
export const BUSY_CODES: ReadonlySet<string> = new Set(isWindows ? ['EPERM', 'EACCES', 'EBUSY'] : []);
/**
 * Maximum attempts to replace a busy file, 10 ms apart. A process that reads the credentials table has the file open
 * for a moment.
 */
const MAX_ATTEMPTS = 100;

/** Replaces a file by a rename. @param draft a complete file with the new content */
export function replaceFile(draft: string, path: string): void {
  for (let attempt = 1; ; attempt++) {
    try {
      return renameSync(draft, path);
    } catch (error) {
      if (attempt === MAX_ATTEMPTS || !BUSY_CODES.has(errorCode(error) ?? '')) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    }
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

/** The error codes of a rename onto a folder that exists. Windows also refuses to replace an empty folder. */
export const FOLDER_EXISTS: ReadonlySet<string> = new Set(['ENOTEMPTY', 'EEXIST', ...BUSY_CODES]);

/**
 * True when a process gets a new parent after its parent has ended. On Windows, the process keeps the id of the ended
 * parent.
 */
export const ADOPTS_ORPHANS = !isWindows;
