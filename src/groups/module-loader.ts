// Imports a controller file into this process and remembers what came with it: every file that was read on the way and
// every file that was looked for in vain, so that whoever watches the folder knows what to watch. A process imports a
// file once; new code for old files needs a new process (docs/LIVE.md says why).
import { readFileSync } from 'node:fs';
import module from 'node:module';
import { dirname, extname, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { fingerprint } from '../base/fingerprint.ts';
import { isOwnFile } from '../own-files.ts';

/** One file of an import closure, as it stood when it was read; fingerprint `absent`: looked for and not found. */
export interface LoadedFile {
  readonly path: string;
  readonly fingerprint: string;
}

export interface ModuleLoader {
  /** @param path an absolute real path: an import through a link that was swapped would return the old file */
  load(path: string, attempt: number): Promise<Readonly<Record<string, unknown>>>;
  closure(): LoadedFile[];
}

/** `import … from './x'`, `import './x'`, `export … from './x'`, `import('./x')`, `require('./x')`. */
const RELATIVE_IMPORT = /(?:\bfrom\s*|\bimport\s*\(?\s*|\brequire\s*\(\s*)(['"])(\.{1,2}\/[^'"\n]+)\1/g;

export function createModuleLoader(): ModuleLoader {
  const files = new Map<string, string>();
  const remember = (path: string) => {
    // The server's own code is not the folder's: rebuilding it must not roll the workers.
    if (!isOwnFile(path)) files.set(path, fingerprint(path));
  };
  const prepare = typeof module.registerHooks === 'function' ? watchWithHooks(remember) : followImports(remember);
  let typescript: Promise<void> | undefined;
  return {
    async load(path, attempt) {
      if (extname(path) === '.ts') {
        typescript ??= enableTypeScript(remember);
        await typescript;
      }
      prepare(path);
      // A URL that failed once fails for ever in its process, so every further attempt is a URL of its own.
      return import(pathToFileURL(path).href + (attempt === 0 ? '' : `?attempt=${attempt}`));
    },
    closure: () => Array.from(files, ([path, print]) => ({ path, fingerprint: print })),
  };
}

/** Node 22.15 and later tell of each module before they read it. */
function watchWithHooks(remember: (path: string) => void): (path: string) => void {
  module.registerHooks({
    resolve(specifier, context, nextResolve) {
      try {
        return nextResolve(specifier, context);
      } catch (error) {
        const { parentURL } = context;
        if (/^\.{1,2}\//.test(specifier) && parentURL?.startsWith('file:')) remember(fileURLToPath(new URL(specifier, parentURL)));
        throw error;
      }
    },
    load(url, context, nextLoad) {
      if (url.startsWith('file:')) remember(fileURLToPath(url));
      return nextLoad(url, context);
    },
  });
  return remember;
}

/** Older Node does not tell: the relative imports are read out of the source instead. Packages are not followed. */
function followImports(remember: (path: string) => void): (path: string) => void {
  return (path) => {
    const seen = new Set<string>();
    const queue = [path];
    for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
      if (seen.has(file)) continue;
      seen.add(file);
      remember(file);
      let source: string;
      try {
        source = readFileSync(file, 'utf8');
      } catch {
        continue;
      }
      for (const match of source.matchAll(RELATIVE_IMPORT)) queue.push(resolveRelative(dirname(file), match[2] as string));
    }
  };
}

/** `./x`, where the source may say `./x.js` and mean `./x.ts`, as `tsx` allows. */
function resolveRelative(folder: string, specifier: string): string {
  const plain = resolve(folder, specifier);
  const candidates = [plain, plain.replace(/\.js$/, '.ts'), `${plain}.ts`, `${plain}.js`];
  return candidates.find((candidate) => fingerprint(candidate) !== 'absent') ?? plain;
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

/**
 * Node 22.18 and later strip types by themselves; on older ones `tsx` does it, loaded only now that a file needs it.
 *
 * @throws Error one line that says what to do, when this Node can load no TypeScript
 */
async function enableTypeScript(remember: (path: string) => void): Promise<void> {
  const support = typescriptSupport();
  if (support === 'node') return;
  if (support === 'none') {
    throw new Error(
      `Node ${process.versions.node} cannot load TypeScript: run Node 22.18 or later, or install tsx beside gatefold (npm install tsx), or write the controller as .js`,
    );
  }
  const { register } = await import('tsx/esm/api');
  register({ onImport: (url) => url.startsWith('file:') && remember(fileURLToPath(url.replace(/\?.*$/, ''))) });
}
