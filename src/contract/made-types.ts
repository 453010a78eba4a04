// Types that TypeScript has written out for types that this reader refuses. `gatefold contracts` writes the file, which
// says from what each type was made. A type whose sources have changed is refused.
import { type Dirent, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { statOf } from '../base/fingerprint.ts';
import { readSourceOrEmpty } from '../base/source-file.ts';
import { type SourceFiles, UnparsableFile } from './source/files.ts';
import { ASK, CircularType, Unsupported, type WantedType } from './source/source-error.ts';
import type { TypeNode } from './source/syntax.ts';
import { NO_TYPE_PARAMS, type Scope } from './types/look-up.ts';

export const MADE_TYPES_FILE = 'contracts.gen.ts';

/** The comment at the end of the file. */
export interface MadeIndex {
  /** The digest of the text before the comment. */
  readonly digest: string;
  /** By the place of a refused type: the name of the type in the file, and the indexes of its sources. */
  readonly entries: Readonly<Record<string, readonly [name: string, sources: readonly number[]]>>;
  readonly sources: readonly Source[];
}

/**
 * The inputs that a type was made from:
 * - `file`: an own file, by its path from the folder of controllers and the digest of its text
 * - `config`: the same for a file that production may lack
 * - `package`: a package and its version. Production may lack a package that has only types
 */
export type Source = readonly [kind: 'file' | 'config' | 'package', name: string, print: string];

/** Loads `node:crypto` for the first made type, because a start without one does not need it. */
export function digestOf(text: string): string {
  const { createHash } = createRequire(import.meta.url)('node:crypto') as typeof import('node:crypto');
  return createHash('sha256').update(text).digest('base64url').slice(0, 22);
}

/** Returns a path as the file has it: relative to the folder of controllers, with slashes. */
export const nameFrom = (folder: string, path: string): string => relative(folder, path).replaceAll('\\', '/');

export function placeKey(folder: string, path: string, { at, kind }: Pick<WantedType, 'at' | 'kind'>): string {
  return `${nameFrom(folder, path)}@${at} ${kind}`;
}

/** @returns undefined for a package that is not installed */
export function versionOf(folder: string, name: string): string | undefined {
  for (let at = folder, below = ''; at !== below; below = at, at = dirname(at)) {
    try {
      return String(JSON.parse(readFileSync(join(at, 'node_modules', name, 'package.json'), 'utf8')).version);
    } catch {
      // A folder above may have the package.
    }
  }
  return undefined;
}

/** Lists own files below a folder that declare something for all files: `declare global`, or a `.d.ts` of no module. */
export function listGlobalFiles(folder: string): string[] {
  return entriesOf(folder).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (/^\.|^node_modules$/.test(entry.name)) return [];
    if (entry.isDirectory()) return listGlobalFiles(path);
    if (!entry.isFile() || !/\.[cm]?ts$/.test(entry.name)) return [];
    const text = readSourceOrEmpty(path);
    const isScript = /\.d\.[cm]?ts$/.test(path) && !/^\s*(?:import|export)\b/m.test(text);
    return isScript || /\bdeclare\s+(?:global|module)\b/.test(text) ? [path] : [];
  });
}

/** @returns nothing for a folder that this user may not read, such as that of a database */
function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

/** Finds the made type for a refused one. @throws the error, with the wanted type or with the reason of a stale one */
export type FindMade = (error: unknown, node: TypeNode, scope: Scope) => { node: TypeNode; scope: Scope };

/** Types that take a part of another type, which alone may be none that JSON has. The whole is wanted then. */
const TAKES_A_PART = /^(?:Pick|Omit|Parameters|ReturnType|ConstructorParameters|InstanceType|Awaited|Exclude|Extract)$/;

/** @param folder the folder of controllers. @param path of the file with the made types */
export function createMadeTypes(folder: string, path: string, files: SourceFiles): FindMade {
  let index: MadeIndex | undefined | null = null;
  let newGlobal: string | undefined;
  const changes = new Map<number, boolean>();

  function readIndex(): MadeIndex | undefined {
    files.watch(path);
    let source: string;
    try {
      ({ source } = files.read(path));
    } catch (error) {
      if (error instanceof UnparsableFile)
        throw new Unsupported(`${MADE_TYPES_FILE} is broken`, path, error.offset, ASK);
      return undefined;
    }
    const start = source.lastIndexOf('/*gatefold ');
    const { digest, entries, sources } = parseIndex(source.slice(start + 11)) ?? {};
    const isIntact = start >= 0 && digest === digestOf(source.slice(0, start)) && entries && sources;
    if (isIntact) return { digest, entries, sources };
    if (source.trim() === '') return undefined;
    throw new Unsupported(`${MADE_TYPES_FILE} has been edited`, path, 0, ASK);
  }

  function hasChanged([kind, name, print]: Source): boolean {
    if (kind === 'package') return (versionOf(folder, name) ?? print) !== print;
    try {
      return digestOf(files.textOf(join(folder, name))) !== print;
    } catch {
      return kind === 'file';
    }
  }

  /** Returns a file with global declarations that no type was made from, because it is new. */
  function findNewGlobal({ sources }: MadeIndex): string | undefined {
    const config = sources.find(([kind, name]) => kind === 'config' && statOf(join(folder, name)) !== undefined)?.[1];
    const known = new Set(sources.map(([, name]) => name));
    const names = listGlobalFiles(dirname(join(folder, config ?? 'x'))).map((file) => nameFrom(folder, file));
    return names.find((name) => !known.has(name));
  }

  return (error, node, scope) => {
    if (!(error instanceof Unsupported) || error instanceof CircularType || error.cure?.endsWith(ASK) !== true)
      throw error;
    if (index === null) {
      index = readIndex();
      newGlobal = index && findNewGlobal(index);
    }
    const [name, sources] = index?.entries[placeKey(folder, scope.path, node)] ?? [];
    const changedSource = sources?.find((i) => {
      if (!changes.has(i)) changes.set(i, hasChanged(index?.sources[i] as Source));
      return changes.get(i) === true;
    });
    const changed = name && (changedSource === undefined ? newGlobal : index?.sources[changedSource]?.[1]);
    if (changed !== undefined) error.message = `${MADE_TYPES_FILE} was made from another ${changed}`;
    if (name !== undefined && changed === undefined) {
      const made = { path, module: files.read(path), load: scope.load, typeParams: NO_TYPE_PARAMS };
      return { node: { kind: 'name', name, args: [], at: node.at }, scope: made };
    }
    const takesPart =
      /^(?:indexed|keyof|union)$/.test(node.kind) || (node.kind === 'name' && TAKES_A_PART.test(node.name));
    if (error.wanted === undefined || takesPart) error.wanted = { path: scope.path, at: node.at, kind: node.kind };
    throw error;
  };
}

function parseIndex(text: string): Partial<MadeIndex> | undefined {
  try {
    return JSON.parse(text.replace(/\*\/\s*$/, '')) as Partial<MadeIndex>;
  } catch {
    return undefined;
  }
}
