// Finds and parses the files that a controller and its types are made of. A file counts as own when its real path is
// not below a `node_modules`. What the process has imported is read as it was imported, so what is checked is what
// runs.
import { realpathSync, statSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import type { Loader } from '../types/evaluate.ts';
import { readTypedefs } from './js-types.ts';
import { parseModule } from './parse-module.ts';
import { SourceError } from './source-error.ts';
import type { Module } from './syntax.ts';

/** The files of a process. */
export interface SourceFiles {
  /** The text of a file: as the process has imported it, or as it is now. @throws what reading it throws */
  textOf(path: string): string;
  /** The file that Node finds for a specifier that is no relative path. */
  resolve(from: string, specifier: string): string | undefined;
  /** Adds a path that was looked at to what is watched, also one where no file is. */
  remember(path: string): void;
}

export interface ImportedFiles extends SourceFiles {
  /** The own files that the process has imported so far. */
  imported(): Iterable<string>;
}

export interface TypeFiles {
  /** @throws UnreadableFile */
  read(path: string): Module;
  readonly load: Loader;
}

/** A file whose syntax is not followed. */
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

/** Parsed files are large; what many controllers share is kept, the rest is read again. */
const MAX_CACHED = 50;
export const SOURCE = /\.[mc]?[tj]s$/;
const PACKAGES = /[\\/]node_modules[\\/]/;

export function createTypeFiles(files: SourceFiles): TypeFiles {
  const cache = new Map<string, Module>();

  function read(path: string): Module {
    files.remember(path);
    const source = files.textOf(path);
    const cached = cache.get(path);
    if (cached?.source === source) return cached;
    const module = parseFile(path, source);
    cache.delete(path);
    cache.set(path, module);
    if (cache.size > MAX_CACHED) cache.delete(cache.keys().next().value as string);
    return module;
  }

  const load: Loader = (from, specifier) => {
    if (isBuiltin(specifier) || /^gatefold(?:\/|$)/.test(specifier)) return 'package';
    const isRelative = /^\.{1,2}(?:\/|$)/.test(specifier);
    const path = isRelative ? resolveRelative(from, specifier) : files.resolve(from, specifier);
    if (path === undefined) return !isRelative && isInstalled(from, specifier) ? 'package' : undefined;
    const real = realpathSync(path);
    return PACKAGES.test(real) || !SOURCE.test(real) ? 'package' : { path: real, module: read(real) };
  };

  function resolveRelative(from: string, specifier: string): string | undefined {
    const paths = listCandidates(resolve(dirname(from), specifier.replace(/[?#].*$/, ''))).filter((path) =>
      SOURCE.test(path),
    );
    const index = paths.findIndex(isFile);
    for (const path of paths.slice(0, index < 0 ? undefined : index)) files.remember(path);
    return paths[index];
  }

  return { read, load };
}

/** `./x.ts` as it is; `./x.js` may mean `./x.ts` and `./x` either, as TypeScript allows. Types before code. */
function listCandidates(plain: string): string[] {
  const [, bare, kind] = /^(.*)\.([mc]?)js$/.exec(plain) ?? [];
  if (bare !== undefined) return [`${bare}.${kind}ts`, `${bare}.d.${kind}ts`, plain];
  return SOURCE.test(plain) ? [plain] : [`${plain}.ts`, `${plain}.d.ts`, `${plain}/index.ts`, `${plain}.js`];
}

/** Undefined where nothing can be meant: a pipe or a device is refused when it is read. */
function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === false;
}

/** Whether a package of that name is below a `node_modules`; one that is linked there from elsewhere is own source. */
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
    return /\.[mc]?js$/.test(path) ? addTypedefs(module) : module;
  } catch (error) {
    throw error instanceof SourceError ? new UnreadableFile(path, source, error) : error;
  }
}

/** Plain JavaScript has its types in comments. */
function addTypedefs(module: Module): Module {
  const { declarations, imports } = readTypedefs(module);
  const merged: Module['declarations'] = new Map([...module.declarations, ...declarations]);
  const exports = new Map(module.exports);
  // Each `@typedef` is exported.
  for (const name of declarations.keys()) if (!exports.has(name)) exports.set(name, name);
  return { ...module, declarations: merged, imports: new Map([...imports, ...module.imports]), exports };
}
