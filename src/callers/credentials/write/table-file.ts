// Changes the file of the table under a lock, by a draft that is synced and renamed. So a reader sees the old or the
// new table, even if a process is killed or the disk is full. With STORE, src/operate/store changes the rows and writes
// this file as its replica.
import { chownSync, existsSync, rmSync, statSync } from 'node:fs';
import { open, readdir, readlink, realpath, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { isHttpError } from '../../../base/errors.ts';
import { describeFailure, errorCode } from '../../../base/failure.ts';
import { acquireLock, isDead, type Lock, type LockOptions } from '../../../base/folder-lock.ts';
import { bytesOf, readContentAsync } from '../../../base/polled-file.ts';
import { isSyncForbidden, NEW_FILE, replaceFile, syncFolder } from '../../../base/system.ts';
import { MAX_BYTES } from '../table/live-table.ts';
import { runInSlices } from '../table/slices.ts';
import { type EditableTable, type EditOptions, editTableText } from './editable-table.ts';

const TEXT_WITHOUT_ROWS = Buffer.from('{ "production": [] }\n');
/** Milliseconds after which another machine's draft of a lock is removed. A process waits only seconds for a lock. */
const DRAFT_LIFETIME_MS = 10 * 60_000;

export function tablePath(dataDir: string): string {
  return join(dataDir, 'production.json');
}

/** Thrown by a change that is not possible. Nothing is written. The message is for the person who wants the change. */
export class ChangeRefused extends Error {}

export interface UpdateOptions extends LockOptions, EditOptions {
  readonly maxBytes?: number;
}

/**
 * Changes the table. When the promise resolves, the change survives a power cut. Any number of processes may do so at
 * the same time: each waits for the lock, and fails when the wait takes too long.
 *
 * @param change changes the rows, synchronously; when it throws, nothing is written
 * @returns the value that `change` returned
 * @throws a ChangeRefused or HttpError of `change`; otherwise an Error with a message of one line
 */
export async function updateTable<T>(
  dataDir: string,
  change: (table: EditableTable) => T,
  { isCopyAllowed, known, maxBytes = MAX_BYTES, ...lockOptions }: UpdateOptions = {},
): Promise<T> {
  let path = tablePath(dataDir);
  try {
    path = await resolveTable(path);
    const lock = await acquireLock(`${path}.lock`, lockOptions);
    try {
      await removeDrafts(path);
      const bytes = bytesOf(await readContentAsync([path], MAX_BYTES)) ?? TEXT_WITHOUT_ROWS;
      const edit = editTableText(bytes, change, { isCopyAllowed, known });
      const { text, result } = await runInSlices(edit);
      if (text !== undefined) await replaceTable(path, text, lock, maxBytes);
      return result;
    } finally {
      await lock.release();
    }
  } catch (error) {
    if (error instanceof ChangeRefused || isHttpError(error)) throw error;
    throw new Error(`Cannot write ${path}: ${describeFailure(error)}`, { cause: error });
  }
}

/** Follows symbolic links, even to a missing file, because a rename over a link would replace the link. */
async function resolveTable(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
  const target = await readlink(path).catch(() => undefined);
  if (target !== undefined) return resolveTable(resolve(dirname(path), target));
  if (!existsSync(dirname(path))) throw new Error('the folder does not exist');
  return join(await realpath(dirname(path)), basename(path));
}

/**
 * Removes the drafts that other processes left.
 * - All drafts of the table are removed. This process holds the lock, so the writer of each draft was killed, or was
 *   paused until it lost the lock. A paused writer that resumes cannot undo this change, because its rename fails when
 *   the draft is gone.
 * - A draft of the lock is removed only if the process that wrote it is dead. A living process may be waiting for the
 *   lock with this draft.
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

async function replaceTable(path: string, text: Buffer, lock: Lock, maxBytes: number): Promise<void> {
  if (text.length > maxBytes) throw new Error(`it would be larger than ${maxBytes} bytes`);
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

async function writeDraft(draft: string, text: Buffer, path: string): Promise<void> {
  const file = await open(draft, NEW_FILE, 0o600);
  try {
    await file.writeFile(text);
    if (!isSyncForbidden) await file.sync();
  } finally {
    await file.close();
  }
  keepOwner(draft, path);
}

/** When root writes, the server, which runs as another user, must be able to read the table. */
function keepOwner(draft: string, path: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(path, { throwIfNoEntry: false }) ?? statSync(dirname(path));
  if (uid !== 0 || gid !== 0) chownSync(draft, uid, gid);
}
