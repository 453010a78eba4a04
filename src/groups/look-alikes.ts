// Finds files that look like controllers, but that the server does not use, each with the reason. No file is opened:
// the intent of the author is guessed from the names. naming.ts has the rules.
import { type Dirent, readdirSync } from 'node:fs';
import { extname, join } from 'node:path';
import { editDistance } from '../base/near.ts';
import { groupNameOf, SERVICE } from '../base/page-name.ts';
import { kindOf } from '../base/source-file.ts';
import { allowsFolders, listControllers, parseFileName } from './naming.ts';

export interface LookAlike {
  /** Relative to the folder. */
  readonly file: string;
  readonly reason: string;
  /** Whether the file is left out on purpose: a test, a declaration, a backup. */
  readonly onPurpose: boolean;
  /** The group that the file was probably meant for. */
  readonly group?: string;
}

/** Maximum depth of the subfolders that are searched. */
const MAX_DEPTH = 3;

/**
 * @param loads the outcome of each load in one worker: that of the service file says whether subfolders hold groups
 * @throws the error of `readdir` for `dir`
 */
export function findLookAlikes(dir: string, loads: Iterable<{ readonly folders?: boolean }> = []): LookAlike[] {
  const servesFolders = allowsFolders(loads);
  const controllers = listControllers(dir, servesFolders ? undefined : []);
  const lookAlikes: LookAlike[] = [];
  for (const entry of readdirSync(dir, { withFileTypes: true })) {
    const parsed = parseFileName(entry.name);
    if (parsed !== undefined && controllers.get(parsed.group) === entry.name) continue;
    if (parsed !== undefined)
      lookAlikes.push({ file: entry.name, group: parsed.group, ...whyNotListed(entry, controllers.get(parsed.group)) });
    else if (entry.isDirectory())
      lookAlikes.push(
        ...searchFolder(dir, entry.name, 1).flatMap(({ file, group }) => {
          const reason = whyNotServed(file, controllers, servesFolders);
          return reason === undefined ? [] : [{ file, group, ...reason }];
        }),
      );
    else if (looksMeant(entry.name)) lookAlikes.push(guessIntent(entry.name));
  }
  return lookAlikes.sort((a, b) => (a.file < b.file ? -1 : 1));
}

/**
 * Returns why a file with the name of a controller is not listed.
 *
 * @param winner the file that serves the group instead
 */
function whyNotListed(entry: Dirent, winner: string | undefined): Pick<LookAlike, 'reason' | 'onPurpose'> {
  if (entry.isFile() && winner !== undefined) return { reason: `${winner} is beside it and wins`, onPurpose: true };
  return { reason: `it is ${kindOf(entry)}`, onPurpose: false };
}

function looksMeant(name: string): boolean {
  return /controller/i.test(name) || mendSuffix(name) !== name;
}

/** Guesses from the name of a file what its author meant it to be. */
function guessIntent(name: string): LookAlike {
  if (/\.(?:test|spec)\./.test(name)) return { file: name, reason: 'it is a test', onPurpose: true };
  if (/\.d\.[cm]?ts$/.test(name)) return { file: name, reason: 'it is a declaration of types', onPurpose: true };
  if (/^[.#]|~$|\.(?:bak|old|orig|rej|sw[a-p]|tmp)$/.test(name))
    return { file: name, reason: 'it is hidden or a backup', onPurpose: true };
  const meantName = [
    (text: string) => text,
    withExtension,
    withSuffix,
    withCapital,
    mendSuffix,
    (text: string) => withCapital(withSuffix(withExtension(mendSuffix(text)))),
  ]
    .map((mend) => mend(name))
    .find((mended) => parseFileName(mended) !== undefined);
  const group = meantName && parseFileName(meantName)?.group;
  if (group === undefined) {
    return {
      file: name,
      reason: 'its name is not a capital, then letters, digits, _ or -, then Controller.ts, .mjs or .js',
      onPurpose: false,
    };
  }
  return { file: name, reason: `the name that counts is ${meantName}`, onPurpose: false, group };
}

function withCapital(name: string): string {
  const dot = name.indexOf('.');
  return (groupNameOf(name.slice(0, dot)) ?? '') + name.slice(dot);
}

/** Turns `user.controller.ts`, `User-controller.ts` and `Usercontroller.ts` into `UserController.ts`. */
function withSuffix(name: string): string {
  return name.replace(/[._-]?controllers?(?=\.)/i, 'Controller');
}

/** Corrects a misspelt suffix: `UserControler.ts`, `UserContoller.ts` → `UserController.ts`. */
function mendSuffix(name: string): string {
  const [, stem = '', extension = ''] = /^(\w+)(\.[cm]?[jt]sx?)$/.exec(name) ?? [];
  // The lengths that a misspelt `Controller` can have, the likeliest first.
  const lengths = [10, 9, 11, 8].filter((length) => length < stem.length);
  const suffixLength = lengths.find((length) => MISSPELT.test(stem.slice(-length)) && isTypo(stem.slice(-length)));
  return suffixLength === undefined ? name : `${stem.slice(0, -suffixLength)}Controller${extension}`;
}

/** Matches a word that begins with `C`, except for `Controller` itself. */
const MISSPELT = /^C(?!ontroller$)/;

function isTypo(word: string): boolean {
  return editDistance(word.toLowerCase(), 'controller') <= 2;
}

function withExtension(name: string): string {
  const extension = extname(name);
  if (/^\.[cm]?tsx?$/.test(extension)) return `${name.slice(0, -extension.length)}.ts`;
  return /^\.[cm]?jsx?$/.test(extension) ? `${name.slice(0, -extension.length)}.mjs` : name;
}

/** Returns the files in a subfolder that have the name of a controller, each with its group (without the folder). */
function searchFolder(dir: string, folder: string, depth: number): { file: string; group: string }[] {
  if (folder.endsWith('node_modules') || /(?:^|\/)\./.test(folder)) return [];
  let entries: Dirent[];
  try {
    entries = readdirSync(join(dir, folder), { withFileTypes: true });
  } catch {
    return [];
  }
  return entries.flatMap((entry) => {
    const file = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return depth < MAX_DEPTH ? searchFolder(dir, file, depth + 1) : [];
    const group = parseFileName(entry.name)?.group;
    // In a subfolder, service.ts is the name of an ordinary module.
    return group === undefined || group === SERVICE ? [] : [{ file, group }];
  });
}

/** Returns why a controller in a subfolder does not serve, or undefined when it serves. */
function whyNotServed(
  file: string,
  controllers: ReadonlyMap<string, string>,
  servesFolders: boolean,
): Pick<LookAlike, 'reason' | 'onPurpose'> | undefined {
  const group = parseFileName(file)?.group;
  const [folder = ''] = file.split('/');
  const controllerOfFolderName = controllers.get(groupNameOf(folder) ?? '');
  const winner = controllers.get(group ?? '');
  if (group !== undefined && !servesFolders)
    return { reason: 'it is in a subfolder, which serves with folders: true in the service file', onPurpose: false };
  if (group !== undefined && controllerOfFolderName !== undefined) {
    const reason = `${controllerOfFolderName} serves the URLs of the folder ${folder}: rename one of the two`;
    return { reason, onPurpose: false };
  }
  if (winner === undefined)
    return { reason: 'it is in a subfolder, where controllers are not looked for', onPurpose: false };
  return winner === file ? undefined : { reason: `${winner} is beside it and wins`, onPurpose: true };
}
