// The replica: this machine's copy of the credentials table in the store. The copy is in memory and in the file
// `production.json`, which workers read. With the replica, a machine starts and serves while the store cannot be used.
// - When a standby of the database is promoted, the store can lose revocations. The replica keeps those that this
//   machine has seen.
// - The file also has the revocations by `revoke --here`, which are not in the store.
import { statSync, utimesSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../base/failure.ts';
import type { Log } from '../base/log.ts';
import { replaceFile } from '../base/system.ts';
import { readRevokedHere, revokedHerePath } from '../credentials/write/revoked-here.ts';
import { tablePath } from '../credentials/write/store.ts';
import { readTableFile, tableText } from './entries.ts';
import type { Changes, Snapshot } from './store.ts';

export interface Replica {
  /** The version of the rows; undefined when the rows do not come from the store. */
  version(): string | undefined;
  /** Whether workers have a table: a copy of the store, or a table from the time before this machine used the store. */
  hasTable(): boolean;
  /** The JSON of each row by its name. */
  rows(): ReadonlyMap<string, string>;
  /**
   * Replaces all rows by the rows of the store.
   *
   * @throws Error when the file has rows of its own that the store lacks
   */
  replaceAll(snapshot: Snapshot): void;
  apply(changes: Changes): void;
  /** The rows that were revoked here and are not revoked in the store. Name → JSON of the row with the revocation. */
  lostRevocations(): ReadonlyMap<string, string>;
  /**
   * Writes the file if its text has changed.
   *
   * @returns whether the file was written
   * @throws the error of a system call
   */
  publish(): boolean;
  /** Records that the rows equal those of the store at this moment. */
  markComplete(): void;
  /** Milliseconds since the last `markComplete`, in this process or an earlier one; infinite if there was none. */
  age(): number;
}

/** Milliseconds between two touches of the file `.store-proof`, whose time says when the rows were last complete. */
const PROOF_INTERVAL = 10_000;
/** Milliseconds between a change of the file and its sync to disk. */
const SYNC_DELAY = 1000;
/** At most this many names of missing rows are in one log line. */
const MAX_NAMES = 20;

/** @throws Error with a message of one line, when the file exists and is not a table */
export function openReplica(dataDir: string, log: Log): Replica {
  const path = tablePath(dataDir);
  const proofPath = join(dataDir, '.store-proof');
  const fileTable = readTableFile(dataDir);
  let rows = new Map(fileTable?.rows ?? []);
  // The revocations by `revoke --here` are removed from the rows in memory, so that the rows equal those in the store.
  // `publish` adds these revocations to the file again.
  for (const [name, time] of fileTable?.mark === undefined ? [] : readRevokedHere(dataDir)) {
    const row = rows.get(name);
    if (row !== undefined && revocationOf(row) === time) rows.set(name, revoke(row, undefined));
  }
  let version = fileTable?.mark?.version;
  let publishedText = '';
  /** Whether the rows can differ from those in the file. */
  let isDirty = true;
  /** The time of the list of `revoke --here` at the last `publish`. */
  let publishedListTime: number | undefined = 0;
  let isSyncDue = false;
  // `completeAt` and `touchedAt` are times of `performance.now()`. A table from the time before this machine used the
  // store counts as complete at the start.
  let completeAt =
    fileTable === undefined ? undefined : performance.now() - (version === undefined ? 0 : timeSince(proofPath));
  let touchedAt = Number.NEGATIVE_INFINITY;
  const lostRevocations = new Map<string, string>();

  /** Logs the rows and revocations that a new snapshot lacks, and keeps these revocations. */
  function keepLostRevocations(next: Snapshot['entries']): void {
    const missingNames: string[] = [];
    for (const [name, row] of rows) {
      const current = next.get(name)?.value;
      if (current === undefined) missingNames.push(name);
      else if (isRevoked(row) && !isRevoked(current)) lostRevocations.set(name, revokeAs(row, current));
    }
    if (missingNames.length > 0)
      log.warn('store-rows-missing', { count: missingNames.length, names: missingNames.slice(0, MAX_NAMES) });
    if (lostRevocations.size > 0)
      log.warn('store-revocations-lost', { count: lostRevocations.size, effect: 'they are written again' });
  }

  /**
   * Syncs the file to disk later, because a revocation must not wait for the disk. A power cut before the sync loses
   * only changes that the store has.
   */
  function syncLater(): void {
    if (isSyncDue) return;
    isSyncDue = true;
    setTimeout(async () => {
      isSyncDue = false;
      // An error is ignored, because the store has every change that this sync would save.
      const file = await open(path, 'r+').catch(() => undefined);
      await file?.sync().catch(() => {});
      await file?.close();
    }, SYNC_DELAY).unref();
  }

  function setRow(name: string, row: string | undefined): void {
    if (row === undefined) rows.delete(name);
    else rows.set(name, row);
    // A revocation is no longer lost when the store has it again, or when the row is gone.
    if (row === undefined || isRevoked(row)) lostRevocations.delete(name);
    else if (lostRevocations.has(name)) lostRevocations.set(name, revokeAs(lostRevocations.get(name) as string, row));
  }

  return {
    version: () => version,
    hasTable: () => version !== undefined || fileTable !== undefined,
    rows: () => rows,
    replaceAll({ version: next, entries }) {
      // Without a version, the rows are from the time before this machine used the store.
      const missingCount = version === undefined ? [...rows.keys()].filter((name) => !entries.has(name)).length : 0;
      if (missingCount > 0)
        throw new Error(
          `${path} has ${missingCount} rows of its own that the store lacks. Run: gatefold store import, or move the file away`,
        );
      if (version !== undefined) keepLostRevocations(entries);
      rows = new Map();
      for (const [name, { value }] of entries) setRow(name, value);
      version = next;
      isDirty = true;
    },
    apply({ changes, version: next }) {
      isDirty ||= changes.length > 0;
      for (const [name, row] of changes) setRow(name, row);
      version = next;
    },
    lostRevocations: () => lostRevocations,
    publish() {
      const listTime = statSync(revokedHerePath(dataDir), { throwIfNoEntry: false })?.mtimeMs;
      const isListNew = listTime !== publishedListTime;
      if (!isDirty && !isListNew) return false;
      const revokedHere = readRevokedHere(dataDir);
      // With the empty version, a process that starts later reads all rows of the store, and finds the lost revocations
      // again.
      const mark = { version: lostRevocations.size > 0 ? '' : (version as string) };
      const text = tableText(
        Array.from(rows, ([name, row]) => {
          const time = revokedHere.get(name);
          return lostRevocations.get(name) ?? (time === undefined || isRevoked(row) ? row : revoke(row, time));
        }),
        mark,
      );
      // The command `revoke --here` changes the list and the file. So the file can differ from the last published text.
      const mustWrite = text !== publishedText || isListNew;
      if (mustWrite) {
        const draft = join(dataDir, '.replica.tmp');
        writeFileSync(draft, text, { mode: 0o600 });
        replaceFile(draft, path);
        syncLater();
      }
      publishedText = text;
      publishedListTime = listTime;
      isDirty = false;
      return mustWrite;
    },
    markComplete() {
      completeAt = performance.now();
      if (completeAt - touchedAt < PROOF_INTERVAL) return;
      touchedAt = completeAt;
      touchFile(proofPath);
    },
    age: () => (completeAt === undefined ? Number.POSITIVE_INFINITY : performance.now() - completeAt),
  };
}

/** Sets the time of a file to now. After an error, the file has an older time, so the table counts as older. */
function touchFile(path: string): void {
  const now = new Date();
  try {
    utimesSync(path, now, now);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') writeFileSync(path, '');
  }
}

/** Returns the milliseconds since the file was touched; 0 if its time is in the future, after a clock was set back. */
function timeSince(path: string): number {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats === undefined ? Number.POSITIVE_INFINITY : Math.max(0, Date.now() - stats.mtimeMs);
}

/** @param row the JSON of a row */
export function isRevoked(row: string): boolean {
  // Most rows have no such field and need not be parsed.
  return row.includes('"revoked_at"') && revocationOf(row) !== undefined;
}

/** Returns the time at which a row was revoked; undefined for a row that is not revoked. */
function revocationOf(row: string): unknown {
  return (JSON.parse(row) as { revoked_at?: unknown }).revoked_at ?? undefined;
}

/** Revokes a row with the time of revocation of `revokedRow`, which is another state of the same row. */
export function revokeAs(revokedRow: string, row: string): string {
  return revoke(row, revocationOf(revokedRow));
}

/** @param time the time of the revocation; undefined to undo it */
function revoke(row: string, time: unknown): string {
  return JSON.stringify({ ...(JSON.parse(row) as object), revoked_at: time });
}
