// The replica of the store, in memory and in the file `production.json`. With it, a machine serves without the store.
// - A standby that is promoted can lack changes (lost-changes.ts). The replica keeps those that this machine has seen.
// - `gatefold credentials revoke --here` makes revocations for this machine alone. The file has them, but the store and
//   the rows in memory do not.
import * as fs from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../../base/failure.ts';
import type { Log } from '../../base/log.ts';
import { makeFolder } from '../../base/make-folder.ts';
import { writeWholeFile } from '../../base/whole-file.ts';
import { MAX_BYTES } from '../../callers/credentials/table/live-table.ts';
import { readRevokedHere, revokedHerePath } from '../../callers/credentials/write/local-revocations.ts';
import { tablePath } from '../../callers/credentials/write/table-file.ts';
import * as rowEntries from './entries.ts';
import { isSameRow, noteEndedHashes, readEndedHashes, withLostChanges } from './lost-changes.ts';
import { RowTexts } from './row-texts.ts';
import { ROW_ROOM } from './schema.ts';
import type { Changes, Snapshot } from './store.ts';

export type Replica = ReturnType<typeof openReplica>;

/** Milliseconds between two touches of the file `.store-proof`, whose time says when the rows were last complete. */
const PROOF_INTERVAL = 10_000;
const SYNC_DELAY_MS = 1000;
/** The begin of each file that `copyText` makes. */
const COPY_START = '{"store":';
/** At most this many names of missing rows are in one log line. */
const MAX_NAMES = 20;

