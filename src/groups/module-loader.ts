// Imports a controller file into this process and remembers what came with it: every file that was read on the way and
// every file that was looked for in vain, so that whoever watches the folder knows what to watch. A process imports a
// file once; new code for old files needs a new process (docs/LIVE.md says why).
import module from 'node:module';
import { dirname, extname, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { fingerprint } from '../base/fingerprint.ts';
import { checkSource } from '../base/source-file.ts';
import type { ImportedFiles } from '../contract/source/files.ts';
import { isOwnFile } from '../own-files.ts';
import { createSourceTexts, type SourceTexts } from './source-texts.ts';

/** One file of an import closure, as it stood when it was read; fingerprint `absent`: looked for and not found. */
export interface LoadedFile {
  readonly path: string;
  readonly fingerprint: string;
}

export interface ModuleLoader extends ImportedFiles {
  /** @param path an absolute real path: an import through a link that was swapped would return the old file */
  load(path: string, attempt: number): Promise<Readonly<Record<string, unknown>>>;
  closure(): LoadedFile[];
}

export interface ModuleLoaderOptions {
  /** A file has joined the closure, also long after the load: an operation may import when it is called. */
  readonly onFile?: ((file: LoadedFile) => void) | undefined;
}

/** How this version of Node tells what a module imports. */
interface ImportWatch {
  before(path: string, attempt: number): void;
  after(): void;
}

export function createModuleLoader({ onFile }: ModuleLoaderOptions = {}): ModuleLoader {
  const files = new Map<string, string>();
  const remember = (path: string) => {
    // The server's own code is not the folder's: rebuilding it must not roll the workers.
    if (isOwnFile(path)) return;
    const print = fingerprint(path);
    if (files.get(path) === print) return;
    files.set(path, print);
    onFile?.({ path, fingerprint: print });
  };
  const texts = createSourceTexts();
  const resolved = new Map<string, string>();
  const hasHooks = typeof module.registerHooks === 'function';
  const imports: ImportWatch = hasHooks
    ? watchWithHooks({ remember, texts, resolved })
    : followImports(remember, texts);
  let typescript: Promise<void> | undefined;
  return {
    async load(path, attempt) {
      if (extname(path) === '.ts') {
        typescript ??= enableTypeScript(remember);
        await typescript;
      }
      imports.before(path, attempt);
      try {
        // A URL that failed once fails for ever in its process, so every further attempt is a URL of its own.
        return await import(pathToFileURL(path).href + (attempt === 0 ? '' : `?attempt=${attempt}`));
      } finally {
        imports.after();
      }
    },
    remember,
    textOf: texts.textOf,
    imported: texts.imported,
    resolve: (from, specifier) => resolved.get(`${from}\n${specifier}`) ?? resolvePackage(from, specifier),
    closure: () => Array.from(files, ([path, print]) => ({ path, fingerprint: print })),
  };
}

interface WatchParts {
  readonly remember: (path: string) => void;
  readonly texts: SourceTexts;
  /** File and specifier, a line each, to the file that Node has found. */
  readonly resolved: Map<string, string>;
}

/** Node 22.15 and later tell of each module, and hand over the text that runs. */
function watchWithHooks({ remember, texts, resolved }: WatchParts): ImportWatch {
  module.registerHooks({
    resolve(specifier, context, nextResolve) {
      const { parentURL } = context;
      const from = parentURL?.startsWith('file:') === true ? fileURLToPath(parentURL) : undefined;
      try {
        const next = nextResolve(specifier, context);
        const isFile =
          from !== undefined &&
          !specifier.startsWith('.') &&
          next.url.startsWith('file:') &&
          !next.url.includes('/node_modules/');
        if (isFile) resolved.set(`${from}\n${specifier}`, fileURLToPath(next.url));
        return next;
      } catch (error) {
        if (/^\.{1,2}\//.test(specifier) && parentURL?.startsWith('file:'))
          remember(fileURLToPath(new URL(specifier, parentURL)));
        throw error;
      }
    },
    load(url, context, nextLoad) {
      if (!url.startsWith('file:')) return nextLoad(url, context);
      const path = fileURLToPath(url);
      remember(path);
      checkSource(path);
      return texts.during(path, () => nextLoad(url, context));
    },
  });
  return { before: remember, after() {} };
}

/**
 * Older Node does not tell: imports are read out of the source, and what `require` has loaded stands in its cache. An
 * import that an operation makes when it is called is not seen, so it may still wait for a pipe.
 */
function followImports(remember: (path: string) => void, texts: SourceTexts): ImportWatch {
  const { cache } = module.createRequire(import.meta.url);
  let ours: ReadonlySet<string> | undefined;
  return {
    before(path, attempt) {
      ours ??= new Set(Object.keys(cache));
      const seen = new Set<string>();
      const queue = [path];
      for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
        if (seen.has(file)) continue;
        seen.add(file);
        remember(file);
        checkSource(file);
        queue.push(...importedBy(file, texts.before(file, file === path && attempt > 0)));
      }
    },
    after() {
      for (const path of Object.keys(cache)) if (!ours?.has(path)) remember(path);
    },
  };
}

/** White space and comments. */
const GAP = '(?:\\s|/\\*[^]*?\\*/|//[^\\n]*\\n)*';
/**
 * `import … from 'x'`, `import 'x'`, `export … from 'x'`, `import('x')`, `require('x')`, where x is a path, a file URL
 * or a `#subpath`.
 */
const IMPORT = new RegExp(
  `\\b(?:from|import|require)\\b${GAP}\\(?${GAP}(['"])((?:\\.{1,2}/|/|file:|#)[^'"\\n]+)\\1`,
  'g',
);

/** The files that a source names. Packages are not followed. */
function importedBy(file: string, source: string): string[] {
  return Array.from(source.matchAll(IMPORT), ([, , specifier = '']) => resolveImport(file, specifier)).filter(
    (path) => path !== undefined,
  );
}

function resolvePackage(from: string, specifier: string): string | undefined {
  try {
    return specifier.startsWith('file:') ? fileURLToPath(specifier) : module.createRequire(from).resolve(specifier);
  } catch {
    return undefined;
  }
}

function resolveImport(from: string, specifier: string): string | undefined {
  try {
    if (specifier.startsWith('#')) return module.createRequire(from).resolve(specifier);
    const path = specifier.startsWith('file:')
      ? fileURLToPath(specifier)
      : resolve(dirname(from), specifier.replace(/[?#].*$/, ''));
    // The source may say `./x.js` and mean `./x.ts`, as `tsx` allows.
    const candidates = [path, path.replace(/\.js$/, '.ts'), `${path}.ts`, `${path}.js`];
    return candidates.find((candidate) => fingerprint(candidate) !== 'absent') ?? path;
  } catch {
    // No path: the import itself will say why.
    return undefined;
  }
}

/** What loads `.ts` in this process: Node itself, the development dependency `tsx`, or nothing. */
export function typescriptSupport(): 'node' | 'tsx' | 'none' {
  if (process.features.typescript) return 'node';
  try {
    module.createRequire(import.meta.url).resolve('tsx/esm/api');
    return 'tsx';
  } catch {
    return 'none';
  }
}

/** Told of each file that `tsx` loads in this process. */
const listeners = new Set<(path: string) => void>();
let registered: Promise<void> | undefined;

/** Ahead of need: on a Node that needs `tsx`, its registration is most of what loading a folder costs. */
export async function prepareTypeScript(): Promise<void> {
  if (typescriptSupport() !== 'tsx') return;
  registered ??= registerTsx();
  await registered;
}

/**
 * Node 22.18 and later strip types by themselves; on older ones `tsx` does it, loaded only when a file needs it.
 *
 * @throws Error one line that says what to do, when this Node can load no TypeScript
 */
async function enableTypeScript(remember: (path: string) => void): Promise<void> {
  if (typescriptSupport() === 'none') {
    throw new Error(
      `Node ${process.versions.node} cannot load TypeScript: run Node 22.18 or later, or install tsx beside gatefold (npm install tsx), or write the controller as .js`,
    );
  }
  listeners.add(remember);
  await prepareTypeScript();
}

async function registerTsx(): Promise<void> {
  // Started with it (`node --import tsx`): twice would transform what is loaded from now on twice. Its imports are then
  // read out of the source alone.
  if (process.execArgv.some((word) => /\btsx\b/.test(word))) return;
  const [{ register }, commonjs] = await Promise.all([import('tsx/esm/api'), import('tsx/cjs/api')]);
  // Outside of a package of ES modules a `.ts` file counts as CommonJS, and the one registration does not load it
  // without the other.
  commonjs.register();
  register({
    onImport(url) {
      if (!url.startsWith('file:')) return;
      const path = fileURLToPath(url.replace(/\?.*$/, ''));
      for (const tell of listeners) tell(path);
    },
  });
}
