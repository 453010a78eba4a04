// Reads the sources and the caches of a large folder before the order to load the folder. A worker does this while it
// has nothing else to do. At the load, a text is used only if its file has not changed since.
import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import { fingerprintOf, statOf } from '../base/fingerprint.ts';
import { describeError, type Log } from '../base/log.ts';
import { readSource } from '../base/source-file.ts';
import type { FolderCache } from './contract-cache.ts';
import { listControllers } from './naming.ts';
import { prepareTypeScript } from './typescript.ts';

export interface PreparedLoad {
  /** Returns the text of a file that still has this fingerprint. */
  findText(path: string, fingerprint: string): string | undefined;
  /** Returns the cache of contracts, or undefined when the folder can have no cache. */
  contracts(): FolderCache | undefined;
  /** Called before the first file of the folder is loaded. @returns the real path of the folder */
  begin(log: Log): Promise<string>;
  /** Saves the new contracts, and frees the memory that only the load of the folder needed. */
  release(): void;
}

/** Minimum number of files in a folder that is prepared. A smaller folder loads about as fast without caches. */
const MIN_FILES_PREPARED = 30;
/**
 * Milliseconds since the last change of a file that is read early. Two writes within one tick of the kernel can leave
 * the same fingerprint, so a file that was just written may change without a new fingerprint.
 */
const MIN_AGE = 100;

/**
 * Imports the modules that the load of a folder needs, and prepares a large folder.
 *
 * @returns undefined for a small folder
 * @throws Error when the folder is missing or `tsx` is broken; a load reports the same error
 */
export async function prepareLoad(dir: string): Promise<PreparedLoad | undefined> {
  const controllers = [...listControllers(dir).values()];
  if (controllers.length === 0) return undefined;
  await import('../contract/reader.ts');
  const prepared = controllers.length < MIN_FILES_PREPARED ? undefined : await prepareLargeFolder(dir, controllers);
  if (controllers.some((file) => file.endsWith('.ts'))) await prepareTypeScript();
  return prepared;
}

async function prepareLargeFolder(dir: string, controllers: readonly string[]): Promise<PreparedLoad> {
  let folder = realpathSync.native(dir);
  let caches = await openCachesOf(folder);
  const texts = readEarly(controllers.map((file) => join(folder, file)));
  return {
    findText(path, fingerprint) {
      const early = texts.get(path);
      return early?.fingerprint === fingerprint ? early.text : undefined;
    },
    contracts: () => caches.contracts,
    async begin(log) {
      const folderNow = realPathOrSame(dir);
      if (folderNow !== folder) {
        // The folder is a link, which leads to another release by now.
        folder = folderNow;
        caches = await openCachesOf(folder);
      }
      caches.contracts?.refresh();
      if (caches.error !== undefined) log.warn('cache-refused', describeError(caches.error));
      return folder;
    },
    release() {
      caches.contracts?.release();
      texts.clear();
    },
  };
}

/** @returns the cache of contracts, or in `error` why the caches are refused */
async function openCachesOf(folder: string): Promise<{ contracts?: FolderCache | undefined; error?: unknown }> {
  const { openCaches } = await import('./contract-cache.ts');
  try {
    return { contracts: openCaches(folder) };
  } catch (error) {
    return { error };
  }
}

/** Reads files by their real paths. A file that cannot be read is left out, and its load reports the error. */
export function readEarly(
  paths: readonly string[],
): Map<string, { readonly fingerprint: string; readonly text: string }> {
  const texts = new Map<string, { readonly fingerprint: string; readonly text: string }>();
  for (const path of paths) {
    const stat = statOf(path);
    if (stat === undefined || Date.now() - Math.max(stat.mtimeMs, stat.ctimeMs) < MIN_AGE) continue;
    try {
      texts.set(path, { fingerprint: fingerprintOf(stat), text: readSource(path) });
    } catch {}
  }
  return texts;
}

function realPathOrSame(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    return path;
  }
}
