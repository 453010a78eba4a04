// The list of credentials that `gatefold credentials revoke --here` has revoked. A row in the list is refused even if
// it is live in the store, until `--undo` removes it from the list.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { errorCode } from '../../../base/failure.ts';
import { parseObject } from '../../../base/values.ts';
import { writeWholeFile } from '../../../base/whole-file.ts';

export function revokedHerePath(dataDir: string): string {
  return join(dataDir, 'revoked-here.json');
}

/**
 * @returns row id → time of the revocation (ISO 8601); empty when there is no file
 * @throws Error when the file exists and is not such a list, because an empty map would undo the revocations
 */
export function readRevokedHere(dataDir: string): ReadonlyMap<string, string> {
  let text: string;
  try {
    text = readFileSync(revokedHerePath(dataDir), 'utf8');
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return new Map();
    throw error;
  }
  const times = parseObject(text);
  if (times === undefined || !Object.values(times).every((time) => typeof time === 'string' && time !== ''))
    throw new Error(`Cannot read ${revokedHerePath(dataDir)}: it is not a JSON object of ids and times`);
  return new Map(Object.entries(times as Record<string, string>));
}

export function writeRevokedHere(dataDir: string, revoked: ReadonlyMap<string, string>): void {
  const text = `${JSON.stringify(Object.fromEntries(revoked), undefined, 1)}\n`;
  writeWholeFile(revokedHerePath(dataDir), text);
}
