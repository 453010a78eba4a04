// Opens a folder in which the processes of this user cache compiled code: `/tmp/gatefold-1000/<name>` for the user
// 1000. A process runs the code that it finds there. So the folder is refused when another user can write to it, or can
// put another folder in its place.
import { lstatSync, mkdirSync, readdirSync, realpathSync, rmSync, statSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { errorCode } from './failure.ts';

/** How many folders are kept, the most recently used ones. Each release of a service has a folder of its own. */
const MAX_FOLDERS = 20;
const ACCESS_BY_OTHERS = 0o077;
const WRITABLE_BY_OTHERS = 0o022;
/** The mode bit of /tmp. In a folder with this bit, only the owner of a file can remove or rename the file. */
const STICKY = 0o1000;

/**
 * Creates the folder of this name for this user alone, unless it exists.
 *
 * @returns the path of the folder, or undefined when there is no such folder and it cannot be created
 * @throws Error that names a folder when another user owns the folder or can write to it
 */
export function openCacheFolder(name: string, parent: string = tmpdir()): string | undefined {
  const user = process.geteuid?.();
  // A system without user ids, such as Windows, has no owner and no mode that could be checked.
  if (user === undefined) return undefined;
  try {
    const root = join(realpathSync(parent), `gatefold-${user}`);
    createPrivateFolder(root);
    // The checks of `root` come first. Another user could have put a link to other files of this user in its place, and
    // `removeOldest` would remove those files.
    checkOwnFolder(root, user);
    for (let outer = dirname(root); ; outer = dirname(outer)) {
      checkParentFolder(outer, user);
      if (outer === dirname(outer)) break;
    }
    const folder = join(root, name);
    if (createPrivateFolder(folder)) removeOldest(root);
    checkOwnFolder(folder, user);
    utimesSync(folder, new Date(), new Date());
    return folder;
  } catch (error) {
    // An error with a code comes from the system: the folder cannot be created, so there is no cache.
    if (errorCode(error) === undefined) throw error;
    return undefined;
  }
}

function checkOwnFolder(path: string, user: number): void {
  const stat = lstatSync(path);
  if (!stat.isDirectory() || stat.uid !== user || (stat.mode & ACCESS_BY_OTHERS) !== 0)
    throw new Error(`${path} is not used, because it is not a folder of this user alone: remove it`);
}

/** Refuses a folder in which another user can replace the files and folders inside. */
function checkParentFolder(folder: string, user: number): void {
  const { uid, mode } = statSync(folder);
  const isReplaceable = (mode & WRITABLE_BY_OTHERS) !== 0 && (mode & STICKY) === 0;
  if (isReplaceable || (uid !== user && uid !== 0))
    throw new Error(`${folder} is not used for a cache, because other users can write to it: set TMPDIR`);
}

/** @returns whether the folder is new */
function createPrivateFolder(path: string): boolean {
  try {
    mkdirSync(path, 0o700);
    return true;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    throw error;
  }
}

function removeOldest(root: string): void {
  const newestFirst = readdirSync(root)
    .map((name) => ({ path: join(root, name), usedAt: lstatSync(join(root, name)).mtimeMs }))
    .sort((a, b) => b.usedAt - a.usedAt);
  for (const { path } of newestFirst.slice(MAX_FOLDERS)) rmSync(path, { recursive: true, force: true });
}
