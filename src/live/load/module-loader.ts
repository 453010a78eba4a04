// Imports a controller file into this process and records its import closure: every file that Node has read for the
// import, and every file that Node has looked for and not found. The supervisor process watches these files. A process
// does not import a file again that it has loaded. For a change, the supervisor starts a new process (docs/LIVE.md).
import module from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { attempt } from '../../base/failure.ts';
import { fingerprint } from '../../base/fingerprint.ts';
import { checkSource } from '../../base/source-file.ts';
import type { ModuleExports } from '../../contract/part-schemas.ts';
import { isOwnFile } from '../../own-files.ts';
import { recordBySource } from './import-scan.ts';
import { ownUrl } from './own-package.ts';
import { withinLoadTimeout } from './passing-failures.ts';
import { createResolutions, type Resolutions } from './resolutions.ts';
import { createSourceTexts, isAuthorsSource, type SourceTexts } from './source-texts.ts';
import { enableTypeScript } from './typescript.ts';

/** One file of an import closure, with its fingerprint from before Node read it, or `absent`. */
export interface LoadedFile {
  readonly path: string;
  readonly fingerprint: string;
  /** Whether the path is a symbolic link that has led to a file of the closure. `fingerprint` is then its real path. */
  readonly link?: true;
}

export interface ModuleLoaderOptions {
  /** Called for a file that the closure gets, or that has changed since: also long after the load, by an operation. */
  readonly onFile?: ((file: LoadedFile) => void) | undefined;
}

/** Records the files that an import reads: by hooks, or in versions of Node without hooks, by import-scan.ts. */
export interface ImportRecorder {
  beforeImport(path: string, earlierAttempts: number): void;
  afterImport(): void;
}

export function createModuleLoader({ onFile }: ModuleLoaderOptions = {}) {
  const fingerprints = new Map<string, string>();
  const record = (path: string): void => {
    const currentFingerprint = fingerprint(path);
    // A change of Gatefold's own code must not start new workers, so these files are not recorded.
    if (isOwnFile(path) || fingerprints.get(path) === currentFingerprint) return;
    fingerprints.set(path, currentFingerprint);
    onFile?.({ path, fingerprint: currentFingerprint });
  };
  const texts = createSourceTexts();
  const resolved = new Map<string, string>();
  const resolutions = createResolutions(record, onFile);
  const recorderParts = { record, texts, resolved, resolutions };
  const recorder = recordByHooks(recorderParts) ?? recordBySource(recorderParts);
  let typescriptReady: Promise<void> | undefined;
  const exportsByPath = new Map<string, ModuleExports>();

  /**
   * @param path an absolute path without symbolic links. If a link were imported, and then led to another file, Node
   *   would still return the old file
   * @param earlierAttempts how many imports of this path have failed in this process
   */
  async function load(path: string, earlierAttempts: number): Promise<Readonly<Record<string, unknown>>> {
    if (/\.m?ts$/.test(path)) {
      typescriptReady ??= enableTypeScript(record);
      await typescriptReady;
    }
    // Node caches the failure of a URL for the whole process, so every further import gets a URL of its own.
    const url = pathToFileURL(path).href + (earlierAttempts === 0 ? '' : `?attempt=${earlierAttempts}`);
    try {
      resolutions.recordManifests(path);
      recorder.beforeImport(path, earlierAttempts);
      const exports: Readonly<Record<string, unknown>> = await import(url);
      exportsByPath.set(path, { exports });
      return exports;
    } catch (error) {
      // Node can fail before it reads the file. A file that was read keeps its fingerprint from before the read.
      if (!fingerprints.has(path)) record(path);
      throw error;
    } finally {
      recorder.afterImport();
    }
  }

  return {
    exportsOf: (path: string) => exportsByPath.get(path),
    // An imported file keeps its fingerprint from before its text was read. A new fingerprint could be that of a later
    // change, which the supervisor would then not notice.
    watch(path: string): void {
      if (!texts.isImported(path)) record(path);
    },
    textOf: texts.textOf,
    imported: texts.imported,
    resolve: (from: string, specifier: string) =>
      resolved.get(`${from}\n${specifier}`) ?? resolvePackage(from, specifier),
    load,
    /** Imports a file whose schema is a check, and keeps its exports or the error of its import. It never rejects. */
    async loadSchemas(path: string, loadTimeout: number): Promise<void> {
      await withinLoadTimeout(load(path, 0), loadTimeout).catch((error: unknown) => exportsByPath.set(path, { error }));
    },
    realPathOf: resolutions.realPathOf,
    /** Returns every file that imports have read so far, or have looked for and not found. */
    closure: (): LoadedFile[] => [
      ...Array.from(fingerprints, ([path, recorded]) => ({ path, fingerprint: recorded })),
      ...resolutions.links(),
    ],
  };
}

export interface RecorderParts {
  readonly record: (path: string) => void;
  readonly texts: SourceTexts;
  /**
   * The file that Node has found for an import by another name than a path. The key is the importing file and the
   * specifier: `/x/AController.ts\n#helper`. Files in node_modules are left out.
   */
  readonly resolved: Map<string, string>;
  readonly resolutions: Resolutions;
}

/** For Node 22.15 and later, which call hooks for each module. @returns undefined on other Nodes, and in Jest */
function recordByHooks({ record, texts, resolved, resolutions }: RecorderParts): ImportRecorder | undefined {
  const hooks: module.RegisterHooksOptions = {
    resolve(specifier, context, nextResolve) {
      const { parentURL } = context;
      const from = parentURL?.startsWith('file:') === true ? fileURLToPath(parentURL) : undefined;
      try {
        const next = nextResolve(specifier, context);
        if (from === undefined || !next.url.startsWith('file:')) return next;
        const path = fileURLToPath(next.url);
        // Node loads an addon without the hook below.
        if (path.endsWith('.node')) record(path);
        const isOwnAlias = !specifier.startsWith('.') && !next.url.includes('/node_modules/');
        if (isOwnAlias) resolved.set(`${from}\n${specifier}`, path);
        resolutions.record(from, specifier, path);
        return next;
      } catch (error) {
        // The URL of the file that Node has not found, which not every error has.
        const { url: missing = /^\.{1,2}\//.test(specifier) ? new URL(specifier, parentURL).href : '' } = Object(error);
        if (String(missing).startsWith('file:')) record(fileURLToPath(missing));
        const url = ownUrl(specifier, error);
        if (url === undefined) {
          if (from !== undefined) resolutions.recordMissing(from, error);
          throw error;
        }
        return { url, shortCircuit: true };
      }
    },
    load(url, context, nextLoad) {
      if (!url.startsWith('file:')) return nextLoad(url, context);
      const path = fileURLToPath(url);
      record(path);
      // `keepTextOf` itself checks the files of authors.
      if (!isAuthorsSource(path)) checkSource(path);
      return texts.keepTextOf(path, () => nextLoad(url, context));
    },
  };
  try {
    module.registerHooks(hooks);
  } catch {
    // Jest has a loader of its own, and refuses hooks. Older releases of Node have no such function.
    return undefined;
  }
  return { beforeImport() {}, afterImport() {} };
}

function resolvePackage(from: string, specifier: string): string | undefined {
  const isUrl = specifier.startsWith('file:');
  return attempt(() => (isUrl ? fileURLToPath(specifier) : module.createRequire(from).resolve(specifier)), undefined);
}
