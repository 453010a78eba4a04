// Finds the package.json that applies to a folder. The file is in the folder, or in the nearest folder above with one.
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export interface Manifest {
  readonly path: string;
  /** `fields` is empty when the file is not JSON. */
  readonly fields: Readonly<Record<string, unknown>>;
}

/** @returns undefined when no package.json can be read */
export function nearestManifest(folder: string): Manifest | undefined {
  for (let dir = folder, previous = ''; dir !== previous; previous = dir, dir = dirname(dir)) {
    const path = join(dir, 'package.json');
    try {
      return { path, fields: Object(JSON.parse(readFileSync(path, 'utf8'))) };
    } catch (error) {
      if (error instanceof SyntaxError) return { path, fields: {} };
    }
  }
  return undefined;
}
