// Finds files that look like controllers, but that the server does not use, each with the reason. No file is opened:
// the intent of the author is guessed from the names. naming.ts has the rules.
import { type Dirent, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { attempt } from '../../base/failure.ts';
import { groupNameOf, SERVICE } from '../../base/group-name.ts';
import { sortedBy } from '../../base/sorted-by.ts';
import { kindOf } from '../../base/source-file.ts';
import { allowsFolders, listControllers, parseFileName } from './naming.ts';

const MAX_DEPTH = 3;

/**
 * Returns the names of the files, relative to the folder.
 *
 * @param loads the outcome of each load in one worker: that of the service file says whether subfolders hold groups
 * @throws the error of `readdir` for `dir`
 */
export function findLookAlikes(dir: string, loads: Iterable<{ readonly folders?: boolean }> = []) {
  const servesFolders = allowsFolders(loads);
  const controllers = listControllers(dir, servesFolders ? undefined : []);
  const lookAlikes: { readonly file: string; readonly reason: string }[] = [];
  for (const entry of readdirSync(dir, { withFileTypes: true })) {
    const parsed = parseFileName(entry.name);
    if (parsed !== undefined && controllers.get(parsed.group) === entry.name) continue;
    const files = parsed === undefined && entry.isDirectory() ? searchFolder(dir, entry.name, 1) : [entry.name];
    for (const file of files) {
      const inFolder = file !== entry.name;
      const reason = inFolder ? whyNotServed(file, controllers, servesFolders) : whyNotListed(entry, controllers);
      if (reason !== undefined) lookAlikes.push({ file, reason });
    }
  }
  return sortedBy(lookAlikes, ({ file }) => file);
}

/** Matches the names of tests, declarations, hidden files and backups, which are no controllers on purpose. */
const LEFT_OUT = /\.(?:test|spec)\.|\.d\.[cm]?ts$|^[.#]|~$|\.(?:bak|old|orig|rej|sw[a-p]|tmp)$/;

/** Returns why a file is not listed; undefined when its name does not look meant, or when another file wins. */
function whyNotListed(entry: Dirent, controllers: ReadonlyMap<string, string>): string | undefined {
  const { name } = entry;
  const parsed = parseFileName(name);
  if (parsed !== undefined)
    return entry.isFile() && controllers.has(parsed.group) ? undefined : `it is ${kindOf(entry)}`;
  if (!/controller/i.test(name) || LEFT_OUT.test(name)) return undefined;
  return 'its name is not a capital, then letters, digits, _ or -, then Controller.ts, .mjs or .js';
}

/** Returns the files in a subfolder that have the name of a controller, without those of a service file. */
function searchFolder(dir: string, folder: string, depth: number): string[] {
  if (folder.endsWith('node_modules') || /(?:^|\/)\./.test(folder)) return [];
  const entries = attempt(() => readdirSync(join(dir, folder), { withFileTypes: true }), []);
  return entries.flatMap((entry) => {
    const file = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return depth < MAX_DEPTH ? searchFolder(dir, file, depth + 1) : [];
    const group = parseFileName(entry.name)?.group;
    // In a subfolder, service.ts is the name of an ordinary module.
    return group === undefined || group === SERVICE ? [] : [file];
  });
}

function whyNotServed(file: string, controllers: ReadonlyMap<string, string>, servesFolders: boolean) {
  const group = parseFileName(file)?.group;
  const [folder = ''] = file.split('/');
  const controllerOfFolderName = controllers.get(groupNameOf(folder) ?? '');
  const winner = controllers.get(group ?? '');
  if (group !== undefined && !servesFolders)
    return 'it is in a subfolder, which serves with folders: true in the service file';
  if (group !== undefined && controllerOfFolderName !== undefined)
    return `${controllerOfFolderName} serves the URLs of the folder ${folder}: move it to ${folder}/Controller.${controllerOfFolderName.replace(/.*\./, '')}, or rename one of the two`;
  return winner === undefined ? 'it is in a subfolder, where controllers are not looked for' : undefined;
}
