// Reads and writes the list of credentials that `gatefold credentials revoke --here` has revoked. Such a revocation is
// valid only on this machine and does not need the store. The list wins over the table of the store, until `--undo`
// removes an entry.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { errorCode } from '../../base/failure.ts';
import { replaceFile } from '../../base/system.ts';

export function revokedHerePath(dataDir: string): string {
  return join(dataDir, 'revoked-here.json');
}

/**
 * Returns the revocations: the id of a row → the time of its revocation.
 *
 * @throws Error of one line, when the file exists and is not such a list: ignoring the mistake would lose revocations
 */
export function readRevokedHere(dataDir: string): ReadonlyMap<string, string> {
  let text: string;
  try {
    text = readFileSync(revokedHerePath(dataDir), 'utf8');
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return new Map();
    throw error;
  }
  try {
    return new Map(Object.entries(JSON.parse(text) as Record<string, string>));
  } catch {
    throw new Error(`Cannot read ${revokedHerePath(dataDir)}: it is not a JSON object of ids and times`);
  }
}

export function writeRevokedHere(dataDir: string, revoked: ReadonlyMap<string, string>): void {
  const draft = `${revokedHerePath(dataDir)}.${process.pid}.tmp`;
  writeFileSync(draft, `${JSON.stringify(Object.fromEntries(revoked), undefined, 1)}\n`, { mode: 0o600 });
  replaceFile(draft, revokedHerePath(dataDir));
}
