// Imports the controllers of a large folder without the search and the read of Node's own loader. For each file, Node
// follows links in its path and looks for the package.json above it. The caller has followed the links already, and all
// files of one folder are below the same package.json. So Node searches only for the first file of a folder, and the
// other files get the format of that file. This halves the time of Node for each file.
import { dirname, extname } from 'node:path';
import { onHooksRegistered } from '../base/node-internals.ts';

export interface DirectImports {
  /**
   * Begins to import directly. Does nothing in a process that may have other hooks than ours, because a direct import
   * calls none of the hooks that were registered before. The first `module.register` of a controller ends direct
   * imports, because its hooks come after ours, too.
   */
  start(): void;
  stop(): void;
  /** Called before the import of a file. @param path absolute and real */
  add(url: string, path: string): void;
  /** Returns undefined for a file that Node has to search for. */
  find(url: string): DirectImport | undefined;
  /** Called with the result of Node's search for a file. */
  learn(url: string, found: { readonly url: string; readonly format?: string | null | undefined }): void;
  delete(url: string): void;
}

export interface DirectImport {
  readonly path: string;
  /** The format of Node's loader. */
  readonly format: string;
}

/**
 * The formats whose text Node takes from a hook. Node reads CommonJS by itself. When no package.json above the file has
 * a `type`, Node finds no format before it has read the file.
 */
const FORMATS: ReadonlySet<unknown> = new Set(['module', 'module-typescript']);

export function createDirectImports(): DirectImports {
  /** Folder and extension → format. Node itself reads a package.json once in the life of a process. */
  const formats = new Map<string, string>();
  /** URL → path, for the imports that are under way. */
  const paths = new Map<string, string>();
  let stopListening: (() => void) | undefined;
  function stop(): void {
    stopListening?.();
    stopListening = undefined;
    paths.clear();
  }
  const formatKeyOf = (path: string) => `${dirname(path)}\n${extname(path)}`;
  return {
    start() {
      if (!mayHaveHooks()) stopListening ??= onHooksRegistered(stop);
    },
    stop,
    add(url, path) {
      if (stopListening !== undefined) paths.set(url, path);
    },
    find(url) {
      const path = paths.get(url);
      const format = path === undefined ? undefined : formats.get(formatKeyOf(path));
      return path === undefined || format === undefined ? undefined : { path, format };
    },
    learn(url, found) {
      const path = paths.get(url);
      if (path !== undefined && found.url === url && FORMATS.has(found.format))
        formats.set(formatKeyOf(path), found.format as string);
    },
    delete: (url) => void paths.delete(url),
  };
}

/** Says whether an option of Node can have registered hooks before this process began to run Gatefold. */
function mayHaveHooks(): boolean {
  const options = [...process.execArgv, ...(process.env.NODE_OPTIONS ?? '').split(' ')];
  return options.some((option) => /^-r|import|require|loader|config/.test(option));
}
