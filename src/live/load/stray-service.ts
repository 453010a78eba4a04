// Finds rules that nothing applies: a file of the controllers folder that uses `defineService`, but has another name
// than a service file, or a second file with the name of a service file. `services.ts`, `ServiceController.ts` or
// `v2/service.ts` would protect nothing, and its author would not notice. Such a file counts as a broken service file.
// A file that the service file imports is a part of it.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { attempt } from '../../base/failure.ts';
import { fingerprint, realPathOf } from '../../base/fingerprint.ts';
import { SERVICE } from '../../base/group-name.ts';
import { readSourceOrEmpty } from '../../base/source-file.ts';
import type { Token } from '../../contract/source/tokens.ts';
import { isServiceFileName, parseFileName } from './naming.ts';

/** The files of the controllers, by group. */
type Controllers = ReadonlyMap<string, string>;

export interface Stray {
  readonly file: string;
  readonly reason: string;
}

const OTHER_NAME =
  'it uses defineService, but only service.ts, .mts, .mjs or .js sets rules: rename it, or import it in the service file';
const IN_FOLDER =
  'it uses defineService, but only the service file above this folder sets rules: move them there, or import it there';
const GATEFOLD = /(?:^|\/)gatefold(?:\/|$)/;
const CODE_FILE = /\.[cm]?[jt]sx?\s*$/i;
const PLAIN_IMPORT = /^[^\S\n]*(?:import|export|const|let|var)\b(?! type\b)/m;
/** Matches files that nobody loads: tests, and declarations of types. */
const ON_PURPOSE = /\.(?:test|spec)\.|\.d\.[cm]?ts$/i;

/** Creates a function that returns the first such file. */
export function createStraySearch(dir: string) {
  const usesDefineService = rememberByFile(isDefinition);

  /** @param imported the real paths that the service file has imported */
  return async (controllers: Controllers, imported: ReadonlySet<string>): Promise<Stray | undefined> => {
    const serviceFile = controllers.get(SERVICE);
    for (const name of listCodeFiles(dir, controllers)) {
      const path = join(dir, name);
      const isSecond = isServiceFileName(name) && serviceFile !== undefined && name !== serviceFile;
      if (isServiceFileName(name) ? !isSecond : !(await usesDefineService(path, fingerprint(path)))) continue;
      if (imported.has(realPathOf(path))) continue;
      const cure = `remove one of them, or import ${name} in ${serviceFile}`;
      const isBeside = `only ${serviceFile} sets rules, and ${name} is beside it: ${cure}`;
      return { file: name, reason: isSecond ? isBeside : name.includes('/') ? IN_FOLDER : OTHER_NAME };
    }
    return undefined;
  };
}

/**
 * Creates a function that lists the files of a folder that may be strays, with their fingerprints, by path. Controllers
 * and the service file are not listed: the folder's watch and its workers look at them anyway.
 */
export function createStrayListing(): (dir: string, controllers: Controllers) => Map<string, string> {
  const mayBeStray = rememberByFile(mentionsDefinition);
  return (dir, controllers) => {
    const serviceFile = controllers.get(SERVICE);
    const strays = new Map<string, string>();
    for (const name of listCodeFiles(dir, controllers)) {
      const isSecond = isServiceFileName(name);
      if (name === serviceFile || (!isSecond && parseFileName(name) !== undefined)) continue;
      const path = join(dir, name);
      const current = fingerprint(path);
      if (isSecond || mayBeStray(path, current)) strays.set(path, current);
    }
    return strays;
  };
}

/** Remembers what was found in the text of each file, until the fingerprint of the file changes. */
function rememberByFile<T>(examine: (text: string) => T): (path: string, current: string) => T {
  const known = new Map<string, { readonly fingerprint: string; readonly found: T }>();
  return (path, current) => {
    const earlier = known.get(path);
    if (earlier?.fingerprint === current) return earlier.found;
    const found = examine(readSourceOrEmpty(path));
    known.set(path, { fingerprint: current, found });
    return found;
  };
}

function mentionsDefinition(text: string): boolean {
  return text.includes('defineService') && text.includes('gatefold');
}

/** Whether a text imports or exports the value `defineService` of Gatefold. A comment, a string or a type is none. */
async function isDefinition(text: string): Promise<boolean> {
  if (!mentionsDefinition(text)) return false;
  const { tokenize } = await import('../../contract/source/tokens.ts');
  try {
    const { tokens } = tokenize(text);
    const imports = tokens.flatMap(({ value }, index) => (GATEFOLD.test(value) ? importedNames(tokens, index) : []));
    const usesAll = imports.includes('*') && tokens.some(({ value }) => value === 'defineService');
    return usesAll || imports.includes('defineService');
  } catch {
    // A file that cannot be parsed is refused only if its import is plain to see.
    const parts = text.split(/[;'"]/);
    return parts.some(
      (part, i) => parts[i + 1] === 'gatefold' && part.includes('defineService') && PLAIN_IMPORT.test(part),
    );
  }
}

/** @param index of the token that names the module @returns the imported values: their names, or `*` */
function importedNames(tokens: readonly Token[], index: number): readonly string[] {
  const before = (distance: number) => tokens[index - distance]?.value;
  if (before(1) === '(' && (before(2) === 'import' || before(2) === 'require'))
    return before(3) === 'typeof' ? [] : ['*'];
  if (before(1) !== 'from') return [];
  const earlier = tokens.slice(0, index - 1).map(({ value }) => value);
  const words = earlier.slice(Math.max(earlier.lastIndexOf('import'), earlier.lastIndexOf('export')) + 1);
  if (words[0] === 'type' && words.length > 1 && words[1] !== ',') return [];
  return words.filter((_, position) => words[position - 1] !== 'type');
}

/** Returns the files of code in the controllers folder and its folders with controllers, but those nobody loads. */
function listCodeFiles(dir: string, controllers: Controllers): string[] {
  const folders = new Set(['', ...Array.from(controllers.values(), (file) => file.slice(0, file.indexOf('/') + 1))]);
  return Array.from(folders).flatMap((folder) => {
    const names = attempt(() => readdirSync(join(dir, folder)), []);
    const files = names.filter((name) => CODE_FILE.test(name) && !ON_PURPOSE.test(name)).sort();
    return files.map((name) => folder + name);
  });
}
