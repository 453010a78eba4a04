// Finds and parses the source files of a controller and of its types. Only own files are parsed: those whose real path
// is outside `node_modules`. A text is the one that the process has imported, so the checks fit the code that runs.
import { realpathSync, statSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import type { Loader } from '../types/look-up.ts';
import { readTypedefs } from './js-types.ts';
import { parseModule } from './parse-module.ts';
import { SourceError } from './source-error.ts';
import type { Module } from './syntax.ts';

export interface ImportedFiles {
  /** Returns the text that the process has imported, or else the text on the disk. @throws the error of the read */
  textOf(path: string): string;
  /** Resolves a specifier that is no relative path, as Node does. */
  resolve(from: string, specifier: string): string | undefined;
  /** Watches a path for changes, even when no file exists there yet. */
  remember(path: string): void;
  /** All own files that the process has imported. */
  imported(): Iterable<string>;
}

export interface TypeFiles {
  /** @throws UnreadableFile */
  read(path: string): Module;
  /** Returns the text that `read` parses. @throws the error of the read */
  textOf(path: string): string;
  /** @returns the own file that a specifier leads to, `package` for a file that is not read, undefined for no file */
  locate(from: string, specifier: string): string | undefined;
  readonly load: Loader;
  /** Frees the parsed files. Called when all controllers have been read. */
  release(): void;
}

/** The syntax of a file cannot be parsed. */
export class UnreadableFile extends Error {
  readonly path: string;
  readonly source: string;
  readonly at: number;
  constructor(path: string, source: string, { message, at }: SourceError) {
    super(message);
    this.path = path;
    this.source = source;
    this.at = at;
  }
}

/** Maximum characters of all files in the cache, because parsed files are large. The newest file is always kept. */
const MAX_CACHED_CHARACTERS = 1_000_000;
export const SOURCE_FILE = /\.[mc]?[tj]s$/;
export const isJavaScript = (path: string): boolean => /\.[mc]?js$/.test(path);
const IN_NODE_MODULES = /[\\/]node_modules[\\/]/;

export function createTypeFiles(files: Omit<ImportedFiles, 'imported'>): TypeFiles {
  const cache = new Map<string, Module>();
  let cachedLength = 0;
  /** The own files that specifiers lead to, by importer and specifier. A process imports each file only once. */
  const located = new Map<string, string>();

  function textOf(path: string): string {
    files.remember(path);
    return files.textOf(path);
  }

  function read(path: string): Module {
    const source = textOf(path);
    const cached = cache.get(path);
    if (cached?.source === source) return cached;
    const module = parseFile(path, source);
    drop(path);
    cache.set(path, module);
    cachedLength += source.length;
    for (const oldest of cache.keys()) {
      if (cachedLength <= MAX_CACHED_CHARACTERS || oldest === path) break;
      drop(oldest);
    }
    return module;
  }

  function drop(path: string): void {
    cachedLength -= cache.get(path)?.source.length ?? 0;
    cache.delete(path);
  }

  const locate: TypeFiles['locate'] = (from, specifier) => {
    const key = `${from}\n${specifier}`;
    const cached = located.get(key);
    if (cached !== undefined) return cached;
    const location = locateUncached(from, specifier);
    if (location !== undefined && location !== 'package') located.set(key, location);
    return location;
  };

  function locateUncached(from: string, specifier: string): string | undefined {
    if (isBuiltin(specifier) || /^gatefold(?:\/|$)/.test(specifier)) return 'package';
    const isRelative = /^\.{1,2}(?:\/|$)/.test(specifier);
    const path = isRelative ? resolveRelative(from, specifier) : files.resolve(from, specifier);
    if (path === undefined) return !isRelative && isInstalled(from, specifier) ? 'package' : undefined;
    const real = realpathSync.native(path);
    return IN_NODE_MODULES.test(real) || !SOURCE_FILE.test(real) ? 'package' : real;
  }

  const load: Loader = (from, specifier) => {
    const path = locate(from, specifier);
    return path === undefined || path === 'package' ? path : { path, module: read(path) };
  };

  function resolveRelative(from: string, specifier: string): string | undefined {
    const paths = listCandidates(resolve(dirname(from), specifier.replace(/[?#].*$/, '')));
    for (const path of paths.filter((path) => SOURCE_FILE.test(path))) {
      if (isFile(path)) return path;
      // The file may be created later, and would then be the one that the specifier means.
      files.remember(path);
    }
    return undefined;
  }

  function release(): void {
    cache.clear();
    located.clear();
    cachedLength = 0;
  }

  return { read, textOf, locate, load, release };
}

/** Lists the files that a path can mean in TypeScript, where `./x.js` and `./x` can be `./x.ts`. The first one wins. */
function listCandidates(path: string): string[] {
  const [, stem, prefix] = /^(.*)\.([mc]?)js$/.exec(path) ?? [];
  if (stem !== undefined) return [`${stem}.${prefix}ts`, `${stem}.d.${prefix}ts`, path];
  return SOURCE_FILE.test(path) ? [path] : [`${path}.ts`, `${path}.d.ts`, `${path}/index.ts`, `${path}.js`];
}

/** Whether a path exists and is no folder. When it is a pipe or a device, reading it is refused later. */
function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === false;
}

/** Whether a specifier is an installed package. False for a package that is a link to a folder of own files. */
function isInstalled(from: string, specifier: string): boolean {
  const name = /^(?:@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? '';
  for (let dir = dirname(from), previous = ''; dir !== previous; previous = dir, dir = dirname(dir)) {
    const folder = join(dir, 'node_modules', name);
    if (statSync(folder, { throwIfNoEntry: false }) !== undefined) return IN_NODE_MODULES.test(realpathSync(folder));
  }
  return false;
}

function parseFile(path: string, source: string): Module {
  try {
    const module = parseModule(source);
    return isJavaScript(path) ? addTypedefs(module) : module;
  } catch (error) {
    throw error instanceof SourceError ? new UnreadableFile(path, source, error) : error;
  }
}

/** Adds the types that a JavaScript file declares in comments. */
function addTypedefs(module: Module): Module {
  const { declarations, imports } = readTypedefs(module);
  const merged: Module['declarations'] = new Map([...module.declarations, ...declarations]);
  const exports = new Map(module.exports);
  // TypeScript exports each `@typedef`.
  for (const name of declarations.keys()) if (!exports.has(name)) exports.set(name, name);
  return { ...module, declarations: merged, imports: new Map([...imports, ...module.imports]), exports };
}
