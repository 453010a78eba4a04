// The outline is a short text about the controllers folder. The text is cheap to make, because no file is examined. The
// outline has the real path of the folder and of its links, and the times of every folder with code. A file that is
// created, removed or renamed changes the outline. A write to an existing file does not.
import { dirname } from 'node:path';
import { statOf } from '../../base/fingerprint.ts';
import { ABSENT, realPathOf, type Snapshot } from './snapshot.ts';

/** The paths that an outline covers, from the last snapshot (snapshot.ts), which examines the files, too. */
export interface OutlinePaths {
  readonly folders: readonly string[];
  readonly links: readonly string[];
  /**
   * Paths that an import looked for and did not find. The outline has the paths themselves and not the times of their
   * folders, because other programs may write into these folders.
   */
  readonly missing: readonly string[];
}

export interface Outline {
  readonly text: string;
  /** Path → identity. A new folder at the same path has another identity. */
  readonly folders: ReadonlyMap<string, string>;
}

export function outlinePathsOf(snapshot: Snapshot): OutlinePaths {
  const folders = new Set<string>();
  const links: string[] = [];
  const missing: string[] = [];
  for (const [key, value] of snapshot) {
    // `link:`, `tree:` and `file:` have five characters.
    if (key === 'folder') folders.add(value);
    else if (key.startsWith('link:')) links.push(key.slice(5));
    else if (key.startsWith('tree:')) folders.add(key.slice(5));
    else if (key.startsWith('file:') && value === ABSENT) missing.push(key.slice(5));
    else if (key.startsWith('file:')) folders.add(dirname(key.slice(5)));
  }
  return { folders: [...folders], links, missing };
}

/** @param dir the folder as it was configured, which may be a symbolic link */
export function takeOutline(dir: string, { folders, links, missing }: OutlinePaths): Outline {
  let text = realPathOf(dir);
  for (const link of links) text += `\n${realPathOf(link)}`;
  for (const path of missing) if (statOf(path) !== undefined) text += `\n${path}`;
  const identities = new Map<string, string>();
  for (const folder of folders) {
    const stat = statOf(folder);
    text += stat === undefined ? `\n${ABSENT}` : `\n${stat.dev} ${stat.ino} ${stat.mtimeMs} ${stat.ctimeMs}`;
    // A folder that is removed and created again often gets the inode number of the old one.
    if (stat?.isDirectory()) identities.set(folder, `${stat.dev} ${stat.ino} ${stat.birthtimeMs}`);
  }
  return { text, folders: identities };
}
