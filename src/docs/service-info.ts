// What the document calls the service: the name, version and description in the package.json nearest to the controllers.
import { readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { DocumentInfo } from './openapi.ts';

/** @param dir the controllers folder, absolute */
export function readServiceInfo(dir: string): DocumentInfo {
  const { name, version, description } = nearestManifest(dirname(dir));
  return {
    title: text(name) ?? (basename(dirname(dir)) || 'API'),
    version: text(version) ?? '0.0.0',
    description: text(description),
  };
}

interface Manifest {
  readonly name?: unknown;
  readonly version?: unknown;
  readonly description?: unknown;
}

function nearestManifest(folder: string): Manifest {
  try {
    const manifest: unknown = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    return typeof manifest === 'object' && manifest !== null ? manifest : {};
  } catch {
    // There is none here, or it cannot be read.
    return dirname(folder) === folder ? {} : nearestManifest(dirname(folder));
  }
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value : undefined;
}
