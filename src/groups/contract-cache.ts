// A cache on disk of the contracts of a large controllers folder. A contract is what the source of a controller says:
// the types and comments of its operations. contract/cached-contract.ts decides whether a contract is still valid. The
// cache file is valid only for one build of Gatefold and one version of Node.
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import module from 'node:module';
import { dirname, join } from 'node:path';
import { hash } from '../base/builtins.ts';
import { fingerprint } from '../base/fingerprint.ts';
import type { ContractCache } from '../contract/cached-contract.ts';
import { entryPath, version } from '../own-files.ts';
import { openCacheFolder } from './cache-folder.ts';

/** Milliseconds from the first contract that is added after the load of the folder until the cache file is written. */
const SAVE_DELAY_MS = 1000;
/**
 * Number of new contracts between two writes of the code that Node has compiled. A write blocks the process: one write
 * of the code of 1,000 files would take a second.
 */
const CONTRACTS_PER_FLUSH = 50;

/**
 * Opens the caches of a controllers folder: Node's cache of compiled code, and the cache of contracts.
 *
 * @param folder the real path of the controllers folder
 * @returns undefined when no cache can be written
 * @throws Error when another user can change a folder of the cache; the message names this folder
 */
export function openCaches(folder: string): FolderCache | undefined {
  const cacheFolder = openCacheFolder(digest(folder));
  if (cacheFolder === undefined) return undefined;
  module.enableCompileCache?.(join(cacheFolder, 'code'));
  return openContractCache(join(cacheFolder, 'contracts'));
}

export interface FolderCache extends ContractCache {
  /** Reads the file again if another process has written it since. Called before the first controller is loaded. */
  refresh(): void;
  /** Writes the new contracts, and frees the memory of all contracts. Called when the folder has loaded. */
  release(): void;
}

/**
 * Opens the cache of contracts. The first line of the file has the digest of the build and the digest of all other
 * lines. Then come two lines for each contract: the path of its controller, and its text.
 */
export function openContractCache(file: string, build = identifyBuild()): FolderCache {
  /** From when this process last read or wrote the file. */
  let seenFingerprint = fingerprint(file);
  /** The contracts in the file, by the path of the controller; undefined after the load of the folder. */
  let cached: ReadonlyMap<string, string> | undefined = readCache(file, build);
  /** The paths of the controllers that this process has loaded. The contracts of other controllers are dropped. */
  const used = new Set<string>();
  /** The contracts that this process has read from sources and has not written yet. */
  const added = new Map<string, string>();
  let saveTimer: NodeJS.Timeout | undefined;

  function save(): void {
    clearTimeout(saveTimer);
    saveTimer = undefined;
    module.flushCompileCache?.();
    // Another worker, which loads the same folder, has already written the same contracts.
    if (fingerprint(file) !== seenFingerprint) return;
    const reused = Array.from(cached ?? readCache(file, build)).filter(([path]) => used.has(path) && !added.has(path));
    const text = [...reused, ...added].map(([path, contract]) => `${JSON.stringify(path)}\n${contract}\n`).join('');
    const temporaryFile = `${file}.${process.pid}`;
    try {
      writeFileSync(temporaryFile, `${build} ${digest(text)}\n${text}`, { mode: 0o600 });
      renameSync(temporaryFile, file);
      seenFingerprint = fingerprint(file);
      added.clear();
    } catch {
      // The disk is full, or the folder was removed. The next process reads the contracts anew.
      rmSync(temporaryFile, { force: true });
    }
  }

  return {
    digest,
    refresh() {
      const current = fingerprint(file);
      if (current === seenFingerprint) return;
      seenFingerprint = current;
      cached = readCache(file, build);
    },
    find(path) {
      used.add(path);
      return cached?.get(path);
    },
    add(path, contract) {
      added.set(path, contract);
      if (added.size % CONTRACTS_PER_FLUSH === 0) module.flushCompileCache?.();
      // During the load, nothing is saved: `used` does not have the controllers yet that load later, so their contracts
      // would be dropped from the file.
      if (cached === undefined) saveTimer ??= setTimeout(save, SAVE_DELAY_MS).unref();
    },
    release() {
      if (added.size > 0) save();
      cached = undefined;
    },
  };
}

/** Returns an empty map when the file is missing, damaged or written by another build. */
function readCache(file: string, build: string): ReadonlyMap<string, string> {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    return new Map();
  }
  const firstLineEnd = text.indexOf('\n');
  const contractLines = text.slice(firstLineEnd + 1);
  if (text.slice(0, firstLineEnd) !== `${build} ${digest(contractLines)}`) return new Map();
  const lines = contractLines.split('\n');
  const cached = new Map<string, string>();
  for (let i = 0; i + 1 < lines.length; i += 2) cached.set(JSON.parse(lines[i] as string), lines[i + 1] as string);
  return cached;
}

let build: string | undefined;

/** Later calls return the result of the first one, because the process runs the files of that time. */
function identifyBuild(): string {
  build ??= computeBuild();
  return build;
}

/** Returns a digest of the versions, and of all files of Gatefold, because a checkout changes without a new version. */
function computeBuild(): string {
  const folder = dirname(entryPath('worker'));
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => /\.[jt]s$/.test(name));
  const states = files.sort().map((name) => `${name} ${fingerprint(join(folder, name))}`);
  return digest([version(), process.version, ...states].join('\n'));
}

function digest(text: string): string {
  return hash('sha256', text, 'base64url');
}
