// The differences between operating systems and between file systems, in one place. Linux is where Gatefold runs in
// production and is tested, Windows is tested under wine (.ci/windows), and macOS is not tested.
import { closeSync, constants, fsyncSync, openSync, renameSync } from 'node:fs';
import { errorCode } from './failure.ts';
import { blockThread } from './time.ts';

const isWindows = process.platform === 'win32';

/**
 * Returns the mode of a file with the bits that can be trusted. On Windows, these are only the bits of the owner: Node
 * does not read the access list of the file, and gives the group and all others the rights of the owner.
 */
export function trustedMode({ mode }: { readonly mode: number }): number {
  return isWindows ? mode & 0o700 : mode;
}

/** The codes by which Windows refuses to change a file that another process has open. Other systems never refuse. */
export const BUSY_CODES: ReadonlySet<string> = new Set(isWindows ? ['EPERM', 'EACCES', 'EBUSY'] : []);
/** Maximum attempts to replace a busy file. A process that reads the credentials table has it open for a moment. */
const MAX_REPLACE_ATTEMPTS = 100;
/** Milliseconds between two attempts to replace a file. */
const REPLACE_INTERVAL = 10;

/** Replaces a file by a rename. @param draftPath a complete file with the new content, on the same file system */
export function replaceFile(draftPath: string, path: string): void {
  for (let attempt = 1; ; attempt++) {
    try {
      return renameSync(draftPath, path);
    } catch (error) {
      if (attempt === MAX_REPLACE_ATTEMPTS || !BUSY_CODES.has(errorCode(error) ?? '')) throw error;
      blockThread(REPLACE_INTERVAL);
    }
  }
}

/** Node's permission model forbids every fsync, whatever else it allows. */
export const isSyncForbidden = process.permission !== undefined;
/** The flags of a file that must be new. Where no fsync is possible, each of its writes waits for the disk. */
export const NEW_FILE = isSyncForbidden
  ? constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_SYNC
  : 'wx';

/**
 * Writes a folder to the disk, where the system can do so. A rename in the folder survives a power cut only after this
 * write. A caller of `replaceFile` whose file must survive also calls `syncFolder`.
 */
export function syncFolder(folder: string): void {
  if (isSyncForbidden) return;
  const handle = openSync(folder, 'r');
  try {
    fsyncSync(handle);
  } catch (error) {
    // Windows cannot sync a folder (EPERM), and neither can some file systems (EINVAL, ENOTSUP).
    if (!['EINVAL', 'EPERM', 'ENOTSUP'].includes(errorCode(error) ?? '')) throw error;
  } finally {
    closeSync(handle);
  }
}

/** Whether a process runs, also one of another user (EPERM). @param pid more than 0: others mean process groups */
export function isAlive(pid: number): boolean {
  try {
    // The signal 0 only asks whether the process exists.
    return process.kill(pid, 0);
  } catch (error) {
    return errorCode(error) === 'EPERM';
  }
}

/**
 * The error codes for a folder that is not empty: it cannot be removed, and no other folder can be renamed to its path.
 * On Windows, a rename to the path of an empty folder fails with one of these codes, too.
 */
export const FOLDER_NOT_EMPTY_CODES: ReadonlySet<string> = new Set(['ENOTEMPTY', 'EEXIST', ...BUSY_CODES]);
