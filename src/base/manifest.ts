// Finds the package.json that applies to a folder: the one in the folder, or else the nearest one above the folder.
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export interface Manifest {
  readonly path: string;
  /** The fields of the file; empty when the file is not JSON. */
  readonly fields: Readonly<Record<string, unknown>>;
}

export function nearestManifest(start: string): Manifest | undefined {
  for (let folder = start, previous = ''; folder !== previous; previous = folder, folder = dirname(folder)) {
    const path = join(folder, 'package.json');
    try {
      return { path, fields: Object(JSON.parse(readFileSync(path, 'utf8'))) };
    } catch (error) {
      if (error instanceof SyntaxError) return { path, fields: {} };
    }
  }
  return undefined;
}
