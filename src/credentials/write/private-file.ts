import { closeSync, fsyncSync, openSync, writeFileSync } from 'node:fs';

/**
 * Writes a file that only its owner may read, such as a session key. When the function returns, the content survives a
 * power cut.
 */
export function writePrivateFile(path: string, text: string): void {
  const file = openSync(path, 'w', 0o600);
  try {
    writeFileSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
