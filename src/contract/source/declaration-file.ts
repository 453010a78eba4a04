// Finds the file with the types of a package of the workspace. It is linked into `node_modules`, so its files are own
// files. Node runs its built JavaScript, and TypeScript reads the declarations that the `types` condition names.
import { readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { statOf } from '../../base/fingerprint.ts';
import { foldersAbove } from '../../base/manifest.ts';
import { readSourceOrEmpty } from '../../base/source-file.ts';
import { type Fields, isObject, parseObject } from '../../base/values.ts';

const CONDITIONS: ReadonlySet<string> = new Set(['types', 'import', 'node', 'module-sync', 'default']);

/** @param runningFile the file that Node runs. @param watch called with each package.json that decides */
export function findDeclarationFile(
  importer: string,
  specifier: string,
  runningFile: string | undefined,
  watch: (path: string) => void,
): string | undefined {
  const declared = declaredFile(importer, specifier, watch);
  if (declared !== undefined) return declared;
  const besides = runningFile?.replace(/\.([mc]?)js$/, '.d.$1ts');
  return besides !== runningFile && isFile(besides) ? besides : undefined;
}

function declaredFile(importer: string, specifier: string, watch: (path: string) => void): string | undefined {
  const name = packageNameOf(specifier);
  const isImport = specifier.startsWith('#');
  const subpath = isImport ? specifier : `.${specifier.slice(name.length)}`;
  for (const folder of foldersAbove(importer)) {
    const own = readManifest(folder, watch);
    if (isImport && own === undefined) continue;
    const isOwn = isImport || own?.name === name;
    const home = isOwn ? folder : join(folder, 'node_modules', name);
    const manifest = isOwn ? own : readManifest(home, watch);
    if (manifest === undefined) continue;
    const table = isImport ? manifest.imports : manifest.exports;
    const fallback = subpath === '.' ? (manifest.types ?? manifest.typings) : undefined;
    const target = table === undefined ? fallback : targetOf(table, subpath);
    const path = typeof target === 'string' ? join(home, target) : undefined;
    return isFile(path) && /\.[mc]?ts$/.test(path) ? realpathSync.native(path) : undefined;
  }
  return undefined;
}

export const packageNameOf = (specifier: string): string => /^(?:@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? '';

/** Several patterns can fit. As for Node, the one with the longest start counts, and then the longest. */
function targetOf(table: unknown, subpath: string): string | undefined {
  // A text, a list, and `{ "types": …, "default": … }` are the target of `.`.
  if (!isObject(table) || !Object.keys(table).some((key) => /^[.#]/.test(key)))
    return subpath === '.' ? firstTarget(table) : undefined;
  if (Object.hasOwn(table, subpath)) return firstTarget(table[subpath]);
  const fitting = Object.keys(table).flatMap((key) => {
    const [start = '', end = '', ...more] = key.split('*');
    const part = subpath.slice(start.length, subpath.length - end.length);
    return start !== key && more.length === 0 && part !== '' && subpath === start + part + end
      ? [{ key, start, part }]
      : [];
  });
  const [best] = fitting.sort((a, b) => b.start.length - a.start.length || b.key.length - a.key.length);
  return best && firstTarget(table[best.key])?.replaceAll('*', best.part);
}

/** Follows the conditions in their order, as Node does. */
function firstTarget(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) return value.map(firstTarget).find((target) => target !== undefined);
  if (!isObject(value)) return undefined;
  for (const [condition, inner] of Object.entries(value)) {
    const target = CONDITIONS.has(condition) ? firstTarget(inner) : undefined;
    if (target !== undefined) return target;
  }
  return undefined;
}

function readManifest(folder: string, watch: (path: string) => void): Fields | undefined {
  const path = join(folder, 'package.json');
  const manifest = parseObject(readSourceOrEmpty(path));
  if (manifest !== undefined) watch(path);
  return manifest;
}

/** Whether a path exists and is no folder. `ImportedFiles.textOf` refuses a pipe or a device later. */
export const isFile = (path: string | undefined): path is string =>
  path !== undefined && statOf(path)?.isDirectory() === false;

/** Whether the nearest tsconfig.json has a path for the specifier. Only the text of an error depends on it. */
export function isTsconfigPath(importer: string, specifier: string): boolean {
  for (const folder of foldersAbove(importer)) {
    const path = join(folder, 'tsconfig.json');
    if (!isFile(path)) continue;
    const paths = /"paths"\s*:\s*\{([^}]*)/.exec(readFileSync(path, 'utf8'))?.[1] ?? '';
    return Array.from(paths.matchAll(/"([^"]+)"\s*:/g)).some(([, pattern = '']) => {
      const [start = '', end] = pattern.split('*');
      return end === undefined ? pattern === specifier : specifier.startsWith(start) && specifier.endsWith(end);
    });
  }
  return false;
}
