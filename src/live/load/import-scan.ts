// Finds the files that an import reads, in versions of Node before 22.15. They have no hooks (module-loader.ts), so
// imports are found in the source texts, and files that `require` has loaded are found in its cache. An import that an
// operation makes when it is called is not found.
import { statSync } from 'node:fs';
import module from 'node:module';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { attempt } from '../../base/failure.ts';
import { fingerprint, realPathOf } from '../../base/fingerprint.ts';
import { checkSource, readSourceOrEmpty } from '../../base/source-file.ts';
import type { ImportRecorder, RecorderParts } from './module-loader.ts';
import { provideOwnPackage } from './own-package.ts';

export function recordBySource({ record, texts, resolutions }: RecorderParts): ImportRecorder {
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
        if (file !== path) resolutions.recordManifests(file);
        for (const imported of importsOf(file, source)) {
          // Node imports the file behind a link, and resolves the imports of this file from its real path.
          pending.push(attempt(() => resolutions.realPathOf(imported), imported));
        }
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

/** Returns a file and all files that its source imports, directly or not, by their real paths. */
export function filesReachedFrom(file: string): ReadonlySet<string> {
  const reached = new Set([file]);
  // The loop also takes the files that it adds.
  for (const path of reached)
    for (const imported of importsOf(path, readSourceOrEmpty(path))) reached.add(realPathOf(imported));
  return reached;
}

/** The part of a regular expression that matches white space and comments. */
const GAP = '(?:\\s|/\\*[^]*?\\*/|//[^\\n]*\\n)*';
/** Finds `import … from 'x'`, `export … from 'x'`, `import 'x'`, `import('x')`, `require('x')` for paths and `#x`. */
const IMPORT = new RegExp(
  `\\b(?:from|import|require)\\b${GAP}\\(?${GAP}(['"])((?:\\.{1,2}/|/|file:|#)[^'"\\n]+)\\1`,
  'g',
);

/** Returns the files that a source imports. Packages are not followed. */
function importsOf(file: string, source: string): string[] {
  return Array.from(source.matchAll(IMPORT)).flatMap(([, , specifier = '']) => resolveImport(file, specifier));
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
