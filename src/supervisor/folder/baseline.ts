// The baseline: the state of the folder that was last tried, with every file that workers have imported since. A folder
// that differs from it has changed.
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { SERVICE } from '../../base/page-name.ts';
import type { GroupLoad } from '../../groups/group-load.ts';
import type { LoadedFile } from '../../groups/module-loader.ts';
import { ABSENT, firstDifference, type Snapshot } from './snapshot.ts';

/** One attempt to load the folder, successful or not. */
export interface Attempt {
  /** The folder before the first file was read. */
  readonly before: Snapshot;
  /** When `before` was taken, in milliseconds of the wall clock. */
  readonly begunAt: number;
  readonly groups: readonly GroupLoad[];
  /** The files that each worker read. A file in two states changed during the attempt. */
  readonly files: readonly LoadedFile[];
  /** A group did not load: any change of the tree may bring what it lacks, so any change counts. */
  readonly broken: boolean;
}

/** File times advance with the kernel's tick: two writes within this many milliseconds may leave the same file time. */
const TIME_RESOLUTION = 12;
/** The fingerprint of a file that was read in two states. No file has it, so the file counts as changed. */
const MIXED = 'mixed';

export function createBaseline(dir: string) {
  let entries = new Map<string, string>();
  let isWholeTree = false;

  return {
    /** Any change of the tree counts, also of files that nobody has imported. */
    isWholeTree: () => isWholeTree,
    replace,
    addGroup({ group, file }: GroupLoad): void {
      const key = `group:${group}`;
      if (!entries.has(key)) entries.set(key, file);
    },
    addFiles: (files: readonly LoadedFile[]) => files.forEach(addFile),
    hasSameFiles: (files: readonly LoadedFile[]) =>
      files.every(({ path, fingerprint }) => (entries.get(`file:${path}`) ?? fingerprint) === fingerprint),
    /** Returns the key of the first difference. */
    differenceFrom: (snapshot: Snapshot) => firstDifference(entries, snapshot, isWholeTree),
    /** Iterates over the files of the baseline. */
    *paths(): Generator<string> {
      for (const key of entries.keys()) if (key.startsWith('file:')) yield key.slice('file:'.length);
    },
  };

  function replace({ before, begunAt, groups, files, broken }: Attempt): void {
    entries = new Map();
    isWholeTree = broken;
    for (const [key, value] of before) {
      // A group that nobody has loaded, or a file that nobody has imported, may come and go without a change.
      if (broken || key === 'folder' || key.startsWith('link:')) entries.set(key, value);
    }
    // A service file that comes is a change of every group, so no worker imports it while it serves.
    entries.set(`group:${SERVICE}`, before.get(`group:${SERVICE}`) ?? ABSENT);
    const folder = before.get('folder') ?? dir;
    for (const load of groups) {
      entries.set(`group:${load.group}`, load.file);
      const key = `file:${join(folder, load.file)}`;
      entries.set(key, before.get(key) ?? ABSENT);
    }
    for (const file of files) {
      const key = `file:${file.path}`;
      const fingerprint = before.get(key);
      if (fingerprint !== undefined) entries.set(key, fingerprint === file.fingerprint ? fingerprint : MIXED);
      // The snapshot does not have this file, so only its time can show a write during the attempt.
      else if (isYoungerThan(file, begunAt - TIME_RESOLUTION)) entries.set(key, MIXED);
      else addFile(file);
    }
  }

  function addFile({ path, fingerprint }: LoadedFile): void {
    const key = `file:${path}`;
    entries.set(key, (entries.get(key) ?? fingerprint) === fingerprint ? fingerprint : MIXED);
  }
}

function isYoungerThan({ path, fingerprint }: LoadedFile, time: number): boolean {
  if (fingerprint === ABSENT) return false;
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat !== undefined && Math.max(stat.mtimeMs, stat.ctimeMs) >= time;
}
