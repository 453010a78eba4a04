// Records how an import finds its file: the symbolic links and each package.json on the way. When one of them changes,
// the same import leads to other code, so they are parts of the import closure (module-loader.ts).
import { readFileSync, realpathSync } from 'node:fs';
import { dirname, isAbsolute, join, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { attempt } from '../../base/failure.ts';
import { fingerprint } from '../../base/fingerprint.ts';
import { foldersAbove } from '../../base/manifest.ts';
import { parseObject } from '../../base/values.ts';
import { isOwnFile } from '../../own-files.ts';
import type { LoadedFile } from './module-loader.ts';

export type Resolutions = ReturnType<typeof createResolutions>;

/** Replaces the real path behind a link that has led to two files. Equals no path, so the link has changed. */
const MIXED = 'mixed';

/** @param recordFile adds a file, or a path without a file, to the closure */
export function createResolutions(
  recordFile: (path: string) => void,
  onFile: ((file: LoadedFile) => void) | undefined,
) {
  const realPathByLink = new Map<string, string>();
  const recordedFolders = new Set<string>();

  /** Returns the real path of a file, and adds the symbolic links on the way to the closure. @throws Error no file */
  function realPathOf(path: string): string {
    const realPath = realpathSync.native(path);
    if (realPath !== path) recordLink(...shorten(path, realPath));
    return realPath;
  }

  function recordLink(path: string, realPath: string): void {
    const earlier = realPathByLink.get(path);
    const target = earlier === undefined || earlier === realPath ? realPath : MIXED;
    if (earlier === target) return;
    realPathByLink.set(path, target);
    onFile?.({ path, fingerprint: target, link: true });
  }

  /** Records what has led from an importing file to the imported file. */
  function record(importer: string, specifier: string, imported: string): void {
    if (isPackageFile(importer) || isOwnFile(importer) || isOwnFile(imported)) return;
    recordManifests(imported);
    if (/^(?:\.{1,2}\/|\/|file:)/.test(specifier)) {
      const text = specifier.replace(/[?#].*$/, '');
      const path = text.startsWith('file:') ? fileURLToPath(text) : attempt(() => decodeURIComponent(text), text);
      recordWay(resolve(dirname(importer), path));
    } else if (!specifier.startsWith('#')) recordPackage(importer, specifier);
  }

  /** Records the links on the way to a path. Where a path lacks the extension of its file, the folder has the links. */
  function recordWay(path: string): void {
    for (const place of [path, dirname(path)]) if (attempt(() => realPathOf(place), undefined) !== undefined) return;
  }

  /** A package manager makes packages links, and replaces them. A nearer folder can get the same package later. */
  function recordPackage(importer: string, specifier: string): void {
    for (const path of placesOf(specifier, importer)) {
      if (fingerprint(path) !== 'absent') return recordWay(path);
      recordFile(path);
    }
  }

  /** Records where a package is missing. An operation or a package can import it, and Node keeps such a failure. */
  function recordMissing(importer: string, error: unknown): void {
    placesOfPackage(String(error), importer).forEach(recordFile);
  }

  /** Records each package.json that decides how Node loads a file and resolves its imports. */
  function recordManifests(path: string): void {
    for (const folder of foldersAbove(path)) {
      const manifest = join(folder, 'package.json');
      const isKnown = recordedFolders.has(folder);
      recordedFolders.add(folder);
      if (!isKnown) recordFile(manifest);
      if (fingerprint(manifest) === 'absent') continue;
      if (!isKnown && !isPackageFile(manifest)) recordTargets(manifest);
      return;
    }
  }

  /** Records the links on the way to the targets of `imports` and `exports`, up to the first `*`. */
  function recordTargets(manifest: string): void {
    // A file that is not JSON has no targets. Node gives the reason when it reads the file.
    const { imports, exports } = parseObject(attempt(() => readFileSync(manifest, 'utf8'), '')) ?? {};
    for (const [, target = ''] of JSON.stringify([imports, exports]).matchAll(/"(\.\/[^"*]*)/g))
      recordWay(resolve(dirname(manifest), target));
  }

  return {
    record,
    recordMissing,
    recordManifests,
    realPathOf,
    links: (): LoadedFile[] =>
      Array.from(realPathByLink, ([path, target]) => ({ path, fingerprint: target, link: true })),
  };
}

/** Returns the folders in which Node looks for a package, the nearest first. */
function placesOf(specifier: string, importer: string): string[] {
  const [name = ''] = /^(?:@[^/]+\/)?[^/]+/.exec(specifier) ?? [];
  return Array.from(foldersAbove(importer), (folder) => join(folder, 'node_modules', name));
}

/** Returns the paths whose change can cure a load without a package: `npm ci` brings them, one after the other. */
export function placesOfPackage(reason: string, importer: string): readonly string[] {
  const [, missing] = /Cannot find (?:package|module) '([^'.#][^']*)'/.exec(reason) ?? [];
  if (missing === undefined) return [];
  const [folder] = /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+/.exec(missing) ?? [];
  if (folder !== undefined) return [missing, join(folder, 'package.json')];
  return isAbsolute(missing) ? [] : placesOf(missing, importer);
}

/** Removes the end that both paths share, if the rest is the link. So a linked folder is one link for all its files. */
function shorten(path: string, realPath: string): [path: string, realPath: string] {
  const [parts, realParts] = [path.split(sep), realPath.split(sep)];
  while (parts.length > 2 && realParts.length > 2 && parts.at(-1) === realParts.at(-1)) {
    parts.pop();
    realParts.pop();
  }
  const [short, realShort] = [parts.join(sep), realParts.join(sep)];
  return realpathSync.native(short) === realShort ? [short, realShort] : [path, realPath];
}

function isPackageFile(path: string): boolean {
  return /[\\/]node_modules[\\/]/.test(path);
}
