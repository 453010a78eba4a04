// Where this project's own files are: the source files as they stand, or what `npm run build` made of them. It stays at
// the top of src, because the build puts everything into files at the top of dist, and what it asks must be true in
// both.
import { readFileSync } from 'node:fs';
import { dirname, extname, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const OWN_FOLDER = dirname(fileURLToPath(import.meta.url)) + sep;

export function isOwnFile(path: string): boolean {
  return path.startsWith(OWN_FOLDER);
}

/** The path of an entry, to be run in a process of its own or imported. */
export function entryPath(name: 'server' | 'worker' | 'cli'): string {
  return `${OWN_FOLDER}${name}${extname(import.meta.url)}`;
}

/** The package: the checkout, or what npm has installed. */
export function packagePath(): string {
  return dirname(OWN_FOLDER);
}

export function version(): string {
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string };
  return manifest.version;
}

/** The page at /api/docs, as the build has put it together; where the source runs as it stands, too. */
export function readDocsPage(): string {
  return readFileSync(new URL('../dist/docs.html', import.meta.url), 'utf8');
}
