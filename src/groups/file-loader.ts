// Loads the controllers and the service file (`service.ts`) of a folder into this process, one file at a time: imports
// the module, reads its source, and remembers the files that do not load. The caller turns a module into a handler
// group or into the rules of the service.
import { lstatSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { fingerprint } from '../base/fingerprint.ts';
import { describeError, type Log } from '../base/log.ts';
import { withTimeLimit } from '../base/time.ts';
import type { Reader } from '../contract/reader.ts';
import type { FolderCache } from './contract-cache.ts';
import { type EarlyTexts, readEarly } from './early-texts.ts';
import type { GroupLoad } from './group-load.ts';
import { describeLoadError } from './load-error.ts';
import { createModuleLoader, type LoadedFile, type ModuleLoaderOptions, prepareTypeScript } from './module-loader.ts';
import { listControllers } from './naming.ts';
import { HungLoad, isTransient } from './passing-failures.ts';
import { SourceChanged } from './source-texts.ts';

type Module = Readonly<Record<string, unknown>>;

/** The steps of a load that the caller provides. When a step throws an error, the file does not load. */
export interface LoadSteps<T> {
  /** Runs before the file is imported. */
  readonly check?: () => void;
  /** Builds the value of the file, such as a group, from its module. */
  build(module: Module, reader: Reader, path: string): T;
}

export interface FileLoader {
  /**
   * Imports a file and passes its module to `build`. Both steps are repeated when the file changes during its import.
   * The promise never rejects.
   *
   * @returns the outcome, and in `loaded` the value that `build` returned; without `loaded`, the file did not load
   */
  load<T>(group: string, file: string, steps: LoadSteps<T>): Promise<{ readonly load: GroupLoad; readonly loaded?: T }>;
  /** Returns why the last load of a file failed, or undefined when it did not fail or the file has changed since. */
  brokenReason(file: string): string | undefined;
  /** Records why a file must not be loaded. `brokenReason` returns the reason until the file changes. */
  skip(file: string, reason: string): void;
  /** Called before the first file of the folder is loaded. */
  begin(): Promise<void>;
  /** Frees the memory that only the load of the folder needed. Called when the folder has loaded. */
  release(): Promise<void>;
  /** Returns every file that imports have read so far, or have looked for and not found. */
  closure(): LoadedFile[];
}

export interface FileLoaderOptions extends ModuleLoaderOptions {
  readonly dir: string;
  readonly log: Log;
  /** Maximum milliseconds for the import of one file. */
  readonly loadTimeout: number;
  readonly prepared: PreparedLoad | undefined;
}

/** The parts of a large folder that a process reads before it gets the order to load the folder. */
export interface PreparedLoad {
  readonly caches: Caches;
  readonly earlyTexts: EarlyTexts;
}

/** The caches of a folder on disk. */
interface Caches {
  /** The real path of the folder. */
  readonly folder: string;
  /** Undefined when there can be no cache. */
  readonly contracts?: FolderCache | undefined;
  /** Why the caches are refused. */
  readonly error?: unknown;
}

/** Maximum number of loads of a file whose source changes during its import. */
const MAX_LOADS = 3;
/** Minimum number of files in a folder that gets caches. A smaller folder loads about as fast without caches. */
const MIN_FILES_CACHED = 30;

/**
 * Imports the modules that the load of a folder needs, and reads the sources and the caches of a large folder. A worker
 * calls this function before the supervisor orders the load, while the worker has nothing else to do.
 *
 * @returns undefined for a small folder, which needs no caches
 * @throws Error when the folder is missing or `tsx` is broken; a load reports the same error
 */
export async function prepareLoad(dir: string): Promise<PreparedLoad | undefined> {
  const controllers = [...listControllers(dir).values()];
  if (controllers.length === 0) return undefined;
  await importReader();
  const prepared = controllers.length < MIN_FILES_CACHED ? undefined : await prepareLargeFolder(dir, controllers);
  if (controllers.some((file) => file.endsWith('.ts'))) await prepareTypeScript();
  return prepared;
}

async function prepareLargeFolder(dir: string, controllers: readonly string[]): Promise<PreparedLoad> {
  const caches = await openCachesOf(realpathSync.native(dir));
  const earlyTexts = readEarly(controllers.map((file) => join(caches.folder, file)));
  caches.contracts?.prepareDigests(earlyTexts.all());
  return { caches, earlyTexts };
}

async function openCachesOf(folder: string): Promise<Caches> {
  const { openCaches } = await import('./contract-cache.ts');
  try {
    return { folder, contracts: openCaches(folder) };
  } catch (error) {
    return { folder, error };
  }
}

function realPathOrSame(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    return path;
  }
}

