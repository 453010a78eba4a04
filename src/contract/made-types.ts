// Types that TypeScript has written out for types that this reader refuses. `gatefold contracts` writes the file, which
// says from what each type was made. A type whose sources have changed is refused.
import { readdirSync, readFileSync, realpathSync } from 'node:fs';
import module from 'node:module';
import { basename, dirname, join, relative } from 'node:path';
import { hash } from '../base/builtins.ts';
import { attempt } from '../base/failure.ts';
import { statOf } from '../base/fingerprint.ts';
import { foldersAbove } from '../base/manifest.ts';
import { readSourceOrEmpty } from '../base/source-file.ts';
import { isObject, parseObject } from '../base/values.ts';
import type { SourceFiles } from './source/files.ts';
import { ASK, CircularType, SourceError, Unsupported, type WantedType } from './source/source-error.ts';
import type { TypeNode } from './source/syntax.ts';
import { NO_TYPE_PARAMS, type Scope } from './types/look-up.ts';

export const MADE_TYPES_FILE = 'contracts.gen.ts';

/** The comment at the end of the file. */
export interface MadeIndex {
  /** The digest of the text before the comment, and of the two other fields. */
  readonly digest: string;
  /** By the place of a refused type: the name of the type in the file, and the indexes of its sources. */
  readonly entries: Readonly<Record<string, readonly [name: string, sources: readonly number[]]>>;
  readonly sources: readonly Source[];
}

/**
 * The inputs that a type was made from:
 * - `file`: an own file, by its path from the folder of controllers and the digest of its text
 * - `config`: the same for a file that production may lack
 * - `package`: a package (`findPackage`) and its version. Production may lack a package that has only types
 */
export type Source = readonly [kind: 'file' | 'config' | 'package', name: string, print: string];

export function digestOf(text: string): string {
  // TypeScript hands over a text without its byte order mark. Git for Windows checks out CRLF in the place of LF.
  return hash('sha256', text.replace(/^\ufeff/, '').replaceAll('\r\n', '\n'), 'base64url').slice(0, 22);
}

export const indexDigestOf = (text: string, { entries, sources }: Pick<MadeIndex, 'entries' | 'sources'>): string =>
  digestOf(text + JSON.stringify([entries, sources]));

/** Returns a path as the file has it: relative to the folder of controllers, with slashes. */
export const nameFrom = (folder: string, path: string): string => relative(folder, path).replaceAll('\\', '/');

/** @param text the file at `path` up to the type at least. The key is the same for its lines with CRLF and with LF */
export function placeKey(folder: string, path: string, { at, kind }: Omit<WantedType, 'path'>, text: string): string {
  const offset = text.slice(0, at).replaceAll('\r\n', '\n').length;
  return `${nameFrom(folder, path)}@${offset} ${kind}`;
}

export interface Installed {
  readonly home: string;
  /** The version, and the folder that a link leads to. */
  readonly print: string;
  readonly manifest: Readonly<Record<string, unknown>>;
}

interface PnpApi {
  resolveToUnqualified(name: string, issuer: string): string | null;
}

/**
 * Finds a package as a file in a folder imports it.
 *
 * @param name with the place from which it is searched for, when this is another one: `a/node_modules/b` for `b` as the
 *   package `a` imports it, and `./../lib/node_modules/b` for `b` as the folder `../lib` imports it
 * @returns undefined for a package that is not installed
 */
