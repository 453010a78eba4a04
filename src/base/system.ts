// The differences between operating systems, in one place. Linux is where Gatefold runs in production and is tested,
// Windows is tested under wine (.ci/windows), and macOS is not tested.
import { renameSync } from 'node:fs';
import { errorCode } from './failure.ts';

const isWindows = process.platform === 'win32';

/**
 * Returns the bits of a mode that say who may read and write a file. On Windows an access list says so, which Node does
 * not read. So only the owner has bits there, and nobody is warned of others.
 */
export function modeOf({ mode }: { readonly mode: number }): number {
  return isWindows ? mode & 0o700 : mode;
}

/** The error codes with which Windows refuses to change what another process has open, or is about to remove. */
export const BUSY: ReadonlySet<string> = new Set(isWindows ? ['EPERM', 'EACCES', 'EBUSY'] : []);
/** Attempts to replace a file that is busy, 10 ms apart. A reader of a table has it open for a moment. */
const MAX_ATTEMPTS = 100;

/** Puts a draft in the place of a file. */
export function replaceFile(draft: string, path: string): void {
  for (let attempt = 1; ; attempt++) {
    try {
      return renameSync(draft, path);
    } catch (error) {
      if (attempt === MAX_ATTEMPTS || !BUSY.has(errorCode(error) ?? '')) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    }
  }
}

/** The error codes of a rename onto a folder that exists. Windows does not replace an empty one, either. */
export const FOLDER_EXISTS: ReadonlySet<string> = new Set(['ENOTEMPTY', 'EEXIST', ...BUSY]);

/** Whether a process gets a new parent when its parent ends. On Windows it keeps the number of the ended one. */
export const ADOPTS_ORPHANS = !isWindows;
