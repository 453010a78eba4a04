// Makes a rename durable. Called as the last step when a file is replaced.
import { closeSync, fsyncSync, openSync } from 'node:fs';
import { errorCode } from './failure.ts';

/** Writes a folder to the disk. A rename in the folder survives a power cut only after this write. */
export function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r');
  try {
    fsyncSync(handle);
  } catch (error) {
    // Some file systems cannot sync a folder, and fail with one of these codes.
    if (!['EINVAL', 'EPERM', 'ENOTSUP'].includes(errorCode(error) ?? '')) throw error;
  } finally {
    closeSync(handle);
  }
}
