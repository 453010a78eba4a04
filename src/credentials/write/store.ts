// The only writer of the table: under the lock, to a draft beside it, fsynced, renamed over it. A reader sees the old
// table or the new one, whole, whatever is killed and however full the disk is. What a change means is changes.ts.
import { chownSync, renameSync, rmSync, statSync } from 'node:fs';
import { open, readdir, readFile, readlink, realpath, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { isHttpError } from '../../base/errors.ts';
import { describeFailure, errorCode } from '../../base/failure.ts';
import { syncFolder } from '../../base/sync-folder.ts';
import { MOST_BYTES } from '../table/live-table.ts';
import { type EditableTable, editTable } from './editable-table.ts';
import { acquireLock, isDead, type Lock, type LockOptions } from './lock.ts';

const EMPTY_TEXT = Buffer.from('{ "production": [] }\n');
/** A process waits for a lock for seconds. After this time the draft of another machine's lock is abandoned. */
const DRAFT_LIFETIME_MS = 10 * 60_000;

export function tablePath(dataDir: string): string {
  return join(dataDir, 'production.json');
}

/** What stands in the way of a write, as one line for people. */
export class StoreError extends Error {}

/** What a change throws to write nothing: the command and the client get it as it is. */
export class ChangeRefused extends Error {}

/**
 * Changes the table, durably: when it returns, the change survives a power cut. Several processes may
 * do it at once: each waits for the lock, and fails when that takes too long. The test runs eight.
 *
 * @param change sees the rows and changes them, synchronously; what it throws leaves the table as it is
 * @returns what `change` returned
 * @throws StoreError when the table could not be read or written; it is as it was, or as another process left it
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

/**
 * Through symbolic links, so that the rename replaces the table and not the link to it; also through one that leads to
 * no file yet.
 */
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
    if (stats.size > MOST_BYTES) throw tooLarge();
    return await readFile(path);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return EMPTY_TEXT;
    throw error;
  }
}

/** What is larger no worker would read again. */
function tooLarge(): Error {
  return new Error(`it would be larger than ${MOST_BYTES} bytes`);
}

function draftPath(path: string, holder: string): string {
  return join(dirname(path), `.${basename(path)}.${holder}.tmp`);
}

/**
 * Removes what killed processes left. Drafts of the table are written under the lock, and the lock is ours: their
 * writer is dead, or stood still and lost the lock; then the missing draft is what stops it from writing over our
 * change. Drafts of locks may be alive.
 */
async function removeDrafts(path: string): Promise<void> {
  const ofTable = `.${basename(path)}.`;
  const ofLock = `${ofTable}lock.`;
  for (const name of await readdir(dirname(path))) {
    if (!name.startsWith(ofTable) || !name.endsWith('.tmp')) continue;
    const draft = join(dirname(path), name);
    if (name.startsWith(ofLock) && !isDead(name.slice(ofLock.length, -'.tmp'.length), await isAbandoned(draft)))
      continue;
    await rm(draft, { recursive: true, force: true });
  }
}

async function isAbandoned(draft: string): Promise<boolean> {
  const made = await stat(draft).catch(() => undefined);
  return made !== undefined && Date.now() - made.mtimeMs > DRAFT_LIFETIME_MS;
}

async function replaceTable(path: string, text: string, lock: Lock): Promise<void> {
  if (Buffer.byteLength(text) > MOST_BYTES) throw tooLarge();
  const draft = draftPath(path, lock.holder);
  try {
    await writeDraft(draft, text, path);
    if (!(await lock.isHeld())) throw new Error('the lock was lost');
    renameSync(draft, path);
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
 * When root runs the command for a server that runs as somebody else, the server must still be able to read its table.
 */
function keepOwner(draft: string, path: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(path, { throwIfNoEntry: false }) ?? statSync(dirname(path));
  if (uid !== 0 || gid !== 0) chownSync(draft, uid, gid);
}
