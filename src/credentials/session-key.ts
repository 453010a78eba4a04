// The file that holds the session key when no setting does: `session.key` in the data folder, made once, on first need.
// It does not know what the key is good for.

import { closeSync, fsyncSync, linkSync, openSync, readFileSync, unlinkSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { crypto } from '../base/builtins.ts';
import { describeFailure, errorCode } from '../base/failure.ts';

const MIN_LENGTH = 32;

/**
 * The text of the key file, `undefined` when there is none.
 *
 * @throws Error one line, when the file cannot be read or is too short to be a key
 */
export function readSessionKey(dataDir: string): string | undefined {
  const path = join(dataDir, 'session.key');
  let text: string;
  try {
    text = readFileSync(path, 'utf8').replace(/[\r\n]+$/, '');
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw new Error(`Cannot read ${path}: ${describeFailure(error)}`);
  }
  if (text.length < MIN_LENGTH) {
    throw new Error(`Cannot use ${path}: it has ${text.length} characters, a key has ${MIN_LENGTH} or more; remove it to have one made`);
  }
  return text;
}

/**
 * The text of the key file, which is made when there is none. Processes that come here at once agree on one key: each writes
 * its own under a name of its own, and `link` lets exactly one of them have the real name, whole.
 *
 * @throws Error one line
 */
export function makeSessionKey(dataDir: string): string {
  const path = join(dataDir, 'session.key');
  const draft = join(dataDir, `.session.key.${process.pid}-${crypto().randomBytes(6).toString('hex')}.tmp`);
  try {
    const file = openSync(draft, 'wx', 0o600);
    try {
      writeSync(file, `${crypto().randomBytes(32).toString('base64url')}\n`);
      fsyncSync(file);
      linkSync(draft, path);
    } finally {
      closeSync(file);
      unlinkSync(draft);
    }
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw new Error(`Cannot make ${path}: ${describeFailure(error)}`);
  }
  const text = readSessionKey(dataDir);
  if (text === undefined) throw new Error(`Cannot make ${path}: it vanished as it was made`);
  return text;
}
