// Finds the package.json that applies to a folder: the nearest one in the folder or above it.
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Fields } from './values.ts';

/** Lists the folders that contain a path, the nearest first. */
export function* foldersAbove(path: string): Generator<string> {
  for (let folder = dirname(path), below = path; folder !== below; below = folder, folder = dirname(folder))
    yield folder;
}

export function nearestManifest(start: string): { readonly path: string; readonly fields: Fields } | undefined {
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
