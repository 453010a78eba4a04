// The rules for the names of files: which files are controllers, and which group each of them is. A subfolder of the
// controllers folder can hold controllers, too (`v2/OrderController.ts` is `v2/Order`), if the service file says
// `folders: true`. This file does not read the service file.
import { type Dirent, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { groupNameOf, SERVICE, urlNameOf } from '../base/page-name.ts';

const FOLDER_NAME = /^[a-z][a-z0-9-]*$/;
const CONTROLLER_FILE = /^((?:[a-z][a-z0-9-]*\/)?[A-Z][A-Za-z0-9_-]*)Controller\.(ts|mjs|js)$/;
const SERVICE_FILE = /^service\.(ts|mjs|js)$/;
/** Extensions of controllers. When a group has several files, the extension that is first here wins. */
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
 * Returns the file name of every controller in `dir`, by group. A name from a URL is only compared with these names,
 * and never joined into a path. So neither `..` nor a disk that ignores letter case can lead to another file.
 *
 * @param folders the names of the subfolders to list as well; default: all of them if there is a service file, because
 *   only the workers know what the service file says
 * @throws the error of `readdir` for `dir`: ENOENT, ENOTDIR, EACCES
 */
export function listControllers(dir: string, folders?: readonly string[]): Map<string, string> {
  const files = new Map<string, string>();
  addControllers(dir, '', files);
  for (const folder of folders ?? (files.has(SERVICE) ? listFolders(dir) : [])) {
    // A controller with the name of the folder serves the URLs of the folder, so the folder is not listed.
    if (files.has(groupNameOf(folder) ?? '')) continue;
    try {
      addControllers(dir, `${folder}/`, files);
    } catch {
      // The folder no longer exists, or this user is not allowed to read it. So it adds no group.
    }
  }
  return files;
}

function addControllers(dir: string, prefix: string, files: Map<string, string>): void {
  const folder = join(dir, prefix);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const name = prefix + entry.name;
    const parsed = parseFileName(name);
    if (parsed === undefined) continue;
    const { group, extension } = parsed;
    // A service file that cannot be read is listed, and counts as broken. If it were ignored, its protections would be
    // missing.
    if (group !== SERVICE && !isFile(folder, entry)) continue;
    const currentFile = files.get(group);
    if (
      currentFile === undefined ||
      EXTENSIONS.indexOf(extension) < EXTENSIONS.indexOf(currentFile.slice(currentFile.lastIndexOf('.') + 1))
    ) {
      files.set(group, name);
    }
  }
}

/**
 * Returns the folders in `dir` whose names are valid for folders of controllers. Links are not followed.
 *
 * @throws the error of `readdir`
 */
export function listFolders(dir: string): string[] {
  return readdirSync(dir, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() && FOLDER_NAME.test(entry.name) ? [entry.name] : [],
  );
}

/** Says whether the service file has `folders: true`, according to the loads of one worker. */
export function hasFolders(loads: Iterable<{ readonly folders?: boolean }>): boolean {
  return Array.from(loads).some(({ folders }) => folders === true);
}

/**
 * Returns the file whose operations have the same ids in OpenAPI as those of a group in a folder. Example:
 * `V2_orderController.ts` for `v2/Order`.
 *
 * @param listing every controller by its group
 */
export function findTwin(group: string, listing: ReadonlyMap<string, string>): string | undefined {
  return group.includes('/') ? listing.get(groupNameOf(urlNameOf(group).replace('/', '_')) ?? '') : undefined;
}

/** Says whether an entry is a file, or a link to a file. Links count, because mounted volumes consist of links. */
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
