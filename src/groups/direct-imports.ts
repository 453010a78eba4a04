// Speeds up the imports of a large folder's controllers. For each file, Node's loader follows links in the path and
// looks for the package.json above it. The caller has already followed the links and read the file, and all files of a
// folder have the same package.json. So Node searches only for the first file of a folder. The others get its format,
// and hooks return their path and text. This halves the time of Node for each file.
import { dirname, extname } from 'node:path';
import { onHooksRegistered } from '../base/node-internals.ts';

export interface DirectImports {
  /**
   * Begins to import directly. Our hooks answer without a call of the next hook, so hooks of others would be skipped.
   * So this does nothing in a process that may have hooks of others, and direct imports end with the first
   * `module.register` of a controller.
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
 * The formats of files that are imported directly. Other files are imported as usual: Node reads a CommonJS file by
 * itself, and it knows no format before the read when no package.json above the file has a `type`.
 */
const DIRECT_FORMATS: ReadonlySet<unknown> = new Set(['module', 'module-typescript']);

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
      if (path !== undefined && found.url === url && DIRECT_FORMATS.has(found.format))
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
