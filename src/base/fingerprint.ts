// Detects that a file has changed, without reading the file. An atomic rename, `cp -p` and `rsync -t` can keep size and
// mtime, so ctime and inode are compared, too. Symbolic links are followed.
import { realpathSync, type Stats, statSync } from 'node:fs';
import { attempt } from './failure.ts';

/** Returns a text that changes with the file. Returns `'absent'` when the file does not exist or is not accessible. */
export function fingerprint(path: string): string {
  return fingerprintOf(statOf(path));
}

/** @param stat the result of `stat`, which follows links, and not of `lstat`; undefined when there is no file */
export function fingerprintOf(stat: Stats | undefined): string {
  return stat === undefined ? 'absent' : `${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeMs}:${stat.ctimeMs}`;
}

export function statOf(path: string): Stats | undefined {
  return attempt(() => statSync(path, { throwIfNoEntry: false }), undefined);
}

export function realPathOf(path: string): string {
  return attempt(() => realpathSync.native(path), path);
}
