// Detects that a file has changed, without reading the file. An atomic rename, `cp -p` and `rsync -t` can keep size and
// mtime, so ctime and inode are compared, too. Symbolic links are followed.
import { statSync } from 'node:fs';

/** Returns a text that changes with the file. Returns `'absent'` when the path does not exist or may not be read. */
export function fingerprint(path: string): string {
  try {
    const stat = statSync(path, { throwIfNoEntry: false });
    return stat === undefined ? 'absent' : `${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeMs}:${stat.ctimeMs}`;
  } catch {
    return 'absent';
  }
}
