// Says which folder may be PUBLIC_DIR. Everybody can read the folder, so it must not hold code, keys, or a project.
import { existsSync } from 'node:fs';
import { join, sep } from 'node:path';
import { describeFailure } from '../failure.ts';
import { realPathOf } from '../fingerprint.ts';

/** @returns why the folder may not be served; undefined when it may, or when there is no such folder yet */
export function whyNotPublic(dir: string, folders: Readonly<Record<string, string>>): string | undefined {
  const path = realPathOf(dir);
  for (const [name, folder] of Object.entries(folders)) {
    const other = realPathOf(folder);
    if (isIn(other, path) || isIn(path, other)) return `it is ${name}, or one of the two is in the other`;
  }
  try {
    const isProject = existsSync(join(path, 'package.json'));
    return isProject ? 'it has a package.json, so it is a project: name the folder of its build' : undefined;
  } catch (error) {
    return describeFailure(error);
  }
}

function isIn(path: string, folder: string): boolean {
  return `${path}${sep}`.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}
