// Lists the controllers of a folder for the process that serves them. When nothing has changed, a look at the folder
// costs one `stat` of the folder and of each folder in it. groups/naming.ts has the rules of names.
import { type Stats, statSync } from 'node:fs';
import { join } from 'node:path';
import { describeError, type Log } from '../base/log.ts';
import { SERVICE } from '../base/page-name.ts';
import { listControllers, listFolders } from './naming.ts';

/**
 * The most milliseconds between two steps of a file system's clock. Two changes within one step give a folder the same
 * times.
 */
const CLOCK_STEP = 100;

/** @returns a function that looks at the folder and returns the names of its files, by group */
export function createListing(dir: string, log: Log): () => ReadonlyMap<string, string> {
  let listing: ReadonlyMap<string, string> = new Map();
  let folders: readonly string[] = [];
  /** The states of the controllers folder and of the folders in it. */
  let states: readonly (Stats | undefined)[] = [];
  let changedAt = 0;
  /**
   * Whether the folder was already examined in this turn of the event loop. All requests of a turn arrived before the
   * turn began, so one look sees every file that existed when they were sent. A flood of unknown names costs one look
   * for each turn.
   */
  let isFresh = false;

  return () => {
    refresh();
    return listing;
  };

  function refresh(): void {
    if (isFresh) return;
    isFresh = true;
    setImmediate(() => {
      isFresh = false;
    });
    const previousStates = states;
    states = [dir, ...folders.map((name) => join(dir, name))].map(statFolder);
    if (!states.every((state, i) => isSameFolder(previousStates[i], state))) changedAt = performance.now();
    else if (performance.now() - changedAt > CLOCK_STEP) return;
    try {
      // The state of a new subfolder is read only at the next look, which then finds a change and lists again.
      listing = listControllers(dir);
      folders = listing.has(SERVICE) ? listFolders(dir) : [];
    } catch (error) {
      // The folder is missing or unreadable. Loaded groups still serve, and any other name is no group.
      log.debug('folder-unreadable', describeError(error));
      listing = new Map();
    }
  }
}

function statFolder(dir: string): Stats | undefined {
  try {
    return statSync(dir, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** Compares numbers, because a fingerprint as text would cost more than the `stat` itself in a flood of 404s. */
function isSameFolder(a: Stats | undefined, b: Stats | undefined): boolean {
  if (a === undefined || b === undefined) return false;
  return a.mtimeMs === b.mtimeMs && a.ctimeMs === b.ctimeMs && a.ino === b.ino && a.dev === b.dev;
}
