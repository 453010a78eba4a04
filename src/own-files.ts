// Finds the files of Gatefold itself, in src or in dist, which `npm run build` makes from src. The build puts all its
// output at the top of dist. This file must therefore stay at the top of src, so that `../package.json` and the other
// paths here are right from both folders.
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, extname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const OWN_FOLDER = dirname(fileURLToPath(import.meta.url)) + sep;
/** The folder of the programs. They are in src/bin, and the build puts them at the top of dist. */
const PROGRAMS = basename(OWN_FOLDER) === 'src' ? `${OWN_FOLDER}bin${sep}` : OWN_FOLDER;

/** Returns whether a file belongs to Gatefold, and not to a controller or a package. @param path absolute */
export function isOwnFile(path: string): boolean {
  return path.startsWith(OWN_FOLDER);
}

/** Returns the path of an entry, which can be imported or run in a new process. */
export function entryPath(name: 'server' | 'worker' | 'cli' | 'store-host'): string {
  return `${PROGRAMS}${name}${extname(import.meta.url)}`;
}

/** Returns the folder of the package: the checkout, or the installed package. */
export function packagePath(): string {
  return dirname(OWN_FOLDER);
}

/** Returns the file that an import such as `gatefold/client` reads, or undefined when the package has no such entry. */
export function resolveOwnImport(specifier: string): string | undefined {
  try {
    return createRequire(import.meta.url).resolve(specifier);
  } catch {
    return undefined;
  }
}

/** Reads a file of the package. @param path relative to the package: `deploy/gatefold.service` */
export function readOwnFile(path: string): string {
  return readFileSync(join(packagePath(), path), 'utf8');
}

export function version(): string {
  return (JSON.parse(readOwnFile('package.json')) as { version: string }).version;
}

/** Reads the page of /api/docs, which only the build makes. So a service that runs from src also reads it from dist. */
export function readDocsPage(): string {
  return readOwnFile('dist/docs.html');
}

/** Returns the files that run, relative to the package. package.json comes last, so a copy with it is complete. */
export function ownFiles(): { readonly root: string; readonly paths: readonly string[] } {
  const root = packagePath();
  const built = readdirSync(join(root, 'dist'), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.(?:js|html)$/.test(path))
    .map((path) => `dist/${path.split(sep).join('/')}`)
    .sort();
  return { root, paths: [...built, 'deploy/gatefold.service', 'deploy/gatefold.socket', 'package.json'] };
}

/** Returns the version and a hash of all files, `0.1.0+5f2a9c0d`, in which two builds of one version differ. */
export function buildName(): string {
  // An import of node:crypto would load it in each process.
  const { createHash } = createRequire(import.meta.url)('node:crypto') as typeof import('node:crypto');
  const hash = createHash('sha256');
  const { root, paths } = ownFiles();
  for (const path of paths) hash.update(`${path}\0`).update(readFileSync(join(root, path)));
  return `${version()}+${hash.digest('hex').slice(0, 8)}`;
}
