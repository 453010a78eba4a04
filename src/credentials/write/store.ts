// The only writer of the table: under the lock, to a draft beside it, made durable, renamed over it. Whoever reads sees the
// old table or the new one, whole, whatever is killed or full. It does not know what a change means: see changes.ts.
import { chownSync, closeSync, fchmodSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { readdir, realpath, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isHttpError } from '../../base/errors.ts';
import { describeFailure, errorCode } from '../../base/failure.ts';
import { decodeContent } from '../table-file.ts';
import { acquireLock, isDead, type Lock, type LockOptions } from './lock.ts';
import { type EditableTable, editTable } from './table-text.ts';

const EMPTY_TEXT = '{ "production": [] }\n';

export function tablePath(dataDir: string): string {
  return join(dataDir, 'production.json');
}

/** What stands in the way of a write, as one line for people. */
export class StoreError extends Error {}

/** What a change throws to write nothing: the command and the client get it as it is. */
export class ChangeRefused extends Error {}

/**
 * Changes the table, durably: when it returns, the change survives a power cut. Eight processes may do it at once.
 *
 * @param change sees the rows and changes them, synchronously; what it throws leaves the table as it is
 * @returns what `change` returned
 * @throws StoreError when the table could not be read or written; it is as it was, or as another process left it
 */
export async function updateTable<T>(dataDir: string, change: (table: EditableTable) => T, options?: LockOptions): Promise<T> {
  let path = tablePath(dataDir);
  try {
    path = await resolveTable(path);
    const lock = await acquireLock(`${path}.lock`, options);
    try {
      await removeDrafts(path);
      const { text, result } = editTable(readOrEmpty(path), change);
      if (text !== undefined) await replaceTable(path, text, lock);
      return result;
    } finally {
      await lock.release();
    }
  } catch (error) {
    if (error instanceof ChangeRefused || isHttpError(error)) throw error;
    throw new StoreError(`Cannot write ${path}: ${describeFailure(error)}`, { cause: error });
  }
}

/** Through symbolic links, so that the rename replaces the table and not the link to it. */
async function resolveTable(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
  try {
    return join(await realpath(dirname(path)), basename(path));
  } catch (error) {
    if (errorCode(error) === 'ENOENT') throw new Error('the folder does not exist');
    throw error;
  }
}

function readOrEmpty(path: string): string {
  try {
    if (!statSync(path).isFile()) throw new Error('it is not a regular file');
    return decodeContent(readFileSync(path));
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return EMPTY_TEXT;
    throw error;
  }
}

function draftPath(path: string, holder: string): string {
  return join(dirname(path), `.${basename(path)}.${holder}.tmp`);
}

/**
 * Removes what killed processes left. Drafts of the table are written under the lock, and the lock is ours: whoever they belong to is dead,
 * or stood still and lost the lock; then the missing draft is what stops it from writing over our change. Drafts of locks may be alive.
 */
async function removeDrafts(path: string): Promise<void> {
  const ofTable = `.${basename(path)}.`;
  const ofLock = `${ofTable}lock.`;
  for (const name of await readdir(dirname(path))) {
    if (!name.startsWith(ofTable) || !name.endsWith('.tmp')) continue;
    if (name.startsWith(ofLock) && !isDead(name.slice(ofLock.length, -'.tmp'.length), false)) continue;
    await rm(join(dirname(path), name), { recursive: true, force: true });
  }
}

async function replaceTable(path: string, text: string, lock: Lock): Promise<void> {
  const draft = draftPath(path, lock.holder);
  try {
    writeDraft(draft, text, path);
    if (!(await lock.isHeld())) throw new Error('the lock was lost');
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
  syncFolder(dirname(path));
}

function writeDraft(draft: string, text: string, path: string): void {
  const file = openSync(draft, 'wx', 0o600);
  try {
    fchmodSync(file, 0o600);
    writeFileSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  keepOwner(draft, path);
}

/** When root runs the command for a server that runs as somebody else, the server must still be able to read its table. */
function keepOwner(draft: string, path: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(path, { throwIfNoEntry: false }) ?? statSync(dirname(path));
  if (uid !== 0 || gid !== 0) chownSync(draft, uid, gid);
}

/** A rename survives a power cut only once the folder is on the disk too. */
function syncFolder(folder: string): void {
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
