// Changes the file of the credentials table. (With a store of several machines, src/store changes the rows, and writes
// this file as a copy.) Each change is made under a lock. The new text is first written to a draft,
// a temporary file in the same folder. The draft is synced to disk and renamed over the table. So a reader sees the old
// or the new table, never a part, even if a process is killed or the disk is full. changes.ts contains the changes.
import { chownSync, rmSync, statSync } from 'node:fs';
import { open, readdir, readFile, readlink, realpath, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { isHttpError } from '../../base/errors.ts';
import { describeFailure, errorCode } from '../../base/failure.ts';
import { replaceFile, syncFolder } from '../../base/system.ts';
import { MAX_BYTES } from '../table/live-table.ts';
import { type EditableTable, editTable } from './editable-table.ts';
import { acquireLock, isDead, type Lock, type LockOptions } from './lock.ts';

/** The text that is used in place of a missing file: a table without rows. */
const TEXT_WITHOUT_ROWS = Buffer.from('{ "production": [] }\n');
/**
 * The age in milliseconds after which the draft of a lock (lock.ts) is treated as abandoned: a process waits for a lock
 * only for seconds. The age is used only for drafts of other machines, because their processes cannot be checked.
 */
const DRAFT_LIFETIME_MS = 10 * 60_000;

export function tablePath(dataDir: string): string {
  return join(dataDir, 'production.json');
}

/** The error for a table that could not be read or written. Its message is the reason, in one line. */
export class StoreError extends Error {}

/** Thrown by a change that is not possible. Nothing is written, and the message is for the caller. */
export class ChangeRefused extends Error {}

/**
 * Changes the table. When the promise resolves, the change survives a power cut. Any number of processes may call this
 * at the same time: each waits for the lock, and fails when that takes too long.
 *
 * @param change changes the rows, synchronously; when it throws, nothing is written
 * @returns the value that `change` returned
 * @throws StoreError when the table could not be read or written; then this call has not changed it
 */
export async function updateTable<T>(
  dataDir: string,
  change: (table: EditableTable) => T,
  options?: LockOptions,
): Promise<T> {
  let path = tablePath(dataDir);
  try {
    path = await resolveTable(path);
    const lock = await acquireLock(`${path}.lock`, options);
    try {
      await removeDrafts(path);
      const { text, result } = editTable(await readOrEmpty(path), change);
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

/** Follows symbolic links, also to a missing file, so that the rename replaces the table and not the link. */
async function resolveTable(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
  const target = await readlink(path).catch(() => undefined);
  if (target !== undefined) return resolveTable(resolve(dirname(path), target));
  try {
    return join(await realpath(dirname(path)), basename(path));
  } catch (error) {
    if (errorCode(error) === 'ENOENT') throw new Error('the folder does not exist');
    throw error;
  }
}

async function readOrEmpty(path: string): Promise<Buffer> {
  try {
    const stats = await stat(path);
    if (!stats.isFile()) throw new Error('it is not a regular file');
    if (stats.size > MAX_BYTES) throw tooLarge();
    return await readFile(path);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return TEXT_WITHOUT_ROWS;
    throw error;
  }
}

/** Makes the error for a table of more than `MAX_BYTES`, the most bytes that workers read. */
function tooLarge(): Error {
  return new Error(`it would be larger than ${MAX_BYTES} bytes`);
}

/**
 * Removes the drafts that other processes left.
 * - All drafts of the table are removed. This process holds the lock, so the writer of each draft was killed, or was
 *   paused until it lost the lock. A paused writer that resumes fails, because its draft is gone. So that writer cannot
 *   undo this change.
 * - A draft of the lock is removed only if its process is dead. A process writes this draft before it holds the lock,
 *   so a living process may still need the draft.
 */
async function removeDrafts(path: string): Promise<void> {
  const tablePrefix = `.${basename(path)}.`;
  const lockPrefix = `${tablePrefix}lock.`;
  for (const name of await readdir(dirname(path))) {
    if (!name.startsWith(tablePrefix) || !name.endsWith('.tmp')) continue;
    const draft = join(dirname(path), name);
    if (name.startsWith(lockPrefix) && !isDead(name.slice(lockPrefix.length, -'.tmp'.length), await isOld(draft)))
      continue;
    await rm(draft, { recursive: true, force: true });
  }
}

async function isOld(draft: string): Promise<boolean> {
  const stats = await stat(draft).catch(() => undefined);
  return stats !== undefined && Date.now() - stats.mtimeMs > DRAFT_LIFETIME_MS;
}

async function replaceTable(path: string, text: string, lock: Lock): Promise<void> {
  if (Buffer.byteLength(text) > MAX_BYTES) throw tooLarge();
  const draft = join(dirname(path), `.${basename(path)}.${lock.holder}.tmp`);
  try {
    await writeDraft(draft, text, path);
    if (!(await lock.isHeld())) throw new Error('the lock was lost');
    replaceFile(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
  syncFolder(dirname(path));
}

async function writeDraft(draft: string, text: string, path: string): Promise<void> {
  const file = await open(draft, 'wx', 0o600);
  try {
    await file.chmod(0o600);
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  keepOwner(draft, path);
}

/**
 * When root writes, gives the draft the owner of the table. Otherwise the server, which runs as another user, could not
 * read the new table.
 */
function keepOwner(draft: string, path: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(path, { throwIfNoEntry: false }) ?? statSync(dirname(path));
  if (uid !== 0 || gid !== 0) chownSync(draft, uid, gid);
}
