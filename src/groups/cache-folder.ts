// Opens a folder in which the processes of this user cache compiled code: `/tmp/gatefold-1000/<name>` for the user id
// 1000. A process runs the code that it finds in the folder. So the folder is refused when another user can write to
// the folder, or can put another folder in its place. Only root is trusted.
import { lstatSync, mkdirSync, readdirSync, realpathSync, rmSync, statSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { errorCode } from '../base/failure.ts';

/** Maximum number of cache folders of a user. Each release of a service has a folder. The oldest ones are removed. */
const MAX_FOLDERS = 20;
/** All mode bits of the group and of other users. */
const ACCESS_BY_OTHERS = 0o077;
/** The write bits of the group and of other users. */
const WRITABLE_BY_OTHERS = 0o022;
/** The mode bit of /tmp. In a folder with this bit, only the owner of a file can remove or rename the file. */
const STICKY_BIT = 0o1000;

/**
 * Creates the folder of this name for this user alone, unless it exists.
 *
 * @returns the path of the folder; undefined on a system without user ids, and when a system call fails
 * @throws Error that names a folder which another user owns, can access, or can replace
 */
export function openCacheFolder(name: string, parent: string = tmpdir()): string | undefined {
  const userId = process.geteuid?.();
  // A system without user ids, such as Windows, has no owner and no mode that could be checked.
  if (userId === undefined) return undefined;
  try {
    const userFolder = join(realpathSync(parent), `gatefold-${userId}`);
    createPrivateFolder(userFolder);
    // The checks come before `removeOldest`. Another user could have put a link to other files of this user in the
    // place of `userFolder`, and `removeOldest` would remove those files.
    checkOwnFolder(userFolder, userId);
    for (let outer = dirname(userFolder); ; outer = dirname(outer)) {
      checkParentFolder(outer, userId);
      if (outer === dirname(outer)) break;
    }
    const folder = join(userFolder, name);
    if (createPrivateFolder(folder)) removeOldest(userFolder);
    checkOwnFolder(folder, userId);
    utimesSync(folder, new Date(), new Date());
    return folder;
  } catch (error) {
    // An error with a code comes from a system call: the folder cannot be used, so there is no cache.
    if (errorCode(error) === undefined) throw error;
    return undefined;
  }
}

function checkOwnFolder(folder: string, userId: number): void {
  const stat = lstatSync(folder);
  if (!stat.isDirectory() || stat.uid !== userId || (stat.mode & ACCESS_BY_OTHERS) !== 0)
    throw new Error(`${folder} is not used, because it is not a folder of this user alone: remove it`);
}

/** Refuses a folder in which another user than root can replace files and folders. */
function checkParentFolder(folder: string, userId: number): void {
  const { uid, mode } = statSync(folder);
  const isReplaceable = (mode & WRITABLE_BY_OTHERS) !== 0 && (mode & STICKY_BIT) === 0;
  if (isReplaceable || (uid !== userId && uid !== 0))
    throw new Error(`${folder} is not used for a cache, because other users can write to it: set TMPDIR`);
}

/** @returns whether the folder is new; false for anything that already has this path */
function createPrivateFolder(folder: string): boolean {
  try {
    mkdirSync(folder, 0o700);
    return true;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    throw error;
  }
}

function removeOldest(userFolder: string): void {
  const newestFirst = readdirSync(userFolder)
    .map((name) => ({ path: join(userFolder, name), usedAt: lstatSync(join(userFolder, name)).mtimeMs }))
    .sort((a, b) => b.usedAt - a.usedAt);
  for (const { path } of newestFirst.slice(MAX_FOLDERS)) rmSync(path, { recursive: true, force: true });
}
