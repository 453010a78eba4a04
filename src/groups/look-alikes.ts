// Finds files that a person would take for controllers and the server does not, each with the reason. groups/naming.ts
// has the rules of names. This file guesses by the names in the listing what was meant, and opens no file.
import { type Dirent, readdirSync } from 'node:fs';
import { extname, join } from 'node:path';
import { groupNameOf } from '../base/page-name.ts';
import { kindOf } from '../base/source-file.ts';
import { listControllers, parseFileName } from './naming.ts';

export interface LookAlike {
  /** Relative to the folder. */
  readonly file: string;
  readonly reason: string;
  /** Whether the file is left out on purpose: a test, a declaration, a backup. */
  readonly onPurpose: boolean;
  /** The group that the file was probably meant for. */
  readonly group?: string;
}

/** Levels of subfolders that are searched. */
const DEEPEST = 3;

/**
 * @param loaded the files that are controllers: those in folders are, where the service says so
 * @throws what `readdir` throws
 */
export function findLookAlikes(dir: string, loaded: Iterable<{ readonly file: string }> = []): LookAlike[] {
  const controllers = listControllers(dir, []);
  const served = new Set(Array.from(loaded, ({ file }) => file));
  const lookAlikes: LookAlike[] = [];
  for (const entry of readdirSync(dir, { withFileTypes: true })) {
    const parsed = parseFileName(entry.name);
    if (parsed !== undefined && controllers.get(parsed.group) === entry.name) continue;
    if (parsed !== undefined)
      lookAlikes.push({ file: entry.name, group: parsed.group, ...whyNotListed(entry, controllers.get(parsed.group)) });
    else if (entry.isDirectory()) lookAlikes.push(...searchFolder(dir, entry.name, 1));
    else if (/controller/i.test(entry.name)) lookAlikes.push(guess(entry.name));
  }
  return lookAlikes.filter(({ file }) => !served.has(file)).sort((a, b) => (a.file < b.file ? -1 : 1));
}

/** Says why the listing does not have a file whose name is right. */
function whyNotListed(entry: Dirent, winner: string | undefined): Pick<LookAlike, 'reason' | 'onPurpose'> {
  if (entry.isFile() && winner !== undefined) return { reason: `${winner} is beside it and wins`, onPurpose: true };
  return { reason: `it is ${kindOf(entry)}`, onPurpose: false };
}

function guess(name: string): LookAlike {
  if (/\.(?:test|spec)\./.test(name)) return { file: name, reason: 'it is a test', onPurpose: true };
  if (/\.d\.[cm]?ts$/.test(name)) return { file: name, reason: 'it is a declaration of types', onPurpose: true };
  if (/^[.#]|~$|\.(?:bak|old|orig|rej|sw[a-p]|tmp)$/.test(name))
    return { file: name, reason: 'it is hidden or a backup', onPurpose: true };
  const meant = [
    (text: string) => text,
    withExtension,
    withSuffix,
    withCapital,
    (text: string) => withCapital(withSuffix(withExtension(text))),
  ]
    .map((mend) => mend(name))
    .find((mended) => parseFileName(mended) !== undefined);
  if (meant === undefined) {
    return {
      file: name,
      reason: 'its name is not a capital, then letters, digits, _ or -, then Controller.ts, .mjs or .js',
      onPurpose: false,
    };
  }
  return {
    file: name,
    reason: `the name that counts is ${meant}`,
    onPurpose: false,
    group: parseFileName(meant)?.group ?? '',
  };
}

function withCapital(name: string): string {
  const dot = name.indexOf('.');
  return (groupNameOf(name.slice(0, dot)) ?? '') + name.slice(dot);
}

/** Turns `user.controller.ts`, `User-controller.ts` and `Usercontroller.ts` into `UserController.ts`. */
function withSuffix(name: string): string {
  return name.replace(/[._-]?controllers?(?=\.)/i, 'Controller');
}

function withExtension(name: string): string {
  const extension = extname(name);
  if (/^\.[cm]?tsx?$/.test(extension)) return `${name.slice(0, -extension.length)}.ts`;
  return /^\.[cm]?jsx?$/.test(extension) ? `${name.slice(0, -extension.length)}.mjs` : name;
}

function searchFolder(dir: string, folder: string, depth: number): LookAlike[] {
  if (folder.endsWith('node_modules') || /(?:^|\/)\./.test(folder)) return [];
  let entries: Dirent[];
  try {
    entries = readdirSync(join(dir, folder), { withFileTypes: true });
  } catch {
    return [];
  }
  return entries.flatMap((entry) => {
    const file = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return depth < DEEPEST ? searchFolder(dir, file, depth + 1) : [];
    const group = parseFileName(entry.name)?.group;
    return group === undefined
      ? []
      : [{ file, group, reason: 'it is in a subfolder, where controllers are not looked for', onPurpose: false }];
  });
}
