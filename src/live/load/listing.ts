// Lists the controllers of a folder for the process that serves them. While nothing changes, each further listing costs
// one `stat` of the folder and of each folder in it. naming.ts has the rules of names.
import type { Stats } from 'node:fs';
import { join } from 'node:path';
import { statOf } from '../../base/fingerprint.ts';
import { SERVICE } from '../../base/group-name.ts';
import { describeError, type Log } from '../../base/log.ts';
import { listControllers, listFolders } from './naming.ts';

/**
 * Maximum milliseconds of a step of a file system's clock. Two changes within one step leave the same times. The times
 * of FAT are even seconds, and those of sshfs whole ones.
 */
const stepOf = (stat: Stats | undefined) => ((stat?.mtimeMs ?? 0) % 1000 === 0 ? 2000 : 100);

/** @returns a function that returns the current names of the files, by group */
export function createListing(dir: string, log: Log): () => ReadonlyMap<string, string> {
  let listing: ReadonlyMap<string, string> = new Map();
  let folders: readonly string[] = [];
  /** The controllers folder comes first, then `folders`. */
  let folderStats: readonly (Stats | undefined)[] = [];
  let settledAt = 0;
  /** All requests of a turn were sent before it began, so one examination finds every file that existed then. */
  let isExaminedThisTurn = false;

  return () => {
    if (isExaminedThisTurn) return listing;
    isExaminedThisTurn = true;
    setImmediate(() => {
      isExaminedThisTurn = false;
    });
    const earlierStats = folderStats;
    folderStats = [dir, ...folders.map((name) => join(dir, name))].map(statOf);
    if (!folderStats.every((stat, i) => isSameFolder(earlierStats[i], stat)))
      settledAt = performance.now() + Math.max(...folderStats.map(stepOf));
    else if (performance.now() > settledAt) return listing;
    try {
      // A new subfolder has no entry in `folderStats` yet, so the next call lists everything once more.
      listing = listControllers(dir);
      folders = listing.has(SERVICE) ? listFolders(dir) : [];
    } catch (error) {
      // The folder is missing or unreadable. Loaded groups still serve, and no new group is found.
      log.debug('folder-unreadable', describeError(error));
      listing = new Map();
    }
    return listing;
  };
}

/** Compares numbers, because to make a fingerprint as a text would cost more than the `stat` itself. */
function isSameFolder(a: Stats | undefined, b: Stats | undefined): boolean {
  if (a === undefined || b === undefined) return false;
  return a.mtimeMs === b.mtimeMs && a.ctimeMs === b.ctimeMs && a.ino === b.ino && a.dev === b.dev;
}
