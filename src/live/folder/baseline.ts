// The baseline is the folder as the newest generation has loaded it, or tried to load it, with every file that workers
// have imported since. A folder that differs from the baseline has changed.
import { statSync } from 'node:fs';
import { join, sep } from 'node:path';
import { SERVICE } from '../../base/group-name.ts';
import type { GroupLoad } from '../load/group-load.ts';
import type { LoadedFile } from '../load/module-loader.ts';
import { ABSENT, firstDifference, realPathOf, type Snapshot } from './snapshot.ts';

/** The state that a generation has loaded, or tried to load. */
export interface GenerationLoad {
  /** The folder before the first file was read. */
  readonly snapshot: Snapshot;
  /** The time at which `snapshot` was taken, in milliseconds of the wall clock. */
  readonly begunAt: number;
  readonly groups: readonly GroupLoad[];
  /** The files that each worker read. A file that is listed with two fingerprints changed during the load. */
  readonly files: readonly LoadedFile[];
  /** Whether a group did not load. Any change in the folder can then correct the group, so every change counts. */
  readonly broken: boolean;
}

/** Milliseconds. File times advance with the kernel's tick, so two writes within this time can leave the same one. */
const TIME_RESOLUTION = 12;
const SERVICE_KEY = `group:${SERVICE}`;
/** Replaces the fingerprint of a file that was read in two states. Equals no fingerprint, so the file has changed. */
const MIXED = 'mixed';

export function createBaseline(dir: string) {
  let entries = new Map<string, string>();
  let isWholeTree = false;

  return {
    /** Whether every change of the tree counts, also a change of a file that nobody has imported. */
    isWholeTree: () => isWholeTree,
    replace,
    addGroup({ group, file }: GroupLoad): void {
      const key = `group:${group}`;
      if (!entries.has(key)) entries.set(key, file);
    },
    addFiles: (files: readonly LoadedFile[]) => files.forEach(addFile),
    /** A file that the baseline lacks is other code. A path without a file is no code. */
    hasSameFiles: (files: readonly LoadedFile[]) =>
      files.every((file) => (entries.get(keyOf(file)) ?? ABSENT) === file.fingerprint),
    /** Returns the key of the first difference. */
    differenceFrom(snapshot: Snapshot): string | undefined {
      const key = firstDifference(entries, snapshot, false);
      if (key !== undefined) return key;
      const counts = isWholeTree ? mayCorrect(snapshot) : isStray;
      return Array.from(snapshot).find(([key, value]) => value !== ABSENT && !entries.has(key) && counts(key))?.[0];
    },
    /**
     * Returns the key of the first change in what the workers have read: a new or removed group without a file that was
     * read is no change. @param file see FolderWatch.changeSinceLoad
     */
    changeIn(snapshot: Snapshot, file: string | undefined): string | undefined {
      // A load that found no folder leaves a baseline without entries, which every folder would equal.
      if (!entries.has('folder')) return 'folder';
      for (const [key, value] of entries) {
        if (key.startsWith('group:') && key !== SERVICE_KEY) continue;
        if ((snapshot.get(key) ?? ABSENT) !== value) return key;
      }
      if (file === undefined) return undefined;
      // After `A -> B -> A`, the folder is A again, but the file was read in B.
      const fileKey = `file:${realPathOf(join(snapshot.get('folder') ?? dir, file))}`;
      return entries.has(fileKey) ? undefined : fileKey;
    },
    paths: () => keysOf('file:'),
    links: () => keysOf('link:'),
  };

  function* keysOf(kind: string): Generator<string> {
    for (const key of entries.keys()) if (key.startsWith(kind)) yield key.slice(kind.length);
  }

  /** @param isLoaded whether the load has ended, so that `groups` and `files` have what it has read */
  function replace({ snapshot, begunAt, groups, files, broken }: GenerationLoad, isLoaded: boolean): void {
    entries = new Map();
    isWholeTree = broken;
    const folder = snapshot.get('folder') ?? dir;
    for (const [key, value] of snapshot) {
      // The arrival or loss of a group that nobody has loaded, or of a file that nobody has imported, is no change.
      const isWatched = key === 'folder' || isStray(key) || key.startsWith(`link:${folder}${sep}`);
      if (broken || isWatched) entries.set(key, value);
    }
    // A new service file changes the rules of every group. So the arrival of this file counts as a change, and a worker
    // that already serves never imports it.
    // A service file that was away for a moment can be in the snapshot although no worker has loaded it.
    const isMissed = isLoaded && snapshot.has(SERVICE_KEY) && !groups.some(({ group }) => group === SERVICE);
    entries.set(SERVICE_KEY, isMissed ? MIXED : (snapshot.get(SERVICE_KEY) ?? ABSENT));
    for (const load of groups) {
      if (load.group !== SERVICE) entries.set(`group:${load.group}`, load.file);
      const key = `file:${join(folder, load.file)}`;
      entries.set(key, snapshot.get(key) ?? ABSENT);
    }
    for (const file of files) {
      const key = keyOf(file);
      const fingerprint = snapshot.get(key);
      if (fingerprint !== undefined) entries.set(key, fingerprint === file.fingerprint ? fingerprint : MIXED);
      // The snapshot does not have this file, so only its time can show a write during the load.
      else if (isWrittenSince(file, begunAt - TIME_RESOLUTION)) entries.set(key, MIXED);
      else addFile(file);
    }
  }

  /** Any file can correct a group, but no new controller: the first request for its group imports it. */
  function mayCorrect(snapshot: Snapshot): (key: string) => boolean {
    const folder = snapshot.get('folder') ?? dir;
    const controllers = new Set<string>();
    for (const [key, value] of snapshot)
      if (key.startsWith('group:')) controllers.add(key).add(`file:${join(folder, value)}`);
    return (key) => !controllers.has(key);
  }

  function addFile(file: LoadedFile): void {
    const key = keyOf(file);
    const { fingerprint } = file;
    entries.set(key, (entries.get(key) ?? fingerprint) === fingerprint ? fingerprint : MIXED);
  }
}

/** A generation says what is wrong with such a file. No request would. */
const isStray = (key: string): boolean => key.startsWith('stray:');

function keyOf({ path, link }: LoadedFile): string {
  return `${link === true ? 'link' : 'file'}:${path}`;
}

function isWrittenSince({ path, fingerprint, link }: LoadedFile, time: number): boolean {
  // A link is compared by its target, which its time does not show.
  if (fingerprint === ABSENT || link === true) return false;
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat !== undefined && Math.max(stat.mtimeMs, stat.ctimeMs) >= time;
}
