// The replica: this machine's copy of the credentials table in the store. Workers read it from the file
// `production.json`, where the member `store` marks it as a copy. With the replica, a machine starts and serves while
// the store cannot be used. The promotion of a standby can lose revocations in the store. The replica keeps those that
// this machine has seen. The file also includes the revocations by `revoke --here`, which the store does not have.
import { readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { describeFailure, errorCode } from '../base/failure.ts';
import type { Log } from '../base/log.ts';
import { replaceFile } from '../base/system.ts';
import { parseTableText } from '../credentials/table/text.ts';
import { readRevokedHere, revokedHerePath } from '../credentials/write/revoked-here.ts';
import { tablePath } from '../credentials/write/store.ts';
import { createRowNames, type ReplicaMark, tableText } from './entries.ts';
import type { Changes, Snapshot } from './store.ts';

export interface Replica {
  /** The version of the rows; undefined when the rows do not come from the store. */
  version(): string | undefined;
  /** Whether workers have a table: either a copy of the store, or a table that was here before the store. */
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
  /** By name: the JSON of each row that this machine has seen as revoked, and whose revocation the store has lost. */
  lostRevocations(): ReadonlyMap<string, string>;
  /** Writes the file if its text has changed. @returns whether it was written @throws the error of a system call */
  publish(): boolean;
  /** Records that the rows are complete at this moment. */
  markComplete(): void;
  /** Milliseconds since the rows were last known to be complete, also across a restart; infinite when never. */
  age(): number;
}

/** Milliseconds between two touches of the file whose time says when the rows were last complete. */
const PROOF_INTERVAL = 10_000;
/** Milliseconds between a change of the file and its sync to disk. */
const SYNC_DELAY = 1000;
/** At most this many names of missing rows are in one log line. */
const MAX_NAMES = 20;

/** @throws Error of one line, when the file exists and is not a table */
export function openReplica(dataDir: string, log: Log): Replica {
  const path = tablePath(dataDir);
  const proofPath = join(dataDir, '.store-proof');
  const fileTable = readFile(path);
  let rows = new Map(fileTable?.rows ?? []);
  // The revocations by `revoke --here` are removed from the rows in memory, so that the rows equal those in the store.
  // `publish` adds these revocations to the file again.
  for (const [name, time] of fileTable?.mark === undefined ? [] : readRevokedHere(dataDir)) {
    const row = rows.get(name);
    if (row !== undefined && isRevoked(row) && revocationOf(row) === time) rows.set(name, revoke(row, undefined));
  }
  let version = fileTable?.mark?.version;
  let publishedText = '';
  /** Whether the rows can differ from those in the file. */
  let isDirty = true;
  /** The time of the list of `revoke --here` when `publish` last read it. */
  let lastListTime: number | undefined = 0;
  let isSyncDue = false;
  // A table from the time before this machine used the store counts as complete at the start.
  let completeAt =
    fileTable === undefined ? undefined : performance.now() - (version === undefined ? 0 : timeSince(proofPath));
  let touchedAt = Number.NEGATIVE_INFINITY;
  const lostRevocations = new Map<string, string>();
  /** The names of the rows in a table from the time before this machine used the store. */
  const ownRowNames = fileTable !== undefined && fileTable.mark === undefined ? [...fileTable.rows.keys()] : [];

  /** Logs the rows and revocations that a new snapshot lacks, and keeps these revocations. */
  function keepLostRevocations(next: Snapshot['entries']): void {
    const missingNames: string[] = [];
    for (const [name, row] of rows) {
      const current = next.get(name)?.value;
      if (current === undefined) missingNames.push(name);
      else if (isRevoked(row) && !isRevoked(current)) lostRevocations.set(name, revokeAs(row, current));
    }
    if (missingNames.length > 0) {
      log.warn('store-rows-missing', { count: missingNames.length, names: missingNames.slice(0, MAX_NAMES) });
    }
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
      const file = await open(path, 'r+').catch(() => undefined);
      await file?.sync().catch(() => {});
      await file?.close();
    }, SYNC_DELAY).unref();
  }

  function setRow(name: string, row: string | undefined): void {
    if (row === undefined) rows.delete(name);
    else rows.set(name, row);
    // The revocation is no longer lost when the store has it again, or when the row is gone.
    if (row === undefined || isRevoked(row)) lostRevocations.delete(name);
    else if (lostRevocations.has(name)) lostRevocations.set(name, revokeAs(lostRevocations.get(name) as string, row));
  }

  return {
    version: () => version,
    hasTable: () => version !== undefined || fileTable !== undefined,
    rows: () => rows,
    replaceAll({ version: next, entries }) {
      const missingNames = version === undefined ? ownRowNames.filter((name) => !entries.has(name)) : [];
      if (missingNames.length > 0) {
        throw new Error(
          `${path} has ${missingNames.length} rows of its own that the store lacks. Run: gatefold store import, or move the file away`,
        );
      }
      if (version !== undefined) keepLostRevocations(entries);
      rows = new Map();
      for (const [name, { value }] of entries) if (value !== undefined) setRow(name, value);
      version = next;
      isDirty = true;
    },
    apply(changes) {
      isDirty ||= changes.changes.length > 0;
      for (const [name, { value }] of changes.changes) setRow(name, value);
      version = changes.version;
    },
    lostRevocations: () => lostRevocations,
    publish() {
      const listTime = statSync(revokedHerePath(dataDir), { throwIfNoEntry: false })?.mtimeMs;
      if (!isDirty && listTime === lastListTime) return false;
      const revokedHere = readRevokedHere(dataDir);
      const text = tableText(
        Array.from(rows, ([name, row]) => {
          const time = revokedHere.get(name);
          return lostRevocations.get(name) ?? (time === undefined || isRevoked(row) ? row : revoke(row, time));
        }),
        { version: version as string },
      );
      const isListNew = listTime !== lastListTime;
      isDirty = false;
      lastListTime = listTime;
      if (text === publishedText && !isListNew) return false;
      isDirty = true;
      const temporaryPath = join(dataDir, '.replica.tmp');
      writeFileSync(temporaryPath, text, { mode: 0o600 });
      replaceFile(temporaryPath, path);
      syncLater();
      publishedText = text;
      isDirty = false;
      return true;
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

function touchFile(path: string): void {
  const now = new Date();
  try {
    utimesSync(path, now, now);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') writeFileSync(path, '');
  }
}

/** Returns the milliseconds since the file was touched; 0 if the clock of the machine was set back to before that. */
function timeSince(path: string): number {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats === undefined ? Number.POSITIVE_INFINITY : Math.max(0, Date.now() - stats.mtimeMs);
}

interface FoundTable {
  readonly rows: ReadonlyMap<string, string>;
  /** The mark of a replica; undefined when the table is not a replica. */
  readonly mark: ReplicaMark | undefined;
}

function readFile(path: string): FoundTable | undefined {
  try {
    const { members, rows } = parseTableText(readFileSync(path));
    const nameOf = createRowNames();
    return {
      rows: new Map(rows.map((row) => [nameOf(row), JSON.stringify(row)])),
      mark: members.store as ReplicaMark | undefined,
    };
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw new Error(
      `Cannot read ${path}: ${errorCode(error) === undefined ? (error as Error).message : describeFailure(error)}`,
    );
  }
}

export function isRevoked(row: string): boolean {
  return row.includes('"revoked_at"') && revocationOf(row) !== undefined;
}

function revocationOf(row: string): unknown {
  return (JSON.parse(row) as { revoked_at?: unknown }).revoked_at ?? undefined;
}

/** Revokes `row` with the time of revocation that `revoked`, another state of the same row, contains. */
export function revokeAs(revoked: string, row: string): string {
  return revoke(row, revocationOf(revoked));
}

function revoke(row: string, time: unknown): string {
  return JSON.stringify({ ...(JSON.parse(row) as object), revoked_at: time });
}
