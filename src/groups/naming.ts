// The naming half of the filesystem convention: which files are controllers, and which group each is. A folder in the
// controllers folder may hold controllers, too (`v2/OrderController.ts` is `v2/Order`), where the service says
// `folders: true`. Only the loader of a worker reads that; what others list includes the folders in any case.
import { type Dirent, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { groupNameOf, pageOf, SERVICE } from '../base/page-name.ts';

const FOLDER_NAME = /^[a-z][a-z0-9-]*$/;
const CONTROLLER_FILE = /^((?:[a-z][a-z0-9-]*\/)?[A-Z][A-Za-z0-9_-]*)Controller\.(ts|mjs|js)$/;
const SERVICE_FILE = /^service\.(ts|mjs|js)$/;
/** The first of these wins where one group has several files. */
const EXTENSIONS = ['ts', 'mjs', 'js'];

/**
 * Reads the name of a file, relative to the controllers folder: `v2/TestController.ts` → `v2/Test` and `ts`. Returns
 * undefined for a name that no controller has.
 */
export function parseFileName(name: string): { readonly group: string; readonly extension: string } | undefined {
  const [, service] = SERVICE_FILE.exec(name) ?? [];
  if (service !== undefined) return { group: SERVICE, extension: service };
  const [, group, extension] = CONTROLLER_FILE.exec(name) ?? [];
  return group === undefined || extension === undefined ? undefined : { group, extension };
}

/**
 * Returns the file name of every controller in `dir`, by group. A name from a URL is only compared with these, and
 * never joined into a path. So neither `..` nor a disk that ignores letter case can lead to another file.
 *
 * @param folders the folders in `dir` to list as well, by name
 * @throws what `readdir` throws of `dir`: ENOENT, ENOTDIR, EACCES
 */
export function listControllers(dir: string, folders: readonly string[] = listFolders(dir)): Map<string, string> {
  const files = new Map<string, string>();
  addControllers(dir, '', files);
  for (const folder of folders) {
    try {
      addControllers(dir, `${folder}/`, files);
    } catch {
      // The folder has gone, or this user may not read it: no group is in it.
    }
  }
  return files;
}

function addControllers(dir: string, prefix: string, files: Map<string, string>): void {
  const folder = join(dir, prefix);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const name = prefix + entry.name;
    const parsed = parseFileName(name);
    if (parsed === undefined || !isFile(folder, entry)) continue;
    const { group, extension } = parsed;
    const rival = files.get(group);
    if (
      rival === undefined ||
      EXTENSIONS.indexOf(extension) < EXTENSIONS.indexOf(rival.slice(rival.lastIndexOf('.') + 1))
    ) {
      files.set(group, name);
    }
  }
}

/**
 * Returns the names of the folders in `dir` that may hold controllers. Links are not followed.
 *
 * @throws what `readdir` throws
 */
export function listFolders(dir: string): string[] {
  return readdirSync(dir, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() && FOLDER_NAME.test(entry.name) ? [entry.name] : [],
  );
}

/**
 * Says why a controller in a folder is refused: another file takes its URLs, or its names in documents and clients.
 *
 * @param listing every controller by its group
 */
export function folderConflict(group: string, listing: ReadonlyMap<string, string>): string | undefined {
  const [folder = '', name] = pageOf(group).split('/');
  if (name === undefined) return undefined;
  const above = listing.get(groupNameOf(folder) ?? '');
  if (above !== undefined) return `${above} serves the URLs of the folder ${folder}: rename one of the two`;
  const twin = listing.get(groupNameOf(`${folder}_${name}`) ?? '');
  return twin && `its operations would have the ids of those in ${twin}: rename one of the two`;
}

/** Says whether an entry is a file or a link to one: mounted volumes consist of links. */
function isFile(dir: string, entry: Dirent): boolean {
  if (entry.isFile()) return true;
  if (!entry.isSymbolicLink()) return false;
  try {
    return statSync(join(dir, entry.name)).isFile();
  } catch {
    return false;
  }
}

/** The bit in the mode of a file that lets every user of the machine change the code of the service. */
export const WRITABLE_BY_EVERYONE = 0o002;
