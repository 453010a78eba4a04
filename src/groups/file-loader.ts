// Loads the controllers and the service file (`service.ts`) of a folder into this process, one file at a time:
// 1. module-loader.ts imports the file. source-texts.ts keeps the text that runs.
// 2. The caller (registry.ts) builds a handler group, or the rules of the service, from the module. The `Reader` of
//    contract/ gives the caller the types in the kept text.
// 3. If a step fails, load-error.ts describes the error, and the file is not loaded again until it changes.
// For a large folder, prepared-load.ts has read texts and contracts before, and direct-imports.ts makes step 1 faster.
import { lstatSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { fingerprint } from '../base/fingerprint.ts';
import type { Log } from '../base/log.ts';
import { withTimeLimit } from '../base/time.ts';
import type { Reader } from '../contract/reader.ts';
import type { GroupLoad } from './group-load.ts';
import { describeLoadError } from './load-error.ts';
import { createModuleLoader, type LoadedFile, type ModuleLoaderOptions } from './module-loader.ts';
import { HungLoad, isTransient } from './passing-failures.ts';
import type { PreparedLoad } from './prepared-load.ts';
import { SourceChanged } from './source-texts.ts';

type Module = Readonly<Record<string, unknown>>;

/** Builds the value of a file, such as a group, from its module. When it throws an error, the file does not load. */
type Build<T> = (module: Module, reader: Reader, path: string) => T;

export interface FileLoader {
  /**
   * Imports a file and passes its module to `build`. Both steps are repeated when the file changes during its import.
   * The promise never rejects.
   *
   * @returns the outcome, and in `loaded` the value that `build` returned; without `loaded`, the file did not load
   */
  load<T>(group: string, file: string, build: Build<T>): Promise<{ readonly load: GroupLoad; readonly loaded?: T }>;
  /** Returns why a file does not load, or undefined when it loads, is not loaded yet, or has changed since. */
  brokenReason(file: string): string | undefined;
  /** Records why a file must not be loaded. `brokenReason` returns the reason until the file changes. */
  skip(file: string, reason: string): void;
  /** Called before the first file of the folder is loaded. */
  begin(): Promise<void>;
  /** Frees the memory that only the load of the folder needed. Called when the folder has loaded. */
  release(): Promise<void>;
  /** See ModuleLoader. */
  closure(): LoadedFile[];
}

export interface FileLoaderOptions extends Pick<ModuleLoaderOptions, 'onFile'> {
  readonly dir: string;
  readonly log: Log;
  /** Maximum milliseconds for the import of one file. */
  readonly loadTimeout: number;
  readonly prepared: PreparedLoad | undefined;
}

/** Maximum number of loads of a file whose source changes during its import. */
const MAX_LOADS = 3;

export function createFileLoader({ dir, log, loadTimeout, prepared, onFile }: FileLoaderOptions): FileLoader {
  const modules = createModuleLoader({ onFile, findEarlyText: prepared?.findText });
  /** By the name of a file. The fingerprint is from before the load: a file that has changed since is loaded again. */
  const failures = new Map<string, { readonly reason: string; readonly earlierFingerprint: string }>();
  /** By the real path of a file: how often an import of it was started. */
  const importCounts = new Map<string, number>();
  let reader: Promise<Reader> | undefined;
  /** Imports the parser of types, which a process without controllers does not need. */
  const getReader = () =>
    (reader ??= import('../contract/reader.ts').then(({ createReader }) =>
      createReader(modules, prepared?.contracts()),
    ));

  /** The real path of the folder, while a large folder loads. */
  let loadingFolder: string | undefined;
  /** Follows links. In a large folder, this takes one `lstat`, because the real path of the folder is known. */
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
    async load(group, file, build) {
      const path = join(dir, file);
      const earlierFingerprint = fingerprint(path);
      let realPath = path;
      try {
        realPath = findRealPath(path, file);
        const loaded = await importFile(realPath, (module, groupReader) => build(module, groupReader, realPath));
        failures.delete(file);
        return { load: { group, file, ok: true }, loaded };
      } catch (error) {
        const imported = modules.closure().map(({ path }) => path);
        const { reason, dueTo, ...place } = await describeLoadError(error, realPath, imported);
        if (dueTo !== undefined) modules.watch(dueTo);
        // The cause of a transient error can be gone soon, so such a failure is not remembered.
        if (!isTransient(error)) failures.set(file, { reason, earlierFingerprint });
        const hung = error instanceof HungLoad;
        return { load: { group, file, ok: false, error: reason, ...place, ...(hung ? { hung } : {}) } };
      }
    },
    brokenReason(file) {
      const failure = failures.get(file);
      return failure?.earlierFingerprint === fingerprint(join(dir, file)) ? failure.reason : undefined;
    },
    skip(file, reason) {
      failures.set(file, { reason, earlierFingerprint: fingerprint(join(dir, file)) });
    },
    async begin() {
      if (prepared === undefined) return;
      modules.startDirectImports();
      loadingFolder = await prepared.begin(log);
    },
    async release() {
      loadingFolder = undefined;
      modules.stopDirectImports();
      prepared?.release();
      (await reader)?.release();
    },
    closure: modules.closure,
  };
}
