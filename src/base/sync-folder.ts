// Makes the replacing of a file durable, as its last step.
import { closeSync, fsyncSync, openSync } from 'node:fs';
import { errorCode } from './failure.ts';

/** Writes a folder to the disk. Only then does a rename in it survive a power cut. */
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
