// Creates a folder and its missing parents. Node's own recursive mkdir (up to version 26) is not used, because it never
// returns for a path such as /proc/x/y, where the first folder that is missing cannot be created.
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { errorCode } from './failure.ts';

/** @throws Error of the system, or an Error that names the existing folder in which no folder can be created */
export function makeFolder(path: string, mode = 0o777): void {
  try {
    mkdirSync(path, mode);
  } catch (error) {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
    if (errorCode(error) !== 'ENOENT') throw error;
    const parent = dirname(path);
    if (existsSync(parent)) throw new Error(`no folder can be made in ${parent}`);
    makeFolder(parent, mode);
    makeFolder(path, mode);
  }
}
