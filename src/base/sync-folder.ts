// The last step of replacing a file for good. It knows nothing of what the file is.
import { closeSync, fsyncSync, openSync } from 'node:fs';
import { errorCode } from './failure.ts';

/** A rename survives a power cut only once the folder is on the disk too. */
export function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r');
  try {
    fsyncSync(handle);
  } catch (error) {
    // Some file systems cannot sync a folder, and then have nothing to sync.
    if (!['EINVAL', 'EPERM', 'ENOTSUP'].includes(errorCode(error) ?? '')) throw error;
  } finally {
    closeSync(handle);
  }
}