/** @throws Error with a message of one line, when the file exists and is not a table */
export function openReplica(dataDir: string, log: Log, maxBytes = MAX_BYTES) {
  const path = tablePath(dataDir);
  const proofPath = proofPathOf(dataDir);
  const fileTable = readFileOrSetAside(dataDir, log);
  const hasFile = fileTable !== undefined;
  let version = fileTable?.copyMark?.version;
  let rows = new Map(fileTable?.rows);
  // Only a copy of the store can have revocations by `revoke --here`.
  const revokedBefore = version === undefined ? new Map() : readRevokedHere(dataDir);
  for (const [name, row] of revokedBefore.size === 0 ? [] : rows) {
    const time = revokedBefore.get(rowEntries.idOfEntry(name, row));
    if (time !== undefined && rowEntries.revocationTime(row) === time)
      rows.set(name, rowEntries.withRevocation(row, undefined));
  }
  let isDirty = true;
  /** When the list of `revoke --here` was last changed, as the last `publish` has seen. */
  let publishedListState: string | undefined;
  let isSyncDue = false;
  // Times are those of `performance.now()`. A table from before this machine used the store counts as complete.
  let completeAt: number | undefined;
  if (version !== undefined) completeAt = proofTime(proofPath);
  else if (hasFile) completeAt = performance.now();
  let touchedAt = Number.NEGATIVE_INFINITY;
  /** The rows that the store has lost changes of, as this machine has seen them. */
  const lost = new Map<string, string>();
  const ended = readEndedHashes(fileTable?.copyMark?.replaced);
  let texts = new RowTexts();
  let bytes = 0;
  for (const [name, row] of rows) {
    bytes += Buffer.byteLength(row) + ROW_ROOM;
    texts.note(name, true);
  }
  let leftOut = 0;

  /** Leaves out the newest rows when workers could not read the file. All other rows, and revocations, stay live. */
  function listRows(textOf: (name: string) => string): readonly Buffer[] {
    let sum = 0;
    const isFitting = (row: string) => {
      sum += Buffer.byteLength(row) + ROW_ROOM;
      return sum <= maxBytes;
    };
    const fitting = bytes <= maxBytes ? undefined : Array.from(rows.keys(), textOf).filter(isFitting);
    const count = fitting === undefined ? 0 : rows.size - fitting.length;
    const effect = 'their tokens are refused';
    if (count > 0 && leftOut === 0)
      log.error('store-table-full', { bytes, limit: maxBytes, rows_left_out: count, effect });
    leftOut = count;
    return fitting === undefined ? texts.list(textOf) : [Buffer.from(fitting.join(',\n'))];
  }

  /** Logs what a new history lacks, and keeps its revocations and rotations. */
  function keepLostChanges(next: Snapshot['entries']): void {
    const names = { missing: [] as string[], older: [] as string[], revoked: [] as string[], rotated: [] as string[] };
    const seenNumber = Number(version?.split('/').at(-1) || Number.POSITIVE_INFINITY);
    for (const [name, row] of rows) {
      const entry = next.get(name);
      if (entry === undefined) names.missing.push(name);
      if (entry === undefined || isSameRow(entry.value, row)) continue;
      // A change with a larger number was made in the new history.
      if (Number(entry.version) <= seenNumber) names.older.push(name);
      const restored = withLostChanges(entry.value, row, ended.get(name));
      if (restored === entry.value) continue;
      lost.set(name, row);
      if (rowEntries.isRevoked(row) && !rowEntries.isRevoked(entry.value)) names.revoked.push(name);
      else names.rotated.push(name);
    }
    const fieldsOf = (list: readonly string[]) => ({ count: list.length, names: list.slice(0, MAX_NAMES) });
    if (names.missing.length > 0) log.warn('store-rows-missing', fieldsOf(names.missing));
    if (names.older.length > 0) log.warn('store-rows-older', fieldsOf(names.older));
    if (names.revoked.length > 0)
      log.warn('store-revocations-lost', { count: names.revoked.length, effect: 'they are written again' });
    const effect = 'the replaced secrets stay refused, and the rotations are written again';
    if (names.rotated.length > 0) log.warn('store-rotations-lost', { ...fieldsOf(names.rotated), effect });
  }

  /** Returns a row of the store with the changes that it lacks. Returns the same text when it lacks none. */
  function restore(name: string, row: string): string {
    const seen = lost.get(name);
    return seen === undefined ? row : withLostChanges(row, seen, ended.get(name));
  }

  /** Later, because a revocation must not wait for the disk. A power cut loses nothing that the store lacks. */
  function syncLater(): void {
    if (isSyncDue) return;
    isSyncDue = true;
    setTimeout(() => {
      isSyncDue = false;
      // An error is ignored, because the store has every change that this sync would save.
      open(path, 'r+')
        .then((file) => file.sync().finally(() => file.close()))
        .catch(() => {});
    }, SYNC_DELAY_MS).unref();
  }

  function setRow(name: string, row: string | undefined): void {
    const before = rows.get(name);
    if (before !== undefined) bytes -= Buffer.byteLength(before) + ROW_ROOM;
    if (row === undefined) rows.delete(name);
    else {
      rows.set(name, row);
      bytes += Buffer.byteLength(row) + ROW_ROOM;
    }
    texts.note(name, row !== undefined);
    // A change is no longer lost when the store has it again, or when the row is gone.
    if (lost.has(name) && (row === undefined || restore(name, row) === row)) lost.delete(name);
  }

  return {
    version: () => version,
    /** Whether workers have a table: a copy of the store, or one from the time before this machine used the store. */
    hasTable: () => version !== undefined || hasFile,
    /** The JSON of each row by its name. */
    rows: (): ReadonlyMap<string, string> => rows,
    /**
     * Replaces all rows by the rows of the store.
     *
     * @param isSuccessor whether the snapshot has every change that this machine has seen
     * @throws Error when the file has rows of its own that the store lacks
     */
    replaceAll({ version: next, entries }: Snapshot, isSuccessor: boolean): void {
      // Without a version, the rows are from the time before this machine used the store.
      const missingCount = version === undefined ? [...rows.keys()].filter((name) => !entries.has(name)).length : 0;
      if (missingCount > 0)
        throw new Error(
          `${path} has ${missingCount} rows of its own that the store lacks. Run: gatefold store import, or move the file away`,
        );
      if (!isSuccessor) keepLostChanges(entries);
      else if (version !== undefined)
        for (const [name, row] of rows) noteEndedHashes(ended, name, row, entries.get(name)?.value);
      rows = new Map();
      texts = new RowTexts();
      bytes = 0;
      for (const [name, { value }] of entries) setRow(name, value);
      version = next;
      isDirty = true;
    },
    apply({ changes, version: next }: Changes): void {
      isDirty ||= changes.length > 0;
      for (const [name, row] of changes) {
        noteEndedHashes(ended, name, rows.get(name), row);
        setRow(name, row);
      }
      version = next;
    },
    /** The names of rows that lack a revocation or a rotation that this machine has seen. */
    lostChanges: () => [...lost.keys()],
    restore,
    /** The bytes of the table, with room for the revocation of each row. */
    bytes: () => bytes,
    /**
     * Writes the file if the rows or the revocations by `revoke --here` have changed since the last call.
     *
     * @returns whether the file was written
     * @throws the error of a system call
     */
    publish(): boolean {
      const listStats = fs.statSync(revokedHerePath(dataDir), { bigint: true, throwIfNoEntry: false });
      // Two writes can have the same time, but each makes a new file.
      const listState = listStats && `${listStats.ino} ${listStats.ctimeNs} ${listStats.size}`;
      if (!isDirty && listState === publishedListState) return false;
      const revokedHere = readRevokedHere(dataDir);
      if (listState !== publishedListState) texts.forgetTexts();
      const list = listRows((name) => {
        const row = restore(name, rows.get(name) as string);
        const time = revokedHere.get(rowEntries.idOfEntry(name, row));
        return time === undefined || rowEntries.isRevoked(row) ? row : rowEntries.withRevocation(row, time);
      });
      // With an empty version, the next process reads all rows of the store, and so finds the lost changes again.
      const replaced = ended.size === 0 ? {} : { replaced: Object.fromEntries(ended) };
      const copyMark = { version: lost.size > 0 ? '' : (version as string), ...replaced };
      // A writer of the table removes all drafts whose names begin like that of the table.
      const draft = join(dataDir, '.replica.tmp');
      makeFolder(dataDir, 0o700);
      writeWholeFile(path, rowEntries.copyText(list, copyMark), { isDurable: false, draft });
      syncLater();
      publishedListState = listState;
      isDirty = false;
      return true;
    },
    /** Records that the rows equal those of the store at this moment. */
    markComplete(): void {
      completeAt = performance.now();
      if (completeAt - touchedAt < PROOF_INTERVAL) return;
      touchedAt = completeAt;
      touchFile(proofPath);
    },
    /** Milliseconds since the last `markComplete`, in this process or an earlier one; null if there was none. */
    age: () => (completeAt === undefined ? null : performance.now() - completeAt),
  };
}