export function findPackage(folder: string, name: string): Installed | undefined {
  const [, outer, inner = ''] = /^(?:(.*)\/node_modules\/)?(.*)$/s.exec(name) ?? [];
  const isFolder = outer?.startsWith('./') && !outer.includes('/node_modules/');
  const start = outer === undefined || isFolder ? join(folder, outer ?? '') : findPackage(folder, outer)?.home;
  // With Yarn's Plug'n'Play there is no node_modules.
  const { findPnpApi } = module as { findPnpApi?: (path: string) => PnpApi | null };
  for (let at = start, below = ''; at !== undefined && at !== below; below = at, at = dirname(at)) {
    try {
      const path = findPnpApi?.(`${at}/`)?.resolveToUnqualified(inner, `${at}/`);
      const home = realpathSync.native(path ?? join(at, 'node_modules', inner));
      const manifest: unknown = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'));
      const link = /[\\/]node_modules[\\/]/.test(home) ? '' : ` in ${nameFrom(folder, home)}`;
      if (isObject(manifest)) return { home, print: `${manifest.version}${link}`, manifest };
    } catch {
      // A folder above may have the package.
    }
  }
  return undefined;
}

export function findConfig(folder: string): string | undefined {
  const paths = Array.from(foldersAbove(join(folder, 'tsconfig.json')), (above) => join(above, 'tsconfig.json'));
  return paths.find((path) => statOf(path)?.isFile() === true);
}

export function listGlobalFiles(folder: string): string[] {
  // This user may not read some folders, such as that of a database.
  const entries = attempt(() => readdirSync(folder, { withFileTypes: true }), []);
  return entries.flatMap((entry) => {
    const path = join(folder, entry.name);
    if (/^\.|^node_modules$/.test(entry.name)) return [];
    if (entry.isDirectory()) return listGlobalFiles(path);
    return entry.isFile() && isGlobalFile(path) ? [path] : [];
  });
}

/** Whether a path is that of made types. They are no source of other types: the file has its own digest. */
export const isMadeFile = (path: string): boolean => basename(path) === MADE_TYPES_FILE;

/** Whether a file has `declare global`, or is no module. */
export function isGlobalFile(path: string): boolean {
  if (!/\.[cm]?tsx?$/.test(path) || isMadeFile(path)) return false;
  const text = readSourceOrEmpty(path);
  return !/^\s*(?:import|export)\b/m.test(text) || /\bdeclare\s+(?:global|module)\b/.test(text);
}

export interface TypeInPlace {
  readonly node: TypeNode;
  readonly scope: Scope;
}

/** Types that take a part of another type, which alone may be none that JSON has. The whole is wanted then. */
const TAKES_A_PART = /^(?:Pick|Omit|Parameters|ReturnType|ConstructorParameters|InstanceType|Awaited|Exclude|Extract)$/;

export type MadeTypes = ReturnType<typeof createMadeTypes>;

