// Finds and parses the source files of a controller and of its types. Only own files are parsed: TypeScript and
// JavaScript files whose real path is outside `node_modules`. For an imported file, the text that was imported is
// parsed, even if the file on the disk has changed since. So the checks fit the code that runs.
import { realpathSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { basename, dirname, join, resolve } from 'node:path';
import { statOf } from '../../base/fingerprint.ts';
import { foldersAbove } from '../../base/manifest.ts';
import type { ModuleExports } from '../part-schemas.ts';
import type { ImportUse, Loader } from '../types/look-up.ts';
import { findDeclarationFile, isFile, packageNameOf } from './declaration-file.ts';
import { parseModule } from './parse-module.ts';
import { SourceError, Unsupported } from './source-error.ts';
import type { Module } from './syntax.ts';

export interface ImportedFiles {
  /** Returns the text that the process has imported, or else the text on the disk. @throws the error of the read */
  textOf(path: string): string;
  /** Resolves a specifier that is no relative path, as Node does. Returns undefined when Node finds no file. */
  resolve(importer: string, specifier: string): string | undefined;
  /** Watches a path, even when no file exists there yet. A change loads the controller again. */
  watch(path: string): void;
  imported(): Iterable<string>;
  /** Returns the exports of an own file, or the error of its import; undefined when it has not been imported. */
  exportsOf(path: string): ModuleExports | undefined;
}

export type SourceFiles = ReturnType<typeof createSourceFiles>;

/** Maximum characters of the sources in the cache, because parsed files need much memory. The newest file is kept. */
const MAX_CACHED_CHARACTERS = 1_000_000;
export const SOURCE_FILE = /\.[mc]?[tj]s$/;
export const isJavaScript = (path: string): boolean => /\.[mc]?js$/.test(path);
const DECLARATION_FILE = /\.d\.[mc]?ts$/;
const IN_NODE_MODULES = /[\\/]node_modules[\\/]/;

export function createSourceFiles(files: Omit<ImportedFiles, 'imported' | 'exportsOf'>) {
  /** The parsed files by path, from the oldest to the newest. */
  const cache = new Map<string, Module>();
  let cachedCharacters = 0;
  /** By importer, specifier and use. After a change, the files are read in another process or by a new reader. */
  const locations = new Map<string, string>();

  function textOf(path: string): string {
    files.watch(path);
    return files.textOf(path);
  }

  /** Parses a file. @throws SourceError, or the error of the read */
  function read(path: string): Module {
    const source = textOf(path);
    const cached = cache.get(path);
    if (cached?.source === source) return cached;
    const module = parseFile(path, source);
    drop(path);
    cache.set(path, module);
    cachedCharacters += source.length;
    for (const oldest of cache.keys()) {
      if (cachedCharacters <= MAX_CACHED_CHARACTERS || oldest === path) break;
      drop(oldest);
    }
    return module;
  }

  function drop(path: string): void {
    cachedCharacters -= cache.get(path)?.source.length ?? 0;
    cache.delete(path);
  }

  /** @returns `package` also for a module of Node or Gatefold; undefined without a source file, as for `./data.json` */
  function locate(importer: string, specifier: string, use: ImportUse): string | undefined {
    if (isBuiltin(specifier) || /^gatefold(?:\/|$)/.test(specifier)) return 'package';
    const isRelative = /^\.{1,2}(?:\/|$)/.test(specifier);
    const path = isRelative ? resolveRelative(importer, specifier, use) : files.resolve(importer, specifier);
    if (path === undefined && !isRelative && isInstalled(importer, specifier)) return 'package';
    const running = path === undefined ? undefined : realpathSync.native(path);
    const isOwn = running === undefined || (isJavaScript(running) && !IN_NODE_MODULES.test(running));
    const isOwnType = use === 'type' && !isRelative && isOwn;
    const declarations = isOwnType ? findDeclarationFile(importer, specifier, running, files.watch) : undefined;
    const realPath = declarations ?? running;
    if (realPath === undefined) return undefined;
    return IN_NODE_MODULES.test(realPath) || !SOURCE_FILE.test(realPath) ? 'package' : realPath;
  }

  const load: Loader = (importer, specifier, use) => {
    const key = `${importer}\n${specifier}\n${use}`;
    const path = locations.get(key) ?? locate(importer, specifier, use);
    if (path === undefined || path === 'package') return path;
    locations.set(key, path);
    return { path, module: read(path) };
  };

  function resolveRelative(importer: string, specifier: string, use: ImportUse): string | undefined {
    const namedPath = resolve(dirname(importer), specifier.replace(/[?#].*$/, ''));
    for (const path of listCandidates(namedPath)) {
      if (isFile(path)) {
        if (use === 'value' && path !== namedPath && !DECLARATION_FILE.test(path) && isFile(namedPath))
          refuseTwoFiles(importer, specifier, namedPath, path);
        return path;
      }
      // The specifier would mean this file if it were created later.
      files.watch(path);
    }
    return undefined;
  }

  function refuseTwoFiles(importer: string, specifier: string, runningPath: string, readPath: string): never {
    files.watch(runningPath);
    const [runningName, readName] = [basename(runningPath), basename(readPath)];
    throw new Unsupported(
      `'${specifier}' is ${runningName} for Node, but ${readName} for tsx and for the types`,
      importer,
      textOf(importer).indexOf(specifier),
      `import ${readName} by its name, or delete ${runningName}`,
    );
  }

  /** Frees the parsed files. Called when all controllers have been read. */
  function release(): void {
    cache.clear();
    locations.clear();
    cachedCharacters = 0;
  }

  return { read, textOf, watch: files.watch, load, release };
}

/**
 * Lists the source files that a path can mean in TypeScript. The first one that exists is taken. For `./x.js`, that is
 * `x.ts`, even if there is `x.js`: a compiler has removed the types and each `private` from `x.js`.
 */
function listCandidates(path: string): string[] {
  const [, stem, letter] = /^(.*)\.([mc]?)js$/.exec(path) ?? [];
  if (stem !== undefined) return [`${stem}.${letter}ts`, `${stem}.d.${letter}ts`, path];
  return SOURCE_FILE.test(path) ? [path] : [`${path}.ts`, `${path}.d.ts`, `${path}/index.ts`, `${path}.js`];
}

/**
 * Whether a folder `node_modules` has the package itself. A link to a folder outside `node_modules`, as in a workspace,
 * does not count: its files are own files, so a missing one is an error.
 */
function isInstalled(importer: string, specifier: string): boolean {
  for (const folder of foldersAbove(importer)) {
    const path = join(folder, 'node_modules', packageNameOf(specifier));
    if (statOf(path) !== undefined) return IN_NODE_MODULES.test(realpathSync(path));
  }
  return false;
}

function parseFile(path: string, source: string): Module {
  try {
    return parseModule(source);
  } catch (error) {
    throw error instanceof SourceError ? Object.assign(error, { path, source }) : error;
  }
}