/** The file whose time says when the rows were last complete. host.ts writes its text. */
export function proofPathOf(dataDir: string): string {
  return join(dataDir, '.store-proof');
}

/**
 * Reads the file. A copy of the store that is too large or broken is set aside, because the store has all its rows.
 *
 * @throws Error with a message of one line, when the file is no table, and can have rows that the store lacks
 */
function readFileOrSetAside(dataDir: string, log: Log): rowEntries.TableFile | undefined {
  const path = tablePath(dataDir);
  try {
    return rowEntries.readTableFile(dataDir);
  } catch (error) {
    if (!fs.existsSync(proofPathOf(dataDir)) && !beginsLikeCopy(path)) throw error;
    const setAside = `${path}.unreadable`;
    fs.renameSync(path, setAside);
    const reason = (error as Error).message;
    log.warn('store-copy-unreadable', { reason, file: setAside, effect: 'the store makes a new copy' });
    return undefined;
  }
}

function beginsLikeCopy(path: string): boolean {
  const file = fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
  try {
    const bytes = Buffer.alloc(COPY_START.length);
    fs.readSync(file, bytes);
    return bytes.toString('latin1') === COPY_START;
  } finally {
    fs.closeSync(file);
  }
}

/** Sets the time of a file to now. After an error, the file has an older time, so the table counts as older. */
function touchFile(path: string): void {
  const now = new Date();
  try {
    fs.utimesSync(path, now, now);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') fs.writeFileSync(path, '');
  }
}

/** Returns a time of `performance.now()`. A time in the future counts as now: a clock was set back. */
function proofTime(path: string): number | undefined {
  const stats = fs.statSync(path, { throwIfNoEntry: false });
  return stats && performance.now() - Math.max(0, Date.now() - stats.mtimeMs);
}
