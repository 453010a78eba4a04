// The differences between operating systems, in one place. Linux is where Gatefold runs in production and is tested,
// Windows is tested under wine (.ci/windows), and macOS is not tested.
const isWindows = process.platform === 'win32';

/**
 * Returns the bits of a mode that say who may read and write a file. On Windows an access list says so, which Node does
 * not read. So only the owner has bits there, and nobody is warned of others.
 */
export function modeOf({ mode }: { readonly mode: number }): number {
  return isWindows ? mode & 0o700 : mode;
}

/** The error codes of a rename onto a folder that exists. Windows does not replace an empty one, either. */
export const FOLDER_EXISTS: ReadonlySet<string> = new Set([
  ...['ENOTEMPTY', 'EEXIST'],
  ...(isWindows ? ['EPERM', 'EACCES'] : []),
]);

/** Whether a process gets a new parent when its parent ends. On Windows it keeps the number of the ended one. */
export const ADOPTS_ORPHANS = !isWindows;
