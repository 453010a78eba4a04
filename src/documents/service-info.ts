// Reads the name, version and description of the service from the nearest package.json above the controllers folder.
import { basename, dirname } from 'node:path';
import { nearestManifest } from '../base/manifest.ts';
import type { DocumentInfo } from './documented.ts';

export function readServiceInfo(controllersFolder: string): DocumentInfo {
  const projectFolder = dirname(controllersFolder);
  const { name, version, description } = nearestManifest(projectFolder)?.fields ?? {};
  return {
    title: nonEmpty(name) ?? (basename(projectFolder) || 'API'),
    version: nonEmpty(version) ?? '0.0.0',
    description: nonEmpty(description),
  };
}

function nonEmpty(value: unknown): string | undefined {
  return typeof value === 'string' && value.trim() !== '' ? value : undefined;
}
