// A snapshot: the state of the controllers folder, and of every file that its code was loaded from, as a map of texts
// to compare. folder/baseline.ts decides which differences count.
import { readdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { fingerprint } from '../../base/fingerprint.ts';
import { listControllers } from '../../groups/naming.ts';

/**
 * A map with these keys. `folder` → its real path. `group:Test` → file name. `link:<path>` → the real path behind a
 * symbolic link in the tree. `file:<path>` → fingerprint. `tree:<path>`: a subfolder. A missing key: not there.
 */
export type Snapshot = ReadonlyMap<string, string>;

export const ABSENT = 'absent';

export interface SnapshotOptions {
  /** The folder as it was configured, which may be a symbolic link. */
  readonly dir: string;
  /** Absolute paths of files outside the tree that the controllers import. */
  readonly paths: Iterable<string>;
  /** Whether to fingerprint every code file of the tree, imported or not. */
  readonly wholeTree: boolean;
}

/** Returns undefined while the folder is missing or cannot be read. */
export function takeSnapshot({ dir, paths, wholeTree }: SnapshotOptions): Snapshot | undefined {
  const snapshot = new Map<string, string>();
  try {
    // A swapped link to the folder changes no file that was loaded; only its real path shows the swap.
    const real = realpathSync.native(dir);
    snapshot.set('folder', real);
    for (const [group, file] of listControllers(real)) {
      const path = join(real, file);
      snapshot.set(`group:${group}`, file);
      snapshot.set(`file:${path}`, fingerprint(path));
    }
    addTree(real, wholeTree, snapshot, 0);
  } catch {
    return undefined;
  }
  for (const path of paths) {
    const key = `file:${path}`;
    if (!snapshot.has(key)) snapshot.set(key, fingerprint(path));
  }
  return snapshot;
}

/** Returns the first key whose value differs from `before`; with `exact` also a key that is new. */
export function firstDifference(before: Snapshot, now: Snapshot, exact: boolean): string | undefined {
  for (const [key, value] of before) if ((now.get(key) ?? ABSENT) !== value) return key;
  if (exact) for (const [key, value] of now) if (value !== ABSENT && !before.has(key)) return key;
  return undefined;
}

/** Names of files that an import can read. Data files that controllers write must not start generations. */
export const CODE_FILE = /\.(?:[cm]?[jt]sx?|json|node|wasm)$/;
/** Levels of subfolders: a mounted tree may be endless, and nobody keeps controllers so deep. */
const MAX_DEPTH = 16;

function addTree(folder: string, wholeTree: boolean, snapshot: Map<string, string>, depth: number): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.name.startsWith('.') || entry.name === 'node_modules') continue;
    const isCode = wholeTree && CODE_FILE.test(entry.name);
    if (entry.isFile() && !isCode) continue;
    const path = join(folder, entry.name);
    // The target is compared: mounted volumes and release folders change the target of a link, not the link.
    if (entry.isSymbolicLink()) snapshot.set(`link:${path}`, realPathOf(path));
    if (entry.isDirectory()) {
      if (depth < MAX_DEPTH) addSubfolder(path, wholeTree, snapshot, depth + 1);
    } else if (isCode) snapshot.set(`file:${path}`, fingerprint(path));
  }
}

/** A subfolder may vanish or become unreadable between two system calls: that is a difference, not a failure. */
function addSubfolder(path: string, wholeTree: boolean, snapshot: Map<string, string>, depth: number): void {
  // A constant, so that a subfolder is no difference by itself; its files are.
  snapshot.set(`tree:${path}`, ABSENT);
  try {
    addTree(path, wholeTree, snapshot, depth);
  } catch {
    snapshot.set(`link:${path}`, ABSENT);
  }
}

/** Returns the real path, or `ABSENT`. */
export function realPathOf(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    return ABSENT;
  }
}
