// Reads the name, version and description of the service from the package.json nearest to the controllers.
import { basename, dirname } from 'node:path';
import { nearestManifest } from '../base/manifest.ts';
import type { DocumentInfo } from './openapi.ts';

/** @param dir the absolute path of the controllers folder */
export function readServiceInfo(dir: string): DocumentInfo {
  const { name, version, description } = nearestManifest(dirname(dir))?.fields ?? {};
  return {
    title: nonEmpty(name) ?? (basename(dirname(dir)) || 'API'),
    version: nonEmpty(version) ?? '0.0.0',
    description: nonEmpty(description),
  };
}

function nonEmpty(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value : undefined;
}
