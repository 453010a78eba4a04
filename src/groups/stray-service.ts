// Finds rules that nothing applies: a file of the controllers folder that uses `defineService`, but has another name
// than a service file. `services.ts` or `ServiceController.ts` would protect nothing, and its author would not notice.
// Such a file counts as a broken service file. A file that the service file imports is a part of it.
import { readdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { fingerprint } from '../base/fingerprint.ts';
import { readSourceOrEmpty } from '../base/source-file.ts';
import { isServiceFileName } from './naming.ts';

export const STRAY_REASON =
  'it uses defineService, but only service.ts, .mts, .mjs or .js sets rules: rename it, or import it in the service file';

export interface Strays {
  /** Returns the name of the first such file. @param imported the real paths that the service file has imported */
  find(imported: ReadonlySet<string>): Promise<string | undefined>;
}

const GATEFOLD = /(?:^|\/)gatefold(?:\/|$)/;
const CODE_FILE = /\.[cm]?[jt]sx?\s*$/i;
/** Matches files that nobody loads: tests, and declarations of types. */
const ON_PURPOSE = /\.(?:test|spec)\.|\.d\.[cm]?ts$/i;

export function createStrays(dir: string): Strays {
  /** By path: whether the file uses `defineService`. A file is read again when its fingerprint changes. */
  const known = new Map<string, { readonly fingerprint: string; readonly usesIt: boolean }>();

  async function usesDefineService(path: string): Promise<boolean> {
    const current = fingerprint(path);
    const earlier = known.get(path);
    if (earlier?.fingerprint === current) return earlier.usesIt;
    const usesIt = await isDefinition(readSourceOrEmpty(path));
    known.set(path, { fingerprint: current, usesIt });
    return usesIt;
  }

  return {
    async find(imported) {
      for (const name of listNames(dir)) {
        if (!CODE_FILE.test(name) || ON_PURPOSE.test(name) || isServiceFileName(name)) continue;
        const path = join(dir, name);
        if ((await usesDefineService(path)) && !imported.has(realPathOf(path))) return name;
      }
      return undefined;
    },
  };
}

/** Whether a text imports `defineService` of Gatefold. A comment or a string that has the word does not count. */
async function isDefinition(text: string): Promise<boolean> {
  if (!text.includes('defineService') || !text.includes('gatefold')) return false;
  const { parseModule } = await import('../contract/source/parse-module.ts');
  try {
    const imports = [...parseModule(text).imports.values()].filter(({ from }) => GATEFOLD.test(from));
    if (imports.some(({ name }) => name === 'defineService')) return true;
    const isWhole =
      imports.some(({ name }) => name === '*') || /\b(?:require|import)\s*\(\s*['"`]gatefold['"`]/.test(text);
    return isWhole && /\bdefineService\b/.test(text);
  } catch {
    // A file that cannot be parsed is refused only if its import is plain to see.
    return /^\s*(?:import|const|let|var)\b[^;'"]*\bdefineService\b[^;'"]*['"]gatefold['"]/m.test(text);
  }
}

function listNames(dir: string): string[] {
  try {
    return readdirSync(dir).sort();
  } catch {
    return [];
  }
}

function realPathOf(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    return path;
  }
}
