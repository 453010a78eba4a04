// Loads the controllers and the service file (`service.ts`) of a folder into this process, one file at a time: imports
// the module, reads its source, and remembers the files that do not load. The caller turns a module into a handler
// group or into the rules of the service.
import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import { fingerprint } from '../base/fingerprint.ts';
import { describeError, type Log } from '../base/log.ts';
import { withTimeLimit } from '../base/time.ts';
import type { Reader } from '../contract/reader.ts';
import type { FolderCache } from './contract-cache.ts';
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
  /** Opens the caches on disk, if the folder is large. Called before the first file is loaded. */
  openCaches(fileCount: number): Promise<void>;
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
  readonly usesCaches: boolean;
}

/** Maximum number of loads of a file whose source changes during its import. */
const MAX_LOADS = 3;
/** Minimum number of files in a folder that gets a cache. A smaller folder loads about as fast without a cache. */
const MIN_FILES_CACHED = 30;
const isLarge = (fileCount: number): boolean => fileCount >= MIN_FILES_CACHED;

/**
 * Imports the modules that the first load of a folder needs. A worker calls this function before the supervisor orders
 * the load, while the worker has nothing else to do.
 *
 * @throws Error when the folder is missing or `tsx` is broken; a load reports the same error
 */
export async function prepareLoad(dir: string): Promise<void> {
  const controllers = [...listControllers(dir).values()];
  if (controllers.length === 0) return;
  await importReader();
  if (isLarge(controllers.length)) (await import('./contract-cache.ts')).identifyBuild();
  if (controllers.some((file) => file.endsWith('.ts'))) await prepareTypeScript();
}

/** Imports the parser of types, which a process without controllers does not need. */
const importReader = () => import('../contract/reader.ts');

export function createFileLoader({ dir, log, loadTimeout, usesCaches, onFile }: FileLoaderOptions): FileLoader {
  const modules = createModuleLoader({ onFile });
  /**
   * By the name of a file: why its last load failed, and its fingerprint before that load. A file that has changed
   * since is loaded again.
   */
  const failures = new Map<string, { readonly reason: string; readonly state: string }>();
  /** By the real path of a file: how often an import of it was started. */
  const importCounts = new Map<string, number>();
  let cache: FolderCache | undefined;
  let reader: Promise<Reader> | undefined;
  const getReader = () => (reader ??= importReader().then(({ createReader }) => createReader(modules, cache)));

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
        realPath = realpathSync.native(path);
        check?.();
        const loaded = await importFile(realPath, (module, groupReader) => build(module, groupReader, realPath));
        failures.delete(file);
        return { load: { group, file, ok: true }, loaded };
      } catch (error) {
        const { reason, dueTo, ...place } = await describeLoadError(error, realPath, () =>
          modules.closure().map(({ path }) => path),
        );
        if (dueTo !== undefined) modules.remember(dueTo);
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
    async openCaches(fileCount) {
      if (!usesCaches || !isLarge(fileCount)) return;
      modules.startDirectImports();
      const { openCaches } = await import('./contract-cache.ts');
      try {
        cache = openCaches(dir);
      } catch (error) {
        log.warn('cache-refused', describeError(error));
      }
    },
    async release() {
      modules.stopDirectImports();
      cache?.release();
      (await reader)?.release();
    },
    closure: modules.closure,
  };
}
