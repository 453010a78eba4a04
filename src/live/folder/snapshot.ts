// A snapshot is the state of the controllers folder and of every file that its code was loaded from. Its form is a map
// of texts, so that two snapshots can be compared. folder/baseline.ts decides which differences count.
import { readdirSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { attempt } from '../../base/failure.ts';
import { fingerprint } from '../../base/fingerprint.ts';
import { listControllers } from '../load/naming.ts';
import type { createStrayListing } from '../load/stray-service.ts';

/**
 * The entries:
 * - `folder` → the real path of the controllers folder
 * - `group:<name>` → the name of its file
 * - `link:<path>` → the real path behind a symbolic link
 * - `file:<path>` → its fingerprint
 * - `stray:<path>` → the fingerprint of a file that may set rules (stray-service.ts)
 * - `tree:<path>` → `ABSENT`, for each subfolder; only `foldersOf` reads these keys
 *
 * A missing key equals `ABSENT`.
 */
export type Snapshot = ReadonlyMap<string, string>;

export const ABSENT = 'absent';

export interface SnapshotOptions {
  /** The folder as it was configured, which may be a symbolic link. */
  readonly dir: string;
  /** Absolute paths of files outside the tree that the controllers import. */
  readonly paths: Iterable<string>;
  /** Absolute paths of symbolic links outside the tree that have led to imported files. */
  readonly links?: Iterable<string>;
  /** Whether to fingerprint every code file of the tree, imported or not. */
  readonly wholeTree: boolean;
  readonly listStrays?: ReturnType<typeof createStrayListing>;
}

/** @returns undefined while the folder is missing or cannot be read */
export function takeSnapshot({ dir, paths, links = [], wholeTree, listStrays }: SnapshotOptions): Snapshot | undefined {
  const snapshot = new Map<string, string>();
  try {
    // When a link to the folder is swapped, no loaded file changes. Only the real path of the folder shows the swap.
    const realDir = realpathSync.native(dir);
    snapshot.set('folder', realDir);
    const controllers = listControllers(realDir);
    for (const [path, value] of listStrays?.(realDir, controllers) ?? []) snapshot.set(`stray:${path}`, value);
    for (const [group, file] of controllers) {
      const path = join(realDir, file);
      snapshot.set(`group:${group}`, file);
      addFile(path, snapshot);
    }
    addTree(realDir, wholeTree, snapshot, 0);
  } catch {
    return undefined;
  }
  for (const path of paths) addFile(path, snapshot);
  for (const path of links) snapshot.set(`link:${path}`, realPathOf(path));
  return snapshot;
}

/** Each file is examined once, because a large folder has thousands. */
function addFile(path: string, snapshot: Map<string, string>): void {
  const key = `file:${path}`;
  if (!snapshot.has(key)) snapshot.set(key, fingerprint(path));
}

/** Returns the first key with another value in `later`; with `includeAdded`, also a key that only `later` has. */
export function firstDifference(earlier: Snapshot, later: Snapshot, includeAdded: boolean): string | undefined {
  for (const [key, value] of earlier) if ((later.get(key) ?? ABSENT) !== value) return key;
  if (includeAdded) for (const [key, value] of later) if (value !== ABSENT && !earlier.has(key)) return key;
  return undefined;
}

export function foldersOf(snapshot: Snapshot): Set<string> {
  const folders = new Set<string>();
  for (const [key, value] of snapshot) {
    if (key === 'folder') folders.add(value);
    else if (key.startsWith('tree:')) folders.add(key.slice('tree:'.length));
    else if (key.startsWith('file:') && value !== ABSENT) folders.add(dirname(key.slice('file:'.length)));
  }
  return folders;
}

/** Matches files that an import can read. Other files are data, and data that a controller writes causes no reload. */
export const CODE_FILE = /\.(?:[cm]?[jt]sx?|json|node|wasm)$/;
/** Maximum depth of subfolders. A mounted tree can be endless, and nobody keeps controllers so deep. */
const MAX_DEPTH = 16;

function addTree(folder: string, wholeTree: boolean, snapshot: Map<string, string>, depth: number): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.name.startsWith('.') || entry.name === 'node_modules') continue;
    const isFingerprinted = wholeTree && CODE_FILE.test(entry.name);
    if (entry.isFile() && !isFingerprinted) continue;
    const path = join(folder, entry.name);
    // The real path behind a link changes when a mounted volume or a release folder is swapped, and the link does not.
    if (entry.isSymbolicLink()) snapshot.set(`link:${path}`, realPathOf(path));
    if (entry.isDirectory() && depth < MAX_DEPTH) {
      // `foldersOf` needs the path. `ABSENT` equals a missing key, so a new or lost empty subfolder is no difference.
      snapshot.set(`tree:${path}`, ABSENT);
      // Fails when the subfolder vanished, or became unreadable. Then the keys of its files are missing: a difference.
      attempt(() => addTree(path, wholeTree, snapshot, depth + 1), undefined);
    } else if (isFingerprinted && !entry.isDirectory()) addFile(path, snapshot);
  }
}

export function realPathOf(path: string): string {
  return attempt(() => realpathSync.native(path), ABSENT);
}
