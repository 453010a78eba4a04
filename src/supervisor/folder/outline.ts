// What a folder shows without a look at each of its files: where it really is, where its links lead, and the times of
// it and of every folder that code was loaded from. A file that is made, removed, renamed or replaced by a rename
// changes it; one that is written in place does not.
import { type Stats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { ABSENT, realPathOf, type Snapshot } from './snapshot.ts';

/** What to look at: found by the last whole look. */
export interface Places {
  readonly folders: readonly string[];
  readonly links: readonly string[];
  /** Paths where an import looked in vain: their folders may be anybody's, so they are looked at themselves. */
  readonly missing: readonly string[];
}

export interface Outline {
  /** Equal exactly when the outline is. */
  readonly text: string;
  /** Path → which folder it is: another one of the same name has another identity. */
  readonly folders: ReadonlyMap<string, string>;
}

export function placesOf(snapshot: Snapshot): Places {
  const folders = new Set<string>();
  const links: string[] = [];
  const missing: string[] = [];
  for (const [key, value] of snapshot) {
    if (key === 'folder') folders.add(value);
    else if (key.startsWith('link:')) links.push(key.slice(5));
    else if (key.startsWith('tree:')) folders.add(key.slice(5));
    else if (key.startsWith('file:') && value === ABSENT) missing.push(key.slice(5));
    else if (key.startsWith('file:')) folders.add(dirname(key.slice(5)));
  }
  return { folders: [...folders], links, missing };
}

/** @param dir the folder as it was configured, which may be a symbolic link */
export function takeOutline(dir: string, { folders, links, missing }: Places): Outline {
  let text = realPathOf(dir);
  for (const link of links) text += `\n${realPathOf(link)}`;
  for (const path of missing) if (statOf(path) !== undefined) text += `\n${path}`;
  const identities = new Map<string, string>();
  for (const folder of folders) {
    const stat = statOf(folder);
    text += stat === undefined ? `\n${ABSENT}` : `\n${stat.dev} ${stat.ino} ${stat.mtimeMs} ${stat.ctimeMs}`;
    // A folder that is removed and made again often gets the number of the old one.
    if (stat?.isDirectory()) identities.set(folder, `${stat.dev} ${stat.ino} ${stat.birthtimeMs}`);
  }
  return { text, folders: identities };
}

function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