/** Imports the parser of types, which a process without controllers does not need. */
const importReader = () => import('../contract/reader.ts');

export function createFileLoader({ dir, log, loadTimeout, prepared, onFile }: FileLoaderOptions): FileLoader {
  const modules = createModuleLoader({ onFile, earlyTexts: prepared?.earlyTexts });
  /**
   * By the name of a file: why its last load failed, and its fingerprint before that load. A file that has changed
   * since is loaded again.
   */
  const failures = new Map<string, { readonly reason: string; readonly state: string }>();
  /** By the real path of a file: how often an import of it was started. */
  const importCounts = new Map<string, number>();
  let caches = prepared?.caches;
  let reader: Promise<Reader> | undefined;
  const getReader = () =>
    (reader ??= importReader().then(({ createReader }) => createReader(modules, caches?.contracts)));

  /** The real path of the folder, while a large folder loads. */
  let loadingFolder: string | undefined;
  /** Follows links. Most files of a large folder are no links, and the links in the path of the folder are known. */
  function findRealPath(path: string, file: string): string {
    if (loadingFolder === undefined || file.includes('/') || lstatSync(path).isSymbolicLink())
      return realpathSync.native(path);
    return join(loadingFolder, file);
  }

  async function importFile<T>(path: string, build: (module: Module, reader: Reader) => T): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const importCount = importCounts.get(path) ?? 0;
      importCounts.set(path, importCount + 1);
      const module = await withTimeLimit(modules.load(path, importCount), loadTimeout, () => new HungLoad(loadTimeout));
      const groupReader = await getReader();
      try {
        return build(module, groupReader);
      } catch (error) {
        if (!(error instanceof SourceChanged) || attempt === MAX_LOADS) throw error;
      }
    }
  }

  return {
    async load(group, file, { check, build }) {
      const path = join(dir, file);
      const state = fingerprint(path);
      let realPath = path;
      try {
        realPath = findRealPath(path, file);
        check?.();
        const loaded = await importFile(realPath, (module, groupReader) => build(module, groupReader, realPath));
        failures.delete(file);
        return { load: { group, file, ok: true }, loaded };
      } catch (error) {
        const { reason, dueTo, ...place } = await describeLoadError(error, realPath, () =>
          modules.closure().map(({ path }) => path),
        );
        if (dueTo !== undefined) modules.watch(dueTo);
        // The cause of a transient error can be gone soon, so such a failure is not remembered.
        if (!isTransient(error)) failures.set(file, { reason, state });
        const hung = error instanceof HungLoad;
        return { load: { group, file, ok: false, error: reason, ...place, ...(hung ? { hung } : {}) } };
      }
    },
    brokenReason(file) {
      const failure = failures.get(file);
      return failure?.state === fingerprint(join(dir, file)) ? failure.reason : undefined;
    },
    skip(file, reason) {
      failures.set(file, { reason, state: fingerprint(join(dir, file)) });
    },
    async begin() {
      if (caches === undefined) return;
      modules.startDirectImports();
      const folder = realPathOrSame(dir);
      // The folder is a link that leads to another release by now.
      if (folder !== caches.folder) caches = await openCachesOf(folder);
      loadingFolder = folder;
      caches.contracts?.refresh();
      if (caches.error !== undefined) log.warn('cache-refused', describeError(caches.error));
    },
    async release() {
      loadingFolder = undefined;
      modules.stopDirectImports();
      caches?.contracts?.release();
      prepared?.earlyTexts.clear();
      (await reader)?.release();
    },
    closure: modules.closure,
  };
}
