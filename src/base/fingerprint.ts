// Detects that a file has changed, without reading it. An atomic rename, `cp -p` and `rsync -t` can keep size and
// mtime, so ctime and inode count, too. Symbolic links are followed. The ctime of a file with several names does not
// count: it changes when a name is added or removed, as each deployment does with the files that releases share.
import { type Stats, statSync } from 'node:fs';

/** Returns a text to compare; `'absent'`: the path does not exist, or may not be read. */
export function fingerprint(path: string): string {
  try {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat === undefined) return 'absent';
    return `${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeMs}:${hasSeveralNames(stat) ? '' : stat.ctimeMs}`;
  } catch {
    return 'absent';
  }
}

/** Returns when the file was changed last, in milliseconds. */
export function changeTime(stat: Stats): number {
  return hasSeveralNames(stat) ? stat.mtimeMs : Math.max(stat.mtimeMs, stat.ctimeMs);
}

function hasSeveralNames(stat: Stats): boolean {
  return stat.nlink > 1 && stat.isFile();
}
