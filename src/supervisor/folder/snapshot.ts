// One look at the disk: what the controllers folder and every file that its code was loaded from are at this moment, as
// a map of texts to compare. It decides nothing; folder/watch.ts compares looks, and knows what a difference means.
import { readdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { fingerprint } from '../../base/fingerprint.ts';
import { listControllers } from '../../groups/naming.ts';

/**
 * `folder` → its real path; `group:Test` → file name; `link:<path>` → the real path behind a symbolic link in the tree;
 * `file:<path>` → fingerprint; `tree:<path>` of every subfolder. What is not in it is not there.
 */
export type Snapshot = ReadonlyMap<string, string>;

export const ABSENT = 'absent';

export interface SnapshotOptions {
  /** The folder as it was configured, which may be a symbolic link. */
  readonly dir: string;
  /** Absolute paths to look at besides the tree: what the controllers import from anywhere. */
  readonly paths: Iterable<string>;
  /** Also fingerprint every code file of the tree, imported or not. */
  readonly wholeTree: boolean;
}

/** Undefined while the folder is not there or cannot be read. */
export function takeSnapshot({ dir, paths, wholeTree }: SnapshotOptions): Snapshot | undefined {
  const seen = new Map<string, string>();
  try {
    // A swapped link to the folder changes no file that was loaded: only the real path tells.
    const real = realpathSync.native(dir);
    seen.set('folder', real);
    for (const [group, file] of listControllers(real)) {
      const path = join(real, file);
      seen.set(`group:${group}`, file);
      seen.set(`file:${path}`, fingerprint(path));
    }
    lookAtTree(real, wholeTree, seen, 0);
  } catch {
    return undefined;
  }
  for (const path of paths) {
    const key = `file:${path}`;
    if (!seen.has(key)) seen.set(key, fingerprint(path));
  }
  return seen;
}

/** The first key whose value is no longer that of `before`; with `exact` also one that is new. */
export function firstDifference(before: Snapshot, now: Snapshot, exact: boolean): string | undefined {
  for (const [key, value] of before) if ((now.get(key) ?? ABSENT) !== value) return key;
  if (exact) for (const [key, value] of now) if (value !== ABSENT && !before.has(key)) return key;
  return undefined;
}

/** What an import can read. Data that controllers write beside themselves must not start generations. */
export const CODE_FILE = /\.(?:[cm]?[jt]sx?|json|node|wasm)$/;
/** A link can make a tree endless; a folder this deep is a mistake in CONTROLLERS_DIR. */
const DEEPEST = 16;

function lookAtTree(folder: string, wholeTree: boolean, seen: Map<string, string>, depth: number): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.name.startsWith('.') || entry.name === 'node_modules') continue;
    const isCode = wholeTree && CODE_FILE.test(entry.name);
    if (entry.isFile() && !isCode) continue;
    const path = join(folder, entry.name);
    // Mounted volumes and release folders change where links lead, not the links: the target is what is compared.
    if (entry.isSymbolicLink()) seen.set(`link:${path}`, realPathOf(path));
    if (entry.isDirectory()) {
      if (depth < DEEPEST) lookAtSubfolder(path, wholeTree, seen, depth + 1);
    } else if (isCode) seen.set(`file:${path}`, fingerprint(path));
  }
}

/** A subfolder may go away, or be closed to us, between two system calls: that is a difference, not a failure. */
function lookAtSubfolder(path: string, wholeTree: boolean, seen: Map<string, string>, depth: number): void {
  // With this value it never counts as a difference: what matters of a subfolder is what is in it.
  seen.set(`tree:${path}`, ABSENT);
  try {
    lookAtTree(path, wholeTree, seen, depth);
  } catch {
    seen.set(`link:${path}`, ABSENT);
  }
}

/** Where a path leads; `ABSENT` where it leads nowhere. */
export function realPathOf(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    return ABSENT;
  }
}
