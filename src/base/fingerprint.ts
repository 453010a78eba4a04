// What tells one state of a file from another without reading it. ctime and inode are in it because an atomic
// rename, `cp -p` and `rsync -t` can leave size and mtime as they were. Symbolic links are followed.
import { statSync } from 'node:fs';

/** `'absent'` where there is nothing at `path` or it may not be looked at; else an opaque text to compare. */
export function fingerprint(path: string): string {
  try {
    const stat = statSync(path, { throwIfNoEntry: false });
    return stat === undefined ? 'absent' : `${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeMs}:${stat.ctimeMs}`;
  } catch {
    return 'absent';
  }
}
