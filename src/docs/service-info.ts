// What the document calls the service: the name, version and description in the package.json nearest to the
// controllers.
import { basename, dirname } from 'node:path';
import { nearestManifest } from '../base/manifest.ts';
import type { DocumentInfo } from './openapi.ts';

/** @param dir the controllers folder, absolute */
export function readServiceInfo(dir: string): DocumentInfo {
  const { name, version, description } = nearestManifest(dirname(dir))?.fields ?? {};
  return {
    title: text(name) ?? (basename(dirname(dir)) || 'API'),
    version: text(version) ?? '0.0.0',
    description: text(description),
  };
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value : undefined;
}
