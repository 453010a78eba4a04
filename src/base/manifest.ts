// Finds the package.json that applies to a folder: the nearest one in the folder or above it.
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export interface Manifest {
  readonly path: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Lists the folders that contain a path, the nearest first. */
export function* foldersAbove(path: string): Generator<string> {
  for (let folder = dirname(path), below = path; folder !== below; below = folder, folder = dirname(folder))
    yield folder;
}

export function nearestManifest(start: string): Manifest | undefined {
  for (const folder of foldersAbove(join(start, 'package.json'))) {
    const path = join(folder, 'package.json');
    try {
      return { path, fields: Object(JSON.parse(readFileSync(path, 'utf8'))) };
    } catch (error) {
      if (error instanceof SyntaxError) return { path, fields: {} };
    }
  }
  return undefined;
}
