// Makes a folder with what is missing above it. Node's own recursive mkdir does not return where a file system has no
// room for a folder although the one above is there, as /proc (all versions up to 26).
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { errorCode } from './failure.ts';

/** @throws Error of the system, or one that says which folder takes none */
export function makeFolder(path: string, mode = 0o777): void {
  try {
    mkdirSync(path, mode);
  } catch (error) {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
    if (errorCode(error) !== 'ENOENT') throw error;
    const above = dirname(path);
    if (existsSync(above)) throw new Error(`no folder can be made in ${above}`);
    makeFolder(above, mode);
    makeFolder(path, mode);
  }
}
