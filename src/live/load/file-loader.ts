// Loads the files of a folder into this process, one at a time. A file that fails is not loaded again until it changes.
// The caller builds a group, or the rules of the service, from the module and the types in the text that runs.
import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import { fingerprint } from '../../base/fingerprint.ts';
import type { Fields } from '../../base/values.ts';
import type { Reader } from '../../contract/reader.ts';
import type { GroupLoad } from './group-load.ts';
import { describeLoadError } from './load-error.ts';
import { createModuleLoader, type ModuleLoaderOptions } from './module-loader.ts';
import { listControllers } from './naming.ts';
import { HungLoad, isTransient, withinLoadTimeout } from './passing-failures.ts';
import { SourceChanged } from './source-texts.ts';
import { prepareTypeScript } from './typescript.ts';

/** Builds the value of a file, such as a group, from its module. When it throws an error, the file does not load. */
type Build<T> = (module: Fields, reader: Reader, path: string) => T | Promise<T>;

export interface FileLoaderOptions extends Pick<ModuleLoaderOptions, 'onFile'> {
  readonly dir: string;
  /** LOAD_TIMEOUT: maximum milliseconds of CPU for the import of one file. */
  readonly loadTimeout: number;
  /** The file with the types that TypeScript has written out; default: the one in the folder. */
  readonly madeTypes?: string | undefined;
}

/** Maximum number of loads of a file whose source changes during its import. */
const MAX_LOADS = 3;

export function createFileLoader({ dir, loadTimeout, onFile, madeTypes }: FileLoaderOptions) {
  const modules = createModuleLoader({ onFile });
  /** By the name of a file. The fingerprint is from before the load: a file that has changed since is loaded again. */
  const failures = new Map<string, { readonly reason: string; readonly earlierFingerprint: string }>();
  /** By the real path of a file: how often an import of it was started. */
  const importCounts = new Map<string, number>();
  let reader: Promise<Reader> | undefined;
  let patience = 1;
  let isReleased = false;
  /** Imports the parser of types, which a process without controllers does not need. */
  const getReader = () =>
    (reader ??= import('../../contract/reader.ts').then(({ createReader }) =>
      createReader(modules, realpathSync.native(dir), madeTypes),
    ));

  async function importFile<T>(path: string, build: Build<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const importCount = importCounts.get(path) ?? 0;
      importCounts.set(path, importCount + 1);
      const module = await withinLoadTimeout(modules.load(path, importCount), loadTimeout * patience);
      const groupReader = await getReader();
      try {
        return await buildWithSchemas(() => build(module, groupReader, path));
      } catch (error) {
        if (!(error instanceof SourceChanged) || attempt === MAX_LOADS) throw error;
      }
    }
  }

  /** Imports the files whose schemas are checks. A file that is only imported for its types has not been loaded yet. */
  async function buildWithSchemas<T>(build: () => T | Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await build();
      } catch (error) {
        const { neededModule } = Object(error) as { neededModule?: unknown };
        if (typeof neededModule !== 'string') throw error;
        await modules.loadSchemas(neededModule, loadTimeout);
      }
    }
  }

  return {
    /**
     * Imports a file and passes its module to `build`, again when the file changes meanwhile. Never rejects.
     *
     * @returns the outcome, and in `loaded` the value that `build` returned; without `loaded`, the file did not load
     */
    async load<T>(group: string, file: string, build: Build<T>): Promise<{ load: GroupLoad; loaded?: T }> {
      const path = join(dir, file);
      const earlierFingerprint = fingerprint(path);
      let realPath = path;
      try {
        realPath = modules.realPathOf(path);
        const loaded = await importFile(realPath, build);
        failures.delete(file);
        return { load: { group, file, ok: true }, loaded };
      } catch (error) {
        const imported = modules.closure().map(({ path }) => path);
        const { reason, dueTo, ...codeAndPlace } = await describeLoadError(error, realPath, imported);
        for (const place of dueTo) modules.watch(place);
        // The cause of a transient error can be gone soon, so such a failure is not remembered.
        if (!isTransient(error)) failures.set(file, { reason, earlierFingerprint });
        const hung = error instanceof HungLoad;
        return { load: { group, file, ok: false, error: reason, ...codeAndPlace, ...(hung ? { hung } : {}) } };
      } finally {
        if (isReleased) (await reader)?.release();
      }
    },
    /** Returns why a file does not load, or undefined when it loads, is not loaded yet, or has changed since. */
    brokenReason(file: string): string | undefined {
      const failure = failures.get(file);
      return failure?.earlierFingerprint === fingerprint(join(dir, file)) ? failure.reason : undefined;
    },
    /** Records why a file must not be loaded. `brokenReason` returns the reason until the file changes. */
    skip(file: string, reason: string): void {
      failures.set(file, { reason, earlierFingerprint: fingerprint(join(dir, file)) });
    },
    /** Multiplies LOAD_TIMEOUT from now on. */
    setPatience(factor: number): void {
      patience = factor;
    },
    /** Frees what the load of the folder has read, and from now on what each load has read. */
    async release(): Promise<void> {
      isReleased = true;
      (await reader)?.release();
    },
    closure: modules.closure,
  };
}

/** Loads what every load needs, while the worker waits for its order. A load reports the errors of this function. */
export async function prepareLoad(dir: string): Promise<void> {
  const files = [...listControllers(dir).values()];
  if (files.length > 0) await import('../../contract/reader.ts');
  if (files.some((file) => file.endsWith('.ts'))) await prepareTypeScript();
}
