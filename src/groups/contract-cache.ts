// A cache on disk of the contracts (types and comments) that earlier processes have read from the controllers of a
// large folder. contract/cached-contract.ts decides whether a contract is still valid. The cache file is valid only for
// one build of Gatefold and of Node.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import module from 'node:module';
import { dirname, join } from 'node:path';
import { openCacheFolder } from '../base/cache-folder.ts';
import { fingerprint } from '../base/fingerprint.ts';
import type { ContractCache } from '../contract/cached-contract.ts';
import { entryPath, version } from '../own-files.ts';

/** Milliseconds until the file is written, after a worker that serves has imported a group and added its contract. */
const SAVE_DELAY = 1000;
/**
 * Number of new contracts after which a worker that loads makes Node write the code that Node has compiled. Nothing
 * else runs while Node writes. The code of 1,000 files takes a second, which is too long for one step of a load, and
 * for requests.
 */
const FLUSH_AFTER = 50;

/**
 * Opens the caches of a folder: Node's cache of compiled code, and the cache of contracts.
 *
 * @returns undefined where no cache can be written
 * @throws Error that names the place which another user can write to
 */
export function openCaches(dir: string): FolderCache | undefined {
  const folder = openCacheFolder(digest(realpathSync(dir)));
  if (folder === undefined) return undefined;
  module.enableCompileCache?.(join(folder, 'code'));
  return openContractCache(join(folder, 'contracts'));
}

export interface FolderCache extends ContractCache {
  /** Writes the new contracts, and frees the memory of the others. Called when the folder has loaded. */
  release(): void;
}

/**
 * Opens the cache of contracts. The file begins with the build and the digest of the rest. Each contract has two lines:
 * its path, and its text.
 */
export function openContractCache(file: string, build = ownBuild()): FolderCache {
  let readState = fingerprint(file);
  /** Path → contract, as read from the file. `cached` is undefined after the load. */
  let cached: ReadonlyMap<string, string> | undefined = readCache(file, build);
  const used = new Set<string>();
  const added = new Map<string, string>();
  let timer: NodeJS.Timeout | undefined;

  function save(): void {
    clearTimeout(timer);
    timer = undefined;
    module.flushCompileCache?.();
    // Another worker of the generation has saved the same contracts.
    if (fingerprint(file) !== readState) return;
    const all = Array.from(cached ?? readCache(file, build)).filter(([path]) => used.has(path) && !added.has(path));
    const text = [...all, ...added].map(([path, contract]) => `${JSON.stringify(path)}\n${contract}\n`).join('');
    const draft = `${file}.${process.pid}`;
    try {
      writeFileSync(draft, `${build} ${digest(text)}\n${text}`, { mode: 0o600 });
      renameSync(draft, file);
      readState = fingerprint(file);
      added.clear();
    } catch {
      // The disk is full, or the folder was removed. The next process reads the contracts anew.
      rmSync(draft, { force: true });
    }
  }

  return {
    digest,
    find(path) {
      used.add(path);
      return cached?.get(path);
    },
    add(path, contract) {
      added.set(path, contract);
      if (added.size % FLUSH_AFTER === 0) module.flushCompileCache?.();
      // A load saves once, when it ends. Before that, contracts of files that are loaded later would count as unused.
      if (cached === undefined) timer ??= setTimeout(save, SAVE_DELAY).unref();
    },
    release() {
      if (added.size > 0) save();
      cached = undefined;
    },
  };
}

/** Reads the file: path → contract. The map is empty when another build wrote the file, or when the file is damaged. */
function readCache(file: string, build: string): ReadonlyMap<string, string> {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    return new Map();
  }
  const end = text.indexOf('\n');
  const rest = text.slice(end + 1);
  if (text.slice(0, end) !== `${build} ${digest(rest)}`) return new Map();
  const lines = rest.split('\n');
  const cached = new Map<string, string>();
  for (let i = 0; i + 1 < lines.length; i += 2) cached.set(JSON.parse(lines[i] as string), lines[i + 1] as string);
  return cached;
}

/**
 * Returns a digest of the versions of Gatefold and Node, and of the state of every own file. The files are included
 * because a checkout changes without a new version.
 */
function ownBuild(): string {
  const folder = dirname(entryPath('worker'));
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => /\.[jt]s$/.test(name));
  const states = files.sort().map((name) => `${name} ${fingerprint(join(folder, name))}`);
  return digest([version(), process.version, ...states].join('\n'));
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
