// Finds and parses the source files of a controller and its types. Own files are the files outside `node_modules`, by
// their real path. The text of a file is the one that the process has imported, so the checks fit the code that runs.
import { realpathSync, statSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import type { Loader } from '../types/look-up.ts';
import { readTypedefs } from './js-types.ts';
import { parseModule } from './parse-module.ts';
import { SourceError } from './source-error.ts';
import type { Module } from './syntax.ts';

export interface ImportedFiles {
  /**
   * Returns the text of a file: the text that the process has imported, or else the current text. @throws the read
   * error
   */
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
  /** The text that `read` parses. @throws the read error */
  textOf(path: string): string;
  /**
   * @returns the path of the own file that a specifier means, `package` for a file that is not read, or undefined when
   * no file is found
   */
  locate(from: string, specifier: string): string | undefined;
  readonly load: Loader;
  /** Empties the cache, once all controllers are read. */
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

/**
 * The cache keeps the parsed files of at most this many characters of source, because parsed files are large. The limit
 * leaves room for files that several controllers share. The newest file is always kept.
 */
const MAX_CACHED_CHARACTERS = 1_000_000;
export const SOURCE_FILE = /\.[mc]?[tj]s$/;
export const isJavaScript = (path: string): boolean => /\.[mc]?js$/.test(path);
const PACKAGES = /[\\/]node_modules[\\/]/;

export function createTypeFiles(files: Omit<ImportedFiles, 'imported'>): TypeFiles {
  const cache = new Map<string, Module>();
  let cachedLength = 0;
  /**
   * The real path that a specifier leads to, by importer and specifier. The process has imported one version of the
   * folder, so an entry stays valid.
   */
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
    return PACKAGES.test(real) || !SOURCE_FILE.test(real) ? 'package' : real;
  }

  const load: Loader = (from, specifier) => {
    const path = locate(from, specifier);
    return path === undefined || path === 'package' ? path : { path, module: read(path) };
  };

  function resolveRelative(from: string, specifier: string): string | undefined {
    const paths = listCandidates(resolve(dirname(from), specifier.replace(/[?#].*$/, ''))).filter((path) =>
      SOURCE_FILE.test(path),
    );
    const index = paths.findIndex(isFile);
    for (const path of paths.slice(0, index < 0 ? undefined : index)) files.remember(path);
    return paths[index];
  }

  function release(): void {
    cache.clear();
    located.clear();
    cachedLength = 0;
  }

  return { read, textOf, locate, load, release };
}

/**
 * Lists the files that a path can mean in TypeScript, where `./x.js` and `./x` can be `./x.ts`. Files with types come
 * before files with code only.
 */
function listCandidates(path: string): string[] {
  const [, stem, prefix] = /^(.*)\.([mc]?)js$/.exec(path) ?? [];
  if (stem !== undefined) return [`${stem}.${prefix}ts`, `${stem}.d.${prefix}ts`, path];
  return SOURCE_FILE.test(path) ? [path] : [`${path}.ts`, `${path}.d.ts`, `${path}/index.ts`, `${path}.js`];
}

/** Whether the path exists and is no folder. A pipe or a device is refused later, when it is read. */
function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === false;
}

/**
 * Whether the specifier is an installed package. The result is false for a link to a package outside `node_modules`,
 * because the files of that package are own files.
 */
function isInstalled(from: string, specifier: string): boolean {
  const name = /^(?:@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? '';
  for (let dir = dirname(from), previous = ''; dir !== previous; previous = dir, dir = dirname(dir)) {
    const folder = join(dir, 'node_modules', name);
    if (statSync(folder, { throwIfNoEntry: false }) !== undefined) return PACKAGES.test(realpathSync(folder));
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

/** Adds the types that JavaScript declares in comments. */
function addTypedefs(module: Module): Module {
  const { declarations, imports } = readTypedefs(module);
  const merged: Module['declarations'] = new Map([...module.declarations, ...declarations]);
  const exports = new Map(module.exports);
  // TypeScript exports each `@typedef`.
  for (const name of declarations.keys()) if (!exports.has(name)) exports.set(name, name);
  return { ...module, declarations: merged, imports: new Map([...imports, ...module.imports]), exports };
}
