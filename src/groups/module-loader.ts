// Imports a controller file into this process and records its import closure: every file that Node has read for the
// import, and every file that Node has looked for and not found. The supervisor process watches these files. A process
// does not import a file again that it has loaded. For a change, the supervisor starts a new process (docs/LIVE.md).
import { statSync } from 'node:fs';
import module from 'node:module';
import { dirname, extname, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { fingerprint } from '../base/fingerprint.ts';
import { checkSource } from '../base/source-file.ts';
import type { ImportedFiles } from '../contract/source/files.ts';
import { isOwnFile } from '../own-files.ts';
import { createDirectImports, type DirectImports } from './direct-imports.ts';
import type { EarlyTexts } from './early-texts.ts';
import { ownUrl, provideOwnPackage } from './own-package.ts';
import { createSourceTexts, isSource, type SourceTexts } from './source-texts.ts';

/** One file of an import closure, with its fingerprint from before Node read it, or `absent`. */
export interface LoadedFile {
  readonly path: string;
  readonly fingerprint: string;
}

export interface ModuleLoader extends ImportedFiles {
  /**
   * @param path an absolute path without symbolic links. If a link were imported, and then led to another file, Node
   *   would still return the old file
   * @param earlierAttempts how many imports of this path have failed in this process
   */
  load(path: string, earlierAttempts: number): Promise<Readonly<Record<string, unknown>>>;
  closure(): LoadedFile[];
  /** Lets further imports skip Node's search for the file (direct-imports.ts). Does nothing before Node 22.15. */
  startDirectImports(): void;
  stopDirectImports(): void;
}

export interface ModuleLoaderOptions {
  /**
   * Called with each file that is added to the import closure, or that has changed since it was added. An operation can
   * import a file when it is called, so the call can come long after the load.
   */
  readonly onFile?: ((file: LoadedFile) => void) | undefined;
  /** Texts of controllers that were read before the load. */
  readonly earlyTexts?: Pick<EarlyTexts, 'find'> | undefined;
}

/** Records what an import reads, in the way that this version of Node allows. */
interface ImportRecorder {
  beforeImport(path: string, earlierAttempts: number): void;
  afterImport(): void;
}

export function createModuleLoader({ onFile, earlyTexts }: ModuleLoaderOptions = {}): ModuleLoader {
  /** The import closure: path → fingerprint. */
  const files = new Map<string, string>();
  const record = (path: string): string => {
    const currentFingerprint = fingerprint(path);
    // A change of Gatefold's own code must not start new workers, so these files are not recorded.
    if (isOwnFile(path) || files.get(path) === currentFingerprint) return currentFingerprint;
    files.set(path, currentFingerprint);
    onFile?.({ path, fingerprint: currentFingerprint });
    return currentFingerprint;
  };
  const texts = createSourceTexts(earlyTexts);
  const resolved = new Map<string, string>();
  const directImports = createDirectImports();
  const hasHooks = typeof module.registerHooks === 'function';
  const recorder: ImportRecorder = hasHooks
    ? recordByHooks({ record, texts, resolved, directImports })
    : recordBySource(record, texts);
  let typescriptReady: Promise<void> | undefined;
  return {
    async load(path, earlierAttempts) {
      if (extname(path) === '.ts') {
        typescriptReady ??= enableTypeScript(record);
        await typescriptReady;
      }
      // Node caches the failure of a URL for the whole process, so every further import gets a URL of its own.
      const url = pathToFileURL(path).href + (earlierAttempts === 0 ? '' : `?attempt=${earlierAttempts}`);
      try {
        recorder.beforeImport(path, earlierAttempts);
        directImports.add(url, path);
        return await import(url);
      } catch (error) {
        // Node can fail before it reads the file. A file that was read keeps its fingerprint from before the read.
        if (!files.has(path)) record(path);
        throw error;
      } finally {
        directImports.delete(url);
        recorder.afterImport();
      }
    },
    startDirectImports() {
      if (hasHooks) directImports.start();
    },
    stopDirectImports: directImports.stop,
    // An imported file keeps its fingerprint from before its text was read. A new fingerprint could be that of a later
    // change, which the supervisor would then not notice.
    watch(path) {
      if (!texts.isImported(path)) record(path);
    },
    textOf: texts.textOf,
    imported: texts.imported,
    resolve: (from, specifier) => resolved.get(`${from}\n${specifier}`) ?? resolvePackage(from, specifier),
    closure: () => Array.from(files, ([path, print]) => ({ path, fingerprint: print })),
  };
}

interface RecorderParts {
  /** Adds a file to the import closure, and returns its fingerprint. */
  readonly record: (path: string) => string;
  readonly texts: SourceTexts;
  /**
   * The file that Node has found for an import by another name than a path. The key is the importing file and the
   * specifier: `/x/AController.ts\n#helper`. Files in node_modules are left out.
   */
  readonly resolved: Map<string, string>;
  readonly directImports: DirectImports;
}

/** Records imports by hooks, which Node 22.15 and later call for each module. */
function recordByHooks({ record, texts, resolved, directImports }: RecorderParts): ImportRecorder {
  module.registerHooks({
    resolve(specifier, context, nextResolve) {
      const direct = directImports.find(specifier);
      if (direct !== undefined) return { url: specifier, format: direct.format, shortCircuit: true };
      const { parentURL } = context;
      const from = parentURL?.startsWith('file:') === true ? fileURLToPath(parentURL) : undefined;
      try {
        const next = nextResolve(specifier, context);
        directImports.learn(specifier, next);
        const isOwnAlias =
          from !== undefined &&
          !specifier.startsWith('.') &&
          next.url.startsWith('file:') &&
          !next.url.includes('/node_modules/');
        if (isOwnAlias) resolved.set(`${from}\n${specifier}`, fileURLToPath(next.url));
        return next;
      } catch (error) {
        const missing = missingFile(error) ?? (/^\.{1,2}\//.test(specifier) ? new URL(specifier, parentURL).href : '');
        if (missing.startsWith('file:')) record(fileURLToPath(missing));
        const url = ownUrl(specifier, error);
        if (url === undefined) throw error;
        return { url, shortCircuit: true };
      }
    },
    load(url, context, nextLoad) {
      if (!url.startsWith('file:')) return nextLoad(url, context);
      const direct = directImports.find(url);
      const path = direct?.path ?? fileURLToPath(url);
      const currentFingerprint = record(path);
      // A hook that was registered later can have changed the format. That hook then has to load the file, too.
      if (direct !== undefined && direct.format === context.format)
        return { format: direct.format, source: texts.readAndKeep(path, currentFingerprint), shortCircuit: true };
      // `keepTextOf` checks source files itself.
      if (!isSource(path)) checkSource(path);
      return texts.keepTextOf(path, () => nextLoad(url, context));
    },
  });
  return { beforeImport() {}, afterImport() {} };
}

/** Returns the URL of the file that Node has not found, where the error of the import has it. */
function missingFile(error: unknown): string | undefined {
  const { url } = Object(error) as { url?: unknown };
  return typeof url === 'string' ? url : undefined;
}

/**
 * Records imports in versions of Node before 22.15, which have no hooks. Imports are found in the source texts, and
 * files that `require` has loaded are found in its cache. An import that an operation makes when it is called is not
 * recorded.
 */
function recordBySource(record: (path: string) => void, texts: SourceTexts): ImportRecorder {
  const { cache } = module.createRequire(import.meta.url);
  /** The files that `require` had loaded before the first import, and those that are recorded since. */
  let knownFiles: Set<string> | undefined;
  return {
    beforeImport(path, earlierAttempts) {
      knownFiles ??= new Set(Object.keys(cache));
      const seen = new Set<string>();
      const pending = [path];
      for (let file = pending.pop(); file !== undefined; file = pending.pop()) {
        if (seen.has(file)) continue;
        seen.add(file);
        record(file);
        // A folder is not read. Node refuses its import, and load-advice.ts adds to the error what to write instead.
        if (file !== path && statSync(file, { throwIfNoEntry: false })?.isDirectory()) continue;
        checkSource(file);
        const source = texts.readBeforeImport(file, file === path && earlierAttempts > 0);
        provideOwnPackage(file, source);
        pending.push(...importsOf(file, source));
      }
    },
    afterImport() {
      for (const path of Object.keys(cache)) {
        if (knownFiles?.has(path)) continue;
        knownFiles?.add(path);
        record(path);
      }
    },
  };
}

/** The part of a regular expression that matches white space and comments. */
const GAP = '(?:\\s|/\\*[^]*?\\*/|//[^\\n]*\\n)*';
/**
 * Finds `import … from 'x'`, `import 'x'`, `export … from 'x'`, `import('x')` and `require('x')`, where x is a path, a
 * file URL or a `#subpath`.
 */
const IMPORT = new RegExp(
  `\\b(?:from|import|require)\\b${GAP}\\(?${GAP}(['"])((?:\\.{1,2}/|/|file:|#)[^'"\\n]+)\\1`,
  'g',
);

/** Returns the files that a source imports. Packages are not followed. */
function importsOf(file: string, source: string): string[] {
  return Array.from(source.matchAll(IMPORT)).flatMap(([, , specifier = '']) => resolveImport(file, specifier));
}

function resolvePackage(from: string, specifier: string): string | undefined {
  try {
    return specifier.startsWith('file:') ? fileURLToPath(specifier) : module.createRequire(from).resolve(specifier);
  } catch {
    return undefined;
  }
}

/** Returns every file that an import can load, or the path of the specifier when there is no such file. */
function resolveImport(from: string, specifier: string): string[] {
  try {
    if (specifier.startsWith('#')) return [module.createRequire(from).resolve(specifier)];
    const path = specifier.startsWith('file:')
      ? fileURLToPath(specifier)
      : resolve(dirname(from), specifier.replace(/[?#].*$/, ''));
    // For `./x.js`, Node loads `x.js`, but `tsx` loads `x.ts` if there is such a file.
    const candidates = new Set([path, path.replace(/\.js$/, '.ts'), `${path}.ts`, `${path}.js`]);
    const files = [...candidates].filter((candidate) => fingerprint(candidate) !== 'absent');
    return files.length > 0 ? files : [path];
  } catch {
    // The specifier is not valid. The import itself will fail with the reason.
    return [];
  }
}

/** Returns the loader of `.ts` files in this process: Node itself, the development dependency `tsx`, or none. */
export function typescriptSupport(): 'node' | 'tsx' | 'none' {
  if (process.features.typescript) return 'node';
  try {
    module.createRequire(import.meta.url).resolve('tsx/esm/api');
    return 'tsx';
  } catch {
    return 'none';
  }
}

/** The functions to call for each file that `tsx` loads in this process. */
const tsxListeners = new Set<(path: string) => void>();
let tsxRegistration: Promise<void> | undefined;

/**
 * Loads the compiler of TypeScript, `tsx` or Node's own, before a file needs the compiler. Otherwise, the first load of
 * a small folder would mostly wait for the compiler.
 */
export async function prepareTypeScript(): Promise<void> {
  const support = typescriptSupport();
  if (support === 'node') await loadNodeCompiler();
  if (support === 'tsx') await useTsx();
}

/** The URL of a module without code. Node cannot load this media type, so no other module has such a URL. */
const EMPTY_MODULE = 'data:text/gatefold-empty,';

/** Makes Node load its compiler of TypeScript now, and not with the first `.ts` file. */
async function loadNodeCompiler(): Promise<void> {
  const hooks = module.registerHooks?.({
    load: (url, context, nextLoad) =>
      url === EMPTY_MODULE ? { format: 'module-typescript', source: '', shortCircuit: true } : nextLoad(url, context),
  });
  if (hooks === undefined) return;
  try {
    await import(EMPTY_MODULE);
  } finally {
    hooks.deregister();
  }
}

/**
 * Makes this process load `.ts` files. Node 22.18 and later strip types by themselves. Older versions need `tsx`.
 *
 * @throws Error with a message of one line that says what to do, when this Node cannot load TypeScript
 */
async function enableTypeScript(record: (path: string) => void): Promise<void> {
  if (typescriptSupport() === 'none') {
    throw new Error(
      `Node ${process.versions.node} cannot load TypeScript: run Node 22.18 or later, or install tsx beside gatefold (npm install tsx), or write the controller as .js`,
    );
  }
  if (typescriptSupport() === 'node') return;
  tsxListeners.add(record);
  await useTsx();
}

function useTsx(): Promise<void> {
  tsxRegistration ??= registerTsx();
  return tsxRegistration;
}

async function registerTsx(): Promise<void> {
  // `node --import tsx` has already registered `tsx`. A second registration would transform each file twice. Then
  // `onImport` below is never called, and only the ImportRecorder finds imports.
  const options = `${process.execArgv.join(' ')} ${process.env.NODE_OPTIONS ?? ''}`;
  if (/(?:--import|--loader|--require|-r)[= ]\S*\btsx\b/.test(options)) return;
  const [{ register }, commonjs] = await Promise.all([import('tsx/esm/api'), import('tsx/cjs/api')]);
  // Without `"type": "module"` in package.json, a `.ts` file counts as CommonJS, and `tsx` needs both registrations.
  commonjs.register();
  register({
    onImport(url) {
      if (!url.startsWith('file:')) return;
      const path = fileURLToPath(url.replace(/\?.*$/, ''));
      for (const listener of tsxListeners) listener(path);
    },
  });
}