export function createMadeTypes(folder: string, path: string, files: SourceFiles) {
  /** Null before it is read. */
  let index: MadeIndex | Error | undefined | null = null;
  let newFile: string | undefined;
  const changes = new Map<number, boolean>();
  const filesWithTypes = new Map<string, boolean>();

  function readIndex(): MadeIndex | undefined {
    files.watch(path);
    let source: string;
    try {
      ({ source } = files.read(path));
    } catch (error) {
      if (error instanceof SourceError) throw staleType('is broken', error.at);
      return undefined;
    }
    const start = source.lastIndexOf('/*gatefold ');
    const index = parseObject(source.slice(start + 11).replace(/\*\/\s*$/, ''));
    const { digest, entries, sources } = (index ?? {}) as Partial<MadeIndex>;
    const isIntact = digest && entries && sources;
    if (isIntact && digest === indexDigestOf(source.slice(0, start), { entries, sources }))
      return { digest, entries, sources };
    if (source.trim() === '') return undefined;
    throw staleType('has been edited', 0);
  }

  function staleType(message: string, at: number): Unsupported {
    const error = new Unsupported(`${MADE_TYPES_FILE} ${message}`, path, at, ASK);
    return Object.assign(error, { isStale: true });
  }

  function hasChanged([kind, name, print]: Source): boolean {
    if (kind === 'package') return (findPackage(folder, name)?.print ?? print) !== print;
    const source = join(folder, name);
    // The imports of a link lead to other files.
    const isOther = () => digestOf(files.textOf(source)) !== print || realpathSync.native(source) !== source;
    return attempt(isOther, kind === 'file');
  }

  /** Returns a file that no type was made from, because it is new: with global declarations, or a tsconfig.json. */
  function findNewFile({ sources }: MadeIndex): string | undefined {
    const config = findConfig(folder);
    const known = new Set(sources.map(([, name]) => name));
    const globals = listGlobalFiles(config === undefined ? folder : dirname(config));
    return [config ?? [], globals]
      .flat()
      .map((file) => nameFrom(folder, file))
      .find((name) => !known.has(name));
  }

  /** @throws the reason why the file is not read */
  function openIndex(): MadeIndex | undefined {
    if (index === null) {
      try {
        index = readIndex();
        newFile = index && findNewFile(index);
      } catch (error) {
        index = error as Error;
      }
    }
    if (index instanceof Error) throw index;
    return index;
  }

  /** Whether the file has a place of a made type. Without this look, large files would be searched for each type. */
  function hasMadeTypes(path: string): boolean {
    const known = filesWithTypes.get(path);
    if (known !== undefined) return known;
    const start = `${nameFrom(folder, path)}@`;
    const has = Object.keys(openIndex()?.entries ?? {}).some((key) => key.startsWith(start));
    filesWithTypes.set(path, has);
    return has;
  }

  /** Returns the entry of a type, and the source that has changed since the type was made. */
  function entryOf(node: TypeNode, { path }: Scope): { name: string; changed: string | undefined } | undefined {
    const opened = openIndex();
    const entry = opened?.entries[placeKey(folder, path, node, files.textOf(path))];
    if (opened === undefined || entry === undefined) return undefined;
    const [name, sources] = entry;
    const changedSource = sources.find((i) => {
      if (!changes.has(i)) changes.set(i, hasChanged(opened.sources[i] as Source));
      return changes.get(i) === true;
    });
    return { name, changed: changedSource === undefined ? newFile : opened.sources[changedSource]?.[1] };
  }

  function typeOf(name: string, { at }: TypeNode, { load }: Scope): TypeInPlace {
    const scope = { path, module: files.read(path), load, typeParams: NO_TYPE_PARAMS };
    return { node: { kind: 'name', name, args: [], at }, scope };
  }

  /** Finds the made type for a refused one. @throws the error, with the wanted type or the reason of a stale one */
  function find(error: unknown, node: TypeNode, scope: Scope): TypeInPlace {
    if (!(error instanceof Unsupported) || error instanceof CircularType || error.cure?.endsWith(ASK) !== true)
      throw error;
    const { name, changed } = entryOf(node, scope) ?? {};
    if (changed !== undefined) {
      error.message = `${MADE_TYPES_FILE} was made from another ${changed}`;
      error.isStale = true;
    }
    if (name !== undefined && changed === undefined) return typeOf(name, node, scope);
    const takesPart =
      /^(?:indexed|keyof|union)$/.test(node.kind) || (node.kind === 'name' && TAKES_A_PART.test(node.name));
    if (error.wanted === undefined || takesPart) error.wanted = { path: scope.path, at: node.at, kind: node.kind };
    throw error;
  }

  /**
   * Returns the made type of a generic or mapped type; undefined without one, and for a stale one. A field of such a
   * type is refused only when it is needed, and then its place has other type arguments.
   */
  function findFresh(node: TypeNode, scope: Scope): TypeInPlace | undefined {
    try {
      const canDefer = node.kind === 'name' || node.kind === 'mapped';
      const entry = canDefer && hasMadeTypes(scope.path) ? entryOf(node, scope) : undefined;
      return entry === undefined || entry.changed !== undefined ? undefined : typeOf(entry.name, node, scope);
    } catch {
      // The reason refuses the files that need a made type.
      return undefined;
    }
  }

  return {
    find,
    findFresh,
    /** Forgets what was read and compared, because a source of a later group can have changed. */
    release(): void {
      index = null;
      changes.clear();
      filesWithTypes.clear();
    },
  };
}
