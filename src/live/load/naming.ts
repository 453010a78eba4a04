// The rules for the names of files in the controllers folder: `OrderController.ts` is the group `Order`,
// `v2/OrderController.ts` is `v2/Order`, and `Controller.ts` is the root group. This file does not read the service
// file. Its `folders: true` decides whether subfolders serve.
import { type Dirent, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { attempt } from '../../base/failure.ts';
import { statOf } from '../../base/fingerprint.ts';
import { groupNameOf, idOfGroup, ROOT, SERVICE, urlNameOf } from '../../base/group-name.ts';
import { LoadRefusal } from '../../base/load-refusal.ts';

const FOLDER_NAME = /^[a-z][a-z0-9-]*$/;
const CONTROLLER_FILE = /^((?:[a-z][a-z0-9-]*\/)?)((?:[A-Z][A-Za-z0-9_-]*)?)Controller\.(ts|mjs|js)$/;
const SERVICE_FILE = /^service\.(ts|mts|mjs|js)$/;
/** When a group has several files, the file with the earlier extension is used. */
const EXTENSIONS = ['ts', 'mts', 'mjs', 'js'];

export function isServiceFileName(name: string): boolean {
  return SERVICE_FILE.test(name);
}

/** Parses a name such as `v2/TestController.ts` → `v2/Test` and `ts`; undefined for a file of another kind. */
export function parseFileName(name: string): { readonly group: string; readonly extension: string } | undefined {
  const [, serviceExtension] = SERVICE_FILE.exec(name) ?? [];
  if (serviceExtension !== undefined) return { group: SERVICE, extension: serviceExtension };
  const [, folder, group, extension] = CONTROLLER_FILE.exec(name) ?? [];
  return extension === undefined ? undefined : { group: `${folder}${group}` || ROOT, extension };
}

/**
 * Returns the file name of every controller in `dir`, by group. A name from a URL is only compared with these names,
 * and never joined into a path. So neither `..` nor a disk that ignores letter case can lead to another file.
 *
 * @param folders the names of the subfolders to list as well. The default is all of them if there is a service file.
 *   The caller may not know whether the service file has `folders: true`, because only workers load that file
 * @throws the error of `readdir` for `dir`: ENOENT, ENOTDIR, EACCES
 */
export function listControllers(dir: string, folders?: readonly string[]): Map<string, string> {
  const files = new Map<string, string>();
  addControllers(dir, '', files);
  for (const folder of folders ?? (files.has(SERVICE) ? listFolders(dir) : [])) {
    // A controller with the name of the folder (`V2Controller.ts` beside `v2/`) serves the URLs below that name.
    if (files.has(groupNameOf(folder) ?? '')) continue;
    // Fails when the folder no longer exists, or this user is not allowed to read it.
    attempt(() => addControllers(dir, `${folder}/`, files), undefined);
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
    // The service file is listed even if it is a folder or a broken link. Its load then fails. If it were left out, the
    // server would answer requests without its protections.
    if (group !== SERVICE && !isFile(folder, entry)) continue;
    const currentFile = files.get(group);
    const currentExtension = currentFile?.replace(/.*\./, '') ?? '';
    if (currentFile === undefined || EXTENSIONS.indexOf(extension) < EXTENSIONS.indexOf(currentExtension))
      files.set(group, name);
  }
}

/** Returns the folders in `dir` with valid names. Links are not followed. @throws the error of `readdir` */
export function listFolders(dir: string): string[] {
  return readdirSync(dir, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() && FOLDER_NAME.test(entry.name) ? [entry.name] : [],
  );
}

/** @param loads the loads of one worker, of which only that of the service file can have `folders` */
export function allowsFolders(loads: Iterable<{ readonly folders?: boolean }>): boolean {
  return Array.from(loads).some(({ folders }) => folders === true);
}

/**
 * Returns the file of another group whose operations have the same ids in the OpenAPI document: those of `v2/Order` and
 * of `V2_orderController.ts` begin with `v2_order`, and those of `Root` and of `Controller.ts` with `root`. A start
 * loads only the first group of `all`.
 *
 * @param listing every controller by its group
 * @param isServing whether a group serves already, so that the other groups cannot
 */
export function findTwin(
  group: string,
  listing: ReadonlyMap<string, string>,
  isServing: (group: string) => boolean,
): string | undefined {
  const id = idOfGroup(urlNameOf(group));
  const inFolder = id.replace('_', '/');
  const all = [id === 'root' ? ROOT : id, inFolder.replace(/\broot$/, ''), inFolder].map(groupNameOf);
  const isTwin = (name = '', index: number) =>
    name !== group &&
    listing.has(name) &&
    idOfGroup(urlNameOf(name)) === id &&
    (index < all.indexOf(group) || isServing(name));
  return listing.get(all.find(isTwin) ?? '');
}

/** @throws LoadRefusal when the operations of a group would have the ids of those of another group */
export function refuseTwin(...names: Parameters<typeof findTwin>): void {
  const twin = findTwin(...names);
  if (twin === undefined) return;
  const message = `its operations would have the ids of those in ${twin}: rename one of the two`;
  throw new LoadRefusal('INVALID_EXPORT', message);
}

/** Says whether an entry is a file, or a link to a file. Links count, because mounted volumes consist of links. */
function isFile(dir: string, entry: Dirent): boolean {
  if (entry.isFile()) return true;
  return entry.isSymbolicLink() && statOf(join(dir, entry.name))?.isFile() === true;
}

/** The bit in the mode of a file that lets every user of the machine change the code of the service. */
export const WRITABLE_BY_EVERYONE = 0o002;
