// Files that a person would take for controllers and the server does not, each with the reason. What a controller is
// called is groups/naming.ts; this file guesses what was meant, by the names in the listing alone: no file is opened.
import { type Dirent, readdirSync } from 'node:fs';
import { extname, join } from 'node:path';
import { groupNameOf } from '../base/page-name.ts';
import { kindOf } from '../base/source-file.ts';
import { listControllers, parseFileName } from './naming.ts';

export interface LookAlike {
  /** Relative to the folder. */
  readonly file: string;
  readonly reason: string;
  /** A test, a declaration, a backup: left out on purpose, so nothing to mend. */
  readonly onPurpose: boolean;
  /** The group that was probably meant. */
  readonly group?: string;
}

const DEEPEST = 3;

/**
 * @param loaded the files that are controllers: those in folders are, where the service says so
 * @throws what `readdir` throws
 */
export function findLookAlikes(dir: string, loaded: Iterable<{ readonly file: string }> = []): LookAlike[] {
  const controllers = listControllers(dir, []);
  const served = new Set(Array.from(loaded, ({ file }) => file));
  const found: LookAlike[] = [];
  for (const entry of readdirSync(dir, { withFileTypes: true })) {
    const parsed = parseFileName(entry.name);
    if (parsed !== undefined && controllers.get(parsed.group) === entry.name) continue;
    if (parsed !== undefined)
      found.push({ file: entry.name, group: parsed.group, ...whyPassedOver(entry, controllers.get(parsed.group)) });
    else if (entry.isDirectory()) found.push(...lookInto(dir, entry.name, 1));
    else if (/controller/i.test(entry.name)) found.push(guess(entry.name));
  }
  return found.filter(({ file }) => !served.has(file)).sort((a, b) => (a.file < b.file ? -1 : 1));
}

/** The name is right, and yet the listing does not have it. */
function whyPassedOver(entry: Dirent, winner: string | undefined): Pick<LookAlike, 'reason' | 'onPurpose'> {
  if (entry.isFile() && winner !== undefined) return { reason: `${winner} stands beside it and wins`, onPurpose: true };
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

/** `user.controller.ts`, `User-controller.ts`, `Usercontroller.ts` → `UserController.ts` */
function withSuffix(name: string): string {
  return name.replace(/[._-]?controllers?(?=\.)/i, 'Controller');
}

function withExtension(name: string): string {
  const extension = extname(name);
  if (/^\.[cm]?tsx?$/.test(extension)) return `${name.slice(0, -extension.length)}.ts`;
  return /^\.[cm]?jsx?$/.test(extension) ? `${name.slice(0, -extension.length)}.mjs` : name;
}

function lookInto(dir: string, folder: string, depth: number): LookAlike[] {
  if (folder.endsWith('node_modules') || /(?:^|\/)\./.test(folder)) return [];
  let entries: Dirent[];
  try {
    entries = readdirSync(join(dir, folder), { withFileTypes: true });
  } catch {
    return [];
  }
  return entries.flatMap((entry) => {
    const file = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return depth < DEEPEST ? lookInto(dir, file, depth + 1) : [];
    const group = parseFileName(entry.name)?.group;
    return group === undefined
      ? []
      : [{ file, group, reason: 'it is in a subfolder, and those are not looked into', onPurpose: false }];
  });
}
